"""How the numbers of an image file represent light: what its ICC profile or its tags say.

A profile is read by hand: only its tone curves and primaries matter here (ICC.1:2022, sections 10.6 and 10.18).
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float64s

MAX_PROFILE_BYTES = 16_000_000
MAX_PROFILE_TAGS = 1000

SRGB_PRIMARIES: Float64s = np.array([[0.4361, 0.2225, 0.0139], [0.3851, 0.7169, 0.0971], [0.1431, 0.0606, 0.7141]])
"""XYZ of red, green and blue, adapted to D50, as profiles of sRGB hold them."""

PNG_GAMMA_UNIT = 100_000
SRGB_GAMMA = 45_455
"""What PNG files of sRGB hold as their gamma: 1/2.2."""


class Encoding(Enum):
    """What a file says of its numbers."""

    LINEAR = "linear"
    SRGB = "sRGB"
    OTHER = "other"
    """Neither, or unknown."""


class Told(NamedTuple):
    encoding: Encoding
    name: str
    """For messages: where the file says so, and by what name."""


def linearize_srgb(encoded: ArrayLike) -> Float64s:
    """IEC 61966-2-1: sRGB in [0, 1] to linear light in [0, 1]."""
    values = np.asarray(encoded, dtype=np.float64)
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def judge_profile(profile: bytes) -> Told:
    """What an ICC profile says. One without tone curves, or a damaged one, is OTHER."""
    tags = _profile_tags(profile)
    name = f'the ICC profile "{_description(tags.get(b"desc", b""))}"'
    curves = [_curve(tags.get(tag, b"")) for tag in (b"rTRC", b"gTRC", b"bTRC")]
    told = Encoding.OTHER
    if all(_near(curve, STEPS) for curve in curves):
        told = Encoding.LINEAR
    elif all(_near(curve, linearize_srgb(STEPS)) for curve in curves):
        found = [_xyz(tags.get(tag, b"")) for tag in (b"rXYZ", b"gXYZ", b"bXYZ")]
        pairs = zip(found, SRGB_PRIMARIES, strict=True)
        if all(xyz is not None and np.abs(xyz - primary).max() < 0.02 for xyz, primary in pairs):
            told = Encoding.SRGB
    return Told(told, name)


def judge_gamma(gamma: int) -> Told:
    """What PNG's gAMA chunk says, in units of 1/100000."""
    told = Encoding.OTHER
    if abs(gamma - PNG_GAMMA_UNIT) <= 1000:
        told = Encoding.LINEAR
    elif abs(gamma - SRGB_GAMMA) <= 500:
        told = Encoding.SRGB
    return Told(told, f"a gamma of {gamma / PNG_GAMMA_UNIT:.3g}")


def judge_table(table: ArrayLike) -> Told:
    """What a transfer function says, given as numbers from 0 to 65535 at equal steps."""
    values = np.asarray(table, dtype=np.float64) / 65535
    curve = np.interp(STEPS, np.linspace(0, 1, len(values)), values) if len(values) else None
    told = Encoding.LINEAR if _near(curve, STEPS) else Encoding.OTHER
    return Told(told, "a transfer function")


STEPS: Float64s = np.linspace(0, 1, 65)
"""Where curves are compared."""


def _near(curve: Float64s | None, expected: Float64s) -> bool:
    return curve is not None and bool(np.abs(curve - expected).max() < 0.004)


def _profile_tags(profile: bytes) -> dict[bytes, bytes]:
    if len(profile) < 132 or profile[36:40] != b"acsp":
        return {}
    (count,) = struct.unpack(">I", profile[128:132])
    table = profile[132 : 132 + 12 * min(count, MAX_PROFILE_TAGS)]
    entries = struct.iter_unpack(">4sII", table[: len(table) // 12 * 12])
    return {tag: profile[place : place + size] for tag, place, size in entries}


def _curve(data: bytes) -> Float64s | None:
    """Light at `STEPS` of a tone curve, `curv` or `para`."""
    if data[:4] == b"curv" and len(data) >= 12:
        (count,) = struct.unpack(">I", data[8:12])
        if count == 0:
            return STEPS
        values = np.frombuffer(data[12 : 12 + 2 * min(count, MAX_PROFILE_BYTES)], ">u2")
        if len(values) < count:
            return None
        if count == 1:
            return np.asarray(STEPS ** (values[0] / 256))
        return np.interp(STEPS, np.linspace(0, 1, count), values / 65535)
    if data[:4] == b"para" and len(data) >= 12:
        (kind,) = struct.unpack(">H", data[8:10])
        names = ("g", "gab", "gabc", "gabcd", "gabcdef")
        if kind >= len(names) or len(data) < 12 + 4 * len(names[kind]):
            return None
        numbers = np.frombuffer(data, ">i4", len(names[kind]), 12) / 65536
        p = dict.fromkeys("abcdef", 0.0) | {"a": 1.0} | dict(zip(names[kind], numbers.tolist(), strict=True))
        if kind in (1, 2):  # the power starts where its base does
            p["d"] = -p["b"] / p["a"] if p["a"] else 0.0
            power, rest = p["c"], p["c"]
        else:
            power, rest = p["e"], p["f"]
        with np.errstate(all="ignore"):
            above = np.maximum(p["a"] * STEPS + p["b"], 0) ** p["g"] + power
            below = (p["c"] if kind >= 3 else 0) * STEPS + rest
        curve = np.where(p["d"] <= STEPS, above, below) if kind else above
        return np.asarray(curve) if np.isfinite(curve).all() else None
    return None


def _xyz(data: bytes) -> Float64s | None:
    if data[:4] != b"XYZ " or len(data) < 20:
        return None
    return np.frombuffer(data, ">i4", 3, 8) / 65536


def _description(data: bytes) -> str:
    """The name of a profile, of `desc` or `mluc`, as far as it can be read."""
    if data[:4] == b"mluc" and len(data) >= 28:
        size, place = struct.unpack(">II", data[20:28])
        text = data[place : place + min(size, 200)].decode("utf-16-be", "replace")
    else:
        text = data[12:212].split(b"\0")[0].decode("ascii", "replace") if data[:4] == b"desc" else ""
    return "".join(letter for letter in text if letter.isprintable()).strip() or "without a name"
