"""Lights as temperature and tint, the two numbers that photographers know, as different programs compute them.

A temperature and a tint stand for a chromaticity; a camera's two matrices say how it sees that. The DNG specification
and Adobe's programs count one way, RawTherapee another: the same light gets different numbers.

"Neutral" is the DNG specification's word for the camera RGB of a white surface: an illuminant of any length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.color import Float64s, as_illuminant, reproduction_error, rgb_to_uv
from c5.colorimetry.matrices import CameraMatrices
from c5.errors import ParameterError

TINT_SCALE = -3000
"""Tints per unit of the CIE 1960 diagram: positive for lights greener than a black body, as daylight is by about 10."""

HOTTEST_LINE, COOLEST_LINE = 1e5, 1e6 / 600
"""Where Robertson's lines end, in kelvin, except for the one at infinite temperature: no light gets a temperature
beyond."""

ADOBE_KELVINS, ADOBE_TINTS = (2000, 50000), (-150, 150)
"""The ranges of the two sliders of Adobe's programs."""

NOTICEABLE_DEG = 0.25
"""Rounding the two numbers leaves less of a light's color than this; their ranges may leave more."""

# Robertson's isotemperature lines: mireds, u and v on the black-body curve (CIE 1960), slope. Wyszecki and Stiles,
# "Color Science", 2nd edition, page 228. The u of 325 mireds is a misprint for 0.24792 there; Adobe's programs copied
# it, and this table must agree with them.
_LINES = np.array(
    [
        [0, 0.18006, 0.26352, -0.24341],
        [10, 0.18066, 0.26589, -0.25479],
        [20, 0.18133, 0.26846, -0.26876],
        [30, 0.18208, 0.27119, -0.28539],
        [40, 0.18293, 0.27407, -0.30470],
        [50, 0.18388, 0.27709, -0.32675],
        [60, 0.18494, 0.28021, -0.35156],
        [70, 0.18611, 0.28342, -0.37915],
        [80, 0.18740, 0.28668, -0.40955],
        [90, 0.18880, 0.28997, -0.44278],
        [100, 0.19032, 0.29326, -0.47888],
        [125, 0.19462, 0.30141, -0.58204],
        [150, 0.19962, 0.30921, -0.70471],
        [175, 0.20525, 0.31647, -0.84901],
        [200, 0.21142, 0.32312, -1.0182],
        [225, 0.21807, 0.32909, -1.2168],
        [250, 0.22511, 0.33439, -1.4512],
        [275, 0.23247, 0.33904, -1.7298],
        [300, 0.24010, 0.34308, -2.0637],
        [325, 0.24702, 0.34655, -2.4681],
        [350, 0.25591, 0.34951, -2.9641],
        [375, 0.26400, 0.35200, -3.5814],
        [400, 0.27218, 0.35407, -4.3633],
        [425, 0.28039, 0.35577, -5.3762],
        [450, 0.28863, 0.35714, -6.7262],
        [475, 0.29685, 0.35823, -8.5955],
        [500, 0.30505, 0.35907, -11.324],
        [525, 0.31320, 0.35968, -15.628],
        [550, 0.32129, 0.36011, -23.325],
        [575, 0.32931, 0.36038, -40.770],
        [600, 0.33724, 0.36051, -116.45],
    ]
)
_MIREDS, _CURVE = _LINES[:, 0], _LINES[:, 1:3]
_ALONG: Float64s = np.stack([np.ones(31), _LINES[:, 3]], axis=1) / np.hypot(1, _LINES[:, 3:])  # (31, 2) unit vectors
_ROWS = [tuple(row) for row in np.column_stack([_MIREDS, _CURVE, _ALONG]).tolist()]

_D50 = (0.34567, 0.35850)

NO_CHROMATICITY = "a chromaticity needs two numbers x and y above zero, and x below 1"


class TemperatureTint(NamedTuple):
    """A light as Adobe's programs show it."""

    kelvin: float
    tint: float


class TemperatureBounds(NamedTuple):
    """The temperatures between which a light lies, and how far it may be from its tint."""

    lowest: float  # kelvin
    highest: float
    tint: float


class ToldLight(NamedTuple):
    """A light as it is shown to people."""

    at: TemperatureTint
    bounds: TemperatureBounds | None
    """None where nothing says how far off it may be."""

    def as_row(self) -> dict[str, int | float]:
        """Whole numbers by name, ready for JSON; unknown bounds are left out."""
        row: dict[str, int | float] = {"kelvin": round(self.at.kelvin), "tint": round(self.at.tint)}
        if self.bounds is not None:
            row |= {"kelvin_low": round(self.bounds.lowest), "kelvin_high": round(self.bounds.highest)}
            row["tint_bound"] = round(self.bounds.tint, 1)
        return row


def show_kelvin(kelvin: float) -> str:
    """A temperature in kelvin, marked at the ends of the scale, beyond which the light may lie."""
    mark = {round(COOLEST_LINE): "<", round(HOTTEST_LINE): ">"}.get(round(kelvin), "")
    return f"{mark}{round(kelvin)}"


def show_told(row: Mapping[str, int | float]) -> tuple[str, str]:
    """The temperature and the tint of `ToldLight.as_row`, each with its bounds."""
    kelvin, tint = show_kelvin(row["kelvin"]), f"{row['tint']:+d}"
    if "kelvin_low" in row:
        bounds = f"{show_kelvin(row['kelvin_low'])} to {show_kelvin(row['kelvin_high'])}"
        return f"{kelvin} ({bounds})", f"{tint} ± {row['tint_bound']:.0f}"
    return kelvin, tint


class TemperatureGreen(NamedTuple):
    """A light as RawTherapee shows it."""

    kelvin: int
    green: float


def xy_to_temperature(xy: ArrayLike) -> TemperatureTint:
    """The temperature and tint of a CIE 1931 chromaticity, as the DNG SDK finds them (Robertson 1968)."""
    array = np.asarray(xy, dtype=np.float64)
    if array.shape != (2,):
        raise ParameterError(NO_CHROMATICITY)
    return _count(*array.tolist())


def neutral_to_xy(neutral: ArrayLike, matrices: CameraMatrices) -> Float64s:
    """The chromaticity of the light in which a camera sees white as `neutral`.

    The matrix depends on the temperature, which depends on the chromaticity: both are found by iteration, as in the DNG
    specification, chapter 6, "Translating Camera Neutral Coordinates to White Balance xy Coordinates".
    """
    return np.array(_find_xy(neutral, matrices))


def dng_temperature(illuminant: ArrayLike, matrices: CameraMatrices) -> TemperatureTint:
    """The temperature and tint that Adobe's programs show for an illuminant of a camera."""
    return _count(*_find_xy(illuminant, matrices))


def bound_temperature(illuminant: ArrayLike, covariance: ArrayLike, matrices: CameraMatrices) -> TemperatureBounds:
    """How far a light may be from its temperature and tint, given the (2, 2) covariance of its u and v, in nats^2.

    The bounds are one standard deviation away, in mireds and in tints: 90 % bounds, if the covariance is that of
    `c5.Estimate.bound_covariance`.
    """
    center, (variances, axes) = rgb_to_uv(illuminant), np.linalg.eigh(np.asarray(covariance, dtype=np.float64))
    steps = []
    for half in (np.sqrt(np.maximum(variances, 0)) * axes).T:
        ends = [_count(*_find_again(_unit(*(center + end).tolist()), matrices)) for end in (-half, half)]
        steps.append([(1e6 / ends[1].kelvin - 1e6 / ends[0].kelvin) / 2, (ends[1].tint - ends[0].tint) / 2])
    mireds, tint = np.linalg.norm(steps, axis=0)
    here = 1e6 / dng_temperature(illuminant, matrices).kelvin
    lowest, highest = 1e6 / np.clip([here + mireds, here - mireds], 1e6 / HOTTEST_LINE, 1e6 / COOLEST_LINE)
    return TemperatureBounds(float(lowest), float(highest), float(tint))


def tell_light(
    illuminant: ArrayLike, matrices: CameraMatrices | None, covariance: ArrayLike | None = None
) -> ToldLight | None:
    """The temperature and tint of a light, bounded where its covariance is known.

    None if the camera's matrices are not known, or fit no such light.
    """
    if matrices is None:
        return None
    try:
        at = dng_temperature(illuminant, matrices)
    except ParameterError:
        return None
    bounds = None
    if covariance is not None:
        with suppress(ParameterError):  # no light is that far off
            bounds = bound_temperature(illuminant, covariance, matrices)
    return ToldLight(at, bounds)


def adobe_temperature(illuminant: ArrayLike, matrices: CameraMatrices) -> TemperatureTint:
    """The whole numbers in the range of Adobe's sliders that remove the most of an illuminant from a picture.

    They are those of `dng_temperature`, rounded, as far as the sliders go. Beyond, the nearest numbers are not the
    nearest balance: 2000 K with another tint is nearer to a candle than 2000 K with the candle's own.
    """
    return _find_adobe(tuple(as_illuminant(illuminant).tolist()), matrices)


@lru_cache(maxsize=64)  # a sidecar and the note on it ask for the same light
def _find_adobe(illuminant: tuple[float, ...], matrices: CameraMatrices) -> TemperatureTint:
    try:
        found = dng_temperature(illuminant, matrices)
        ranges = zip(found, (ADOBE_KELVINS, ADOBE_TINTS), strict=True)
        sliders = TemperatureTint(*(round(min(max(value, low), high)) for value, (low, high) in ranges))
        if reproduction_error(adobe_neutral(*sliders, matrices), illuminant) < NOTICEABLE_DEG:
            return sliders
    except ParameterError:
        pass  # no light at all, but some are nearer than others
    (coldest, warmest), (low, high) = (1e6 / np.array(ADOBE_KELVINS[::-1])), ADOBE_TINTS
    mireds, tint = _find_nearest(
        np.array(illuminant),
        lambda mireds, tints: adobe_neutral(1e6 / mireds, tints, matrices),
        (coldest, low),
        (warmest, high),
    )
    return TemperatureTint(round(1e6 / mireds), round(tint))


def adobe_neutral(kelvin: ArrayLike, tint: ArrayLike, matrices: CameraMatrices) -> Float64s:
    """(..., 3) what Adobe's programs divide out for temperatures and tints, whatever they are.

    As in the DNG SDK, no channel is below a thousandth of the largest.
    """
    kelvin, tint = np.asarray(kelvin, dtype=np.float64), np.asarray(tint, dtype=np.float64)
    white = uv_to_xyz(temperature_to_uv(1e6 / kelvin, tint))
    neutral = (matrices.matrix(kelvin) @ white[..., None])[..., 0]
    return np.asarray(np.clip(neutral / neutral.max(axis=-1, keepdims=True), 0.001, 1))


# RawTherapee's way, as in 5.9 and as observed in the program. It sums spectra over the 10 degree observer. Its table
# lacks the line for 560 nm, so everything redder is 5 nm off: a correct table would not agree, so these are its own
# sums. XYZ of the CIE daylight components S0, S1 and S2:
_RT_DAYLIGHT = np.array(
    [[0.9675314, 1.0, 1.187223], [0.0294026, 0.0369533, 0.3465027], [0.0155647, 0.0038712, -0.0223066]]
)
# ln(X/Y) and ln(Z/Y) of black bodies from 1500 to 4000 K as polynomials of 1000 K / T, accurate to 3e-5:
_RT_BLACK_BODY = np.array(
    [
        [-4.000126, 12.204752, -15.201121, 9.181382, -1.693013, 0.073241],
        [1.563548, -4.227245, 5.138996, -3.565915, -4.734027, 0.947695],
    ]
)
_RT_XYZ_TO_SRGB = np.array(
    [[3.2404542, -1.5371385, -0.4985314], [-0.9692660, 1.8760108, 0.0415560], [0.0556434, -0.2040259, 1.0572252]]
)
_RT_SRGB_TO_XYZ = np.linalg.inv(_RT_XYZ_TO_SRGB)
RT_KELVINS, RT_GREENS = (1500, 60000), (0.02, 10.0)
"""The ranges of RawTherapee's two numbers."""


def rawtherapee_temperature(illuminant: ArrayLike, matrix: ArrayLike) -> TemperatureGreen:
    """The Temperature and Green with which RawTherapee 5.9 and later removes the most of an illuminant from a picture.

    It uses one `matrix` from XYZ to camera RGB for all lights: see `c5.photos.sidecars.rawtherapee`.
    """
    camera = np.asarray(matrix, dtype=np.float64)
    return _find_rawtherapee(tuple(as_illuminant(illuminant).tolist()), tuple(map(tuple, camera.tolist())))


@lru_cache(maxsize=64)  # a sidecar and the note on it ask for the same light
def _find_rawtherapee(illuminant: tuple[float, ...], matrix: tuple[tuple[float, ...], ...]) -> TemperatureGreen:
    (low, high), greens = 1e6 / np.array(RT_KELVINS[::-1]), np.log(RT_GREENS)
    camera = np.array(matrix)

    def divided_out(mireds: Float64s, logarithms: Float64s) -> Float64s:
        return _rawtherapee_neutrals(np.rint(1e6 / mireds).astype(int), np.exp(logarithms), camera)

    mireds, green = _find_nearest(np.array(illuminant), divided_out, (low, greens[0]), (high, greens[1]))
    return TemperatureGreen(round(1e6 / mireds), float(np.clip(np.exp(green), *RT_GREENS)))


def rawtherapee_neutral(kelvin: int, green: float, matrix: ArrayLike) -> Float64s:
    """The illuminant that RawTherapee divides out; `rawtherapee_temperature` undoes it."""
    if not (RT_KELVINS[0] <= kelvin <= RT_KELVINS[1] and RT_GREENS[0] <= green <= RT_GREENS[1]):
        raise ParameterError(f"RawTherapee has 1500 to 60000 K and a green of 0.02 to 10, not {kelvin:g} and {green:g}")
    return as_illuminant(_rawtherapee_neutrals(np.array(kelvin), np.array(green), np.asarray(matrix, np.float64)))


def _rawtherapee_neutrals(kelvins: NDArray[np.int_], greens: Float64s, matrix: Float64s) -> Float64s:
    red, green, blue = np.moveaxis(_rawtherapee_lights()[kelvins - RT_KELVINS[0]], -1, 0)
    seen = matrix @ _RT_SRGB_TO_XYZ
    return np.asarray(np.stack([red, green / greens, blue], axis=-1) @ seen.T)


def _find_nearest(
    illuminant: Float64s,
    neutrals: Callable[[Float64s, Float64s], Float64s],
    lowest: tuple[float, float],
    highest: tuple[float, float],
) -> Float64s:
    """The two numbers in a box that leave white closest to gray, found on ever finer grids around the best so far."""
    low, high = np.array(lowest), np.array(highest)
    best = low
    for _ in range(12):
        first, second = np.meshgrid(*np.linspace(low, high, 33).T, indexing="ij")
        seen = neutrals(first, second)
        off = np.where((seen > 0).all(axis=-1), reproduction_error(seen, illuminant), np.inf)
        if not np.isfinite(off).any():
            raise ParameterError("no light gives any illuminant with this matrix; check that it is one of a camera")
        place = np.unravel_index(off.argmin(), off.shape)
        best = np.array([first[place], second[place]])
        reach = (high - low) / 8
        low, high = np.maximum(best - reach, lowest), np.minimum(best + reach, highest)
    return best


@cache
def _rawtherapee_lights() -> Float64s:
    """(temperatures, 3) linear sRGB of RawTherapee's light of each whole temperature: black bodies up to 4000 K."""
    t = 1000 / np.arange(RT_KELVINS[0], 4001)
    warm = np.exp([np.polyval(_RT_BLACK_BODY[0], t), np.zeros_like(t), np.polyval(_RT_BLACK_BODY[1], t)]).T
    kelvin = np.arange(4001, RT_KELVINS[1] + 1)
    t = 1000 / kelvin
    x = np.where(
        kelvin <= 7000,
        0.244063 + 0.09911 * t + 2.9678 * t**2 - 4.6070 * t**3,
        0.237040 + 0.24748 * t + 1.9018 * t**2 - 2.0064 * t**3 - 0.025 * np.maximum(kelvin / 25000 - 1, 0),
    )
    y = -3.0 * x**2 + 2.87 * x - 0.275
    scale = 0.0241 + 0.2562 * x - 0.734 * y
    m1 = (-1.3515 - 1.7703 * x + 5.9114 * y) / scale
    m2 = (0.03 - 31.4424 * x + 30.0717 * y) / scale
    cold = np.stack([np.ones_like(x), m1, m2], axis=1) @ _RT_DAYLIGHT
    return np.asarray(np.concatenate([warm, cold / cold[:, 1:2]]) @ _RT_XYZ_TO_SRGB.T)


def temperature_to_uv(mireds: float | Float64s, tint: float | Float64s) -> Float64s:
    """(..., 2) CIE 1960 chromaticities of temperatures and tints."""
    u, v, along_u, along_v = (np.interp(mireds, _MIREDS, column) for column in (*_CURVE.T, *_ALONG.T))
    steps = tint / (TINT_SCALE * np.hypot(along_u, along_v))
    return np.stack([u + along_u * steps, v + along_v * steps], axis=-1)


def uv_to_xyz(uv: Float64s) -> Float64s:
    """(..., 3) XYZ of CIE 1960 chromaticities, of any luminance."""
    u, v = np.moveaxis(uv, -1, 0)
    return np.stack([3 * u, 2 * v, 4 - u - 10 * v], axis=-1)


# What follows runs seven times per photograph, ten rounds each, so it uses plain numbers: a tenth of the time of
# arrays.


def _count(x: float, y: float) -> TemperatureTint:
    """`xy_to_temperature` of two numbers."""
    # Warm lights with large tints lie beyond all real colors, where x + y is above 1.
    if not (0 < x < 1 and 0 < y < math.inf):
        raise ParameterError(NO_CHROMATICITY)
    scale = 1.5 - x + 6 * y
    u, v = 2 * x / scale, 3 * y / scale
    above = below = 0.0
    for line in range(1, 31):  # up to the first line that the color is not above
        _, line_u, line_v, along_u, along_v = _ROWS[line]
        below = (u - line_u) * along_v - (v - line_v) * along_u
        if below >= 0:
            break
        above = -below
    part = 0.0 if line == 1 or below <= 0 else below / (above + below)
    rest = 1 - part
    mireds_before, u_before, v_before, along_u_before, along_v_before = _ROWS[line - 1]
    mireds, line_u, line_v, along_u, along_v = _ROWS[line]
    mireds = part * mireds_before + rest * mireds
    line_u, line_v = part * u_before + rest * line_u, part * v_before + rest * line_v
    along_u, along_v = part * along_u_before + rest * along_u, part * along_v_before + rest * along_v
    tint = ((u - line_u) * along_u + (v - line_v) * along_v) / math.hypot(along_u, along_v)
    return TemperatureTint(1e6 / mireds, tint * TINT_SCALE)


def _unit(u: float, v: float) -> tuple[float, float, float]:
    """`uv_to_rgb` of two numbers."""
    largest = max(-u, 0.0, -v)
    r, g, b = math.exp(-u - largest), math.exp(-largest), math.exp(-v - largest)
    if not (r > 0 and g > 0 and b > 0):
        raise ParameterError("no light is that far from gray")
    length = math.sqrt(r * r + g * g + b * b)
    return r / length, g / length, b / length


def _find_xy(neutral: ArrayLike, matrices: CameraMatrices) -> tuple[float, float]:
    """`neutral_to_xy` as two numbers."""
    return _find_again(tuple(as_illuminant(neutral).tolist()), matrices)


@lru_cache(maxsize=64)  # a row, its notes and three sidecars ask for the same light
def _find_again(seen: tuple[float, ...], matrices: CameraMatrices) -> tuple[float, float]:
    warm, cold = matrices.matrix_a.ravel().tolist(), matrices.matrix_d65.ravel().tolist()
    least, span = 1 / matrices.kelvin_d65, 1 / matrices.kelvin_a - 1 / matrices.kelvin_d65
    x, y = _D50
    for turn in range(100):
        alpha = min(max((1 / _count(x, y).kelvin - least) / span, 0.0), 1.0)
        found = _solve([alpha * a + (1 - alpha) * b for a, b in zip(warm, cold, strict=True)], seen)
        if abs(found[0] - x) + abs(found[1] - y) < 1e-10:
            return found
        # Where the rounds alternate between two places, the truth is between them.
        x, y = found if turn < 30 else ((x + found[0]) / 2, (y + found[1]) / 2)
    return x, y


def _solve(matrix: list[float], seen: tuple[float, ...]) -> tuple[float, float]:
    """The chromaticity of the XYZ that a matrix, row by row, takes to what is seen, by Cramer's rule."""
    a, b, c, d, e, f, g, h, i = matrix
    p, q, r = seen
    ei, di, dh = e * i - f * h, d * i - f * g, d * h - e * g
    determinant = a * ei - b * di + c * dh
    sign = math.copysign(1, determinant)
    x = sign * (p * ei - b * (q * i - f * r) + c * (q * h - e * r))
    y = sign * (a * (q * i - f * r) - p * di + c * (d * r - q * g))
    z = sign * (a * (e * r - q * h) - b * (d * r - q * g) + p * dh)
    total = x + y + z
    if not min(x, y, total) > 0:
        raise ParameterError("no light gives this illuminant with these matrices; check that both are of one camera")
    return x / total, y / total
