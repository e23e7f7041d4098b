"""What only the paper's recipe does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c5.rolls import draw_rolls
from c5.training.batches import StoredBatches


class DistinctBatches(StoredBatches):
    """Histograms of images with rolls in which no image occurs twice."""

    def draw(self, epoch: int, rng: np.random.Generator) -> Sequence[NDArray[Any]]:
        images, *others = super().draw(epoch, rng)
        query, additional = images[..., 0], images.shape[2] - 1
        images[..., 1:] = draw_rolls(self.data.cameras, query, additional, rng, distinct=True)
        return images, *others
