"""`c5 data`: label photographs, check a dataset, pack its images into a file, or prepare it for training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.console import complain, console, print_table, show_progress
from c5.cli.options import (
    Black,
    CameraName,
    Datasets,
    Jobs,
    LayoutName,
    OutFile,
    Overwrite,
    White,
    Zones,
    check_free,
)
from c5.words import plural

if TYPE_CHECKING:
    from c5.datasets import Problem, Report, Sample
    from c5.datasets.inspection import Group

app = typer.Typer(no_args_is_help=True, help="Label, check, pack or prepare datasets.")


@app.command()
def check(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The folder of a dataset, a .c5data pack or a .c5set.")],
    layout: LayoutName = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Check names and labels only; do not read the images.")
    ] = False,
) -> None:
    """Show what a dataset holds, and what is wrong with which file.

    The exit code is 1 if anything is wrong.
    """
    from c5.datasets import examine, find_layout
    from c5.datasets.inspection import find_duplicates, find_odd_levels, group_samples, inspect_images, make_notes

    kind = find_layout(data, layout)
    found = examine(data, kind.NAME)
    console.print(f"{data}: {plural(len(found.samples), 'image')} in the layout {kind.NAME}: {kind.DESCRIPTION}")
    groups = group_samples(found.samples)
    quick = quick or all(sample.prepared for sample in found.samples)  # a prepared set holds no images
    problems = found.problems + find_duplicates(found.samples)
    if not quick:
        problems += inspect_images(groups, partial(show_progress, what="reading the images"))
    if groups:
        _print_table(groups)
    for note in make_notes(groups):
        console.print(f"note: {note}")
    doubts = find_odd_levels(groups)
    for doubt in doubts:
        complain(f"warning: {doubt}")
    if problems:
        _print_problems(problems)
        raise typer.Exit(1)
    unread = " The images themselves were not read." if quick else ""
    console.print(f"No problems{', but read the warnings' if doubts else ''}.{unread}")


@app.command()
def pack(
    data: Datasets,
    out: OutFile,
    overwrite: Overwrite = False,
    layout: LayoutName = None,
) -> None:
    """Pack datasets into one compact .c5data file of images at working size and their labels.

    If it is stopped or killed, the same command continues from there. Images that cannot be used are named and left
    out, and the exit code is then 1.
    """
    from c5.datasets import write_pack

    check_free(out, overwrite)
    samples, problems = _examine(data, layout)
    track = partial(show_progress, what="packing")
    report = write_images(out, lambda: write_pack(samples, out, track, overwrite))
    _name_left_out(problems + report.skipped)


@app.command()
def prepare(
    data: Datasets,
    out: OutFile,
    purpose: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            help="What to prepare for: bundled (default), plain, paper or ffcc, with fields set as in paper,n=128; "
            "may be repeated.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    layout: LayoutName = None,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Processes; default: one per core.", min=1)] = None,
    zones: Zones = None,
) -> None:
    """Prepare datasets: one pass over the images makes a .c5set file with all that `c5 train` and `c5 evaluate` need.

    It takes 10 to 30 KB per image and recipe, and holds no pixels. It always includes the estimates of the classical
    methods. If it is stopped or killed, the same command continues from there. Images that cannot be used are named and
    left out, and the exit code is then 1.
    """
    from c5.datasets.prepared import write_prepared
    from c5.datasets.zoned import zone_sample
    from c5.training.data import features_for
    from c5.zones import parse_zones

    check_free(out, overwrite)
    features = features_for(purpose or ["bundled"])
    samples, problems = _examine(data, layout)
    if zones is not None:
        samples = [zone_sample(sample, parse_zones(zones)) for sample in samples]
    track = partial(show_progress, what="preparing")
    report = write_images(out, lambda: write_prepared(samples, out, features, track, overwrite, jobs))
    _name_left_out(problems + report.skipped)


@app.command()
def label(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Photographs that show a color chart of 24 patches.")],
    overwrite: Overwrite = False,
    camera: CameraName = None,
    black: Black = 0,
    white: White = None,
    jobs: Jobs = None,
) -> None:
    """Label photographs by the color chart in them: DIR/manifest.csv has the light of each, and what to mask.

    A photograph is labeled only if the colors of the chart fit. DIR/labels.html shows every photograph, to browse and
    to correct: entries in DIR/corrections.csv take precedence. Gray cards are measured where that file marks them.
    """
    from c5.charts.label_page import PAGE, write_labels
    from c5.charts.labeling import MANIFEST, label_folder, write_manifest
    from c5.photos.photo import Reading

    for name in (MANIFEST, PAGE):
        check_free(folder / name, overwrite)
    levels = Reading(black, white)
    write_manifest(folder, [], levels, dry_run=True)  # what cannot be replaced is named before the work begins
    write_labels(folder, [], dry_run=True)
    labels = label_folder(folder, levels, camera, partial(show_progress, what="labeling"), jobs)
    labeled = sum(one.illuminant is not None for one in labels)
    manifest, page = write_manifest(folder, labels, levels), write_labels(folder, labels)
    refused = [one for one in labels if (one.illuminant is None and one.kind != "none") or not one.picture]
    for one in refused:
        complain(f"no label: {one.path}: {one.reason}" if one.picture else one.reason)
    without = len(labels) - labeled - len(refused)
    console.print(f"{plural(labeled, 'photograph')} labeled, {len(refused)} refused, {without} without a chart")
    console.print(f"Labels                {manifest}")
    console.print(f"To browse             {page}")
    if not labeled or not all(one.picture for one in labels):
        raise typer.Exit(1)


def _examine(data: list[Path], layout: str | None) -> tuple[list[Sample], list[Problem]]:
    """What datasets hold, and what is wrong with them; exits if they hold nothing."""
    from c5.datasets import examine
    from c5.datasets.inspection import warn_of_levels

    found = [examine(path, layout) for path in data]
    problems = [problem for dataset in found for problem in dataset.problems]
    samples = [sample for dataset in found for sample in dataset.samples]
    if not samples:
        _print_problems(problems)
        raise typer.Exit(1)
    warn_of_levels(samples)
    return samples, problems


def _name_left_out(problems: list[Problem]) -> None:
    if problems:
        _print_problems(problems, "left out: ")
        raise typer.Exit(1)


def write_images(out: Path, write: Callable[[], Report]) -> Report:
    """Write a file of images and print its size; if stopped, say how to continue."""
    try:
        report = write()
    except KeyboardInterrupt:
        complain(f"stopped; the same command continues from {out}.part")
        raise typer.Exit(130) from None
    size = out.stat().st_size
    each = f"{size / 1e6:.1f} MB, {size / report.written / 1e3:.0f} KB each"
    console.print(f"{out}: {plural(report.written, 'image')}, {each}")
    return report


def _print_table(groups: list[Group]) -> None:
    rows = []
    for group in groups:
        sizes = sorted(set(group.sizes.values()))
        shown = ", ".join(f"{width}x{height}" for width, height in sizes[:3]) + (" ..." if len(sizes) > 3 else "")
        folds = {sample.fold for sample in group.samples} - {None}
        scenes = {sample.scene for sample in group.samples} - {None}
        matrices = sum(sample.ccm is not None for sample in group.samples)
        counts = (str(count) if count else "-" for count in (len(folds), len(scenes), matrices))
        rows.append([group.dataset, group.camera, str(len(group.samples)), shown or "-", *counts])
    print_table(["dataset", "camera", "images", "sizes", "folds", "scenes", "with ccm"], rows)


def _print_problems(problems: list[Problem], what: str = "") -> None:
    for problem in problems:
        complain(f"{what}{problem.message}")
    complain(plural(len(problems), "problem"))
