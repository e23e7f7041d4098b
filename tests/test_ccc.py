from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import seeds, textured

from c5 import Grid, ParameterError, angular_error, histogram
from c5.ccc import convolve, convolve_wrapped, locate
from c5.color import uv_to_rgb
from c5.histograms import Histograms


def delta(n: int, row: int, column: int, value: float = 1) -> np.ndarray:
    result = np.zeros((n, n), np.float32)
    result[row, column] = value
    return result


@given(seed=seeds)
def test_convolution_is_the_sum_it_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 8
    histograms, filters = rng.random((2, 2, n, n)).astype(np.float32)
    plain, wrapped = np.zeros((n, n)), np.zeros((n, n))
    for i, j, k, l in np.ndindex(n, n, n, n):  # noqa: E741
        wrapped[(i + k) % n, (j + l) % n] += histograms[:, i, j] @ filters[:, k, l]
        y, x = i + k - n // 2, j + l - n // 2
        if 0 <= y < n and 0 <= x < n:
            plain[y, x] += histograms[:, i, j] @ filters[:, k, l]
    np.testing.assert_allclose(convolve(histograms, filters), plain, rtol=1e-4)
    np.testing.assert_allclose(convolve_wrapped(histograms, filters), wrapped, rtol=1e-4)


@pytest.mark.parametrize("bins", [16, 32, 64, 128])
@given(row=st.integers(1, 14), column=st.integers(1, 14))
def test_a_sharp_bias_is_read_back_at_its_bin(bins: int, row: int, column: int) -> None:
    grid = Grid(bins)
    nothing = np.zeros((2, bins, bins), np.float32)
    estimate = locate(Histograms(grid, nothing), nothing, delta(bins, row, column, 200))
    assert angular_error(estimate.illuminant, uv_to_rgb([grid.u[column], grid.v[row]])) < 1e-4
    assert estimate.uncertainty == pytest.approx(0, abs=1e-3)


def test_an_identity_filter_finds_the_color_of_a_flat_image() -> None:
    grid = Grid()
    color = np.array([0.2, 0.5, 0.35])
    identity = np.stack([delta(64, 32, 32, 60), np.zeros((64, 64), np.float32)])
    found = locate(histogram(np.full((9, 9, 3), color), grid), identity, np.zeros((64, 64), np.float32))
    assert angular_error(found.illuminant, color) < 1.3  # within half a bin


@given(seed=seeds, right=st.integers(-4, 4), up=st.integers(-4, 4))
def test_gains_move_the_estimate_by_as_much(seed: int, right: int, up: int) -> None:
    """With a flat bias the whole chain, image to illuminant, is equivariant."""
    grid = Grid()
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:64, :64] - 32
    bump = np.exp(-(x**2 + y**2) / 8) * 40
    filters = np.stack([bump, bump * rng.random()]).astype(np.float32)
    flat = np.zeros((64, 64), np.float32)
    image = textured(seed) * np.float32(0.3)
    moved = image * np.exp([-right * grid.step, 0, -up * grid.step]).astype(np.float32)
    before, after = (locate(histogram(pixels, grid), filters, flat) for pixels in (image, moved))
    np.testing.assert_allclose(after.uv - before.uv, [right * grid.step, up * grid.step], atol=2e-2)


@given(seed=seeds)
def test_heat_map_is_a_distribution_and_the_estimate_its_mean(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for grid in (Grid(32), Grid.published(32)):
        histograms, filters = rng.random((2, 2, 32, 32)).astype(np.float32)
        bias, gain = rng.normal(0, 3, (2, 32, 32)).astype(np.float32)
        estimate = locate(Histograms(grid, histograms), filters, bias, gain)
        heat = estimate.heat_map
        assert heat is not None
        assert heat.min() >= 0
        assert heat.sum() == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(estimate.uv, [heat.sum(0) @ grid.u, heat.sum(1) @ grid.v], atol=1e-5)
        assert np.linalg.norm(estimate.illuminant) == pytest.approx(1)
        assert estimate.gains[1] == 1
        np.testing.assert_allclose(estimate.gains * estimate.illuminant, estimate.illuminant[1])


def test_the_wider_the_heat_map_the_higher_the_uncertainty() -> None:
    nothing = np.zeros((2, 64, 64), np.float32)
    y, x = np.mgrid[:64, :64] - 31.5
    bowl = -(x**2 + y**2).astype(np.float32)
    empty = Histograms(Grid(), nothing)
    spreads = [locate(empty, nothing, bowl / width).uncertainty for width in (1, 4, 16)]
    assert spreads == sorted(spreads)  # type: ignore[type-var]
    # A round Gaussian of 2 bins (width 2 * 2^2): its mean distance is 2 bins * sqrt(pi / 2), and a bin near gray is
    # 0.0891 nats along u, which turns the illuminant by 0.0891 * sqrt(2) / 3 radians.
    one = locate(empty, nothing, bowl / 8).uncertainty
    assert one == pytest.approx(2 * (np.pi / 2) ** 0.5 * np.degrees(0.0891 * 2**0.5 / 3), rel=0.15)


def test_wrong_shapes_are_named() -> None:
    good = np.zeros((2, 64, 64), np.float32)
    with pytest.raises(ParameterError, match="bias"):
        locate(Histograms(Grid(), good), good, np.zeros((32, 32), np.float32))
    with pytest.raises(ParameterError, match="histograms"):
        Histograms(Grid(), good[:1])


def test_published_step_reproduces_the_golden_illuminants(golden: dict[str, np.ndarray]) -> None:
    for model in ("C5_m_7_h_64", "C5_m_7_h_64_w_G"):
        for index, row in enumerate(golden["detail_rows"]):
            gain = golden[f"{model}.G"][index] if f"{model}.G" in golden else None
            estimate = locate(
                Histograms(Grid.published(), golden["histograms"][row]),
                golden[f"{model}.F"][index],
                golden[f"{model}.B"][index],
                gain,
            )
            assert angular_error(estimate.illuminant, golden[f"{model}.illuminant"][row]) < 0.01
            heat = golden[f"{model}.P"][index]
            assert estimate.heat_map is not None
            np.testing.assert_allclose(estimate.heat_map, heat, atol=1e-3 * np.ptp(heat))
