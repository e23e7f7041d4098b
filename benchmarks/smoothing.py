"""What smoothing does to rendered sequences whose light is known: python benchmarks/smoothing.py"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from timing import show

from c5.color import Float64s, angular_error, rgb_to_uv, uv_to_rgb
from c5.colorimetry.spectra import black_body, daylight, unit_luminance
from c5.demo import LIGHTS, SCENE_LIGHTS, VirtualCamera, render_photo, render_roll
from c5.image import LinearImage
from c5.model import Model, load_model
from c5.photos.balancing import Balance
from c5.photos.photo import Photo
from c5.photos.roll_building import Roll
from c5.photos.smoothing import smooth

SIZE, MARGIN, FRAMES = (64, 96), 16, 12
WALK, TRIPOD = "another scene in each frame", "one scene"


class Sequence(NamedTuple):
    """A sequence before and after smoothing."""

    kind: str
    how: str
    truth: Float64s  # (frames, 3)
    seen: Float64s
    smoothed: Float64s
    step: int | None
    """The first frame in another light."""

    def errors(self) -> tuple[float, float]:
        """Mean errors in degrees, before and after."""
        before, after = (angular_error(lights, self.truth).mean() for lights in (self.seen, self.smoothed))
        return float(before), float(after)

    def flicker(self) -> tuple[float, float]:
        """Mean squared changes from frame to frame, before and after."""
        before, after = ((np.diff(rgb_to_uv(lights), axis=0) ** 2).mean() for lights in (self.seen, self.smoothed))
        return float(before), float(after)

    def delay(self) -> int:
        """How many frames on either side of the step are shown closer to what is seen on its other side."""
        assert self.step is not None
        sides = (rgb_to_uv(part) for part in (self.seen[: self.step], self.seen[self.step :]))
        old, new = (uv_to_rgb(np.median(side, axis=0)) for side in sides)
        is_new = angular_error(self.smoothed, new) < angular_error(self.smoothed, old)
        wrong = np.flatnonzero(is_new != (np.arange(len(self.truth)) >= self.step))
        return int(max((abs(frame - self.step + 0.5) + 0.5 for frame in wrong), default=0))


def draw_lights(rng: np.random.Generator) -> Iterator[tuple[str, list[Float64s], int | None]]:
    """The lights of each kind of sequence, and where they jump."""
    noon, direction, lamp = rng.uniform(5200, 7000), rng.choice([-1, 1]), black_body(rng.uniform(2500, 3200))
    part = np.linspace(0, 1, FRAMES)
    step = int(rng.integers(3, FRAMES - 3))
    window = daylight(noon)
    yield "steady daylight", [window] * FRAMES, None
    yield "steady lamp", [lamp] * FRAMES, None
    yield "slow drift", [daylight(noon * (1 + 0.08 * direction * each)) for each in part], None
    yield "sunset", [daylight(5600 + (4170 - 5600) * each) for each in part], None
    lit = unit_luminance(0.15 * window + 0.85 * lamp)
    yield "lamp switched on", [window] * step + [lit] * (FRAMES - step), step


def render_sequences(model: Model, seed: int) -> Iterator[Sequence]:
    """The sequences of one camera, of all kinds."""
    rng = np.random.default_rng([2026, seed])
    camera = VirtualCamera.random(rng)
    profile = model.calibrate(photo.image for photo in render_roll(camera, 8, rng, SIZE))
    for how in (WALK, TRIPOD):
        for kind, spectra, step in draw_lights(rng):
            family = "window" if "lamp" in kind else "overcast"
            scenes = [scene for scene, met in SCENE_LIGHTS.items() if family in met]
            base = LIGHTS[family](rng)
            scene, composition = str(rng.choice(scenes)), int(rng.integers(2**31))
            balances, truth = [], []
            for index, spectrum in enumerate(spectra):
                # One light, in the shadows too: with two, no estimate could be right.
                light = replace(base, spectrum=spectrum, fill=unit_luminance(spectrum * base.fill / base.spectrum))
                if how == WALK:
                    photo = render_photo(camera, str(rng.choice(scenes)), light, rng, SIZE)
                    image = photo.image
                else:  # the tripod shakes a little
                    larger = (SIZE[0] + MARGIN, SIZE[1] + MARGIN)
                    photo = render_photo(camera, scene, light, np.random.default_rng(composition), larger)
                    top, left = rng.integers(0, MARGIN, 2)
                    cut = (slice(top, top + SIZE[0]), slice(left, left + SIZE[1]))
                    image = LinearImage(photo.image.rgb[cut], clipped=photo.image.clipped[cut])
                found = model.estimate(image, profile)
                time = datetime(2026, 6, 1) + timedelta(seconds=30 * index)
                known = Photo(Path(f"{index:03d}"), camera.name, time, None, found.illuminant, None, 1)
                balances.append(Balance(known, found.illuminant, found.uncertainty, "model", Roll()))
                truth.append(photo.illuminant)
            seen, smoothed = (np.array([each.illuminant for each in lights]) for lights in (balances, smooth(balances)))
            yield Sequence(kind, how, np.array(truth), seen, smoothed, step)


def main() -> None:
    model = load_model()
    cameras = 8
    found: dict[tuple[str, str], list[Sequence]] = {}
    for seed in range(100, 100 + cameras):  # the tests use others
        for sequence in render_sequences(model, seed):
            found.setdefault((sequence.how, sequence.kind), []).append(sequence)
    rows = []
    for (how, kind), sequences in found.items():
        before, after = np.mean([each.errors() for each in sequences], axis=0)
        flicker = np.mean([each.flicker() for each in sequences], axis=0)
        late = sum(each.delay() > 2 for each in sequences if each.step is not None)
        steps = f"{len(sequences) - late} of {len(sequences)}" if sequences[0].step is not None else ""
        fall = f"{np.sqrt(flicker[0] / flicker[1]):.1f}" if "steady" in kind else ""
        rows.append([how, kind, f"{before:.2f}", f"{after:.2f}", fall, steps])
    title = f"{FRAMES} frames each of {cameras} virtual cameras, by the bundled model"
    headings = ["frames", "light", "mean error", "smoothed", "flicker falls by", "step found within 2 frames"]
    show(title, headings, rows)


if __name__ == "__main__":
    main()
