"""The result of a computation on a fixed image as a few digits: when the computation changes, so do the digits.

Caches, catalogs and model identities contain fingerprints, so that nobody has to raise a version by hand.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike

from c5.image import LinearImage

LEVELS = 128
"""Numbers between 0 and 1 are rounded to this many levels: the same on every machine, different after any real
change."""


def probe(seed: int, repeats: int = 1) -> LinearImage:
    """Patches, ramps and noise, some of it clipped or masked; `repeats` copies, one below the other."""
    rng = np.random.default_rng(seed)
    patches = np.kron(rng.integers(1, 200, (4, 6, 3)), np.ones((6, 6, 1)))
    numbers = patches * np.linspace(0.3, 1.3, 36)[:, None] + rng.integers(0, 8, (24, 36, 3))
    mask = np.ones((24, 36), np.bool_)
    mask[3:7, 20:29] = False
    once = np.clip(numbers, 0, 255).astype(np.uint8)
    return LinearImage(np.tile(once, (repeats, 1, 1)), np.tile(mask, (repeats, 1)))


def fingerprint(values: ArrayLike) -> str:
    """Eight hexadecimal digits for numbers between 0 and 1."""
    levels = np.rint(np.asarray(values, dtype=np.float64) * LEVELS).astype(np.uint8)
    return hashlib.sha256(levels.tobytes()).hexdigest()[:8]
