"""An image as a few hundred weighted colors, so that training can take it into any camera and any light."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from c5.augmentation import Crop
from c5.color import Float64s
from c5.errors import ImageError
from c5.histograms import Grid, cell_position, cell_weights
from c5.image import WORKING_PIXELS, LinearImage, shrink

POINTS = 1024
"""Colors of a palette; the rarest of more are left out."""
FINE = 128
"""A palette's colors are the cells of a grid with so many bins."""
SCALE = 1000.0
"""What the weights of a palette sum to, so that half precision holds the small ones."""
THUMBNAIL = 64
BLACK_LEVEL_NOISE = 0.0015
"""How well black levels are known: the standard deviation of what is added to the channels of some views."""
VIEWS = (0.4, 0.15, 0.15, 0.1, 0.1, 0.1)
"""How often training sees each view of `_views`."""


def make_palettes(image: LinearImage, powers: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.uint16]:
    """The palettes of an image in different views, uint16 of shape (views, 2, POINTS, 1 + powers).

    In front are colors of pixels, then of gradients: the number of a cell of the fine grid, and the bits of its weights
    in half precision, one for each power of the brightness. Gradients have only the first.
    """
    grid = Grid(FINE, powers=powers)
    palettes: list[NDArray[np.uint16]] = []
    for view in _views(shrink(image), rng):
        try:
            palettes.append(_palette(cell_weights(view, grid)))
        except ImageError:  # nothing there counts
            palettes.append(palettes[0])
    return np.stack(palettes)


def cell_colors() -> Float64s:
    """(cells, 2) the u and v of each cell of the fine grid."""
    grid = Grid(FINE)
    along = cell_position(np.arange(grid.bins + 3), grid)
    return np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)


def _palette(cells: Float64s) -> NDArray[np.uint16]:
    cells = cells.copy()
    for edge in (0, -1):  # beyond the grid
        cells[:, edge] = cells[:, :, edge] = 0
    weights = cells.reshape(len(cells), -1)
    sums = weights.sum(axis=1, keepdims=True)
    if sums[0] <= 0:
        raise ImageError("no color lies on the grid")
    weights = SCALE * weights / np.where(sums > 0, sums, np.inf)
    palette = np.zeros((2, POINTS, len(weights)), np.uint16)
    for half, rows in enumerate((weights[:-1], weights[-1:])):
        heaviest = np.sort(np.argsort(-rows.max(axis=0), kind="stable")[:POINTS])
        palette[half, :, 0] = heaviest
        palette[half, :, 1 : 1 + len(rows)] = rows[:, heaviest].T.astype(np.float16).view(np.uint16)
    return palette


def _views(image: LinearImage, rng: np.random.Generator) -> Iterator[LinearImage]:
    """The image; parts of it; smaller, area-averaged or as a thumbnail of every so-manieth pixel."""
    yield image
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
