"""`c5 evaluate`: methods compared on labeled data."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.choices import PROTOCOLS, SPLITS, Format, Selection
from c5.cli.archive import open_workers
from c5.cli.console import complain, errors, print_markdown, show_progress, start_torch
from c5.cli.options import (
    AugmentationName,
    Bfloat16,
    Epochs,
    Made,
    MatricesFile,
    Plots,
    RayAddress,
    ResumedFolder,
    TestedData,
    check_free,
    check_plots,
)
from c5.errors import ParameterError

if TYPE_CHECKING:
    from c5.datasets import Sample
    from c5.evaluation.evaluating import Done
    from c5.evaluation.methods import Method, Rolls
    from c5.evaluation.protocols import Protocol


def evaluate(
    data: TestedData,
    out: ResumedFolder,
    protocol: Annotated[
        str,
        typer.Option(
            help=f"What to train on and what to test on: {', '.join(PROTOCOLS)}; and with --train and --test: "
            f"{', '.join(SPLITS)}.",
            autocompletion=lambda: [*PROTOCOLS, *SPLITS],
        ),
    ],
    method: Annotated[
        list[str],
        typer.Option(
            help="An estimator: a name that `c5 methods` lists, classical for all of those, module:Class, a .c5 file, "
            "a folder with FOLD/model.c5 for each fold, the name of a bundled model, ffcc, c5, c5:RECIPE, "
            "c5:RECIPE,FIELD=VALUE, c5:FILE.toml or c5:ablations."
        ),
    ],
    m: Annotated[
        list[int] | None, typer.Option("--m", help="Images per estimate, including the query; default 9.")
    ] = None,
    selection: Annotated[list[Selection] | None, typer.Option(help="Which additional images; default random.")] = None,
    repeats: Annotated[int, typer.Option(help="Draws of additional images.", min=1)] = 10,
    seeds: Annotated[int, typer.Option(help="Networks to train for each fold, each with its own seed.", min=1)] = 1,
    epochs: Epochs = None,
    bfloat16: Bfloat16 = False,
    augmentation: AugmentationName = None,
    made: Made = None,
    matrices: MatricesFile = None,
    only: Annotated[list[str] | None, typer.Option(help="Use only these datasets or cameras.")] = None,
    train: Annotated[list[str] | None, typer.Option(help="For splits by name: train on these.")] = None,
    test: Annotated[list[str] | None, typer.Option(help="For splits by name: test on these.")] = None,
    fold: Annotated[
        list[str] | None,
        typer.Option(help="Run only this fold, as one of several processes; then run without --fold for the tables."),
    ] = None,
    plots: Plots = None,
    estimates: Annotated[
        Path | None,
        typer.Option(help="A .csv or .parquet file for every estimate, error and uncertainty, draw by draw."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing plots and estimates.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Folds at a time; several make better use of a GPU.", min=1)] = 1,
    ray: RayAddress = None,
) -> None:
    """Compare methods on labeled data.

    If it is stopped, the same command continues from there.
    """
    from c5.datasets import read_samples
    from c5.datasets.inspection import warn_of_levels
    from c5.evaluation.evaluating import evaluate as run
    from c5.evaluation.methods import Rolls, Trained
    from c5.evaluation.plots import write_plots
    from c5.evaluation.protocols import select_samples
    from c5.evaluation.report import format_results
    from c5.io.files import write_file

    check_plots(plots, overwrite)
    if estimates is not None:
        check_free(estimates, overwrite)
    chosen = _protocol(protocol, train or [], test or [])
    rolls = Rolls(tuple(m or [9]), tuple(selection or [Selection.RANDOM]), repeats)

    methods = [
        found
        for text in method
        for found in find_methods(
            text if augmentation is None or "+" in text or not _is_trained(text) else f"{text}+{augmentation}",
            rolls,
            seeds=seeds,
            epochs=epochs,
            bfloat16=bfloat16,
            made=made,
            matrices=matrices,
        )
    ]
    for found in methods:
        if isinstance(found, Trained) and not found.model.file.training.get("cameras"):
            note = f"note: {found.name} does not say which cameras it was trained on; on those its errors prove nothing"
            errors.print(note)
        if augmentation is not None and found.learns and not _is_trained(found.name):
            note = f"note: --augmentation is for c5 and ffcc; {found.name} learns from made images that are in the data"
            errors.print(note)
    samples = read_samples(data)
    if only:
        samples = select_samples(samples, only)
    refused = _refuse_trained(methods, chosen, samples, fold)
    methods = [found for found in methods if found not in refused]
    if not methods:
        raise typer.Exit(1)
    warn_of_levels(samples)
    try:
        with ExitStack() as stack:
            results = run(
                chosen,
                samples,
                methods,
                out if ray is None else out.resolve(),
                report=report_fold,
                track=show_progress,
                command=typed_command(),
                jobs=jobs,
                spread=None if ray is None else stack.enter_context(open_workers(ray, None)),
                only=fold or (),
                say=lambda line: errors.print(f"note: {line}"),
                estimates=estimates,
            )
    except KeyboardInterrupt:
        errors.print("stopped; the same command continues from here")
        raise
    if results is None:
        return
    given = sum(sample.made for sample in samples)
    for described in results.folds if given else []:
        errors.print(f"{described['name']}: {described['made_images']} of {given} made images could be trained on")
    for style, suffix in ((Format.MARKDOWN, "md"), (Format.LATEX, "tex"), (Format.CSV, "csv")):
        write_file(out / f"table.{suffix}", format_results(results, style).encode())
    print_markdown(format_results(results, Format.MARKDOWN))
    written = [] if plots is None else write_plots(results, plots)
    written += [] if estimates is None else [estimates]
    for path in (out / "results.json", out / "table.md", out / "table.tex", out / "table.csv", *written):
        errors.print(path)
    if refused:
        raise typer.Exit(1)


def find_methods(
    text: str,
    rolls: Rolls,
    *,
    seeds: int,
    epochs: int | None,
    bfloat16: bool,
    made: int | None,
    matrices: Path | None,
) -> list[Method]:
    """The methods that a name stands for; torch is loaded only for those that need it."""
    from c5.evaluation import plugin

    if not _is_trained(text):
        return plugin.find_methods(text, rolls)
    start_torch()
    from c5.training.learners import make_methods

    known = str(matrices) if matrices else None
    return make_methods(text, rolls, seeds=range(seeds), epochs=epochs, bfloat16=bfloat16, made=made, matrices=known)


def _is_trained(text: str) -> bool:
    return text.partition(":")[0].partition("+")[0] in ("c5", "ffcc")


def _refuse_trained(
    methods: list[Method], protocol: Protocol, samples: list[Sample], only: list[str] | None
) -> list[Method]:
    """The models that were trained on cameras tested here. Each is named, with all of those cameras."""
    from c5.datasets.facts import all_names
    from c5.evaluation.methods import Trained
    from c5.evaluation.protocols import make_folds

    models = [found for found in methods if isinstance(found, Trained)]
    folds = [fold for fold in make_folds(protocol, samples) if not only or fold.name in only] if models else []
    tested = {sample.camera for sample in samples if any(sample.name in fold.test for fold in folds)}
    refused: list[Method] = []
    for model in models:
        trained_on = model.model.file.training.get("cameras", [])
        seen = [camera for camera in sorted(tested) if not all_names(camera).isdisjoint(trained_on)]
        if seen:
            complain(
                f"the model {model.name} is left out: it was trained on {', '.join(seen)}, so its errors there prove "
                "nothing; test it on other cameras, or give c5:bundled, which each fold trains without them"
            )
            refused.append(model)
    return refused


def typed_command() -> str:
    """This command, as a shell takes it."""
    return " ".join(["c5", *map(shlex.quote, sys.argv[1:])])


def report_fold(done: Done) -> None:
    means = ", ".join(f"{variant} {values.mean():.2f}°".strip() for variant, values in done.errors.items())
    state = " (kept)" if done.kept else ""
    errors.print(f"{done.number}/{done.total} {done.method}, {done.fold}: {means}{state}")


def _protocol(name: str, train: list[str], test: list[str]) -> Protocol:
    from c5.evaluation import protocols

    if name in SPLITS:
        return protocols.SPLITS[name](train, test)
    if train or test:
        raise ParameterError(f"--train and --test are for --protocol {', '.join(SPLITS)}")
    if name not in PROTOCOLS:
        raise ParameterError(f"no protocol is called {name!r}; there are {', '.join([*PROTOCOLS, *SPLITS])}")
    return protocols.PROTOCOLS[name]
