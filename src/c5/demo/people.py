"""A person, and what is out of focus behind."""

from __future__ import annotations

import numpy as np

from c5.demo.canvas import Canvas, Values, smoothstep
from c5.demo.choices import CLOTHS, pair, pick
from c5.demo.land import paint_ground, paint_sky, paint_wood
from c5.demo.things import paint_shelf, paint_wall


def paint_backdrop(canvas: Canvas, rng: np.random.Generator) -> None:
    if canvas.outdoors:
        horizon = rng.uniform(0.2, 0.7)
        paint_sky(canvas, rng, horizon)
        paint_wood(canvas, rng, horizon + 0.08, 0.3)
        paint_ground(canvas, rng, horizon + 0.05, "grass", pick(rng, ["dry grass", "leaf", "concrete"]))
    else:
        paint_wall(
            canvas,
            rng,
            pick(rng, ["cream plaster", "TCS02", "ochre plaster", "concrete", "gray cloth", "white plaster", "slate"]),
        )
        if rng.random() < 0.6:
            paint_shelf(canvas, rng, "oak", rng.uniform(-0.3, 0.1), rng.uniform(0.4, 0.7))
    canvas.blur(rng.uniform(0.025, 0.045))
    for _ in range(rng.integers(0, 9)):  # lights out of focus
        x, y, r = rng.uniform(0, canvas.aspect), rng.uniform(0, 0.6), rng.uniform(0.015, 0.05)
        spot = canvas.crop(x - 2 * r, y - 2 * r, x + 2 * r, y + 2 * r)
        disc = spot.inside(np.hypot(spot.x - x, spot.y - y) - r, 0.01)
        spot.glint(disc * rng.uniform(0.05, 0.35))


def paint_person(canvas: Canvas, rng: np.random.Generator, x: float, y: float, size: float) -> None:
    """`size` is half the height of the head, (x, y) its center."""
    tone = pick(rng, ["pale skin", "medium skin", "brown skin", "dark skin", "pale skin", "medium skin"])
    hair = pick(rng, ["black hair", "brown hair", "brown hair", "blond hair", "gray hair"])
    long_hair = rng.random() < 0.5
    area = canvas.crop(x - 3 * size, y - 1.6 * size, x + 3 * size, 1)
    u, v = (area.x - x) / size, (area.y - y) / size  # the head is an ellipse |v| < 1, |u| < 0.74
    strands = area.noise(rng, 5 / size, 4, 0.8, 0.22)
    if long_hair:
        mane = np.hypot(u / 1.0, (v - 0.35) / 1.5) - 1 + 0.016 * strands
        area.paint(
            area.inside(mane * size, 0.012),
            {hair: 1 + 0.15 * strands},
            np.clip(0.5 - 0.3 * np.abs(u) + 0.06 * strands, 0.05, 1),
        )
    _paint_body(area, rng, u, v, size, tone)
    head = canvas.crop(x - 1.1 * size, y - 1.4 * size, x + 1.1 * size, y + 1.1 * size)
    u, v = (head.x - x) / size, (head.y - y) / size
    _paint_face(head, rng, u, v, size, tone, hair)
    _paint_hair(head, rng, u, v, size, hair, 1.0 if long_hair else 0.62)


def _paint_face(
    area: Canvas, rng: np.random.Generator, u: Values, v: Values, size: float, tone: str, hair: str
) -> None:
    """An ellipsoid with a jaw, with sockets, nose, lips and cheeks as bumps on it."""
    ear = np.hypot((np.abs(u) - 0.72) / 0.1, (v - 0.02) / 0.2) - 1
    area.paint(area.inside(ear * 0.1 * size), {tone: 0.8}, area.lambert(0.0, 0.0, 1.0) * 0.5)
    half = 0.74 - 0.12 * smoothstep(0.1, 1.0, v) ** 2
    inside = 1 - (u / half) ** 2 - (v / 1.0) ** 2
    w = u - rng.uniform(-0.22, 0.22)  # the face looks a little to the side
    socket = np.exp(-(((np.abs(w) - 0.29) / 0.17) ** 2) - ((v + 0.08) / 0.12) ** 2)
    nose = (
        np.exp(-((w / (0.07 + 0.05 * smoothstep(-0.2, 0.3, v))) ** 2))
        * smoothstep(-0.2, 0.28, v)
        * smoothstep(0.4, 0.28, v)
    )
    lips = np.exp(-((w / 0.22) ** 4) - ((v - 0.565 + 0.5 * w * w) / 0.06) ** 2)
    mouth = np.exp(-((w / 0.24) ** 4) - ((v - 0.57 + 0.9 * w * w) / 0.014) ** 2)
    cheeks = np.exp(-(((np.abs(w) - 0.38) / 0.2) ** 2) - ((v - 0.22) / 0.2) ** 2)
    chin = np.exp(-((w / 0.18) ** 2) - ((v - 0.84) / 0.1) ** 2)
    height = (
        0.78 * np.sqrt(np.maximum(inside, 0)) - 0.15 * socket + 0.24 * nose + 0.05 * lips + 0.05 * cheeks + 0.04 * chin
    )
    lit = np.clip(area.relief(size * height) * 0.75 + 0.3, 0, 1)  # people are asked to turn to the light
    pores = 1 + 0.035 * area.noise(rng, 3 / size, 5, 0.7)
    cover = smoothstep(-0.012, 0.045, inside)
    red = np.clip(0.75 * lips + 0.18 * cheeks + 0.12 * nose, 0, 0.9)
    area.paint(cover, {tone: (1 - red) * pores, "lips": red * (0.9 if tone != "dark skin" else 0.35)}, lit)
    area.glint(cover * 0.12 * smoothstep(0.86, 1.0, lit))
    nostrils = np.exp(-(((np.abs(w) - 0.07) / 0.035) ** 2) - ((v - 0.35) / 0.03) ** 2)
    area.dim(1 - cover * (0.55 * mouth + 0.38 * socket + 0.4 * nostrils))
    eye_u, eye_v = (np.abs(w) - 0.27) / 0.105, (v + 0.06) / 0.038
    eyes = smoothstep(1.15, 0.75, np.hypot(eye_u, eye_v))
    area.paint(eyes * 0.85, {"white cloth": 0.55}, 0.5 * lit + 0.1)
    iris = smoothstep(0.062, 0.045, np.hypot(np.abs(w) - 0.27, v + 0.065)) * eyes
    area.paint(iris, {pick(rng, ["walnut", "bark", "denim", "slate"]): 0.6}, 0.4)
    lid = np.exp(-(((v + 0.105 + 0.03 * (1 - eye_u**2)) / 0.017) ** 2)) * smoothstep(1.4, 0.9, np.abs(eye_u))
    brow = np.exp(-(((v + 0.2 + 0.035 * np.cos(1.3 * (eye_u - 0.2))) / 0.026) ** 2))
    brow *= smoothstep(1.75, 1.0, np.abs(eye_u))
    area.paint(np.clip(0.7 * lid + 0.6 * brow, 0, 0.8), {hair: 0.8}, 0.35)


def _paint_hair(
    area: Canvas, rng: np.random.Generator, u: Values, v: Values, size: float, hair: str, temples: float
) -> None:
    """A cap over the skull down to a hairline, `temples` lower at the sides."""
    strands = area.noise(rng, 5 / size, 4, 0.8, 0.22)
    cap = np.hypot(u / 0.86, (v + 0.12) / 1.04) - 1 + 0.012 * strands
    part = rng.uniform(-0.3, 0.3)
    line = v + 0.52 + 0.12 * np.cos(3 * (u - part)) + 0.02 * strands
    line -= temples * smoothstep(0.42, 0.76, np.abs(u))
    crown = area.inside(np.maximum(cap, line) * size, 0.018)
    dome = np.sqrt(np.maximum(1.05 - (u / 0.86) ** 2 - ((v + 0.12) / 1.04) ** 2, 0))
    gloss = np.clip(area.relief(size * (0.8 * dome + 0.014 * strands)), 0, 1)
    area.paint(crown, {hair: 1 + 0.16 * strands}, gloss * 0.9 + 0.05)
    area.glint(crown * 0.03 * smoothstep(0.75, 1.0, gloss) * np.maximum(1 + 0.6 * strands, 0))


def _paint_body(area: Canvas, rng: np.random.Generator, u: Values, v: Values, size: float, tone: str) -> None:
    neck = np.abs(u) - 0.36 - 0.25 * smoothstep(1.1, 1.6, v)
    column = np.sqrt(np.maximum(1 - (u / 0.5) ** 2, 0))
    shaded = 0.35 + 0.5 * smoothstep(0.95, 1.5, v)
    area.paint(
        area.inside(np.maximum(neck, 0.3 - v) * size),
        {tone: 0.95},
        np.clip(area.relief(size * 0.5 * column + 0 * v) * shaded, 0, 1),
    )
    shoulder = 1.38 + 0.42 * smoothstep(0.25, 1.7, np.abs(u)) ** 1.5 + 1.2 * smoothstep(1.5, 2.1, np.abs(u))
    collar = 0.3 * smoothstep(0.62, 0.0, np.abs(u)) * rng.uniform(0.4, 1.6)
    folds = area.noise(rng, 0.7 / size, 3, 0.45, 0.6)
    weave = area.noise(rng, 14 / size, 2, 0.8)
    barrel = np.sqrt(np.maximum(1 - (u / 2.3) ** 2, 0)) + 0.3 * smoothstep(1.3, 1.9, v)
    lit = np.clip(area.relief(size * (1.3 * barrel + 0.1 * folds)) + 0.04 * weave, 0, 1)
    first, second = pair(rng, CLOTHS)
    waves = np.sin(rng.uniform(9, 20) * (v + 0.12 * u * u + 0.05 * folds))
    stripe = smoothstep(-0.3, 0.3, waves) * float(rng.random() < 0.3)
    area.paint(area.inside((shoulder + collar - v) * size), {first: 1 - stripe, second: stripe}, lit)
