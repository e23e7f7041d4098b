"""Labelled histograms, and how a training step draws from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.color import Float32s, Float64s
from c5.errors import ParameterError
from c5.training.config import TrainConfig

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Samples:
    """Histograms with the truth about each. Cameras are told apart by their whole name."""

    histograms: Float32s  # (images, 2, n, n)
    illuminants: Float64s  # (images, 3)
    cameras: NDArray[np.str_]  # (images,)

    def __post_init__(self) -> None:
        if not len(self.histograms) == len(self.illuminants) == len(self.cameras) > 0:
            raise ParameterError("samples need one histogram, illuminant and camera an image, and at least one image")

    def __len__(self) -> int:
        return len(self.histograms)

    def take(self, index: NDArray[np.generic]) -> Samples:
        """Those at an index, or where a mask is True."""
        return Samples(self.histograms[index], self.illuminants[index], self.cameras[index])


class Draws(NamedTuple):
    """What one epoch is made of, a row a step."""

    query: Ints  # (steps, batch)
    roll: Ints  # (steps, batch, additional)
    shift: Ints  # (steps, batch, 2), bins along v and u
    present: Float32s  # (steps, batch), 0 where the roll is taken away


def draw_rolls(cameras: NDArray[np.str_], query: Ints, count: int, rng: np.random.Generator) -> Ints:
    """For each query, `count` other images of its camera, drawn with replacement; itself where it is the only one."""
    rolls = np.empty((*query.shape, count), np.int64)
    for camera in np.unique(cameras):
        own = np.flatnonzero(cameras == camera)
        place = np.full(len(cameras), -1)
        place[own] = np.arange(own.size)
        mine = cameras[query] == camera
        if own.size == 1:
            rolls[mine] = own[0]
            continue
        drawn = rng.integers(0, own.size - 1, (int(mine.sum()), count))
        rolls[mine] = own[drawn + (drawn >= place[query[mine]][:, None])]
    return rolls


def draw_epoch(cameras: NDArray[np.str_], config: TrainConfig, batch: int, rng: np.random.Generator) -> Draws:
    """Every image once as the query, in random order; the last batch is filled up from the start."""
    order = rng.permutation(len(cameras))
    steps = -(-order.size // batch)
    query = np.resize(order, (steps, batch)).astype(np.int64)
    additional = max(1, config.network.n_images - 1)
    roll = draw_rolls(cameras, query, additional, rng)
    if config.vary_roll:  # a roll of d different images repeats them to fill its slots: pooling ignores duplicates
        distinct = rng.integers(1, additional + 1, (steps, batch, 1))
        roll = np.take_along_axis(roll, np.arange(additional) % distinct, axis=2)
    shift = rng.integers(-config.shift, config.shift + 1, (steps, batch, 2))
    present = (rng.random((steps, batch)) >= config.empty_roll).astype(np.float32)
    return Draws(query, roll, shift, present)
