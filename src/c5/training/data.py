"""Prepared samples as the arrays that training and testing work on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c5.choices import Recipe
from c5.classical import METHODS
from c5.color import Float64s
from c5.colorimetry.matrices import CameraMatrices
from c5.datasets import Sample
from c5.datasets.features import EstimateFeature, Feature, HistogramFeature, PaletteFeature, VividnessFeature
from c5.datasets.growing import Growing
from c5.datasets.palettes import Palettes, join
from c5.datasets.prepared import load_feature
from c5.datasets.torus import Torus, TorusFeature
from c5.errors import ParameterError
from c5.histograms import Grid
from c5.training.config import RealTraining, TrainConfig, make_config, set_fields, split_settings

Track = Callable[[Sequence[Any]], Iterable[Any]]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Labeled images as training sees them. Cameras are told apart by their whole name."""

    illuminants: Float64s  # (images, 3)
    cameras: NDArray[np.str_]  # (images,)
    views: NDArray[np.float16] | None = None
    """(images, 1 + crops, channels, n, n) for `RealTraining`: what networks see of the image and of crops of it."""
    palettes: Palettes | None = None
    """For `VirtualTraining`."""
    matrices: Mapping[str, CameraMatrices] | None = None
    """For `VirtualTraining`: a table of cameras, without any that must stay unseen."""

    def __post_init__(self) -> None:
        counts = {len(self.illuminants), len(self.cameras)}
        counts |= {len(part) for part in (self.views, self.palettes) if part is not None}
        if len(counts) != 1 or not len(self.cameras):
            raise ParameterError("training needs at least one image, and an illuminant and a camera for each")

    def __len__(self) -> int:
        return len(self.cameras)


def training_feature(config: TrainConfig) -> Feature[Any]:
    """What a training needs from an image."""
    feature = _training_feature(config)
    recipes = (recipe.value for recipe in Recipe if _training_feature(make_config(recipe)) == feature)
    return replace(feature, purpose=next(recipes, ""))


def _training_feature(config: TrainConfig) -> HistogramFeature | PaletteFeature:
    if isinstance(config, RealTraining):
        return HistogramFeature(config.grid.without_strips, config.crops)
    return PaletteFeature(config.grid.powers)


PURPOSES = (*(recipe.value for recipe in Recipe), "ffcc")
"""What a set can be prepared for."""


def features_for(purposes: Sequence[str]) -> list[Feature[Any]]:
    """What training and evaluation need from an image for these recipes, and for every classical method.

    A recipe may have fields set, as in `paper,n=128`.
    """
    found: list[Feature[Any]] = []
    for purpose in purposes:
        recipe, *settings = split_settings(purpose)
        if recipe not in PURPOSES:
            raise ParameterError(f"a set cannot be prepared for {recipe!r}; there are {', '.join(PURPOSES)}")
        if recipe == "ffcc":
            found.append(TorusFeature(Torus()))
        else:
            config = set_fields(make_config(Recipe(recipe)), settings)
            found += [training_feature(config), HistogramFeature(config.grid)]
    found += [VividnessFeature(), *(EstimateFeature(name) for name in METHODS)]
    return list(dict.fromkeys(found))


def load_training_data(
    samples: Sequence[Sample],
    config: TrainConfig,
    track: Track = iter,
    matrices: Mapping[str, CameraMatrices] | None = None,
) -> TrainingData:
    """The data of a training from samples that are prepared for it, with the matrices of cameras that it may use.

    They are in memory, or mapped from a file if they are large.
    """
    illuminants = np.stack([sample.illuminant for sample in samples])
    cameras = np.array([sample.camera for sample in samples])
    feature = training_feature(config)
    loaded = (load_feature(sample, feature) for sample in track(samples))
    if not isinstance(config, RealTraining):
        return TrainingData(illuminants, cameras, palettes=join(loaded), matrices=matrices)
    views = Growing()
    for histograms in loaded:
        views.add(histograms.seen.astype(np.float16).tobytes())
    shape = (len(samples), 1 + config.crops, *config.grid.without_strips.shape)
    return TrainingData(illuminants, cameras, views=views.array(np.float16).reshape(shape))


def load_stacks(samples: Sequence[Sample], grid: Grid) -> NDArray[np.float16]:
    """(samples, *grid.shape) the histograms of samples that are prepared for the grid."""
    feature = HistogramFeature(grid)
    stacks = np.empty((len(samples), *grid.shape), np.float16)
    for index, sample in enumerate(samples):
        stacks[index] = load_feature(sample, feature).stack[0]
    return stacks
