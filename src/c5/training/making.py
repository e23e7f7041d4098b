"""Images made on the fly, from nothing but what a run may train on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from c5.augmentation import Augmentation, augment
from c5.choices import Recipe
from c5.colorimetry.matrices import read_matrices
from c5.datasets import Sample
from c5.errors import DataError, ParameterError
from c5.regular import read_regular


@dataclass(frozen=True)
class Making:
    """How many images to make, and how. The same photographs give the same images."""

    method: Augmentation
    count: int
    """If 0, made images among the data are left out too."""
    matrices: str | None = None
    """A CSV of camera matrices; the cameras' temperatures come from it."""
    seed: int = 0
    via_xyz: bool = True
    """Whether colors are mapped, or only the light is changed."""
    alone: bool = False
    """Whether to train on the made images only."""
    unless_given: bool = False
    """Whether to make none if made images are among the data already."""

    def add(self, samples: Sequence[Sample], make: Callable[[], list[Sample]]) -> list[Sample]:
        """What to train on: the samples that may be used, and the images that `make` makes."""
        if not self.count:
            return [sample for sample in samples if not sample.made]
        if self.unless_given and any(sample.made for sample in samples):
            return list(samples)
        return make() if self.alone else [*samples, *make()]

    def make(
        self,
        photographs: Sequence[Sample],
        unseen: frozenset[str] = frozenset(),
        track: Callable[[Sequence[int]], Iterable[int]] = iter,
        lent: Sequence[Sample] = (),
    ) -> list[Sample]:
        """Made images; cameras that must stay unseen are not even taken from the matrices.

        If photographs of other cameras are `lent`, these are mapped to the cameras of `photographs`.
        """
        if self.unless_given and self.matrices is None:
            raise ParameterError(
                f"the paper's recipe makes {self.count} images, of cameras whose matrices are known: "
                "give matrices=read_matrices(FILE), or the augmentation none"
            )
        matrices = None if self.matrices is None else read_matrices(self.matrices)
        rng = np.random.default_rng([self.seed, self.count])
        made = augment(
            lent or photographs,
            self.method,
            self.count,
            rng,
            targets=photographs,
            matrices=matrices,
            exclude=unseen,
            via_xyz=self.via_xyz,
        )
        return [next(made) for _ in track(range(self.count))]

    def to_json(self) -> dict[str, Any]:
        own = {"method": self.method.value, "count": self.count, "matrices": self.matrices, "seed": self.seed}
        changed = {name: getattr(self, name) for name in OPTIONS if getattr(self, name) != getattr(Making, name)}
        return own | changed

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What the made images depend on besides the photographs: the content of the file of matrices, not its name."""
        return self.to_json() | {"matrices": digest_table(self.matrices)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Making:
        count, matrices, seed = data["count"], data["matrices"], data["seed"]
        if type(count) is not int or type(seed) is not int or not isinstance(matrices, str | None):
            raise ParameterError("how images are made is not described as it should be")
        options = {name: bool(data[name]) for name in OPTIONS if name in data}
        return cls(Augmentation(data["method"]), count, matrices, seed, **options)


def digest_table(path: str | None) -> str:
    """A digest of the content of a file of matrices, or of none."""
    try:
        content = b"" if path is None else read_regular(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    return hashlib.sha256(content).hexdigest()[:16]


OPTIONS = ("via_xyz", "alone", "unless_given")
WORDS = {"without-xyz": {"via_xyz": False}, "alone": {"alone": True}}
"""What may follow the name of an augmentation, after a colon."""


PAPER_MADE = {"c5": 5000, "ffcc": 500}
"""How many augmented images the paper adds."""
NO_MAKING = "none"


def default_making(recipe: Recipe, matrices: str | None, count: int | None = None) -> Making | None:
    """What a recipe makes unless told otherwise: that of the paper makes the paper's images."""
    if recipe is not Recipe.PAPER:
        return None
    return Making(Augmentation.PAPER, count or PAPER_MADE["c5"], matrices, unless_given=True)


def find_making(text: str, count: int, matrices: str | None = None) -> Making:
    """How images are made, by the name of the augmentation: `paper`, `paper:without-xyz`, `paper:alone`, `none` ..."""
    if text == NO_MAKING:
        return Making(Augmentation.PAPER, 0)
    name, *words = text.split(":")
    if name not in (each.value for each in Augmentation):
        names = ", ".join(each.value for each in Augmentation)
        raise ParameterError(f"no augmentation is called {name!r}; there are {names}, {NO_MAKING}")
    options: dict[str, bool] = {}
    for word in words:
        if word not in WORDS:
            raise ParameterError(f"{text}: only {' and '.join(WORDS)} may follow an augmentation, not {word!r}")
        options |= WORDS[word]
    return Making(Augmentation(name), count, matrices, **options)
