"""Leaves and flowers close up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from c5.demo.canvas import Canvas, smoothstep
from c5.demo.choices import pick


def paint_undergrowth(canvas: Canvas, rng: np.random.Generator, surfaces: Sequence[str]) -> None:
    """A deep, blurred green background with gaps of light."""
    clumps = canvas.noise(rng, 5, 4, 0.6)
    mixed = smoothstep(-0.8, 0.8, canvas.noise(rng, 3, 3))
    lit = np.clip(0.28 + 0.2 * clumps, 0.02, 0.9)
    canvas.paint(1.0, {surfaces[0]: mixed, surfaces[1]: 0.7 * (1 - mixed), "soil": 0.15}, lit)
    gaps = smoothstep(1.1, 2.2, canvas.noise(rng, 4, 3) + 0.8 * (0.5 - canvas.y))
    canvas.shine(0.8 * gaps, 0.55, 0.35)
    canvas.blur(0.018)


def paint_leaves(canvas: Canvas, rng: np.random.Generator, surfaces: Sequence[str], count: int, size: float) -> None:
    order = np.sort(rng.uniform(0, 1, count))
    start = rng.random(2)
    for i, depth in enumerate(order.tolist()):
        length = size * rng.uniform(0.6, 1.25)
        # Roberts' R2 sequence: as irregular as chance, without its holes.
        x, y = (float(start[0]) + 0.7549 * i) % 1 * (canvas.aspect + 0.1) - 0.05, (float(start[1]) + 0.5698 * i) % 1
        angle = rng.uniform(0.2, np.pi - 0.2)
        area = canvas.crop(x - length, y - length, x + length, y + length)
        ca, sa = float(np.cos(angle)), float(np.sin(angle))
        u, v = ((area.x - x) * ca + (area.y - y) * sa) / length, ((area.y - y) * ca - (area.x - x) * sa) / length
        v = v + 0.12 * u * u
        half = 0.34 * np.maximum(1 - u * u, 0) * (1 - 0.35 * u)
        veins = np.sin(34 * (u - 0.9 * np.abs(v))) * smoothstep(0.0, 0.12, np.abs(v))
        height = length * (0.3 * half - 0.9 * v * v + 0.004 * veins + 0.09 * np.abs(v))
        lit = np.clip(
            area.relief(height + rng.normal(0, 0.35) * (area.x - x) + rng.normal(0, 0.3) * (area.y - y)), 0, 1
        )
        lit = lit * (0.35 + 0.65 * depth) + 0.03
        shade = smoothstep(0.07, -0.03, np.abs(v + 0.07) - half + 4 * np.maximum(np.abs(u) - 0.95, 0))
        area.shadow(0.6 * shade)
        age = rng.uniform(0, 1)
        rib = np.exp(-((v / 0.018) ** 2))
        cover = area.inside((np.abs(v) - half) * length)
        area.paint(cover, {surfaces[0]: age * (1 - 0.3 * rib), surfaces[1]: 1 - age + 0.5 * rib}, lit)
        area.glint(cover * 0.18 * smoothstep(0.85, 1.0, lit))


def paint_stalks(canvas: Canvas, rng: np.random.Generator, surfaces: Sequence[str], count: int) -> None:
    for _ in range(count):
        x, bend, top = rng.uniform(-0.1, canvas.aspect + 0.1), rng.normal(0, 0.14), rng.uniform(0.25, 0.85)
        area = canvas.crop(x - abs(bend) - 0.02, top, x + abs(bend) + 0.02, 1)
        up = (1 - area.y) / (1 - top)
        center = x + bend * up * up
        cover = area.inside(np.abs(area.x - center) - 0.008 * (1 - up) - 0.001)
        lit = np.clip(0.3 + 0.5 * up + 18 * (area.x - center) * float(area.toward[0]), 0.05, 1)
        area.paint(cover, {pick(rng, surfaces): rng.uniform(0.7, 1.2)}, lit)


def paint_flower(
    canvas: Canvas, rng: np.random.Generator, x: float, y: float, size: float, surfaces: Sequence[str]
) -> None:
    stem = canvas.crop(x - 0.03, y, x + 0.03, 1)
    center = x + 0.02 * np.sin(4 * (stem.y - y))
    stem.paint(
        stem.inside(np.abs(stem.x - center) - 0.045 * size - 0.001),
        {"grass": 0.8},
        np.clip(0.55 + 20 * (stem.x - center), 0.1, 0.9),
    )
    petals = int(rng.integers(5, 13))
    tilt, turn = rng.uniform(0.5, 1.0), rng.uniform(0, 6.3)
    area = canvas.crop(x - 1.2 * size, y - 1.2 * size, x + 1.2 * size, y + 1.2 * size)
    dx, dy = (area.x - x) / size, (area.y - y) / (size * tilt)
    r, angle = np.hypot(dx, dy), np.arctan2(dy, dx) + turn
    lobes = np.abs(np.cos(angle * petals / 2))
    outline = 0.5 + 0.5 * np.sqrt(lobes)
    height = size * (0.25 * np.sqrt(lobes) * r + 0.35 * r * r * rng.uniform(-1, 1))
    lit = np.clip(area.relief(height) * (0.55 + 0.45 * smoothstep(0.1, 0.7, r)) * (0.7 + 0.3 * lobes), 0.03, 1)
    streaks = 1 + 0.06 * np.sin(angle * petals * 5)
    area.paint(area.inside((r - outline) * size), {pick(rng, surfaces): streaks}, lit)
    heart = smoothstep(0.27, 0.2, r)
    dots = area.noise(rng, 6 / size, 2)
    area.paint(
        heart,
        {pick(rng, ["buttercup", "buttercup", "bark"]): 1 + 0.2 * dots},
        np.clip(0.75 - 0.5 * dy + 0.1 * dots, 0.1, 1),
    )
