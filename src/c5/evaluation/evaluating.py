"""Running an evaluation: every method over every fold, each fold kept on disk once it is done.

Killed at any moment, the same command resumes where it stopped and gives the same table. A fold is kept as
`folds/METHOD/FOLD.npz`: the `names` of the test images, their true illuminants (`truth`), and for each variant, such as
`m = 9`, the estimates of every repeat (`illuminants m = 9`, repeats x images x 3) and the `uncertainties m = 9`.
"""

from __future__ import annotations

import io
import json
import platform
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.color import Float64s, angular_error, as_illuminant, reproduction_error
from c5.datasets import Sample
from c5.datasets.prepared import prepare
from c5.errors import DataError, ParameterError, ReadError, WorkerError, reason
from c5.evaluation.estimates import check_estimates, write_estimates
from c5.evaluation.methods import Estimates, Method, Task, Track, digest_name, slug
from c5.evaluation.methods import digest as make_digest
from c5.evaluation.plugin import is_outdated
from c5.evaluation.protocols import Fold, Protocol, check_separation, make_folds, test_side, training_side
from c5.evaluation.results import ImageErrors, Results, Row, group_images, group_lights, make_row, merge
from c5.io.files import check_folder, write_file
from c5.io.shapes import parse_json
from c5.parallel import Spread, in_parallel
from c5.regular import read_regular


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
    report: Callable[[Done], None] = lambda done: None,
    track: Track = lambda items, _: items,
    command: str = "",
    jobs: int = 1,
    spread: Spread | None = None,
    only: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
    estimates: Path | None = None,
) -> Results | None:
    """Run what has not been run yet, fold by fold, and write `results.json` into the folder.

    Rows that it held already, of other methods or settings on the same images, stay in it, except those of code that
    has changed since; `say` gets a line about each. `report` is called with each fold when it is done. `jobs` folds run
    at a time: several small trainings fill a GPU better than one. With `spread`, folds, methods and seeds are spread
    over processes, or over a cluster whose nodes share the folder. With `only`, names of folds, these alone are run and
    kept, and `results.json` is not written. `estimates` is a CSV or Parquet file to write: every estimate, error and
    uncertainty of these methods, draw by draw.
    """
    every = make_folds(protocol, samples)
    folds = [fold for fold in every if fold.name in only] if only else every
    if len(folds) < len(set(only)):
        raise ParameterError(f"folds of {protocol.name} are called {', '.join(fold.name for fold in every)}")
    names = [method.name for method in methods]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError(f"two methods are called {twice!r}; a table could not tell them apart: rename one")
    tested = {name for fold in folds for name in fold.test}
    images = group_images([name for fold in folds for name in fold.test])
    check_folder(folder)
    before = None if only else _load_results(folder / "results.json", protocol.name, images)
    samples = _prepare(samples, methods, track, tested)
    contents = {sample.name: _content(sample) for sample in track(samples, "looking at the data")}
    described = [_describe(fold, samples) for fold in folds]
    data = make_digest([contents[sample.name] for sample in samples])
    if before is not None:
        if (before.folds, before.data) != (described, data):
            raise _other(folder / "results.json", before, protocol.name)
        before = replace(before, rows=[row for row in before.rows if not _outdated(row, say)])
    photographs = [sample for sample in samples if not sample.made or sample.name in tested]
    run = _Run(samples, photographs, contents, data, folder, track, command)
    rows: list[Row] = []
    records: list[tuple[Any, ...]] = []
    if estimates is not None:
        check_estimates(estimates)
    finished = run.run_all(methods, folds, jobs, spread)
    for index, method in enumerate(methods):
        variants: dict[str, list[list[ImageErrors]]] = {}
        origins: list[dict[str, Any]] = []
        for number, ((_, fold), found) in enumerate(islice(finished, len(folds)), index * len(folds) + 1):
            origins += [found.origin] if found.origin not in origins else []
            for variant, errors in found.by_image().items():
                variants.setdefault(variant, []).append(errors)
            if estimates is not None:
                records += found.records(method, fold.name)
            report(Done(method.name, fold.name, found.errors, found.kept, number, len(methods) * len(folds)))
        if only:
            continue
        rows += [make_row(method.name, v, tested, images, method.settings, origins) for v, tested in variants.items()]
    if estimates is not None:
        write_estimates(estimates, records)
    if only:
        return None
    lights = group_lights(samples, images)
    counted = Counter(sample.camera for sample in photographs)
    pools = {camera: counted[camera.split("/")[1]] for camera in images}
    results = Results(protocol.name, protocol.description, data, images, described, rows, lights, pools)
    if before is not None:
        results = merge([before, results])
    results.save(folder / "results.json")
    return results


def _outdated(row: Row, say: Callable[[str], None]) -> bool:
    if changed := is_outdated(row.settings):
        say(f"{row.name}: its code has changed since it was measured; its row is gone, run it again")
    return changed


class _FoldResult(NamedTuple):
    test: list[Sample]
    estimates: dict[str, Estimates]  # by variant
    origin: dict[str, Any]
    kept: bool  # from an earlier run

    @property
    def errors(self) -> dict[str, Float64s]:
        """By variant, (repeats, images)."""
        truth = np.stack([sample.illuminant for sample in self.test])
        return {variant: angular_error(each.illuminants, truth) for variant, each in self.estimates.items()}

    def records(self, method: Method, fold: str) -> Iterator[tuple[Any, ...]]:
        """A row of the file of all estimates, as in `ESTIMATES`, for each image and draw."""
        seeds, settings = method.settings.get("seeds", [None]), make_digest(method.settings)[:8]
        for variant, errors in self.errors.items():
            shown, unsure = Row(method.name, variant, {}, []), self.estimates[variant].uncertainties
            draws = max(1, len(errors) // len(seeds))  # of each network
            for (row, column), error in np.ndenumerate(errors):
                sample, light = self.test[column], as_illuminant(self.estimates[variant].illuminants[row, column])
                off = reproduction_error(np.maximum(light, 1e-6), sample.illuminant)
                stated = None if unsure is None else float(unsure[row, column])
                named = (sample.name, sample.dataset, sample.camera, method.name, settings, shown.m, shown.selection)
                drawn = (fold, seeds[row // draws], row % draws + 1)
                yield (*named, *drawn, error, float(off), stated, *map(float, light), *map(float, sample.illuminant))

    def by_image(self) -> dict[str, list[ImageErrors]]:
        """By variant, the errors of each image."""
        return {
            variant: [
                ImageErrors(sample.name, values[:, column], None if unsure is None else unsure[:, column])
                for column, sample in enumerate(self.test)
            ]
            for variant, values in self.errors.items()
            for unsure in [self.estimates[variant].uncertainties]
        }


class _Run(NamedTuple):
    """What all folds of an evaluation have in common."""

    samples: Sequence[Sample]
    photographs: list[Sample]  # what was taken, and what is tested
    contents: dict[str, list[Any]]
    data: str
    folder: Path
    track: Track
    command: str

    def run_all(
        self, methods: Sequence[Method], folds: Sequence[Fold], jobs: int, spread: Spread | None
    ) -> Iterator[tuple[tuple[Method, Fold], _FoldResult]]:
        """Every fold of every method, in order."""
        tasks = [(method, fold) for method in methods for fold in folds]
        if spread is None:
            each = in_parallel(self.run_fold, tasks, jobs) if jobs > 1 else ((it, self.run_fold(it)) for it in tasks)
        else:
            silent = self._replace(track=_pass)
            due = [(method, fold) for method, fold in tasks if not self._plan(method, fold).place.exists()]
            lessons = [(part, fold) for method, fold in due for part in getattr(method, "parts", ())]
            for _ in spread(silent.teach, lessons):
                pass
            each = spread(silent.run_fold, tasks)
        with closing(each):
            for (method, fold), found in each:
                if spread is not None and not self._plan(method, fold).place.exists():
                    where = f"{self.folder}: a fold was written where this machine does not see it"
                    raise WorkerError(f"{where}; choose a folder that all nodes share")
                yield (method, fold), found

    def teach(self, task: tuple[Any, Fold]) -> None:
        """Train what one part of a method needs for a fold; it is kept in the folder."""
        method, fold = task
        method.train(self._plan(method, fold).task)

    def run_fold(self, task: tuple[Method, Fold]) -> _FoldResult:
        """One fold of one method, from disk if it was run before."""
        method, fold = task
        plan = self._plan(method, fold)
        test = plan.task.test
        kept = _load(plan.place, plan.key)
        if kept is not None:
            return _FoldResult(test, *kept, kept=True)
        estimates = method.estimate(plan.task)
        for variant, given in estimates.items():
            _check(given, len(test), f"{method.name} {variant}".strip())
        found = {variant: _rounded(given) for variant, given in estimates.items()}
        origin = _provenance(self.command, method)
        truth = np.stack([sample.illuminant for sample in test])
        _save(plan.place, plan.key, found, origin, [sample.name for sample in test], truth)
        return _FoldResult(test, found, origin, kept=False)

    def _plan(self, method: Method, fold: Fold) -> _FoldPlan:
        training = training_side(fold, self.samples) if method.learns else []
        check_separation(fold, training)
        test = test_side(fold, self.photographs)
        used = [*(sample.name for sample in training), *sorted(fold.lent)]
        seen = [self.contents[name] for name in used]
        key = make_digest([method.settings, make_digest([sorted(fold.unseen), *seen]), sorted(fold.test), self.data])
        place = self.folder / "folds" / digest_name(method.name, method.settings) / f"{slug(fold.name)}.npz"
        return _FoldPlan(
            Task(fold, training, test, self.photographs, self.folder / "models", make_digest(seen), self.track),
            key,
            place,
        )


class _FoldPlan(NamedTuple):
    """What to do for a fold of a method, and where and under which key its results are kept."""

    task: Task
    key: str
    place: Path


def _pass(items: Sequence[Any], _: str) -> Sequence[Any]:
    """Progress that nobody sees."""
    return items


def _check(given: Estimates, images: int, method: str) -> None:
    """Refuse invalid estimates before any of them is kept."""
    shape = np.shape(given.illuminants)
    if len(shape) != 3 or shape[1:] != (images, 3):
        raise ParameterError(f"{method}: illuminants must have the shape (repeats, {images}, 3), not {shape}")
    if not np.isfinite(given.illuminants).all() or not (np.min(given.illuminants, axis=-1) >= 0).all():
        raise ParameterError(f"{method}: an illuminant is not finite, or negative; fix the method and run it again")
    unsure = given.uncertainties
    if unsure is not None and (np.shape(unsure) != shape[:2] or not np.isfinite(unsure).all()):
        raise ParameterError(f"{method}: uncertainties must be finite, of the shape {shape[:2]}")


def _load_results(path: Path, protocol: str, images: dict[str, list[str]]) -> Results | None:
    """The results that a folder holds already, if they are of the same protocol and images as those to come."""
    if not path.exists():
        return None
    before = Results.load(path)
    if (before.protocol, before.images) != (protocol, images):
        raise _other(path, before, protocol)
    return before


def _other(path: Path, before: Results, protocol: str) -> DataError:
    why = " on other data" if before.protocol == protocol else f", not of {protocol}"
    return DataError(f"{path}: of {before.protocol}{why}; choose another folder, or remove this one")


def _prepare(samples: Sequence[Sample], methods: Sequence[Method], track: Track, tested: set[str]) -> list[Sample]:
    """The samples with all that the methods need from photographs and from what is tested, computed in one pass."""
    features = [feature for method in methods for feature in method.features]
    if not features:
        return list(samples)
    needed = [sample for sample in samples if not sample.made or sample.name in tested]
    taken = prepare(needed, features, lambda items: track(list(items), "preparing"))
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


def _rounded(estimates: Estimates) -> Estimates:
    """In the precision in which they are kept, so that a kept fold equals one that was just run."""
    unsure = estimates.uncertainties
    return Estimates(_double(estimates.illuminants), None if unsure is None else _double(unsure))


def _double(values: NDArray[np.floating[Any]]) -> Float64s:
    return np.asarray(values, np.float32).astype(np.float64)


def _save(
    path: Path, key: str, found: dict[str, Estimates], made: dict[str, Any], names: list[str], truth: Float64s
) -> None:
    arrays: dict[str, Any] = {"key": key, "made": json.dumps(made), "names": names, "truth": truth}
    for variant, estimates in found.items():
        for part, values in estimates._asdict().items():
            if values is not None:
                arrays[f"{part} {variant}"] = np.float32(values)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_file(path, buffer.getvalue())


def _load(path: Path, key: str) -> tuple[dict[str, Estimates], dict[str, Any]] | None:
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(read_regular(path)), allow_pickle=False) as arrays:
            parts = dict(arrays)
        made = parse_json(str(parts.get("made", "")), dict)
    except (OSError, ValueError, EOFError, ReadError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged ({reason(error)}); remove it, and the fold is run again") from error
    if str(parts.get("key")) != key:
        return None
    variants = [name.partition(" ")[2] for name in parts if name.startswith("illuminants ")]
    unsure = {name: _double(values) for name, values in parts.items() if name.startswith("uncertainties ")}
    found = {
        variant: Estimates(_double(parts[f"illuminants {variant}"]), unsure.get(f"uncertainties {variant}"))
        for variant in variants
    }
    return found, made


def _provenance(command: str, method: Method) -> dict[str, Any]:
    made = {"command": command, "device": method.device, "python": platform.python_version()}
    try:
        made["version"] = version("c5-awb")
    except PackageNotFoundError:
        made["version"] = "not installed"
    return made
