"""Photographs of color charts: any pose, blurred, noisy, clipped, shaded, in two lights, printed, or no chart at all.

A chart is a plane in perspective. Every patch has the spectrum of a measured chart, and each light that falls on it has
a share of its own at every place, so that the truth about the light in the middle of the chart is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.color import Float64s
from c5.colorimetry.spectra import WAVELENGTHS, daylight, read_spectra, xyz
from c5.demo.camera import VirtualCamera
from c5.demo.canvas import Canvas, Values, smoothstep
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


def chart_surfaces() -> Float64s:
    """(24, wavelengths) the reflectances of the patches."""
    return np.stack(list(read_spectra("chart").values()))


def printed_surfaces(rng: np.random.Generator) -> Float64s:
    """The same for a printed photograph of a chart: three inks on paper that match what a camera made of the colors."""
    light = daylight(5000)
    to_rgb = np.array([[3.1339, -1.6169, -0.4906], [-0.9788, 1.9161, 0.0335], [0.0719, -0.2290, 1.4052]])  # D50 to sRGB
    target = np.clip(xyz(chart_surfaces() * light) @ to_rgb.T, 0.004, 1)
    gray = target.mean(axis=1, keepdims=True)
    target = np.clip(gray + rng.uniform(0.8, 1.25) * (target - gray), 0.004, 1)
    curve = rng.uniform(1.2, 1.6) if rng.random() < 0.5 else rng.uniform(0.6, 0.85)  # no picture keeps the contrast
    target = 0.03 + 0.82 * np.clip(target / 0.9, 0, 1) ** curve
    inks = np.stack(
        [np.exp(-(((WAVELENGTHS - peak) / width) ** 2)) for peak, width in ((640, 70), (545, 50), (440, 55))]
    )
    paper = 0.88 * (1 - 0.05 * np.exp(-(((WAVELENGTHS - 420) / 30) ** 2)))
    density = np.full((24, 3), 0.5)
    for _ in range(25):  # Newton's method: densities of ink for the three numbers of a color
        surfaces = paper * np.exp(-density @ inks)
        missed = xyz(surfaces * light) @ to_rgb.T - target
        slopes = np.stack([xyz(-surfaces * ink * light) @ to_rgb.T for ink in inks], axis=-1)
        step = np.linalg.solve(slopes + 1e-6 * np.eye(3), missed[..., None])[..., 0]
        density = np.clip(density - np.clip(step, -0.5, 0.5), 0, 6)
    return np.asarray(paper * np.exp(-density @ inks))


@dataclass(frozen=True, eq=False)
class Shot:
    """A photograph, and the truth about a chart in it."""

    photo: Photo
    case: str
    lights: list[Float64s]
    """Unit RGB of a perfect white in the middle of each chart, or of the print of one."""
    pitch: float
    """The distance between patches in pixels; 0 without a chart."""


CASES = (
    "plain", "tilted", "small", "blurred", "noisy", "clipped", "shaded", "two lights", "two charts", "hidden",
    "printed", "shuffled", "tiles", "none",
)  # fmt: skip
"""What can be rendered; in the last three there is no chart."""


def render_case(case: str, rng: np.random.Generator, size: tuple[int, int] = SIZE) -> Shot:
    """A photograph of a case, with a camera, a scene and a light of its own."""
    scene = pick(rng, list(SCENES))
    return render_shot(VirtualCamera.random(rng), scene, LIGHTS[pick(rng, SCENE_LIGHTS[scene])](rng), case, rng, size)


def render_shot(
    camera: VirtualCamera,
    scene: str,
    light: Light,
    case: str,
    rng: np.random.Generator,
    size: tuple[int, int] = SIZE,
) -> Shot:
    """A scene with a chart in it, as the case says."""
    canvas = Canvas.new(camera, light, size, light_direction(light, rng))
    SCENES[scene](canvas, rng)
    stops, soft, pitch = 0.0, 0.0, 0.0
    lights: list[Float64s] = []
    if case == "tiles":
        _lay_tiles(canvas, camera, rng)
    elif case != "none":
        width = rng.uniform(0.22, 0.32) if case == "small" else rng.uniform(0.4, 0.85)
        steady = {"tilt": 0.3, "turn": 0.3} if case == "plain" else {}
        pose = Pose.random(canvas, rng, width, **steady)
        beams = _light(case, light, rng)
        surfaces = chart_surfaces()
        if case == "printed":
            surfaces = printed_surfaces(rng)
        elif case == "shuffled":
            surfaces = surfaces[_shuffled(rng)]
        if case == "two charts":
            other = Pose.random(canvas, rng, width)
            lamp = beams if rng.random() < 0.5 else [Beam(_another(light, rng).spectrum, beams[0].lit)]
            lay_chart(canvas, camera, other, surfaces, lamp)
            lights.append(_light_in_middle(camera, lamp))
        lay_chart(canvas, camera, pose, surfaces, beams)
        if case == "hidden":
            _hide(canvas, pose, rng)
        if case != "shuffled":
            lights.append(_light_in_middle(camera, beams))
        pitch = pose.pitch / canvas.pixel
        soft = rng.uniform(0.05, 0.16) * pose.pitch if case == "blurred" else 0
        stops = {"noisy": -rng.uniform(2, 6), "clipped": rng.uniform(0.5, 2.5)}.get(case, 0.0)
    canvas.blur(soft)
    photo = take_photo(canvas, camera, rng, scene, stops=stops)
    return Shot(photo, case, lights, pitch)


def _light(case: str, light: Light, rng: np.random.Generator) -> list[Beam]:
    """The light on a chart: even, or with the gradient or the shadow's edge of a case."""
    angle, place, across = rng.uniform(0, 2 * np.pi), rng.uniform(-0.5, 0.5), rng.uniform(0.02, 0.4)
    depth = rng.uniform(0.15, 0.9) if case in ("shaded", "two lights") else rng.uniform(0, 0.15)

    def along(u: Values, v: Values) -> Values:
        return np.asarray(np.cos(angle) * u + np.sin(angle) * v, dtype=np.float32)

    def slope(u: Values, v: Values) -> Values:
        return np.asarray(0.9 * np.exp(0.5 * depth * along(u, v)), dtype=np.float32)

    def edge(u: Values, v: Values) -> Values:
        return smoothstep(place - across, place + across, along(u, v))

    if case == "shaded" and rng.random() < 0.5:
        return [Beam(light.spectrum, lambda u, v: np.asarray(slope(u, v) * (1 - 0.6 * edge(u, v)), dtype=np.float32))]
    if case == "two lights":
        second = light.fill if rng.random() < 0.3 else _another(light, rng).spectrum
        share = rng.uniform(0.25, 1.0)
        return [
            Beam(light.spectrum, lambda u, v: np.asarray(slope(u, v) * (1 - edge(u, v)), dtype=np.float32)),
            Beam(second, lambda u, v: np.asarray(share * edge(u, v), dtype=np.float32)),
        ]
    return [Beam(light.spectrum, slope)]


def _light_in_middle(camera: VirtualCamera, beams: list[Beam]) -> Float64s:
    middle = np.zeros((1, 1), np.float32)
    return camera.illuminant(np.sum([beam.spectrum * beam.lit(middle, middle)[0, 0] for beam in beams], axis=0))


def _another(light: Light, rng: np.random.Generator) -> Light:
    return LIGHTS[pick(rng, [family for family in LIGHTS if family != light.family])](rng)


def _shuffled(rng: np.random.Generator) -> NDArray[np.int_]:
    """The patches in another order: all of them, without the grays, mirrored, or a few exchanged."""
    order = np.arange(24)
    kind = int(rng.integers(4))
    if kind == 0:
        return rng.permutation(order)
    if kind == 1:
        return np.concatenate([rng.permutation(order[:18]), order[18:]])
    if kind == 2:
        return order.reshape(ROWS, COLUMNS)[:, ::-1].ravel()
    order[:18] = np.roll(order[:18], int(rng.integers(1, 18)))
    return order


def _lay_tiles(canvas: Canvas, camera: VirtualCamera, rng: np.random.Generator) -> None:
    """Things that look like charts: tiles, quilts, boxes of paint, with and without a row of grays."""
    names = [*read_spectra("surface"), *read_spectra("tcs")]
    table = read_spectra("surface") | read_spectra("tcs")
    surfaces = np.stack([table[pick(rng, names)] * rng.uniform(0.6, 1.1) for _ in range(24)])
    if rng.random() < 0.4:
        surfaces[18:] = np.geomspace(0.9, 0.03, 6)[:, None] * (chart_surfaces()[19] / chart_surfaces()[19].mean())
    pose = Pose.random(canvas, rng, rng.uniform(0.35, 0.8))
    lay_chart(canvas, camera, pose, np.clip(surfaces, 0, 1), _light("plain", canvas.light, rng))


def _hide(canvas: Canvas, pose: Pose, rng: np.random.Generator) -> None:
    """Something lies on a part of the chart."""
    middle = project(pose.homography, rng.uniform((0, 0), (COLUMNS, ROWS)))
    radius = rng.uniform(0.4, 1.6) * pose.pitch
    away = np.hypot(canvas.x - middle[0], canvas.y - middle[1]) - radius
    canvas.paint(
        canvas.inside(away.astype(np.float32)), {pick(rng, ["red cloth", "denim", "gray cloth", "pale skin"]): 1.0}, 0.9
    )


def render_charts(
    camera: VirtualCamera, count: int, rng: np.random.Generator, size: tuple[int, int] = SIZE
) -> Iterator[tuple[Shot, Light]]:
    """Scenes with a chart in the main light, in one kind of light after the other."""
    families: list[str] = []
    for _ in range(count):
        families = families or [str(family) for family in rng.permutation(list(LIGHTS))]
        family = families.pop()
        scene = pick(rng, [name for name, lights in SCENE_LIGHTS.items() if family in lights])
        light = LIGHTS[family](rng)
        yield render_shot(camera, scene, light, "plain", rng, size), light
