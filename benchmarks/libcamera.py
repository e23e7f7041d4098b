"""How close the curves of `c5 export --libcamera` are to those that libcamera ships.

    python benchmarks/libcamera.py LIBCAMERA/src/ipa/rpi/vc4/data

For sensors whose files have color matrices, the two matrices nearest to 2856 and 6504 K make a `CameraMatrices`, with
the white of the curve at those two temperatures; the curve at all others is then predicted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from timing import show

from c5.color import XYZ_TO_SRGB, Float64s, angular_error
from c5.colorimetry.matrices import CameraMatrices
from c5.errors import C5Error
from c5.export.libcamera import ct_curve


def read_tuning(path: Path) -> tuple[Float64s, list[dict[str, Any]]]:
    """The curve (n, 3) and the color matrices of a tuning file."""
    blocks = {name: block for each in json.loads(path.read_text())["algorithms"] for name, block in each.items()}
    return np.array(blocks["rpi.awb"]["ct_curve"]).reshape(-1, 3), blocks["rpi.ccm"]["ccms"]


def make_matrices(name: str, curve: Float64s, ccms: list[dict[str, Any]]) -> CameraMatrices:
    """XYZ to raw camera RGB in two lights: the white of the curve, and the color matrix that maps it to sRGB."""
    found = []
    for kelvin in (2856, 6504):
        ccm = min(ccms, key=lambda each: abs(1e6 / each["ct"] - 1e6 / kelvin))
        white = np.array(
            [np.interp(ccm["ct"], curve[:, 0], curve[:, 1]), 1, np.interp(ccm["ct"], curve[:, 0], curve[:, 2])]
        )
        to_balanced = np.linalg.inv(np.reshape(ccm["ccm"], (3, 3))) @ XYZ_TO_SRGB
        adapted = _adapt(ccm["ct"])
        found.append((float(ccm["ct"]), white[:, None] * (to_balanced @ adapted)))
    (warm, first), (cold, second) = found
    return CameraMatrices(name, first, second, warm, cold)


def _adapt(kelvin: float) -> Float64s:
    """XYZ in a light to XYZ in D65, by scaling in Bradford's cones."""
    from c5.colorimetry.spectra import black_body, daylight, xyz

    cones = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
    light = xyz(black_body(kelvin) if kelvin < 4500 else daylight(kelvin))
    ratio = (cones @ np.array([0.9505, 1, 1.089])) / (cones @ (light / light[1]))
    return np.asarray(np.linalg.inv(cones) @ np.diag(ratio) @ cones)


def main(folder: Path) -> None:
    rows = []
    for path in sorted(folder.glob("*.json")):
        try:
            curve, ccms = read_tuning(path)
            if len(ccms) < 2 or len(curve) < 4:
                continue
            matrices = make_matrices(path.stem, curve, ccms)
            used = (matrices.kelvin_a, matrices.kelvin_d65)
            other = curve[[min(abs(row[0] - kelvin) for kelvin in used) > 150 for row in curve]]
            made = ct_curve(matrices, other[:, 0].tolist())
        except (KeyError, ValueError, C5Error):
            continue
        lights = [np.insert(each[:, 1:], 1, 1, axis=1) for each in (made, other)]
        errors = angular_error(*lights)
        rows.append([path.stem, str(len(other)), f"{errors.mean():.2f}", f"{errors.max():.2f}"])
    show("Curves from two color matrices against those of libcamera", ["sensor", "points", "mean deg", "largest"], rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
