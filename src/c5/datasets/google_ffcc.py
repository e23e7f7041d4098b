"""The layout of the public repository google/ffcc: Gehler-Shi and NUS at 384x256, 16-bit linear, the chart masked to 0.

Each image `NNNNNN.png` has `NNNNNN.txt` (its illuminant, one number per line), `NNNNNN_camera.txt`, `NNNNNN_ccm.txt`
(3x3), and in Gehler-Shi `NNNNNN_exif.mat` with ISO, aperture and exposure time, or at least `NNNNNN_exif.txt` (first
the logarithms of exposure time and aperture, relative to their mean). The numbers in `NNNNNN_scene.txt` of NUS are not
used: images of two cameras with the same number do not show the same scene. `cvfolds.txt` in a folder has the
cross-validation fold of each of its images, one line per image.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from c5.datasets.glance import files_below, glance
from c5.datasets.labels import as_label, read_numbers, read_word
from c5.datasets.mat import read_mat
from c5.datasets.sample import Capture, Found, ImageFile, Problem, Sample
from c5.errors import DataError

NAME = "ffcc"
DESCRIPTION = "a checkout of google/ffcc, or a folder inside one"

DATASETS = {"GehlerShi": "Gehler-Shi", "Cheng": "NUS"}
"""Names of datasets by a folder in the path of their images."""


def recognizes(folder: Path) -> bool:
    return any(path.match("[0-9]*_camera.txt") for path in glance(folder))


def read(folder: Path) -> Found:
    """The samples below a checkout of the repository, or below any folder of it; thumbnails are skipped."""
    found = Found([], [])
    by_folder: dict[Path, list[Path]] = {}
    for path in _files(folder, "[0-9]*.png"):
        by_folder.setdefault(path.parent, []).append(path)
    for place, images in by_folder.items():
        folds: list[int | None] = [None] * len(images)
        with found.noting(place / "cvfolds.txt"):
            folds = _read_folds(place / "cvfolds.txt", len(images))
        for path, fold in zip(images, folds, strict=True):
            with found.noting(path):
                found.samples.append(_read_sample(path, fold))
    for path in _files(folder, "[0-9]*_camera.txt"):
        image = path.with_name(path.name.replace("_camera.txt", ".png"))
        if not image.exists():
            message = f"{image}: missing, though {path.name} is there; complete the folder"
            found.problems.append(Problem(image, message))
    return found


def _files(folder: Path, pattern: str) -> list[Path]:
    """The matching files below a folder, in order; a folder of thumbnails is read only if it is the one given."""
    paths = files_below(folder, pattern)
    return [path for path in paths if not any(part.endswith("Thumb") for part in path.relative_to(folder).parts)]


def _read_sample(path: Path, fold: int | None) -> Sample:
    label = path.with_suffix(".txt")
    illuminant = as_label(read_numbers(label, 3), label)
    camera = read_word(_beside(path, "_camera.txt"), "every image needs its camera's name")
    dataset = next((DATASETS[part] for part in reversed(path.parts) if part in DATASETS), path.parent.name)
    ccm = _beside(path, "_ccm.txt")
    return Sample(
        ImageFile(path),
        illuminant,
        camera=camera,
        dataset=dataset,
        name=f"{dataset}/{camera}/{path.stem}",
        ccm=read_numbers(ccm, 9).reshape(3, 3) if ccm.exists() else None,
        capture=_read_capture(path),
        fold=fold,
    )


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.stem + suffix)


def _read_capture(path: Path) -> Capture | None:
    """How a photograph was taken; baseline noise and exposure are not known and taken to be 1 and 0."""
    whole, features = _beside(path, "_exif.mat"), _beside(path, "_exif.txt")
    if whole.exists() and find_spec("scipy") is not None:
        exif: Any = read_mat(whole).get("exif")
        try:
            gain, aperture, seconds = (float(exif[name].item().item()) for name in ("ISO", "F_Number", "Exposure_Time"))
            return Capture(gain, aperture, seconds)
        except (TypeError, ValueError, AttributeError):  # a tag is missing, or of another kind
            pass
    if not features.exists():
        return None
    exposure, aperture = np.exp(read_numbers(features, 9)[:2])
    return Capture(aperture=float(aperture), exposure=float(exposure))


def _read_folds(path: Path, count: int) -> list[int | None]:
    if not path.exists():
        return [None] * count
    folds = read_numbers(path, None)
    if len(folds) != count:
        raise DataError(f"{path}: {len(folds)} folds for {count} images; complete the folder or remove the file")
    return [int(fold) - 1 for fold in folds]
