"""Methods under test by name, where they need no training here: classical ones, plugins, models."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np

from c5 import plugins
from c5.classical import METHODS
from c5.color import Float64s
from c5.datasets import Sample
from c5.datasets.features import Feature
from c5.errors import C5Error, ParameterError
from c5.estimators import CLASSICAL, Estimator, find_estimator, is_model
from c5.evaluation.methods import Classical, Estimates, Method, Rolls, Task, Trained, TrainedApart
from c5.image import LinearImage, shrink
from c5.model import load_model
from c5.zones import parse_zones

IN_MEMORY = 512
"""Images kept at working size, about 1.5 MB each."""


class Labeled(NamedTuple):
    """An image that an estimator may learn from."""

    image: LinearImage
    """At working size; `image.camera` is its camera."""
    illuminant: Float64s
    """(3,) unit RGB."""


class LabelledImages(Sequence[Labeled]):
    """What a fold may be trained on. Images are read each time they are asked for: they may not fit into memory."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return len(self._samples)

    @overload
    def __getitem__(self, index: int) -> Labeled: ...

    @overload
    def __getitem__(self, index: slice) -> LabelledImages: ...

    def __getitem__(self, index: int | slice) -> Labeled | LabelledImages:
        if isinstance(index, slice):
            return LabelledImages(self._samples[index])
        sample = self._samples[index]
        return Labeled(shrink(sample.read()), sample.illuminant)


@dataclass(frozen=True, eq=False)
class PluginMethod:
    """Somebody else's estimator, with rolls of other images of the camera. If it has a method `learn`, it is taught on
    each fold's training side first."""

    estimator: Estimator
    rolls: Rolls
    device = "CPU"

    @property
    def name(self) -> str:
        return self.estimator.name

    @property
    def learns(self) -> bool:
        return callable(getattr(self.estimator.function, "learn", None))

    @property
    def settings(self) -> dict[str, Any]:
        """With a digest of its code, so that old results are not used when it changes."""
        return {
            "estimator": self.name,
            "origin": self.estimator.origin,
            "code": _digest_code(self.estimator.function),
        } | self.rolls.settings

    @property
    def features(self) -> Sequence[Feature[Any]]:
        return self.rolls.features

    def teach(self, task: Task) -> Estimator:
        """The estimator after it has learned from a fold. Each fold begins with a copy that has learned nothing."""
        if not self.learns:
            return self.estimator
        pupil: Any = deepcopy(self.estimator.function)
        with plugins.guard(f"{task.fold.name}: learn of the estimator {self.name}"):
            pupil.learn(LabelledImages(task.training))
        return replace(self.estimator, function=pupil)

    def estimate(self, task: Task) -> dict[str, Estimates]:
        estimator = self.teach(task)

        @lru_cache(IN_MEMORY)
        def read(index: int) -> LinearImage:
            return shrink(task.photographs[index].read())

        result = {}
        for variant, repeats in self.rolls.draw(task.cameras, task.vividness, task.queries).items():
            illuminants = np.empty((len(repeats), len(task.queries), 3))
            for row in task.track(range(len(task.queries)), f"{self.name}, {variant}, {task.fold.name}"):
                for repeat, rolls in enumerate(repeats):
                    roll = [read(int(index)) for index in rolls[row]]
                    illuminants[repeat, row] = estimator(read(int(task.queries[row])), roll).illuminant
            result[variant] = Estimates(illuminants)
        return result


def find_methods(text: str, rolls: Rolls) -> list[Method]:
    """What a name stands for: one method, or all the classical ones. MODEL@32x32 is a model that is given zones."""
    text, zones = _split_zones(text)
    if text == CLASSICAL:
        return [Classical(name) for name in METHODS]
    if text in METHODS:
        return [Classical(text)]
    if Path(text).is_dir():
        return [TrainedApart(Path(text), rolls, zones=zones)]
    if is_model(text):
        return [Trained(load_model(text), rolls, zones=zones)]
    return [PluginMethod(find_estimator(text), rolls)]


def _split_zones(text: str) -> tuple[str, tuple[int, int] | None]:
    """A name and the rows and columns after it."""
    found = re.fullmatch(r"(.+)@(\d+x\d+)", text)
    if found is None:
        return text, None
    name, zones = found[1], parse_zones(found[2])
    if not (is_model(name) or Path(name).is_dir()):
        raise ParameterError(f"{name} takes pixels, not zones; only models do")
    return name, zones


def is_outdated(settings: dict[str, Any]) -> bool:
    """Whether a method's code has changed since it was measured; False if that is not known."""
    if "code" not in settings:
        return False
    try:
        return _digest_code(find_estimator(str(settings["estimator"])).function) != str(settings["code"])
    except C5Error:
        return False


def _digest_code(function: Any) -> str:
    """A digest of the file that defines a function or the class of an object; empty if there is none."""
    defined = function if inspect.isroutine(function) else type(function)
    try:
        return hashlib.sha256(Path(inspect.getfile(defined)).read_bytes()).hexdigest()[:16]
    except (TypeError, OSError):  # built in, or made without a file
        return ""
