"""How often the promises of the tracker hold on rendered videos with known lights, at 30 frames a second.

python benchmarks/live.py [SEEDS]
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable

import numpy as np
from timing import show

from c5.color import Float32s, Float64s, angular_error
from c5.demo import SCENE_LIGHTS, SCENES, VirtualCamera
from c5.demo.video import Shot, render_video
from c5.image import LinearImage
from c5.live import State, Tracker
from c5.model import Model, load_model
from c5.zones import average_zones

BEFORE, HALF_SECOND, AFTER = 30, 15, 45
LEAST_TURN = 5.0
CALM = 0.3
Frames = list[Float32s]
Edit = Callable[[int, Float32s], Float32s]

EDITS: dict[str, Edit] = {
    "exposure halved, then doubled": lambda i, rgb: np.clip(rgb * np.float32((1, 0.5, 1)[i // 30]), 0, 1),
    "exposure halved, then eight times as long": lambda i, rgb: np.clip(
        rgb * np.array((1, 0.5, 4)[i // 30], np.float32), 0, 1
    ),
    "four times overexposed for a second": lambda i, rgb: np.clip(rgb * np.float32((1, 4, 1)[i // 30]), 0, 1),
    "blue flickers by 8 %": lambda i, rgb: (
        rgb / np.float32(1.1) * np.array([1, 1, 1 + 0.08 * np.sin(2.1 * i)], np.float32)
    ),
    "one frame is magenta": lambda i, rgb: rgb * np.array([1, 0.5, 1], np.float32) if i == 40 else rgb,
    "a flash in one frame": lambda i, rgb: np.clip(rgb * np.array([2, 2.4, 2.8], np.float32), 0, 1) if i == 40 else rgb,
}


def render(shots: list[Shot], seed: int, *, pan: bool) -> tuple[Frames, Float64s]:
    rng = np.random.default_rng(seed)
    frames = list(render_video(VirtualCamera.random(rng), shots, rng, (64, 96), pan=pan))
    return [frame.rgb for frame in frames], np.array([frame.illuminant for frame in frames])


def follow(model: Model, frames: Frames, *, zones: bool) -> tuple[Float64s, list[State]]:
    """The light shown for each frame, and the states."""
    tracker, lights = Tracker(model), []
    for rgb in frames:
        if zones:
            means = average_zones(LinearImage(rgb), 32, 32)
            lights.append(tracker.update_zones(means.rgb, saturated=means.clipped))
        else:
            lights.append(tracker.update(rgb))
    return np.array([light.illuminant for light in lights]), [light.state for light in lights]


def check_calm(model: Model, seeds: int) -> None:
    """Videos in one light, as they are and edited."""
    rows = []
    edits: dict[str, Edit] = {"nothing": lambda i, rgb: rgb, **EDITS}
    largest, steady = defaultdict(list), defaultdict(list)
    for seed in range(seeds):
        for index, scene in enumerate(SCENES):
            lights = SCENE_LIGHTS[scene]
            frames, _ = render([Shot(scene, lights[seed % len(lights)], 90, seed)], 100 * seed + index, pan=True)
            for name, edit in edits.items():
                edited = [edit(i, rgb) for i, rgb in enumerate(frames)]
                found, states = follow(model, edited, zones=(seed + index) % 2 == 1)
                largest[name].append(float(angular_error(found[1:], found[:-1]).max()))
                steady[name].append(np.mean([state is State.STEADY for state in states]))
    for name, moves in largest.items():
        holds = np.mean(np.array(moves) <= CALM)
        rows.append([name, str(len(moves)), f"{holds:.1%}", f"{max(moves):.2f}", f"{np.mean(steady[name]):.1%}"])
    headings = ["what happens", "videos", f"no move above {CALM}°", "largest move", "frames `steady`"]
    show("One light, while the camera pans", headings, rows)


def check_changes(model: Model, seeds: int) -> None:
    """Another lamp in the same scene, at once or fading, and cuts."""
    rows = []
    for pan in (False, True):
        for fade in (0, 6, 30, 90):
            results = []
            for seed in range(seeds):
                for index, scene in enumerate(("still life", "bookshelf", "portrait")):
                    before, after = np.random.default_rng([seed, index]).choice(SCENE_LIGHTS["still life"], 2, False)
                    shots = [Shot(scene, before, BEFORE, seed), Shot(scene, after, fade + AFTER, seed, fade=fade)]
                    frames, truth = render(shots, 10 * seed + index, pan=pan)
                    turned = float(angular_error(truth[0], truth[-1]))
                    if turned < LEAST_TURN:
                        continue
                    found, states = follow(model, frames, zones=(seed + index) % 2 == 1)
                    there = BEFORE + fade + HALF_SECOND
                    errors = angular_error(found, truth)
                    told = State.FOLLOWING in states[BEFORE:there]
                    rest = float(angular_error(found[there], found[-1])) / turned
                    results.append([rest <= 0.05, rest <= 0.1, told, errors[there], errors[-1]])
            five, ten, told, then, last = np.array(results, float).mean(axis=0)
            what = f"{'switched' if fade == 0 else f'fades for {fade / 30:g} s'}, {'panning' if pan else 'still'}"
            rows.append(
                [what, str(len(results)), f"{five:.0%}", f"{ten:.0%}", f"{told:.0%}", f"{then:.2f}", f"{last:.2f}"]
            )
    headings = ["lamp, camera", "videos", "within 5 %", "10 %", "`following`", "error then", "a second later"]
    show(f"Half a second after a lamp has turned the light by more than {LEAST_TURN:g}°", headings, rows)


def check_cuts(model: Model, seeds: int) -> None:
    off = []
    scenes = list(SCENES)
    for seed in range(4 * seeds):
        one, other = np.random.default_rng(seed).choice(scenes, 2, replace=False)
        shots = [Shot(one, SCENE_LIGHTS[one][0], BEFORE, seed), Shot(other, SCENE_LIGHTS[other][-1], AFTER, seed)]
        frames, _ = render(shots, seed, pan=False)
        found, _ = follow(model, frames, zones=seed % 2 == 1)
        off.append([angular_error(found[BEFORE + index], found[-1]) for index in (-1, 1, 2, HALF_SECOND)])
    mean = np.mean(off, axis=0)
    headings = ["before", "second frame", "third frame", "half a second later"]
    show(f"Mean degrees from where it stays, {len(off)} cuts", headings, [[f"{value:.2f}" for value in mean]])


def main(seeds: int) -> None:
    model = load_model()
    check_calm(model, seeds)
    check_changes(model, 4 * seeds)
    check_cuts(model, seeds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
