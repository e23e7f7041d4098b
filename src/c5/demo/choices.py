"""Drawing from lists, and the list of cloths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


CLOTHS = (
    "red cloth", "wine cloth", "mustard cloth", "green cloth", "teal cloth", "denim", "navy cloth", "violet cloth",
    "gray cloth", "white cloth", "black cloth", "TCS01", "TCS04", "TCS06", "TCS12",
)  # fmt: skip


def pair(rng: np.random.Generator, options: Sequence[str]) -> tuple[str, str]:
    """Two different ones: a mixture names a surface once."""
    first, second = rng.permutation(len(options))[:2].tolist()
    return options[first], options[second]


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    return options[int(rng.integers(len(options)))]
