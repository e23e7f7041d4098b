"""Adobe's sidecars, NAME.xmp beside a raw file: Camera Raw, Lightroom and what reads their settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from c5.color import reproduction_error
from c5.colorimetry.temperature import ADOBE_KELVINS, ADOBE_TINTS, NOTICEABLE_DEG, adobe_neutral, adobe_temperature
from c5.errors import ParameterError
from c5.photos.sidecars.xmp import Name, Packet

if TYPE_CHECKING:
    from c5.photos.balancing import Balance

CAMERA_RAW = "http://ns.adobe.com/camera-raw-settings/1.0/"


def path_beside(photo: Path) -> Path:
    """Where Adobe's programs look for the sidecar of a raw file."""
    return photo.with_suffix(".xmp")


def encode(balance: Balance, existing: bytes | None) -> bytes:
    """A sidecar with this balance, as near to it as the sliders allow."""
    found = adobe_temperature(balance.illuminant, balance.photo.need_matrices())
    return set_white_balance(existing, int(found.kelvin), int(found.tint))


def note(balance: Balance) -> str:
    """What Adobe's sliders cannot hold of a balance; empty where they hold it."""
    matrices = balance.photo.need_matrices()
    kelvin, tint = adobe_temperature(balance.illuminant, matrices)
    off = float(reproduction_error(adobe_neutral(kelvin, tint, matrices), balance.illuminant))
    if off < NOTICEABLE_DEG:
        return ""
    return f"beyond Adobe's sliders: {kelvin:.0f} K, tint {tint:+.0f} is nearest and leaves white {off:.1f}° off"


def set_white_balance(existing: bytes | None, kelvin: int, tint: int) -> bytes:
    """A sidecar with this white balance; what else an existing one says is kept.

    The numbers are those of `adobe_temperature`. The process version, which decides what every other slider
    does, is given to sidecars without any settings and left alone in others.
    """
    if not (ADOBE_KELVINS[0] <= kelvin <= ADOBE_KELVINS[1] and ADOBE_TINTS[0] <= tint <= ADOBE_TINTS[1]):
        raise ParameterError(
            f"Adobe's programs have 2000 to 50000 K and tints of -150 to 150, not {kelvin} and {tint}; take the nearest"
        )
    packet = Packet(existing)
    settings = {} if packet.uses(CAMERA_RAW) else {"Version": "15.0", "ProcessVersion": "11.0"}
    settings |= {"WhiteBalance": "Custom", "Temperature": f"{kelvin:d}", "Tint": f"{tint:+d}", "HasSettings": "True"}
    for local, value in settings.items():
        packet.set(Name(CAMERA_RAW, local), value, "crs")
    return packet.encode()
