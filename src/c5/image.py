"""A linear raw photograph in memory, which of its pixels count, and its reduction to the working size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.color import WHITE_LEVEL, Bools, Float32s, Float64s, check_type, to_float32
from c5.errors import ImageError

WORKING_PIXELS = 384 * 256
"""Larger images are area-averaged to about this many pixels, whatever their aspect ratio."""


TALL = 32
"""An image is a tall strip if it has this many times more rows than columns."""


@dataclass(frozen=True, eq=False)
class LinearImage:
    """Linear camera RGB, black level removed, white level at 1.

    A pixel counts towards an estimate when it is unmasked, not clipped, and not black in all three channels.
    """

    rgb: NDArray[Any]
    """(height, width, 3) float32 in [0, 1]. uint8 and uint16 are scaled; negative values become 0."""
    mask: Bools = field(default=None)  # type: ignore[arg-type]
    """(height, width), False where a pixel must not count, such as on a color chart. Default: nowhere."""
    clipped: Bools = field(default=None)  # type: ignore[arg-type]
    """(height, width), True where a channel is at the white level. Default: where a channel of `rgb` is 1 or more."""
    camera: str | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        rgb = to_float32(check_pixels(self.rgb))
        lowest, highest = rgb.min(), rgb.max()  # NaN if any pixel is
        if not (np.isfinite(lowest) and np.isfinite(highest)):
            raise ImageError("the image holds NaN or infinite values; set such pixels to 0, which never counts")
        if highest > 1:
            raise ImageError(f"float pixels must lie in [0, 1], but one is {highest:g}; divide by the white level")
        if lowest < 0:
            rgb = np.maximum(rgb, 0)
        mask = np.broadcast_to(np.True_, rgb.shape[:2]) if self.mask is None else np.asarray(self.mask)
        if self.clipped is not None:
            clipped = np.asarray(self.clipped)
        elif highest < 1:
            clipped = np.broadcast_to(np.False_, rgb.shape[:2])
        else:
            full = rgb >= 1
            clipped = full[..., 0] | full[..., 1] | full[..., 2]  # much faster than a reduction over an axis of three
        for name, flags in (("mask", mask), ("clipped", clipped)):
            if flags.shape != rgb.shape[:2] or flags.dtype != np.bool_:
                raise ImageError(f"{name} must be boolean of shape {rgb.shape[:2]}, not {flags.dtype} {flags.shape}")
        for name, value in (("rgb", rgb), ("mask", mask), ("clipped", clipped)):
            object.__setattr__(self, name, value)

    @property
    def where(self) -> str:
        """The source as the beginning of a message; empty if there is none."""
        return f"{self.source}: " if self.source else ""

    @property
    def counts(self) -> Bools:
        """(height, width), True where a pixel counts."""
        return self.mask & ~self.clipped & (self.rgb @ np.ones(3, np.float32) > 0)


class StoredImage(NamedTuple):
    """A linear image for viewing, in half the memory: 16 bits per channel."""

    rgb: NDArray[np.uint16]
    """(height, width, 3), 65535 is white."""
    mask: Bools
    clipped: Bools

    @classmethod
    def of(cls, image: LinearImage) -> StoredImage:
        return cls(np.rint(image.rgb * np.float32(65535)).astype(np.uint16), image.mask, image.clipped)


def shrink(image: LinearImage | ArrayLike, target: int = WORKING_PIXELS) -> LinearImage:
    """An image, or an array of linear RGB, area-averaged to about `target` pixels; a smaller one keeps its size.

    Each working pixel is the mean of the source pixels under it that are neither masked nor clipped. Where those are
    fewer than half, it is flagged like the majority of the rest and holds the mean of all.
    """
    if isinstance(image, LinearImage):
        pixels, white, flagged, mask = image.rgb, 1.0, ~image.mask | image.clipped, image.mask
    else:
        pixels = check_pixels(image)
        white, flagged, mask = WHITE_LEVEL.get(pixels.dtype, 1.0), None, None
    height, width = pixels.shape[:2]
    scale = (height * width / target) ** 0.5
    if scale <= 1:
        return image if isinstance(image, LinearImage) else LinearImage(pixels)
    if height > TALL * width:  # rows cost time, however short they are
        return _turn(shrink(_turn(image if isinstance(image, LinearImage) else LinearImage(pixels)), target))

    # Whole cells first, in one pass over the many pixels; then the fraction that is left, on few.
    cells = _average_cells(pixels, min(int(scale), height, width), white, flagged, mask)
    size = max(1, round(height / scale)), min(max(1, round(width / scale)), target)
    share = cells.usable[:, None]
    small = resize(np.concatenate([cells.rgb, cells.rgb * share, share, cells.unmasked[:, None]], axis=1), size)
    everything, mean, usable, unmasked = small[:, :3], small[:, 3:6], small[:, 6:7], small[:, 7] >= 0.5
    enough = usable >= 0.5
    rgb = np.where(enough, mean / np.maximum(usable, 1e-6), everything)
    rgb = np.ascontiguousarray(np.moveaxis(np.clip(rgb, 0, 1, out=rgb), 1, 2))
    labels = (image.camera, image.source) if isinstance(image, LinearImage) else (None, None)
    return LinearImage(rgb, unmasked, unmasked & ~enough[:, 0], *labels)


def _turn(image: LinearImage) -> LinearImage:
    """The same with rows and columns swapped."""
    rgb = np.ascontiguousarray(image.rgb.swapaxes(0, 1))
    return LinearImage(rgb, image.mask.T, image.clipped.T, image.camera, image.source)


def require_counts(image: LinearImage, counts: Bools | None = None) -> Bools:
    """(height, width), which pixels count, by default as the image says; an ImageError if none does."""
    counts = image.counts if counts is None else counts
    if not counts.any():
        raise ImageError(
            f"{image.where}no usable pixels: all are black, clipped or masked; "
            "check the exposure, the black level and the mask"
        )
    return counts


def check_pixels(pixels: ArrayLike) -> NDArray[Any]:
    """The array, if it has the shape (height, width, 3) and numbers that pixels can have."""
    if isinstance(pixels, np.ma.MaskedArray):
        raise ImageError("masked arrays are not supported; give LinearImage(pixels.data, mask=...) what counts")
    array = check_type(pixels)
    if array.ndim != 3 or array.shape[2] != 3:
        what = f"{array.shape[2]} channels" if array.ndim == 3 else f"the shape {array.shape}"
        raise ImageError(f"an image needs linear RGB of shape (height, width, 3); this one has {what}")
    if array.size == 0:
        raise ImageError("the image is empty: it has no pixels")
    return array


class _Cells(NamedTuple):
    rgb: Float32s  # (rows, 3, columns), the mean of the usable pixels, or of all where they are less than half
    usable: Float32s  # (rows, columns), the fraction of usable pixels, 0 where less than half
    unmasked: Float32s  # (rows, columns), the fraction of unmasked pixels


def _average_cells(pixels: NDArray[Any], side: int, white: float, flagged: Bools | None, mask: Bools | None) -> _Cells:
    """Means over square cells. Only cells that hold a flagged or clipped pixel are examined pixel by pixel."""
    rows, columns = pixels.shape[0] // side, pixels.shape[1] // side
    by_row = (rows, side, columns, side)
    blocks = pixels[: rows * side, : columns * side].reshape(*by_row, 3)
    flags = None if flagged is None else flagged[: rows * side, : columns * side].reshape(by_row)
    unmasked = np.ones((rows, columns), np.float32)
    if mask is not None:
        unmasked[:] = mask[: rows * side, : columns * side].reshape(by_row).mean(axis=(1, 3))

    exact = np.uint32 if pixels.dtype.kind == "u" else np.float32
    across = np.tile(np.eye(3, dtype=np.float32), (side, 1))  # (side * 3, 3) sums the pixels of a cell's row
    rgb = np.empty((rows, 3, columns), np.float32)
    usable = np.ones((rows, columns), np.float32)
    for edge in (pixels[rows * side :], pixels[:, columns * side :]):  # outside the cells, but checked too
        _check_range(edge.min(initial=0), edge.max(initial=0), white)
    for row, block in enumerate(blocks):  # a row of cells at a time stays in the cache
        lowest = block.min() if exact is np.float32 else 0
        peaks = block.max(axis=0).reshape(columns, -1).max(axis=1)
        _check_range(lowest, peaks.max(), white)
        if lowest < 0:
            block = np.maximum(block, 0)
        sums = block.sum(axis=0, dtype=exact).reshape(columns, -1).astype(np.float32)
        rgb[row] = (sums @ across / (side * side * white)).T
        suspect = np.flatnonzero(peaks >= white if flags is None else flags[row].any(axis=(0, 2)))
        if suspect.size:
            cells = block[:, suspect]  # (side, cells, side, 3)
            if flags is None:
                good = (cells[..., 0] < white) & (cells[..., 1] < white) & (cells[..., 2] < white)
            else:
                good = ~flags[row][:, suspect]
            fraction = good.mean(axis=(0, 2), dtype=np.float32)
            enough = fraction >= 0.5
            usable[row, suspect] = fraction * enough
            sums = (cells * good[..., None]).sum(axis=0, dtype=exact).reshape(suspect.size, -1).astype(np.float32)
            means = sums @ across / (np.maximum(fraction, 1e-6)[:, None] * (side * side * white))
            rgb[row][:, suspect[enough]] = means[enough].T
    return _Cells(rgb, usable, unmasked)


def _check_range(lowest: float, highest: float, white: float) -> None:
    if not (np.float32(highest) <= white and np.isfinite(lowest)):  # NaN is neither
        bad = lowest if np.isinf(lowest) else highest
        raise ImageError(f"float pixels must lie in [0, 1] without NaN, but one is {bad:g}; divide by the white level")


def resize(cells: Float32s, size: tuple[int, int], shift: tuple[float, float] = (0.0, 0.0)) -> Float32s:
    """Area average of (height, channels, width) to a smaller size.

    `shift` is how far down and right of its place each cell was seen, in cells; it is undone.
    """
    height, channels, width = cells.shape
    tall = np.empty((size[0], channels * width), np.float32)
    rows = cells.reshape(height, -1)
    for new, old, weights in _bands(height, size[0], shift[0]):
        np.matmul(weights, rows[old], out=tall[new])
    small = np.empty((size[0] * channels, size[1]), np.float32)
    for new, old, weights in _bands(width, size[1], shift[1]):
        small[:, new] = tall.reshape(-1, width)[:, old] @ weights.T
    return small.reshape(size[0], channels, size[1])


def resize_weighted(
    weights: Float32s, size: tuple[int, int], shift: tuple[float, float] = (0.0, 0.0), cells: Float32s | None = None
) -> Iterator[tuple[tuple[slice, slice], Float32s, Float32s]]:
    """`resize` of weights (height, width), and of cells times their weights, in parts, each with its place; parts where
    the weights are 1 everywhere are skipped."""
    height, width = weights.shape
    across = _bands(width, size[1], shift[1])
    for new_rows, old_rows, down in _bands(height, size[0], shift[0]):
        differs = (weights[old_rows] != 1).any(axis=0)
        if differs.any():
            for new, old, right in across:
                if differs[old].any():
                    part = weights[old_rows, old]
                    counted = np.asarray(down @ part @ right.T, np.float32)
                    light = counted if cells is None else down @ (cells[old_rows, old] * part) @ right.T
                    yield (new_rows, new), counted, np.asarray(light, np.float32)


@lru_cache(maxsize=16)  # the photographs of a camera have one size
def _bands(length: int, target: int, shift: float) -> list[tuple[slice, slice, Float32s]]:
    """A few new pixels at a time, the old ones under them, and the share (new, old) of each old one in a new one."""
    bands, band = [], 32
    edges = np.linspace(0, length, target + 1)
    for start in range(0, target, band):
        low, high = edges[start:-1][:band, None], edges[start + 1 :][:band, None]
        first = max(int(np.floor(low[0, 0] - max(shift, 0))), 0)
        last = min(int(np.ceil(high[-1, 0] - min(shift, 0))), length)
        old = np.arange(first, last)
        shares = _overlap(low, high, old) * (target / length)
        if shift:
            shares = _balance(_overlap(low - shift, high - shift, old), old, shares @ old - shift)
        bands.append((slice(start, start + len(low)), slice(first, last), shares.astype(np.float32)))
    return bands


def _overlap(low: Float64s, high: Float64s, old: NDArray[np.intp]) -> Float64s:
    return np.asarray(np.maximum(np.minimum(high, old + 1) - np.maximum(low, old), 0))


def _balance(shares: Float64s, old: NDArray[np.intp], centers: Float64s) -> Float64s:
    """Shares that sum to 1, tilted so that their centers are where they should be, as far as the border allows.

    With overlaps alone, centers wander by up to an eighth of a pixel where a pixel is not a whole number of cells.
    """
    shares = shares / shares.sum(axis=1, keepdims=True)
    away = old - (shares @ old)[:, None]
    spread = (shares * away**2).sum(axis=1)
    tilt = (centers - shares @ old) / np.maximum(spread, 1e-6)
    shares = shares * np.maximum(1 + tilt[:, None] * away, 0)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def project(homography: Float64s, places: Float64s) -> Float64s:
    """(..., 2) places, mapped by a homography."""
    seen = places @ homography[:, :2].T + homography[:, 2]
    return np.asarray(seen[..., :2] / seen[..., 2:])


class Crop(NamedTuple):
    """A part of an image, as fractions of its height and width."""

    top: float = 0.0
    left: float = 0.0
    height: float = 1.0
    width: float = 1.0

    @classmethod
    def random(cls, rng: np.random.Generator, smallest: float) -> Crop:
        """A crop with both sides at least `smallest` of the whole."""
        height, width = rng.uniform(smallest, 1, 2)
        return cls(rng.uniform(0, 1 - height), rng.uniform(0, 1 - width), height, width)

    def cut(self, image: LinearImage) -> LinearImage:
        rows, columns = image.rgb.shape[:2]
        top, left = min(int(self.top * rows), rows - 1), min(int(self.left * columns), columns - 1)
        part = (
            slice(top, top + max(1, round(self.height * rows))),
            slice(left, left + max(1, round(self.width * columns))),
        )
        return LinearImage(image.rgb[part], image.mask[part], image.clipped[part], source=image.source)


WHOLE = Crop()
