"""Videos of a virtual camera with known lights: it pans over a scene, lamps are switched, exposure changes, cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from c5.color import Float32s, Float64s
from c5.demo.camera import VirtualCamera
from c5.demo.lights import LIGHTS
from c5.demo.photo import render_photo


class Shot(NamedTuple):
    """A stretch of video in one light."""

    scene: str
    light: str
    frames: int
    seed: int = 0
    """Two shots with the same scene and seed show the same."""
    exposure: float = 1.0
    fade: int = 0
    """Frames in which the shot before, of the same scene, fades into this one."""


class VideoFrame(NamedTuple):
    rgb: Float32s  # (height, width, 3), linear, in [0, 1]
    illuminant: Float64s


def render_video(
    camera: VirtualCamera,
    shots: Sequence[Shot],
    rng: np.random.Generator,
    size: tuple[int, int] = (256, 384),
    *,
    pan: bool = True,
) -> Iterator[VideoFrame]:
    """Frames, one after the other: the camera pans back and forth over a third of the width of each scene."""
    height, width = size
    time = 0
    before = None
    for shot in shots:
        light = LIGHTS[shot.light](np.random.default_rng([shot.seed, 1]))  # one composition, whatever the light
        photo = render_photo(camera, shot.scene, light, np.random.default_rng(shot.seed), (height, width * 4 // 3))
        wide = photo.image.rgb * np.where(photo.image.clipped, 4, 1)[..., None]  # lights stay clipped in any exposure
        wide *= np.float32(shot.exposure)
        before = before or (wide, photo.illuminant)
        for frame in range(shot.frames):
            left = round((width // 3) * (0.5 - 0.5 * np.cos(2 * np.pi * time / 240))) if pan else 0
            here = np.float32(min(1.0, (frame + 1) / (shot.fade + 1)))
            view, illuminant = (
                old + here * (new - old)
                for old, new in (
                    (before[0][:, left : left + width], wide[:, left : left + width]),
                    (before[1], photo.illuminant),
                )
            )
            noise = np.sqrt(view / 4000) * rng.standard_normal(view.shape, np.float32)
            yield VideoFrame(np.clip(view + noise, 0, 1).astype(np.float32), illuminant / np.linalg.norm(illuminant))
            time += 1
        before = wide, photo.illuminant
