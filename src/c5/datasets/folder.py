"""The folder that the published C5 code trains on.

An image `NAME_sensorname_CAMERA.png`, 16-bit and linear, has `NAME_sensorname_CAMERA_metadata.json` with its illuminant
in `illuminant_color_raw` or `gt_ill`. The camera is everything after the last `_sensorname_`. The published code asks
whether a camera's name is *inside* that of a file, so that holding out Canon1D holds out Canon1DsMkIII as well; here
whole names are compared.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from c5.color import Float64s
from c5.datasets.glance import files_below, glance
from c5.datasets.labels import as_label
from c5.datasets.sample import Found, ImageFile, Sample
from c5.errors import DataError, reason
from c5.regular import read_text

NAME = "folder"
DESCRIPTION = "NAME_sensorname_CAMERA.png with NAME_sensorname_CAMERA_metadata.json"

MARK = "_sensorname_"
LABEL_SUFFIX = "_metadata.json"
KEYS = ("illuminant_color_raw", "gt_ill")


def recognizes(folder: Path) -> bool:
    return any(MARK in path.name for path in glance(folder))


def read(folder: Path) -> Found:
    found = Found([], [])
    dataset = folder.resolve().name
    labels = {path: path.with_name(path.stem + LABEL_SUFFIX) for path in files_below(folder, f"*{MARK}*.png")}
    for path, label in labels.items():
        with found.noting(path):
            camera = path.stem.rpartition(MARK)[2]
            if not camera:
                raise DataError(f"{path}: no camera after {MARK}; rename it to NAME{MARK}CAMERA.png")
            name = f"{dataset}/{camera}/{path.relative_to(folder).with_suffix('').as_posix()}"
            found.samples.append(Sample(ImageFile(path), _read_illuminant(label), camera, dataset, name))
    unused = files_below(folder, f"*{MARK}*{LABEL_SUFFIX}")
    found.note_unused(unused, set(labels.values()), "has no image beside it; complete the folder or remove the file")
    return found


def _read_illuminant(path: Path) -> Float64s:
    try:
        metadata = json.loads(read_text(path))
    except FileNotFoundError:
        raise DataError(f"{path}: missing; complete the folder or remove the image") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not JSON ({reason(error)}); write it again or remove the image") from None
    key = next((key for key in KEYS if isinstance(metadata, dict) and key in metadata), None)
    if key is None:
        raise DataError(f"{path}: has neither {' nor '.join(KEYS)}; add the illuminant or remove the image")
    try:
        return as_label(np.ravel(np.asarray(metadata[key], dtype=np.float64)), path)
    except (TypeError, ValueError):
        raise DataError(f"{path}: {key} is not three numbers; correct the label or remove the image") from None
