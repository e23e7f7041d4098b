"""The mosaic of a raw file, averaged to the working size. LibRaw unpacks the sensor's numbers; nothing is demosaiced.

Each repeat of the color filters, a *unit* of 2x2 or 6x6 photosites, gives one color, and units are averaged straight to
the working size, with red, green and blue moved to the unit's center.

Everything that touches LibRaw is here, and runs in a process of its own: see `c5.io.worker`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.color import WHITE_LEVEL, Bools, Float32s, Float64s
from c5.errors import ImageError, ReadError
from c5.image import resize, resize_weighted
from c5.io.readers import MAX_BYTES, MAX_PIXELS
from c5.regular import open_regular

MAX_PIXELS_PER_BYTE = 64
"""No camera compresses better; a damaged header can claim any size."""

SMALL_UNITS = 2_000_000
"""Repeats of the color filters in a small picture."""

UNIT_ROWS = 32
"""This many rows of them stay in a core's cache."""

LEAST = np.float32(1e-6)
"""The weight of a cell in which every unit is clipped. It is not 0, because sums are divided by their weights."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_PERTURB = -1, -3, -6  # of malloc.h
MAX_BYTES_KEPT = 1 << 30

REMEDY = "export a linear 16-bit TIFF from a raw converter"
AGAIN = "copy it again from its source"


class Task(NamedTuple):
    """What to do with a raw file."""

    path: str
    is_dng: bool
    is_linear: bool
    """Whether it is a DNG of three colors at each pixel."""
    black: float
    white: float | None
    pixels: int
    more_pixels: int | None = None
    """For a second average, larger than the first."""


class Averaged(NamedTuple):
    """A raw file, averaged; in the file's own units unless stated otherwise."""

    rgb: Float32s
    """(height, width, 3) in [0, 1]."""
    clipped: Bools
    """(height, width), where less than half of the units under a pixel are unclipped."""
    size: tuple[int, int]
    """Height and width in photosites."""
    flip: int
    multipliers: list[float]
    """The camera's white balance, red, green, blue."""
    matrix: list[list[float]]
    """(3, 3), what LibRaw knows of the camera's colors; zeros where it knows nothing."""
    time: str | None
    """ISO 8601."""
    larger: tuple[NDArray[np.uint16], Bools] | None = None
    """The second average that was asked for, as `rgb` and `clipped`, where 65535 is 1."""


def average(task: Task, expect: Callable[[int], None] = lambda photosites: None) -> Averaged:
    """Read a raw file. `expect` receives its size before it is unpacked. Errors do not name the file."""
    import rawpy

    try:
        file = open_regular(task.path)
    except OSError as error:
        raise ReadError(f"cannot be opened: {error.strerror}; check the permissions and the disk") from None
    with file, rawpy.RawPy() as raw:
        with _zeroed_memory():
            _unpack(raw, file, task.path, expect)
        mosaic, sites = _find_mosaic(raw, task)
        rgb, clipped = _average(mosaic, sites, task.pixels, np.dtype(np.float32))
        larger = None
        if task.more_pixels is not None:
            larger = _average(mosaic, sites, task.more_pixels, np.dtype(np.uint16))
        size = (mosaic.shape[0], mosaic.shape[1] // sites.samples)
        with _libraw():
            flip, multipliers, matrix = raw.sizes.flip, raw.camera_whitebalance, raw.rgb_xyz_matrix
        white_balance, colors = list(map(float, multipliers[:3])), matrix[:3].tolist()
        return Averaged(rgb, clipped, size, flip, white_balance, colors, _time(raw), larger)


def _unpack(raw: Any, file: BinaryIO, path: str, expect: Callable[[int], None]) -> None:
    file_bytes = os.fstat(file.fileno()).st_size
    if file_bytes > MAX_BYTES:
        raise ReadError(f"{file_bytes / 1e9:.1f} GB are more than a photograph has; {AGAIN}")
    with _libraw():
        # By its descriptor: LibRaw takes only names in UTF-8, and another file may have the name by now.
        raw.open_file(f"/dev/fd/{file.fileno()}" if os.path.exists("/dev/fd") else path)
        height, width = raw.sizes.raw_height, raw.sizes.raw_width
    if height * width > min(MAX_PIXELS, MAX_PIXELS_PER_BYTE * file_bytes):
        raise ReadError(f"damaged or incomplete: claims {width}x{height} pixels in {file_bytes} bytes; {AGAIN}")
    expect(height * width)
    with _libraw():
        raw.unpack()


@contextmanager
def _zeroed_memory() -> Iterator[None]:
    """Fill memory with zeros before it is used, where the system can (glibc).

    LibRaw does not fill what a damaged file leaves out of its picture; without this, it would differ each time.
    """
    _set_memory(M_PERTURB, 255)  # fills with 255 ^ 255
    try:
        yield
    finally:
        _set_memory(M_PERTURB, 0)


def keep_memory() -> None:
    """Use the same memory for the next file, instead of giving it back and getting it again page by page."""
    for option in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
        _set_memory(option, MAX_BYTES_KEPT)


def _set_memory(option: int, value: int) -> None:
    """Set an option of malloc, where the system can (glibc)."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(option, value)


@contextmanager
def _libraw() -> Iterator[None]:
    """Turn what LibRaw raises into a ReadError. Put nothing inside but calls to LibRaw."""
    import rawpy

    try:
        yield
    except rawpy.LibRawFileUnsupportedError:
        version = ".".join(map(str, rawpy.libraw_version))
        raise ReadError(f"damaged, or unknown to LibRaw {version}; {REMEDY}") from None
    except MemoryError:
        raise ReadError(f"it needs more memory than a photograph does; {AGAIN}") from None
    except Exception as error:
        said = error.args[0] if error.args else b""
        reason = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(error)
        if "Input/output" in reason:  # what LibRaw calls the end of a file
            reason = "it ends before its data does"
        raise ReadError(f"damaged or incomplete: {reason or type(error).__name__}; {AGAIN}") from error


class _Sites(NamedTuple):
    """The photosites of a unit."""

    color: NDArray[np.intp]  # (rows, columns): 0, 1, 2 for red, green, blue; -1 for none
    black: Float64s  # (rows, columns)
    clip: NDArray[np.uint16]  # (rows, columns), the numbers from which a site is clipped
    white: float
    samples: int = 1  # numbers per pixel

    def places(self) -> Float64s:
        """(3, 2), how far down and right of the unit's center red, green and blue are seen, in units."""
        if self.samples > 1:
            return np.zeros((3, 2))
        center = (np.array(self.color.shape) - 1) / 2
        seen = [np.argwhere(self.color == channel).mean(axis=0) for channel in range(3)]
        return np.asarray((np.array(seen) - center) / self.color.shape)


def _time(raw: Any) -> str | None:
    try:
        time: datetime | None = raw.other.timestamp
    except (ArithmeticError, OSError, ValueError):  # a number that is no time
        return None
    return time.isoformat() if time and time.year > 1970 else None


def _find_mosaic(raw: Any, task: Task) -> tuple[NDArray[np.uint16], _Sites]:
    """The numbers of the picture, (height, width * samples), and what they mean. A view of LibRaw's memory."""
    with _libraw():
        place, pattern, image = raw.sizes, raw.raw_pattern, raw.raw_image
        letters, n_colors = raw.color_desc.decode("ascii", "replace"), raw.num_colors
        black, found_white, linear = raw.black_level_per_channel, raw.white_level, raw.camera_white_level_per_channel
    samples = 1
    if n_colors == 1:
        raise ImageError("a monochrome sensor sees no colors; there is no white to balance")
    if pattern is None:
        if not (task.is_linear and image.ndim == 3 and n_colors == 3):
            raise ImageError("its colors were processed by the camera; photograph in raw of full size")
        samples = image.shape[2]
        image = image.reshape(image.shape[0], -1)
        channel = color = np.array([[0, 1, 2, -1][:samples]])
    else:
        # raw_pattern starts outside the picture, and is wrong where margins of X-Trans are wider than 6.
        sites = [(place.top_margin + i, place.left_margin + j) for i, j in np.ndindex(pattern.shape)]
        with _libraw():
            channel = np.array([raw.raw_color(*site) for site in sites]).reshape(pattern.shape)
        seen = [letters[i : i + 1] for i in channel.flat]
        if channel.shape not in ((2, 2), (6, 6)) or set(seen) != set("RGB"):
            raise ImageError(f"filters other than red, green and blue in 2x2 or 6x6 are not supported; {REMEDY}")
        color = np.array(["RGB".index(letter) for letter in seen]).reshape(channel.shape)
    left, right = place.left_margin * samples, (place.left_margin + place.width) * samples
    mosaic = image[place.top_margin : place.top_margin + place.height, left:right]

    levels = np.array(black, dtype=np.float64)
    levels[3] = levels[3] or levels[1]  # some files leave out the second green
    if task.black:
        levels[:] = task.black
    white = float(found_white if task.white is None else task.white)
    if not 0 <= levels[channel].max() < white:
        raise ImageError(f"the black level {levels[channel].max():g} must lie below the white level {white:g}")
    clip = np.full(4, white)
    if task.white is None and linear and not task.is_dng:  # a DNG says itself what is white
        clip = np.where(np.asarray(linear) > levels + 0.5 * (white - levels), np.minimum(linear, clip), clip)
    limits = np.where(color >= 0, np.minimum(np.ceil(clip[channel]), 65535), 65535).astype(np.uint16)
    return mosaic, _Sites(color, levels[channel], limits, white, samples)


def _average(
    mosaic: NDArray[np.uint16], sites: _Sites, target: int, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], Bools]:
    """The mosaic area-averaged to about `target` pixels, and where less than half of the units under one are unclipped.

    White is 1 in float32, and 65535 in uint16.
    A unit with one clipped photosite does not count at all, so that what is left keeps its color. Where too few are
    left, all of them count: what is left for red and for blue would be different things, such as a roof and the sky.
    """
    high, wide = sites.color.shape
    height, width = mosaic.shape[0] // high, mosaic.shape[1] // wide
    if not height or not width:
        raise ImageError("the picture is smaller than one repeat of the color filters")
    scale = max(1.0, (height * width / target) ** 0.5)
    side = min(int(scale), height, width)  # whole cells first; then the remaining fraction, on few
    places = sites.places()
    if side < 12 * np.abs(places).max() and height * width < SMALL_UNITS:
        side = 1  # a small picture: to move large cells by so much would blur red and blue
    cells, any_clipped = _take_units(mosaic, sites) if side == 1 else _sum_cells(mosaic, sites, side)
    size = max(1, round(height / scale)), max(1, round(width / scale))
    span = sites.white - sites.black[sites.color >= 0].max()  # one for all colors, which keeps their ratios
    rgb, clipped = np.empty((*size, 3), dtype), np.zeros(size, np.bool_)
    white = np.float32(WHITE_LEVEL.get(dtype, 1))
    if any_clipped:
        for part, counted, _ in resize_weighted(cells[3], size):
            clipped[part] = counted < 0.5
    for channel, shift in enumerate((places / side).tolist()):
        # Each color is moved to the unit's center, or edges would have fringes; the weights of cells move with it.
        light = resize(cells[channel, :, None], size, shift)[:, 0]
        if any_clipped:
            for part, counted, unclipped in resize_weighted(cells[3], size, shift, cells[channel]):
                np.divide(unclipped, counted, out=light[part], where=~clipped[part])
        light -= np.float32(sites.black[sites.color == channel].mean())
        light /= np.float32(span)
        np.clip(light, 0, 1, out=light)
        rgb[..., channel] = light if white == 1 else np.rint(light * white)
    return rgb, clipped


def _take_units(mosaic: NDArray[np.uint16], sites: _Sites) -> tuple[Float32s, bool]:
    """`_sum_cells` of cells of one unit each."""
    high, wide = sites.color.shape
    rows, columns = mosaic.shape[0] // high, mosaic.shape[1] // wide
    cells = np.empty((4, rows, columns), np.float32)
    cells[3] = 1
    any_clipped = False
    for top in range(0, rows, UNIT_ROWS):
        block = mosaic[top * high : min(top + UNIT_ROWS, rows) * high, : columns * wide]
        part = cells[:, top : top + UNIT_ROWS]
        seen = {(i, j): block[i::high, j::wide] for i, j in np.argwhere(sites.color >= 0).tolist()}
        for channel in range(3):
            first, *others = (values for place, values in seen.items() if sites.color[place] == channel)
            part[channel] = first
            for values in others:
                part[channel] += values
            if others:
                part[channel] /= 1 + len(others)
        if block.max() >= sites.clip.min():
            full = np.zeros(part.shape[1:], np.bool_)
            for place, values in seen.items():
                full |= values >= sites.clip[place]
            part[3] = np.where(full, LEAST, np.float32(1))
            any_clipped |= bool(full.any())
    return cells, any_clipped


def _sum_cells(mosaic: NDArray[np.uint16], sites: _Sites, side: int) -> tuple[Float32s, bool]:
    """Means of red, green and blue over square cells of units, and the weight of each cell, (4, rows, columns).

    Also returns whether any number is clipped. Memory is read once: a row of cells stays in the cache while it is
    summed and searched, and only cells with a clipped number are looked at unit by unit, unless all their units are
    clipped.
    """
    high, wide = sites.color.shape
    rows, columns = mosaic.shape[0] // high // side, mosaic.shape[1] // wide // side
    blocks = mosaic[: rows * side * high, : columns * side * wide].reshape(rows, side, high, columns, side * wide)

    share = (sites.color[..., None] == np.arange(3)).astype(np.float32)
    share /= share.sum(axis=(0, 1)) * np.float32(side * side)
    across = np.tile(share, (1, side, 1))  # (high, side * wide, 3) takes the sums of a cell's columns to mean colors
    limits = np.tile(sites.clip, (1, columns * side)).reshape(blocks.shape[2:])
    cells = np.ones((4, rows, columns), np.float32)
    suspect, lost = np.zeros((2, rows, columns), np.bool_)  # cells with a clipped number; with one in every unit
    for row, block in enumerate(blocks):
        peaks = block.max(axis=0)
        cells[:3, row] = (_sum(block, int(peaks.max())) @ across).sum(axis=0).T
        full = peaks >= limits
        if full.any():
            suspect[row] = full.any(axis=0).any(axis=1)
            if np.count_nonzero(suspect[row]) * 8 > columns:  # else it is not worth it
                always = (block.min(axis=0) >= limits).any(axis=0)
                for j in range(1, wide):
                    always[:, ::wide] |= always[:, j::wide]
                lost[row] = always[:, ::wide].all(axis=1)
    for some in _batches(np.flatnonzero(suspect & ~lost)):
        y, x = np.divmod(some, columns)
        numbers = blocks[y, :, :, x].reshape(some.size, side, high, side, wide)
        seen = [numbers[:, :, i, :, j].reshape(some.size, -1) for i, j in np.ndindex(high, wide)]  # units of each cell
        good = np.logical_and.reduce([values < limit for values, limit in zip(seen, sites.clip.flat, strict=True)])
        fraction = good.mean(axis=1, dtype=np.float32)
        enough = fraction >= 0.5
        counts = good[enough].astype(np.float32)
        sums = np.stack([np.einsum("cu,cu->c", values[enough], counts) for values in seen], axis=-1)
        cells[:3, y[enough], x[enough]] = (sums @ share.reshape(-1, 3) / fraction[enough, None]).T
        cells[3, y, x] = np.where(enough, fraction, 0)
    cells[3] = np.maximum(np.where(lost, 0, cells[3]), LEAST)
    return cells, bool(suspect.any())


def _sum(block: NDArray[np.uint16], peak: int) -> Float32s:
    """Sums over the first axis of numbers up to `peak`: in 16 bits as far as they hold them, which is faster."""
    step = 65535 // max(peak, 1)
    if step < min(4, len(block)):
        return np.asarray(block.sum(axis=0, dtype=np.uint32), np.float32)
    total: Float32s = np.asarray(block[:step].sum(axis=0, dtype=np.uint16), np.float32)
    for start in range(step, len(block), step):
        total += block[start : start + step].sum(axis=0, dtype=np.uint16)
    return total


def _batches(indices: NDArray[np.intp], size: int = 2048) -> Iterator[NDArray[np.intp]]:
    for start in range(0, indices.size, size):
        yield indices[start : start + size]
