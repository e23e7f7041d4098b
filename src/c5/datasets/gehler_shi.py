"""The Gehler-Shi dataset as downloaded: 568 images of a Canon 1D and a Canon 5D, reprocessed by Shi and Funt.

PNG files of 12-bit numbers below folders `canon1d` and `canon5d`, or named `8D5U*` and `IMG_*` as these cameras did;
`NAME_macbeth.txt` with the corners of the color checker; and `real_illum_568.mat`, whose `real_rgb` has the illuminants
in the order of the files' names. `threefoldCVsplit.mat`, if present, gives the folds.

L. Shi and B. Funt, "Re-processed version of the Gehler color constancy dataset of 568 images", Simon Fraser University.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from c5.color import Float64s
from c5.datasets.glance import files_below, glance
from c5.datasets.labels import as_label, read_numbers
from c5.datasets.mat import numbers, read_mat, strings
from c5.datasets.sample import Found, ImageFile, Sample
from c5.errors import DataError

NAME = "gehler-shi"
DESCRIPTION = "Gehler-Shi as downloaded: PNG files below canon1d and canon5d, real_illum_568.mat"

CAMERAS = {"canon1d": "Canon1D", "canon5d": "Canon5D"}
PREFIXES = {"8d5u": "canon1d", "img_": "canon5d"}
BLACK = {"Canon1D": 0, "Canon5D": 129}  # Shi and Funt
WHITE = {"Canon1D": 0xE20, "Canon5D": 0xE6C}
"""Where the sensors saturate, out of the 4095 that 12 bits allow; from dcraw's table of cameras."""

LABELS = "real_illum*.mat"
FOLDS = "threefoldCVsplit.mat"


def recognizes(folder: Path) -> bool:
    return any(
        path.match(LABELS) or (path.suffix.lower() == ".png" and set(CAMERAS) & set(_folders(path, folder)))
        for path in glance(folder)
    )


def read(folder: Path) -> Found:
    pictures = (path for path in files_below(folder, "*.png") if "mask" not in path.stem.lower())
    cameras = {path: camera for path in pictures if (camera := _camera(path, folder))}
    images = sorted(cameras, key=lambda path: (cameras[path], path.name))
    charts = {path.name: path for path in files_below(folder, "*_macbeth.txt")}
    labels = next(iter(files_below(folder, LABELS)), folder / "real_illum_568.mat")
    found = Found([], [])
    illuminants = np.empty((0, 3))
    with found.noting(labels):
        if not labels.exists():
            raise DataError(f"{labels}: missing; download the ground truth, which is a file of its own")
        illuminants = numbers(read_mat(labels), "real_rgb", 3, labels)
        if len(illuminants) != len(images):
            raise DataError(f"{labels}: {len(illuminants)} labels for {len(images)} images; download all parts")
    if found.problems:
        return found
    folds: dict[str, int] = {}
    for path in files_below(folder, FOLDS):
        with found.noting(path):
            folds = _read_folds(path)
    for path, rgb in zip(images, illuminants, strict=True):
        with found.noting(path):
            camera = cameras[path]
            chart = charts.get(f"{path.stem}_macbeth.txt")
            if chart is None:
                raise DataError(f"{path}: {path.stem}_macbeth.txt is missing; download it, the chart must be masked")
            size, corners = _read_chart(chart)
            image = ImageFile(path, BLACK[camera], WHITE[camera], (corners,), size)
            name = f"Gehler-Shi/{camera}/{path.stem}"
            label = as_label(rgb, path)
            found.samples.append(Sample(image, label, camera, "Gehler-Shi", name, fold=folds.get(path.stem)))
    return found


def _folders(path: Path, folder: Path) -> list[str]:
    """The folders that a file is in, the given one included, in lower case."""
    return [folder.resolve().name.lower(), *(part.lower() for part in path.relative_to(folder).parts[:-1])]


def _camera(path: Path, folder: Path) -> str:
    named = next((part for part in reversed(_folders(path, folder)) if part in CAMERAS), None)
    return CAMERAS.get(named or PREFIXES.get(path.name[:4].lower(), ""), "")


def _read_chart(path: Path) -> tuple[tuple[float, float], Float64s]:
    """Width and height of the picture that was marked, and the four corners of the chart in it, in order around it."""
    values = read_numbers(path, None)
    if values.size < 10 or not (np.isfinite(values).all() and (values[:2] > 0).all()):
        raise DataError(f"{path}: needs width and height, then x and y of four corners; download it again")
    corners = values[2:10].reshape(4, 2)
    x, y = (corners - corners.mean(axis=0)).T
    return (float(values[0]), float(values[1])), corners[np.argsort(np.arctan2(y, x))]


def _read_folds(path: Path) -> dict[str, int]:
    """The fold in which an image is tested, by its name without suffix."""
    variables = read_mat(path)
    try:
        names = [Path(name).stem for name in strings({"Xfiles": variables["Xfiles"]["name"]}, "Xfiles", path)]
        tests = [np.ravel(test).astype(int) - 1 for test in variables["te_split"].ravel()]
        return {names[index]: fold for fold, test in enumerate(tests) for index in test}
    except (KeyError, IndexError, TypeError, ValueError):
        raise DataError(f"{path}: has no Xfiles and te_split that fit; download it again or remove it") from None
