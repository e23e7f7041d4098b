"""What the demo pictures show. A scene paints a whole canvas, back to front; chance decides its layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from c5.colorimetry.spectra import read_spectra
from c5.demo.canvas import Canvas, smoothstep
from c5.demo.choices import pick
from c5.demo.land import (
    paint_grass,
    paint_ground,
    paint_hill,
    paint_mountains,
    paint_ranges,
    paint_shore,
    paint_sky,
    paint_spruce,
    paint_tree,
    paint_water,
    paint_wood,
    swell,
)
from c5.demo.lights import INDOORS, OUTDOORS
from c5.demo.people import paint_backdrop, paint_person
from c5.demo.plants import paint_flower, paint_leaves, paint_stalks, paint_undergrowth
from c5.demo.things import (
    paint_ball,
    paint_books,
    paint_bottle,
    paint_mug,
    paint_shelf,
    paint_table,
    paint_towel,
    paint_umbrella,
    paint_wall,
)
from c5.demo.town import paint_car, paint_houses, paint_road


def paint_hills(canvas: Canvas, rng: np.random.Generator) -> None:
    """Fields and trees in front of wooded hills."""
    horizon = rng.uniform(0.38, 0.56)
    paint_sky(canvas, rng, horizon)
    paint_ranges(canvas, rng, horizon)
    crop, dry = pick(
        rng, [("grass", "dry grass"), ("young leaf", "soil"), ("grass", "buttercup"), ("dry grass", "grass")]
    )
    paint_ground(canvas, rng, horizon, crop, dry)
    paint_wood(canvas, rng, horizon + 0.015, rng.uniform(0.04, 0.08))
    for base in np.sort(horizon + 0.02 + rng.uniform(0.02, 0.3, rng.integers(2, 6)) ** 1.3).tolist():
        paint_tree(canvas, rng, rng.uniform(0, canvas.aspect), base, 0.12 + 1.25 * (base - horizon))
    if rng.random() < 0.6:
        paint_grass(canvas, rng)


def paint_lake(canvas: Canvas, rng: np.random.Generator) -> None:
    """Mountains over still water."""
    horizon = rng.uniform(0.45, 0.6)
    paint_sky(canvas, rng, horizon)
    paint_mountains(canvas, rng, horizon, rng.uniform(0.14, 0.32))
    paint_ranges(canvas, rng, horizon + 0.01)
    paint_wood(canvas, rng, horizon + 0.01, rng.uniform(0.03, 0.07))
    paint_water(canvas, rng, horizon + 0.01, rng.uniform(0.002, 0.012))
    if rng.random() < 0.6:
        paint_shore(canvas, rng)


def paint_beach(canvas: Canvas, rng: np.random.Generator) -> None:
    """Sea and sand, sometimes a headland or towels."""
    horizon = rng.uniform(0.3, 0.42)
    paint_sky(canvas, rng, horizon)
    if rng.random() < 0.5:
        slope = (canvas.x - canvas.aspect * rng.uniform(0.2, 0.6)) * float(rng.choice([-0.25, 0.25]))
        paint_hill(
            canvas,
            rng,
            horizon - np.maximum(slope, -0.02) - 0.01 * canvas.ridge(rng, 4),
            horizon,
            ("rock", "leaf"),
            0.35,
        )
    sea = canvas.crop(0, horizon, canvas.aspect, 1)
    depth = np.maximum(sea.y - horizon, 0.004)
    waves = swell(sea, rng, depth)
    near = smoothstep(0.05, 0.3, depth + 0 * sea.x)
    sea.paint(1.0, {"deep water": 2.2 * (1 - near), "shallow water": 1.3 * near}, 0.8 + 0.16 * waves)
    sea.shine(0.3 * (1 - near) * (0.7 + 0.3 * waves), 0.15, 0.4)
    line = horizon + rng.uniform(0.12, 0.26) + 0.06 * (sea.x - 0.7) * rng.normal() + 0.015 * sea.ridge(rng, 2, 4)
    foam = sea.noise(rng, 24, 5, 0.8, 3)
    for reach in (-0.1, -0.055, -0.005):
        crest = line + reach + 0.006 * sea.ridge(rng, 2, 4) + 0.003 * foam
        breaking = smoothstep(-0.3, 0.7, sea.ridge(rng, 2.5, 3) + 0.3 * foam + 12 * reach + 0.8)
        from_crest = (sea.y - crest) / (0.35 * (crest - horizon) ** 2 + 0.004)
        sea.dim(1 - 0.35 * breaking * np.exp(-((from_crest - 1.2) ** 2)))
        sea.paint(breaking * np.exp(-(from_crest**2)) * smoothstep(-1.2, 0.8, foam), {"cloud": 0.8}, 0.9)
    sand = sea.inside(line - sea.y, 0.01)
    grain = sea.noise(rng, 50, 4, 0.9, 1.6)
    dunes = sea.noise(rng, 4, 6, 0.6, 2.5)
    wet = smoothstep(0.08, 0.0, sea.y - line - 0.01 * foam)
    lit = np.clip(sea.relief(0.03 * dunes + 0.006 * grain * depth) * 0.8 + 0.15 + 0.02 * grain, 0, 1)
    sea.paint(sand, {"sand": (1 - wet) * (1 + 0.06 * dunes), "wet sand": wet}, lit)
    sea.shine(sand * wet * 0.3, 0.15, 0.45)
    sea.paint(np.exp(-(((sea.y - line) / 0.006) ** 2)) * smoothstep(-0.8, 0.6, foam), {"cloud": 0.85}, 0.95)
    for base in np.sort(rng.uniform(0.78, 0.95, rng.integers(0, 5))).tolist():
        item = pick(rng, [paint_towel, paint_umbrella])
        item(canvas, rng, rng.uniform(0.1, canvas.aspect - 0.3), base)


def paint_snow(canvas: Canvas, rng: np.random.Generator) -> None:
    """Snow fields with spruces and the blue shadows between them."""
    horizon = rng.uniform(0.3, 0.5)
    paint_sky(canvas, rng, horizon)
    paint_mountains(canvas, rng, horizon, rng.uniform(0.1, 0.24))
    paint_wood(canvas, rng, horizon + 0.01, rng.uniform(0.03, 0.08), ("conifer", "dark rock"))
    snow = canvas.crop(0, horizon - 0.02, canvas.aspect, 1)
    drift = snow.noise(rng, 1.6, 6, 0.42, 2.6)
    edge = snow.inside(horizon + 0.012 * snow.ridge(rng, 1.5, 3) - snow.y)
    lit = np.clip(snow.relief(0.09 * drift) * 0.95 + 0.06, 0, 1)
    snow.paint(edge, {"snow": 1.0}, lit)
    spots = np.sort(horizon + rng.uniform(0.01, 0.45, rng.integers(5, 12)) ** 1.5)
    for base in spots.tolist():
        paint_spruce(canvas, rng, rng.uniform(0, canvas.aspect), base, 0.1 + 1.2 * (base - horizon))


def paint_street(canvas: Canvas, rng: np.random.Generator) -> None:
    """A street between two rows of houses."""
    middle, level = canvas.aspect * rng.uniform(0.35, 0.65), rng.uniform(0.5, 0.62)
    paint_sky(canvas, rng, level)
    paint_wood(canvas, rng, level + 0.01, 0.06)
    eye, left, right = 1.7, rng.uniform(6, 9), rng.uniform(6, 9)  # meters
    paint_road(canvas, rng, middle, level, left, right, eye)
    paint_houses(canvas, rng, middle, level, -left, eye)
    paint_houses(canvas, rng, middle, level, right, eye)
    trees = rng.random() < 0.7
    for meters in np.sort(rng.uniform(9, 45, rng.integers(3, 10)))[::-1].tolist():
        side, reach = (-1, left) if rng.random() < 0.5 else (1, right)
        foot = level + eye / meters
        if trees and rng.random() < 0.5:
            paint_tree(canvas, rng, middle + side * (reach - 1.4) / meters, foot, rng.uniform(4, 6) / meters)
        else:
            paint_car(canvas, rng, middle + side * (reach - 3.4) / meters, foot, 1.8 / meters)
    air = np.exp(-(((canvas.x - middle) / 0.2) ** 2) - ((canvas.y - level) / 0.12) ** 2)
    canvas.shine(0.35 * air, 0.4, 0.3)


def paint_portrait(canvas: Canvas, rng: np.random.Generator) -> None:
    """Head and shoulders in front of a background out of focus."""
    paint_backdrop(canvas, rng)
    paint_person(canvas, rng, canvas.aspect * rng.uniform(0.36, 0.64), rng.uniform(0.38, 0.46), rng.uniform(0.24, 0.31))


def paint_still_life(canvas: Canvas, rng: np.random.Generator) -> None:
    """Fruit, bottles and cups on a table by a wall."""
    edge = rng.uniform(0.42, 0.58)
    wall = pick(
        rng, ["white plaster", "cream plaster", "ochre plaster", "TCS05", "gray cloth", "concrete", "slate", "TCS02"]
    )
    paint_wall(canvas, rng, wall)
    paint_table(canvas, rng, edge, pick(rng, ["oak", "pine", "walnut", "white cloth", "red cloth", "denim"]))
    places = rng.permutation(5)[: rng.integers(1, 5)]
    for place, back in zip(places.tolist(), np.sort(rng.uniform(0.05, 0.17, places.size)).tolist(), strict=True):
        kind = pick(rng, [paint_bottle, paint_mug, paint_books, paint_bottle, paint_mug])
        kind(canvas, rng, canvas.aspect * (0.12 + 0.19 * place + rng.uniform(-0.04, 0.04)), edge + back)
    fruit = pick(
        rng,
        [("apple", "green apple"), ("orange", "lemon"), ("tomato", "lemon"), ("plum", "apple"), ("orange", "apple")],
    )
    heap = rng.uniform(0.3, canvas.aspect - 0.3)
    for base in np.sort(rng.uniform(edge + 0.2, 0.93, rng.integers(3, 8))).tolist():
        paint_ball(
            canvas, rng, heap + 0.22 * rng.normal(), base, rng.uniform(0.07, 0.1) * (0.5 + base), pick(rng, fruit)
        )


def paint_bookshelf(canvas: Canvas, rng: np.random.Generator) -> None:
    """Rows of book spines."""
    wood = pick(rng, ["oak", "pine", "walnut", "white plaster"])
    canvas.paint(1.0, {wood: 0.35}, 0.25)
    rows = int(rng.integers(2, 4))
    pitch = 1.04 / rows
    for row in range(rows):
        paint_shelf(canvas, rng, wood, row * pitch - 0.02, (row + 1) * pitch - 0.06)
    spot = (canvas.x - canvas.aspect * rng.uniform(0.2, 0.8)) ** 2 + (canvas.y - rng.uniform(0.1, 0.6)) ** 2
    canvas.dim(0.5 + 0.5 * np.exp(-spot / rng.uniform(0.3, 1.0)))


def paint_foliage(canvas: Canvas, rng: np.random.Generator) -> None:
    """Leaves close up, sharp in front of blurred ones."""
    kinds = pick(
        rng,
        [
            ("leaf", "young leaf"),
            ("dark leaf", "leaf"),
            ("olive leaf", "young leaf"),
            ("leaf", "yellow leaf"),
            ("dark leaf", "autumn leaf"),
        ],
    )
    paint_undergrowth(canvas, rng, kinds)
    paint_leaves(canvas, rng, kinds, 22, 0.16)
    canvas.blur(0.012)
    canvas.dim(0.8)
    paint_leaves(canvas, rng, kinds, 38, 0.2)


def paint_flowers(canvas: Canvas, rng: np.random.Generator) -> None:
    """Flowers over blurred grass."""
    paint_undergrowth(canvas, rng, ("grass", "young leaf"))
    bloom = pick(
        rng,
        [
            ("poppy", "daisy"),
            ("cornflower", "poppy"),
            ("buttercup", "daisy"),
            ("pink petal", "cornflower"),
            ("daisy", "pink petal"),
        ],
    )
    for _ in range(14):
        paint_flower(
            canvas, rng, rng.uniform(0, canvas.aspect), rng.uniform(0.05, 0.9), rng.uniform(0.025, 0.05), bloom
        )
    canvas.blur(rng.uniform(0.01, 0.02))
    paint_stalks(canvas, rng, ("grass", "leaf"), 36)
    for base in np.sort(rng.uniform(0.15, 0.85, rng.integers(5, 11))).tolist():
        paint_flower(canvas, rng, rng.uniform(0, canvas.aspect), base, rng.uniform(0.05, 0.09) * (0.6 + base), bloom)


SCENES: dict[str, Callable[[Canvas, np.random.Generator], None]] = {
    "hills": paint_hills,
    "still life": paint_still_life,
    "street": paint_street,
    "portrait": paint_portrait,
    "lake": paint_lake,
    "bookshelf": paint_bookshelf,
    "foliage": paint_foliage,
    "beach": paint_beach,
    "snow": paint_snow,
    "flowers": paint_flowers,
}


OPEN_AIR = ("sun", "low sun", "overcast")
SCENE_LIGHTS: dict[str, tuple[str, ...]] = {
    "hills": OPEN_AIR,
    "still life": INDOORS,
    "street": OPEN_AIR,
    "portrait": OUTDOORS + INDOORS,
    "lake": OPEN_AIR,
    "bookshelf": INDOORS,
    "foliage": OUTDOORS,
    "beach": OPEN_AIR,
    "snow": OPEN_AIR,
    "flowers": OUTDOORS,
}
"""Families of lights that suit each scene."""


def paint_chart(canvas: Canvas, rng: np.random.Generator) -> None:
    """Stand a 24-patch color chart in a lower corner, in full light, and mask it."""
    width = rng.uniform(0.36, 0.5)
    pitch = width / 6.4
    left = rng.random() < 0.5
    middle = width * 0.62 if left else canvas.aspect - width * 0.62
    base = 0.97 - 2.3 * pitch
    turn = rng.uniform(-0.12, 0.12)
    area = canvas.crop(middle - 0.65 * width, base - 0.5 * width, middle + 0.65 * width, 1)
    dx, dy = area.x - middle, area.y - base
    u, v = (dx * np.cos(turn) + dy * np.sin(turn)) / pitch + 3, (dy * np.cos(turn) - dx * np.sin(turn)) / pitch + 2
    u, v = u.astype(np.float32), v.astype(np.float32)
    frame = np.maximum(np.abs(u - 3) - 3.2, np.abs(v - 2) - 2.2) * pitch
    area.dim(1 - 0.6 * smoothstep(0.03, -0.01, np.maximum(np.abs(u - 3.1) - 3.2, np.abs(v - 2.3) - 2.2) * pitch))
    area.paint(area.inside(frame), {"black cloth": 1.2}, 0.9)
    colors = np.stack([area.main[f"chart {name}"] for name in read_spectra("chart")])
    index = np.clip(np.floor(v), 0, 3).astype(np.int32) * 6 + np.clip(np.floor(u), 0, 5).astype(np.int32)
    gap = np.maximum(np.abs(u - np.floor(u) - 0.5), np.abs(v - np.floor(v) - 0.5)) - 0.42
    gap = np.maximum(gap, np.maximum(np.abs(u - 3) - 2.92, np.abs(v - 2) - 1.92))
    cover = area.inside(gap * pitch)
    area.rgb[...] += cover * (0.95 * colors[index].transpose(2, 0, 1) - area.rgb)
    area.mask[...] &= frame > 0.02
