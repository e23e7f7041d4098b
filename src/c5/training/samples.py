"""Labelled images as training needs them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from c5.color import Float32s, Float64s
from c5.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Samples:
    """Histograms with the truth about each. Cameras are told apart by their whole name."""

    views: Float32s  # (images, views, ...) of `Grid.shape`: histograms of the whole image, then of random crops of it
    illuminants: Float64s  # (images, 3)
    cameras: NDArray[np.str_]  # (images,)
    palettes: NDArray[np.uint16] | None = None  # (images, ...) of `make_palettes`, for training on virtual cameras

    def __post_init__(self) -> None:
        if not len(self.views) == len(self.illuminants) == len(self.cameras) > 0 or self.views.ndim != 5:
            raise ParameterError("samples need views (images, views, channels, n, n), an illuminant and a camera each")
        if self.palettes is not None and len(self.palettes) != len(self.views):
            raise ParameterError("samples need palettes of every image, or of none")

    def __len__(self) -> int:
        return len(self.views)

    @property
    def histograms(self) -> Float32s:
        """(images, ...) of the whole images."""
        return self.views[:, 0]

    def take(self, index: NDArray[np.generic]) -> Samples:
        """Those at an index, or where a mask is True."""
        palettes = None if self.palettes is None else self.palettes[index]
        return Samples(self.views[index], self.illuminants[index], self.cameras[index], palettes)
