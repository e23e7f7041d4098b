"""The 90 % bound of an estimate: in degrees, and along temperature and tint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import seeds, textured

import c5
from c5.ccc import scale_covariance
from c5.color import Float64s, angular_error, rgb_to_uv, uv_to_rgb
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.temperature import bound_temperature, dng_temperature
from c5.demo import VirtualCamera
from c5.metrics import bound_errors
from c5.model import Model


@pytest.fixture(scope="module")
def model() -> Model:
    return c5.load_model()


def random_covariance(seed: int, scale: float = 0.03) -> Float64s:
    root = np.random.default_rng(seed).normal(0, scale, (2, 2))
    return np.asarray(root @ root.T)


def calibrated(seed: int) -> CameraMatrices:
    camera = VirtualCamera.random(np.random.default_rng(seed % 50))
    return CameraMatrices(camera.name, camera.color_matrix(2856), camera.color_matrix(6504))


@given(one=st.floats(0.01, 60), other=st.floats(0.01, 60))
def test_it_grows_with_the_uncertainty(one: float, other: float) -> None:
    assert (bound_errors(one) <= bound_errors(other)) == (one <= other)
    assert bound_errors(one) > one


@given(seed=seeds)
def test_exposure_does_not_change_it(model: Model, seed: int) -> None:
    image = textured(seed)
    base, darker = model.estimate(image), model.estimate(image * np.float32(0.5))
    assert base.bound_deg is not None
    assert darker.bound_deg == pytest.approx(base.bound_deg, rel=0.01)
    assert base.bound_covariance is not None
    assert darker.bound_covariance == pytest.approx(base.bound_covariance, rel=0.05, abs=1e-3)


@given(seed=seeds)
def test_the_covariance_is_that_of_the_heat_map(model: Model, seed: int) -> None:
    found = model.estimate(textured(seed))
    assert found.heat_map is not None
    assert found.covariance is not None
    v, u = np.meshgrid(model.grid.v, model.grid.u, indexing="ij")
    expected = np.cov(np.stack([u.ravel(), v.ravel()]), aweights=found.heat_map.ravel(), ddof=0)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-3, atol=1e-6)


@given(seed=seeds, u=st.floats(-1, 1), v=st.floats(-1, 1), degrees=st.floats(0.1, 2))
def test_scaled_it_is_as_large_as_the_bound(seed: int, u: float, v: float, degrees: float) -> None:
    covariance, light = random_covariance(seed), uv_to_rgb([u, v])
    scaled = scale_covariance(covariance, light, degrees)
    variances, axes = np.linalg.eigh(scaled)
    steps = (axes * np.sqrt(np.maximum(variances, 0))).T * 1e-2  # so small that angles add up like numbers
    angles = angular_error(uv_to_rgb(np.array([u, v]) + steps), light) * 1e2
    assert np.hypot(*angles) == pytest.approx(degrees, rel=0.02)


@given(seed=seeds, kelvin=st.floats(2600, 9000), turn=st.floats(0, np.pi))
def test_doubt_along_a_line_bounds_temperature_by_what_a_step_does(seed: int, kelvin: float, turn: float) -> None:
    matrices = calibrated(seed)
    light = matrices.illuminant(kelvin)
    half = 0.03 * np.array([np.cos(turn), np.sin(turn)])
    found = bound_temperature(light, np.outer(half, half), matrices)
    here = dng_temperature(light, matrices)
    ends = [dng_temperature(uv_to_rgb(rgb_to_uv(light) + sign * half), matrices) for sign in (-1, 1)]
    step = abs(1e6 / ends[1].kelvin - 1e6 / ends[0].kelvin) / 2
    assert 1e6 / found.lowest - 1e6 / here.kelvin == pytest.approx(step, rel=1e-6, abs=1e-6)
    assert 1e6 / here.kelvin - 1e6 / found.highest == pytest.approx(step, rel=1e-6, abs=1e-6)
    assert found.tint == pytest.approx(abs(ends[1].tint - ends[0].tint) / 2, rel=1e-6, abs=1e-6)


def test_the_bounds_of_temperature_are_deviations_of_lights_drawn_from_the_covariance() -> None:
    rng = np.random.default_rng(5)
    for seed in range(3):
        matrices = calibrated(seed)
        light, covariance = matrices.illuminant(4200), random_covariance(seed)
        drawn = rng.multivariate_normal(rgb_to_uv(light), covariance, 200)
        seen = [dng_temperature(uv_to_rgb(uv), matrices) for uv in drawn]
        found = bound_temperature(light, covariance, matrices)
        mireds = (1e6 / found.lowest - 1e6 / found.highest) / 2
        assert mireds == pytest.approx(np.std([1e6 / one.kelvin for one in seen]), rel=0.15)
        assert found.tint == pytest.approx(np.std([one.tint for one in seen]), rel=0.15)
