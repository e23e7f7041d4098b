"""Photographs of color charts.

A chart is a plane in perspective. Every patch has the spectrum of a measured chart, and each light that falls on it has
a share of its own at every place, so that the truth about the light in the middle of the chart is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from c5.color import Float64s
from c5.colorimetry.spectra import chart_surfaces, read_spectra
from c5.demo.camera import VirtualCamera
from c5.demo.canvas import Canvas, Values
from c5.demo.choices import pick
from c5.demo.lights import LIGHTS, Light
from c5.demo.photo import SIZE, Photo, light_direction, take_photo
from c5.demo.scenes import SCENE_LIGHTS, SCENES
from c5.image import project

COLUMNS, ROWS = 6, 4
PATCH, FRAME = 0.42, 0.3
"""Half the side of a patch, and how far the frame reaches beyond the patches' cells, in cells."""


class Pose(NamedTuple):
    """Where a chart stands."""

    homography: Float64s
    """(3, 3), from cells, counted from the outer corner at dark skin, to places on the canvas."""
    pitch: float
    """The size of a cell, in canvas units."""

    @property
    def outline(self) -> Float64s:
        """(4, 2), the corners of the frame."""
        low, right, bottom = -FRAME, COLUMNS + FRAME, ROWS + FRAME
        return project(self.homography, np.array([[low, low], [right, low], [right, bottom], [low, bottom]]))

    @classmethod
    def random(
        cls, canvas: Canvas, rng: np.random.Generator, width: float, *, tilt: float = 0.9, turn: float = np.pi
    ) -> Pose:
        """A chart about `width` wide, anywhere in the picture, turned and tilted by up to `turn` and `tilt` radians."""
        spin = rng.uniform(-turn, turn)
        axis, lean = rng.uniform(0, 2 * np.pi), rng.uniform(0, tilt)
        toward = np.array([np.cos(axis), np.sin(axis), 0])
        cross = np.array([[0, 0, toward[1]], [0, 0, -toward[0]], [-toward[1], toward[0], 0]])
        lying = np.eye(3) + np.sin(lean) * cross + (1 - np.cos(lean)) * cross @ cross  # Rodrigues
        flat = np.array([[np.cos(spin), -np.sin(spin), 0], [np.sin(spin), np.cos(spin), 0], [0, 0, 1]])
        pitch, away = width / COLUMNS, rng.uniform(2.5, 6) * width
        rotation = lying @ flat * pitch
        plane = np.column_stack([rotation[:, 0], rotation[:, 1], -rotation[:, :2] @ [COLUMNS / 2, ROWS / 2]])
        plane[2] = plane[2] / away + [0, 0, 1]  # seen from `away` in front of its middle
        reach = np.abs(cls(plane, pitch).outline).max(axis=0) + 0.01
        middle = [
            rng.uniform(min(r, s / 2), max(s - r, s / 2)) for r, s in zip(reach, (canvas.aspect, 1.0), strict=True)
        ]
        moved = np.array([[1, 0, middle[0]], [0, 1, middle[1]], [0, 0, 1.0]]) @ plane
        return cls(moved, pitch)


Lit = Callable[[Values, Values], Values]
"""How much of a light arrives, by the place on the chart: across and down, from -1 to 1."""


class Beam(NamedTuple):
    """A light that falls on a chart."""

    spectrum: Float64s
    lit: Lit


def lay_chart(canvas: Canvas, camera: VirtualCamera, pose: Pose, surfaces: Float64s, beams: list[Beam]) -> None:
    """Paint a chart with patches of those reflectances, (24, wavelengths), row by row, and mask it."""
    low, high = pose.outline.min(axis=0), pose.outline.max(axis=0)
    area = canvas.crop(low[0] - 0.02, low[1] - 0.02, high[0] + 0.02, high[1] + 0.02)
    x, y = np.broadcast_arrays(area.x, area.y)
    here = np.asarray(np.stack([x, y], axis=-1), dtype=np.float64)
    place = project(np.asarray(np.linalg.inv(pose.homography), dtype=np.float64), here)
    u, v = place[..., 0].astype(np.float32), place[..., 1].astype(np.float32)
    frame = np.maximum(np.abs(u - COLUMNS / 2) - COLUMNS / 2, np.abs(v - ROWS / 2) - ROWS / 2) - FRAME
    gap = np.maximum(np.abs(u - np.floor(u) - 0.5), np.abs(v - np.floor(v) - 0.5)) - PATCH
    gap = np.maximum(gap, frame + FRAME)
    column = np.clip(np.floor(u), 0, COLUMNS - 1).astype(np.intp)
    index = np.clip(np.floor(v), 0, ROWS - 1).astype(np.intp) * COLUMNS + column
    scale = 1 / camera.respond(canvas.light.spectrum)[1]
    patches, black = np.zeros(area.rgb.shape, np.float32), np.zeros(area.rgb.shape, np.float32)
    for beam in beams:
        lit = beam.lit(u / (COLUMNS / 2) - 1, v / (ROWS / 2) - 1)
        seen = (camera.respond(surfaces * beam.spectrum) * scale).astype(np.float32)
        dark = (camera.respond(1.2 * read_spectra("surface")["black cloth"] * beam.spectrum) * scale).astype(np.float32)
        patches += lit * seen[index].transpose(2, 0, 1)
        black += lit * dark[:, None, None]
    cover = area.inside(frame * pose.pitch)
    area.rgb[...] += cover * (black - area.rgb)
    area.rgb[...] += area.inside(gap * pose.pitch) * cover * (patches - area.rgb)
    area.mask[...] &= frame > 0.1


def along(angle: float, u: Values, v: Values) -> Values:
    """How far places on a chart lie in a direction."""
    return np.asarray(np.cos(angle) * u + np.sin(angle) * v, dtype=np.float32)


def slant(angle: float, depth: float) -> Lit:
    """A little more light on one side."""
    return lambda u, v: np.asarray(0.9 * np.exp(0.5 * depth * along(angle, u, v)), dtype=np.float32)


def render_charts(
    camera: VirtualCamera, count: int, rng: np.random.Generator, size: tuple[int, int] = SIZE
) -> Iterator[tuple[Photo, Light]]:
    """Scenes with a chart in the main light, in one kind of light after the other."""
    families: list[str] = []
    for _ in range(count):
        families = families or [str(family) for family in rng.permutation(list(LIGHTS))]
        family = families.pop()
        scene = pick(rng, [name for name, lights in SCENE_LIGHTS.items() if family in lights])
        light = LIGHTS[family](rng)
        canvas = Canvas.new(camera, light, size, light_direction(light, rng))
        SCENES[scene](canvas, rng)
        pose = Pose.random(canvas, rng, rng.uniform(0.4, 0.85), tilt=0.3, turn=0.3)
        # Six numbers, of which two are used, so that a seed keeps its pictures.
        angle, _, _, depth, *_ = rng.uniform(0, (2 * np.pi, 1, 1, 0.15, 1, 1)).tolist()
        lay_chart(canvas, camera, pose, chart_surfaces(), [Beam(light.spectrum, slant(angle, depth))])
        yield take_photo(canvas, camera, rng, scene), light
