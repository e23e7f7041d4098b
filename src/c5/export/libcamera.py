"""The white balance of libcamera on a Raspberry Pi, tuned from a camera's matrices and a roll of its photographs.

libcamera (src/ipa/rpi/controller/rpi/awb_bayes.cpp) searches for the light along a curve of r/g and b/g by temperature,
no farther from it than two transverse limits, and prefers temperatures by a prior for each illuminance. It expects all
three to be measured; here the curve follows from matrices, and the rest from the lights that a model finds in a roll.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float64s, as_illuminant
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.spectra import black_body, daylight, unit_luminance, xyz
from c5.colorimetry.temperature import adobe_neutral, dng_temperature
from c5.errors import ParameterError

KELVINS = (2500, 2850, 3200, 3600, 4000, 4500, 5000, 5600, 6500, 7500, 8500)
"""Where the curve has points."""
WARM, COLD = 4000.0, 5000.0
"""Lights up to the first are black bodies, from the second on daylight, and in between a mixture."""
TINT = 12.0
"""The transverse limits include lights of this tint, in Adobe's numbers, on either side of the curve."""
LEAST_LIMIT, MOST_LIMIT = 0.01, 0.1
"""Range of the transverse limits; libcamera's own files have 0.02 to 0.05."""
SHARE = 95.0
"""Percent of the roll's lights that the transverse limits include."""
LUX_AT_0 = 2.5
"""The illuminance for which an exposure value of 0 at ISO 100 is right; each step doubles it (ISO 2720, C = 250)."""
HIGHEST_PRIOR = 6.0
"""The prior of the usual temperature against the rarest; libcamera's own files have up to 7."""
MODES = {
    "auto": (2500, 8000), "incandescent": (2500, 3000), "tungsten": (3000, 3500), "fluorescent": (4000, 4700),
    "indoor": (3000, 5000), "daylight": (5500, 6500), "cloudy": (7000, 8600),
}  # fmt: skip
"""The temperatures of each mode, as in libcamera's own files."""
FEWEST = 4
"""Fewest photographs that a prior is learned from."""


class Sight(NamedTuple):
    """A light that was found in a photograph."""

    illuminant: Float64s  # (3,)
    exposure: float | None = None  # value at ISO 100


def ct_curve(matrices: CameraMatrices, kelvins: Sequence[float] = KELVINS) -> Float64s:
    """(temperatures, 3) temperature, r/g and b/g of white in the usual light of that temperature."""
    rows = []
    for kelvin in kelvins:
        mix = np.clip((kelvin - WARM) / (COLD - WARM), 0, 1)
        warm, cold = (unit_luminance(light(float(np.clip(kelvin, *span)))) for light, span in _LIGHTS)
        seen = matrices.matrix(kelvin) @ xyz((1 - mix) * warm + mix * cold)
        rows.append([kelvin, *_ratios(as_illuminant(seen))])
    return np.array(rows)


_LIGHTS = ((black_body, (1000, 25000)), (daylight, (4000, 25000)))


def transverse_limits(curve: Float64s, matrices: CameraMatrices, lights: Sequence[Sight] = ()) -> tuple[float, float]:
    """How far lights may be from the curve in r/g and b/g, on its positive side and on the other."""
    offsets = [
        _offset(curve, _ratios(adobe_neutral(kelvin, sign * TINT, matrices)))
        for kelvin in (3000, 4000, 5000, 6500)
        for sign in (-1, 1)
    ]
    found = np.array([_offset(curve, _ratios(light.illuminant)) for light in lights])
    limits = []
    for sign in (1, -1):
        limit = max(0.0, float(np.mean([sign * offset for offset in offsets if sign * offset > 0] or [0])))
        if len(found):
            limit = max(limit, float(np.percentile(np.maximum(sign * found, 0), SHARE)))
        limits.append(float(np.clip(limit, LEAST_LIMIT, MOST_LIMIT)))
    return limits[0], limits[1]


def priors(lights: Sequence[Sight], matrices: CameraMatrices) -> list[dict[str, Any]]:
    """Priors over temperature by illuminance: one for dark and one for bright photographs, if the files say which."""
    with_exposure = [light for light in lights if light.exposure is not None]
    if len(with_exposure) >= 2 * FEWEST:
        ordered = sorted(with_exposure, key=lambda light: light.exposure or 0.0)
        groups = [ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]]
        levels = [LUX_AT_0 * 2.0 ** float(np.median([light.exposure or 0.0 for light in group])) for group in groups]
        if round(levels[1]) > round(levels[0]):
            return [_prior(group, matrices, lux) for group, lux in zip(groups, levels, strict=True)]
    return [_prior(lights, matrices, 0.0)]


def _prior(lights: Sequence[Sight], matrices: CameraMatrices, lux: float) -> dict[str, Any]:
    """The logarithm of how often a temperature occurs, smoothed; flat if too few lights are known."""
    mireds = 1e6 / np.array(KELVINS)
    values = np.zeros(len(KELVINS))
    if len(lights) >= FEWEST:
        met = np.array([1e6 / dng_temperature(light.illuminant, matrices).kelvin for light in lights])
        share = np.exp(-(((mireds[:, None] - met) / 40) ** 2) / 2).mean(axis=1)
        logarithms = np.log(np.maximum(share / share.max(), np.exp(-HIGHEST_PRIOR)))
        values = logarithms + HIGHEST_PRIOR
    pairs = zip(KELVINS, values, strict=True)
    return {"lux": round(lux), "prior": [round(float(number), 3) for pair in pairs for number in pair]}


def tune(matrices: CameraMatrices, lights: Sequence[Sight] = ()) -> dict[str, Any]:
    """A tuning file for libcamera's Raspberry Pi pipeline that has its white balance, and nothing else."""
    curve = ct_curve(matrices)
    positive, negative = transverse_limits(curve, matrices, lights)
    if np.any(np.diff(curve[:, 1]) >= 0) or np.any(np.diff(curve[:, 2]) <= 0):
        raise ParameterError(
            f"{matrices.name}: red does not fall, or blue not rise, with temperature; check the matrices"
        )
    awb = {
        "enabled": True,
        "bayes": 1,
        "priors": priors(lights, matrices),
        "modes": {name: {"lo": low, "hi": high} for name, (low, high) in MODES.items()},
        "ct_curve": [round(float(number), 4) for number in curve.ravel()],
        "sensitivity_r": 1.0,
        "sensitivity_b": 1.0,
        "transverse_pos": round(positive, 5),
        "transverse_neg": round(negative, 5),
    }
    return {"version": 2.0, "target": "bcm2835", "algorithms": [{"rpi.awb": awb}]}


def export_libcamera(matrices: CameraMatrices, lights: Sequence[Sight] = ()) -> bytes:
    """The content of the file."""
    return json.dumps(tune(matrices, lights), indent=4).encode() + b"\n"


def _ratios(illuminant: ArrayLike) -> Float64s:
    """r/g and b/g."""
    red, green, blue = np.asarray(illuminant, dtype=np.float64)
    return np.array([red / green, blue / green])


def _offset(curve: Float64s, point: Float64s) -> float:
    """How far a point is from the curve; positive on the side with less red and less blue, that is greener light, as
    libcamera turns the curve's direction: (db, -dr)."""
    best = np.inf, 0.0
    for start, end in zip(curve[:-1, 1:], curve[1:, 1:], strict=True):
        along = end - start
        part = float(np.clip((point - start) @ along / (along @ along), 0, 1))
        away = point - start - part * along
        across = np.array([along[1], -along[0]]) / np.linalg.norm(along)
        distance = float(np.linalg.norm(away))
        best = min(best, (distance, float(np.sign(away @ across)) * distance))
    return best[1]
