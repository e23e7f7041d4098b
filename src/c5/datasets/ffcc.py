"""The layout of the public repository google/ffcc: Gehler-Shi and NUS at 384x256, 16-bit linear, the chart masked to 0.

Each image `NNNNNN.png` has `NNNNNN.txt` (its illuminant, a number a line), `NNNNNN_camera.txt`, `NNNNNN_ccm.txt` (3x3)
and, in NUS, `NNNNNN_scene.txt`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from c5.color import Float64s, as_illuminant
from c5.datasets.sample import Sample
from c5.errors import DataError, ParameterError

DATASETS = {"GehlerShi": "Gehler-Shi", "Cheng": "NUS"}
"""Names of datasets by a folder on the way to their images."""


def read_ffcc(folder: str | Path) -> list[Sample]:
    """The samples below a checkout of the repository, or below any folder of it; thumbnails are passed over."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; give a checkout of google/ffcc or a folder inside it")
    images = [
        path
        for path in sorted(folder.rglob("[0-9]*.png"))
        if not any(part.endswith("Thumb") for part in path.relative_to(folder).parts)
    ]
    if not images:
        raise DataError(f"{folder}: no images in the layout of google/ffcc (NNNNNN.png with NNNNNN.txt) below it")
    return [_read_sample(path) for path in images]


def _read_sample(path: Path) -> Sample:
    try:
        illuminant = as_illuminant(_numbers(path.with_suffix(".txt"), 3))
    except ParameterError as error:
        raise DataError(f"{path.with_suffix('.txt')}: {error}; correct the label or remove the image") from None
    dataset = next((DATASETS[part] for part in reversed(path.parts) if part in DATASETS), path.parent.name)
    ccm = _beside(path, "_ccm.txt")
    scene = _beside(path, "_scene.txt")
    return Sample(
        path,
        illuminant,
        camera=_text(path.with_name(f"{path.stem}_camera.txt")),
        dataset=dataset,
        scene=_text(scene) if scene else None,
        ccm=_numbers(ccm, 9).reshape(3, 3) if ccm else None,
    )


def _beside(path: Path, suffix: str) -> Path | None:
    other = path.with_name(path.stem + suffix)
    return other if other.exists() else None


def _text(path: Path) -> str:
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        raise DataError(f"{path}: missing or empty; every image needs its camera's name")
    return text


def _numbers(path: Path, count: int) -> Float64s:
    try:
        values = np.array(path.read_text().split(), dtype=np.float64)
    except (OSError, ValueError):
        raise DataError(f"{path}: missing or not numbers; complete the checkout or remove the image") from None
    if values.size != count:
        raise DataError(f"{path}: holds {values.size} numbers instead of {count}")
    return values
