"""Images that laws are tried on."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from c5.fingerprints import LEVELS

seeds = st.integers(0, 2**32 - 1)


def textured(seed: int, height: int = 24, width: int = 30) -> NDArray[np.float32]:
    """Linear RGB with a few surfaces of random color under smooth shading and fine texture, all below 0.5."""
    rng = np.random.default_rng(seed)
    surfaces = rng.uniform(0.1, 0.9, (5, 3))
    labels = np.add.outer(np.arange(height) * 5 // height, np.arange(width) * 3 // width) % 5
    y, x = np.mgrid[:height, :width]
    shading = 0.6 + 0.35 * np.sin(y / 7 + rng.uniform(0, 6)) * np.cos(x / 9 + rng.uniform(0, 6))
    texture = rng.uniform(0.8, 1.2, (height, width, 3))
    pixels = np.clip(surfaces[labels] * shading[..., None] * texture * 0.42, 0.005, 0.499)
    return np.asarray(pixels, dtype=np.float32)


def margin(values: ArrayLike) -> float:
    """How far numbers stay from where a fingerprint would round them the other way, in levels: seeds are chosen so."""
    scaled = np.asarray(values, dtype=np.float64) * LEVELS
    return float(np.abs(scaled - np.floor(scaled) - 0.5).min())
