"""`c5 evaluate` and `c5 report`: methods over protocols, and tables of what they came to."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from c5.cli.console import console, errors, need_torch, show_progress
from c5.errors import ParameterError
from c5.evaluation.report import Format
from c5.rolls import Selection

if TYPE_CHECKING:
    from c5.evaluation.methods import Method, Rolls
    from c5.evaluation.protocols import Protocol


def evaluate(
    data: Annotated[list[Path], typer.Argument(help="Datasets: folders in a known layout, or packs.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the evaluation; run again, it goes on.")],
    protocol: Annotated[str, typer.Option(help="Who is trained on and who is tested.")],
    method: Annotated[
        list[str],
        typer.Option(
            help="A classical method, classical for all, ffcc, c5, c5:CONFIGURATION, c5:ablations, a .c5 file."
        ),
    ],
    m: Annotated[list[int] | None, typer.Option("--m", help="Images given, the query included; default 9.")] = None,
    selection: Annotated[list[Selection] | None, typer.Option(help="Which additional images; default random.")] = None,
    repeats: Annotated[int, typer.Option(help="Draws of additional images.", min=1)] = 10,
    seeds: Annotated[int, typer.Option(help="Networks to train for each fold, each with its own seed.", min=1)] = 1,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data; default: as configured.", min=1)] = None,
    bfloat16: Annotated[bool, typer.Option("--bfloat16", help="Faster training where the hardware has it.")] = False,
    made: Annotated[int | None, typer.Option(help="Images that METHOD+AUGMENTATION makes for a fold.", min=1)] = None,
    matrices: Annotated[Path | None, typer.Option(help="A CSV of camera matrices, for augmentation.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Use these datasets or cameras of the data only.")] = None,
    train: Annotated[list[str] | None, typer.Option(help="For --protocol split: names to train on.")] = None,
    test: Annotated[list[str] | None, typer.Option(help="For --protocol split: names to test on.")] = None,
    plots: Annotated[bool, typer.Option("--plots", help="Draw the results too.")] = False,
) -> None:
    """Compare methods on labelled data. Stopped at any moment, the same command goes on where it was."""
    from c5.datasets import read_samples
    from c5.evaluation.methods import Rolls
    from c5.evaluation.plots import write_plots
    from c5.evaluation.report import format_results
    from c5.evaluation.results import Results
    from c5.evaluation.run import evaluate as run
    from c5.io.files import write_file

    chosen = _protocol(protocol, train or [], test or [])
    rolls = Rolls(tuple(m or [9]), tuple(selection or [Selection.RANDOM]), repeats)

    def learn(text: str) -> list[Method]:
        need_torch()
        from c5.training.methods import make_methods

        return make_methods(
            text,
            rolls,
            seeds=range(seeds),
            epochs=epochs,
            bfloat16=bfloat16,
            made=made,
            matrices=str(matrices) if matrices else None,
        )

    methods = [each for text in method for each in _methods(text, rolls, learn)]
    samples = read_samples(data)
    if only:
        known = {name for sample in samples for name in (sample.dataset, sample.camera)}
        for name in only:
            if name not in known:
                raise ParameterError(f"no dataset or camera is called {name!r}; there are {', '.join(sorted(known))}")
        samples = [sample for sample in samples if {sample.dataset, sample.camera} & set(only)]
    try:
        for done in run(chosen, samples, methods, out, track=_track, command=_command()):
            means = ", ".join(f"{variant} {values.mean():.2f}°".strip() for variant, values in done.errors.items())
            state = " (kept)" if done.kept else ""
            errors.print(f"{done.number}/{done.total} {done.method}, {done.fold}: {means}{state}", markup=False)
    except KeyboardInterrupt:
        errors.print("stopped; the same command goes on from here", markup=False)
        raise
    results = Results.load(out / "results.json")
    given = sum(sample.made for sample in samples)
    for fold in results.folds if given else []:
        errors.print(f"{fold['name']}: {fold['made_images']} of {given} made images could be trained on", markup=False)
    for style, suffix in ((Format.MARKDOWN, "md"), (Format.LATEX, "tex"), (Format.CSV, "csv")):
        write_file(out / f"table.{suffix}", format_results(results, style).encode())
    console.print(format_results(results, Format.MARKDOWN), markup=False)
    written = write_plots(results, out) if plots else []
    for path in (out / "results.json", out / "table.md", out / "table.tex", out / "table.csv", *written):
        errors.print(path, markup=False)


def _track(items: Sequence[Any], what: str) -> Iterable[Any]:
    """A bar on a terminal; elsewhere a line, so that a log shows what is going on."""
    if not errors.is_terminal and len(items) > 100:
        errors.print(f"{what} ...", markup=False)
    return show_progress(items, what)


def report(
    folder: Annotated[Path, typer.Argument(help="A folder of results: NAME.json, and NAME.md with words on them.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The document to write; default: print it.")] = None,
    style: Annotated[Format, typer.Option("--format", help="What to write.")] = Format.MARKDOWN,
    plots: Annotated[Path | None, typer.Option(help="A folder to draw the results into.")] = None,
) -> None:
    """Make one document of results that are kept."""
    from c5.evaluation.plots import write_plots
    from c5.evaluation.report import write_report
    from c5.evaluation.results import Results
    from c5.io.files import write_file

    text = write_report(folder, style)
    if out is None:
        print(text, end="")
    else:
        console.print(write_file(out, text.encode()), markup=False)
    if plots is not None:
        for path in sorted(folder.glob("*.json")):
            for written in write_plots(Results.load(path), plots, f"{path.stem}-"):
                console.print(written, markup=False)


def _protocol(name: str, train: list[str], test: list[str]) -> Protocol:
    from c5.evaluation.protocols import PROTOCOLS, split_by_name

    if name == "split":
        return split_by_name(train, test)
    if train or test:
        raise ParameterError("--train and --test are for --protocol split")
    if name not in PROTOCOLS:
        raise ParameterError(f"no protocol is called {name!r}; there are {', '.join([*PROTOCOLS, 'split'])}")
    return PROTOCOLS[name]


def _methods(text: str, rolls: Rolls, learn: Callable[[str], list[Method]]) -> list[Method]:
    from c5.classical import METHODS
    from c5.evaluation.methods import Classical, Trained
    from c5.model import load_model

    if text == "classical":
        return [Classical(name) for name in METHODS]
    if text in METHODS:
        return [Classical(text)]
    if text.endswith(".c5"):
        model = load_model(text)
        if not model.file.training.get("cameras"):
            note = f"note: {text} does not say which cameras it was trained on; on those its errors prove nothing"
            errors.print(note, markup=False)
        return [Trained(model, rolls)]
    kind = text.partition(":")[0].partition("+")[0]
    if kind not in ("c5", "ffcc"):
        names = ", ".join([*METHODS, "classical", "c5", "c5:CONFIGURATION", "ffcc", "METHOD+AUGMENTATION"])
        raise ParameterError(f"no method is called {text!r}; there are {names}, and .c5 files")
    return learn(text)


def _command() -> str:
    """What was typed, with the program by its name."""
    return " ".join(["c5", *map(shlex.quote, sys.argv[1:])])
