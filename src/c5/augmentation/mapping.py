"""One made image: a photograph converted to another camera's colors and another light when it is read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float64s, as_illuminant
from c5.datasets.sample import Pixels
from c5.errors import ParameterError
from c5.fingerprints import fingerprint, probe
from c5.image import WHOLE, Crop, LinearImage, shrink

OUT_OF_GAMUT = 0.05
"""A pixel whose lowest channel is below zero by more than this part of its highest does not count."""


@dataclass(frozen=True, eq=False)
class MappedImage:
    """The pixels of a made sample: those of a photograph, and what is to be done to them."""

    source: Pixels
    matrix: Float64s
    """(3, 3) white-balanced RGB of the photograph's camera to that of the target camera."""
    before: Float64s
    """(3,) the illuminant of the photograph."""
    after: Float64s
    """(3,) the illuminant of the made image."""
    crop: Crop = WHOLE

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, dtype=np.float64)
        if matrix.shape != (3, 3) or not np.isfinite(matrix).all():
            raise ParameterError("a mapping needs a matrix of 3 by 3 finite numbers")
        object.__setattr__(self, "matrix", matrix)
        for field in ("before", "after"):
            object.__setattr__(self, field, as_illuminant(getattr(self, field)))

    @property
    def path(self) -> Path:
        return self.source.path

    def read(self) -> LinearImage:
        """The made image at working size."""
        return self.apply(self.source.read())

    def apply(self, image: LinearImage) -> LinearImage:
        """The made image of the photograph in memory, or of a smaller copy of it."""
        return map_image(shrink(self.crop.cut(image)), self.matrix, self.before, self.after)

    def digest(self) -> str:
        recipe = np.concatenate([self.matrix.ravel(), self.before, self.after, self.crop]).astype("<f8")
        what = f"mapped {_mapping_key()} {self.source.digest()} ".encode()
        return hashlib.sha256(what + recipe.tobytes()).hexdigest()


def map_image(image: LinearImage, matrix: ArrayLike, before: ArrayLike, after: ArrayLike) -> LinearImage:
    """White-balance an image, map its colors, and light it anew: D_after @ matrix @ D_before^-1 (Eqs. 18 and 19).

    If `matrix` takes white to white, what was gray has the color of the new light. The brightest pixel that counts
    stays as bright as it was, so that nothing is lost. Clipped pixels stay clipped, in their highest channel; masked
    pixels stay masked; a channel below zero becomes 0, and where it was far below, the pixel is masked.
    """
    from_raw = np.asarray(matrix, dtype=np.float64) / as_illuminant(before)
    mapped = image.rgb @ from_raw.T.astype(np.float32)
    r, g, b = mapped[..., 0], mapped[..., 1], mapped[..., 2]
    lowest, highest = np.minimum(np.minimum(r, g), b), np.maximum(np.maximum(r, g), b)
    mask = image.mask & (lowest >= -OUT_OF_GAMUT * highest)
    mapped = np.maximum(mapped, 0) * as_illuminant(after).astype(np.float32)
    counts = (image.counts & mask)[..., None]
    old, new = (float(np.max(rgb, where=counts, initial=0)) for rgb in (image.rgb, mapped))
    mapped *= np.float32(old / new if new > 0 else 1)
    if image.clipped.any():
        beyond = mapped[image.clipped]
        mapped[image.clipped] = beyond / np.maximum(beyond.max(axis=-1, keepdims=True), 1e-12)
    np.minimum(mapped, 1, out=mapped)
    return LinearImage(mapped, mask, image.clipped, source=image.source)


@cache
def _mapping_key() -> str:
    """Identifies this way of mapping."""
    matrix = [[1.3, -0.4, 0.1], [-0.2, 1.4, -0.2], [0.1, -0.7, 1.6]]
    mapped = map_image(probe(PROBE_SEED), matrix, [0.4, 1, 0.6], [0.7, 1, 0.4])
    return fingerprint(mapped.rgb)


PROBE_SEED = 882
