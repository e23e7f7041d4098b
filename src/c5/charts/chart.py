"""The color chart of 24 patches, and whether what was measured can be one.

The light is not known, nor is the sensor. But whatever they are, what a sensor sees of the patches is about a linear
map of their XYZ. So a (3, 3) matrix is fitted, with the brightness of every patch left free, since shading changes it.
What is left over is small for a chart and large for anything else: with the lights and sensors of `c5.demo`, most
charts miss by less than 1.3 degrees, those with their patches in a random order by more than 10.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np

from c5.color import Bools, Float64s, angular_error, as_illuminant
from c5.colorimetry.spectra import WAVELENGTHS, black_body, chart_surfaces, daylight, read_spectra, xyz

COLUMNS, ROWS = 6, 4
PATCHES = COLUMNS * ROWS
MEASURED = np.arange(18, 23)
"""The grays of the last row whose color gives the light: black is mostly glare."""

MOST_OFF, MOST_OFF_ANY = 1.5, 12.0
"""Degrees by which patches may miss the chart's colors: root mean square, and any one patch."""
MOST_TONE = 2.2
"""How far a tone curve may have moved the brightness of patches, in standard errors: prints have such a curve."""
MOST_BOTH = 1.15
"""The root of the summed squares of both, in parts of their limits: a good print misses in color and in tone."""
MOST_UNEVEN = 0.09
"""How far the brightness of patches may be from smooth shading with one shadow edge, in nats."""
MOST_GRAY = 1.0
"""Degrees by which the grays may differ from the light of the chart."""
MOST_TURN = 0.85
"""Degrees by which the light may change across the chart: labels must be right to 1."""
MOST_NOISE = 0.3
"""Largest standard error of the light, in degrees."""
FEWEST_PATCHES, FEWEST_GRAYS = 14, 2
MOST_HIDDEN, FEWEST_LEFT = 3, 18
"""How many patches may be hidden, and how many must be left."""
UNKNOWNS = 8
"""Numbers of the matrix that directions determine; each patch gives two."""
BRIGHT = 0.08
"""Patches that reflect less are left out where brightness matters: glare changes them."""
GLARE = np.array([0.0, 0.005, 0.01, 0.015])
"""Glare that a lens may have added to every patch, as a part of white."""
SOFT = (0.2, 1.2, 2.4)
"""How wide the edge of a shadow may be, in patches."""
STEPS = 12


@dataclass(frozen=True, eq=False)
class Measured:
    """The patches of what may be a chart, row by row."""

    rgb: Float64s
    """(24, 3) means of linear RGB."""
    error: Float64s
    """(24, 3) standard errors of the means."""
    good: Bools
    """(24,) False where a patch is clipped or outside the picture."""


@dataclass(frozen=True, eq=False)
class Reading:
    """The light of a chart, and how well the chart fits."""

    illuminant: Float64s
    """(3,) unit RGB."""
    off: float
    """Degrees by which its patches miss the chart's colors, root mean square."""
    shading: float
    """The light at the brightest place of the chart over that at the darkest."""
    turn: float
    """Degrees by which the light changes from one end of the chart to the other."""
    noise: float
    """Degrees of the illuminant's standard error."""
    grays: int
    """Gray patches that were measured."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no light to report."""

    reason: str
    off: float
    """As in `Reading`."""


@cache
def reference() -> tuple[Float64s, Float64s]:
    """XYZ of the patches in D50, (24, 3), and of a perfect white, (3,): BabelColor's average of measured charts."""
    light = daylight(5000)
    patches = chart_surfaces()
    return xyz(patches * light), xyz(np.ones_like(WAVELENGTHS) * light)


@cache
def spread() -> tuple[Float64s, Float64s]:
    """(24,) each: how far patches depart from a linear map in other lights, in color and in brightness, in nats.

    This is for the standard observer. Saturated patches depart, grays do not.
    """
    colors, _ = reference()
    patches = chart_surfaces()
    lights = [*read_spectra("fluorescent").values(), *read_spectra("led").values(), black_body(2600), daylight(8000)]
    left = []
    for light in lights:
        seen = xyz(patches * light)
        left.append(_compare(seen / seen[18], colors)[1])
    color = left - np.mean(left, axis=2, keepdims=True)
    brightness = np.mean(left, axis=2)
    brightness -= brightness.mean(axis=1, keepdims=True)
    return np.sqrt((color**2).mean(axis=(0, 2))), np.sqrt((brightness**2).mean(axis=0))


@cache
def places() -> Float64s:
    """(24, 2) columns and rows of the patches."""
    return np.array([(column, row) for row in range(ROWS) for column in range(COLUMNS)], dtype=np.float64)


def read_chart(measured: Measured) -> Reading | Refusal:
    """The light of a chart; or why what was measured is not a chart, or does not give the light."""
    colors, white = reference()
    good = measured.good & (measured.rgb > 0).all(axis=1)
    grays = MEASURED[good[MEASURED]]
    if good.sum() < FEWEST_PATCHES or grays.size < FEWEST_GRAYS:
        return Refusal("too many of its patches are clipped, black or outside the picture; expose it less", np.inf)
    rough = np.exp(np.log(measured.rgb[grays]).mean(axis=0))
    seen = measured.rgb / rough  # angles mean the same for every sensor and light
    fit = _fit_colors(seen, good)
    if fit.off > MOST_OFF or fit.worst > MOST_OFF_ANY:
        return Refusal(
            f"its colors are {fit.off:.1f}° off those of a chart: it may not be one, or be in two lights", fit.off
        )
    good, matrix, left, off = fit.good, fit.matrix, fit.left, fit.off
    grays = MEASURED[good[MEASURED]]
    if grays.size < FEWEST_GRAYS:
        return Refusal("its grays are hidden, or not gray", off)
    glare = GLARE * white[1] / colors[good, 1, None]
    shades = (_fit_shading(left.mean(axis=1) - np.log1p(one), good) for one in glare.T)
    shade = min(shades, key=lambda one: one.tone)
    both = np.hypot(off / MOST_OFF, shade.tone / MOST_TONE)
    if shade.tone > MOST_TONE or both > MOST_BOTH or shade.left > MOST_UNEVEN:
        return Refusal("its brightness is not that of a chart: it may be a print, half hidden, or lit in patches", off)

    # What a perfect white would be in the light on each gray patch.
    whites = measured.rgb[grays] * (white @ matrix) / (colors[grays] @ matrix)
    whites /= np.linalg.norm(whites, axis=1, keepdims=True)
    noise = measured.error[grays] / measured.rgb[grays]
    weights = 1 / (noise.max(axis=1) ** 2 + 0.002**2)
    light = as_illuminant(weights @ whites / weights.sum())
    error = float(np.degrees(np.sqrt(((weights[:, None] * noise) ** 2).sum(axis=0).max()) / weights.sum()))
    turn = _find_turn(left, good, light, shade.beyond)
    if error > MOST_NOISE:
        return Refusal("it is too dark to be measured; expose it longer", off)
    if float(angular_error(whites, light).max()) > MOST_GRAY + 3 * error or turn > MOST_TURN:
        return Refusal(f"two lights fall on it, {turn:.1f}° apart; put it into one", off)
    return Reading(light, off, float(np.exp(shade.span)), turn, error, int(grays.size))


@dataclass(frozen=True, eq=False)
class _Fit:
    matrix: Float64s  # (3, 3), from XYZ to what is seen
    good: Bools  # (24,) the patches that it is fitted to
    left: Float64s  # (good, 3) what is seen over what is expected, nats
    off: float  # degrees, root mean square
    worst: float


def _fit_colors(seen: Float64s, good: Bools) -> _Fit:
    """The matrix that fits the good patches best, except for a few that may be covered."""
    colors, _ = reference()
    good, fewest = good.copy(), max(FEWEST_LEFT, int(good.sum()) - MOST_HIDDEN)
    while True:
        matrix, left = _compare(seen[good], colors[good])
        missed = angular_error(seen[good], np.maximum(colors[good] @ matrix, 1e-9))
        off, worst = float(np.sqrt((missed**2).sum() / (missed.size - UNKNOWNS / 2))), float(missed.max())
        if (off <= MOST_OFF and worst <= MOST_OFF_ANY) or missed.size <= fewest:
            return _Fit(matrix, good, left, off, worst)
        good[np.flatnonzero(good)[missed.argmax()]] = False


def _fit_matrix(seen: Float64s, colors: Float64s) -> Float64s:
    """(3, 3), so that colors @ matrix have the directions of what is seen, by least squares of their sines."""
    directions = seen / np.linalg.norm(seen, axis=1, keepdims=True)
    scale = 1 / np.linalg.norm(colors, axis=1, keepdims=True)
    for _ in range(STEPS):
        matrix = np.linalg.lstsq(colors * scale, directions, rcond=None)[0]
        expected = colors @ matrix
        scale = (directions * expected).sum(axis=1, keepdims=True) / (expected**2).sum(axis=1, keepdims=True)
    return np.asarray(matrix * np.exp(np.log(np.maximum(scale, 1e-9)).mean()))


def _compare(seen: Float64s, colors: Float64s) -> tuple[Float64s, Float64s]:
    """The matrix that fits, and what is seen over what it gives, in nats."""
    matrix = _fit_matrix(seen, colors)
    return matrix, np.asarray(np.log(seen / np.maximum(colors @ matrix, 1e-9)))


@dataclass(frozen=True, eq=False)
class _Shading:
    tone: float  # how far a wrong tone curve moves patches, in standard errors
    left: float  # what shading does not explain, nats
    span: float  # from the brightest to the darkest place, nats
    beyond: Float64s  # (24,) from 0 to 1 across the edge of a shadow


def _fit_shading(brightness: Float64s, good: Bools) -> _Shading:
    """Brightness in nats as a plane, the edge of a shadow if there is one, and a tone curve."""
    colors, white = reference()
    everywhere = places() - places().mean(axis=0)
    bright = colors[good, 1] > BRIGHT * white[1]
    where, tones = everywhere[good][bright], np.log(colors[good, 1][bright])
    brightness = brightness[bright]
    weights = 1 / np.hypot(spread()[1], 0.02)[good][bright]
    tones = tones - tones.mean()
    curve = np.column_stack([tones, tones**2 - (tones**2).mean()])
    plain = np.column_stack([np.ones(len(where)), where, curve])

    def fit(design: Float64s) -> tuple[Float64s, float]:
        found = np.linalg.lstsq(design * weights[:, None], brightness * weights, rcond=None)[0]
        away = (brightness - design @ found) * weights
        return found, float(np.sqrt((away**2).sum() / (weights**2).sum()))

    best, left = fit(plain)
    beyond, depth = np.zeros(PATCHES), 0.0
    most = 0.6 * left
    if left > MOST_UNEVEN / 2:
        for angle, place, soft in itertools.product(np.arange(0, np.pi, np.pi / 8), np.arange(-2.75, 3, 0.5), SOFT):
            across = everywhere @ np.array([np.cos(angle), np.sin(angle)])
            edge = np.clip((across - place) / soft + 0.5, 0, 1)
            if 3 <= edge[good][bright].sum() <= len(where) - 3:
                found, rest = fit(np.column_stack([plain, edge[good][bright]]))
                if rest < min(left, most):
                    best, left, beyond, depth = found, rest, edge, float(found[-1])
    shading = everywhere @ best[1:3] + depth * beyond
    sure = np.linalg.pinv((plain * weights[:, None]).T @ (plain * weights[:, None]))[3:5, 3:5]
    unsure = np.sqrt(np.trace(curve @ sure @ curve.T) / len(curve))
    return _Shading(float((curve @ best[3:5]).std() / unsure), left, float(np.ptp(shading)), beyond)


def _find_turn(left: Float64s, good: Bools, light: Float64s, beyond: Float64s) -> float:
    """Degrees between the lights at the corners of the chart, and on the two sides of a shadow edge."""
    middle = places() - places().mean(axis=0)
    design = np.column_stack([np.ones(PATCHES), middle, beyond])[:, : 4 if beyond[good].any() else 3]
    weights = 1 / np.hypot(spread()[0], 0.01)[good, None]
    color = left - left.mean(axis=1, keepdims=True)
    found = np.linalg.lstsq(design[good] * weights, color * weights, rcond=None)[0]
    lights = light * np.exp(design[[0, 5, 18, 23]] @ found)
    if beyond[good].any():
        lights = np.concatenate([lights, light * np.exp(design[[0, 5, 18, 23]] @ found - found[3])])
    return max(float(angular_error(one, other)) for one, other in itertools.combinations(lights, 2))
