"""The c5 command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from c5.cli import augment as augmentation
from c5.cli import balance as balancing
from c5.cli import catalog, data
from c5.cli import demo as demonstration
from c5.cli import evaluate as evaluation
from c5.cli.console import console, errors, need_torch, print_table, progress_columns, show_progress
from c5.cli.options import AssumeSrgb, Black, White, find_classical, make_reader
from c5.errors import C5Error, ParameterError
from c5.photos.photo import Reading
from c5.training.config import Recipe

if TYPE_CHECKING:
    from c5.ccc import Estimate
    from c5.image import LinearImage
    from c5.model import Model
    from c5.photos.rolls import Roll as CameraRoll


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Method = Annotated[str | None, typer.Option(help="A classical estimator instead of a model: see `c5 methods`.")]
ModelName = Annotated[str | None, typer.Option("--model", help="A .c5 file, or the name of a bundled model.")]
Roll = Annotated[Path | None, typer.Option(help="A folder of images from the same camera.")]
ProfileFile = Annotated[Path | None, typer.Option("--profile", help="A camera profile made by `c5 calibrate`.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line instead of a table.")]
Threads = Annotated[int, typer.Option(help="Threads one estimate may use.", min=1)]


def main() -> None:
    """Run the command. What a user can mend is one line on standard error and exit code 1."""
    try:
        app()
    except C5Error as error:
        errors.print(f"c5: {error}", markup=False)
        sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(f"c5-awb {version('c5-awb')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """White balance for cameras that nobody calibrated."""


@app.command()
def methods() -> None:
    """List the classical estimators."""
    from c5.classical import METHODS

    for name, method in METHODS.items():
        console.print(f"{name:28}{(method.__doc__ or '').strip().splitlines()[0]}", markup=False)


@app.command()
def estimate(
    files: Annotated[list[Path], typer.Argument(help="Raw files, 16-bit linear PNG or TIFF, or .npy.")],
    roll: Roll = None,
    profile: ProfileFile = None,
    model: ModelName = None,
    method: Method = None,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
    as_json: AsJson = False,
    threads: Threads = 1,
) -> None:
    """Estimate the light of images: its color, and the gains that make it white.

    With --roll or --profile the model knows the camera; without, it works from each image alone.
    """
    read = _image_reader(black, white, assume_srgb)
    if method is not None:
        if not (roll is None and profile is None and model is None):
            raise ParameterError("--method needs no model: leave out --roll, --profile and --model")
        estimator = find_classical(method)
    else:
        from c5.model import Profile, load_model

        loaded = load_model(model, threads=threads)
        if roll is not None and profile is not None:
            raise ParameterError("--roll and --profile say the same twice: give one of them")
        known = None if profile is None else Profile.load(profile)
        if known is not None:
            loaded.check_profile(known)
        if roll is not None:
            known = _read_roll(roll, loaded, Reading(black, white, assume_srgb)).profile
        estimator = partial(loaded.estimate, profile=known)
    _report(_each(files, lambda path: estimator(read(path))), as_json)


@app.command()
def calibrate(
    folder: Annotated[Path, typer.Argument(help="Images from one camera, as varied as possible.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The profile to write.")],
    model: ModelName = None,
    camera: Annotated[str | None, typer.Option(help="The camera's name, kept in the profile.")] = None,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
) -> None:
    """Learn a camera from a folder of its images, once: the profile then serves every image."""
    from c5.model import load_model

    loaded = load_model(model)
    profile = _read_roll(folder, loaded, Reading(black, white, assume_srgb)).profile
    assert profile is not None  # a roll of a folder always has one
    path = replace(profile, camera=camera).save(out)
    size = path.stat().st_size / 1000
    console.print(
        f"{path}: profile of {profile.n_images} images for the model {loaded.name}, {size:.0f} KB", markup=False
    )


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(help="A raw file or a linear image.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The picture to write.")],
    roll: Roll = None,
    model: ModelName = None,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
) -> None:
    """Draw how the light of an image was found: histograms, emitted filters and bias, heat map, before and after."""
    from c5.model import load_model
    from c5.photos.explain import draw_explanation
    from c5.photos.picture import write_picture
    from c5.photos.rolls import Roll

    loaded = load_model(model)
    read = _image_reader(black, white, assume_srgb)
    image = read(file)
    reading = Reading(black, white, assume_srgb)
    known = Roll() if roll is None else _read_roll(roll, loaded, reading, thumbnails=True)
    picture = draw_explanation(loaded, image, known)
    console.print(write_picture(out, picture), markup=False)


@app.command()
def convert(
    file: Annotated[Path, typer.Argument(help="A .pth file of weights published with the paper.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .c5 model file to write.")],
    bins: Annotated[int, typer.Option(help="Bins of its histograms, which the weights do not tell.")] = 64,
) -> None:
    """Make a model file of published weights. Nothing in them is executed. Needs the train extra."""
    need_torch()
    from c5.training.export import export_model
    from c5.training.published import read_published

    network = read_published(file, bins)
    made = export_model(network, out, name=file.stem, training={"weights": file.name, "from": "the paper's authors"})
    console.print(f"{out}: {made.n_images} inputs, {made.grid.bins} bins, identity {made.identity}", markup=False)


@app.command()
def train(
    data: Annotated[list[Path] | None, typer.Argument(help="Datasets: folders in a known layout, or packs.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder of the run.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    recipe: Annotated[
        Recipe | None,
        typer.Option(
            help="default: half an hour on a CPU; virtual: the bundled model's, better, forty minutes; paper: its own."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the data, or 25 steps of `virtual`; default: the recipe's.", min=1)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Another number, another run; default 0.", min=0)] = None,
    hold_out: Annotated[list[str] | None, typer.Option(help="A camera to validate on, not to train on.")] = None,
    augment: Annotated[str | None, typer.Option(help="Make more images on the fly: see `c5 augment --help`.")] = None,
    made: Annotated[int, typer.Option(help="How many to make.", min=1)] = 5000,
    matrices: Annotated[Path | None, typer.Option(help="A CSV of camera matrices, for --augment.")] = None,
    bfloat16: Annotated[bool, typer.Option("--bfloat16", help="Faster where the hardware has it.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard events too.")] = False,
) -> None:
    """Train a model, or go on with a run that was stopped. Needs the train extra; uses a GPU where there is one."""
    need_torch()
    from c5.training.command import run_training

    progress = Progress(*progress_columns(), console=errors)
    if resume is not None:
        if data or out or recipe or epochs or seed is not None or hold_out or augment or matrices or bfloat16:
            raise ParameterError("--resume takes everything from the run: give nothing else but --tensorboard")
        run_training(resume, None, tensorboard, progress)
        return
    if not data or out is None:
        raise ParameterError("give the data and --out RUN, or --resume RUN")
    from c5.training.extra import make_extra
    from c5.training.run import Plan

    config = (recipe or Recipe.DEFAULT).make()
    config = replace(config, seed=seed or 0, epochs=epochs or config.epochs, bfloat16=bfloat16)
    extra = None if augment is None else make_extra(augment, made, str(matrices.resolve()) if matrices else None)
    run_training(
        out, Plan(config, [str(path.resolve()) for path in data], hold_out or [], extra), tensorboard, progress
    )


app.command()(augmentation.augment)
app.command()(evaluation.evaluate)
app.command()(evaluation.report)
app.command()(demonstration.demo)
app.command()(balancing.balance)
app.add_typer(catalog.app, name="catalog")
app.add_typer(data.app, name="data")


def _image_reader(black: float, white: float | None, assume_srgb: bool) -> Callable[[Path], LinearImage]:
    read = make_reader(black, white, assume_srgb)
    return lambda path: read(path).image


def _read_roll(folder: Path, model: Model, reading: Reading, thumbnails: bool = False) -> CameraRoll:
    """The roll of a folder; photographs that cannot be used are named and passed over."""
    from c5.photos.rolls import list_roll, read_roll

    def track(paths: Sequence[Path]) -> Iterable[Path]:
        return show_progress(paths, "reading the roll")

    listed = list_roll(folder)
    taken = model.takes(len(listed))
    if taken < len(listed):
        errors.print(
            f"c5: the model takes {taken} additional images: using {taken} of the {len(listed)} in {folder}",
            markup=False,
        )
    roll = read_roll(folder, model, reading, thumbnails=thumbnails, track=track)
    for failure in roll.failures:
        errors.print(f"c5: passed over: {failure.message}", markup=False)
    return roll


Results = Iterator[tuple[Path, "Estimate | C5Error"]]


def _each(files: list[Path], one: Callable[[Path], Estimate]) -> Results:
    """Each file with its estimate or what is wrong with it; many files show progress."""
    for path in show_progress(files, "estimating"):
        try:
            yield path, one(path)
        except C5Error as error:
            yield path, error


def _report(results: Results, as_json: bool) -> None:
    """Print estimates; failures go to standard error at the end, and make the exit code 1."""
    failures = []
    rows = []
    for path, found in results:
        if isinstance(found, C5Error):
            failures.append(found)
        elif as_json:
            print(json.dumps({"file": str(path)} | _as_json(found)), flush=True)
        else:
            spread = "" if found.uncertainty is None else f"{found.uncertainty:.2f}°"
            numbers = (" ".join(f"{value:.4f}" for value in values) for values in (found.illuminant, found.gains))
            rows.append([str(path), *numbers, spread])
    if rows:
        headings = ["file", "illuminant r g b", "gains r g b", "uncertainty"]
        shown = len(headings) if any(row[-1] for row in rows) else len(headings) - 1  # classical methods tell none
        table = Table(*headings[:shown])
        for row in rows:
            table.add_row(*map(Text, row[:shown]))
        print_table(table)
    for failure in failures:
        errors.print(f"c5: {failure}", markup=False)
    if failures:
        raise typer.Exit(1)


def _as_json(found: Estimate) -> dict[str, Any]:
    result: dict[str, Any] = {
        "illuminant": [round(float(value), 6) for value in found.illuminant],
        "gains": [round(float(value), 6) for value in found.gains],
    }
    return result if found.uncertainty is None else result | {"uncertainty_deg": round(found.uncertainty, 4)}
