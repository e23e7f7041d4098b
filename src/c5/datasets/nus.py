"""The NUS 8-camera dataset as downloaded: for each camera `CAMERA_gt.mat`, and images `CAMERA_0001.PNG` below it.

The file of a camera has the names of its images, their illuminants, the levels of the sensor, and for each image the
rectangle of the color chart as rows and columns, counted from 1.

D. Cheng, D. K. Prasad and M. S. Brown, "Illuminant estimation for color constancy: why spatial-domain methods work and
the role of the color distribution", JOSA A, 2014.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from c5.datasets.glance import files_below, glance
from c5.datasets.labels import as_label
from c5.datasets.mat import numbers, read_mat, strings
from c5.datasets.sample import Found, ImageFile, Problem, Sample
from c5.errors import DataError

NAME = "nus"
DESCRIPTION = "NUS 8-camera as downloaded: CAMERA_gt.mat and CAMERA_0001.PNG"

LABEL_SUFFIX = "_gt.mat"


def recognizes(folder: Path) -> bool:
    return any(path.name.endswith(LABEL_SUFFIX) for path in glance(folder))


def read(folder: Path) -> Found:
    found = Found([], [])
    images: dict[str, Path] = {}
    for path in files_below(folder, "*.png"):
        if path.stem in images:
            found.problems.append(Problem(path, f"{path}: is there as {images[path.stem]} too; keep one of them"))
        images.setdefault(path.stem, path)
    listed: set[str] = set()
    for labels in files_below(folder, f"*{LABEL_SUFFIX}"):
        camera = labels.name.removesuffix(LABEL_SUFFIX)
        names = {stem for stem in images if stem.startswith(f"{camera}_")}
        with found.noting(labels):
            names = _read_camera(labels, camera, images, found)
        listed |= names
    for stem in images.keys() - listed:
        message = f"{images[stem]}: in no {LABEL_SUFFIX} file; add that of its camera"
        found.problems.append(Problem(images[stem], message))
    return found


def _read_camera(labels: Path, camera: str, images: dict[str, Path], found: Found) -> set[str]:
    """Add the samples of one camera, and what does not fit; returns the names that its file lists."""
    variables = read_mat(labels)
    names = [
        Path(name).stem if name.lower().endswith(".png") else name
        for name in strings(variables, "all_image_names", labels)
    ]
    illuminants = numbers(variables, "groundtruth_illuminants", 3, labels)
    charts = numbers(variables, "CC_coords", 4, labels)
    (black,), (white,) = (numbers(variables, name, 1, labels)[0] for name in ("darkness_level", "saturation_level"))
    if not len(names) == len(illuminants) == len(charts):
        raise DataError(
            f"{labels}: {len(names)} names, {len(illuminants)} labels and {len(charts)} charts; download it again"
        )
    if not any(name in images for name in names):
        raise DataError(f"{labels}: none of its {len(names)} images is there; download the PNG files of {camera}")
    for name, rgb, chart in zip(names, illuminants, charts, strict=True):
        with found.noting(images.get(name, labels)):
            if name not in images:
                raise DataError(f"{labels}: {name}.PNG is missing; download the PNG files of {camera} again")
            if not np.isfinite(chart).all():
                raise DataError(f"{labels}: the chart of {name} has no place; download it again")
            top, bottom, left, right = chart - 1
            corners = np.array([(left, top), (right, top), (right, bottom), (left, bottom)])
            image = ImageFile(images[name], float(black), float(white), (corners,))
            label = as_label(rgb, images[name])
            found.samples.append(Sample(image, label, camera, "NUS", f"NUS/{camera}/{name}"))
    return set(names)
