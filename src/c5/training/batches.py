"""What a training step sees: histograms kept from images, and how an epoch draws from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from c5.errors import ParameterError
from c5.histograms import Geometry
from c5.rolls import draw_rolls
from c5.training.config import RealTraining
from c5.training.data import TrainingData


class Batch(NamedTuple):
    query: Tensor  # (batch, channels, n, n)
    roll: Tensor  # (cameras, k, channels, n, n), for queries that follow each other camera by camera
    present: Tensor  # (batch,), 0 where a query has no roll
    illuminants: Tensor  # (batch, 3), unit RGB


class Batches(Protocol):
    """A source of batches. Random numbers are drawn in NumPy for a whole epoch; the device only looks them up."""

    def draw(self, epoch: int, rng: np.random.Generator) -> Sequence[NDArray[Any]]:
        """Arrays with one row per step."""
        ...

    def make(self, *row: Tensor) -> Batch:
        """The batch of one step, on the device."""
        ...


class StoredBatches:
    """Histograms of images and of crops of them, moved by whole bins."""

    def __init__(self, data: TrainingData, config: RealTraining, device: torch.device) -> None:
        if data.views is None:
            raise ParameterError("training on real cameras needs the histograms of the images")
        self.data, self.config, self.device = data, config, device
        self.views = torch.as_tensor(data.views).to(device)
        self.illuminants = torch.as_tensor(data.illuminants, dtype=torch.float32, device=device)

    def draw(self, epoch: int, rng: np.random.Generator) -> Sequence[NDArray[Any]]:
        """Every image once as the query, in random order; the last batch is filled up from the start."""
        config, stages = self.config, self.config.batch_sizes
        batch = min(stages[epoch * len(stages) // config.epochs], len(self.data))
        order = rng.permutation(len(self.data))
        steps = -(-order.size // batch)
        query = np.resize(order, (steps, batch)).astype(np.int64)
        additional = config.n_images - 1
        roll = draw_rolls(self.data.cameras, query, additional, rng)
        if config.vary_roll and additional:
            # A roll of d different images repeats them to fill its slots: pooling ignores duplicates.
            distinct = rng.integers(1, additional + 1, (steps, batch, 1))
            roll = np.take_along_axis(roll, np.arange(additional) % distinct, axis=2)
        images = np.concatenate([query[..., None], roll], axis=2)  # (steps, batch, 1 + additional)
        views = np.zeros_like(images)
        crops = self.views.shape[1] - 1
        if crops:  # half of the time the whole image
            views = rng.integers(1, crops + 1, images.shape) * rng.integers(0, 2, images.shape)
        shift = rng.integers(-config.shift_bins, config.shift_bins + 1, (steps, batch, 2))  # bins along v and u
        present = (rng.random((steps, batch)) >= config.empty_roll_share).astype(np.float32)
        if config.distinct_rolls:  # drawn last, so that nothing else depends on them
            images[..., 1:] = draw_rolls(self.data.cameras, query, additional, rng, distinct=True)
        return images, views, shift, present

    def make(self, *row: Tensor) -> Batch:
        images, views, shift, present = row
        histograms = self._moved(images, views, shift)
        return Batch(histograms[:, 0], histograms[:, 1:], present, self._moved_light(images[:, 0], shift))

    def _moved(self, images: Tensor, views: Tensor, shift: Tensor) -> Tensor:
        """Histograms (batch, images, channels, n, n), moved by (batch, 2) bins; what comes in from outside is zero."""
        n = self.config.grid.bins
        line = torch.arange(n, device=self.device)
        rows, columns = line - shift[:, :1], line - shift[:, 1:]  # (batch, n)
        inside = [(place >= 0) & (place < n) for place in (rows, columns)]
        within = (inside[0][:, :, None] & inside[1][:, None, :])[:, None, None]
        rows, columns = rows.clamp(0, n - 1), columns.clamp(0, n - 1)
        channel = torch.arange(self.views.shape[2], device=self.device)[:, None, None]
        image, view = images[:, :, None, None, None], views[:, :, None, None, None]
        moved = self.views[image, view, channel, rows[:, None, None, :, None], columns[:, None, None, None, :]]
        return moved.float() * within

    def _moved_light(self, index: Tensor, shift: Tensor) -> Tensor:
        grid = self.config.grid
        up = -1 if grid.geometry is Geometry.PUBLISHED else 1
        v, u = shift[:, 0] * (up * grid.step), shift[:, 1] * grid.step
        gains = torch.stack([(-u).exp(), torch.ones_like(u), (-v).exp()], dim=1)
        return functional.normalize(self.illuminants[index] * gains, dim=1)
