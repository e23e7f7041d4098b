"""What is trained on and what is tested: evaluation protocols as data.

A protocol turns photographs into folds. What must stay out of a fold's training is part of the fold, so that images
made by augmentation can be checked as well, by the photographs and cameras that went into them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np

from c5.datasets import Sample
from c5.datasets.facts import all_names
from c5.errors import DataError, ParameterError


@dataclass(frozen=True)
class Fold:
    """One training and its test."""

    name: str
    train: frozenset[str]
    """Names of the photographs to train on."""
    test: frozenset[str]
    unseen: frozenset[str] = frozenset()
    """Cameras that training must not have seen in any way."""
    only: frozenset[str] | None = None
    """The only cameras that training may be about, under all their names; None for any."""
    lent: frozenset[str] = frozenset()
    """Names of photographs of other cameras that are not trained on themselves, but may be mapped to one of `only`."""


class Protocol(NamedTuple):
    name: str
    description: str
    folds: Callable[[Sequence[Sample]], list[Fold]]
    tests_made: bool = False
    """Whether it tests made images too, which are then among the samples that folds are made of."""
    trains: bool = True
    """Whether its folds need something to train on; methods that learn nothing do not."""


def training_side(fold: Fold, samples: Iterable[Sample]) -> list[Sample]:
    """What a fold may train on: its photographs, and images made from nothing else."""
    return [sample for sample in samples if _find_leak(fold, sample) is None]


def test_side(fold: Fold, samples: Iterable[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.name in fold.test]


test_side.__test__ = False  # type: ignore[attr-defined]  # not a test for pytest


def check_separation(fold: Fold, training: Sequence[Sample]) -> None:
    """Raise an error if something that must stay unseen went into what a fold is about to train on."""
    if fold.train & fold.test:
        raise DataError(f"fold {fold.name}: {min(fold.train & fold.test)} is on both sides")
    for sample in training:
        leak = _find_leak(fold, sample)
        if leak is not None:
            raise DataError(f"fold {fold.name}: {sample.name} {leak}")


def _find_leak(fold: Fold, sample: Sample) -> str | None:
    """What went into a photograph or a made image that a fold must not train on."""
    if sample.name in fold.test:
        return "is tested"
    if sample.cameras & fold.unseen:
        return f"knows {min(sample.cameras & fold.unseen)}"
    if fold.only is not None:
        about = {sample.camera} if sample.made and sample.sources & fold.lent else sample.cameras
        if not about <= fold.only:
            return f"is about {min(about - fold.only)} as well; leave out that augmentation"
    allowed = fold.train | fold.lent if sample.made else fold.train
    if not sample.sources <= allowed:
        return f"holds something of {min(sample.sources - allowed)}"
    return None


def leave_one_dataset_out(samples: Sequence[Sample]) -> list[Fold]:
    """Each dataset is tested with all others as training; cameras that are in both are left out of training."""
    return [_unseen(dataset, samples, own) for dataset, own in _split(samples, "dataset").items()]


def leave_two_datasets_out(samples: Sequence[Sample]) -> list[Fold]:
    """Each dataset is tested with all but one of the others as training, for each that is left out of both sides.

    The results of the folds without a dataset may serve to choose a recipe for it; the dataset stays unseen.
    """
    folds = []
    for absent in _split(samples, "dataset"):
        rest = [sample for sample in samples if sample.dataset != absent]
        if len({sample.dataset for sample in rest}) > 1:
            folds += [replace(fold, name=f"{fold.name} without {absent}") for fold in leave_one_dataset_out(rest)]
    return folds


def cross_sensor(samples: Sequence[Sample]) -> list[Fold]:
    """Each camera is tested with the other cameras of its dataset as training; scenes may be shared."""
    folds = []
    for dataset, own in _split(samples, "dataset").items():
        cameras = _split(own, "camera")
        if len(cameras) > 1:
            folds += [_unseen(f"{dataset}/{camera}", own, tested) for camera, tested in cameras.items()]
    return folds


def leave_one_camera_out(samples: Sequence[Sample]) -> list[Fold]:
    """Each camera is tested with all other cameras of all datasets as training: the paper's cross-sensor."""
    folds = [
        _unseen(f"{dataset}/{camera}", samples, tested)
        for dataset, own in _split(samples, "dataset").items()
        for camera, tested in _split(own, "camera").items()
    ]
    return [fold for fold in folds if fold.train]


TOGETHER = frozenset({"Gehler-Shi"})
"""Datasets whose three folds run over all their cameras at once, as everybody reports them."""


def camera_specific(samples: Sequence[Sample]) -> list[Fold]:
    """Each camera by itself in three folds, those that were published where there are such."""
    folds = []
    for dataset, own in _split(samples, "dataset").items():
        if dataset in TOGETHER:
            folds += _cross_validation(dataset, own, 3)
        else:
            for camera, group in _split(own, "camera").items():
                folds += _cross_validation(f"{dataset}/{camera}", group, 3)
    return folds


def ten_fold(samples: Sequence[Sample]) -> list[Fold]:
    """All cameras of a dataset together in ten folds, a scene never on both sides: INTEL-TAU's cross-validation."""
    datasets = _split(samples, "dataset").items()
    return [fold for dataset, own in datasets for fold in _cross_validation(dataset, own, 10)]


def camera_invariance(samples: Sequence[Sample]) -> list[Fold]:
    """Trained on one camera of a dataset, tested on another, for each pair: INTEL-TAU's second protocol."""
    folds = []
    for dataset, own in _split(samples, "dataset").items():
        for (source, trained), (target, tested) in permutations(_split(own, "camera").items(), 2):
            fold = _unseen(f"{dataset}/{source} to {target}", [*trained, *tested], tested)
            folds.append(replace(fold, only=all_names(source)))
    return folds


RANDOM_SPLITS, TEST_SHARE = 5, 0.3


def random_split(samples: Sequence[Sample]) -> list[Fold]:
    """Each camera by itself, 30 % of its images drawn for testing, five times over: the paper's augmentation tables."""
    folds = []
    for camera, photographs in _split(samples, "camera").items():
        own = sorted(sample.name for sample in photographs)
        for repeat in range(RANDOM_SPLITS):
            order = np.random.default_rng([repeat, len(own)]).permutation(len(own))
            test = frozenset(own[i] for i in order[: round(TEST_SHARE * len(own))])
            rest = frozenset(own) - test
            folds.append(Fold(f"{camera} split {repeat + 1}", rest, test, only=all_names(camera)))
    return folds


def split_by_name(train: Sequence[str], test: Sequence[str], *, known_camera: bool = False) -> Protocol:
    """A plain split: names of datasets or cameras to train on, and to test on.

    Cameras that are tested are left out of training, unless `known_camera`: Cube+ to its challenge.
    """

    def folds(samples: Sequence[Sample]) -> list[Fold]:
        trained, tested = select_samples(samples, train), select_samples(samples, test)
        names = {sample.name for sample in tested}
        fold = _unseen(f"{', '.join(train)} to {', '.join(test)}", [*trained, *tested], tested)
        if known_camera:
            fold = replace(fold, train=frozenset(sample.name for sample in trained) - names, unseen=frozenset())
        return [fold]

    _require(train, test)
    name = "known-camera" if known_camera else "split"
    return Protocol(name, f"trained on {', '.join(train)}, tested on {', '.join(test)}", folds)


def tested_alone(test: Sequence[str]) -> Protocol:
    """Names of datasets or cameras to test, for methods that learn nothing."""

    def folds(samples: Sequence[Sample]) -> list[Fold]:
        tested = frozenset(sample.name for sample in select_samples(samples, test))
        return [Fold(", ".join(test), frozenset(), tested)]

    return Protocol("tested-alone", f"{', '.join(test)} tested, nothing trained on", folds, trains=False)


def mapped_split(sources: Sequence[str], target: Sequence[str]) -> Protocol:
    """Like `random_split` for some cameras; photographs of others may be mapped to them, but are not trained on."""

    def folds(samples: Sequence[Sample]) -> list[Fold]:
        lent = frozenset(sample.name for sample in select_samples(samples, sources))
        return [
            replace(fold, lent=lent - fold.train - fold.test) for fold in random_split(select_samples(samples, target))
        ]

    _require(sources, target)
    return Protocol("mapped-split", f"images of {', '.join(sources)} mapped to {', '.join(target)}", folds)


def synthetic_cameras(source: Sequence[str], test: Sequence[str] = ()) -> Protocol:
    """Trained on a camera, tested on images made from its own, as other cameras would see them."""

    def folds(samples: Sequence[Sample]) -> list[Fold]:
        own = select_samples([sample for sample in samples if not sample.made], source)
        train = frozenset(sample.name for sample in own)
        made = [sample for sample in samples if sample.made and sample.sources & train]
        return [
            Fold(f"{', '.join(source)} as {camera}", train, frozenset(sample.name for sample in tested))
            for camera, tested in _split(made, "camera").items()
        ]

    if not source or test:
        raise ParameterError("synthetic-cameras needs names to train on alone; it tests what images were made for")
    return Protocol("synthetic-cameras", f"{', '.join(source)}, tested as others would see it", folds, tests_made=True)


def _require(train: Sequence[str], test: Sequence[str]) -> None:
    if not train or not test:
        raise ParameterError("a split needs names to train on and names to test on")


def select_samples(samples: Sequence[Sample], names: Sequence[str]) -> list[Sample]:
    """The samples of some datasets or cameras."""
    known = {name for sample in samples for name in (sample.dataset, sample.camera)}
    for name in names:
        if name not in known:
            raise ParameterError(f"no dataset or camera is called {name!r}; the data have {', '.join(sorted(known))}")
    return [sample for sample in samples if {sample.dataset, sample.camera} & set(names)]


PROTOCOLS = {
    name: Protocol(name, (folds.__doc__ or "").strip().partition("\n")[0], folds)
    for name, folds in {
        "leave-one-dataset-out": leave_one_dataset_out,
        "leave-two-datasets-out": leave_two_datasets_out,
        "cross-sensor": cross_sensor,
        "leave-one-camera-out": leave_one_camera_out,
        "camera-specific": camera_specific,
        "ten-fold": ten_fold,
        "camera-invariance": camera_invariance,
        "random-split": random_split,
    }.items()
}


SPLITS: dict[str, Callable[[Sequence[str], Sequence[str]], Protocol]] = {
    "split": split_by_name,
    "known-camera": partial(split_by_name, known_camera=True),
    "mapped-split": mapped_split,
    "synthetic-cameras": synthetic_cameras,
}
"""Protocols that take names of what to train on and what to test."""

NEEDED = {"leave-two-datasets-out": "three datasets", "leave-one-camera-out": "several cameras"}
"""What data without any fold lack, by protocol."""


def make_folds(protocol: Protocol, samples: Sequence[Sample]) -> list[Fold]:
    """The folds of a protocol, each with something on both sides."""
    folds = protocol.folds([sample for sample in samples if protocol.tests_made or not sample.made])
    if not folds and protocol.tests_made:
        more = "make some for other cameras by augmentation, and give them beside the photographs"
        raise DataError(f"{protocol.name} tests images that are made from those it trains on; {more}")
    if not folds:
        needed = NEEDED.get(protocol.name, "several cameras in one dataset")
        raise DataError(f"{protocol.name} needs {needed}; give more data, or choose another protocol")
    for fold in folds:
        if (protocol.trains and not fold.train) or not fold.test:
            side = "test" if fold.train or not protocol.trains else "train"
            raise DataError(f"{protocol.name}, {fold.name}: nothing is left to {side} on; give more data")
    return folds


def _split(samples: Iterable[Sample], what: Literal["dataset", "camera"]) -> dict[str, list[Sample]]:
    """The samples of each dataset, or of each camera, in the order of names."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(getattr(sample, what), []).append(sample)
    return dict(sorted(groups.items()))


def _unseen(name: str, samples: Sequence[Sample], tested: Sequence[Sample]) -> Fold:
    """A fold that tests some photographs and leaves their cameras out of training, everywhere and under any name."""
    test = frozenset(sample.name for sample in tested)
    unseen = frozenset(known for sample in tested for known in all_names(sample.camera))
    train = frozenset(sample.name for sample in samples if sample.name not in test and sample.camera not in unseen)
    return Fold(name, train, test, unseen)


def _cross_validation(name: str, samples: Sequence[Sample], count: int) -> list[Fold]:
    published = {sample.fold for sample in samples}
    if published == set(range(count)):
        place = {sample.name: sample.fold for sample in samples}
    else:
        place = {sample.name: _place(sample, count) for sample in samples}
    names = frozenset(place)
    only = frozenset(name for sample in samples for name in all_names(sample.camera))
    folds = []
    for index in range(count):
        test = frozenset(each for each in names if place[each] == index)
        if test:  # few photographs may leave a fold without any
            folds.append(Fold(f"{name} fold {index + 1}", names - test, test, only=only))
    return folds


def _place(sample: Sample, count: int) -> int:
    """A fold that stays the same whatever else is in the data; photographs of one scene share it."""
    key = sample.name if sample.scene is None else f"{sample.dataset}/{sample.scene}"
    return int(hashlib.sha256(key.encode()).hexdigest(), 16) % count
