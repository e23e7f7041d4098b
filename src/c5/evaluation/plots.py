"""Plots of results: how errors are distributed, how cameras and lights differ, what more additional images give."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from c5.errors import ParameterError
from c5.evaluation.lights import FEWEST, LIGHTS, by_warmth
from c5.evaluation.report import statistics_of
from c5.evaluation.results import Results, Row
from c5.io.files import write_file
from c5.metrics import SHARES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 10
"""No more lines than a reader can tell apart."""
WARMTH_STEP = 0.2


def write_plots(results: Results, folder: Path, prefix: str = "") -> list[Path]:
    """For each dataset: distribution.png, cameras.png, lights.png, uncertainty.png where there is one, images.png of
    several m."""
    written = []
    for dataset in results.datasets:
        rows = _best_rows([row for row in results.rows if dataset in row.statistics], results, dataset)
        figures = {"distribution": _draw_distribution(results, rows, dataset)}
        if len(results.cameras(dataset)) > 1:
            figures["cameras"] = _draw_cameras(results, rows, dataset)
        if results.lights:
            figures["lights"] = _draw_lights(results, rows, dataset)
        if unsure := [row for row in rows if dataset in row.worst_found]:
            figures["uncertainty"] = _draw_uncertainty(results, unsure, dataset)
        if sweeps := _find_sweeps(results.rows, dataset):
            figures["images"] = _draw_sweeps(results, sweeps, dataset)
        name = prefix + re.sub(r"\W+", "-", dataset.lower()).strip("-")
        written += [_write(folder / f"{name}-{what}.png", figure) for what, figure in figures.items()]
    return written


def _best_rows(rows: Sequence[Row], results: Results, dataset: str) -> list[Row]:
    """The best variant of each method, best methods first."""
    best: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: _mean(row, results, dataset)):
        best.setdefault(row.method, row)
    return list(best.values())[:MOST]


def _mean(row: Row, results: Results, dataset: str) -> float:
    found = statistics_of(row, results, dataset)
    return np.inf if found is None else found[0].mean


def _draw_distribution(results: Results, rows: Sequence[Row], dataset: str) -> Figure:
    figure, axes = _figure(results, dataset)
    for row in rows:
        groups = [values for errors in row.errors for group, values in errors.items() if group.split("/")[0] == dataset]
        errors = np.sort([value for values in groups for value in values if value is not None])
        axes.plot(errors, np.arange(1, errors.size + 1) / errors.size * 100, label=row.name, linewidth=1.6)
    axes.set(xlim=(0, 12), ylim=(0, 100), xlabel="angular error of an image, degrees", ylabel="images with less, %")
    axes.legend(frameon=False, loc="lower right")
    return figure


def _draw_cameras(results: Results, rows: Sequence[Row], dataset: str) -> Figure:
    figure, axes = _figure(results, dataset)
    cameras = results.cameras(dataset)
    for row in rows:
        values = [row.statistics[camera].mean.mean if camera in row.statistics else np.nan for camera in cameras]
        axes.plot(values, np.arange(len(cameras)), "o", label=row.name, markersize=7, alpha=0.85)
    axes.set_yticks(np.arange(len(cameras)), [camera.split("/")[1] for camera in cameras])
    axes.set(xlabel="mean angular error, degrees", xlim=(0, None))
    axes.grid(axis="y", visible=True)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _draw_lights(results: Results, rows: Sequence[Row], dataset: str) -> Figure:
    figure, axes = _figure(results, dataset)
    for row in rows:
        warm, errors = by_warmth(results, row, dataset)
        place = np.rint(warm / WARMTH_STEP).astype(int)
        bins = [each for each in np.unique(place) if np.count_nonzero(place == each) >= FEWEST]
        means = [errors[place == each].mean() for each in bins]
        axes.plot(np.array(bins) * WARMTH_STEP, means, label=row.name, marker="o", markersize=4, linewidth=1.6)
    edges = [*LIGHTS.values()][:-1]
    for edge in edges:
        axes.axvline(edge, color="#999999", linewidth=1, linestyle=":")
    low, high = axes.get_xlim()
    for name, left, right in zip(LIGHTS, [low, *edges], [*edges, max(high, edges[-1] + 0.3)], strict=True):
        axes.text((left + right) / 2, 1.0, name, transform=axes.get_xaxis_transform(), ha="center", va="top")
    axes.set(xlabel="warmth of the light: ln(r / b), counted from daylight", ylabel="mean angular error, degrees")
    axes.set_ylim(0, None)
    axes.legend(frameon=False)
    return figure


def _draw_uncertainty(results: Results, rows: Sequence[Row], dataset: str) -> Figure:
    figure, axes = _figure(results, dataset)
    shares = np.array([0, *SHARES]) * 100
    for row in rows:
        axes.plot(shares, np.array([0, *row.worst_found[dataset]]) * 100, label=row.name, linewidth=1.6)
    axes.plot([0, 25, 100], [0, 100, 100], color="#999999", linewidth=1, linestyle=":", label="the best possible")
    axes.plot([0, 100], [0, 100], color="#999999", linewidth=1, linestyle="--", label="by chance")
    axes.set(
        xlim=(0, 100), ylim=(0, 100), xlabel="the most uncertain images, %", ylabel="of the worst quarter found, %"
    )
    axes.legend(frameon=False, loc="lower right")
    return figure


Sweep = dict[int, Row]


def _find_sweeps(rows: Sequence[Row], dataset: str) -> dict[str, Sweep]:
    """Rows of one method that differ in m alone."""
    sweeps: dict[str, Sweep] = {}
    for row in rows:
        found = re.fullmatch(r"m = (\d+)(.*)", row.variant)
        if found and dataset in row.statistics:
            sweeps.setdefault(row.method + found[2], {})[int(found[1])] = row
    return {name: sweep for name, sweep in sweeps.items() if len(sweep) > 2}


def _draw_sweeps(results: Results, sweeps: dict[str, Sweep], dataset: str) -> Figure:
    figure, axes = _figure(results, dataset)
    for name, sweep in sweeps.items():
        counts = sorted(sweep)
        found = [statistics_of(sweep[count], results, dataset) for count in counts]
        means = [each[0].mean for each in found if each is not None]
        spread = [each[1].mean for each in found if each is not None]
        axes.errorbar(counts, means, yerr=spread, label=name, marker="o", capsize=3, linewidth=1.6)
        axes.set_xscale("log")
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
    axes.set(xlabel="images, the query included (m)", ylabel="mean angular error, degrees")
    axes.legend(frameon=False)
    return figure


def _figure(results: Results, dataset: str) -> tuple[Figure, Any]:
    try:
        from matplotlib.figure import Figure as MatplotlibFigure
    except ImportError:
        raise ParameterError("plots need matplotlib: run pip install 'c5-awb[train]'") from None
    figure = MatplotlibFigure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(f"{dataset}, {results.protocol}", loc="left")
    return figure, axes


def _write(path: Path, figure: Figure) -> Path:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return write_file(path, buffer.getvalue())
