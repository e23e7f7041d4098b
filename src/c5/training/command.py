"""What `c5 train` does around the training itself: reading the data, showing progress, resuming."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.progress import Progress

from c5.datasets import Sample, read_samples
from c5.errors import ParameterError
from c5.metrics import Statistics
from c5.training.data import load_palettes, load_samples
from c5.training.loop import default_device
from c5.training.run import Plan, check_hold_out, train


def run_training(folder: Path, plan: Plan | None, tensorboard: bool, progress: Progress) -> None:
    """Start a run in a folder, or go on with the one there where there is no new plan."""
    console = progress.console
    if plan is None:
        plan = Plan.load(folder)
    elif (folder / "checkpoint.pt").exists():
        raise ParameterError(f"{folder} holds a run already: go on with c5 train --resume {folder}, or choose another")
    held = frozenset(plan.hold_out)
    given = read_samples(plan.data)
    check_hold_out(plan.hold_out, {sample.camera for sample in given if not sample.made})
    images = [sample for sample in given if not (sample.made and sample.cameras & held)]
    if len(images) < len(given):
        console.print(f"{len(given) - len(images)} made images left out: a camera that is held out went into them")
    plan.save(folder)
    board = _board(folder) if tensorboard else None
    with progress:

        def track(what: str) -> Callable[[Sequence[Sample]], Iterable[Sample]]:
            return lambda samples: progress.track(samples, description=what)

        if plan.extra is not None:
            own = [sample for sample in images if not sample.made and sample.camera not in held]
            images += plan.extra.make(own, held, lambda items: progress.track(items, description="augmenting"))
        met = frozenset(camera for sample in images if sample.made for camera in sample.cameras)
        config = plan.config
        samples = load_samples(images, config.grid, config.crops, track("histograms"))
        if config.virtual is not None:
            samples = replace(samples, palettes=load_palettes(images, config.grid, track("palettes")))
        console.print(f"training on {default_device()}: {len(samples)} images, {len(set(samples.cameras))} cameras")
        task = progress.add_task("training", total=config.epochs)
        try:
            for done in train(plan, samples, folder, met=met, board=board):
                text = f"training: loss {done.epoch.loss:.2f}, error {done.epoch.error:.2f}°"
                if done.validation is not None:
                    console.print(f"epoch {done.epoch.number}: {_describe(done.validation)}")
                progress.update(task, completed=done.epoch.number, description=text)
        except KeyboardInterrupt:
            progress.stop()
            console.print(f"stopped; go on with: c5 train --resume {folder}", markup=False)
            raise
        finally:
            if board is not None:
                board.close()  # type: ignore[attr-defined]
    console.print(f"model written: {folder / 'model.c5'}", markup=False)


def _describe(errors: Statistics) -> str:
    return (
        f"held-out cameras mean {errors.mean:.2f}°, median {errors.median:.2f}°, trimean {errors.trimean:.2f}°, "
        f"best 25 % {errors.best_25:.2f}°, worst 25 % {errors.worst_25:.2f}°"
    )


def _board(folder: Path) -> object:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ParameterError("--tensorboard needs it: run pip install 'c5-awb[train]'") from None
    return SummaryWriter(str(folder / "tensorboard"))
