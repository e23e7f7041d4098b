"""Cube+ and its challenge as downloaded: images `1.PNG`, `2.PNG`, ... and `cube+_gt.txt`, one line per image.

The camera is a Canon 550D. A SpyderCube stands in the lower right corner of each image; the files with the lights of
its two sides are not read, only the one with a single light for an image. The saturation level varies from image to
image: a pixel within two of the image's largest number is clipped.

N. Banic, K. Koscevic and S. Loncaric, "Unsupervised learning for color constancy", arXiv:1712.00436, and the page of
the dataset.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from c5.datasets.glance import files_below, glance
from c5.datasets.labels import as_label, read_numbers
from c5.datasets.sample import Found, ImageFile, Sample
from c5.errors import DataError
from c5.image import LinearImage

NAME = "cube"
DESCRIPTION = "Cube+ or its challenge as downloaded: 1.PNG, 2.PNG, ... and cube+_gt.txt"

DATASETS = {"cube+_gt.txt": "Cube+", "cube_gt.txt": "Cube", "challenge_gt.txt": "Cube+ challenge"}
CAMERA = "Canon550D"
BLACK = 2048
WHITE = 2**14 - 1
SIZE = (2601, 1732)
SPYDER_CUBE = np.array([(2050, 1050), (2601, 1050), (2601, 1732), (2050, 1732)], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CubeImage(ImageFile):
    """An image whose largest number, less two, is the saturation level."""

    def read(self) -> LinearImage:
        image = super().read()
        saturated = image.rgb.max() - np.float32(2.5 / (WHITE - BLACK))  # half a number for rounding
        return replace(image, clipped=image.clipped | (image.rgb >= saturated).any(axis=-1))

    def digest(self) -> str:
        return hashlib.sha256(f"saturates at its largest number {super().digest()}".encode()).hexdigest()


def recognizes(folder: Path) -> bool:
    return any(path.name.lower() in DATASETS for path in glance(folder))


def read(folder: Path) -> Found:
    found = Found([], [])
    for labels in files_below(folder, *DATASETS):
        with found.noting(labels):
            _read_dataset(labels, found)
    return found


def _read_dataset(labels: Path, found: Found) -> None:
    """Add the samples of one label file, and what does not fit."""
    dataset = DATASETS[labels.name.lower()]
    images = [path for path in files_below(labels.parent, "[0-9]*.png") if path.stem.isdecimal()]
    images = [path for path in images if path.parent == labels.parent] or images
    if not images:
        raise DataError(f"{labels}: no images 1.PNG, 2.PNG, ... beside or below it; download them")
    values = read_numbers(labels, None)
    if values.size % 3:
        raise DataError(f"{labels}: {values.size} numbers are not three per line; download it again")
    illuminants = values.reshape(-1, 3)
    with found.noting(labels):
        if len(illuminants) != len(images):
            raise DataError(f"{labels}: {len(illuminants)} labels for {len(images)} images; complete the folder")
    for path in sorted(images, key=lambda path: (int(path.stem), path)):
        with found.noting(path):
            if not 1 <= int(path.stem) <= len(illuminants):
                raise DataError(
                    f"{path}: {labels.name} has no line {path.stem}; complete the labels or remove the image"
                )
            illuminant = as_label(illuminants[int(path.stem) - 1], path)
            image = CubeImage(path, BLACK, WHITE, (SPYDER_CUBE,), SIZE)
            found.samples.append(Sample(image, illuminant, CAMERA, dataset, f"{dataset}/{CAMERA}/{path.stem}"))
