"""Errors by the color of the light, which a mean over a dataset hides.

Cameras see the same light differently, and not every camera has matrices that would give its temperature. So a light is
described by its warmth: ln(r / b), counted from the first quartile of the lights of its camera, which is daylight in
every dataset. A light bulb is about 1.3 warmer than sunlight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.color import Float64s
from c5.evaluation.results import Results, Row

LIGHTS = {"shade": -0.15, "day": 0.4, "neon": 1.0, "lamp": 1.7, "night": np.inf}
"""Kinds of light, and the warmth up to which each goes. Night is candles, sodium lamps and the warmest bulbs."""
WARM = ("lamp", "night")
FEWEST = 5
"""A mean needs this many images."""


def warmth(lights: ArrayLike) -> Float64s:
    """The warmth of the lights (u, v) of one camera, in nats."""
    u, v = np.array(lights).T
    return np.asarray((v - u) - np.quantile(v - u, 0.25))


def kinds(warm: Float64s) -> NDArray[np.str_]:
    """The kind of light for each warmth."""
    return np.array(list(LIGHTS))[np.searchsorted(list(LIGHTS.values())[:-1], warm, side="right")]


def by_warmth(results: Results, row: Row, dataset: str) -> tuple[Float64s, Float64s]:
    """For every image of a dataset that a row has: the warmth of its light, and its error."""
    own = {camera: warmth(results.lights[camera]).tolist() for camera in results.cameras(dataset)}
    found = [
        (warm, error)
        for tested in row.errors
        for camera, lights in own.items()
        for warm, error in zip(lights, tested.get(camera, []), strict=False)
        if error is not None
    ]
    warm, errors = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return warm, errors


def light_means(results: Results, row: Row, dataset: str) -> list[float | None]:
    """The mean error in each kind of light, in all warm light, and the ratio of the latter to daylight."""
    warm, errors = by_warmth(results, row, dataset)
    kind = kinds(warm)
    day, hot = _mean(errors[kind == "day"]), _mean(errors[np.isin(kind, WARM)])
    ratio = None if day is None or hot is None else hot / day
    return [*(_mean(errors[kind == name]) for name in LIGHTS), hot, ratio]


def count_lights(results: Results, dataset: str) -> dict[str, int | None]:
    """What `light_means` gives, and how many images are in each mean; None for the ratio."""
    kind = np.concatenate([kinds(warmth(results.lights[camera])) for camera in results.cameras(dataset)])
    counts = {name: int(np.count_nonzero(kind == name)) for name in LIGHTS}
    return {**counts, "warm": sum(counts[name] for name in WARM), "warm / day": None}


def _mean(errors: Float64s) -> float | None:
    return float(errors.mean()) if errors.size >= FEWEST else None
