"""Images made on the fly, from nothing but what a run may train on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from c5.augmentation import Augmentation, augment
from c5.choices import Recipe
from c5.colorimetry.matrices import read_matrices
from c5.datasets import Sample
from c5.datasets.facts import leave_out, match_name
from c5.errors import DataError, ParameterError, reason
from c5.io.shapes import check_shape
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

    def find_calibrated(self, photographs: Sequence[Sample], unseen: frozenset[str]) -> list[str]:
        """The cameras of photographs whose matrices may be used."""
        matrices = {} if self.matrices is None else leave_out(read_matrices(self.matrices), unseen)
        cameras = sorted({sample.camera for sample in photographs})
        return [camera for camera in cameras if match_name(camera, matrices) is not None]

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
                f"the paper's recipe makes {self.count} images, of cameras whose matrices are known; "
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
        """What `to_json` has written; a C5Error if it is damaged."""
        shape = {"method": str, "count": int, "matrices": str | None, "seed": int}
        check_shape(data, shape | {f"{name}?": bool for name in OPTIONS}, "making")
        made = find_making(data["method"], data["count"], data["matrices"])
        return replace(made, seed=data["seed"], **{name: data[name] for name in OPTIONS if name in data})


def digest_table(path: str | None) -> str:
    """A digest of the content of a file of matrices, or of none."""
    try:
        content = b"" if path is None else read_regular(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {reason(error)}; check the path") from None
    return hashlib.sha256(content).hexdigest()[:16]


OPTIONS = ("via_xyz", "alone", "unless_given")
WORDS = {"without-xyz": {"via_xyz": False}, "alone": {"alone": True}}
"""What may follow the name of an augmentation, after a colon."""


PAPER_MADE = {"c5": 5000, "ffcc": 500}
"""How many augmented images the paper adds."""
NO_MAKING = "none"


def plan_making(
    recipe: Recipe, augmentation: str | None = None, matrices: str | None = None, count: int | None = None
) -> Making | None:
    """How images are made for a network: by the augmentation, or else as the recipe says. That of the paper makes the
    paper's images, and no other makes any."""
    count = count or PAPER_MADE["c5"]
    if augmentation is not None:
        return find_making(augmentation, count, matrices)
    return Making(Augmentation.PAPER, count, matrices, unless_given=True) if recipe is Recipe.PAPER else None


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
