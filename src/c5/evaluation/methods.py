"""Methods under test that need no training here: the classical estimators, and trained models."""

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

from c5.choices import Selection
from c5.color import Float64s
from c5.datasets import Sample
from c5.datasets.facts import all_names
from c5.datasets.features import EstimateFeature, Feature, HistogramFeature, VividnessFeature
from c5.datasets.prepared import load_feature
from c5.errors import ParameterError
from c5.evaluation.protocols import Fold
from c5.histograms import Histograms
from c5.model import Model, Profile, load_model
from c5.rolls import select_rolls

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
    """All images that were taken and not made: rolls come from here, without labels."""
    folder: Path
    """Where methods keep what they train, each under a name that says what it was trained on."""
    digest: str
    """Of the images and labels that a method may train on."""
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

    def vividness(self) -> Float64s:
        """(photographs,) how much their colors vary."""
        return np.array([load_feature(sample, VividnessFeature()) for sample in self.photographs])


class Estimates(NamedTuple):
    """For some images; for a fold's test side, in several repeats."""

    illuminants: Float64s  # (images, 3), or (repeats, images, 3)
    uncertainties: Float64s | None = None  # the same without the 3, degrees, from methods that have one


class Method(Protocol):
    """Something that estimates illuminants, and may learn from a fold's training side first."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> dict[str, Any]:
        """All that its result depends on besides the data; results are kept under it."""
        ...

    @property
    def features(self) -> Sequence[Feature[Any]]:
        """What it needs from every photograph, which is then prepared; pixels can be read in any case."""
        ...

    @property
    def learns(self) -> bool: ...

    @property
    def device(self) -> str:
        """What it ran on."""
        ...

    def estimate(self, task: Task) -> dict[str, Estimates]:
        """What it finds on the test side, by variant: "" if there is only one."""
        ...


@dataclass(frozen=True)
class Classical:
    """One of `c5.classical.METHODS`."""

    name: str
    learns = False
    device = "CPU"

    @property
    def settings(self) -> dict[str, Any]:
        return {"method": self.name}

    @property
    def features(self) -> Sequence[Feature[Any]]:
        return (EstimateFeature(self.name),)

    def estimate(self, task: Task) -> dict[str, Estimates]:
        feature = EstimateFeature(self.name)
        return {"": Estimates(np.stack([load_feature(sample, feature) for sample in task.test])[None])}


@dataclass(frozen=True)
class Rolls:
    """The additional images an evaluation tries: each number with each selection."""

    n_images: tuple[int, ...] = (9,)
    """The paper's m, query included."""
    selections: tuple[Selection, ...] = (Selection.RANDOM,)
    repeats: int = REPEATS
    distinct: bool = False
    """Whether no image occurs twice in a roll, as in the paper."""

    def __post_init__(self) -> None:
        if min(self.n_images) < 1 or self.repeats < 1 or not self.selections:
            raise ParameterError("an evaluation needs m of at least 1, a selection, and at least one repeat")

    @property
    def settings(self) -> dict[str, Any]:
        selections = [selection.value for selection in self.selections]
        drawn = {"distinct": True} if self.distinct else {}
        return {"n_images": list(self.n_images), "selections": selections, "repeats": self.repeats} | drawn

    @property
    def features(self) -> Sequence[Feature[Any]]:
        """What the selections need from photographs."""
        by_vividness = {Selection.VIVID, Selection.DULL} & set(self.selections)
        return (VividnessFeature(),) if by_vividness else ()

    def draw(
        self, cameras: NDArray[np.str_], vividness: Callable[[], Float64s], queries: NDArray[np.int64]
    ) -> dict[str, list[NDArray[np.int64]]]:
        """By variant, the (queries, m - 1) rolls of each repeat. A query alone has only one repeat.

        `vividness` is called, for all images, only if a selection goes by it.
        """
        vivid = vividness() if self.features else np.zeros(len(cameras))
        drawn = {}
        for count in self.n_images:
            for selection in self.selections:
                if count == 1:
                    drawn["m = 1"] = [np.empty((len(queries), 0), np.int64)]
                    continue
                name = f"m = {count}" if selection is Selection.RANDOM else f"m = {count}, {selection.value}"
                drawn[name] = [
                    select_rolls(
                        *(selection, cameras, vivid, queries, count - 1, np.random.default_rng([7, repeat])),
                        distinct=self.distinct,
                    )
                    for repeat in range(self.repeats)
                ]
        return drawn


@dataclass(frozen=True, eq=False)
class Trained:
    """A model file, as it is."""

    model: Model
    rolls: Rolls
    learns = False
    device = "CPU"
    zones: tuple[int, int] | None = None
    """Rows and columns of the zones that it is given instead of pixels."""
    _profiles: dict[str, Profile] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return _name_with_zones(self.model.name, self.zones)

    @property
    def settings(self) -> dict[str, Any]:
        return {"model": self.model.identity} | _zone_settings(self.zones) | self.rolls.settings

    @property
    def features(self) -> Sequence[Feature[Any]]:
        return self._feature, *self.rolls.features

    @property
    def _feature(self) -> HistogramFeature:
        return HistogramFeature(self.model.grid, zones=self.zones)

    def estimate(self, task: Task) -> dict[str, Estimates]:
        tested = {name for sample in task.test for name in all_names(sample.camera)}
        seen = tested & set(self.model.file.training.get("cameras", []))
        if seen:
            raise ParameterError(
                f"the model {self.name} was trained on {', '.join(sorted(seen))}: its errors there prove nothing; "
                "test it on other cameras, or give c5:bundled, which is trained for each fold without them"
            )
        queries, result = task.queries, {}
        drawn = self.rolls.draw(task.cameras, task.vividness, queries)
        for variant, repeats in drawn.items():
            illuminants = np.empty((len(repeats), len(queries), 3))
            uncertainties = np.empty((len(repeats), len(queries)))
            for row in task.track(range(len(queries)), f"{self.name}, {variant}, {task.fold.name}"):
                query = self._histograms(task, int(queries[row]))
                for repeat, roll in enumerate(repeats):
                    profile = self.model.pool([self._profile(task, index) for index in roll[row].tolist()])
                    found = self.model.estimate_histogram(query, profile)
                    illuminants[repeat, row], uncertainties[repeat, row] = found.illuminant, found.uncertainty
            result[variant] = Estimates(illuminants, uncertainties)
        return result

    def _histograms(self, task: Task, index: int) -> Histograms:
        stored = load_feature(task.photographs[index], self._feature)
        return Histograms(stored.grid, stored.stack[0])

    def _profile(self, task: Task, index: int) -> Profile:
        """The profile of a roll of one photograph, computed once in a run."""
        name = task.photographs[index].name
        if name not in self._profiles:
            self._profiles[name] = self.model.calibrate_histograms([self._histograms(task, index)])
        return self._profiles[name]


@dataclass(frozen=True, eq=False)
class TrainedApart:
    """A folder of models, FOLD/model.c5 for each fold of a protocol: each is tested on the fold it was trained for."""

    folder: Path
    rolls: Rolls
    learns = False
    device = "CPU"
    zones: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        return _name_with_zones(self.folder.resolve().name, self.zones)

    @cached_property
    def models(self) -> dict[str, Model]:
        return {path.parent.name: load_model(path) for path in sorted(self.folder.glob("*/model.c5"))}

    @property
    def settings(self) -> dict[str, Any]:
        models = {fold: model.identity for fold, model in self.models.items()}
        return {"models": models} | _zone_settings(self.zones) | self.rolls.settings

    @property
    def features(self) -> Sequence[Feature[Any]]:
        histograms = (HistogramFeature(model.grid, zones=self.zones) for model in self.models.values())
        return *histograms, *self.rolls.features

    def estimate(self, task: Task) -> dict[str, Estimates]:
        model = self.models.get(slug(task.fold.name))
        if model is None:
            missing = self.folder / slug(task.fold.name) / "model.c5"
            raise ParameterError(f"{missing}: no such file; each fold needs the model that was trained for it")
        return Trained(model, self.rolls, zones=self.zones).estimate(task)


def _name_with_zones(name: str, zones: tuple[int, int] | None) -> str:
    return name if zones is None else f"{name}@{zones[0]}x{zones[1]}"


def _zone_settings(zones: tuple[int, int] | None) -> dict[str, Any]:
    return {} if zones is None else {"zones": list(zones)}
