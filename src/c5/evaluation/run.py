"""Running an evaluation: every method over every fold, each fold kept on disk as it is done.

Killed at any moment, the same command goes on where it stopped and comes to the same table.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from c5.color import Float64s, angular_error
from c5.datasets import Sample
from c5.datasets.prepared import prepare
from c5.errors import DataError, ParameterError
from c5.evaluation.methods import Method, Task, Track, digest_name, slug
from c5.evaluation.methods import digest as make_digest
from c5.evaluation.protocols import Fold, Protocol, check_separation, make_folds, test_side, training_side
from c5.evaluation.results import ImageErrors, Results, Row, group_images, make_row, merge
from c5.io.files import write_file


class Done(NamedTuple):
    """One fold of one method."""

    method: str
    fold: str
    errors: dict[str, Float64s]  # by variant, (repeats, images)
    kept: bool  # from an earlier run
    number: int  # from 1
    total: int


def evaluate(
    protocol: Protocol,
    samples: Sequence[Sample],
    methods: Sequence[Method],
    folder: Path,
    *,
    track: Track = lambda items, _: items,
    command: str = "",
) -> Iterator[Done]:
    """Run what has not been run yet, fold by fold; at the end `results.json` is in the folder.

    Rows that it held already, of other methods on the same images, stay in it.
    """
    folds = make_folds(protocol, samples)
    names = [method.name for method in methods]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError(f"two methods are called {twice!r}; a table could not tell them apart: rename one")
    samples = _prepare(samples, methods, track)
    photographs = [sample for sample in samples if not sample.made]
    contents = {sample.name: _content(sample) for sample in track(samples, "looking at the data")}
    images = group_images([name for fold in folds for name in fold.test])
    described = [_describe(fold, samples) for fold in folds]
    data = make_digest([contents[sample.name] for sample in samples])
    before = _load_results(folder / "results.json", protocol.name, images, described, data)
    rows: list[Row] = []
    for index, method in enumerate(methods):
        variants: dict[str, list[list[ImageErrors]]] = {}
        made: list[dict[str, Any]] = []
        for number, fold in enumerate(folds):
            training = training_side(fold, samples) if method.learns else []
            check_separation(fold, training)
            test = test_side(fold, photographs)
            digest = make_digest([sorted(fold.unseen), *(contents[sample.name] for sample in training)])
            task = Task(fold, training, test, photographs, folder / "models", digest, track)
            key = make_digest([method.settings, digest, sorted(fold.test), data])
            place = folder / "folds" / digest_name(method.name, method.settings) / f"{slug(fold.name)}.json"
            found, origin = _load(place, key)
            kept = found is not None
            if found is None:
                origin = _provenance(command, method)
                truth = np.stack([sample.illuminant for sample in test])
                estimates = method.estimate(task).items()
                found = {
                    name: _Found(angular_error(each.illuminants, truth), each.uncertainties) for name, each in estimates
                }
                _save(place, key, found, origin)
            made += [origin] if origin not in made else []
            for variant, (values, unsure) in found.items():
                each_image = [
                    ImageErrors(sample.name, values[:, column], None if unsure is None else unsure[:, column])
                    for column, sample in enumerate(test)
                ]
                variants.setdefault(variant, []).append(each_image)
            errors = {variant: each.errors for variant, each in found.items()}
            yield Done(method.name, fold.name, errors, kept, index * len(folds) + number + 1, len(methods) * len(folds))
        rows += [make_row(method.name, v, tested, images, method.settings, made) for v, tested in variants.items()]
    results = Results(protocol.name, protocol.description, data, images, described, rows)
    (results if before is None else merge([before, results])).save(folder / "results.json")


def _load_results(
    path: Path, protocol: str, images: dict[str, list[str]], folds: list[dict[str, Any]], data: str
) -> Results | None:
    """The results that a folder holds already, if they can stand in one table with those to come."""
    if not path.exists():
        return None
    before = Results.load(path)
    if (before.protocol, before.images, before.folds, before.data) != (protocol, images, folds, data):
        raise DataError(f"{path}: of {before.protocol} on other data; choose another folder, or remove this one")
    return before


def _prepare(samples: Sequence[Sample], methods: Sequence[Method], track: Track) -> list[Sample]:
    """The samples with all that the methods need of photographs, computed in one pass."""
    features = [feature for method in methods for feature in method.features]
    if not features:
        return list(samples)
    taken = prepare([s for s in samples if not s.made], features, lambda items: track(list(items), "preparing"))
    prepared = {sample.name: sample for sample in taken}
    return [prepared.get(sample.name, sample) for sample in samples]


def _content(sample: Sample) -> list[Any]:
    """All of a sample that a result can depend on."""
    return [sample.name, sample.camera, sample.illuminant.tolist(), sample.pixels.digest()]


def _describe(fold: Fold, samples: Sequence[Sample]) -> dict[str, Any]:
    training, test = training_side(fold, samples), test_side(fold, samples)
    taken = [sample for sample in training if not sample.made]
    return {
        "name": fold.name,
        "trained_on": sorted({sample.dataset for sample in taken}),
        "training_images": len(taken),
        "made_images": len(training) - len(taken),
        "tested_on": sorted({sample.dataset for sample in test}),
        "test_images": len(test),
    }


class _Found(NamedTuple):
    """What a method came to on one fold, in one variant; (repeats, images) each."""

    errors: Float64s
    uncertainties: Float64s | None


def _save(path: Path, key: str, found: dict[str, _Found], made: dict[str, Any]) -> None:
    errors = {variant: each.errors.tolist() for variant, each in found.items()}
    unsure = {variant: each.uncertainties.tolist() for variant, each in found.items() if each.uncertainties is not None}
    content = {"key": key, "made": made, "errors": errors, "uncertainties": unsure}
    write_file(path, json.dumps(content).encode())


def _load(path: Path, key: str) -> tuple[dict[str, _Found] | None, dict[str, Any]]:
    try:
        content = json.loads(path.read_text())
        if content["key"] != key:
            return None, {}
        unsure = {variant: np.array(values) for variant, values in content.get("uncertainties", {}).items()}
        errors = {variant: np.array(values) for variant, values in content["errors"].items()}
        return {variant: _Found(errors[variant], unsure.get(variant)) for variant in errors}, content["made"]
    except FileNotFoundError:
        return None, {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: damaged ({error}); remove it, and the fold is run again") from error


def _provenance(command: str, method: Method) -> dict[str, Any]:
    made = {"command": command, "device": method.device, "python": platform.python_version()}
    try:
        made["version"] = version("c5-awb")
    except PackageNotFoundError:
        made["version"] = "not installed"
    return made
