"""Photographs of color charts, and of what looks like one, for the law that a label is right.

The charts are blurred, noisy, clipped, shaded, in two lights, hidden, printed, or none at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from c5.color import Float64s
from c5.colorimetry.spectra import WAVELENGTHS, chart_surfaces, daylight, read_spectra, xyz
from c5.demo import LIGHTS, SCENE_LIGHTS, SCENES, VirtualCamera
from c5.demo.canvas import Canvas, Values, smoothstep
from c5.demo.charts import COLUMNS, ROWS, Beam, Pose, along, lay_chart, slant
from c5.demo.choices import pick
from c5.demo.lights import Light
from c5.demo.photo import SIZE, Photo, light_direction, take_photo
from c5.image import project


@dataclass(frozen=True, eq=False)
class Shot:
    """A photograph, and the truth about a chart in it."""

    photo: Photo
    case: str
    lights: list[Float64s]
    """Unit RGB of a perfect white in the middle of each chart, or of the print of one."""


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
    stops, soft = 0.0, 0.0
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
        soft = rng.uniform(0.05, 0.16) * pose.pitch if case == "blurred" else 0
        stops = {"noisy": -rng.uniform(2, 6), "clipped": rng.uniform(0.5, 2.5)}.get(case, 0.0)
    canvas.blur(soft)
    photo = take_photo(canvas, camera, rng, scene, stops=stops)
    return Shot(photo, case, lights)


def _light(case: str, light: Light, rng: np.random.Generator) -> list[Beam]:
    """The light on a chart: even, or with the gradient or the shadow's edge of a case."""
    angle, place, across = rng.uniform(0, 2 * np.pi), rng.uniform(-0.5, 0.5), rng.uniform(0.02, 0.4)
    depth = rng.uniform(0.15, 0.9) if case in ("shaded", "two lights") else rng.uniform(0, 0.15)

    slope = slant(angle, depth)

    def edge(u: Values, v: Values) -> Values:
        return smoothstep(place - across, place + across, along(angle, u, v))

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
