"""INTEL-TAU as downloaded, in its version of 1080p TIFF files, which have the black level subtracted already.

A folder for each camera, such as Canon_5DSR, has folders for kinds of scenes, in which each `NAME.tiff` has `NAME.wp`:
its white point, as three numbers, or as the two ratios R/G and B/G. Images with the same number in the same kind of
scenes are taken to show the same scene, whatever their cameras: many scenes were photographed with all three. Text
files with `fold` and a number in their names, if there are any, list the images of each fold, one per line; `ten-fold`
uses them.

F. Laakom, J. Raitoharju, J. Nikkanen, A. Iosifidis and M. Gabbouj, "INTEL-TAU: a color constancy dataset", IEEE Access,
2021.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from c5.color import Float64s
from c5.datasets.glance import files_below, glance
from c5.datasets.labels import as_label, read_numbers
from c5.datasets.sample import Found, ImageFile, Sample
from c5.errors import DataError, reason
from c5.regular import read_text

NAME = "intel-tau"
DESCRIPTION = "INTEL-TAU as downloaded: CAMERA/field_1_cameras/NAME.tiff with NAME.wp"

KINDS = ("field_1_camera", "field_1_cameras", "field_3_cameras", "lab_printouts", "lab_realscene")


def recognizes(folder: Path) -> bool:
    return any(
        path.suffix.lower() == ".wp" or (path.suffix.lower() in (".tif", ".tiff") and path.parent.name in KINDS)
        for path in glance(folder)
    )


def read(folder: Path) -> Found:
    found = Found([], [])
    images = files_below(folder, "*.tif", "*.tiff")
    folds: dict[str, int] = {}
    for path in files_below(folder, "*fold*.txt"):
        with found.noting(path):
            folds |= _read_fold(path)
    first = min(folds.values(), default=0)  # they may be counted from 0 or 1
    folds = {image: number - first for image, number in folds.items()}
    for path in images:
        with found.noting(path):
            illuminant = _read_white_point(path.with_suffix(".wp"))
            place = path.parent.resolve()
            kind = place.name if place.name in KINDS else ""
            camera = place.parent.name if kind else place.name
            numbers = re.findall(r"\d+", path.stem)
            scene = f"{kind or 'images'}/{int(numbers[-1])}" if numbers else None
            name = "/".join(filter(None, ("INTEL-TAU", camera, kind, path.stem)))
            fold = _find_fold(path, folds)
            found.samples.append(Sample(ImageFile(path), illuminant, camera, "INTEL-TAU", name, scene, fold=fold))
    used = {path.with_suffix(".wp") for path in images}
    found.note_unused(
        files_below(folder, "*.wp"), used, "has no TIFF image beside it; complete the folder or remove it"
    )
    return found


def _read_fold(path: Path) -> dict[str, int]:
    """The number of the fold of each image in a list, by the part of its path that the list gives."""
    number = re.findall(r"\d+", path.stem)
    try:
        lines = read_text(path).split()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text ({reason(error)}); download it again") from None
    if not number:
        return {}
    return {PurePosixPath(line.replace("\\", "/")).with_suffix("").as_posix(): int(number[-1]) for line in lines}


def _find_fold(path: Path, folds: dict[str, int]) -> int | None:
    """Matched by as much of its path as the lists give: several cameras may use the same names."""
    parts = path.resolve().with_suffix("").parts
    ends = ("/".join(parts[-count:]) for count in (3, 2, 1))
    return next((folds[end] for end in ends if end in folds), None)


def _read_white_point(path: Path) -> Float64s:
    values = read_numbers(path, None)
    if values.size == 2:
        return as_label([values[0], 1, values[1]], path)
    return as_label(values, path)
