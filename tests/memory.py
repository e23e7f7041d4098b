"""Samples in memory, prepared without a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from c5 import LinearImage
from c5.color import Float64s
from c5.datasets import Sample
from c5.datasets.features import Feature, feature_rng

Decoded = TypeVar("Decoded")


@dataclass(eq=False)
class Memory:
    """Pixels in memory, and the features that were computed of them."""

    image: LinearImage
    features: Sequence[Feature[Any]] = ()
    path: Path = Path("memory")

    def __post_init__(self) -> None:
        rng = feature_rng(self.digest())
        self.parts = {feature.key: feature.encode(self.image, rng) for feature in self.features}

    def read(self) -> LinearImage:
        return self.image

    def digest(self) -> str:
        return self.image.rgb.tobytes()[:32].hex().rjust(64, "0")

    def has(self, key: str) -> bool:
        return key in self.parts

    def find(self, key: str, decode: Callable[[bytes], Decoded]) -> Decoded:
        return decode(self.parts[key])


def make_sample(
    image: LinearImage, illuminant: Float64s, camera: str, name: str, features: Sequence[Feature[Any]] = ()
) -> Sample:
    kept = Memory(image, features)
    return Sample(kept, np.asarray(illuminant), camera, "set", f"set/{camera}/{name}", prepared=kept)
