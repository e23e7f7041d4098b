"""Running rows of the paper's tables, keeping their results, and making a page of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from c5.augmentation import Augmentation, augment
from c5.colorimetry.matrices import CameraMatrices
from c5.datasets import Sample
from c5.errors import C5Error, DataError, reason
from c5.evaluation.evaluating import Done, evaluate
from c5.evaluation.methods import Method, Rolls, Track, digest, digest_name
from c5.evaluation.paper import CLASSICAL, SETTINGS, TABLES, TESTED, PaperRow, Work, count_published, make_rows
from c5.evaluation.protocols import Fold, Protocol, make_folds
from c5.evaluation.report import format_csv, read_words
from c5.evaluation.results import Results, Row
from c5.evaluation.significance import FEWEST, image_errors, interval
from c5.io.files import check_folder, write_file
from c5.metrics import Statistics
from c5.parallel import in_parallel
from c5.regular import read_regular, read_text

FindMethods = Callable[[str, Rolls], list[Method]]
"""Finds the methods that a name stands for, with rolls."""


class Measured(NamedTuple):
    """The result of one of our rows: a line of `rows.csv`."""

    table: int
    row: str
    setting: str
    method: str
    images: int
    networks: int
    draws: int
    figures: Statistics
    deviation: Statistics
    low: float
    """The 95 % interval of the mean over images, by bootstrap."""
    high: float
    device: str
    version: str
    settings: str
    """A digest of the method's settings, as they were used. Rows of earlier versions have none."""
    trained: str
    """What of the settings is often changed to save time, in words."""

    def to_csv(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in HEAD}
        return own | self.figures._asdict() | {f"{name}_sd": value for name, value in self.deviation._asdict().items()}

    @classmethod
    def from_csv(cls, line: dict[str, str]) -> Measured:
        kinds = {"table": int, "images": int, "networks": int, "draws": int, "low": float, "high": float}
        own: dict[str, Any] = {name: kinds.get(name, str)(line.get(name, "")) for name in HEAD}
        figures = Statistics(*(float(line[name]) for name in Statistics._fields))
        deviation = Statistics(*(float(line[f"{name}_sd"]) for name in Statistics._fields))
        return cls(**own, figures=figures, deviation=deviation)


HEAD = (
    *("table", "row", "setting", "method", "images", "networks", "draws", "low", "high", "device", "version"),
    *("settings", "trained"),
)
COLUMNS_OF_ROWS = (*HEAD, *(f"{name}{end}" for name in Statistics._fields for end in ("", "_sd")))
ROWS = "rows.csv"


def run_rows(
    rows: Sequence[PaperRow],
    samples: Sequence[Sample],
    folder: Path,
    find: FindMethods,
    *,
    matrices: Mapping[str, CameraMatrices] | None = None,
    report: Callable[[Done], None] = lambda done: None,
    track: Track = lambda items, _: items,
    command: str = "",
    jobs: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> list[Measured]:
    """Measure rows one after another; what was measured before is taken from its folder. Each is saved when it is done.

    `matrices` of cameras are needed for synthetic test cameras.
    """
    check_folder(folder)
    measured = {(line.table, line.row): line for line in load_rows(folder)}
    cameras = {(sample.dataset, sample.camera) for sample in samples if not sample.made}
    works = dict.fromkeys(row.work for row in rows if _has_images(row, cameras))
    found: dict[Work, _Task] = {}
    failed: set[Work] = set()
    for work in works:
        try:
            task = _find_task(work, samples, folder, find, matrices)
        except DataError as error:  # images cannot be made from data without pixels
            say(f"{work.method}: {error}")
            failed.add(work)
            continue
        if task is not None:
            found[work] = task

    @cache
    def run(work: Work, ahead: bool = False) -> Results | None:
        task = found[work]
        try:
            only = [fold.name for fold in make_folds(task.protocol, task.samples)] if ahead else ()
            return evaluate(
                *(task.protocol, task.samples, [task.method], task.folder),
                report=report,
                track=track,
                command=command,
                only=only,
                say=say,
            )
        except C5Error as error:  # only this row; others may have all they need
            say(f"{task.method.name}: {error}")
            return None

    if jobs > 1:  # several rows at a time; their folds are kept, and found below
        for _ in in_parallel(partial(run, ahead=True), found, jobs):
            pass
    for row in rows:
        known = row.work in found and _has_images(row, cameras)
        results = run(row.work) if known else None
        line = None if results is None else _measure(row, results, found[row.work].method)
        if line is None:
            stopped = row.work in failed or (known and results is None)
            why = "not run, for the reason above" if stopped else "left out, its data are not given"
            say(f"table {row.table}, {row.name}: {why}")
            continue
        before = measured.get((row.table, row.name))
        if before is not None and before.settings != line.settings:
            say(f"table {row.table}, {row.name}: replaces a row with other settings ({before.trained or 'not known'})")
        measured[row.table, row.name] = line
        save_rows(folder, measured.values())
        say(f"table {row.table}, {row.name}: {line.figures.mean:.2f} (published: {row.figures['mean']})")
    return list(measured.values())


def _has_images(row: PaperRow, cameras: set[tuple[str, str]]) -> bool:
    """Whether there is anything to test for a row; images of synthetic cameras are made of others."""
    tested = set(row.tested_on.split("/"))
    return row.setting == "synthetic-cameras" or any(tested <= {*each} for each in cameras)


class _Task(NamedTuple):
    """What is to be run for one or several rows."""

    protocol: Protocol
    samples: list[Sample]
    method: Method
    folder: Path


def _find_task(
    work: Work,
    samples: Sequence[Sample],
    folder: Path,
    find: FindMethods,
    matrices: Mapping[str, CameraMatrices] | None,
) -> _Task | None:
    """None if the data are not given."""
    used = _choose(samples, work.setting, matrices)
    present = {name for sample in used for name in (sample.dataset, sample.camera)}
    protocol = SETTINGS[work.setting].find(present, learns=work.method not in CLASSICAL.values())
    if protocol is None:
        return None
    (method,) = find(work.method, Rolls((work.m,), (work.selection,)))
    name = work.setting if protocol.trains else f"{work.setting} {protocol.name}"  # a folder has one protocol
    place = folder / digest_name(name, sorted(sample.name for sample in used))
    return _Task(_on(protocol, "NUS") if work.setting == "cross-sensor" else protocol, used, method, place)


def _on(protocol: Protocol, dataset: str) -> Protocol:
    """A protocol with only the folds that test one dataset."""

    def folds(samples: Sequence[Sample]) -> list[Fold]:
        return [fold for fold in protocol.folds(samples) if fold.name.split("/")[0] == dataset]

    return protocol._replace(folds=folds)


def _choose(samples: Sequence[Sample], setting: str, matrices: Mapping[str, CameraMatrices] | None) -> list[Sample]:
    """What a setting uses: its own photographs, and images made from nothing else."""
    own = [s for s in samples if not s.made and {s.dataset, s.camera} & set(SETTINGS[setting].names)]
    if setting == "synthetic-cameras":
        return [*own, *_make_synthetic(own, samples, matrices)]
    known = {sample.name for sample in own}
    return [*own, *(sample for sample in samples if sample.made and sample.sources <= known)]


SYNTHETIC = 150
"""Images that the paper maps to each synthetic test camera."""


def _make_synthetic(
    own: Sequence[Sample], samples: Sequence[Sample], matrices: Mapping[str, CameraMatrices] | None
) -> Iterator[Sample]:
    """Photographs of a camera as others would have taken them; none if nothing is known about the cameras."""
    for camera in TESTED if matrices and own else ():
        targets = [sample for sample in samples if sample.camera == camera and not sample.made]
        if targets:
            made = augment(
                own, Augmentation.PAPER, SYNTHETIC, np.random.default_rng(0), targets=targets, matrices=matrices
            )
            for number, sample in enumerate(made):
                name = f"synthetic/{camera}/{number:03d}"
                yield replace(sample, name=name, dataset="synthetic", sources=frozenset(s.name for s in own))


def _same_rolls(found: Row, row: PaperRow) -> bool:
    if found.m is None:
        return True
    return found.m == row.m and (found.m == 1 or found.selection == row.selection.value)


def _measure(row: PaperRow, results: Results, method: Method) -> Measured | None:
    """A row of results as a line; None if they do not test what the row does."""
    own = [each for each in results.rows if each.method == method.name and _same_rolls(each, row)][-1]
    group = row.tested_on
    if row.setting == "synthetic-cameras":
        group = f"synthetic/{row.tested_on.split('/')[1]}"
    if group not in own.statistics:
        return None
    dataset, _, camera = group.partition("/")
    part = replace(results, images={group: results.images[group]}) if camera else results
    errors = image_errors(own, part, dataset)
    errors = errors[np.isfinite(errors)]
    low, high = interval(errors) if errors.size >= FEWEST else (np.nan, np.nan)
    both, made = own.statistics[group], own.made[-1]
    networks = len(method.settings.get("seeds", [])) if method.learns else 0
    described = (row.table, row.name, row.setting, row.method, errors.size, networks, own.draws)
    measured = (*described, both.mean, both.deviation, low, high, made["device"], made["version"])
    return Measured(*measured, *_describe_settings(method.settings, max(fold["made_images"] for fold in results.folds)))


def _describe_settings(used: Mapping[str, Any], given: int = 0) -> tuple[str, str]:
    """A digest of a method's settings, and the most telling ones in words, with the number of made images that were
    among the data. Seeds are counted elsewhere; a table of matrices belongs to the data."""
    settings = {name: value for name, value in used.items() if name not in ("seeds", "matrices")}
    told = []
    config = settings.get("config", {})
    if "epochs" in config:  # FFCC has none
        told += [f"{config['epochs']} epochs", *(["bfloat16"] if config["bfloat16"] else [])]
    if making := settings.get("making"):
        added = 0 if making.get("unless_given") and given else making["count"]
        count = added + given if making["count"] else 0
        settings["making"] = making | {"count": count, "matrices": None}
        told.append(f"{count} made images")
    return digest(settings)[:8], ", ".join(told)


def load_rows(folder: Path) -> list[Measured]:
    """What was measured in a folder, in the order of the tables; empty if nothing was."""
    path = folder / ROWS
    if not path.exists():
        return []
    try:
        lines = csv.DictReader(io.StringIO(read_text(path)))
        if missing := {"table", "row", "mean"} - set(lines.fieldnames or ()):
            raise ValueError(f"no column {min(missing)}")
        return [Measured.from_csv(line) for line in lines]
    except (OSError, UnicodeDecodeError, KeyError, ValueError, TypeError) as error:
        raise DataError(
            f"{path}: no rows of the paper's tables ({reason(error)}); remove it, run them again"
        ) from error


def save_rows(folder: Path, lines: Iterable[Measured]) -> Path:
    order = {(row.table, row.name): place for place, row in enumerate(make_rows())}
    kept = sorted(lines, key=lambda line: order.get((line.table, line.row), len(order)))
    before = read_regular(folder / ROWS) if load_rows(folder) else None  # of an earlier version it has fewer columns
    text = format_csv(COLUMNS_OF_ROWS, (line.to_csv() for line in kept))
    return write_file(folder / ROWS, text.encode(), merged=before)


def gather_rows(folders: Sequence[Path], out: Path) -> Path:
    """Add the rows of some folders to those of another; if a row appears twice, the last one stays."""
    for folder in folders:
        if not (folder / ROWS).exists():
            raise DataError(f"{folder / ROWS}: no such file; give folders in which rows of the paper were run")
    lines = [line for folder in (out, *folders) for line in load_rows(folder)]
    return save_rows(out, {(line.table, line.row): line for line in lines}.values())


def make_checklist(folder: Path, find: FindMethods) -> str:
    """The page on the paper: the text in a folder, with its tables in place of `<!-- tables -->`. `find` finds methods
    with their usual settings; rows with others are marked."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; give one with rows.csv and the text of the page")
    words = "\n\n".join(read_words(path).strip() for path in sorted(folder.glob("*.md")))
    if "<!-- tables -->" not in words:
        raise DataError(
            f"{folder}: its text has no place for the tables; write <!-- tables --> in one of its .md files"
        )
    return words.replace("<!-- tables -->", "\n\n".join(_format_tables(load_rows(folder), find))) + "\n"


OTHER = "†"
"""Marks rows that were run with other settings."""


def _mark(row: PaperRow, line: Measured | None, find: FindMethods) -> str:
    if line is None or not (line.settings or row.method.startswith("c5")):  # nothing else has changed
        return ""
    (method,) = find(row.method, Rolls((row.m,), (row.selection,)))
    usual = [method.settings]
    config = method.settings.get("config", {})
    if "bfloat16" in config:  # the precision does not count; `trained` tells it
        usual.append(method.settings | {"config": config | {"bfloat16": True}})
    return "" if line.settings in {_describe_settings(settings)[0] for settings in usual} else OTHER


def _format_tables(measured: Sequence[Measured], find: FindMethods) -> Iterator[str]:
    lines = {(line.setting, line.method, line.row): line for line in measured}  # a row may stand in several tables
    for table, title in TABLES.items():
        rows = [row for row in make_rows() if row.table == table]
        found = [lines.get((row.setting, row.method, row.name)) for row in rows]
        done = sum(line is not None for line in found)
        total = count_published()[table]
        count = f"{total} rows, {len(rows)} of methods that are here, {done} of them run."
        body = [_format_row(row, line, _mark(row, line, find)) for row, line in zip(rows, found, strict=True)]
        yield f"### Table {table}: {title}\n\n{count}\n\n" + "\n".join([*PAGE_HEAD, *body])


HEADINGS = (
    "tested on: row",
    "published",
    "ours",
    "difference",
    "95 % over images",
    "medians",
    "method",
)
PAGE_HEAD = (f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|")


def _format_row(row: PaperRow, line: Measured | None, mark: str) -> str:
    one = row.figures
    ours, apart, over, median = "-", "-", "-", "-"
    if line is not None:
        sd = f"±{line.deviation.mean:.2f}" if line.deviation.mean >= 0.005 else ""
        ours, over = f"{line.figures.mean:.2f}{sd}{mark}", f"{line.low:.2f} to {line.high:.2f}"
        apart, median = f"{line.figures.mean - float(one['mean']):+.2f}", f"{line.figures.median:.2f}"
    cells = (row.name, one["mean"], ours, apart, over, f"{one['median']}, {median}", f"`{row.method}`")
    return f"| {' | '.join(cells)} |"
