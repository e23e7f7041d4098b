"""Colors and illuminants: log-chroma, the angle between two lights, white balance.

RGB is on the last axis, with any leading shape. Nothing here depends on exposure unless it says so. "Illuminant" always
means a unit RGB vector: the direction of the camera's response to a white surface in that light.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.errors import ImageError, ParameterError

Float32s: TypeAlias = NDArray[np.float32]
Float64s: TypeAlias = NDArray[np.float64]
Floats: TypeAlias = NDArray[np.floating]
Bools: TypeAlias = NDArray[np.bool_]

WHITE_LEVEL = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
"""The value of an integer pixel that stands for 1.0; floating-point pixels are taken as they are."""


XYZ_TO_SRGB: Float64s = np.array([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])
"""IEC 61966-2-1, for a white of D65."""


def to_float32(pixels: ArrayLike) -> Float32s:
    """Pixels as float32: uint8 and uint16 scaled from their full range to [0, 1], floats unchanged."""
    array = check_type(pixels)
    if array.dtype in WHITE_LEVEL:
        return np.asarray(array * np.float32(1 / WHITE_LEVEL[array.dtype]))
    with np.errstate(over="ignore"):  # too large a number becomes infinite
        return array.astype(np.float32, copy=False)


def to_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """The values as an array; an error in one line if they are lists of different lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ImageError(f"{name} must be an array, not lists of different lengths") from None


def check_type(pixels: ArrayLike) -> NDArray[Any]:
    """The array in the machine's byte order, if its numbers are of a type that pixels can have."""
    array = to_array(pixels, "pixels")
    native = array.dtype.newbyteorder("=")
    if native not in WHITE_LEVEL and native.kind != "f":
        raise ImageError(f"pixels must be uint8, uint16 or float, not {array.dtype}; divide by the white level first")
    return array.astype(native, copy=False)


def rgb_to_uv(rgb: ArrayLike) -> Float64s:
    """Log-chroma u = ln(g/r), v = ln(g/b) of positive RGB, in nats (Eq. 2). A channel at zero gives an infinity."""
    r, g, b = np.moveaxis(_floats(rgb), -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_g = np.log(g)
        return np.stack([log_g - np.log(r), log_g - np.log(b)], axis=-1)


def uv_to_rgb(uv: ArrayLike) -> Float64s:
    """The unit RGB vector whose log-chroma is (u, v): (e^-u, 1, e^-v) normalized (Eqs. 6 and 7)."""
    array = np.asarray(uv, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != 2:
        raise ParameterError(f"uv needs two numbers on its last axis, not the shape {array.shape}")
    u, v = np.moveaxis(array, -1, 0)
    # Divided by the largest component first, so that no finite uv overflows.
    logs = np.stack([-u, np.zeros_like(u), -v], axis=-1)
    rgb = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(rgb / np.linalg.norm(rgb, axis=-1, keepdims=True))


def as_illuminant(rgb: ArrayLike) -> Float64s:
    """Positive RGB of any length as a unit vector."""
    array = _floats(rgb)
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ParameterError("an illuminant needs three finite numbers above zero")
    return np.asarray(array / np.linalg.norm(array, axis=-1, keepdims=True))


def angular_error(estimate: ArrayLike, truth: ArrayLike) -> Float64s:
    """Recovery error: the angle in degrees, 0 to 180, between two RGB vectors of any length.

    Kahan's half-angle formula stays exact for tiny angles, where the arc cosine of a dot product loses half the digits.
    """
    a, b = _unit(estimate), _unit(truth)
    half = np.arctan2(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
    return np.asarray(np.degrees(2 * half))


def reproduction_error(estimate: ArrayLike, truth: ArrayLike) -> Float64s:
    """Reproduction error in degrees: how far from gray a white surface ends up once `estimate` has been divided out.

    Finlayson and Zakizadeh, "Reproduction angular error", BMVC 2014.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        white = _floats(truth) / _floats(estimate)
    return angular_error(white, np.ones(3))


def gains(illuminant: ArrayLike) -> Float64s:
    """White-balance multipliers of red, green and blue for an illuminant, green = 1."""
    array = as_illuminant(illuminant)
    return np.asarray(array[..., 1:2] / array)


def white_balance(pixels: ArrayLike, illuminant: ArrayLike) -> Float32s:
    """Linear pixels with the illuminant divided out, green unchanged. Nothing is clipped: values can exceed 1."""
    balanced = to_float32(pixels) * gains(illuminant).astype(np.float32)
    return np.asarray(balanced, dtype=np.float32)


def camera_to_srgb(color_matrix: ArrayLike, illuminant: ArrayLike) -> Float64s:
    """The (3, 3) matrix from white-balanced camera RGB to linear sRGB, white to white.

    `color_matrix` takes XYZ to camera RGB, as the ColorMatrix of a DNG file does.
    """
    balanced_to_xyz = np.linalg.inv(np.asarray(color_matrix, dtype=np.float64)) / gains(illuminant)
    matrix = XYZ_TO_SRGB @ balanced_to_xyz
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def _floats(rgb: ArrayLike) -> Float64s:
    array = np.asarray(rgb, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != 3:
        raise ParameterError(f"RGB needs three numbers on its last axis, not the shape {array.shape}")
    return array


def _unit(rgb: ArrayLike) -> Float64s:
    array = _floats(rgb)
    with np.errstate(invalid="ignore"):  # the zero vector has no direction: NaN
        array = array / np.abs(array).max(axis=-1, keepdims=True)  # squares of any length stay finite
        return np.asarray(array / np.linalg.norm(array, axis=-1, keepdims=True))
