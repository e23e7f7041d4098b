"""Photographs averaged to zones, so that a model can be trained on what a statistics block provides."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from c5.datasets.sample import Pixels, Sample
from c5.image import LinearImage
from c5.zones import average_zones, check_zones


@dataclass(frozen=True, eq=False)
class ZonedPixels:
    """The zones of an image, instead of its pixels."""

    pixels: Pixels
    zones: tuple[int, int]

    @property
    def path(self) -> Path:
        return self.pixels.path

    def read(self) -> LinearImage:
        return average_zones(self.pixels.read(), *self.zones)

    def digest(self) -> str:
        return hashlib.sha256(f"{self.pixels.digest()} zones {self.zones}".encode()).hexdigest()


def zone_sample(sample: Sample, zones: tuple[int, int]) -> Sample:
    """A photograph in zones: an image made from this photograph alone."""
    check_zones(zones)
    name = f"{sample.name}@{zones[0]}x{zones[1]}"
    return replace(sample, pixels=ZonedPixels(sample.pixels, zones), name=name, sources=sample.sources, prepared=None)
