"""Tables of results in the paper's columns, with what was published for the same protocol beside them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from c5.choices import Format
from c5.errors import DataError
from c5.evaluation.lights import light_headings, light_means
from c5.evaluation.results import Results, Row
from c5.metrics import Statistics

COLUMNS = {"Mean": "mean", "Med.": "median", "B. 25%": "best_25", "W. 25%": "worst_25", "Tri.": "trimean"}
"""The paper's headings, in its order, and the statistics under them."""

GEOMETRIC = frozenset({("camera-specific", "NUS")})
"""Where everybody reports the geometric mean over the cameras' statistics instead of those of all images."""


SIZES = {"Gehler-Shi": 568, "NUS": 1736, "Cube+": 1707, "Cube+ challenge": 363, "INTEL-TAU": 7022}
"""Images of the whole datasets."""


class Line(NamedTuple):
    """One row of a table: a method and what stands under each heading."""

    method: str
    cells: tuple[str, ...]
    source: str = ""  # empty for our own


class Table(NamedTuple):
    title: str
    headings: list[str]
    lines: list[Line]


@cache
def read_published() -> tuple[dict[str, str], ...]:
    """The rows of published.csv by column: protocol, trained_on, tested_on, method, source, and the statistics."""
    text = resources.files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def statistics_of(row: Row, results: Results, dataset: str) -> tuple[Statistics, Statistics] | None:
    """A row's statistics over a dataset and their deviation over the repeats, in the way everybody reports them."""
    if dataset not in row.statistics:
        return None
    both = row.statistics[dataset]
    if (results.protocol, dataset) not in GEOMETRIC:
        return both.mean, both.deviation
    cameras = [row.statistics[camera] for camera in results.cameras(dataset) if camera in row.statistics]
    means = np.exp(np.mean([np.log(np.maximum(each.mean, 1e-6)) for each in cameras], axis=0))
    deviations = np.mean([each.deviation for each in cameras], axis=0)
    return Statistics(*means.tolist()), Statistics(*deviations.tolist())


def make_tables(results: Results) -> list[Table]:
    """A table for each dataset that was tested: our rows, then published ones."""
    tables = []
    for dataset in results.datasets:
        lines = []
        for row in results.rows:
            found = statistics_of(row, results, dataset)
            if found is not None:
                cells = [_cell(getattr(found[0], name), getattr(found[1], name)) for name in COLUMNS.values()]
                lines.append(Line(row.name, tuple(cells)))
        trained_on = _trained_on(results, dataset)
        count = sum(len(results.images[camera]) for camera in results.cameras(dataset))
        tested = results.cameras(dataset)
        # A published figure stands beside ours where it is for the same images, and not a mean of another kind.
        protocols = {results.protocol} if (results.protocol, dataset) in GEOMETRIC else {"any", results.protocol}
        whole = dataset if count == SIZES.get(dataset) else tested[0] if len(tested) == 1 else None
        for one in read_published():
            if one["tested_on"] == whole and one["protocol"] in protocols:
                same = one["trained_on"] in ("-", trained_on)
                name = one["method"] if same else f"{one['method']} (trained on {one['trained_on']})"
                lines.append(Line(name, tuple(one[name] or "-" for name in COLUMNS.values()), one["source"]))
        how = ", geometric mean over cameras" if (results.protocol, dataset) in GEOMETRIC else ""
        learnt = f", learning methods trained on {trained_on}" if trained_on else ""
        tables.append(Table(f"{dataset}, {count} images{how}{learnt}", list(COLUMNS), lines))
    return tables


def make_camera_table(results: Results) -> Table | None:
    """Mean errors camera by camera, where there are several."""
    cameras = [camera for dataset in results.datasets for camera in results.cameras(dataset)]
    if len(cameras) < 2:
        return None
    lines = [Line(row.name, tuple(_camera_cell(row, camera) for camera in cameras)) for row in results.rows]
    return Table("Mean error by camera", [camera.split("/")[1] for camera in cameras], lines)


def make_light_table(results: Results, dataset: str) -> Table:
    """Mean errors on a dataset by the kind of light."""
    lines = [
        Line(row.name, tuple("-" if mean is None else f"{mean:.2f}" for mean in light_means(results, row, dataset)))
        for row in results.rows
        if dataset in row.statistics
    ]
    return Table(f"{dataset}, mean error by the color of the light", light_headings(results, dataset), lines)


def format_table(table: Table, style: Format) -> str:
    """A table as text. The best of our own figures in each column is bold."""
    headings = table.headings
    if style is Format.CSV:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(["method", *headings, "source"])
        writer.writerows([line.method, *line.cells, line.source or "this package"] for line in table.lines)
        return buffer.getvalue()
    best = [_best([line.cells[i] for line in table.lines if not line.source]) for i in range(len(headings))]
    published = any(line.source for line in table.lines)
    rows = []
    for line in table.lines:
        bold = "**{}**" if style is Format.MARKDOWN else r"\textbf{{{}}}"
        cells = [
            bold.format(cell) if not line.source and cell == best[i] and cell != "-" else cell
            for i, cell in enumerate(line.cells)
        ]
        rows.append([line.method, *cells, *([line.source] if published else [])])
    titles = ["Method", *headings, *(["Published in"] if published else [])]
    if style is Format.MARKDOWN:
        lines = [f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(titles), *rows)]
        return f"{table.title}\n\n" + "\n".join(lines) + "\n"
    head, *rest = (" & ".join(map(_latex, cells)) + r" \\" for cells in (titles, *rows))
    columns = "l" + "c" * len(headings) + ("l" if published else "")
    lines = [f"% {table.title}", rf"\begin{{tabular}}{{{columns}}}", rf"{head} \hline", *rest, r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def write_report(folder: Path, style: Format = Format.MARKDOWN) -> str:
    """A folder as one document, in the order of names: the words of NAME.md, then the tables of NAME.json."""
    if not any(folder.glob("*.json")):
        raise DataError(f"{folder}: no results in it; copy the results.json of an evaluation there")
    parts = []
    words = [path for path in folder.glob("*.md") if path.name != "table.md"]  # which an evaluation wrote
    for path in sorted(words) + sorted(folder.glob("*.json")):
        if path.suffix == ".json":
            parts.append((path.stem, 1, format_results(Results.load(path), style)))
        elif style is Format.MARKDOWN:
            parts.append((path.stem, 0, path.read_text(encoding="utf-8")))
    return "\n\n".join(text.strip() for *_, text in sorted(parts)) + "\n"


def format_results(results: Results, style: Format) -> str:
    """Every table of some results."""
    lights = [make_light_table(results, dataset) for dataset in results.datasets if results.lights]
    tables = [*make_tables(results), make_camera_table(results), *lights]
    parts = [format_table(table, style) for table in tables if table is not None]
    return "\n".join([*parts, *([_commands(results)] if style is Format.MARKDOWN else [])])


def _commands(results: Results) -> str:
    commands = list(dict.fromkeys(made.get("command", "") for row in results.rows for made in row.made))
    return "```console\n" + "\n".join(f"$ {command}" for command in commands if command) + "\n```\n"


def _trained_on(results: Results, dataset: str) -> str:
    names = {name for fold in results.folds if dataset in fold["tested_on"] for name in fold["trained_on"]}
    return ", ".join(sorted(names))


def _cell(value: float, deviation: float) -> str:
    return f"{value:.2f}" if deviation < 0.005 else f"{value:.2f}±{deviation:.2f}"


def _camera_cell(row: Row, camera: str) -> str:
    return f"{row.statistics[camera].mean.mean:.2f}" if camera in row.statistics else "-"


def _best(cells: Sequence[str]) -> str:
    numbers = [cell for cell in cells if cell != "-"]
    return min(numbers, key=lambda cell: float(cell.split("±")[0]), default="-")


def _latex(text: str) -> str:
    return text.replace("%", r"\%").replace("±", r"$\pm$").replace("&", r"\&").replace("_", r"\_")
