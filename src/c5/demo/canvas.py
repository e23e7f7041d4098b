"""The canvas a scene is painted on, in the RGB of one camera under one light.

Every surface has a reflectance spectrum; its RGB in the main light and in the fill light are worked out once, and a
pixel is then a weighted sum of them. Light adds up, so this equals a spectral rendering.

Coordinates: y runs from 0 at the top to 1 at the bottom, x from 0 at the left to the aspect ratio, so that a scene has
the same layout at every size. Heights and distances use the same unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from c5.color import Bools, Float64s
from c5.colorimetry.spectra import WAVELENGTHS, read_spectra
from c5.demo.camera import VirtualCamera
from c5.demo.lights import OUTDOORS, Light

Values: TypeAlias = NDArray[np.floating]
"""Numbers over the picture, float32 throughout; NumPy's type stubs lose sight of that in arithmetic."""
Field: TypeAlias = Values | float
TILE = 256


@dataclass(frozen=True, eq=False)
class Canvas:
    """Pixels to paint on, and the light they are in. A crop shares the pixels of the whole."""

    rgb: Values
    """(3, height, width), painted in place; a perfect white in the main light is 1 in green."""
    mask: Bools
    """(height, width), False on a color chart."""
    x: Values
    """(1, width)"""
    y: Values
    """(height, 1)"""
    pixel: float
    """Size of a pixel in canvas units."""
    light: Light
    toward: Values
    """Unit vector to the main light: right, down, towards the viewer."""
    main: dict[str, Values]
    """RGB of each surface in the main light; "white" is the perfect reflector."""
    fill: dict[str, Values]

    @classmethod
    def new(cls, camera: VirtualCamera, light: Light, size: tuple[int, int], toward: Values) -> Canvas:
        height, width = size
        names, reflectances = _surfaces()
        scale = 1 / camera.respond(light.spectrum)[1]

        def colors(spectrum: Float64s) -> dict[str, Values]:
            rgb = camera.respond(reflectances * spectrum) * scale
            return dict(zip(names, rgb.astype(np.float32), strict=True))

        return cls(
            rgb=np.zeros((3, height, width), np.float32),
            mask=np.ones((height, width), np.bool_),
            x=((np.arange(width, dtype=np.float32) + 0.5) / height)[None],
            y=((np.arange(height, dtype=np.float32) + 0.5) / height)[:, None],
            pixel=1 / height,
            light=light,
            toward=toward,
            main=colors(light.spectrum),
            fill=colors(light.fill),
        )

    @property
    def aspect(self) -> float:
        return float(self.x.shape[1] * self.pixel)

    @property
    def outdoors(self) -> bool:
        return self.light.family in OUTDOORS

    def crop(self, left: float, top: float, right: float, bottom: float) -> Canvas:
        """The part inside a box, at least one pixel large."""
        rows = self._span(self.y[:, 0], top, bottom)
        columns = self._span(self.x[0], left, right)
        rgb, mask = self.rgb[:, rows, columns], self.mask[rows, columns]
        return replace(self, rgb=rgb, mask=mask, x=self.x[:, columns], y=self.y[rows])

    def _span(self, centers: Values, low: float, high: float) -> slice:
        start = float(centers[0])
        first = min(max(int((low - start) / self.pixel), 0), centers.size - 1)
        return slice(first, min(max(int((high - start) / self.pixel) + 2, first + 1), centers.size))

    # Painting

    def paint(self, cover: Field, surfaces: Mapping[str, Field], lit: Field) -> None:
        """Lay a mixture of surfaces over what is there.

        `cover` is the opacity; the weights of `surfaces` scale their reflectance; `lit` is the part of the main light
        that arrives, and the fill light makes up for the rest.
        """
        shape = self.mask.shape
        count = len(surfaces)
        shares = np.empty((2 * count, *shape), np.float32)
        shadow = self.light.ambient * (1 - np.minimum(lit, 1))
        for i, weight in enumerate(surfaces.values()):
            shares[i] = weight * lit
            shares[count + i] = weight * shadow
        colors = np.stack([*(self.main[s] for s in surfaces), *(self.fill[s] for s in surfaces)], axis=1)
        self._lay(cover, np.einsum("cs,shw->chw", colors, shares))

    def shine(self, cover: Field, main: Field, fill: Field = 0.0) -> None:
        """Lay light itself over what is there: sky, haze, lamps. The numbers are brightness relative to white."""
        color = np.empty((3, *self.mask.shape), np.float32)
        for channel in range(3):
            color[channel] = main * self.main["white"][channel] + fill * self.fill["white"][channel]
        self._lay(cover, color)

    def glint(self, strength: Values) -> None:
        """Add a mirror-like reflection of the main light."""
        self.rgb[...] += strength * self.main["white"][:, None, None]

    def dim(self, factor: Field) -> None:
        """Scale the light of what is there: contact shadows, dirt, vignetting."""
        self.rgb[...] *= factor

    def shadow(self, amount: Values) -> None:
        """Take the main light away from what is there; what stays has the color of the fill light."""
        kept = self.light.ambient * self.fill["white"] / self.main["white"]
        hard = amount * (0.35 + 0.65 * self.light.hardness)
        self.rgb[...] *= 1 - hard * (1 - kept[:, None, None])

    def blur(self, sigma: float) -> None:
        """Gaussian blur by `sigma` canvas units."""
        if sigma < 0.3 * self.pixel:
            return
        pixels = sigma / self.pixel
        down = _blurred(np.ascontiguousarray(self.rgb.transpose(1, 0, 2)), pixels)
        self.rgb[...] = _blurred(np.ascontiguousarray(down.transpose(2, 1, 0)), pixels).transpose(1, 2, 0)

    def _lay(self, cover: Field, color: Values) -> None:
        if isinstance(cover, float) and cover >= 1:
            self.rgb[...] = color
        else:
            color -= self.rgb
            color *= cover
            self.rgb[...] += color

    # Fields

    def noise(
        self, rng: np.random.Generator, cells: float, octaves: int = 5, falloff: float = 0.5, stretch: float = 1.0
    ) -> Values:
        """Smooth random field, mean 0 and variance 1; `cells` bumps per unit height, `stretch` times wider than high.

        Each octave is twice as fine and `falloff` as strong as the one before; octaves finer than a pixel are left out.
        """
        own = np.random.default_rng(rng.integers(1 << 62))  # the number of octaves must not shift the caller's stream
        height, width = self.mask.shape
        rows, columns = cells * self.pixel, cells / stretch * self.pixel  # knots per pixel
        grid = own.standard_normal((_knots(height, rows), _knots(width, columns)), dtype=np.float32)
        power, strength = 1.0, 1.0
        for _ in range(octaves - 1):
            if 2 * rows > 0.75:
                break
            rows, columns, strength = 2 * rows, 2 * columns, strength * falloff
            grid = _refine(_refine(grid).T).T[: _knots(height, rows), : _knots(width, columns)]
            grid = grid + np.float32(strength) * own.standard_normal(grid.shape, dtype=np.float32)
            power += strength**2
        grid *= np.float32(SPLINE_GAIN / np.sqrt(power))
        return _interpolate(np.ascontiguousarray(_interpolate(grid, height, rows).T), width, columns).T

    def ridge(self, rng: np.random.Generator, cells: float, octaves: int = 5, falloff: float = 0.5) -> Values:
        """A random line over x, (1, width), mean 0 and variance 1."""
        own = np.random.default_rng(rng.integers(1 << 62))
        width = self.mask.shape[1]
        total, power, strength = np.zeros(width, np.float32), 0.0, 1.0
        for _ in range(octaves):
            step = cells * self.pixel
            total += np.float32(strength) * _interpolate(
                own.standard_normal(_knots(width, step), dtype=np.float32), width, step
            )
            power += strength**2
            strength *= falloff
            cells *= 2
        return np.asarray(total[None] * np.sqrt(SPLINE_GAIN) / np.sqrt(power), dtype=np.float32)

    def plane(self, tile: Values, u: Values, v: Values) -> Values:
        """Sample a tile that repeats every unit of u and v, for textures in perspective."""
        u, v = u * TILE, v * TILE
        column, row = np.floor(u), np.floor(v)
        fu, fv = u - column, v - row
        first = (row.astype(np.int32) % TILE) * TILE
        below = ((row.astype(np.int32) + 1) % TILE) * TILE
        left, right = column.astype(np.int32) % TILE, (column.astype(np.int32) + 1) % TILE
        flat = tile.ravel()
        top = flat[first + left] * (1 - fu) + flat[first + right] * fu
        bottom = flat[below + left] * (1 - fu) + flat[below + right] * fu
        return np.asarray(top + fv * (bottom - top), dtype=np.float32)

    def inside(self, distance: Values, softness: float = 0.0) -> Values:
        """Opacity of a shape from the signed distance to its edge (negative inside), antialiased."""
        return np.asarray(np.minimum(np.maximum(0.5 - distance / (softness + 1.2 * self.pixel), 0), 1))

    def lambert(self, nx: Field, ny: Field, nz: Field) -> Values:
        """The part of the main light on a surface with that unit normal; soft light also reaches around edges."""
        facing = nx * self.toward[0] + ny * self.toward[1] + nz * self.toward[2]
        around = 0.55 + 0.45 * facing
        hard = self.light.hardness
        return np.asarray(hard * np.maximum(facing, 0) + (1 - hard) * around, dtype=np.float32)

    def relief(self, height: Values) -> Values:
        """`lambert` of a surface that stands out of the picture by `height`."""
        nx, ny = np.empty_like(height), np.empty_like(height)
        nx[:, 1:] = height[:, :-1] - height[:, 1:]
        nx[:, :1] = nx[:, 1:2] if height.shape[1] > 1 else 0
        ny[1:] = height[:-1] - height[1:]
        ny[:1] = ny[1:2] if height.shape[0] > 1 else 0
        nx /= self.pixel
        ny /= self.pixel
        nz = 1 / np.sqrt(nx * nx + ny * ny + 1)
        return self.lambert(nx * nz, ny * nz, nz)


@cache
def _surfaces() -> tuple[list[str], Float64s]:
    """Names and reflectances (count, wavelengths) of all that can be painted."""
    chart = {f"chart {name}": spectrum for name, spectrum in read_spectra("chart").items()}
    table = read_spectra("surface") | read_spectra("tcs") | chart | {"white": np.ones_like(WAVELENGTHS)}
    return list(table), np.stack(list(table.values()))


SPLINE_GAIN = 2.08
"""One over the standard deviation of a two-dimensional B-spline with random coefficients of variance 1."""


def _knots(count: int, step: float) -> int:
    """Coefficients that a cubic B-spline needs for `count` points `step` knots apart."""
    return int((count - 1) * step) + 4


@lru_cache(maxsize=512)
def _spline(count: int, step: float, start: float) -> tuple[NDArray[np.intp], Values]:
    """First coefficient (count,) and the four weights (4, count) of each point."""
    position = start + np.arange(count) * step
    knot = position.astype(np.intp)
    t = position - knot
    weights = np.stack([(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3]) / 6
    return knot, weights.astype(np.float32)


def _interpolate(coefficients: Values, count: int, step: float, start: float = 0.0) -> Values:
    """The spline along the first axis. Written out: BLAS calls this small wait for its threads on a busy machine."""
    knot, weights = _spline(count, step, start)
    weights = weights.reshape(4, count, *[1] * (coefficients.ndim - 1))
    total = weights[0] * coefficients[knot]
    for i in range(1, 4):
        total += weights[i] * coefficients[knot + i]
    return np.asarray(total, dtype=np.float32)


def _refine(coefficients: Values) -> Values:
    """The same spline along the first axis with twice the knots: n intervals and n + 3 coefficients become 2n."""
    fine = np.empty((2 * len(coefficients) - 3, *coefficients.shape[1:]), np.float32)
    between = coefficients[:-1] + coefficients[1:]
    fine[0::2] = 0.5 * between
    fine[1::2] = 0.125 * (between[:-1] + between[1:]) + 0.5 * coefficients[1:-1]
    return fine


def _blurred(image: Values, sigma: float) -> Values:
    """Blur along the first axis, `sigma` in pixels: three taps, or a spline through the means of blocks if it is large.

    Means over k pixels have the variance k^2 / 12 and a cubic B-spline with knots k apart adds k^2 / 3.
    """
    if sigma < 0.75:
        side = np.float32(0.5 * sigma**2)
        padded = np.concatenate([image[:1], image, image[-1:]])
        return np.asarray((1 - 2 * side) * image + side * (padded[:-2] + padded[2:]), dtype=np.float32)
    count = len(image)
    block = max(2, round(sigma * np.sqrt(12 / 5)))
    first = np.arange(0, count, block)
    sizes = np.diff(first, append=count).astype(np.float32)
    means = np.add.reduceat(image, first, axis=0) / sizes.reshape(-1, *[1] * (image.ndim - 1))
    means = np.concatenate([means[:1], means[:1], means, means[-1:], means[-1:]])
    return _interpolate(means, count, 1 / block, 0.5 + 0.5 / block)


def tile(rng: np.random.Generator, cells: int, octaves: int = 4, falloff: float = 0.6, stretch: int = 1) -> Values:
    """(TILE, TILE) noise of variance 1 that repeats without a seam; `stretch` times wider than high.

    `cells` and `stretch` are powers of two.
    """
    grid = rng.standard_normal((cells, cells // stretch), dtype=np.float32)
    power, strength = 1.0, 1.0
    while grid.shape[1] < TILE:
        for axis in [0, 1] if grid.shape[0] < TILE else [1]:
            grid = _refine_ring(grid, axis)
        octaves -= 1
        if octaves > 0:
            strength *= falloff
            grid += np.float32(strength) * rng.standard_normal(grid.shape, dtype=np.float32)
            power += strength**2
    return np.asarray(grid * (SPLINE_GAIN / np.sqrt(power)), dtype=np.float32)


def _refine_ring(grid: Values, axis: int) -> Values:
    fine = np.repeat(grid, 2, axis=axis)
    after = np.roll(grid, -1, axis)
    even, odd = (np.s_[i::2] if axis == 0 else np.s_[:, i::2] for i in (0, 1))
    fine[even] = 0.125 * (np.roll(grid, 1, axis) + 6 * grid + after)
    fine[odd] = 0.5 * (grid + after)
    return fine


def smoothstep(low: float, high: float, value: Values) -> Values:
    """0 below `low`, 1 above `high`, smooth between; with low > high it falls."""
    t = np.minimum(np.maximum((value - low) / (high - low), 0), 1)
    return np.asarray(t * t * (3 - 2 * t), dtype=np.float32)
