"""RawTherapee's sidecars, NAME.EXT.pp3 beside a raw file.

RawTherapee uses one matrix for all lights. For cameras that it knows, it uses its own: there our numbers are right as
far as that matrix agrees with the file's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from c5.color import Float64s, reproduction_error
from c5.colorimetry.temperature import (
    NOTICEABLE_DEG,
    RT_GREENS,
    RT_KELVINS,
    rawtherapee_neutral,
    rawtherapee_temperature,
)
from c5.errors import ParameterError, ReadError
from c5.io import raw

if TYPE_CHECKING:
    from c5.photos.balancing import Balance
    from c5.photos.photo import Photo

SECTION = b"White Balance"

STANDARD_LIGHT_A = 17
"""Its number in Exif."""

D65_WHITE = (0.950456, 1, 1.088754)

BALANCE = (b"Enabled", b"Setting", b"Temperature", b"Green")
ADDED = (*BALANCE, b"Equal", b"StandardObserver")
"""What is written, the balance first."""

_MARK = re.compile(rb"\r?\n\[C5\]\r?\nWhiteBalance=([^\r\n]*)\r?\n")
_HEADER = re.compile(rb"\[([^\[\]]+)\]\s*$")


def path_beside(photo: Path) -> Path:
    """Where RawTherapee looks for the sidecar of a raw file."""
    return photo.with_name(f"{photo.name}.pp3")


def encode(balance: Balance, existing: bytes | None) -> bytes:
    """A sidecar with this balance, or the nearest to it that RawTherapee has."""
    return set_white_balance(existing, *rawtherapee_temperature(balance.illuminant, find_matrix(balance.photo)))


def note(balance: Balance, *, is_copy: bool = False) -> str:
    """What RawTherapee cannot hold of a balance, in a sidecar or a DNG copy; empty if it holds it."""
    matrix = find_matrix(balance.photo, is_copy=is_copy)
    kelvin, green = rawtherapee_temperature(balance.illuminant, matrix)
    off = float(reproduction_error(rawtherapee_neutral(kelvin, green, matrix), balance.illuminant))
    if off < NOTICEABLE_DEG:
        return ""
    return f"beyond RawTherapee's range: {kelvin} K, green {green:.3f} is nearest and leaves white {off:.1f}° off"


def find_matrix(photo: Photo, *, is_copy: bool = False) -> Float64s:
    """(3, 3) XYZ to camera RGB as RawTherapee 5.9 takes it from a file (`parse_tiff_ifd` in its dcraw.cc).

    Of two matrices it takes the second, unless that is illuminant A's. It ignores AnalogBalance and
    CameraCalibration. For a file with AsShotWhiteXY, which our copies lose, it makes one to which that white is D65.
    """
    tags = raw.read_color_tags(photo.path)
    lights = [tags.get(code, (STANDARD_LIGHT_A,)) for code in raw.CALIBRATION_ILLUMINANTS]
    second = lights[1][:1] != (STANDARD_LIGHT_A,)
    colors = tags.get(raw.COLOR_MATRICES[second]) or tags.get(raw.COLOR_MATRICES[0]) or ()
    if len(colors) != 9 or not np.isfinite(colors).all():
        return photo.need_matrices().matrix_d65
    matrix = np.reshape(colors, (3, 3))
    white = () if is_copy else tags.get(raw.AS_SHOT_WHITE_XY, ())
    return matrix * (*white, 1 - sum(white)) / D65_WHITE if len(white) == 2 else matrix


def set_white_balance(existing: bytes | None, kelvin: int, green: float) -> bytes:
    """A sidecar with this white balance; every other line of an existing one is kept, byte for byte.

    A line that RawTherapee cannot read is refused: because of one such line it would ignore them all. The numbers are
    those of `rawtherapee_temperature`, as 5.9 understands them: the observer is named for later versions, which offer a
    choice.
    """
    if not (RT_KELVINS[0] <= kelvin <= RT_KELVINS[1] and RT_GREENS[0] <= green <= RT_GREENS[1]):
        raise ParameterError(f"RawTherapee has 1500 to 60000 K and a green of 0.02 to 10, not {kelvin} and {green:g}")
    wanted = {
        b"Enabled": b"true",
        b"Setting": b"Custom",
        b"Temperature": b"%d" % kelvin,
        b"Green": f"{green:.6f}".encode(),
        b"Equal": b"1",
        b"StandardObserver": b"TEN_DEGREES",
    }
    lines = re.findall(rb"[^\n]*\n|[^\n]+", existing or b"")
    ending = b"\r\n" if lines and lines[0].endswith(b"\r\n") else b"\n"
    missing = dict(wanted)
    is_started, section, first = False, -1, -1  # sections of that name by the line they begin on
    last = -1  # of the first one, the last line with anything on it
    for number, line in enumerate(lines):
        text = line.strip()
        if header := _HEADER.match(text):
            is_started, section = True, number if header[1] == SECTION else -1
            first = section if first == -1 else first
        elif not _is_readable(text, is_started=is_started):
            raise ReadError(
                f"line {number + 1} of the sidecar cannot be read by RawTherapee: correct it, or remove the file"
            )
        if section == -1 or not text:
            continue
        last = number if section == first else last
        key, is_pair, _ = (part.strip() for part in text.partition(b"="))
        if is_pair and key in wanted:
            lines[number] = key + b"=" + wanted[key] + line[len(line.rstrip()) :]
            missing.pop(key, None)
    return b"".join(_complete(lines, last, missing, ending))


def _is_readable(text: bytes, *, is_started: bool) -> bool:
    """Whether a line that opens no section is valid in a GLib key file; reading ends at one that is not."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    is_pair = b"=" in text and not text.startswith((b"=", b"["))
    return not text or text.startswith(b"#") or (is_started and is_pair and b"\0" not in text)


def _complete(lines: list[bytes], last: int, missing: dict[bytes, bytes], ending: bytes) -> list[bytes]:
    """The lines with what is missing added after the last one of the section, or in a new section."""
    added = [key + b"=" + value + ending for key, value in missing.items()]
    if last == -1:
        gap = [ending] if lines else []
        last, added = len(lines) - 1, [*gap, b"[" + SECTION + b"]" + ending, *added]
    before = lines[: last + 1]
    if added and before and not before[-1].endswith(b"\n"):
        before[-1] += ending
    return [*before, *added, *lines[last + 1 :]]


def read_balance(sidecar: bytes) -> dict[str, str]:
    found = _read(sidecar)
    return {key.decode(): found[key] for key in BALANCE if key in found}


def is_custom(sidecar: bytes, as_shot: Float64s | None) -> bool:
    """Anything but the camera's balance, which RawTherapee writes into every profile."""
    found = _read(sidecar)
    return found.get(b"Setting", "Camera") != "Camera" or found.get(b"Enabled", "true") != "true"


def read_illuminant(sidecar: bytes, photo: Photo) -> Float64s | None:
    """Custom balances, unless they depend on what 5.9 does not have, or on more than these two numbers."""
    found = _read(sidecar)
    others = found.get(b"Equal", "1"), found.get(b"TemperatureBias", "0"), found.get(b"StandardObserver", "TEN_DEGREES")
    try:
        if found.get(b"Setting") != "Custom" or found.get(b"Enabled", "true") != "true" or others[2] != "TEN_DEGREES":
            return None
        if (float(others[0]), float(others[1])) != (1, 0):
            return None
        return rawtherapee_neutral(round(float(found[b"Temperature"])), float(found[b"Green"]), find_matrix(photo))
    except (KeyError, ValueError, OverflowError):  # a number out of range is a ParameterError, and that a ValueError
        return None


def describe_former(former: bytes, made: bytes) -> dict[str, Any]:
    found = _read(former)
    return {key.decode(): found[key] for key in ADDED if key in found}


def restore(sidecar: bytes, former: dict[str, Any]) -> bytes:
    """The balance that was there, or none."""
    kept: list[bytes] = []
    for line, key in _walk(sidecar):
        if key in ADDED:
            if key.decode() not in former:
                continue
            line = key + b"=" + str(former[key.decode()]).encode() + line[len(line.rstrip()) :]
        kept.append(line)
    return re.sub(rb"\r?\n\[White Balance\]\r?\n(?=\s*(\[|\Z))", b"", b"".join(kept)) if not former else b"".join(kept)


def put_mark(sidecar: bytes, text: str) -> bytes:
    """A separate section at the end. RawTherapee ignores it, and drops it when it saves the profile itself."""
    sidecar = _MARK.sub(b"", sidecar)
    ending = b"\r\n" if b"\r\n" in sidecar else b"\n"
    gap = b"" if sidecar.endswith(b"\n") else ending
    return sidecar + gap + ending + b"[C5]" + ending + b"WhiteBalance=" + text.encode() + ending


def cut_mark(sidecar: bytes) -> tuple[bytes, str | None]:
    found = _MARK.search(sidecar)
    if found is None:
        return sidecar, None
    return sidecar[: found.start()] + sidecar[found.end() :], found[1].decode("utf-8", "replace")


def _walk(sidecar: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each line, and its key if it is one of the white balance."""
    is_inside = False
    for line in re.findall(rb"[^\n]*\n|[^\n]+", sidecar):
        if header := _HEADER.match(line.strip()):
            is_inside = header[1] == SECTION
        key, is_pair, _ = line.partition(b"=")
        yield line, key.strip() if is_inside and is_pair else b""


def _read(sidecar: bytes) -> dict[bytes, str]:
    """The values of the white balance; a later line wins."""
    return {key: line.partition(b"=")[2].strip().decode("utf-8", "replace") for line, key in _walk(sidecar) if key}
