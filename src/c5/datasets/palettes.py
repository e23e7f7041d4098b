"""An image as a few hundred weighted colors, so that training can convert it to any camera and any light."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from c5.color import Float32s, Float64s
from c5.datasets.growing import Growing
from c5.errors import ImageError, ReadError
from c5.histograms import Grid, cell_position, cell_weights
from c5.image import WORKING_PIXELS, Crop, LinearImage, shrink
from c5.io.archives import inflate

POINTS = 1024
"""Most colors in a palette; beyond that, the rarest are left out."""
FINE = Grid(128)
"""The colors of a palette are the cells of this grid."""
CODE_STEP = 0.06
"""Weights are kept as logarithms in steps of this many nats: within 3 %."""
THUMBNAIL = 64
BLACK_LEVEL_NOISE = 0.0015
"""How well black levels are known: the standard deviation of what is added to the channels of some views."""
VIEWS = (0.4, 0.15, 0.15, 0.1, 0.1, 0.1)
"""How often training sees each view of an image."""
VIEWS_OF_SMALL = (0, 1, 1, 2, 2, 2)
"""Small images have three views, which stand for the six."""

_COUNT = struct.Struct("<H")


@dataclass(frozen=True, eq=False)
class Palettes:
    """The palettes of images. All points are in one array, so that short palettes take little space."""

    powers: tuple[int, ...]
    cells: NDArray[np.int16]
    """(points,) cell numbers on the fine grid; `cell_colors` has their log-chroma."""
    codes: NDArray[np.uint8]
    """(points, powers) codes of weights, one for each power of brightness; `code_weights` has the weights. Colors of
    gradients have only the first."""
    spans: NDArray[np.int64]
    """(images, views, 2, 2) the first point of each palette and the number of its points, of pixels and gradients."""

    def __len__(self) -> int:
        return len(self.spans)


def join(palettes: Iterable[Palettes]) -> Palettes:
    """The palettes of several images as one value. Each is released before the next is asked for."""
    cells, codes = Growing(), Growing()
    spans: list[NDArray[np.int64]] = []
    powers: tuple[int, ...] = ()
    for found in palettes:
        powers = found.powers
        spans.append(found.spans + np.array([cells.size // found.cells.itemsize, 0]))
        cells.add(found.cells.tobytes())
        codes.add(found.codes.tobytes())
    return Palettes(
        powers,
        cells.array(np.int16),
        codes.array(np.uint8).reshape(-1, len(powers)),
        np.concatenate(spans),
    )


def make_palettes(image: LinearImage, powers: tuple[int, ...], rng: np.random.Generator) -> Palettes:
    """The palettes of an image in different views."""
    grid = replace(FINE, powers=powers)
    cells: list[NDArray[np.int16]] = []
    codes: list[NDArray[np.uint8]] = []
    spans: list[list[tuple[int, int]]] = []
    end = 0
    for view in _views(shrink(image), rng):
        try:
            halves = _palette(cell_weights(view, grid))
        except ImageError:  # nothing there counts
            if not spans:
                raise
            spans.append(spans[0])
            continue
        spans.append([])
        for found, coded in halves:
            cells.append(found)
            codes.append(coded)
            spans[-1].append((end, len(found)))
            end += len(found)
    if len(spans) < len(VIEWS):
        spans = [spans[view] for view in VIEWS_OF_SMALL]
    return Palettes(powers, np.concatenate(cells), np.concatenate(codes), np.array([spans], np.int64))


def cell_colors() -> Float64s:
    """(cells, 2) the u and v of each cell of the fine grid."""
    along = cell_position(np.arange(FINE.bins + 3), FINE)
    return np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)


@cache
def code_weights(step: float = CODE_STEP, codes: int = 256) -> Float32s:
    """(codes,) the weight that each code stands for, relative to the whole image. Code 0 is no weight."""
    weights = np.exp(-step * (np.arange(codes) - 1.0))
    weights[0] = 0
    return np.asarray(weights, dtype=np.float32)


def encode(palettes: Palettes) -> bytes:
    """The palettes of one image, compressed."""
    spans = np.unique(palettes.spans.reshape(-1, 2), axis=0)  # in the order of the points
    index = {(start, count): number for number, (start, count) in enumerate(spans.tolist())}
    numbers = [index[start, count] for start, count in palettes.spans.reshape(-1, 2).tolist()]
    steps = np.zeros(len(palettes.cells), np.uint16)
    for start, count in spans.tolist():
        steps[start : start + count] = np.diff(palettes.cells[start : start + count], prepend=np.int16(0))
    head = _COUNT.pack(len(spans)) + spans[:, 1].astype("<u2").tobytes() + bytes(numbers)
    low, high = (steps & 255).astype(np.uint8), (steps >> 8).astype(np.uint8)
    return zlib.compress(head + low.tobytes() + high.tobytes() + palettes.codes.T.tobytes(), 6)


def decode(data: bytes, powers: tuple[int, ...]) -> Palettes:
    """Undo `encode`. Damaged bytes raise a ReadError."""
    views = len(VIEWS)
    most = _COUNT.size + 4 * views + 2 * views + 2 * views * POINTS * (2 + len(powers))
    raw = inflate(data, most)
    (kept,) = _COUNT.unpack_from(raw.ljust(_COUNT.size, b"\0"))
    if len(raw) < _COUNT.size + 2 * kept + 2 * views:
        raise ReadError("palettes are cut short")
    counts = np.frombuffer(raw, "<u2", kept, _COUNT.size).astype(np.int64)
    numbers = np.frombuffer(raw, np.uint8, 2 * views, _COUNT.size + 2 * kept)
    starts = np.cumsum([0, *counts])
    total = int(starts[-1])
    if len(raw) != _COUNT.size + 2 * kept + 2 * views + total * (2 + len(powers)) or numbers.max() >= kept:
        raise ReadError("palettes are cut short")
    planes = np.frombuffer(raw, np.uint8, total * (2 + len(powers)), _COUNT.size + 2 * kept + 2 * views)
    planes = planes.reshape(2 + len(powers), total)
    steps = planes[0].astype(np.int32) + 256 * planes[1].astype(np.int32)
    cells = np.cumsum(steps)
    for start, count in zip(starts[:-1].tolist(), counts.tolist(), strict=True):
        if start and count:  # cells are counted from the first of each palette
            cells[start : start + count] -= cells[start] - steps[start]
    if total and not 0 <= cells.min() <= cells.max() < (FINE.bins + 3) ** 2:
        raise ReadError("a color lies outside the grid")
    spans = np.stack([starts[numbers], counts[numbers]], axis=-1).reshape(1, views, 2, 2)
    return Palettes(powers, cells.astype(np.int16), np.ascontiguousarray(planes[2:].T), spans)


def _palette(cells: Float64s) -> list[tuple[NDArray[np.int16], NDArray[np.uint8]]]:
    """The heaviest cells of pixels and of gradients, each with the codes of its weights."""
    cells = cells.copy()
    for edge in (0, -1):  # beyond the grid
        cells[:, edge] = cells[:, :, edge] = 0
    weights = cells.reshape(len(cells), -1)
    sums = weights.sum(axis=1, keepdims=True)
    if sums[0] <= 0:
        raise ImageError("no color lies on the grid")
    weights = weights / np.where(sums > 0, sums, np.inf)
    halves = []
    for rows in (weights[:-1], weights[-1:]):
        heaviest = np.argsort(-rows.max(axis=0), kind="stable")[:POINTS]
        heaviest = np.sort(heaviest[rows[:, heaviest].max(axis=0) > 0])
        chosen = rows[:, heaviest]
        steps = np.rint(-np.log(np.maximum(chosen, np.finfo(np.float64).tiny)) / CODE_STEP) + 1
        codes = np.zeros((heaviest.size, len(weights) - 1), np.uint8)
        codes[:, : len(rows)] = np.where(steps < 256, steps, 0).T.astype(np.uint8)
        halves.append((heaviest.astype(np.int16), codes))
    return halves


def _views(image: LinearImage, rng: np.random.Generator) -> Iterator[LinearImage]:
    """The image; parts of it; smaller copies, area-averaged or of picked pixels. Small images are not reduced."""
    yield image
    if image.rgb[..., 0].size <= WORKING_PIXELS // 4:
        yield _add_noise(Crop.random(rng, 0.5).cut(image), rng)
        yield _add_noise(Crop.random(rng, 0.8).cut(image), rng)
        return
    yield Crop.random(rng, 0.5).cut(image)
    yield _add_noise(Crop.random(rng, 0.5).cut(image), rng)
    yield _add_noise(shrink(Crop.random(rng, 0.8).cut(image), WORKING_PIXELS // 4), rng)
    yield _pick(image)
    yield _pick(_add_noise(Crop.random(rng, 0.5).cut(image), rng))


def _add_noise(image: LinearImage, rng: np.random.Generator) -> LinearImage:
    """The image with its black level a little off. Black pixels stay black."""
    error = rng.normal(0, BLACK_LEVEL_NOISE, 3).astype(np.float32)
    black = image.rgb.max(axis=-1, keepdims=True) <= 0
    return replace(image, rgb=np.where(black, 0, np.clip(image.rgb + error, 0, 1)))


def _pick(image: LinearImage) -> LinearImage:
    height, width = image.rgb.shape[:2]
    rows, columns = (((np.arange(THUMBNAIL) + 0.5) * side / THUMBNAIL).astype(int) for side in (height, width))
    points = np.ix_(rows, columns)
    return replace(image, rgb=image.rgb[points], mask=image.mask[points], clipped=image.clipped[points])
