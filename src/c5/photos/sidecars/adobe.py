"""Adobe's sidecars, NAME.xmp beside a raw file: Camera Raw, Lightroom and what reads their settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from c5.color import Float64s
from c5.colorimetry.temperature import dng_temperature
from c5.errors import ParameterError
from c5.photos.sidecars.xmp import C5, Name, Packet, cut_namespace, cut_property

if TYPE_CHECKING:
    from c5.photos.balancing import Balance

CAMERA_RAW = "http://ns.adobe.com/camera-raw-settings/1.0/"

MARK = Name(C5, "adobe")

BALANCE = ("WhiteBalance", "Temperature", "Tint")
SETTINGS = ("Version", "ProcessVersion", "HasSettings")
"""What stands with any setting."""

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


def read_balance(sidecar: bytes) -> dict[str, str]:
    return _read(sidecar, BALANCE)


def is_custom(sidecar: bytes, as_shot: Float64s | None) -> bool:
    """Anything but "As Shot", which comes with numbers too."""
    found = read_balance(sidecar)
    return found.get("WhiteBalance", "Custom" if "Temperature" in found else "As Shot") != "As Shot"


def describe_former(former: bytes, made: bytes) -> dict[str, Any]:
    return _read(former, (*BALANCE, *SETTINGS))


def restore(sidecar: bytes, former: dict[str, Any]) -> bytes:
    """The balance that was there, or none. Where other settings have come, what they rest on stays."""
    packet = Packet(sidecar)
    known = {Name(CAMERA_RAW, local) for local in (*BALANCE, *SETTINGS)}
    others = {name for each in packet.descriptions for name in (*each.attributes, *(it.name for it in each.children))}
    has_others = any(name.namespace == CAMERA_RAW for name in others - known)
    for local in BALANCE if has_others else (*BALANCE, *SETTINGS):
        if local in former:
            packet.set(Name(CAMERA_RAW, local), str(former[local]), "crs")
        else:
            packet.remove(Name(CAMERA_RAW, local))
    return packet.encode() if former else cut_namespace(packet.encode(), CAMERA_RAW)


def put_mark(sidecar: bytes, text: str) -> bytes:
    packet = Packet(sidecar)
    packet.set(MARK, text, "c5")
    return packet.encode()


def cut_mark(sidecar: bytes) -> tuple[bytes, str | None]:
    return cut_property(sidecar, MARK)


def _read(sidecar: bytes, names: tuple[str, ...]) -> dict[str, str]:
    packet = Packet(sidecar)
    found = {local: packet.get(Name(CAMERA_RAW, local)) for local in names}
    return {local: value for local, value in found.items() if value is not None}
