"""What is known about the datasets beyond what their files say: the names of their cameras."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from c5.colorimetry.matrices import CameraMatrices

SHORT_NAMES = {
    "Canon1D": "Canon-EOS-1D",
    "Canon1DsMkIII": "Canon-EOS-1Ds-Mark-III",
    "Canon550D": "Canon-EOS-550D",
    "Canon5D": "Canon-EOS-5D",
    "Canon_5DSR": "Canon-EOS-5DS-R",
    "Canon600D": "Canon-EOS-600D",
    "FujifilmXM1": "Fujifilm-X-M1",
    "NikonD5200": "Nikon-D5200",
    "Nikon_D810": "Nikon-D810",
    "OlympusEPL6": "Olympus-E-PL6",
    "PanasonicGX1": "Panasonic-DMC-GX1",
    "SamsungNX2000": "Samsung-NX2000",
    "SonyA57": "Sony-SLT-A57",
}
"""What datasets call cameras, and their names in full."""


def full_name(camera: str) -> str:
    """The name of a camera in full, where it is one of `SHORT_NAMES`; any other is its own."""
    return SHORT_NAMES.get(camera, camera)


def match_name(camera: str, matrices: Collection[str]) -> str | None:
    """What a table of matrices calls a camera: the same name, or its name in full. Never a part of one."""
    return next((name for name in (camera, full_name(camera)) if name in matrices), None)


def leave_out(matrices: Mapping[str, CameraMatrices], cameras: Iterable[str]) -> dict[str, CameraMatrices]:
    """A table without these cameras, nor any with the same matrices: makers sell one sensor under several names."""
    barred = {full_name(camera) for camera in cameras}
    hidden = {each.content for name, each in matrices.items() if full_name(name) in barred}
    return {name: each for name, each in matrices.items() if each.content not in hidden}


def all_names(camera: str) -> frozenset[str]:
    """Every name that a camera goes by."""
    full = full_name(camera)
    return frozenset({camera, full, *(short for short, known in SHORT_NAMES.items() if known == full)})
