"""Labelled histograms, and how a training step draws from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.color import Float32s, Float64s
from c5.errors import ParameterError
from c5.evaluation.rolls import Ints, draw_rolls
from c5.training.config import TrainConfig


@dataclass(frozen=True, eq=False)
class Samples:
    """Histograms with the truth about each. Cameras are told apart by their whole name."""

    views: Float32s  # (images, views, 2, n, n): histograms of the whole image, then of random crops of it
    illuminants: Float64s  # (images, 3)
    cameras: NDArray[np.str_]  # (images,)

    def __post_init__(self) -> None:
        if not len(self.views) == len(self.illuminants) == len(self.cameras) > 0 or self.views.ndim != 5:
            raise ParameterError("samples need views (images, views, 2, n, n), an illuminant and a camera an image")

    def __len__(self) -> int:
        return len(self.views)

    @property
    def histograms(self) -> Float32s:
        """(images, 2, n, n) of the whole images."""
        return self.views[:, 0]

    def take(self, index: NDArray[np.generic]) -> Samples:
        """Those at an index, or where a mask is True."""
        return Samples(self.views[index], self.illuminants[index], self.cameras[index])


class Draws(NamedTuple):
    """What one epoch is made of, a row a step."""

    images: Ints  # (steps, batch, 1 + additional): the query, then its roll
    views: Ints  # the same shape: which view of each
    shift: Ints  # (steps, batch, 2), bins along v and u
    present: Float32s  # (steps, batch), 0 where the roll is taken away


def draw_epoch(samples: Samples, config: TrainConfig, batch: int, rng: np.random.Generator) -> Draws:
    """Every image once as the query, in random order; the last batch is filled up from the start."""
    order = rng.permutation(len(samples))
    steps = -(-order.size // batch)
    query = np.resize(order, (steps, batch)).astype(np.int64)
    additional = config.network.n_images - 1
    roll = draw_rolls(samples.cameras, query, additional, rng)
    if config.vary_roll:  # a roll of d different images repeats them to fill its slots: pooling ignores duplicates
        distinct = rng.integers(1, additional + 1, (steps, batch, 1))
        roll = np.take_along_axis(roll, np.arange(additional) % distinct, axis=2)
    images = np.concatenate([query[..., None], roll], axis=2)
    views = np.zeros_like(images)
    crops = samples.views.shape[1] - 1
    if crops:  # half of the time the whole image
        views = rng.integers(1, crops + 1, images.shape) * rng.integers(0, 2, images.shape)
    shift = rng.integers(-config.shift, config.shift + 1, (steps, batch, 2))
    present = (rng.random((steps, batch)) >= config.empty_roll).astype(np.float32)
    return Draws(images, views, shift, present)
