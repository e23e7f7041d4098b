"""A tracker is calm while the light is steady, and quick when it changes, in rendered videos with known lights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from c5 import LinearImage, ParameterError, angular_error, load_model
from c5.demo import VirtualCamera
from c5.demo.video import Shot, render_video
from c5.live import Light, Settings, State, Tracker
from c5.zones import average_zones

SIZE = (64, 96)


def follow(
    shots: Sequence[Shot], *, zones: bool = False, seed: int = 0, settings: Settings | None = None
) -> tuple[list[Light], np.ndarray, Tracker]:
    rng = np.random.default_rng(seed)
    tracker = Tracker(load_model(), settings=settings or Settings())
    lights, truth = [], []
    for frame in render_video(VirtualCamera.random(rng), shots, rng, SIZE):
        if zones:
            means = average_zones(LinearImage(frame.rgb), 32, 32)
            lights.append(tracker.update_zones(means.rgb, saturated=means.clipped))
        else:
            lights.append(tracker.update(frame.rgb))
        truth.append(frame.illuminant)
    return lights, np.array(truth), tracker


def shown(lights: Sequence[Light]) -> np.ndarray:
    return np.array([light.illuminant for light in lights])


@pytest.mark.parametrize("zones", [False, True], ids=["frames", "zones"])
@pytest.mark.parametrize("scene", ["street", "flowers", "portrait"])
def test_steady_light_does_not_move(scene: str, zones: bool) -> None:
    lights, _, _ = follow([Shot(scene, "tungsten", 60)], zones=zones)
    moves = angular_error(shown(lights)[1:], shown(lights)[:-1])
    assert moves.max() <= 0.3
    assert {light.state for light in lights} == {State.STEADY}


@pytest.mark.parametrize("zones", [False, True], ids=["frames", "zones"])
@pytest.mark.parametrize("scene", ["street", "bookshelf"])
def test_a_switched_lamp_is_followed_within_half_a_second(scene: str, zones: bool) -> None:
    lights, truth, _ = follow([Shot(scene, "tungsten", 20), Shot(scene, "overcast", 45)], zones=zones)
    found = shown(lights)
    turned = angular_error(truth[0], truth[-1])
    assert turned > 10
    assert angular_error(found[20 + 15], found[-1]) < 0.05 * turned  # where it stays, after 15 frames
    assert State.FOLLOWING in {light.state for light in lights[20:35]}
    assert lights[-1].state is State.STEADY


def test_exposure_is_no_light() -> None:
    shots = [
        Shot("street", "overcast", 20),
        Shot("street", "overcast", 20, exposure=0.3),
        Shot("street", "overcast", 9),
    ]
    lights, _, _ = follow(shots)
    moves = angular_error(shown(lights)[1:], shown(lights)[:-1])
    assert moves.max() <= 0.3


def test_a_cut_is_followed_at_once() -> None:
    lights, _, _ = follow([Shot("street", "overcast", 15), Shot("portrait", "tungsten", 30, seed=9)])
    found = shown(lights)
    assert angular_error(found[16], found[14]) > 5
    assert angular_error(found[16], found[-1]) < 3


def test_frames_that_tell_nothing_are_held() -> None:
    rng = np.random.default_rng(0)
    tracker = Tracker(load_model())
    saturated = np.ones((32, 32), np.bool_)
    waiting = tracker.update_zones(np.full((32, 32, 3), 0.9), saturated=saturated)
    assert waiting.state is State.WAITING
    np.testing.assert_allclose(waiting.gains, 1)
    assert np.isinf(waiting.uncertainty)
    frames = [frame.rgb for frame in render_video(VirtualCamera.random(rng), [Shot("street", "sun", 4)], rng, SIZE)]
    known = [tracker.update(frame) for frame in frames][-1]
    nothing = [np.zeros((20, 30, 3)), np.ones((20, 30, 3)), np.full((20, 30, 3), np.nan), np.zeros((20, 30, 4))]
    for frame in nothing:
        held = tracker.update(frame)
        assert held.state is State.HELD
        assert held.reason
        assert "\n" not in held.reason
        np.testing.assert_array_equal(held.illuminant, known.illuminant)
    assert tracker.update_zones(np.full((32, 32, 3), 0.9), saturated=saturated).state is State.HELD
    assert tracker.update(frames[-1]).state is State.STEADY


def test_frames_may_change_their_size() -> None:
    rng = np.random.default_rng(0)
    (frame,) = render_video(VirtualCamera.random(rng), [Shot("street", "sun", 1)], rng, (256, 384))
    tracker, whole = Tracker(load_model()), LinearImage(frame.rgb)
    found = [tracker.update(frame.rgb), tracker.update(frame.rgb[::2, ::2]), tracker.update(frame.rgb[::3, ::3])]
    zones = average_zones(whole, 24, 32)
    found.append(tracker.update_zones(zones.rgb, saturated=zones.clipped))
    assert {light.state for light in found} == {State.STEADY}
    assert angular_error(shown(found)[1:], shown(found)[:-1]).max() <= 0.3


def test_the_camera_is_learnt_from_frames_that_differ() -> None:
    shots = [Shot(scene, light, 3, seed=i) for i, (scene, light) in enumerate(
        [("street", "sun"), ("portrait", "tungsten"), ("flowers", "shade"), ("snow", "overcast"), ("lake", "low sun")]
    )]  # fmt: skip
    *_, tracker = follow(shots, settings=Settings(every=1))
    assert tracker.learnt is not None
    assert 4 <= tracker.learnt.n_images <= 15
    *_, still = follow([Shot("street", "sun", 12)], settings=Settings(every=1))
    assert still.learnt is None  # one view is no roll
    *_, unwilling = follow(shots, settings=Settings(every=1, learn=False))
    assert unwilling.learnt is None


def test_settings_are_checked() -> None:
    for wrong in ({"fps": 0}, {"converge": -1}, {"stability": 0}, {"every": 0}):
        with pytest.raises(ParameterError):
            Settings(**wrong)  # type: ignore[arg-type]
