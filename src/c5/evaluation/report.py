"""Tables of results in the paper's columns, with what was published for the same protocol beside them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from c5.choices import Format
from c5.errors import DataError, reason
from c5.evaluation.by_light import FEWEST, count_lights, light_means
from c5.evaluation.results import Results, Row
from c5.evaluation.significance import find_differences
from c5.metrics import BOUND_FACTOR, UNKNOWN_DEG, Statistics, coverage
from c5.regular import read_text
from c5.words import plural

COLUMNS = {"Mean": "mean", "Med.": "median", "B. 25%": "best_25", "W. 25%": "worst_25", "Tri.": "trimean"}
"""The paper's headings, in its order, and the statistics under them."""

GEOMETRIC = frozenset({("camera-specific", "NUS")})
"""Where everybody reports the geometric mean over the cameras' statistics instead of those of all images."""


SIZES = {"Gehler-Shi": 568, "NUS": 1736, "Cube+": 1707, "Cube+ challenge": 363, "INTEL-TAU": 7022}
"""The number of images in each whole dataset."""


class Line(NamedTuple):
    """One row of a table: a method and what stands under each heading."""

    method: str
    cells: tuple[str, ...]
    source: str = ""  # empty for our own


class Table(NamedTuple):
    title: str
    headings: list[str]
    lines: list[Line]
    ranked: bool = True  # whether less is better


@cache
def read_published() -> tuple[dict[str, str], ...]:
    """The rows of published.csv by column: protocol, trained_on, tested_on, method, source, and the statistics."""
    text = resources.files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def statistics_of(row: Row, results: Results, dataset: str) -> tuple[Statistics, Statistics]:
    """A row's statistics over a dataset and their deviation over the repeats, as everybody reports them."""
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
        for row in results.rows_of(dataset):
            mean, deviation = statistics_of(row, results, dataset)
            cells = [_cell(getattr(mean, name), getattr(deviation, name)) for name in COLUMNS.values()]
            lines.append(Line(row.name, tuple(cells)))
        trained_on = _trained_on(results, dataset)
        count = results.count(dataset)
        for one in published_beside(results, dataset):
            same = one["trained_on"] in ("-", trained_on)
            name = one["method"] if same else f"{one['method']} (trained on {one['trained_on']})"
            lines.append(Line(name, tuple(one[name] or "-" for name in COLUMNS.values()), one["source"]))
        how = ", geometric mean over cameras" if (results.protocol, dataset) in GEOMETRIC else ""
        learned = f", learning methods trained on {trained_on}" if trained_on else ""
        tables.append(Table(f"{dataset}, {plural(count, 'image')}{how}{learned}", list(COLUMNS), lines))
    return tables


def published_beside(results: Results, dataset: str) -> list[dict[str, str]]:
    """Published figures for the same images, averaged in the same way."""
    tested, geometric = results.cameras(dataset), (results.protocol, dataset) in GEOMETRIC
    protocols = {results.protocol} if geometric else {"any", results.protocol, *ALIKE.get(results.protocol, ())}
    whole = dataset if results.count(dataset) == SIZES.get(dataset) else tested[0] if len(tested) == 1 else None
    return [one for one in read_published() if one["tested_on"] == whole and one["protocol"] in protocols]


ALIKE = {
    "cross-sensor": ("leave-one-camera-out",),
    "known-camera": ("split",),
    "split": ("leave-one-dataset-out",),
    "mapped-split": ("random-split",),
}
"""Other protocols with published results on the same test images; the table says what those were trained on."""


def make_camera_table(results: Results) -> Table | None:
    """Mean errors camera by camera, where there are several."""
    cameras = [camera for dataset in results.datasets for camera in results.cameras(dataset)]
    if len(cameras) < 2:
        return None
    lines = [Line(row.name, tuple(_camera_cell(row, camera) for camera in cameras)) for row in results.rows]
    return Table("Mean error by camera", [camera.split("/")[1] for camera in cameras], lines)


def make_light_table(results: Results, dataset: str) -> Table | None:
    """Mean errors on a dataset by the kind of light, if there are enough images of one."""
    lines = [
        Line(row.name, tuple("-" if mean is None else f"{mean:.2f}" for mean in light_means(results, row, dataset)))
        for row in results.rows_of(dataset)
    ]
    counts = count_lights(results, dataset)
    headings = [name if count is None else f"{name} ({count})" for name, count in counts.items()]
    cells = {cell for line in lines for cell in line.cells}
    few = f"; -: fewer than {FEWEST} images" if "-" in cells else ""
    return Table(f"{dataset}, mean error by the color of the light{few}", headings, lines) if cells > {"-"} else None


def make_difference_table(results: Results, dataset: str) -> Table | None:
    """How much larger the mean error of each method is than that of the best, with its bootstrap interval."""
    found = find_differences(results, dataset)
    if found is None:
        return None
    best, differences = found
    lines = [
        Line(name, (f"{each.mean:+.2f}", f"{each.low:+.2f} to {each.high:+.2f}", "yes" if each.clear else "no"))
        for name, each in differences.items()
    ]
    title = f"{dataset}, mean error less that of {best.name}; paired bootstrap over images"
    return Table(title, ["Difference", "95 %", "Clear"], lines, ranked=False)


COVERAGE = ("below_bound", "below_others", "bound_factor")
"""The percentage of errors on a dataset below their 90 % bound; the same with the mean of the factors that are right
for the other datasets; and the factor that is right for the dataset itself (`c5.metrics.BOUND_FACTOR`)."""


def covered(row: Row, dataset: str) -> dict[str, float]:
    """How well a row's bounds hold on a dataset, under the names of `COVERAGE`; empty if it has none."""
    if dataset not in row.bound_factors:
        return {}
    own = row.bound_factors[dataset]
    others = [factors[89] for name, factors in row.bound_factors.items() if name != dataset]
    found = {"below_bound": coverage(own), "bound_factor": own[89]}
    return found | ({"below_others": coverage(own, float(np.mean(others)))} if others else {})


def make_coverage_tables(results: Results) -> list[Table]:
    """What share of the errors stays below their bounds on each dataset, and the factor that is right on average."""
    bounded = [row for row in results.rows if row.bound_factors]
    datasets = [dataset for dataset in results.datasets if any(dataset in row.bound_factors for row in bounded)]
    stated, fitted = [], []
    for row in bounded:
        found = [covered(row, dataset) for dataset in datasets]
        mean = np.mean([each["bound_factor"] for each in found if each])
        stated.append(Line(row.name, (*(_share(each, "below_bound") for each in found), f"{mean:.2f}")))
        fitted.append(Line(row.name, tuple(_share(each, "below_others") for each in found)))
    bound = f"{BOUND_FACTOR:g} hypot({UNKNOWN_DEG:g}, uncertainty)"
    titles = (
        f"Errors below their 90 % bound, {bound}, in percent; and the factor that is right on average",
        "Errors below the bound with the factor that is right for the other datasets, in percent",
    )
    tables = [Table(titles[0], [*datasets, "factor"], stated, ranked=False)] if bounded else []
    return tables + ([Table(titles[1], datasets, fitted, ranked=False)] if len(datasets) > 1 else [])


def format_table(table: Table, style: Format) -> str:
    """A table as text. The best of our own figures in each column is bold."""
    headings = table.headings
    own = [line for line in table.lines if not line.source] if table.ranked else []
    best = [_best([line.cells[i] for line in own]) for i in range(len(headings))]
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


def tidy(results: Results, name: str) -> list[dict[str, Any]]:
    """All figures as records, each for one method on a dataset, one of its cameras or one kind of its light.

    Errors are in degrees, shares in percent; what is not known is left out. `sd` is the deviation over the draws.
    """
    records = []
    for dataset in results.datasets:
        geometric = (results.protocol, dataset) in GEOMETRIC
        common = {"results": name, "protocol": results.protocol, "dataset": dataset}
        trained_on = _trained_on(results, dataset)
        compared = find_differences(results, dataset)
        for row in results.rows_of(dataset):
            own = common | {"method": row.method, "settings": row.apart, "selection": row.selection, "m": row.m}
            own |= {"draws": row.draws or None, "trained_on": trained_on, "source": "this package"}
            mean = "geometric over cameras" if geometric else "over images"
            whole = {"images": results.count(dataset), "averaged": mean} | covered(row, dataset)
            if compared is not None and row.name in compared[1]:
                whole |= dict(zip(VERSUS, (compared[0].name, *compared[1][row.name]), strict=True))
            records.append(own | whole | _figures(*statistics_of(row, results, dataset)))
            for camera in [camera for camera in results.cameras(dataset) if camera in row.statistics]:
                one = {
                    "camera": camera.split("/")[1],
                    "images": len(results.images[camera]),
                    "m": results.real_m(row, camera),
                }
                records.append(own | one | _figures(*row.statistics[camera]))
            if results.lights:
                means = zip(count_lights(results, dataset).items(), light_means(results, row, dataset), strict=True)
                for (light, count), value in means:
                    if count is not None and value is not None:
                        records.append(own | {"light": light, "images": count, "mean": value})
        for published in published_beside(results, dataset):
            named = ("method", "trained_on", "source", *COLUMNS.values())
            kept = {key: published[key] for key in named if published[key]}
            m = re.search(r"m = (\d+)", published["method"])
            records.append(common | {"images": results.count(dataset), "m": m and m[1]} | kept)
    return records


VERSUS = ("best", "difference", "difference_low", "difference_high")
"""The best row of the dataset, and how much larger this one's mean is, with its 95 % interval over images."""
FIGURES = tuple(f"{name}{suffix}" for name in Statistics._fields for suffix in ("", "_sd"))
TIDY = (
    *("results", "protocol", "dataset", "camera", "light", "images", "method", "settings", "m", "selection", "draws"),
    *("averaged", *FIGURES, *COVERAGE, *VERSUS, "trained_on", "source"),
)
"""The columns of the CSV file."""


def format_csv(columns: Sequence[str], records: Iterable[dict[str, Any]]) -> str:
    """Records as one CSV table with one header, numbers unrounded."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return buffer.getvalue()


def _figures(mean: Statistics, deviation: Statistics) -> dict[str, float]:
    return dict(zip(FIGURES, (value for pair in zip(mean, deviation, strict=True) for value in pair), strict=True))


def write_report(folder: Path, style: Format = Format.MARKDOWN) -> str:
    """A folder as one document, in the order of names: the text of NAME.md, then the tables of NAME.json."""
    if not any(folder.glob("*.json")):
        raise DataError(f"{folder}: no results in it; copy the results.json of an evaluation there")
    if style is Format.CSV:
        loaded = [(path.stem, Results.load(path)) for path in sorted(folder.glob("*.json"))]
        return format_csv(TIDY, (record for stem, results in loaded for record in tidy(results, stem)))
    parts = []
    words = [path for path in folder.glob("*.md") if path.name != "table.md"]  # which an evaluation wrote
    for path in sorted(words) + sorted(folder.glob("*.json")):
        if path.suffix == ".json":
            parts.append((path.stem, 1, format_results(Results.load(path), style)))
        elif style is Format.MARKDOWN:
            parts.append((path.stem, 0, read_words(path)))
    return "\n\n".join(text.strip() for *_, text in sorted(parts)) + "\n"


def read_words(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text in UTF-8 ({reason(error)}); write it again") from None


def format_results(results: Results, style: Format) -> str:
    """Every table of some results; as CSV they are one."""
    if style is Format.CSV:
        return format_csv(TIDY, tidy(results, "results"))
    lights = [make_light_table(results, dataset) for dataset in results.datasets if results.lights]
    differences = [make_difference_table(results, dataset) for dataset in results.datasets]
    apart = [make_camera_table(results), *lights, *make_coverage_tables(results)]
    tables = [*make_tables(results), *differences, *apart]
    parts = [format_table(table, style) for table in tables if table is not None]
    return "\n".join([*parts, *([*_notes(results), _commands(results)] if style is Format.MARKDOWN else [])])


def _notes(results: Results) -> list[str]:
    """A note where a roll cannot hold as many images as its m says."""
    fewer = {
        camera.split("/")[1]: real
        for row in results.rows
        for camera in row.statistics
        if "/" in camera and (real := results.real_m(row, camera)) != row.m
    }
    if not fewer:
        return []
    told = ", ".join(f"at most {real} on {camera}" for camera, real in sorted(fewer.items()))
    return [f"Some cameras have fewer images than m, so their rolls repeat images: in effect, m is {told}.\n"]


def _commands(results: Results) -> str:
    commands = list(dict.fromkeys(made.get("command", "") for row in results.rows for made in row.made))
    return "```console\n" + "\n".join(f"$ {command}" for command in commands if command) + "\n```\n"


def _trained_on(results: Results, dataset: str) -> str:
    names = {name for fold in results.folds if dataset in fold["tested_on"] for name in fold["trained_on"]}
    return ", ".join(sorted(names))


def _cell(value: float, deviation: float) -> str:
    return f"{value:.2f}" if deviation < 0.005 else f"{value:.2f}±{deviation:.2f}"


def _share(found: dict[str, float], name: str) -> str:
    return f"{found[name]:.1f}" if name in found else "-"


def _camera_cell(row: Row, camera: str) -> str:
    return f"{row.statistics[camera].mean.mean:.2f}" if camera in row.statistics else "-"


def _best(cells: Sequence[str]) -> str:
    numbers = [cell for cell in cells if cell != "-"]
    return min(numbers, key=lambda cell: float(cell.split("±")[0]), default="-")


def _latex(text: str) -> str:
    return text.replace("%", r"\%").replace("±", r"$\pm$").replace("&", r"\&").replace("_", r"\_")
