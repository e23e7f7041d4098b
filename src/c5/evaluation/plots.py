"""Plots of results: how errors are distributed, how cameras and lights differ, what more additional images bring."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from c5.choices import Selection
from c5.evaluation.by_light import FEWEST, LIGHTS, by_warmth
from c5.evaluation.report import statistics_of
from c5.evaluation.results import Results, Row
from c5.io.files import write_file
from c5.metrics import BOUND_FACTOR, PERCENT, SHARES
from c5.plotting import encode_figure, new_plot

COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")
STYLES, MARKS = ("-", "--", "-.", ":"), "osD^"
"""Styles of lines and points, for when the colors are used up."""
WARMTH_STEP = 0.2
FAR = 12.0  # degrees

Shown = dict[str, Row]
"""Rows by what the legend calls them."""


def write_plots(results: Results, folder: Path, prefix: str = "") -> list[Path]:
    """For each dataset: distribution.png, cameras.png, lights.png, images.png if there are several m, and
    uncertainty.png and coverage.png for methods that state an uncertainty. Every method is drawn, in its best variant
    if it has several."""
    written = []
    for dataset in results.datasets:
        rows = _best_rows(results, dataset)
        drawings: dict[str, Callable[[Any], None]] = {"distribution": partial(_draw_distribution, rows, dataset)}
        if len(results.cameras(dataset)) > 1:
            drawings["cameras"] = partial(_draw_cameras, rows, results.cameras(dataset))
        if results.lights:
            drawings["lights"] = partial(_draw_lights, results, rows, dataset)
        if unsure := {name: row for name, row in rows.items() if dataset in row.worst_found}:
            drawings["uncertainty"] = partial(_draw_uncertainty, unsure, dataset)
        if bounded := {name: row for name, row in rows.items() if dataset in row.bound_factors}:
            drawings["coverage"] = partial(_draw_coverage, bounded, dataset)
        if sweeps := _find_sweeps(results.rows_of(dataset)):
            drawings["images"] = partial(_draw_sweeps, results, sweeps, dataset)
        name, title = prefix + re.sub(r"\W+", "-", dataset.lower()).strip("-"), f"{dataset}, {results.protocol}"
        written += [_plot(folder / f"{name}-{what}.png", title, draw) for what, draw in drawings.items()]
    return written


def _plot(path: Path, title: str, draw: Callable[[Any], None]) -> Path:
    """A drawing with its legend beside it, however many lines there are."""
    figure, axes = new_plot(9, 5)
    from cycler import cycler

    axes.set_prop_cycle(cycler(linestyle=STYLES) * cycler(color=COLORS) * cycler(linewidth=[1.6]))
    axes.set_title(title, loc="left")
    draw(axes)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return write_file(path, encode_figure(figure, bbox_inches="tight"))


def _best_rows(results: Results, dataset: str) -> Shown:
    """The best variant of each method, best methods first; a name says of how many variants it is the best."""
    rows = results.rows_of(dataset)
    best: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: statistics_of(row, results, dataset)[0].mean):
        best.setdefault((row.method, row.apart), row)
    counts = Counter((row.method, row.apart) for row in rows)
    return {row.name + (f" (best of {counts[key]})" if counts[key] > 1 else ""): row for key, row in best.items()}


def _draw_distribution(rows: Shown, dataset: str, axes: Any) -> None:
    for name, row in rows.items():
        groups = [values for errors in row.errors for group, values in errors.items() if group.split("/")[0] == dataset]
        errors = np.sort([value for values in groups for value in values if value is not None])
        axes.plot(errors, np.arange(1, errors.size + 1) / errors.size * 100, label=name)
    label = f"angular error of an image, degrees (those above {FAR:g} are not shown)"
    axes.set(xlim=(0, FAR), ylim=(0, 100), xlabel=label, ylabel="images with less, %")


def _draw_cameras(rows: Shown, cameras: Sequence[str], axes: Any) -> None:
    for index, (name, row) in enumerate(rows.items()):
        values = [row.statistics[camera].mean.mean if camera in row.statistics else np.nan for camera in cameras]
        mark = MARKS[index // len(COLORS) % len(MARKS)]
        axes.plot(values, np.arange(len(cameras)), label=name, linestyle="", marker=mark, markersize=7, alpha=0.85)
    axes.set_yticks(np.arange(len(cameras)), [camera.split("/")[1] for camera in cameras])
    axes.set(xlabel="mean angular error, degrees", xlim=(0, None))
    axes.grid(axis="y", visible=True)


def _draw_lights(results: Results, rows: Shown, dataset: str, axes: Any) -> None:
    for name, row in rows.items():
        warm, errors = by_warmth(results, row, dataset)
        place = np.rint(warm / WARMTH_STEP).astype(int)
        bins = [each for each in np.unique(place) if np.count_nonzero(place == each) >= FEWEST]
        means = [errors[place == each].mean() for each in bins]
        axes.plot(np.array(bins) * WARMTH_STEP, means, label=name, marker="o", markersize=4)
    edges = [*LIGHTS.values()][:-1]
    for edge in edges:
        axes.axvline(edge, color="#999999", linewidth=1, linestyle=":")
    low, high = axes.get_xlim()
    for kind, left, right in zip(LIGHTS, [low, *edges], [*edges, max(high, edges[-1] + 0.3)], strict=True):
        axes.text((left + right) / 2, 1.0, kind, transform=axes.get_xaxis_transform(), ha="center", va="top")
    label = f"warmth of the light: ln(r / b), counted from daylight (only where there are {FEWEST} images)"
    axes.set(xlabel=label, ylabel="mean angular error, degrees", ylim=(0, None))


def _draw_uncertainty(rows: Shown, dataset: str, axes: Any) -> None:
    shares = np.array([0, *SHARES]) * 100
    for name, row in rows.items():
        axes.plot(shares, np.array([0, *row.worst_found[dataset]]) * 100, label=name)
    axes.plot([0, 25, 100], [0, 100, 100], color="#999999", linewidth=1, linestyle=":", label="the best possible")
    axes.plot([0, 100], [0, 100], color="#999999", linewidth=1, linestyle="--", label="by chance")
    axes.set(
        xlim=(0, 100), ylim=(0, 100), xlabel="the most uncertain images, %", ylabel="of the worst quarter found, %"
    )


def _draw_coverage(rows: Shown, dataset: str, axes: Any) -> None:
    for name, row in rows.items():
        axes.plot([0, *row.bound_factors[dataset]], [0, *PERCENT], label=name)
    axes.axhline(90, color="#999999", linewidth=1, linestyle=":")
    axes.axvline(BOUND_FACTOR, color="#999999", linewidth=1, linestyle=":")
    axes.set(xlim=(0, 3), ylim=(0, 100), xlabel=f"factor of the bound; that of c5 is {BOUND_FACTOR:g}")
    axes.set(ylabel="errors below their bound, %")


Sweep = dict[int, Row]


def _find_sweeps(rows: Sequence[Row]) -> dict[str, Sweep]:
    """Rows of one method that differ in m alone."""
    sweeps: dict[str, Sweep] = {}
    for row in rows:
        if row.m is not None:
            chosen = "" if row.selection in ("", Selection.RANDOM.value) else row.selection
            name = ", ".join(part for part in (row.method, chosen, row.apart) if part)
            sweeps.setdefault(name, {})[row.m] = row
    return {name: sweep for name, sweep in sweeps.items() if len(sweep) > 2}


def _draw_sweeps(results: Results, sweeps: dict[str, Sweep], dataset: str, axes: Any) -> None:
    for name, sweep in sweeps.items():
        counts = sorted(sweep)
        found = [statistics_of(sweep[count], results, dataset) for count in counts]
        means, spread = [mean.mean for mean, _ in found], [deviation.mean for _, deviation in found]
        axes.errorbar(counts, means, yerr=spread, label=name, marker="o", capsize=3)
    axes.set_xscale("log")
    every = sorted({count for sweep in sweeps.values() for count in sweep})
    axes.set_xticks(every, [str(count) for count in every])
    axes.minorticks_off()
    axes.set(xlabel="images, the query included (m)", ylabel="mean angular error, degrees")
