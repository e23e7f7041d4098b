"""Houses and cars in one-point perspective. Lengths are in meters where the text says so."""

from __future__ import annotations

import numpy as np

from c5.demo.canvas import Canvas, smoothstep, tile
from c5.demo.choices import CLOTHS, pick


def paint_road(
    canvas: Canvas, rng: np.random.Generator, middle: float, level: float, left: float, right: float, eye: float
) -> None:
    """A road and its pavements, seen from `eye` meters above it towards the point (middle, level).

    The houses stand `left` and `right` meters beside the eye; those on the side of the sun throw a shadow.
    """
    road = canvas.crop(0, level, canvas.aspect, 1)
    distance = eye / np.maximum(road.y - level, 0.006)
    across = (road.x - middle) * distance
    clear = np.minimum(1, 3 / distance)
    grain = road.plane(tile(rng, 64, 2, 0.9), across / 2, distance / 2 + 0 * road.x) * clear
    stains = road.plane(tile(rng, 8, 3), across / 14, distance / 30 + 0 * road.x)
    walk = smoothstep(0.0, 0.15, np.abs(across + (left - right) / 2) - (left + right) / 2 + 2.2)
    sunny_right = bool(canvas.toward[0] < 0)
    tall = rng.uniform(0.05, 0.7) * (left + right)
    edge = across + left if sunny_right else right - across
    sun = 1 - canvas.light.hardness * smoothstep(0.2, -0.2, edge - tall + 0.5 * stains)
    tone = 1 + 0.14 * grain + 0.12 * stains
    road.paint(1.0, {"asphalt": (1 - walk) * tone, "concrete": walk * tone * 0.8}, 0.85 * sun)
    kerb = np.exp(-((walk - 0.5) ** 2) / 0.02)
    road.dim(1 - 0.4 * kerb * clear)
    dashes = (np.abs(across + (left - right) / 2) < 0.08) & ((distance * 0.35) % 1 < 0.5)
    road.paint(dashes * 0.75 * clear, {"paper": 0.9}, 0.85 * sun)


def paint_houses(
    canvas: Canvas, rng: np.random.Generator, middle: float, level: float, wall_at: float, eye: float
) -> None:
    """One side of a street; the fronts stand `wall_at` meters to the right of the eye, to the left if negative."""
    side, reach = (-1, -wall_at) if wall_at < 0 else (1, wall_at)
    wall = canvas.crop(0, 0, middle, 1) if side < 0 else canvas.crop(middle, 0, canvas.aspect, 1)
    distance = reach / np.maximum(np.abs(wall.x - middle), 0.02)  # (1, width)
    above = (level - wall.y) * distance + eye
    frontage, storey = rng.uniform(6, 10), rng.uniform(2.9, 3.4)
    house = np.floor(distance / frontage).astype(np.int32) % 7
    floors = rng.integers(2, 5) + rng.integers(0, 2, 7)
    far = smoothstep(25, 60, distance)
    eaves = (storey * floors + 0.6).astype(np.float32)[house] * (1 - far) + 2.5 * storey * far
    along = distance % frontage
    clear = np.minimum(1, 14 / distance).astype(np.float32)
    weather = wall.plane(tile(rng, 8, 5, 0.65), distance / 9 + 0 * above, above / 9)
    names = [
        "brick",
        "pale brick",
        "ochre plaster",
        "cream plaster",
        "pink plaster",
        "white plaster",
        "concrete",
        "TCS02",
    ]
    chosen = [pick(rng, names) for _ in range(7)]
    facing = wall.lambert(-float(side), 0.0, 0.25)
    under = smoothstep(0.0, 0.9, eaves - above)
    lit = facing * (0.25 + 0.75 * under) * (1 - 0.25 * smoothstep(1.2, 0.0, above))
    courses = 1 - 0.22 * clear * (np.abs((above / 0.22) % 1 - 0.5) > 0.4)
    cover = wall.inside(np.maximum(above - eaves, -above) / distance)
    cover *= smoothstep(0.015, 0.03, np.abs(wall.x - middle))
    tone = (1 + 0.1 * weather) * (0.85 + 0.15 * smoothstep(0, 2.5, above))
    masks = {name: np.isin(house, [i for i in range(7) if chosen[i] == name]) for name in dict.fromkeys(chosen)}
    wall.paint(cover, {n: m * tone * (courses if "brick" in n else 1) for n, m in masks.items()}, lit)
    # Roofs lean back from the eaves.
    roof = wall.inside(np.maximum(eaves - above, above - eaves - 1.5) / distance) * (cover < 0.5)
    tiles = 0.85 + 0.15 * np.sin(above * 20) * clear
    wall.paint(roof, {pick(rng, ["terracotta", "slate", "brick"]): tiles + 0.1 * weather}, 0.3 + 0.6 * facing)
    # Windows, their frames, and a shop or a door below.
    pane = frontage / rng.integers(2, 4)
    s, t = along % pane - 0.5 * pane, above % storey - 0.55 * storey
    upper = (above > storey) & (above < eaves - 0.5)
    frame = np.maximum(np.abs(s) - 0.62, np.abs(t) - 0.85)
    wall.paint(wall.inside(frame / distance) * upper * cover, {"white plaster": 0.9}, lit)
    glass = np.maximum(np.maximum(np.abs(s) - 0.5, np.abs(t) - 0.73), 0.05 - np.minimum(np.abs(s), np.abs(t - 0.25)))
    index = np.floor(distance / pane).astype(np.int32) * 7 + np.floor(above / storey).astype(np.int32) * 3
    curtain = rng.standard_normal(64, dtype=np.float32)[index % 64]
    panes = wall.inside(glass / distance) * upper * cover
    wall.paint(panes, {"slate": 0.25, "white cloth": 0.3 * smoothstep(0.2, 0.6, curtain)}, 0.3)
    wall.shine(panes * 0.4, 0.1, 0.35 * (0.6 + 0.4 * np.sin(curtain * 5 + t)))
    shop = np.maximum(np.abs(s) - 0.38 * pane, np.abs(above - 1.15) - 1.1)
    wall.paint(wall.inside(shop / distance) * cover, {"slate": 0.4, pick(rng, CLOTHS): 0.25}, 0.35 + 0.2 * t)
    sign = np.abs(above - 2.55) - 0.22
    wall.paint(wall.inside(sign / distance) * cover * (house % 2), {pick(rng, CLOTHS): 1.0}, lit)


def paint_car(canvas: Canvas, rng: np.random.Generator, x: float, base: float, width: float) -> None:
    """A parked car seen from behind."""
    ground = canvas.crop(x - width, base - 0.2 * width, x + width, base + 0.2 * width)
    ground.shadow(0.95 * np.exp(-(((ground.x - x) / (0.6 * width)) ** 6) - ((ground.y - base) / (0.1 * width)) ** 2))
    area = canvas.crop(x - 0.7 * width, base - width, x + 0.7 * width, base + 0.05 * width)
    u, v = np.abs(area.x - x) / width, (base - area.y) / width
    area.paint(area.inside(np.maximum(np.abs(u - 0.38) - 0.09, v - 0.2) * width) * (v > 0), {"black cloth": 0.8}, 0.3)
    paint = pick(
        rng, ["red cloth", "steel", "white plaster", "slate", "TCS12", "wine cloth", "gray cloth", "black cloth"]
    )
    shape = np.maximum(np.maximum(u - 0.5 + 0.22 * np.maximum(v - 0.45, 0) ** 0.8, v - 0.78 + 0.5 * u**4), 0.12 - v)
    lit = np.clip(area.lambert((area.x - x) / width, -0.35 - 0.5 * (v > 0.45), 0.8) + 0.1 * v, 0, 1)
    body = area.inside(shape * width)
    area.paint(body, {paint: 1.0}, lit)
    glass = area.inside(np.maximum(u - 0.4 + 0.25 * np.maximum(v - 0.45, 0), np.abs(v - 0.6) - 0.11) * width)
    area.paint(glass, {"slate": 0.25}, 0.3)
    area.shine(0.45 * glass, 0.1, 0.1 + 0.5 * smoothstep(0.5, 0.7, v))
    area.paint(area.inside(np.maximum(np.abs(u - 0.42) - 0.06, np.abs(v - 0.4) - 0.05) * width), {"poppy": 0.9}, 0.6)
    area.paint(area.inside(np.maximum(u - 0.13, np.abs(v - 0.3) - 0.03) * width), {"paper": 0.8}, lit)
    area.dim(1 - 0.5 * body * smoothstep(0.22, 0.12, v))
    area.glint(0.35 * body * np.exp(-(((v - 0.45) / 0.02) ** 2) - ((u - 0.15) / 0.2) ** 2) * canvas.light.hardness)
