"""Log-chroma histograms of a linear image (Eq. 3), and the grid that says where each bin is.

Multiplying the channels of an image by constants translates its log-chroma values, and so its histogram. Finding the
illuminant is finding where the histogram sits.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.color import Bools, Float32s, Float64s, Floats
from c5.errors import ImageError, ParameterError, ReadError
from c5.fingerprints import fingerprint, probe
from c5.image import WORKING_PIXELS, LinearImage, require_counts, shrink

BLOCK_PIXELS = 64 * 400
"""Pixels processed at a time: the data for that many, about 2 MB, stay in a core's cache."""

ALLOCATOR_BYTES = 24 * 2**20

FLOOR = np.float32(1e-30)
"""Added to every channel, so that a channel at zero puts a color far out of range instead of nowhere."""

FLAT = float(FLOOR) * 1e9
"""Gradients whose weights sum to less come from `FLOOR` alone: there is no gradient."""


class Geometry(Enum):
    """How pixels are spread over bins, and bins read back as log-chroma."""

    EXACT = "exact"
    """A pixel is shared between the bins around it by bilinear weights and a blur of [1 2 1] / 4, so that the centroid
    of its histogram is the pixel. It is weighted by the geometric mean of its RGB, so that gains of whole bins shift
    the histogram without changing it. Clipped pixels do not count. v increases with the row."""
    PUBLISHED = "published"
    """The geometry of the models published with the paper: a pixel counts fully in the four nearest bins and is
    weighted by the length of its RGB, the bins are 1.6 % closer together when they are read back, clipped pixels count,
    and v decreases with the row. The convolution wraps around."""
    TEXT = "text"
    """The geometry of the paper's text: as published, but bins keep their distance when they are read back, the
    convolution does not wrap around, and v increases with the row."""


@dataclass(frozen=True)
class Grid:
    """A square of log-chroma cut into bins; columns run along u, rows along v."""

    bins: int = 64
    limit: float = 2.85
    """The square is |u|, |v| <= limit, in nats."""
    geometry: Geometry = Geometry.EXACT
    powers: tuple[int, ...] = (1,)
    """There is one pixel histogram for each power: its pixels are weighted by brightness ** power. Power 0 counts all
    pixels alike, 3 hardly any but the brightest. Power 1 is always among them. Gradients are weighted by their
    brightness."""
    strips: int = 1
    """With more than one, the light is searched for in a second set of histograms: the mean over this many horizontal
    strips of the image, each weighted by how many of its pixels count. A bright window in one strip then cannot
    outshine the others."""
    pixels: int = WORKING_PIXELS
    """If many more pixels of an image count, only every second, third, ... row is used. Rows are skipped rather than
    averaged, since an average of colors is another color."""

    def __post_init__(self) -> None:
        if not isinstance(self.bins, int) or self.bins not in (16, 32, 64, 128):
            raise ParameterError(f"bins must be 16, 32, 64 or 128, not {self.bins}")
        if not 0 < self.limit < 20:
            raise ParameterError(f"limit must lie between 0 and 20 nats, not {self.limit}")
        if not self.powers or len(set(self.powers)) < len(self.powers):
            raise ParameterError(f"powers must be one or more, each once, not {self.powers}")
        if not all(isinstance(power, int) and 0 <= power <= 4 for power in self.powers):
            raise ParameterError(f"powers must be whole numbers from 0 to 4, not {self.powers}")
        if 1 not in self.powers:
            raise ParameterError(f"powers must contain 1, the histogram by brightness, not only {self.powers}")
        if not isinstance(self.strips, int) or not 1 <= self.strips <= 16:
            raise ParameterError(f"strips must lie between 1 and 16, not {self.strips}")
        if not isinstance(self.pixels, int) or not 4096 <= self.pixels <= WORKING_PIXELS:
            raise ParameterError(f"pixels must lie between 4096 and {WORKING_PIXELS}, not {self.pixels}")
        if self.geometry is not Geometry.EXACT and (self.powers, self.strips) != ((1,), 1):
            raise ParameterError(
                f"the {self.geometry.value} geometry has one pixel histogram, by the first power, and no strips"
            )

    @classmethod
    def published(cls, bins: int = 64) -> Grid:
        """The grid of the models published with the paper."""
        return cls(bins, geometry=Geometry.PUBLISHED)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Grid:
        """The grid that `to_json` describes; powers, strips and pixels may be left out."""
        geometry = data["geometry"]
        if geometry not in [known.value for known in Geometry]:
            raise ParameterError(f"no geometry is called {geometry!r}")
        powers, strips = tuple(data.get("powers", (1,))), data.get("strips", 1)
        pixels = data.get("pixels", WORKING_PIXELS)
        return cls(data["bins"], data["limit"], Geometry(geometry), powers, strips, pixels)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"geometry": self.geometry.value, "powers": list(self.powers)}

    @cached_property  # a catalog asks for it twice for each photograph
    def key(self) -> str:
        """Identifies histograms on this grid: model identities, caches and catalogs contain it.

        It names the parameters and the counts of a fixed image: when the counting changes, so does the key.
        """
        powers = "".join(map(str, self.powers))
        parts = (self.bins, f"{self.limit:g}", self.geometry.value, powers, self.strips, self.pixels)
        rows = () if self.pixels == WORKING_PIXELS else (_rows_key(),)
        return "-".join(map(str, (*parts, _counting_key(self.geometry), *rows)))

    @property
    def channels(self) -> int:
        """How many histograms a network looks at: one for each power, and that of gradients."""
        return len(self.powers) + 1

    @property
    def seen(self) -> slice:
        """The part of a stack of histograms that a network looks at."""
        return slice(0, self.channels)

    @property
    def searched(self) -> slice:
        """The part of a stack of histograms in which the light is searched for."""
        return slice(self.shape[0] - self.channels, self.shape[0])

    @property
    def without_strips(self) -> Grid:
        """The same without strips: enough for the images of a roll, in which no light is searched for."""
        return replace(self, strips=1)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the stack of histograms of one image."""
        return self.channels * (1 if self.strips == 1 else 2), self.bins, self.bins

    @property
    def step(self) -> float:
        """The distance between bin centers when a heat map is read back, in nats."""
        return 2 * self.limit / self.bins

    @cached_property
    def u(self) -> Float64s:
        """(bins,) the u of each column when a heat map is read back."""
        return np.asarray((np.arange(self.bins) - (self.bins - 1) / 2) * self.step)

    @cached_property
    def v(self) -> Float64s:
        """(bins,) the v of each row when a heat map is read back."""
        return -self.u if self.geometry is Geometry.PUBLISHED else self.u


@dataclass(frozen=True, eq=False)
class Histograms:
    """The histograms of an image on a grid, or of several images along leading axes."""

    grid: Grid
    stack: Float32s
    """(..., *grid.shape): for each power the histogram of pixels, then that of gradients; with strips, all of them
    again, averaged over the strips. Each holds square roots of shares that sum to 1."""

    def __post_init__(self) -> None:
        if self.stack.shape[-3:] != self.grid.shape or self.stack.dtype != np.float32:
            raise ParameterError(
                f"histograms on this grid must be float32 of shape (..., {', '.join(map(str, self.grid.shape))}), not "
                f"{self.stack.dtype} {self.stack.shape}; make them with c5.histogram(image, grid)"
            )

    @property
    def seen(self) -> Float32s:
        """(..., channels, bins, bins) what a network looks at."""
        return self.stack[..., self.grid.seen, :, :]

    @property
    def searched(self) -> Float32s:
        """(..., channels, bins, bins) where the light is searched for."""
        return self.stack[..., self.grid.searched, :, :]

    @property
    def by_brightness(self) -> Float32s:
        """(..., bins, bins) the histogram of pixels weighted by their brightness, which every grid has."""
        return self.stack[..., self.grid.powers.index(1), :, :]

    @property
    def vividness(self) -> Float64s:
        """(...) the standard deviation of log-chroma over the pixels, weighted by their brightness."""
        masses = self.by_brightness.astype(np.float64) ** 2  # the histogram holds square roots
        masses /= masses.sum(axis=(-2, -1), keepdims=True)
        spread = np.zeros(masses.shape[:-2])
        for centers, axis in ((self.grid.u, -2), (self.grid.v, -1)):
            shares = masses.sum(axis=axis)
            mean = shares @ centers
            spread += shares @ centers**2 - mean**2
        return np.sqrt(np.maximum(spread, 0))

    @property
    def without_strips(self) -> Histograms:
        """The same without strips, as the images of a roll need them."""
        return self if self.grid.strips == 1 else Histograms(self.grid.without_strips, self.seen)

    def pack(self) -> bytes:
        """The stack, lossless, in a few kilobytes per image: most bins are empty."""
        bytes_of_each = np.ascontiguousarray(self.stack, "<f4").view(np.uint8).reshape(-1, 4)
        return zlib.compress(bytes_of_each.T.tobytes(), 6)  # exponents compress well when they are together

    @classmethod
    def unpack(cls, grid: Grid, packed: bytes) -> Self:
        """Undo `pack`, for one image. Damaged bytes raise a ReadError."""
        size = 4 * int(np.prod(grid.shape))
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(packed, size)
        except zlib.error as error:
            raise ReadError(f"damaged histograms: {error}") from None
        if len(data) != size or unpacker.unconsumed_tail:
            raise ReadError(f"{len(data)} bytes of histograms, not {size}")
        # Bytes are put together by shifts of whole planes, a quarter of the time that a transposed copy takes.
        first, second, third, fourth = np.frombuffer(data, np.uint8).reshape(4, -1).astype(np.uint32)
        stack = (first | second << 8 | third << 16 | fourth << 24).view(np.float32).reshape(grid.shape)
        if not np.isfinite(stack).all():
            raise ReadError("histograms that are not finite")
        return cls(grid, stack)


def histogram(image: LinearImage | ArrayLike, grid: Grid = Grid()) -> Histograms:
    """The histograms of an image: of its pixels for each power of the grid, and of its gradients.

    Bright pixels weigh more (see `Geometry`). Each histogram is scaled to sum 1, then its square root is taken. The
    gradient histogram of a picture without any gradient is all zero. Images above `WORKING_PIXELS` are area-averaged
    first. Arrays are linear RGB: uint8, uint16, or float in [0, 1].
    """
    pixels, gradients, where = _count(image, grid)
    totals = np.concatenate([pixels.bins(), gradients.bins()], axis=1).reshape(grid.shape)
    sums = totals.sum(axis=(1, 2), keepdims=True)
    empty = sums <= 0
    if empty[0]:
        raise ImageError(
            f"{where}no usable pixels: every color lies outside the histogram, |u|, |v| <= {grid.limit}; "
            "a channel is dead or the black level is wrong"
        )
    return Histograms(grid, np.sqrt(totals / np.where(empty, np.inf, sums)).astype(np.float32))


@cache
def _counting_key(geometry: Geometry) -> str:
    grid = Grid(powers=(0, 1, 2, 3, 4), strips=3) if geometry is Geometry.EXACT else Grid(geometry=geometry)
    return fingerprint(histogram(probe(PROBE_SEEDS[geometry]), grid).stack)


@cache
def _rows_key() -> str:
    """The same for an image of which rows are skipped."""
    return fingerprint(histogram(probe(ROWS_SEED, repeats=20), Grid(strips=3, pixels=4096)).stack)


PROBE_SEEDS = {Geometry.EXACT: 1335, Geometry.PUBLISHED: 41, Geometry.TEXT: 1}
ROWS_SEED = 120
"""No bin of the histograms of these images is near a rounding edge."""


def cell_weights(image: LinearImage | ArrayLike, grid: Grid) -> Float64s:
    """What `histogram` counts before it is shared between bins: (channels, bins + 3, bins + 3) sums of weights.

    Cell (i, j) holds the colors within half a step of `cell_position(i)` along v and `cell_position(j)` along u; the
    first and last rows and columns hold what lies beyond the grid.
    """
    pixels, gradients, _ = _count(image, grid)
    assert isinstance(pixels, _BilinearCounter)
    assert isinstance(gradients, _BilinearCounter)
    return np.concatenate([pixels.cell_weights(), gradients.cell_weights()])


def cell_position(index: NDArray[np.integer[Any]], grid: Grid) -> Float64s:
    """The log-chroma in the middle of a row or column of cells."""
    return np.asarray((index - (grid.bins + 2) / 2) * grid.step)


def _count(image: LinearImage | ArrayLike, grid: Grid) -> tuple[_Counter, _Counter, str]:
    """Pixels and gradients, counted, and the image's name for errors."""
    # Once a block of this size has been freed, glibc keeps memory between two histograms instead of giving it back to
    # the system and asking for it again, page by page, which takes as long as the counting itself (mallopt(3)).
    np.empty(ALLOCATOR_BYTES, np.uint8)
    pixels: _Counter
    gradients: _Counter
    if grid.geometry is Geometry.EXACT:
        colors = _exact_colors(image)
        pixels, gradients = _BilinearCounter(grid, grid.powers), _BilinearCounter(grid, (1,), FLAT)
    else:
        colors = _published_colors(image)
        pixels, gradients = _PublishedCounter(grid), _PublishedCounter(grid)
    height, stride = colors.planes.shape[1:]
    every = _row_step(colors.pixels_count, grid.pixels)
    rows = max(1, BLOCK_PIXELS // stride // every) * every
    edges = [1 + strip * (height - 2) // grid.strips for strip in range(grid.strips + 1)]
    for first, end in pairwise(edges):
        for top in range(first + (1 - first) % every, end, rows):
            bottom = min(top + rows, end)
            inner = slice(top, bottom, every)
            pixels.add(colors.planes[:, inner].reshape(3, -1), colors.pixels_count[inner].ravel())
            gradient = gradients_of(colors.planes[:, top - 1 : bottom + 1].reshape(3, -1), stride)
            gradient = gradient.reshape(3, -1, stride)[:, 1:-1:every].reshape(3, -1)
            gradients.add(gradient, colors.gradients_count[inner].ravel())
        pixels.end_strip()
        gradients.end_strip()
    return pixels, gradients, colors.where


def _row_step(counts: Bools, most: int) -> int:
    """Use one row in this many, so that about `most` of the pixels that count are used."""
    every = max(1, int(np.count_nonzero(counts)) // most)
    return every if counts[1::every].any() else 1


class _Colors(NamedTuple):
    """What is counted, with one pixel of padding on every side."""

    planes: Floats  # (3, height + 2, width + 2), the border repeated
    pixels_count: Bools  # (height + 2, width + 2), False in the padding
    gradients_count: Bools  # the same
    where: str  # the image's name, for errors


def _exact_colors(image: LinearImage | ArrayLike) -> _Colors:
    image = shrink(image)
    counts = require_counts(image)
    # A gradient counts only if all nine pixels it is taken from count.
    return _Colors(pad(image.rgb), np.pad(counts, 1), np.pad(erode(counts), 1), image.where)


def _published_colors(image: LinearImage | ArrayLike) -> _Colors:
    """Clipped pixels count; masked areas are black, and their outline counts as a gradient."""
    full = image if isinstance(image, LinearImage) else LinearImage(np.asarray(image))
    image = shrink(replace(full, clipped=np.zeros_like(full.clipped)))
    rgb = np.where(image.mask[..., None], image.rgb, 0).astype(np.float64)
    counts = require_counts(image, rgb.sum(axis=-1) >= 1e-9)
    return _Colors(pad(rgb), np.pad(counts, 1), np.pad(np.ones_like(counts), 1), image.where)


def erode(flags: Bools) -> Bools:
    """True where a pixel and its eight neighbors are all True; beyond the border all is True."""
    padded = np.pad(flags, 1, constant_values=True)
    stride = padded.shape[1]
    flat = padded.ravel()  # neighbors are a fixed distance apart, as in `gradients_of`
    column = flat[: -2 * stride] & flat[stride:-stride] & flat[2 * stride :]
    column[1:-1] &= column[:-2] & column[2:]
    return np.asarray(column.reshape(-1, stride)[:, 1:-1])


def pad(rgb: Floats) -> Floats:
    """(height, width, 3) to planes (3, height + 2, width + 2) with the border repeated."""
    return np.pad(rgb.transpose(2, 0, 1), ((0, 0), (1, 1), (1, 1)), "edge")


def gradients_of(planes: Floats, stride: int) -> Floats:
    """The mean absolute difference of each pixel to its eight neighbors, in planes (3, rows * stride).

    Neighbors are a fixed distance apart in a plane laid out flat, and each difference serves both its pixels. The
    pixels around the border get nonsense: they are padding.
    """
    total = np.zeros_like(planes)
    difference = np.empty_like(planes)
    for distance in (1, stride - 1, stride, stride + 1):
        ends = difference[:, distance:]
        np.subtract(planes[:, distance:], planes[:, :-distance], out=ends)
        np.abs(ends, out=ends)
        total[:, distance:] += ends
        total[:, :-distance] += ends
    total *= 0.125
    return total


class _BilinearCounter:
    """Shares each color between the bins around it, once for each power of brightness.

    Colors are counted by the cell they lie in: cell i lies between the centers of bins i - 2 and i - 1, and the first
    and last cells collect what is out of range. Four moments of the position (x, y) inside a cell, the sums of w, wx,
    wy and wxy, give all bilinear shares; the blur comes after. Two complex numbers carry them, since adding to an array
    by index costs the same for a complex number as for a real one.
    """

    def __init__(self, grid: Grid, powers: tuple[int, ...], least: float = 0.0) -> None:
        """Weights that sum to `least` or less count as none."""
        self.least = least
        self.cells = grid.bins + 3
        self.last = np.float32(self.cells - 1)
        self.scale = np.float32(1 / grid.step)
        self.offset = np.float32((grid.bins - 1) / 2 + 2)
        self.powers = powers
        self.moments = np.zeros((len(powers), 2, self.cells * self.cells), np.complex128)  # of the current strip
        self.counted = 0  # of its colors
        self.sums = np.zeros((1 if grid.strips == 1 else 2, *self.moments.shape), np.complex128)

    def add(self, colors: Floats, counts: Bools) -> None:
        self.counted += int(np.count_nonzero(counts))
        r, g, b = colors + FLOOR
        x, y = g / r, g / b
        np.log(x, out=x)
        np.log(y, out=y)
        # The geometric mean of r, g and b: gains scale it equally for all colors, so they only shift the histogram.
        brightness = x + y
        brightness *= np.float32(-1 / 3)
        np.exp(brightness, out=brightness)
        brightness *= g
        for position in (x, y):
            position *= self.scale
            position += self.offset
            np.clip(position, 0, self.last, out=position)
        column, row = np.floor(x), np.floor(y)
        x -= column
        y -= row
        row *= self.cells
        row += column
        index = row.astype(np.int32).astype(np.intp)  # both steps are vectorized, the direct one is not
        value = np.empty(index.size, np.complex128)
        for power, moments in zip(self.powers, self.moments, strict=True):
            weight = counts.astype(np.float32)
            for _ in range(power):
                weight *= brightness
            value.real = weight
            weight *= x
            value.imag = weight
            np.add.at(moments[0], index, value)
            value *= y
            np.add.at(moments[1], index, value)

    def end_strip(self) -> None:
        self.sums[0] += self.moments
        if len(self.sums) > 1:
            within = self.moments[:, 0].real.reshape(-1, self.cells, self.cells)[:, 1:-1, 1:-1].sum(axis=(1, 2))
            share = self.counted / np.where(within <= self.least, np.inf, within)
            self.moments.view(np.float64)[...] *= share[:, None, None]
            self.sums[1] += self.moments
        self.moments[...] = 0
        self.counted = 0

    def cell_weights(self) -> Float64s:
        return self.sums[0, :, 0].real.reshape(-1, self.cells, self.cells)

    def bins(self) -> Float64s:
        """(1, powers, bins, bins), or (2, ...): strips weighted by brightness, then by how many colors count."""
        sums = self.sums.reshape(*self.sums.shape[:3], self.cells, self.cells)
        whole, x, y, xy = sums[:, :, 0].real, sums[:, :, 0].imag, sums[:, :, 1].real, sums[:, :, 1].imag
        above, own = slice(2, -1), slice(1, -2)  # a bin is the lower end of the cell above it, the upper end of its own
        total = (whole - x - y + xy)[..., above, above] + (x - xy)[..., above, own] + (y - xy)[..., own, above]
        total += xy[..., own, own]
        for _ in range(2):  # blurred by [1 2 1] / 4, once along each axis
            blurred = 0.5 * total
            blurred[..., 1:, :] += 0.25 * total[..., :-1, :]
            blurred[..., :-1, :] += 0.25 * total[..., 1:, :]
            total = blurred.swapaxes(-1, -2)
        total[total.sum(axis=(2, 3)) <= self.least] = 0
        return np.asarray(np.maximum(total, 0))  # where sums cancel they can round below zero


class _PublishedCounter:
    """Counts each color fully in each of the four bins around it, in double precision, as the published models do."""

    def __init__(self, grid: Grid) -> None:
        self.cells = grid.bins + 3
        self.published = grid.geometry is Geometry.PUBLISHED
        self.scale = (grid.bins - 1 if self.published else grid.bins) / (2 * grid.limit)
        self.offset = (grid.bins - 1) / 2 + 2
        self.total = np.zeros(self.cells * self.cells)

    def add(self, colors: Floats, counts: Bools) -> None:
        weight = np.sqrt((colors * colors).sum(axis=0)) * counts
        log_r, log_g, log_b = np.log(colors + 1e-9)
        x, y = ((log_g - other) * self.scale + self.offset for other in (log_r, log_b))
        column, row = (np.clip(position, 0, self.cells - 1).astype(np.intp) for position in (x, y))
        self.total += np.bincount(row * self.cells + column, weight, self.total.size)

    def end_strip(self) -> None:
        """There is only one."""

    def bins(self) -> Float64s:
        square = self.total.reshape(self.cells, self.cells)
        above, own = slice(2, -1), slice(1, -2)
        total = square[above, above] + square[above, own] + square[own, above] + square[own, own]
        return np.asarray(total[None, None, ::-1] if self.published else total[None, None])  # v downwards, or upwards


_Counter = _BilinearCounter | _PublishedCounter
