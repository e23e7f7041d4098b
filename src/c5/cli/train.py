"""`c5 train`: a model from labelled data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from c5.cli.console import errors, progress_columns, start_torch
from c5.cli.options import AugmentationName, Bfloat16, Epochs, MatricesFile, Overwrite
from c5.errors import ParameterError
from c5.training.config import Recipe


def train(
    data: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DATA", help="Datasets: folders in a known layout, or .c5data packs."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder of the run.")] = None,
    overwrite: Overwrite = False,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    recipe: Annotated[
        Recipe | None,
        typer.Option(
            help="default: half an hour on a CPU; virtual: the bundled model's, better, forty minutes; paper: its own."
        ),
    ] = None,
    epochs: Epochs = None,
    seed: Annotated[int | None, typer.Option(help="Another number gives another result; default 0.", min=0)] = None,
    hold_out: Annotated[list[str] | None, typer.Option(help="A camera to validate on, not to train on.")] = None,
    augmentation: AugmentationName = None,
    made: Annotated[int, typer.Option(help="How many images to make, with --augmentation.", min=1)] = 5000,
    matrices: MatricesFile = None,
    bfloat16: Bfloat16 = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard events too.")] = False,
) -> None:
    """Train a model, or go on with a run that was stopped.

    Needs the train extra. Uses a GPU where there is one.
    """
    start_torch()
    from c5.training.command import run_training

    progress = Progress(*progress_columns(), console=errors)
    if resume is not None:
        chosen = (data, out, recipe, epochs, hold_out, augmentation, matrices, bfloat16, overwrite)
        if any(chosen) or seed is not None:
            raise ParameterError("--resume takes everything from the run: give nothing else but --tensorboard")
        run_training(resume, None, tensorboard, progress)
        return
    if not data or out is None:
        raise ParameterError("give the data and --out RUN, or --resume RUN")
    from c5.training.extra import make_extra
    from c5.training.run import Plan

    if (out / "checkpoint.pt").exists() and not overwrite:
        raise ParameterError(f"{out}: holds a run already; go on with --resume {out}, or start anew with --overwrite")
    config = (recipe or Recipe.DEFAULT).make()
    config = replace(config, seed=seed or 0, epochs=epochs or config.epochs, bfloat16=bfloat16)
    given = str(matrices.resolve()) if matrices else None
    extra = None if augmentation is None else make_extra(augmentation, made, given)
    plan = Plan(config, [str(path.resolve()) for path in data], hold_out or [], extra)
    (out / "checkpoint.pt").unlink(missing_ok=True)  # the run writes the other files anew
    run_training(out, plan, tensorboard, progress)
