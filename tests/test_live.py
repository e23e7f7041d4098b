"""A tracker is calm while the light is steady, and quick when it changes, in rendered videos with known lights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from c5 import LinearImage, ParameterError, angular_error, load_model
from c5.demo import SCENE_LIGHTS, SCENES, VirtualCamera
from c5.demo.video import Shot, render_video
from c5.live import Light, Settings, State, Tracker
from c5.zones import average_zones

SIZE = (64, 96)


STABILITY = Settings().stability * 1.01  # turns are nearly linear in log-chroma
FIFTEEN = 15  # frames in half a second


def render(
    shots: Sequence[Shot], seed: int = 0, size: tuple[int, int] = SIZE, *, pan: bool = True
) -> tuple[list[np.ndarray], np.ndarray]:
    """Frames, and their lights."""
    rng = np.random.default_rng(seed)
    frames = list(render_video(VirtualCamera.random(rng), shots, rng, size, pan=pan))
    return [frame.rgb for frame in frames], np.array([frame.illuminant for frame in frames])


def follow(
    frames: Sequence[np.ndarray], *, zones: bool = False, settings: Settings | None = None
) -> tuple[list[Light], Tracker]:
    tracker = Tracker(load_model(), settings=settings or Settings())
    lights = []
    for frame in frames:
        if zones:
            means = average_zones(LinearImage(frame), 32, 32)
            lights.append(tracker.update_zones(means.rgb, saturated=means.clipped))
        else:
            lights.append(tracker.update(frame))
    return lights, tracker


def shown(lights: Sequence[Light]) -> np.ndarray:
    return np.array([light.illuminant for light in lights])


def moves(lights: Sequence[Light]) -> np.ndarray:
    return angular_error(shown(lights)[1:], shown(lights)[:-1])


@pytest.mark.parametrize("zones", [False, True], ids=["frames", "zones"])
@pytest.mark.parametrize("scene", SCENES)
def test_steady_light_does_not_move(scene: str, zones: bool) -> None:
    """While the camera pans to the other end and half the way back."""
    for seed, light in enumerate(SCENE_LIGHTS[scene][zones::3]):
        frames, _ = render([Shot(scene, light, 150, seed=10 * seed + zones)], seed)
        lights, _ = follow(frames, zones=zones)
        assert moves(lights).max() <= STABILITY < 0.3
        assert sum(light.state is State.STEADY for light in lights) >= 145


@pytest.mark.parametrize("fade", [0, 3, 6, 10, 30, 90])
@pytest.mark.parametrize(
    ("scene", "before", "after", "seed"),
    [
        ("still life", "tungsten", "window", 3),
        ("bookshelf", "led", "fluorescent", 3),
        ("portrait", "tungsten", "window", 1),
        ("street", "overcast", "tungsten", 2),
    ],
)
def test_another_lamp_is_followed_within_half_a_second(
    scene: str, before: str, after: str, seed: int, fade: int
) -> None:
    shots = [Shot(scene, before, 20, seed), Shot(scene, after, fade + FIFTEEN + 30, seed, fade=fade)]
    frames, truth = render(shots, seed, pan=False)
    lights, tracker = follow(frames, zones=seed % 2 == 1)
    turned = angular_error(truth[0], truth[-1])
    assert turned > 5
    there = 20 + fade + FIFTEEN
    alone = load_model().estimate(average_zones(LinearImage(frames[there]), 32, 32), tracker.learned).illuminant
    for index in (there, -1):
        assert angular_error(shown(lights)[index], alone) < 0.05 * turned + 0.7  # zones differ from pixels
        assert angular_error(shown(lights)[index], truth[-1]) < 0.5 * turned
    assert angular_error(shown(lights)[there], shown(lights)[-1]) < 0.05 * turned
    states = [light.state for light in lights[20:there]]
    assert states.count(State.FOLLOWING) >= 0.5 * fade + 5
    assert lights[-1].state is State.STEADY


def test_a_fading_lamp_is_followed_while_the_camera_pans() -> None:
    shots = [Shot("bookshelf", "tungsten", 20, 2), Shot("bookshelf", "window", 120, 2, fade=60)]
    frames, truth = render(shots)
    lights, _ = follow(frames)
    off, turned = angular_error(shown(lights), truth), angular_error(truth[0], truth[-1])
    assert turned > 10
    assert off[20 + 60 + FIFTEEN] < 0.2 * turned
    assert sum(light.state is State.FOLLOWING for light in lights[20:80]) > 30


def test_estimates_are_believed_if_they_go_on_contradicting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c5.live.LAMP_DEG", 180.0)  # no change is seen in zones
    shots = [Shot("bookshelf", "led", 60, 3), Shot("bookshelf", "fluorescent", 120, 3)]
    lights, _ = follow(render(shots, pan=False)[0])
    found = shown(lights)
    assert angular_error(found[59], found[-1]) > 5
    assert angular_error(found[60 + 75], found[-1]) < 1
    assert moves(lights).max() <= STABILITY
    assert State.FOLLOWING in {light.state for light in lights[60:]}


@pytest.mark.parametrize("zones", [False, True], ids=["frames", "zones"])
def test_exposure_is_no_light(zones: bool) -> None:
    steps = [Shot("street", "overcast", 20, exposure=exposure) for exposure in (1, 0.3, 0.02, 1, 3)]
    frames, _ = render(steps)
    lights, _ = follow(frames, zones=zones)
    assert moves(lights).max() <= STABILITY
    assert {light.state for light in lights} == {State.STEADY}


@pytest.mark.parametrize(("scene", "zones"), [("hills", False), ("still life", True), ("portrait", True)])
def test_overexposure_is_no_light(scene: str, zones: bool) -> None:
    """What is left of zones that are clipped in part has another color, and looks like another pattern."""
    frames, _ = render([Shot(scene, SCENE_LIGHTS[scene][0], 90)], list(SCENES).index(scene), (64, 96))
    for factors in ((1, 4, 1), (1, 0.5, 4)):
        edited = [np.clip(rgb * np.float32(factors[index // 30]), 0, 1) for index, rgb in enumerate(frames)]
        lights, _ = follow(edited, zones=zones)
        assert moves(lights).max() < 0.3, factors


@pytest.mark.parametrize("zones", [False, True], ids=["frames", "zones"])
@pytest.mark.parametrize("count", [1, 2])
def test_odd_frames_are_not_believed(count: int, zones: bool) -> None:
    frames, _ = render([Shot("flowers", "overcast", 41, seed=4)])
    (other,), _ = render([Shot("portrait", "tungsten", 1)])
    odd: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "magenta": lambda rgb: rgb * np.array([1, 0.5, 1], np.float32),
        "flash": lambda rgb: np.clip(rgb * np.array([2, 2.4, 2.8], np.float32), 0, 1),
        "another scene": lambda rgb: other,
    }
    usual, _ = follow(frames, zones=zones)
    for name, change in odd.items():
        for start in (7, 20):  # an estimate is due at 20
            changed = [change(rgb) if start <= index < start + count else rgb for index, rgb in enumerate(frames)]
            lights, _ = follow(changed, zones=zones)
            assert moves(lights).max() <= STABILITY, name
            assert angular_error(shown(lights), shown(usual)).max() < 0.2, name
            assert {light.state for light in lights} == {State.STEADY}, name


@pytest.mark.parametrize("zones", [False, True], ids=["frames", "zones"])
def test_flicker_is_no_change(zones: bool) -> None:
    frames, _ = render([Shot("street", "overcast", 90)])
    flickering = [rgb / 1.1 * np.array([1, 1, 1 + 0.08 * np.sin(2.1 * i)], np.float32) for i, rgb in enumerate(frames)]
    lights, _ = follow(flickering, zones=zones)
    assert moves(lights).max() <= STABILITY
    assert sum(light.state is State.FOLLOWING for light in lights) <= 5


def test_a_cut_is_followed_at_its_third_frame() -> None:
    frames, _ = render([Shot("street", "overcast", 15), Shot("portrait", "tungsten", 30, seed=9)])
    lights, _ = follow(frames)
    found = shown(lights)
    assert angular_error(found[17], found[14]) > 5
    assert angular_error(found[17], found[-1]) < 3
    assert moves(lights)[17:].max() <= STABILITY


USELESS: dict[str, Any] = {
    "black": np.zeros((20, 30, 3)),
    "saturated": np.ones((20, 30, 3)),
    "NaN": np.full((20, 30, 3), np.nan),
    "four channels": np.zeros((20, 30, 4)),
    "no green": np.full((20, 30, 3), 0.5) * [1, 0, 1],
    "only red": np.full((20, 30, 3), 0.5) * [1, 0, 0],
    "no pixels": np.zeros((0, 30, 3)),
    "ragged": [[1, 2], [3]],
}


@pytest.mark.parametrize("zones", [False, True], ids=["frames", "zones"])
def test_frames_that_tell_nothing_change_nothing(zones: bool) -> None:
    rng = np.random.default_rng(0)
    frames, _ = render([Shot("street", "sun", 20), Shot("street", "tungsten", 25), Shot("lake", "sun", 15)])
    usual, _ = follow(frames, zones=zones)
    tracker = Tracker(load_model())
    for index, rgb in enumerate(frames):
        for name in rng.permutation(list(USELESS))[: rng.integers(4)]:
            held = tracker.update_zones(USELESS[name]) if rng.random() < 0.5 else tracker.update(USELESS[name])
            assert held.state is (State.HELD if index else State.WAITING)
            assert held.reason
            assert "\n" not in held.reason
            np.testing.assert_array_equal(held.illuminant, usual[index - 1].illuminant if index else [3**-0.5] * 3)
        means = average_zones(LinearImage(rgb), 32, 32)
        light = tracker.update_zones(means.rgb, saturated=means.clipped) if zones else tracker.update(rgb)
        assert (light.state, light.uncertainty) == (usual[index].state, usual[index].uncertainty)
        np.testing.assert_array_equal(light.illuminant, usual[index].illuminant)


def test_before_the_first_usable_frame_the_gains_are_one() -> None:
    tracker = Tracker(load_model())
    waiting = tracker.update_zones(np.full((32, 32, 3), 0.9), saturated=np.ones((32, 32), np.bool_))
    assert waiting.state is State.WAITING
    np.testing.assert_allclose(waiting.gains, 1)
    assert np.isinf(waiting.uncertainty)


def test_zones_of_a_wrong_size_are_held() -> None:
    frames, _ = render([Shot("street", "sun", 1)])
    tracker = Tracker(load_model())
    tracker.update(frames[0])
    for shape in ((7, 32), (32, 129)):
        held = tracker.update_zones(np.full((*shape, 3), 0.5))
        assert held.state is State.HELD
        assert "8 to 128 rows and columns" in held.reason


def test_frames_may_change_their_size() -> None:
    (frame,), _ = render([Shot("street", "sun", 1)], size=(256, 384))
    tracker, whole = Tracker(load_model()), LinearImage(frame)
    found = [tracker.update(frame), tracker.update(frame[::2, ::2]), tracker.update(frame[::3, ::3])]
    zones = average_zones(whole, 24, 32)
    found.append(tracker.update_zones(zones.rgb, saturated=zones.clipped))
    assert {light.state for light in found} == {State.STEADY}
    assert moves(found).max() <= 0.3


def test_the_camera_is_learned_from_frames_that_differ() -> None:
    shots = [Shot(scene, light, 3, seed=i) for i, (scene, light) in enumerate(
        [("street", "sun"), ("portrait", "tungsten"), ("flowers", "shade"), ("snow", "overcast"), ("lake", "low sun")]
    )]  # fmt: skip
    frames, _ = render(shots)
    _, tracker = follow(frames, settings=Settings(every=1))
    assert tracker.learned is not None
    assert 4 <= tracker.learned.n_images <= 15
    _, still = follow(render([Shot("street", "sun", 12)])[0], settings=Settings(every=1))
    assert still.learned is None  # one view is no roll
    _, unwilling = follow(frames, settings=Settings(every=1, learn=False))
    assert unwilling.learned is None


def test_settings_are_checked() -> None:
    for wrong in ({"fps": 0}, {"converge": -1}, {"stability": 0}, {"every": 0}):
        with pytest.raises(ParameterError):
            Settings(**wrong)  # type: ignore[arg-type]
