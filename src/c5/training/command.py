"""What `c5 train` does around the training itself: reading and preparing the data, progress, resuming."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from c5.datasets import read_samples
from c5.datasets.inspection import warn_of_levels
from c5.datasets.prepared import prepare
from c5.errors import C5Error, ParameterError, ReadError, WriteError
from c5.training.loop import default_device
from c5.training.run import Progress, TrainingPlan, check_hold_out, features, find_run, is_held_out, train
from c5.training.together import find_group, is_first
from c5.words import plural

BOARD = "tensorboard"


def run_training(
    folder: Path,
    plan: TrainingPlan | None,
    *,
    epochs: int | None = None,
    overwrite: bool = False,
    tensorboard: bool = False,
    report: Callable[[TrainingPlan, Progress], None],
    track: Callable[[Sequence[Any], str], Iterable[Any]],
    say: Callable[[str], None],
) -> None:
    """Start a run in a folder, or resume the one there if no plan is given, for `epochs` in all if given.

    A run that is replaced stays intact until the data of the new one are prepared. `report` is called after each epoch,
    `track(items, what)` may show progress over items, `say(line)` prints a line. Of the processes that torchrun starts,
    only the first writes.
    """
    there = (folder / "checkpoint.pt").exists()
    old = plan is not None and _holds_run(folder)  # which this one replaces
    if plan is None:
        plan = _extend(TrainingPlan.load(folder), epochs, say)
    elif there and not overwrite:
        raise ParameterError(f"{folder}: holds a run already; resume it (plan=None), or replace it (overwrite=True)")
    elif there and not old:
        raise WriteError(f"{folder / 'checkpoint.pt'}: does not belong to a run of c5; write to another folder")
    else:
        find_run(folder)  # finds what is in the way before the work
    given = read_samples(plan.data)
    taken = {sample.camera for sample in given if not sample.made}
    photographed = [not one.made or (one.of_one_photograph and one.camera not in taken) for one in given]
    whole = [sample for sample, one in zip(given, photographed, strict=True) if one]
    check_hold_out(plan.hold_out, whole)
    cameras = frozenset(plan.hold_out)
    held = {sample.name for sample in whole if is_held_out(sample, plan.hold_out)}
    samples = [
        sample
        for sample, one in zip(given, photographed, strict=True)
        if one or not (sample.cameras & cameras or sample.sources & held)
    ]
    warn_of_levels(samples)
    if len(samples) < len(given):
        say(f"{plural(len(given) - len(samples), 'made image')} left out: what is held out went into them")
    new = not os.path.lexists(folder / "config.json")
    if is_first() and not (old and there):
        plan.save(folder)
    making, group = plan.making, find_group()
    try:
        board = _find_board() if tensorboard and is_first() else None
        if making is not None:
            trained = [sample for sample in samples if sample.name not in held]
            own = [sample for sample in trained if not sample.made]
            trained = making.add(
                trained, lambda: making.make(own, cameras, lambda items: track(items, "making images"))
            )
            samples = [*trained, *(sample for sample in samples if sample.name in held)]
        with nullcontext() if group is None else group.one_by_one():
            needed = features(plan.config, plan.hold_out)
            samples = prepare(samples, needed, lambda items: track(list(items), "preparing"))
    except C5Error:
        if new and is_first():  # it could not begin
            (folder / "config.json").unlink()
            with suppress(OSError):
                folder.rmdir()
        raise
    if old and is_first():  # only now, when nothing can be wrong with the data any more
        for path in (*find_run(folder), *(folder / BOARD).glob("events.out.tfevents.*")):
            path.unlink()
        plan.save(folder)
    own = [sample for sample in samples if sample.name not in held]
    cameras = frozenset(sample.camera for sample in own)
    apart = f"; {plural(len(samples) - len(own), 'image')} held out" if held else ""
    by = "" if group is None else f", {group.size} processes"
    say(f"training on {default_device()}{by}: {plural(len(own), 'image')} of {plural(len(cameras), 'camera')}{apart}")
    writer = None if board is None else board(str(folder / BOARD))
    try:
        train(
            plan,
            samples,
            folder,
            report=partial(report, plan),
            track=lambda items: track(items, "loading"),
            board=writer,
            checkpoint_seconds=10,
        )
    finally:
        if writer is not None:
            writer.close()


def _holds_run(folder: Path) -> bool:
    try:
        TrainingPlan.load(folder)
    except ReadError:
        return False
    return True


def _extend(plan: TrainingPlan, epochs: int | None, say: Callable[[str], None]) -> TrainingPlan:
    """The plan of a run, with more epochs if they are asked for."""
    planned = plan.config.epochs
    if epochs is None or epochs == planned:
        return plan
    if epochs < planned:
        raise ParameterError(f"the run is planned for {planned} epochs: give more to extend it, or start another run")
    say(
        f"extended from {planned} to {epochs} epochs: from here on learning rate and batch size are those of a run of "
        f"{epochs}; what is done followed the shorter schedule, so a run of {epochs} from the start differs"
    )
    return plan._replace(config=replace(plan.config, epochs=epochs))


def _find_board() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ParameterError("TensorBoard is not installed; run pip install 'c5-awb[train]'") from None
    return SummaryWriter
