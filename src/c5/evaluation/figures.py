"""Figures like those of the paper: where histograms of cameras lie, what is emitted for a scene, images balanced."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from c5.ccc import locate
from c5.choices import Selection
from c5.color import Float32s, Float64s, angular_error, rgb_to_uv
from c5.datasets import Sample
from c5.demo import VirtualCamera, render_roll
from c5.errors import DataError, ParameterError, ReadError, reason
from c5.evaluation.estimates import Outcome, read_estimates
from c5.evaluation.plots import COLORS
from c5.histograms import Grid, histogram
from c5.image import shrink
from c5.io.files import write_file
from c5.model import Model
from c5.photos.picture import Frame, develop, make_sheet, write_picture
from c5.plotting import encode_figure, new_figure
from c5.regular import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Track = Callable[[Sequence[Sample]], Iterable[Sample]]
SHOWN = (-0.8, 1.6)
"""Where histograms are shown, in nats along u and v: cameras see nearly everything there."""
ROLL = 8
"""Additional images of each virtual camera."""


def draw_mean_histograms(path: Path, samples: Sequence[Sample], track: Track = iter) -> Path:
    """The mean histogram of each camera, with the mean of its lights: they lie in different places for each camera."""
    cameras = sorted({sample.camera for sample in samples})
    sums: dict[str, Float32s] = {}
    lights: dict[str, list[Float64s]] = {}
    grid = Grid(limit=2)
    for sample in track(samples):
        found = histogram(sample.read(), grid).by_brightness ** 2  # it holds square roots of shares
        sums[sample.camera] = sums.get(sample.camera, np.zeros_like(found)) + found
        lights.setdefault(sample.camera, []).append(rgb_to_uv(sample.illuminant))
    columns = min(4, len(cameras))
    figure = _figure(columns, -(-len(cameras) // columns), 3.1)
    for place, camera in enumerate(cameras, 1):
        axes = figure.add_subplot(-(-len(cameras) // columns), columns, place)
        mean = sums[camera]
        extent = (-grid.limit, grid.limit, -grid.limit, grid.limit)
        axes.imshow(np.sqrt(mean / mean.max()), cmap="Greens_r", origin="lower", extent=extent)
        u, v = np.mean(lights[camera], axis=0)
        axes.plot(u, v, "o", color="#ffd400", markersize=8, markeredgecolor="black")
        axes.set(xlim=SHOWN, ylim=SHOWN)
        axes.set_title(f"{camera}, {len(lights[camera])} images", fontsize=9)
        axes.tick_params(labelsize=7)
    figure.supxlabel("u = ln(g / r)", fontsize=9)
    figure.supylabel("v = ln(g / b)", fontsize=9)
    return write_file(path, encode_figure(figure, path.name))


def draw_filters(path: Path, model: Model, cameras: int, seed: int) -> Path:
    """What a model emits for one rendered scene, seen by several virtual cameras that took the same photographs."""
    rng = np.random.default_rng(seed)
    chosen = [VirtualCamera.random(rng) for _ in range(cameras)]
    headings = [
        "as the sensor sees it",
        "balanced",
        "pixel histogram N0",
        "filter F0",
        "filter F1",
        "bias B",
        "heat map P",
    ]
    figure = _figure(len(headings), cameras, 1.9)
    for row, camera in enumerate(chosen):
        query, *others = render_roll(camera, 1 + ROLL, np.random.default_rng(seed), (256, 384))
        image = query.image
        profile = model.calibrate([photo.image for photo in others])
        counted = histogram(image, model.grid)
        filters, bias, gain = model.emit(counted, profile)
        found = locate(counted, filters, bias, gain)
        off = float(angular_error(found.illuminant, query.illuminant))
        panels = (
            develop(image),
            develop(image, found.illuminant),
            counted.by_brightness,
            filters[0],
            filters[-1],
            bias,
        )
        for place, panel in enumerate((*panels, found.heat_map)):
            axes = figure.add_subplot(cameras, len(headings), row * len(headings) + place + 1)
            _show(axes, np.asarray(panel), model.grid)
            if row == 0:
                axes.set_title(headings[place], fontsize=9)
            if place == 0:
                axes.set_ylabel(f"camera {row + 1}\n{off:.1f}° off", fontsize=9)
    return write_file(path, encode_figure(figure, path.name))


def draw_balanced(
    path: Path,
    estimates: Path,
    samples: Sequence[Sample],
    methods: Sequence[str],
    m: int | None = None,
    selection: Selection | None = None,
    count: int = 4,
) -> Path:
    """The images on which the first of some methods is best and worst, balanced by each method and by the truth."""
    found = [_read(estimates, samples, method, m, selection) for method in methods]
    ranked = sorted(set.intersection(*(set(each) for each in found)), key=lambda name: found[0][name].error)
    if not ranked:
        raise DataError(f"{estimates}: no image was tested with all of {', '.join(methods)}")
    spread = np.linspace(0, max(0, len(ranked) // 4 - 1), count).round().astype(int).tolist()
    best, worst = [ranked[i] for i in dict.fromkeys(spread)], [ranked[-1 - i] for i in dict.fromkeys(spread)]
    frames = []
    for name in (*best, *worst):
        outcomes = [each[name] for each in found]
        image, truth, ccm = shrink(outcomes[0].sample.read()), outcomes[0].sample.illuminant, outcomes[0].sample.ccm
        pictures = [
            develop(image),
            *(develop(image, one.estimate, ccm) for one in outcomes),
            develop(image, truth, ccm),
        ]
        told = ", ".join(f"{method} {one.error:.1f}°" for method, one in zip(methods, outcomes, strict=True))
        place = "best quarter" if name in best else "worst quarter"
        frames.append(Frame(pictures, f"{place}   {told}   {name}"))
    title = f"{len(best)} of the best and {len(worst)} of the worst quarter of {len(ranked)} images, by {methods[0]}"
    headings = ["as the sensor sees it", *methods, "by the truth"]
    return write_picture(path, make_sheet(title, headings, frames, columns=1, width=230))


def draw_curves(path: Path, runs: Sequence[Path]) -> Path:
    """The error on training images, and on what was held out if anything was, epoch by epoch."""
    logs = {run.resolve().name: _read_log(run) for run in runs}
    panels = (
        {"training images": 0, "images held out": 1} if any(log[1] for log in logs.values()) else {"training images": 0}
    )
    figure = _figure(len(panels), 1, 4.0)
    axes = [figure.add_subplot(1, len(panels), place + 1) for place in panels.values()]
    for color, (name, log) in zip(COLORS * len(logs), logs.items(), strict=False):
        for one, points in zip(axes, log, strict=False):
            if points:
                one.plot(*zip(*points, strict=True), color=color, marker="o", markersize=3, label=name)
    for one, title in zip(axes, panels, strict=True):
        one.set_title(f"mean angular error on {title}", loc="left", fontsize=10)
        one.set(xlabel="epoch", ylabel="degrees")
        one.grid(visible=True, color="#dddddd", linewidth=0.6)
        one.set_yscale("log")
        one.yaxis.set_major_formatter("{x:g}")
        one.yaxis.set_minor_formatter("{x:g}")
        if one.lines:
            one.legend(frameon=False, fontsize=8)
    return write_file(path, encode_figure(figure, path.name))


def _read_log(run: Path) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Epochs with the training error of each, and with the mean error on what was held out where it was measured."""
    path = run / "log.csv"
    try:
        rows = list(csv.DictReader(io.StringIO(read_text(path))))
        training = [(int(row["epoch"]), float(row["training_error"])) for row in rows]
        held = [(int(row["epoch"]), float(row["validation_mean"])) for row in rows if row["validation_mean"]]
    except (OSError, UnicodeDecodeError, KeyError, ValueError, TypeError) as error:
        raise ReadError(f"{path}: no log of a training run ({reason(error)}); give the folder of a run") from error
    if not training:
        raise ReadError(f"{path}: no epoch is done yet; train on, or leave this run out")
    return training, held


def _read(
    estimates: Path, samples: Sequence[Sample], method: str, m: int | None, selection: Selection | None
) -> dict[str, Outcome]:
    try:
        found = read_estimates(estimates, samples, method, m, selection)
    except ParameterError:
        found = read_estimates(estimates, samples, method)  # one that takes no additional images
    return {one.sample.name: one for one in found}


def _show(axes: Any, panel: Float32s, grid: Grid) -> None:
    if panel.ndim == 3:
        axes.imshow(panel)
    else:
        signed = bool((panel < 0).any())
        most = max(float(np.quantile(np.abs(panel), 0.998)), 1e-12)
        upwards = "lower" if grid.v[0] < grid.v[-1] else "upper"
        shown = panel if signed else np.sqrt(panel)
        limits = {"vmin": -most, "vmax": most} if signed else {"vmin": 0, "vmax": float(shown.max())}
        axes.imshow(shown, cmap="RdBu_r" if signed else "magma", origin=upwards, **limits)
    axes.set_xticks([])
    axes.set_yticks([])


def _figure(columns: int, rows: int, size: float) -> Figure:
    return new_figure(columns * size, rows * size + 0.3)
