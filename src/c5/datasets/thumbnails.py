"""Cube+ and INTEL-TAU as thumbnails of 64x64, as the public repository of DMCC carries them.

A folder for each camera, `Cube+`, `TAU_C_5DSR`, `TAU_N_D810` or `TAU_S_IMX135`, holds `numpy_data/NAME.npy` (linear raw
RGB, black level subtracted, float32) and `numpy_labels/NAME.npy` (the illuminant). Each image was divided by its
highest value, so nothing says which pixels were clipped: those near the highest value are taken to be. The calibration
object and what was cut away are 0.

S. Yue and M. Wei, "Effective cross-sensor color constancy using a dual-mapping strategy", JOSA A, 2024.
"""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from c5.datasets.glance import files_below, glance
from c5.datasets.labels import as_label
from c5.datasets.sample import Found, ImageFile, Sample
from c5.errors import C5Error, DataError
from c5.image import LinearImage
from c5.io.readers import read_image
from c5.regular import read_regular

NAME = "thumbnails"
DESCRIPTION = "Cube+ and INTEL-TAU as 64x64 arrays: CAMERA/numpy_data/*.npy with CAMERA/numpy_labels/*.npy"

IMAGES, LABELS = "numpy_data", "numpy_labels"

CAMERAS = {
    "Cube+": ("Cube+", "Canon550D"),
    "TAU_C_5DSR": ("INTEL-TAU", "Canon_5DSR"),
    "TAU_N_D810": ("INTEL-TAU", "Nikon_D810"),
    "TAU_S_IMX135": ("INTEL-TAU", "Sony_IMX135"),
}
"""Dataset and camera of each folder. Others in the repository hold smaller copies of NUS and are not read."""


CLIPPED = 0.98
"""A pixel with a channel above this part of the image's highest value counts as clipped. If nothing is clipped, that
costs a pixel or two."""


@dataclass(frozen=True, eq=False)
class Thumbnail(ImageFile):
    """An array whose highest value may be the white level."""

    def read(self) -> LinearImage:
        image = read_image(self.path)
        return LinearImage(image.rgb, clipped=np.asarray((image.rgb >= CLIPPED).any(axis=2)), source=image.source)

    def digest(self) -> str:
        return hashlib.sha256(f"clipped at {CLIPPED} {super().digest()}".encode()).hexdigest()


def recognizes(folder: Path) -> bool:
    return any(path.parent.name == IMAGES and path.parent.parent.name in CAMERAS for path in glance(folder))


def read(folder: Path) -> Found:
    found = Found([], [])
    arrays = files_below(folder, "*.npy")
    labeled: set[Path] = set()
    for path in arrays:
        place = path.parent.resolve()
        if place.name != IMAGES or place.parent.name not in CAMERAS:
            continue
        dataset, camera = CAMERAS[place.parent.name]
        label = path.parent.parent / LABELS / path.name
        labeled.add(label)
        with found.noting(path):
            illuminant = as_label(_read_array(label), label)
            match = re.search(r"(field\d?cam|lab[a-z]*)_?(\d+)", path.stem)  # the same scene, whatever the camera
            scene = f"{match[1]}/{int(match[2])}" if match and dataset == "INTEL-TAU" else None
            name = f"{dataset}/{camera}/{path.stem}"
            found.samples.append(Sample(Thumbnail(path), illuminant, camera, dataset, name, scene))
    labels = [path for path in arrays if path.parent.name == LABELS and path.parent.parent.name in CAMERAS]
    found.note_unused(labels, labeled, f"has no image in {IMAGES}; complete the folder or remove it")
    return found


def _read_array(path: Path) -> np.ndarray:
    try:
        return np.asarray(np.load(io.BytesIO(read_regular(path)), allow_pickle=False), dtype=np.float64).ravel()
    except FileNotFoundError:
        raise DataError(f"{path}: missing; complete the folder or remove the image") from None
    except (C5Error, OSError, ValueError, SyntaxError, EOFError) as error:
        raise DataError(f"{path}: not an array of numbers ({error}); get it again") from None
