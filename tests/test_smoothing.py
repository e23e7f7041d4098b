"""Smoothing takes out flicker and follows the light: rendered sequences whose light is known, and simulated ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import seeds
from smoothing import TRIPOD, WALK, Sequence, render_sequences

from c5.choices import Fallback
from c5.color import Float64s, angular_error, as_illuminant, rgb_to_uv, uv_to_rgb
from c5.colorimetry.spectra import daylight
from c5.demo import VirtualCamera
from c5.model import load_model
from c5.photos.balancing import UNCERTAIN_DEG, Balance
from c5.photos.photo import Photo
from c5.photos.roll_building import Roll
from c5.photos.smoothing import smooth
from c5.photos.walk import follow_light

KINDS = ("steady daylight", "steady lamp", "slow drift", "sunset", "lamp switched on")


@pytest.fixture(scope="module")
def rendered() -> list[Sequence]:
    model = load_model()
    return [sequence for seed in range(6) for sequence in render_sequences(model, seed)]


@pytest.mark.parametrize("kind", KINDS)
def test_smoothed_lights_of_renderings_are_nearer_to_the_truth(rendered: list[Sequence], kind: str) -> None:
    """Where each frame shows another scene. Frames of one scene err alike, which smoothing cannot mend."""
    for how, allowed_deg in ((WALK, 0), (TRIPOD, 0.1)):
        before, after = np.mean([each.errors() for each in rendered if (each.kind, each.how) == (kind, how)], axis=0)
        assert after <= before + allowed_deg


def test_the_flicker_of_a_steady_light_falls_by_four(rendered: list[Sequence]) -> None:
    for how in {each.how for each in rendered}:
        flicker = [each.flicker() for each in rendered if "steady" in each.kind and each.how == how]
        before, after = np.sqrt(np.mean(flicker, axis=0))
        assert after <= before / 4


def test_a_lamp_is_found_within_two_frames(rendered: list[Sequence]) -> None:
    assert all(each.delay() <= 2 for each in rendered if each.step is not None)


def travel(lights: Float64s) -> float:
    """How far the last third of a sequence is from the first."""
    uv = rgb_to_uv(lights)
    return float(np.linalg.norm(uv[-4:].mean(axis=0) - uv[:4].mean(axis=0)))


def test_a_sunset_keeps_its_course(rendered: list[Sequence]) -> None:
    sunsets = [each for each in rendered if each.kind == "sunset" and each.how != WALK]
    assert sum(travel(each.smoothed) for each in sunsets) >= 0.8 * sum(travel(each.seen) for each in sunsets)
    # As it was once flattened: twelve frames of one camera on a tripod, each 1.5 degrees uncertain.
    camera = VirtualCamera.nikon_d5100()
    seen = np.array([camera.illuminant(daylight(kelvin)) for kelvin in np.linspace(5600, 4170, 12)])
    assert angular_error(follow_light(seen, np.full(12, 1.5), np.ones(11)), seen).max() < 0.5


def simulate(kind: str, rng: np.random.Generator, count: int = 12) -> tuple[Float64s, Float64s, Float64s, int]:
    """The truth, what is seen of it and its uncertainties, and where a step is: errors in part common, some large."""
    step = int(rng.integers(3, count - 2))
    part = np.linspace(0, 1, count)[:, None]
    far = rng.normal(size=2)
    far /= np.linalg.norm(far)
    course = {"steady": 0 * part, "drift": 0.08 * part, "sunset": 0.3 * part, "lamp": 0.6 * (part >= part[step])}[kind]
    truth = rng.normal([0.6, 0.4], 0.2) + course * far
    uncertainty = rng.uniform(1, 3, count)
    error = np.radians(uncertainty)[:, None] * rng.standard_t(4, (count, 2)) * rng.choice([0.3, 1.5])
    return uv_to_rgb(truth), uv_to_rgb(truth + rng.normal(0, 0.03, 2) + error), uncertainty, step


@pytest.mark.parametrize("kind", ["steady", "drift", "sunset", "lamp"])
def test_smoothed_lights_of_simulations_are_nearer_to_the_truth(kind: str) -> None:
    rng = np.random.default_rng(4)
    errors, found = [], []
    for _ in range(60):
        truth, seen, uncertainty, step = simulate(kind, rng)
        smoothed = follow_light(seen, uncertainty, np.ones(11))
        errors.append([angular_error(lights, truth).mean() for lights in (seen, smoothed)])
        found.append(Sequence(kind, "", truth, seen, smoothed, step).delay() <= 2 if kind == "lamp" else True)
    before, after = np.mean(errors, axis=0)
    assert after <= before
    assert np.mean(found) >= 0.95
    if kind == "steady":
        assert after < 0.8 * before  # what all frames have in common stays


@given(seed=seeds, count=st.integers(1, 9))
def test_lights_stay_among_those_seen(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    seen = rng.normal(0, 0.5, (count, 2))
    found = rgb_to_uv(follow_light(uv_to_rgb(seen), rng.uniform(0, 10, count), rng.uniform(0.01, 10, count - 1)))
    assert (found >= seen.min(axis=0) - 1e-9).all()
    assert (found <= seen.max(axis=0) + 1e-9).all()


def test_more_time_allows_more_change() -> None:
    seen = uv_to_rgb(np.array([[0.0, 0], [0, 0.01], [0.01, 0], [0.03, 0.03], [0.03, 0.04], [0.04, 0.03]]))
    apart = []
    for pause in (0.1, 1, 10, 100):
        found = rgb_to_uv(follow_light(seen, np.full(6, 3.0), [1, 1, pause, 1, 1]))
        apart.append(np.linalg.norm(found[3] - found[2]))
    assert apart == sorted(apart)
    assert apart[-1] > 1.2 * apart[0]


def test_the_fallback_is_one_more_estimate_of_its_frame() -> None:
    """What is used for an uncertain frame does not jump, and stands between the estimates and the camera's balance."""
    light, camera = as_illuminant([0.5, 1, 0.6]), as_illuminant([0.6, 1, 0.5])
    balances = []
    for index in range(9):
        photo = Photo(Path(str(index)), "A", datetime(2026, 6, 1) + timedelta(seconds=index), camera, camera, None, 1)
        balances.append(Balance(photo, light, 1.0, "model", Roll()))
    balances[4] = replace(balances[4], uncertainty=2 * UNCERTAIN_DEG)
    for fallback in (Fallback.CAMERA, Fallback.GRAY_WORLD):
        used = smooth(balances, fallback)
        assert {each.source for each in used} == {"smoothed"}
        off = angular_error([each.illuminant for each in used], light)
        assert 0 < off[4] < 0.2 * float(angular_error(camera, light))
    np.testing.assert_allclose([each.illuminant for each in smooth(balances)], [light] * 9, atol=1e-9)
    # Where every frame is uncertain, the camera is believed more than the estimates.
    unsure = [replace(each, uncertainty=2 * UNCERTAIN_DEG) for each in balances]
    lights = [each.illuminant for each in smooth(unsure, Fallback.CAMERA)]
    assert (angular_error(lights, camera) < angular_error(lights, light)).all()
