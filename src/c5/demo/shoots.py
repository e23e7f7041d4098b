"""Shoots of virtual cameras, whose lights are known: a wedding, a hike, a concert, and a color chart in many lights.

A shoot is a plan of stays, each in one light for a while. In a stay, cameras photograph one thing after another,
each in a few frames that show nearly the same.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from c5.color import as_illuminant
from c5.colorimetry.spectra import black_body, daylight, read_spectra, unit_luminance
from c5.demo.camera import VirtualCamera
from c5.demo.charts import render_charts
from c5.demo.lights import LIGHTS, Light
from c5.demo.photo import Photo, render_photo
from c5.demo.raw_files import Layout, write_dng
from c5.demo.roll import remove_rendered
from c5.errors import ParameterError, WriteError
from c5.io.files import write_file

SIZE = (384, 576)
"""Height and width of a photograph on disk."""
SHAKE = 1 / 12
"""How far apart frames of one thing are, as a part of the height."""
FRAMES = (0.4, 0.3, 0.3)
"""How often a thing is photographed once, twice, three times."""
BRIGHTNESS = {
    "sun": 15.0, "low sun": 12.5, "overcast": 13.0, "shade": 12.0, "window": 8.5, "tungsten": 6.0, "fluorescent": 7.5,
    "led": 6.5,
}  # fmt: skip
"""Exposure values at ISO 100 that lights ask for, give or take a stop."""
CHARTS, CHART_SIZE = "charts", (640, 960)
"""A shoot of one camera, and the height and width of its photographs."""
START = datetime(2026, 6, 20)
TRUTH = "truth.csv"


@dataclass(frozen=True, eq=False)
class Stay:
    """A while in one light."""

    light: Light
    scenes: tuple[str, ...]
    start: float
    """Minutes after midnight."""
    minutes: float


@dataclass(frozen=True, eq=False)
class Frame:
    """A photograph of a shoot."""

    photo: Photo
    light: Light
    camera: VirtualCamera
    time: datetime
    exposure: float
    """The exposure value at ISO 100."""


def _wedding(rng: np.random.Generator) -> list[Stay]:
    """Four lights, to some of which the couple comes back."""
    window, church, garden, hall = (
        LIGHTS[family](rng) for family in ("window", "tungsten", rng.choice(["sun", "overcast"]), "led")
    )
    rooms, outside = ("portrait", "still life", "bookshelf"), ("portrait", "flowers", "foliage", "street")
    return [
        Stay(window, rooms, 600, 70),
        Stay(church, rooms, 720, 55),
        Stay(garden, outside, 782, 70),
        Stay(hall, rooms, 870, 40),
        Stay(garden, outside, 915, 45),
        Stay(window, rooms, 1020, 25),
        Stay(hall, rooms, 1110, 130),
    ]


def _hike(rng: np.random.Generator) -> list[Stay]:
    """From a low sun through noon, woods and clouds to a low sun again, an hour from stop to stop."""
    day = ("low sun", "low sun", "sun", "shade", "sun", "sun", "overcast", "overcast", "shade", "sun", "low sun")
    open_air, wood = ("hills", "lake", "snow", "flowers", "portrait"), ("foliage", "flowers", "portrait")
    return [
        Stay(LIGHTS[family](rng), wood if family == "shade" else open_air, 330 + 80 * stop, rng.uniform(8, 25))
        for stop, family in enumerate(day)
    ]


def _concert(rng: np.random.Generator) -> list[Stay]:
    """Stage lights that change every minute or two, and come back."""
    surfaces = read_spectra("surface")
    gels = {
        "amber": black_body(rng.uniform(2200, 2600)),
        "white": daylight(rng.uniform(5500, 6500)),
        "rose": black_body(3200) * surfaces["pink petal"],
        "blue": daylight(9000) * surfaces["cornflower"] ** 0.5,
    }
    looks = []
    for name, spectrum in gels.items():
        base, beam = LIGHTS["led"](rng), unit_luminance(spectrum)
        looks.append(replace(base, name=name, spectrum=beam, fill=beam))
    stays, minute, look = [], 1200.0, 0
    while minute < 1320:
        look = (look + int(rng.integers(1, len(looks)))) % len(looks)
        minutes = rng.uniform(1, 5)
        stays.append(Stay(looks[look], ("portrait", "still life", "portrait"), minute, minutes))
        minute += minutes
    return stays


SHOOTS: dict[str, tuple[Callable[[np.random.Generator], list[Stay]], int]] = {
    "wedding": (_wedding, 2),
    "hike": (_hike, 1),
    "concert": (_concert, 1),
}
"""What makes the plan of each shoot, and how many cameras it has."""


def render_shoot(name: str, count: int, rng: np.random.Generator, size: tuple[int, int] = SIZE) -> Iterator[Frame]:
    """The photographs of a shoot, in the order of their times."""
    make, n_cameras = SHOOTS[name]
    cameras = [VirtualCamera.random(rng) for _ in range(n_cameras)]
    stays = make(rng)
    lengths = np.array([stay.minutes for stay in stays])
    things: list[tuple[float, int, int]] = []  # minutes after midnight, stay, frames
    while (left := count - sum(frames for *_, frames in things)) > 0:
        stay = int(rng.choice(len(stays), p=lengths / lengths.sum()))
        minute = stays[stay].start + rng.uniform(0, stays[stay].minutes)
        things.append((minute, stay, min(left, 1 + int(rng.choice(len(FRAMES), p=FRAMES)))))
    for minute, stay, frames in sorted(things):
        camera = cameras[int(rng.integers(n_cameras))]
        scene = str(rng.choice(stays[stay].scenes))
        margin = round(size[0] * SHAKE)
        whole = render_photo(camera, scene, stays[stay].light, rng, (size[0] + margin, size[1] + margin))
        seconds, exposure = 60 * minute, BRIGHTNESS[stays[stay].light.family] + rng.normal(0, 0.7)
        for _ in range(frames):
            time = START + timedelta(seconds=round(seconds))
            yield Frame(_cut(whole, size, rng), stays[stay].light, camera, time, exposure)
            seconds += rng.uniform(1, 6)


def _render_charts(count: int, rng: np.random.Generator, size: tuple[int, int]) -> Iterator[Frame]:
    """An afternoon with a color chart: a photograph every five minutes, each in another light."""
    camera = VirtualCamera.random(rng)
    for index, (photo, light) in enumerate(render_charts(camera, count, rng, size)):
        exposure = BRIGHTNESS[light.family] + rng.normal(0, 0.7)
        yield Frame(photo, light, camera, START + timedelta(hours=13, minutes=5 * index), exposure)


def write_shoot(
    folder: Path,
    name: str,
    count: int,
    rng: np.random.Generator,
    size: tuple[int, int] = SIZE,
    *,
    overwrite: bool = False,
) -> Path:
    """Render a shoot as DNG files into a new folder, and the truth about it into `truth.csv`.

    With `overwrite`, it may replace an earlier shoot.
    """
    if name not in (*SHOOTS, CHARTS):
        raise ParameterError(f"no shoot is called {name!r}; there are {', '.join(SHOOTS)} and {CHARTS}")
    if overwrite and os.path.lexists(folder / TRUTH):
        remove_rendered(folder, folder / TRUTH)
    elif folder.exists() and any(folder.iterdir()):
        raise WriteError(f"{folder}: is not empty; write to another folder")
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["path", "camera", "time", "light", "r", "g", "b"])
    frames = _render_charts(count, rng, CHART_SIZE) if name == CHARTS else render_shoot(name, count, rng, size)
    for index, frame in enumerate(frames, 1):
        path = folder / f"{index:04d}.dng"
        write_dng(path, frame.photo, frame.camera, Layout(time=frame.time, exposure=frame.exposure))
        light = as_illuminant(frame.photo.illuminant)
        rows.writerow([path.name, frame.camera.name, frame.time, frame.photo.light, *(f"{x:.6f}" for x in light)])
    return write_file(folder / TRUTH, table.getvalue().encode())


def _cut(whole: Photo, size: tuple[int, int], rng: np.random.Generator) -> Photo:
    """A part of a photograph, as an unsteady hand frames it."""
    top, left = (int(rng.integers(0, have - want + 1)) for have, want in zip(whole.raw.shape, size, strict=False))
    part = (slice(top, top + size[0]), slice(left, left + size[1]))
    image = whole.image
    cut = replace(image, rgb=image.rgb[part], mask=image.mask[part], clipped=image.clipped[part])
    return replace(whole, image=cut, raw=whole.raw[part])
