"""Images made on the fly, of nothing but what a run may train on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from c5.augmentation import Augmentation, augment
from c5.colorimetry.matrices import read_matrices
from c5.datasets import Sample
from c5.errors import DataError, ParameterError
from c5.regular import read_regular


@dataclass(frozen=True)
class Making:
    """How many images to make, and how. The same photographs give the same images."""

    method: Augmentation
    count: int
    matrices: str | None = None
    """A CSV of camera matrices; the cameras' temperatures come from it."""
    seed: int = 0

    def make(
        self,
        photographs: Sequence[Sample],
        unseen: frozenset[str] = frozenset(),
        track: Callable[[Sequence[int]], Iterable[int]] = iter,
    ) -> list[Sample]:
        """Made images; cameras that must stay unseen are not even taken from the matrices."""
        matrices = None if self.matrices is None else read_matrices(self.matrices)
        rng = np.random.default_rng([self.seed, self.count])
        made = augment(photographs, self.method, self.count, rng, matrices=matrices, exclude=unseen)
        return [next(made) for _ in track(range(self.count))]

    def to_json(self) -> dict[str, Any]:
        return {"method": self.method.value, "count": self.count, "matrices": self.matrices, "seed": self.seed}

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What the made images depend on beside the photographs: the content of the file of matrices, not its name."""
        return self.to_json() | {"matrices": digest_table(self.matrices)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Making:
        count, matrices, seed = data["count"], data["matrices"], data["seed"]
        if type(count) is not int or type(seed) is not int or not isinstance(matrices, str | None):
            raise ParameterError("how images are made is not described as it should be")
        return cls(Augmentation(data["method"]), count, matrices, seed)


def digest_table(path: str | None) -> str:
    """Of the content of a file of matrices, or of none."""
    try:
        content = b"" if path is None else read_regular(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    return hashlib.sha256(content).hexdigest()[:16]


def find_making(name: str, count: int, matrices: str | None = None) -> Making:
    """How images are made, by the name of the augmentation."""
    if name not in (each.value for each in Augmentation):
        names = ", ".join(each.value for each in Augmentation)
        raise ParameterError(f"no augmentation is called {name!r}; there are {names}")
    return Making(Augmentation(name), count, matrices)
