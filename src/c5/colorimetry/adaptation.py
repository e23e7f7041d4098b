"""Lights moved on purpose, so that part of their color stays in the picture.

They are moved in the plane of mired (a million divided by the temperature) and tint: the uniform chromaticity diagram
of CIE 1960 with the black-body curve pulled straight. A mired and a tint are steps of nearly the same size there,
1/2700 to 1/3500 of the diagram's unit, wherever the light is. If part of the way from daylight to a light stays in a
photograph, a gray card keeps that part of the light's chroma, in the light's hue. Other ways do not do this: the degree
of adaptation of CAM16 is a mean of gains and makes what is left of a candle redder; a straight line in u'v' leaves the
curve and makes it greener (`tests/test_taste.py` has the numbers). It is also the plane of the sliders of raw
converters, and the same for all cameras: their matrices lead to it and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from c5.color import XYZ_TO_SRGB, Float64s, as_illuminant, camera_to_srgb, gains
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.temperature import neutral_to_xy, tell_light, temperature_to_uv, uv_to_xyz, xy_to_temperature
from c5.errors import ParameterError

CAT16 = np.array([[0.401288, 0.650173, -0.051461], [-0.250268, 1.204414, 0.045854], [-0.002079, 0.048952, 0.953127]])
"""From XYZ to the responses in which adaptation is a gain (Li et al., "Comprehensive color solutions", 2017)."""

BRADFORD = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
"""The same of an older transform, which many programs use."""


class MiredTint(NamedTuple):
    """A place in the plane. More mireds are warmer, more tint is greener, as `c5.colorimetry.temperature` counts it."""

    mired: float
    tint: float


def locate_xy(xy: ArrayLike) -> MiredTint:
    """The place of a CIE 1931 chromaticity. Outside 10 to 600 mireds, that of the nearest light that has one."""
    kelvin, tint = xy_to_temperature(xy)
    return MiredTint(1e6 / kelvin, tint)


def locate_light(illuminant: ArrayLike, matrices: CameraMatrices) -> MiredTint:
    """The place of an illuminant of a camera."""
    return locate_xy(neutral_to_xy(illuminant, matrices))


DAYLIGHT = locate_xy((0.33242, 0.34743))
"""CIE D55, which film and the "Daylight" of raw converters are balanced for: 5500 K, tint +10."""


def move_light(illuminant: ArrayLike, matrices: CameraMatrices, move: Callable[[MiredTint], MiredTint]) -> Float64s:
    """(3,) a camera's illuminant, moved in the plane by `move`."""
    x, y = neutral_to_xy(illuminant, matrices)
    here = locate_xy((x, y))
    there = move(here)
    # Only the step between the two places is added, so that a light that does not move stays as it is, even beyond the
    # plane's ends.
    way = temperature_to_uv(*there) - temperature_to_uv(*here)
    xyz = uv_to_xyz(np.array([2 * x, 3 * y]) / (1.5 - x + 6 * y) + way)
    kelvin = xy_to_temperature(xyz[:2] / xyz.sum()).kelvin
    neutral = matrices.matrix(kelvin) @ xyz
    if not neutral.min() > 0:
        raise ParameterError("the camera sees no light of such a color; move it less")
    return as_illuminant(neutral)


def adapt_to_srgb(color_matrix: ArrayLike, illuminant: ArrayLike) -> Float64s:
    """(3, 3) from white-balanced camera RGB to linear sRGB by CAT16, as an eye adapts from the illuminant to D65.

    `color_matrix` takes XYZ to camera RGB. Lights that no eye sees are scaled in sRGB, as in `c5.color.camera_to_srgb`.
    """
    balanced_to_xyz = np.linalg.inv(np.asarray(color_matrix, dtype=np.float64)) / gains(illuminant)
    white = CAT16 @ balanced_to_xyz.sum(axis=1)
    if not white.min() > 0:
        return camera_to_srgb(color_matrix, illuminant)
    screen = CAT16 @ np.linalg.solve(XYZ_TO_SRGB, np.ones(3))
    return np.asarray(XYZ_TO_SRGB @ np.linalg.solve(CAT16, (screen / white)[:, None] * (CAT16 @ balanced_to_xyz)))


def srgb_matrix(illuminant: ArrayLike, matrices: CameraMatrices | None) -> Float64s | None:
    """`adapt_to_srgb` of a camera in a light; None where the light's temperature is not known."""
    told = tell_light(illuminant, matrices)
    return None if told is None or matrices is None else adapt_to_srgb(matrices.matrix(told.at.kelvin), illuminant)
