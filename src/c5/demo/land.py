"""Sky, hills, trees and water."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from c5.demo.canvas import Canvas, Values, smoothstep, tile
from c5.demo.choices import pick


def paint_sky(canvas: Canvas, rng: np.random.Generator, horizon: float) -> None:
    sky = canvas.crop(0, 0, canvas.aspect, horizon + 0.1)
    depth = np.clip(sky.y / horizon, 0, 1)
    family = canvas.light.family
    if family in {"overcast", "shade"}:
        veil = sky.noise(rng, 1.8, 6, 0.5, 2.5)
        sky.shine(1.0, rng.uniform(0.5, 0.95) * (0.85 + 0.15 * depth + 0.1 * veil))
        return
    haze = depth**2.2 * rng.uniform(0.25, 0.6)
    glow_x = canvas.aspect * (0.5 + 0.9 * float(canvas.toward[0]))
    glow = np.exp(-((sky.x - glow_x) ** 2 + (sky.y - 0.5 * horizon) ** 2) / 0.35)
    warm = 0.35 if family == "low sun" else 0.12
    blue = rng.uniform(0.24, 0.4)
    sky.shine(1.0, 0.75 * haze + warm * glow * (0.4 + depth), blue * (1.1 - 0.45 * depth) + 0.3 * haze)
    # Clouds look flatter and smaller towards the horizon, as a ceiling seen in perspective does.
    away = 0.35 / (1.25 - depth)
    shapes = sky.plane(
        tile(rng, 4, 6, 0.58), (sky.x - 0.7) * away * rng.uniform(0.5, 0.9) + rng.random(), away * 1.1 + 0 * sky.x
    )
    broken = sky.noise(rng, 1.2, 2)
    floor = rng.uniform(-0.2, 1.4)
    thick = smoothstep(floor, floor + 1.1, shapes + 0.6 * broken)
    lit = 0.5 + 0.5 * sky.relief(0.06 * thick + 0.01 * shapes)
    sky.paint(thick * (1 - 0.55 * depth**3), {"cloud": 1.0}, lit)


def paint_hill(
    canvas: Canvas,
    rng: np.random.Generator,
    crest: Values,
    bottom: float,
    surfaces: Sequence[str],
    haze: float,
) -> None:
    """Land below a crest line (1, width), down to `bottom`, seen through haze."""
    land = canvas.crop(0, float(crest.min()) - 0.02, canvas.aspect, bottom + 0.03)
    bumps = land.noise(rng, 9, 6, 0.72, 1.4)
    patches = smoothstep(-0.5, 0.5, land.noise(rng, 5, 5, 0.6, 2.0))
    cover = land.inside(crest - land.y - 0.004 * bumps)
    lit = np.clip(land.relief(0.012 * bumps) * 0.95 + 0.05, 0, 1)
    land.paint(cover, {surfaces[0]: patches, surfaces[1]: 1 - patches}, lit)
    land.shine(cover * haze, 0.28, 0.26)


def paint_ranges(canvas: Canvas, rng: np.random.Generator, horizon: float) -> None:
    count = int(rng.integers(2, 4))
    for i in range(count):
        near = (i + 1) / count
        rise = rng.uniform(0.05, 0.14) * (1.25 - 0.75 * near)
        crest = horizon - rise - 0.55 * rise * canvas.ridge(rng, 1.3, 6, 0.42)
        paint_hill(canvas, rng, crest, horizon, ("conifer", "leaf"), 0.75 * (1 - near) + 0.12)


def paint_mountains(canvas: Canvas, rng: np.random.Generator, horizon: float, height: float) -> None:
    crest = horizon - height - 0.45 * height * canvas.ridge(rng, 1.5, 7, 0.52)
    land = canvas.crop(0, float(crest.min()) - 0.02, canvas.aspect, horizon + 0.03)
    folds = land.noise(rng, 4, 7, 0.6, 0.8)
    creases = 1 - np.abs(land.noise(rng, 6, 5, 0.6, 0.7))
    lit = np.clip(land.relief(0.03 * folds + 0.03 * creases), 0, 1)
    line = horizon - height * rng.uniform(0.3, 1.3)
    white = smoothstep(0.04, -0.04, land.y - line + 0.03 * folds)
    cover = land.inside(crest - land.y)
    land.paint(cover, {"snow": 0.9 * white, "rock": 0.8 * (1 - white), "conifer": 0.3 * (1 - white)}, lit)
    land.shine(cover * (0.3 + 0.3 * smoothstep(horizon - height, horizon, land.y)), 0.25, 0.3)


def paint_ground(canvas: Canvas, rng: np.random.Generator, horizon: float, surface: str, other: str) -> None:
    land = canvas.crop(0, horizon, canvas.aspect, 1)
    below = np.maximum(land.y - horizon + 0.01, 0.006)
    away = 0.2 / below
    u, v = (land.x - land.aspect * 0.5) * away, away + 0 * land.x
    fine = land.plane(tile(rng, 64, 3, 0.9), u * 1.2, v * 0.5) * np.minimum(1, 3.5 * below)
    patches = land.plane(tile(rng, 4, 5, 0.6), u * 0.16, v * 0.16)
    mixed = smoothstep(-0.3, 1.4, patches + 0.35 * fine)
    swell = land.noise(rng, 1.2, 3, 0.5, 2.0)
    lit = np.clip(0.72 + 0.14 * fine + 0.09 * swell, 0, 1)
    land.paint(
        land.inside(horizon + 0.008 * land.ridge(rng, 1.2, 4) - land.y, 0.006), {surface: 1 - mixed, other: mixed}, lit
    )
    if rng.random() < 0.55:  # the shadow of a cloud
        land.shadow(0.8 * smoothstep(0.3, 1.0, land.plane(tile(rng, 4, 3, 0.5), u * 0.1, v * 0.1)))
    if rng.random() < 0.5:  # a path
        bend = rng.uniform(-0.5, 0.5)
        center = land.aspect * rng.uniform(0.3, 0.7) + bend * np.sqrt(below) + rng.uniform(-0.4, 0.4) * below
        track = land.inside(np.abs(land.x - center) - 0.17 * below * (1 + 0.12 * fine), 0.02)
        land.paint(track * (land.y > horizon + 0.02), {pick(rng, ["sand", "soil", "wet sand"]): 0.9 + 0.1 * fine}, lit)


def paint_wood(
    canvas: Canvas,
    rng: np.random.Generator,
    base: float,
    height: float,
    surfaces: Sequence[str] = ("dark leaf", "leaf"),
) -> None:
    """A distant edge of trees along a horizontal line."""
    wood = canvas.crop(0, base - 2.2 * height, canvas.aspect, base + 0.02)
    clumps = wood.noise(rng, 1 / height, 5, 0.7)
    top = base - height * (0.55 + 0.3 * wood.ridge(rng, 0.8 / height, 4, 0.6)) * (1 + 0.6 * wood.ridge(rng, 1.5, 2))
    cover = wood.inside(np.maximum(top - wood.y - 0.2 * height * clumps, wood.y - base))
    mixed = smoothstep(-1, 1, wood.noise(rng, 0.6 / height, 2))
    lit = np.clip(
        wood.relief(0.22 * height * clumps) * smoothstep(base, base - height, wood.y + 0 * wood.x) + 0.08, 0, 1
    )
    wood.paint(cover, {surfaces[0]: mixed, surfaces[1]: 1 - mixed}, lit)
    wood.shine(0.22 * cover, 0.25, 0.25)


def paint_tree(canvas: Canvas, rng: np.random.Generator, x: float, base: float, height: float) -> None:
    width = height * rng.uniform(0.34, 0.48)
    lean = -float(canvas.toward[0]) * height * 0.7
    ground = canvas.crop(x - width + min(lean, 0), base - 0.1 * height, x + width + max(lean, 0), base + 0.1 * height)
    ground.shadow(
        0.85
        * np.exp(-2 * (((ground.x - x - 0.5 * lean) / width) ** 2 + ((ground.y - base) / (0.07 * height)) ** 2) ** 2)
    )
    area = canvas.crop(x - width, base - 1.05 * height, x + width, base + 0.01)
    leaves = area.noise(rng, 8 / height, 5, 0.85)
    trunk = np.abs(area.x - x - 0.004 * leaves) - 0.022 * height * (1 + 0.8 * (area.y - base + height) ** 2)
    area.paint(
        area.inside(np.maximum(np.maximum(trunk, area.y - base), base - 0.55 * height - area.y)),
        {"bark": 1 + 0.2 * leaves},
        area.lambert(0.0, 0.0, 1.0) * 0.6,
    )
    count = 24
    out, angle = np.sqrt(rng.uniform(0.05, 1, count)), rng.uniform(0, 6.3, count)
    radius = width * rng.uniform(0.16, 0.34, count)
    radius[0], out[0] = 0.62 * width, 0
    clumps = np.stack(
        [x + 0.68 * width * out * np.cos(angle), base - height * (0.62 - 0.27 * out * np.sin(angle)), radius]
    )
    across, down, radius = clumps.astype(np.float32)[:, :, None, None]
    room = radius**2 - (area.x - across) ** 2 - (area.y - down) ** 2
    crown = np.sqrt(np.maximum(room.max(axis=0), 0))
    puff = crown / (0.4 * width) + 0.16 * leaves
    cover = smoothstep(0.3, 0.5, puff) * (crown > 0)
    shade = 0.3 + 0.7 * smoothstep(base - 0.25 * height, base - 0.85 * height, area.y + 0 * area.x)
    lit = np.clip((area.relief(0.9 * crown + 0.035 * height * leaves) + 0.04) * shade, 0, 1)
    main, other = pick(
        rng,
        [
            ("leaf", "young leaf"),
            ("leaf", "dark leaf"),
            ("olive leaf", "leaf"),
            ("dark leaf", "leaf"),
            ("yellow leaf", "autumn leaf"),
        ],
    )
    mixed = smoothstep(-0.6, 1.0, leaves)
    area.paint(cover, {main: 1 - mixed, other: mixed}, lit)


def paint_spruce(canvas: Canvas, rng: np.random.Generator, x: float, base: float, height: float) -> None:
    width = height * rng.uniform(0.2, 0.28)
    lean = -float(canvas.toward[0]) * height
    ground = canvas.crop(x - width + min(lean, 0), base - 0.06, x + width + max(lean, 0), base + 0.25 * height)
    along = (ground.x - x) / (lean + 1e-3)
    streak = np.abs(ground.y - base - 0.12 * height * along) - 0.1 * height * (1 - along)
    ground.shadow(ground.inside(np.maximum(streak, np.maximum(-along, along - 1) * abs(lean)), 0.01))
    area = canvas.crop(x - width, base - height, x + width, base)
    needles = area.noise(rng, 12 / height, 4, 0.75, 1.6)
    fall = (area.y - base + height) / height
    tier = (fall * 9 + 0.35 * needles) % 1
    reach = width * (0.06 + 0.85 * fall) * (0.62 + 0.38 * tier)
    cover = area.inside(np.abs(area.x - x) - reach * (1 + 0.2 * needles))
    round_ = np.sqrt(np.maximum(1 - ((area.x - x) / (reach + 0.01)) ** 2, 0))
    lit = np.clip(area.relief(0.35 * width * round_ + 0.02 * height * needles) * (0.35 + 0.65 * tier), 0, 1)
    dusting = 0.5 * smoothstep(0.1, 1.0, needles + tier - 0.4)
    area.paint(cover, {"conifer": 1 - dusting, "snow": dusting}, lit)


def paint_grass(canvas: Canvas, rng: np.random.Generator) -> None:
    """Blades along the lower edge."""
    low = canvas.crop(0, 0.8, canvas.aspect, 1)
    blades = low.noise(rng, 6, 6, 0.85, 0.12)
    cover = smoothstep(-0.2, 0.9, blades + 9 * (low.y - 0.97))
    low.paint(cover * 0.9, {"grass": 0.8, "dark leaf": 0.3}, np.clip(0.5 + 0.25 * blades, 0.05, 1))


def swell(sea: Canvas, rng: np.random.Generator, depth: Values) -> Values:
    away = 0.1 / depth
    waves = sea.plane(tile(rng, 32, 3, 0.7, 4), (sea.x - 0.7) * away * 0.6, away + 0 * sea.x)
    return np.asarray(waves * np.minimum(1, 5 * depth + 0.2), dtype=np.float32)


def paint_water(canvas: Canvas, rng: np.random.Generator, horizon: float, chop: float) -> None:
    """A mirror below `horizon`, blurred by ripples, darker where one looks into it steeply."""
    water = canvas.crop(0, horizon, canvas.aspect, 1)
    depth = np.maximum(water.y - horizon, 0.003)
    waves = swell(water, rng, depth)
    height, width = canvas.mask.shape
    rows = (horizon - 1.02 * depth + (chop + 1.5 * chop * depth) * 1.6 * waves) / canvas.pixel
    columns = np.arange(width) + (0.6 * chop * waves / canvas.pixel)
    mirror = canvas.rgb[
        :, np.clip(rows, 0, height - 1).astype(np.int32), np.clip(columns, 0, width - 1).astype(np.int32)
    ]
    water.rgb[...] = mirror
    steep = np.clip(0.25 + 0.9 * depth + 0.06 * waves, 0, 0.8)
    water.paint(steep, {"deep water": 1.0}, 0.8)
    water.dim(np.clip(1 - 0.8 * np.exp(-depth / 0.006), 0.5, 1))


def paint_shore(canvas: Canvas, rng: np.random.Generator) -> None:
    """Stones and grass at the near side."""
    near = canvas.crop(0, 0.7, canvas.aspect, 1)
    stones = near.noise(rng, 9, 5, 0.6, 1.5)
    side = float(rng.choice([-1, 1]))
    edge = 0.9 - 0.06 * near.ridge(rng, 2, 4) + side * 0.12 * (near.x - 0.75)
    cover = near.inside(edge - near.y - 0.012 * stones)
    grown = smoothstep(0.0, 0.9, near.noise(rng, 5, 4) + 8 * (near.y - 0.93))
    lit = np.clip(near.relief(0.02 * stones), 0, 1)
    near.paint(cover, {"rock": 1 - grown, "grass": grown}, lit)
