"""Take demo pictures: light, lens, exposure and sensor, with the true illuminant of each picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from c5.color import Float64s
from c5.demo.camera import VirtualCamera
from c5.demo.canvas import Canvas, Values
from c5.demo.lights import LIGHTS, Light
from c5.demo.scenes import SCENE_LIGHTS, SCENES, paint_chart
from c5.errors import ParameterError
from c5.image import LinearImage

SIZE = (256, 384)
"""Height and width of a picture."""


@dataclass(frozen=True, eq=False)
class Photo:
    """A rendered photograph and the truth about it."""

    image: LinearImage
    """Black level removed, white level at 1; the chart is masked."""
    raw: NDArray[np.uint16]
    """(height, width, 3) sensor numbers of the camera's black and white level, before a Bayer mosaic."""
    illuminant: Float64s
    """Unit RGB of a perfect white in the main light."""
    scene: str
    light: str


def render_photo(
    camera: VirtualCamera,
    scene_name: str,
    light: Light,
    rng: np.random.Generator,
    size: tuple[int, int] = SIZE,
    *,
    chart: bool = False,
    name: str | None = None,
) -> Photo:
    """One photograph; `size` is (height, width), and one seed gives one composition at any size."""
    if scene_name not in SCENES:
        raise ParameterError(f"no scene is called {scene_name!r}; there are {', '.join(SCENES)}")
    if min(size) < 16:
        raise ParameterError(f"a picture needs at least 16 pixels each way, not {size[0]} x {size[1]}")
    canvas = Canvas.new(camera, light, size, light_direction(light, rng))
    SCENES[scene_name](canvas, rng)
    if chart:
        paint_chart(canvas, rng)
    return take_photo(canvas, camera, rng, scene_name, name=name)


def take_photo(
    canvas: Canvas,
    camera: VirtualCamera,
    rng: np.random.Generator,
    scene_name: str,
    *,
    name: str | None = None,
    stops: float = 0.0,
) -> Photo:
    """What a camera makes of a painted scene, exposed by `stops` more than it would by itself."""
    light = canvas.light
    _lens(canvas, rng)
    raw = camera.expose(np.moveaxis(canvas.rgb * (_exposure(canvas, rng) * np.float32(2**stops)), 0, -1), rng)
    span = np.float32(camera.white_level - camera.black_level)
    rgb = (raw.astype(np.float32) - np.float32(camera.black_level)) / span
    image = LinearImage(
        rgb,
        mask=canvas.mask,
        clipped=np.asarray((raw >= camera.white_level).any(axis=-1)),
        camera=camera.name,
        source=name or f"{scene_name}, {light.name}",
    )
    return Photo(image, raw, camera.illuminant(light.spectrum), scene_name, light.name)


def render_roll(
    camera: VirtualCamera, count: int, rng: np.random.Generator, size: tuple[int, int] = SIZE
) -> list[Photo]:
    """Photographs of different scenes, each in a light that suits it. With four or more, one shows a color chart."""
    photos: list[Photo] = []
    with_chart = int(rng.integers(count)) if count >= 4 else -1
    order: list[str] = []
    for i in range(count):
        if not order:
            order = [str(scene) for scene in rng.permutation(list(SCENES))]
        scene = order.pop()
        light = LIGHTS[str(rng.choice(SCENE_LIGHTS[scene]))](rng)
        name = f"{i + 1:03d}-{scene.replace(' ', '-')}"
        photos.append(render_photo(camera, scene, light, rng, size, chart=i == with_chart, name=name))
    return photos


def light_direction(light: Light, rng: np.random.Generator) -> Values:
    """Where the main light comes from: low at either side, or overhead when it comes through clouds."""
    across = rng.uniform(0.3, 0.75) * float(rng.choice([-1, 1]))
    if light.family == "overcast":
        across *= 0.3
    up = 0.35 if light.family == "low sun" else rng.uniform(0.45, 0.75)
    vector = np.array([across, -up, rng.uniform(0.35, 0.6)], np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def _lens(canvas: Canvas, rng: np.random.Generator) -> None:
    """A little softness, and corners darker than the middle."""
    canvas.blur(rng.uniform(0.4, 0.6) * canvas.pixel)
    radius2 = ((canvas.x / canvas.aspect - 0.5) ** 2 + (canvas.y - 0.5) ** 2) * 2
    canvas.dim(1 - rng.uniform(0.1, 0.35) * radius2)


def _exposure(canvas: Canvas, rng: np.random.Generator) -> np.float32:
    """Auto exposure: the highlights near the white level, give or take, so that some pictures clip."""
    light = canvas.rgb.max(axis=0)[::2, ::2]
    most, brightest = np.percentile(light, [70, rng.uniform(96, 99.7)])
    return np.float32(min(0.85 * 2 ** rng.normal(-0.05, 0.3) / brightest, 0.8 / most))
