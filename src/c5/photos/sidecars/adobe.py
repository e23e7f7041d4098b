"""Adobe's sidecars, NAME.xmp beside a raw file: Camera Raw, Lightroom and what reads their settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from c5.color import Float64s, as_illuminant, reproduction_error
from c5.colorimetry.temperature import ADOBE_KELVINS, ADOBE_TINTS, NOTICEABLE_DEG, adobe_neutral, adobe_temperature
from c5.errors import ParameterError
from c5.photos.sidecars.xmp import C5, Name, Packet, cut_namespace, cut_property, put_property

if TYPE_CHECKING:
    from c5.photos.balancing import Balance
    from c5.photos.photo import Photo

CAMERA_RAW = "http://ns.adobe.com/camera-raw-settings/1.0/"

MARK = Name(C5, "adobe")

BALANCE = ("WhiteBalance", "Temperature", "Tint")
SETTINGS = ("Version", "ProcessVersion", "HasSettings")
"""What accompanies any setting."""


def path_beside(photo: Path) -> Path:
    """Where Adobe's programs look for the sidecar of a raw file."""
    return photo.with_suffix(".xmp")


def encode(balance: Balance, existing: bytes | None) -> bytes:
    """A sidecar with this balance, as near to it as the sliders allow."""
    found = adobe_temperature(balance.illuminant, balance.photo.need_matrices())
    return set_white_balance(existing, int(found.kelvin), int(found.tint))


def note(balance: Balance) -> str:
    """What Adobe's sliders cannot hold of a balance; empty if they hold it."""
    matrices = balance.photo.need_matrices()
    kelvin, tint = adobe_temperature(balance.illuminant, matrices)
    off = float(reproduction_error(adobe_neutral(kelvin, tint, matrices), balance.illuminant))
    if off < NOTICEABLE_DEG:
        return ""
    return f"beyond Adobe's sliders: {kelvin:.0f} K, tint {tint:+.0f} is nearest and leaves white {off:.1f}° off"


def caveat(photo: Path) -> str:
    """Why Adobe's programs will not read the sidecar of a photograph; empty if they will."""
    if photo.suffix.lower() != ".dng":
        return ""
    return "Adobe's programs do not read sidecars of DNG files; write DNG copies of them to another folder"


def set_white_balance(existing: bytes | None, kelvin: int, tint: int) -> bytes:
    """A sidecar with this white balance; the other content of an existing one is kept.

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


def read_balance(sidecar: bytes) -> dict[str, str]:
    return _read(sidecar, BALANCE)


def is_custom(sidecar: bytes, as_shot: Float64s | None) -> bool:
    """Anything but "As Shot", which comes with numbers too."""
    found = read_balance(sidecar)
    return found.get("WhiteBalance", "Custom" if "Temperature" in found else "As Shot") != "As Shot"


def read_illuminant(sidecar: bytes, photo: Photo) -> Float64s | None:
    """Custom balances only: presets come with the same numbers for all who choose them."""
    found = read_balance(sidecar)
    if found.get("WhiteBalance", "Custom") != "Custom":
        return None
    try:
        kelvin, tint = float(found["Temperature"]), float(found["Tint"])
    except (KeyError, ValueError):
        return None
    if not (ADOBE_KELVINS[0] <= kelvin <= ADOBE_KELVINS[1] and ADOBE_TINTS[0] <= tint <= ADOBE_TINTS[1]):
        return None
    return as_illuminant(adobe_neutral(kelvin, tint, photo.need_matrices()))


def describe_former(former: bytes, made: bytes) -> dict[str, Any]:
    return _read(former, (*BALANCE, *SETTINGS))


def restore(sidecar: bytes, former: dict[str, Any]) -> bytes:
    """The balance that was there, or none. If other settings were added, what they depend on stays."""
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
    return put_property(sidecar, MARK, text)


def cut_mark(sidecar: bytes) -> tuple[bytes, str | None]:
    return cut_property(sidecar, MARK)


def _read(sidecar: bytes, names: tuple[str, ...]) -> dict[str, str]:
    packet = Packet(sidecar)
    found = {local: packet.get(Name(CAMERA_RAW, local)) for local in names}
    return {local: value for local, value in found.items() if value is not None}
