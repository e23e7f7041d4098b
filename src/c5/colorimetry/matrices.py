"""Cameras calibrated by their makers: two matrices per camera, as DNG files carry them, and what follows from them.

`CameraMatrices` give the illuminant of a camera in the light of a black body, the temperature of an illuminant, and
the matrix from white-balanced camera RGB to linear sRGB.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float64s, as_illuminant, camera_to_srgb
from c5.colorimetry.spectra import black_body, xyz
from c5.errors import C5Error, DataError, ParameterError
from c5.regular import open_regular

COOLEST, HOTTEST = 2500.0, 7500.0
"""The range that is searched for the temperature of an illuminant, in kelvin, as in the paper."""

STEP_KELVIN = 5.0

MOST_BYTES = 16 * 2**20
"""Limit for a table: fifty thousand cameras."""

COLUMNS = tuple(f"{light}{i}{j}" for light in ("a", "d65_") for i in (1, 2, 3) for j in (1, 2, 3))


@dataclass(frozen=True, eq=False)
class CameraMatrices:
    """How a camera sees XYZ in two lights: the ColorMatrix1 and ColorMatrix2 of a DNG file.

    The paper writes its C for camera RGB to XYZ and inverts it; these take XYZ to camera RGB and replace its C^-1. As
    in the DNG specification, these are the ones that are interpolated.
    """

    name: str
    matrix_a: Float64s
    """(3, 3) XYZ to camera RGB in the warm light."""
    matrix_d65: Float64s
    """(3, 3) XYZ to camera RGB in the cold light."""
    kelvin_a: float = 2856
    kelvin_d65: float = 6504

    def __post_init__(self) -> None:
        if not 1000 <= self.kelvin_a < self.kelvin_d65 <= 50000:
            raise ParameterError(
                f"{self.name}: lights of calibration need 1000 to 50000 K, the warmer first, "
                f"not {self.kelvin_a:g} and {self.kelvin_d65:g}"
            )
        for field in ("matrix_a", "matrix_d65"):
            matrix = np.array(getattr(self, field), dtype=np.float64)
            if matrix.shape != (3, 3) or not np.isfinite(matrix).all():
                raise ParameterError(f"{self.name}: {field} must be 3 by 3 finite numbers")
            if np.linalg.cond(matrix) > 1000:
                raise ParameterError(f"{self.name}: {field} cannot be inverted: it must tell three colors apart")
            matrix.flags.writeable = False
            object.__setattr__(self, field, matrix)
        if not (_see(self.matrix(_temperatures()), _whites()) > 0).all():
            raise ParameterError(f"{self.name}: the matrices give white a negative channel between 2500 and 7500 K")

    @property
    def content(self) -> bytes:
        """Equal for cameras with equal matrices."""
        return self.matrix_a.tobytes() + self.matrix_d65.tobytes()

    def matrix(self, kelvin: ArrayLike) -> Float64s:
        """(..., 3, 3) XYZ to camera RGB in light of a temperature, interpolated over its inverse (Eqs. 15 and 16).

        Beyond the two calibration lights, the nearer matrix is used, as in the DNG specification.
        """
        inverse = 1 / np.asarray(kelvin, dtype=np.float64)
        alpha = (inverse - 1 / self.kelvin_d65) / (1 / self.kelvin_a - 1 / self.kelvin_d65)
        alpha = np.clip(alpha, 0, 1)[..., None, None]
        return np.asarray(alpha * self.matrix_a + (1 - alpha) * self.matrix_d65)

    def illuminant(self, kelvin: ArrayLike) -> Float64s:
        """(..., 3) the illuminant that the camera sees in the light of a black body (Eq. 17)."""
        temperatures = np.asarray(kelvin, dtype=np.float64)
        white = xyz(np.stack([black_body(each) for each in temperatures.ravel()])).reshape(*temperatures.shape, 3)
        return as_illuminant(_see(self.matrix(temperatures), white))

    def temperature(self, illuminant: ArrayLike) -> Float64s:
        """The temperature from 2500 to 7500 K of the black body whose light comes nearest to each illuminant (..., 3),
        by angle."""
        likeness = as_illuminant(illuminant) @ self._curve.T  # (..., temperatures), cosines
        best = np.clip(likeness.argmax(axis=-1), 1, len(self._curve) - 2)
        # The top of the parabola through the best step and its neighbors.
        low, mid, high = (np.take_along_axis(likeness, (best + i)[..., None], -1)[..., 0] for i in (-1, 0, 1))
        bend = np.minimum(low - 2 * mid + high, -1e-15)
        place = best + np.clip((low - high) / (2 * bend), -1, 1)
        return np.asarray(COOLEST + STEP_KELVIN * place)

    def ccm(self, kelvin: float) -> Float64s:
        """(3, 3) white-balanced camera RGB to linear sRGB, white to white, in light of a temperature."""
        return camera_to_srgb(self.matrix(kelvin), self.illuminant(kelvin))

    @cached_property
    def _curve(self) -> Float64s:
        return as_illuminant(_see(self.matrix(_temperatures()), _whites()))


def read_matrices(path: str | Path) -> dict[str, CameraMatrices]:
    """The cameras of a CSV file by name.

    Its columns are camera, a11 to a33 and d65_11 to d65_33: the matrices for illuminant A and D65, row by row.
    """
    path = Path(path)
    try:
        with io.TextIOWrapper(open_regular(path), "utf-8-sig", newline="") as file:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                raise DataError(
                    f"{path}: too large for a table of camera matrices; give a CSV file with one line per camera"
                )
            rows = csv.DictReader(file)
            missing = {"camera", *COLUMNS} - set(rows.fieldnames or ())
            if missing:
                raise DataError(
                    f"{path}: line 1: no column {min(missing)}; the columns are camera, a11..a33, d65_11..d65_33"
                )
            found: dict[str, CameraMatrices] = {}
            for row in rows:
                where = f"{path}: line {rows.line_num}"
                name = (row["camera"] or "").strip()
                if not name or name in found:
                    raise DataError(f"{where}: {name + ' appears twice' if name else 'no camera'}; give each one name")
                try:
                    values = np.array([float(row[column] or "") for column in COLUMNS]).reshape(2, 3, 3)
                    found[name] = CameraMatrices(name, *values)
                except ValueError as error:
                    reason = str(error) if isinstance(error, C5Error) else f"{name}: 18 numbers are needed"
                    raise DataError(f"{where}: {reason}; correct or remove the line") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as CSV ({error}); save it as CSV in UTF-8") from None
    if not found:
        raise DataError(f"{path}: no camera in it; give a CSV file with one line per camera")
    return found


def pick_matrices(table: Mapping[str, CameraMatrices], camera: str | None) -> CameraMatrices | None:
    """The matrices of a camera; if the table has only one, those, whatever the name. None if the camera is missing."""
    if len(table) == 1:
        return next(iter(table.values()))
    return None if camera is None else table.get(camera)


@cache
def _temperatures() -> Float64s:
    return np.arange(COOLEST, HOTTEST + STEP_KELVIN / 2, STEP_KELVIN)


@cache
def _whites() -> Float64s:
    """(temperatures, 3) XYZ of black bodies."""
    return xyz(np.stack([black_body(kelvin) for kelvin in _temperatures()]))


def _see(matrices: Float64s, white: Float64s) -> Float64s:
    return np.asarray((matrices @ white[..., None])[..., 0])
