"""Adobe's sidecars, NAME.xmp beside a raw file: Camera Raw, Lightroom and what reads their settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from c5.colorimetry.temperature import dng_temperature
from c5.errors import ParameterError
from c5.photos.sidecars.xmp import Name, Packet

if TYPE_CHECKING:
    from c5.photos.balancing import Balance

CAMERA_RAW = "http://ns.adobe.com/camera-raw-settings/1.0/"

KELVINS, TINTS = (2000, 50000), (-150, 150)
"""The ranges of the two sliders."""


def path_beside(photo: Path) -> Path:
    """Where Adobe's programs look for the sidecar of a raw file."""
    return photo.with_suffix(".xmp")


def encode(balance: Balance, existing: bytes | None) -> bytes:
    """A sidecar with this balance, as near to it as the sliders allow."""
    found = dng_temperature(balance.illuminant, balance.photo.need_matrices())
    kelvin, tint = (
        round(min(max(value, low), high)) for value, (low, high) in zip(found, (KELVINS, TINTS), strict=True)
    )
    return set_white_balance(existing, kelvin, tint)


def set_white_balance(existing: bytes | None, kelvin: int, tint: int) -> bytes:
    """A sidecar with this white balance; what else an existing one says is kept.

    The numbers are those of `dng_temperature`, rounded. The process version, which decides what every other slider
    does, is given to sidecars without any settings and left alone in others.
    """
    if not (KELVINS[0] <= kelvin <= KELVINS[1] and TINTS[0] <= tint <= TINTS[1]):
        raise ParameterError(
            f"Adobe's programs have 2000 to 50000 K and tints of -150 to 150, not {kelvin} and {tint}; take the nearest"
        )
    packet = Packet(existing)
    settings = {} if packet.uses(CAMERA_RAW) else {"Version": "15.0", "ProcessVersion": "11.0"}
    settings |= {"WhiteBalance": "Custom", "Temperature": f"{kelvin:d}", "Tint": f"{tint:+d}", "HasSettings": "True"}
    for local, value in settings.items():
        packet.set(Name(CAMERA_RAW, local), value, "crs")
    return packet.encode()
