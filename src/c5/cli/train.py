"""`c5 train`: a model from labeled data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import TaskID

from c5.choices import Recipe
from c5.cli.console import Log, errors, progress_bar, start_torch
from c5.cli.options import AugmentationName, Bfloat16, Epochs, MatricesFile, Overwrite
from c5.errors import ParameterError

if TYPE_CHECKING:
    from c5.metrics import Statistics
    from c5.training.run import Progress as Done
    from c5.training.run import TrainingPlan


def train(
    data: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DATA", help="Datasets: folders in a known layout, .c5data packs, .c5set files."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder of the run.")] = None,
    overwrite: Overwrite = False,
    resume: Annotated[Path | None, typer.Option(help="Continue the run in this folder.")] = None,
    recipe: Annotated[
        Recipe | None,
        typer.Option(help="bundled (default): the bundled model's; plain: real cameras only; paper: the paper's."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A TOML file: a recipe, the fields it changes, the augmentation."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="A field of the recipe: m=7, n=128, G=true, uv=false ..."),
    ] = None,
    epochs: Epochs = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.", min=0)] = None,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(help="A camera, or a published fold as fold:1, to validate on, not to train on."),
    ] = None,
    augmentation: AugmentationName = None,
    made: Annotated[
        int | None, typer.Option(help="How many images to make, if any are made; default: 5,000.", min=1)
    ] = None,
    matrices: MatricesFile = None,
    bfloat16: Bfloat16 = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard events too.")] = False,
) -> None:
    """Train a model, or continue a run that was stopped, with `--epochs` for longer than planned.

    Needs the train extra. Uses a GPU where there is one, or several: `torchrun --nproc-per-node 8 -m c5 train ...`.
    """
    start_torch()
    from c5.training.config import ReadConfig, VirtualTraining, make_config, read_config, set_fields
    from c5.training.making import plan_making
    from c5.training.run import TrainingPlan

    if resume is not None:
        chosen = (data, out, recipe, config, settings, hold_out, augmentation, made, matrices, bfloat16, overwrite)
        if any(chosen) or seed is not None:
            raise ParameterError("--resume takes everything from the run: give only --epochs or --tensorboard too")
        _run(resume, None, tensorboard, epochs=epochs)
        return
    if not data or out is None:
        raise ParameterError("give the data and --out RUN, or --resume RUN")
    if recipe is not None and config is not None:
        raise ParameterError("--config says which recipe it changes: leave --recipe out")
    wanted = recipe or Recipe.BUNDLED
    read = ReadConfig(make_config(wanted), wanted) if config is None else read_config(config)
    training = set_fields(read.config, settings or [])
    training = replace(
        training,
        seed=training.seed if seed is None else seed,
        epochs=epochs or training.epochs,
        bfloat16=bfloat16 or training.bfloat16,
    )
    known = str(matrices.resolve()) if matrices else None
    making = plan_making(read.recipe, augmentation or read.augmentation, known, made)
    makes = making is not None and making.count > 0
    if made is not None and not makes:
        raise ParameterError("--made: no images are made by this recipe; add --augmentation, or leave it out")
    table = known if isinstance(training, VirtualTraining) else None
    if known is not None and table is None and not makes:
        raise ParameterError("--matrices: this recipe needs none; add --augmentation, or leave it out")
    plan = TrainingPlan(training, [str(path.resolve()) for path in data], hold_out or [], making, table)
    _run(out, plan, tensorboard, overwrite)


def _run(
    folder: Path, plan: TrainingPlan | None, tensorboard: bool, overwrite: bool = False, epochs: int | None = None
) -> None:
    """Train epoch by epoch: a bar on a terminal, lines elsewhere."""
    from c5.training.command import run_training
    from c5.training.together import is_first

    if not is_first():
        run_training(folder, plan, epochs=epochs, overwrite=overwrite, report=_ignore, track=_ignore, say=_ignore)
        return
    with progress_bar(transient=False) as progress:

        def track(items: Sequence[Any], what: str) -> Iterable[Any]:
            log = Log(what, len(items))
            for done, item in enumerate(progress.track(items, description=what), 1):
                yield item
                log.advance(done)

        shown: list[tuple[TaskID, Log]] = []

        def report(planned: TrainingPlan, done: Done) -> None:
            total, epoch = planned.config.epochs, done.epoch
            text = f"loss {epoch.loss:.2f}, error {epoch.error:.2f}°"
            if not shown:
                log = Log("training: epoch", total, first=epoch.number)  # its time is not known
                shown.append((progress.add_task("training", total=total), log))
            progress.update(shown[0][0], completed=epoch.number, description=f"training: {text}")
            shown[0][1].advance(epoch.number, f", {text}")
            if done.validation is not None:
                errors.print(f"epoch {epoch.number}: {_describe(done.validation)}")

        try:
            run_training(
                folder,
                plan,
                epochs=epochs,
                overwrite=overwrite,
                tensorboard=tensorboard,
                report=report,
                track=track,
                say=errors.print,
            )
        except KeyboardInterrupt:
            progress.stop()
            if overwrite and not shown and (folder / "checkpoint.pt").exists():
                errors.print(f"stopped; the run in {folder} is unchanged")
            else:
                errors.print(f"stopped; continue with: c5 train --resume {folder}")
            raise
    errors.print(f"model written: {folder / 'model.c5'}")


def _ignore(items: Any, *_: Any) -> Any:
    """The first of several processes speaks for all."""
    return items


def _describe(found: Statistics) -> str:
    return (
        f"held-out cameras mean {found.mean:.2f}°, median {found.median:.2f}°, trimean {found.trimean:.2f}°, "
        f"best 25 % {found.best_25:.2f}°, worst 25 % {found.worst_25:.2f}°"
    )
