"""Methods under test that need no training here: the classical estimators, and models that are trained already."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from c5.classical import METHODS
from c5.color import Float64s
from c5.datasets import Sample
from c5.datasets.facts import all_names
from c5.errors import ParameterError
from c5.evaluation.protocols import Fold
from c5.histograms import histogram, vividness
from c5.image import shrink
from c5.model import Model
from c5.rolls import Selection, select_rolls

REPEATS = 10
"""How often additional images are drawn anew, as in the paper."""


def slug(name: str) -> str:
    """A name as part of a path."""
    return re.sub(r"[^A-Za-z0-9.+]+", "-", name).strip("-")


def digest_name(name: str, content: Any) -> str:
    """A name for a folder that is the same for the same content."""
    return f"{slug(name)}-{digest(content)[:8]}"


def digest(content: Any) -> str:
    """32 hexadecimal digits, the same for the same content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


Track = Callable[[Sequence[Any], str], Iterable[Any]]
"""Shows progress over items under a name."""


@dataclass(frozen=True, eq=False)
class Task:
    """One fold, ready for a method."""

    fold: Fold
    training: list[Sample]
    test: list[Sample]
    photographs: list[Sample]
    """All of the data, taken and not made: rolls come from here, without labels."""
    folder: Path
    """Where methods keep what they train, each under a name that says on what."""
    digest: str
    """Of all that training depends on but the method: images, labels, what must stay unseen."""
    track: Track

    @cached_property
    def cameras(self) -> NDArray[np.str_]:
        """(photographs,) their cameras."""
        return np.array([sample.camera for sample in self.photographs])

    @cached_property
    def queries(self) -> NDArray[np.int64]:
        """(test,) the places of the test side among the photographs."""
        place = {sample.name: index for index, sample in enumerate(self.photographs)}
        return np.array([place[sample.name] for sample in self.test])


class Kept:
    """What a method computes of images, once in a run for each photograph.

    Made images serve one fold: they are not kept, and those of another fold have the same names.
    """

    def __init__(self) -> None:
        self._found: dict[str, NDArray[Any]] = {}

    def load(
        self, samples: Sequence[Sample], compute: Callable[[list[Sample]], Iterable[NDArray[Any]]]
    ) -> NDArray[Any]:
        """(samples, ...), with `compute` for those that are not known yet."""
        wanted = [sample for sample in samples if sample.made or sample.name not in self._found]
        computed = dict(zip((sample.name for sample in wanted), compute(wanted), strict=True)) if wanted else {}
        self._found.update((sample.name, computed[sample.name]) for sample in wanted if not sample.made)
        found = self._found | computed
        return np.stack([found[sample.name] for sample in samples])


class Estimates(NamedTuple):
    """Of some images; of a fold's test side, in some repeats."""

    illuminants: Float64s  # (images, 3), or (repeats, images, 3)
    uncertainties: Float64s | None = None  # the same without the 3, degrees, from methods that have one


class Method(Protocol):
    """Something that estimates illuminants, and may learn from a fold's training side first."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> dict[str, Any]:
        """All that its result depends on beside the data; results are kept by it."""
        ...

    @property
    def learns(self) -> bool: ...

    @property
    def device(self) -> str:
        """What it ran on."""
        ...

    def estimate(self, task: Task) -> dict[str, Estimates]:
        """What it finds on the test side, by variant: "" if there is but one."""
        ...


@dataclass(frozen=True)
class Classical:
    """One of `c5.classical.METHODS`."""

    name: str
    learns: bool = False
    device: str = "CPU"

    @property
    def settings(self) -> dict[str, Any]:
        return {"method": self.name}

    def estimate(self, task: Task) -> dict[str, Estimates]:
        method = METHODS[self.name]
        found = [method(shrink(sample.read())) for sample in task.track(task.test, f"{self.name}, {task.fold.name}")]
        return {"": Estimates(np.stack(found)[None])}


@dataclass(frozen=True)
class Rolls:
    """The additional images an evaluation tries: each number with each selection."""

    n_images: tuple[int, ...] = (9,)
    """The paper's m, query included."""
    selections: tuple[Selection, ...] = (Selection.RANDOM,)
    repeats: int = REPEATS

    def __post_init__(self) -> None:
        if min(self.n_images) < 1 or self.repeats < 1 or not self.selections:
            raise ParameterError("an evaluation needs m of at least 1, a selection, and at least one repeat")

    @property
    def settings(self) -> dict[str, Any]:
        selections = [selection.value for selection in self.selections]
        return {"n_images": list(self.n_images), "selections": selections, "repeats": self.repeats}

    def draw(self, cameras: NDArray[np.str_], vivid: Float64s, queries: NDArray[np.int64]) -> dict[str, list[Any]]:
        """By variant, the (queries, m - 1) rolls of each repeat. A query alone has but one repeat."""
        drawn = {}
        for count in self.n_images:
            for selection in self.selections:
                if count == 1:
                    drawn["m = 1"] = [np.empty((len(queries), 0), np.int64)]
                    continue
                name = f"m = {count}" if selection is Selection.RANDOM else f"m = {count}, {selection.value}"
                drawn[name] = [
                    select_rolls(selection, cameras, vivid, queries, count - 1, np.random.default_rng([7, repeat]))
                    for repeat in range(self.repeats)
                ]
        return drawn


@dataclass(frozen=True, eq=False)
class Trained:
    """A model file, as it is."""

    model: Model
    rolls: Rolls
    learns: bool = False
    device: str = "CPU"
    _kept: Kept = field(default_factory=Kept)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def settings(self) -> dict[str, Any]:
        strips = self.model.grid.strips  # of which the graphs, and so the identity, know nothing
        return {"model": self.model.identity} | ({"strips": strips} if strips > 1 else {}) | self.rolls.settings

    def estimate(self, task: Task) -> dict[str, Estimates]:
        tested = {name for sample in task.test for name in all_names(sample.camera)}
        met = tested & set(self.model.file.training.get("cameras", []))
        if met:
            raise ParameterError(
                f"the model {self.name} was trained on {', '.join(sorted(met))}: its errors there prove nothing; "
                "test it on other cameras, or train it with --hold-out"
            )
        grid = self.model.grid
        histograms = self._kept.load(
            task.photographs,
            lambda wanted: [histogram(sample.read(), grid) for sample in task.track(wanted, "histograms")],
        )
        queries, result = task.queries, {}
        for variant, repeats in self.rolls.draw(task.cameras, vividness(histograms, grid), queries).items():
            illuminants = np.empty((len(repeats), len(queries), 3))
            uncertainties = np.empty((len(repeats), len(queries)))
            for row in task.track(range(len(queries)), f"{self.name}, {variant}, {task.fold.name}"):
                for repeat, roll in enumerate(repeats):
                    profile = self.model.calibrate_histograms(list(histograms[roll[row]]))
                    one = self.model.estimate_histogram(histograms[queries[row]], profile)
                    illuminants[repeat, row], uncertainties[repeat, row] = one.illuminant, one.uncertainty
            result[variant] = Estimates(illuminants, uncertainties)
        return result
