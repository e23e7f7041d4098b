from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from c5 import ImageError, ParameterError, angular_error, reproduction_error, white_balance
from c5.color import as_illuminant, gains, rgb_to_uv, to_float32, uv_to_rgb

channel = st.floats(1e-3, 1e3)
colors = st.tuples(channel, channel, channel)
chroma = st.floats(-5, 5)


@given(colors)
def test_uv_and_back_is_the_same_direction(rgb: tuple[float, ...]) -> None:
    assert angular_error(uv_to_rgb(rgb_to_uv(rgb)), rgb) < 1e-9


@given(chroma, chroma)
def test_rgb_and_back_is_the_same_chroma(u: float, v: float) -> None:
    np.testing.assert_allclose(rgb_to_uv(uv_to_rgb([u, v])), [u, v], atol=1e-12)


@given(colors, colors)
def test_light_moves_chroma_by_its_own(surface: tuple[float, ...], light: tuple[float, ...]) -> None:
    seen = np.multiply(surface, light)
    np.testing.assert_allclose(rgb_to_uv(seen), rgb_to_uv(surface) + rgb_to_uv(light), atol=1e-12)


def test_any_leading_shape() -> None:
    rgb = np.random.default_rng(0).uniform(0.1, 1, (2, 3, 4, 3))
    assert rgb_to_uv(rgb).shape == (2, 3, 4, 2)
    assert uv_to_rgb(rgb_to_uv(rgb)).shape == rgb.shape
    assert angular_error(rgb, rgb[0]).shape == (2, 3, 4)
    np.testing.assert_array_equal(rgb_to_uv(rgb)[1, 2, 3], rgb_to_uv(rgb[1, 2, 3]))


def test_nan_stays_nan() -> None:
    assert np.isnan(rgb_to_uv([np.nan, 1, 1])[0])
    assert np.isnan(angular_error([np.nan, 1, 1], [1, 1, 1]))
    assert np.isnan(angular_error([0, 0, 0], [1, 1, 1]))


@given(st.floats(1e-6, 90), st.floats(0, 6.28), colors)
def test_angle_is_the_one_constructed(degrees: float, turn: float, rgb: tuple[float, ...]) -> None:
    a = as_illuminant(rgb)
    side = np.cross(a, [np.cos(turn), np.sin(turn), 0.3])
    b = np.cos(np.radians(degrees)) * a + np.sin(np.radians(degrees)) * side / np.linalg.norm(side)
    assert angular_error(a, b) == pytest.approx(degrees, abs=1e-9)
    assert angular_error(a * 7, b * 0.01) == pytest.approx(degrees, abs=1e-9)
    assert angular_error(a.astype(np.float32), b.astype(np.float32)) == pytest.approx(degrees, abs=1e-4 + 1e-5)
    assert angular_error(b, a) == angular_error(a, b)


@given(colors)
def test_angle_to_itself_is_zero_even_in_single_precision(rgb: tuple[float, ...]) -> None:
    single = np.asarray(rgb, np.float32)
    assert angular_error(single, single * np.float32(3)) < 1e-4
    assert angular_error(single, single) == 0


@pytest.mark.parametrize("length", [1e-200, 1e200])
def test_angle_of_vectors_of_any_length(length: float) -> None:
    assert angular_error(np.array([1, 2, 3]) * length, [1, 2, 3]) == pytest.approx(0, abs=1e-9)


def test_opposite_vectors_are_180_degrees_apart() -> None:
    assert angular_error([1, 2, 3], [-1, -2, -3]) == pytest.approx(180)


@given(colors, colors, colors)
def test_reproduction_error_does_not_depend_on_the_light(
    estimate: tuple[float, ...], truth: tuple[float, ...], gain: tuple[float, ...]
) -> None:
    # What the recovery error lacks: a change of light, the same for both, changes nothing.
    same = reproduction_error(np.multiply(estimate, gain), np.multiply(truth, gain))
    assert same == pytest.approx(float(reproduction_error(estimate, truth)), abs=1e-6)


def test_reproduction_error_of_a_perfect_estimate_is_zero() -> None:
    assert reproduction_error([0.2, 1, 0.7], [0.4, 2, 1.4]) == pytest.approx(0, abs=1e-9)
    # (2, 1, 1) to gray: arccos(4 / sqrt(18))
    assert reproduction_error([1, 1, 1], [2, 1, 1]) == pytest.approx(np.degrees(np.arccos(4 / 18**0.5)))


@given(colors)
def test_white_balance_makes_the_light_gray(light: tuple[float, ...]) -> None:
    pixels = np.asarray(light, np.float32) / np.float32(max(light)) * np.linspace(0.1, 1, 5, dtype=np.float32)[:, None]
    balanced = white_balance(pixels, light)
    np.testing.assert_allclose(balanced, balanced[:, 1:2] * [1, 1, 1], rtol=1e-5)
    np.testing.assert_array_equal(balanced[:, 1], pixels[:, 1])
    assert gains(light)[1] == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float16, np.float32, np.float64])
def test_types_share_one_range(dtype: type) -> None:
    top = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1
    pixels: NDArray[Any] = np.array([[0, top, top // 2 if top > 1 else 0.5]], dtype)
    result = to_float32(pixels)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, [[0, 1, 0.5]], atol=0.003)
    assert white_balance(pixels, [0.5, 1, 0.25]).dtype == np.float32


@pytest.mark.parametrize("bad", [[1, 2], [[1, 2, 3, 4]], 5.0])
def test_wrong_channel_count_is_named(bad: object) -> None:
    with pytest.raises(ParameterError, match="three numbers"):
        rgb_to_uv(bad)  # type: ignore[arg-type]


def test_other_bad_input() -> None:
    with pytest.raises(ParameterError, match="two numbers"):
        uv_to_rgb([1.0, 2.0, 3.0])
    with pytest.raises(ParameterError, match="above zero"):
        gains([0, 1, 1])
    with pytest.raises(ImageError, match="int64"):
        to_float32(np.zeros((2, 2, 3), np.int64))
