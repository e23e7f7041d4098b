"""Walls, tables, and what stands on them or lies on a beach."""

from __future__ import annotations

import numpy as np

from c5.demo.canvas import Canvas, smoothstep, tile
from c5.demo.choices import CLOTHS, pair, pick


def paint_wall(canvas: Canvas, rng: np.random.Generator, surface: str) -> None:
    rough = canvas.noise(rng, 3, 6, 0.55)
    x, y = canvas.aspect * (0.5 + 0.8 * float(canvas.toward[0])), rng.uniform(0.0, 0.4)
    falloff = 1 / (1 + ((canvas.x - x) ** 2 + (canvas.y - y) ** 2) / rng.uniform(0.5, 1.4))
    canvas.paint(1.0, {surface: 1 + 0.025 * rough}, np.clip(falloff * (0.9 + 0.04 * rough), 0, 1))


def paint_table(canvas: Canvas, rng: np.random.Generator, edge: float, surface: str) -> None:
    table = canvas.crop(0, edge, canvas.aspect, 1)
    away = 0.6 / (table.y - edge + 0.45)
    u, v = (table.x - canvas.aspect / 2) * away, away + 0 * table.x
    cloth = "cloth" in surface or surface == "denim"
    if cloth:
        grain = 0.4 * table.plane(tile(rng, 32, 3, 0.9), u * 1.5, v * 1.5)
    else:
        warp = table.plane(tile(rng, 4, 2, 0.5, 1), u * 0.3, v * 0.3)
        grain = np.sin(60 * v + 7 * warp) * 0.4 + table.plane(tile(rng, 64, 2, 0.8, 8), u * 0.7, v * 1.4)
        plank = np.abs((v * 4.5) % 1 - 0.5) > 0.485
        grain = grain - 2.5 * plank
    x = canvas.aspect * (0.5 + 0.6 * float(canvas.toward[0]))
    lit = np.clip(0.95 - 0.45 * np.abs(table.x - x) - 0.2 * (1 - away), 0.1, 1)
    table.paint(table.inside(edge - table.y, 0.004), {surface: 1 + 0.1 * grain}, lit)
    if not cloth:
        table.glint(0.05 * np.exp(-(((table.x - x) / 0.35) ** 2) - ((table.y - edge) / 0.2) ** 2))
    seam = canvas.crop(0, edge - 0.1, canvas.aspect, edge + 0.02)
    seam.dim(1 - 0.3 * np.exp(-np.abs(seam.y - edge) / 0.025))


def paint_shelf(canvas: Canvas, rng: np.random.Generator, wood: str, top: float, bottom: float) -> None:
    """Books side by side between `top` and the board at `bottom`."""
    back = canvas.crop(0, top, canvas.aspect, bottom)
    back.paint(1.0, {wood: 0.5}, 0.15 + 0.25 * smoothstep(top, bottom, back.y + 0 * back.x))
    x = -rng.uniform(0, 0.05)
    space = bottom - top
    while x < canvas.aspect:
        if rng.random() < 0.04:
            x += rng.uniform(0.03, 0.12)
            continue
        width, height = rng.uniform(0.02, 0.075) * (0.5 + 1.2 * space), space * rng.uniform(0.6, 0.93)
        area = canvas.crop(x, bottom - height - 0.01, x + width, bottom)
        nx = np.clip((area.x - x - width / 2) / (width / 2), -1, 1)
        cover = area.inside(
            np.maximum(np.abs(area.x - x - width / 2) - width / 2 + 0.001, bottom - height + 0.01 * nx**2 - area.y)
        )
        lit = np.clip(
            area.lambert(0.55 * nx, 0.0, 1.0) * 0.75 * (1 - 0.6 * nx**4) * (1 - 0.5 * np.exp(-(area.y - top) / 0.05)),
            0.02,
            1,
        )
        binding, ink = pair(rng, (*CLOTHS, "paper", "brass", "walnut", "TCS03"))
        up = (bottom - area.y) / height
        first, second = rng.uniform(0.08, 0.3), rng.uniform(0.6, 0.9)
        bands = np.exp(-(((up - first) / 0.02) ** 2)) + np.exp(-(((up - second) / 0.02) ** 2))
        title = 0.8 * (np.abs(nx) < 0.35) * (np.abs(up - 0.5) < 0.18) * (np.sin(up * rng.uniform(150, 260)) > -0.2)
        printed = np.clip(bands + title * (rng.random() < 0.6), 0, 0.9)
        area.paint(cover, {binding: 1 - printed, ink: 0.9 * printed}, lit)
        x += width
    board = canvas.crop(0, bottom, canvas.aspect, bottom + 0.045)
    grain = board.noise(rng, 40, 3, 0.7, 12)
    board.paint(
        1.0,
        {wood: 1 + 0.12 * grain},
        np.clip(0.8 - 0.25 * smoothstep(bottom, bottom + 0.045, board.y + 0 * board.x), 0, 1),
    )
    canvas.crop(0, bottom + 0.045, canvas.aspect, bottom + 0.06).dim(0.6)


def _cast_shadow(canvas: Canvas, x: float, base: float, width: float, height: float) -> None:
    """The soft shadow of a standing thing, and the darkness where it touches the table."""
    lean = -float(canvas.toward[0]) * (0.25 + 0.9 * height)
    span = 2 * width + abs(lean) + 0.1
    area = canvas.crop(x - span, base - 0.16, x + span, base + 0.1)
    along = np.clip((area.x - x) / (lean + 1e-4), 0, 1)
    across = (area.y - base + 0.1 * along) / (0.32 * width + 0.03 * along)
    beyond = np.maximum(np.abs(area.x - x - along * lean) - 0.85 * width, 0) / (0.03 + 0.35 * width)
    area.shadow(np.exp(-(across**2) - beyond**2) * (0.95 - 0.55 * along))
    area.dim(1 - 0.6 * np.exp(-(((area.x - x) / (0.9 * width)) ** 4) - ((area.y - base) / (0.16 * width + 0.008)) ** 2))


def paint_ball(canvas: Canvas, rng: np.random.Generator, x: float, base: float, radius: float, surface: str) -> None:
    _cast_shadow(canvas, x, base - 0.12 * radius, radius, 2 * radius)
    y = base - radius
    area = canvas.crop(x - 1.2 * radius, y - 1.2 * radius, x + 1.2 * radius, y + 1.2 * radius)
    nx, ny = (area.x - x) / radius, (area.y - y) / (0.94 * radius)
    room = 1 - nx**2 - ny**2
    nz = np.sqrt(np.maximum(room, 0))
    skin = area.noise(rng, 2.5 / radius, 5, 0.6)
    lit = np.clip(area.lambert(nx, ny, nz) * 0.95 - 0.15 * smoothstep(0.3, 1.0, ny), 0, 1)
    ripe = 0.35 * smoothstep(0.0, 1.5, skin + 0.8 * ny * rng.normal()) if surface == "apple" else 0.0 * skin
    area.paint(
        area.inside((np.hypot(nx, ny) - 1) * radius),
        {surface: (1 - ripe) * (1 + 0.05 * skin), "yellow leaf": ripe},
        lit,
    )
    half = area.toward + np.array([0, 0, 1], np.float32)
    half /= float(np.linalg.norm(half))
    mirror = np.maximum(nx * half[0] + ny * half[1] + nz * half[2], 0) * (room > 0)
    area.glint(0.55 * mirror**60 + 0.06 * mirror**8)
    stem = np.exp(-((nx / 0.18) ** 2) - ((ny + 0.82) / 0.1) ** 2)
    area.dim(1 - 0.6 * stem * (room > 0))


def paint_bottle(canvas: Canvas, rng: np.random.Generator, x: float, base: float) -> None:
    width, height = rng.uniform(0.05, 0.08), rng.uniform(0.32, 0.5)
    _cast_shadow(canvas, x, base, width, height)
    area = canvas.crop(x - 1.2 * width, base - height, x + 1.2 * width, base + 0.02)
    up = (base - area.y) / height
    outline = width * (0.3 + 0.7 * smoothstep(0.78, 0.52, up))
    nx = np.clip((area.x - x) / outline, -1, 1)
    nz = np.sqrt(1 - nx**2)
    foot = base - 0.25 * width * (1 - nz)
    cover = area.inside(
        np.maximum(
            np.maximum(np.abs(area.x - x) - outline, area.y - base + 0.2 * width * (1 - nz)),
            1.2 * area.pixel - (area.y - base + height),
        )
    )
    glass = pick(rng, ["bottle glass", "brown hair", "teal cloth", "white plaster", "slate"])
    lit = np.clip(area.lambert(nx, 0.0, nz) * 0.9 + 0.05, 0, 1)
    area.paint(cover * (0.98 if glass == "white plaster" else 0.9), {glass: 1 + 0.5 * nx**4}, lit)
    label = cover * area.inside(np.maximum(0.14 - up, up - rng.uniform(0.3, 0.42)) * height)
    area.paint(label, {pick(rng, ["paper", "paper", *CLOTHS]): 0.9}, lit)
    streak = np.exp(-(((nx - 0.65 * np.sign(area.toward[0])) / 0.1) ** 2)) * (up > 0.05) * (foot > area.y)
    area.glint(cover * streak * 0.5)


def paint_mug(canvas: Canvas, rng: np.random.Generator, x: float, base: float) -> None:
    width, height = rng.uniform(0.06, 0.085), rng.uniform(0.13, 0.18)
    _cast_shadow(canvas, x, base, width, height)
    area = canvas.crop(x - 2 * width, base - height - 0.03, x + 2 * width, base + 0.02)
    surface = pick(rng, ["white plaster", *CLOTHS])
    nx = np.clip((area.x - x) / width, -1, 1)
    nz = np.sqrt(1 - nx**2)
    lit = np.clip(area.lambert(nx, 0.0, nz) + 0.04, 0, 1)
    handle = (
        np.abs(np.hypot((area.x - x - 1.05 * width) / 1.0, (area.y - base + 0.5 * height) / 1.25) - 0.38 * height)
        - 0.1 * height
    )
    area.paint(area.inside(handle), {surface: 0.9}, 0.7 * lit + 0.1)
    body = np.maximum(
        np.abs(area.x - x) - width, np.maximum(area.y - base + 0.25 * width * (1 - nz), base - height - area.y)
    )
    area.paint(area.inside(body), {surface: 1.0}, lit)
    rim = np.hypot((area.x - x) / width, (area.y - base + height) / (0.26 * width)) - 1
    area.paint(area.inside(rim * 0.26 * width), {surface: 1.0}, 0.9)
    area.paint(area.inside((rim + 0.12) * 0.26 * width), {"walnut": 0.5, surface: 0.15}, 0.35)
    area.glint(area.inside(body) * 0.4 * np.exp(-(((nx - 0.55 * np.sign(area.toward[0])) / 0.09) ** 2)))


def paint_books(canvas: Canvas, rng: np.random.Generator, x: float, base: float) -> None:
    """A stack lying flat."""
    width = rng.uniform(0.16, 0.22)
    _cast_shadow(canvas, x, base, width, 0.12)
    for _ in range(rng.integers(2, 5)):
        thick, shift = rng.uniform(0.025, 0.045), rng.uniform(-0.02, 0.02)
        area = canvas.crop(x - width - 0.05, base - thick - 0.03, x + width + 0.05, base + 0.005)
        cloth = pick(rng, CLOTHS)
        half = width * rng.uniform(0.85, 1.0)
        top = np.maximum(
            np.abs(area.x - x - shift) - half + 0.6 * (base - thick - area.y),
            np.maximum(area.y - base + thick, base - thick - 0.025 - area.y),
        )
        area.paint(area.inside(top), {cloth: 1.0}, 0.9)
        spine = np.maximum(np.abs(area.x - x - shift) - half, np.maximum(area.y - base, base - thick - area.y))
        round_ = 1 - ((area.y - base + thick / 2) / thick * 1.6) ** 2
        area.paint(area.inside(spine), {cloth: 0.9}, np.clip(0.35 + 0.35 * round_ + 0 * area.x, 0, 1))
        band = np.abs(area.x - x - shift - 0.5 * half) - 0.12 * half
        area.paint(
            area.inside(np.maximum(spine, band)) * 0.7,
            {pick(rng, ["paper", "brass"]): 0.8},
            np.clip(0.3 + 0.35 * round_, 0, 1),
        )
        base -= thick


def paint_towel(canvas: Canvas, rng: np.random.Generator, x: float, y: float) -> None:
    area = canvas.crop(x, y - 0.05, x + 0.3, y + 0.06)
    slant = area.x - x - 0.13 - 0.7 * (area.y - y)
    area.dim(1 - 0.4 * np.exp(-(((slant + 0.01) / 0.1) ** 6) - ((area.y - y - 0.008) / 0.042) ** 6))
    crumple = area.noise(rng, 12, 3)
    cover = area.inside(np.maximum(np.abs(slant) - 0.09, np.abs(area.y - y) - 0.035) + 0.002 * crumple)
    stripe = smoothstep(-0.2, 0.2, np.sin(slant * rng.uniform(60, 140)))
    first, second = pair(rng, CLOTHS)
    area.paint(cover, {first: stripe, second: 1 - stripe}, np.clip(0.8 + 0.12 * crumple, 0, 1))


def paint_umbrella(canvas: Canvas, rng: np.random.Generator, x: float, base: float) -> None:
    width, height = 0.24 * base, 0.36 * base
    _cast_shadow(canvas, x - 0.5 * width * float(canvas.toward[0]), base, 0.6 * width, 0.2)
    area = canvas.crop(x - 1.1 * width, base - 1.3 * height, x + 1.1 * width, base)
    area.paint(area.inside(np.abs(area.x - x) - 0.004) * (area.y > base - height), {"steel": 1.2}, 0.7)
    nx = (area.x - x) / width
    rim = base - 0.78 * height - 0.012 * np.abs(np.sin(4.5 * np.pi * nx))
    dome = 1 - nx**2 - ((rim - area.y) / (0.45 * height)) ** 2
    gores = np.floor(4.5 * 2 / np.pi * np.arcsin(np.clip(nx, -1, 1)) + 20) % 2
    nz = np.sqrt(np.maximum(dome, 0))
    lit = np.clip(area.lambert(0.8 * nx, -0.5 - 0.3 * nz, 0.5 * nz) + 0.1, 0, 1)
    cover = area.inside(np.maximum(-dome * 0.2, area.y - rim), 0.002)
    first, second = pair(rng, CLOTHS)
    area.paint(cover, {first: gores, second: 1 - gores}, lit)
