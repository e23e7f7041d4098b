"""What `c5 train` does around the training itself: reading and preparing the data, progress, resuming."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from c5.datasets import read_samples
from c5.datasets.inspection import warn_of_levels
from c5.datasets.prepared import prepare
from c5.errors import ParameterError, ReadError, WriteError
from c5.training.loop import default_device
from c5.training.run import Plan, Progress, check_hold_out, features, find_run, train
from c5.training.together import find_group, is_first
from c5.words import plural

BOARD = "tensorboard"


def run_training(
    folder: Path,
    plan: Plan | None,
    *,
    epochs: int | None = None,
    overwrite: bool = False,
    tensorboard: bool = False,
    report: Callable[[Plan, Progress], None],
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
        plan = _extend(Plan.load(folder), epochs, say)
    elif there and not overwrite:
        raise ParameterError(f"{folder}: holds a run already; resume it (plan=None), or replace it (overwrite=True)")
    elif there and not old:
        raise WriteError(f"{folder / 'checkpoint.pt'}: does not belong to a run of c5; write to another folder")
    else:
        find_run(folder)  # finds what is in the way before the work
    held = frozenset(plan.hold_out)
    given = read_samples(plan.data)
    check_hold_out(plan.hold_out, {sample.camera for sample in given if not sample.made})
    samples = [sample for sample in given if not (sample.made and sample.cameras & held)]
    warn_of_levels(samples)
    if len(samples) < len(given):
        say(f"{plural(len(given) - len(samples), 'made image')} left out: a camera that is held out went into them")
    if is_first() and not (old and there):
        plan.save(folder)
    board = _find_board() if tensorboard and is_first() else None
    making = plan.making
    if making is not None:
        trained = [sample for sample in samples if sample.camera not in held]
        taken = [sample for sample in trained if not sample.made]
        trained = making.add(trained, lambda: making.make(taken, held, lambda items: track(items, "making images")))
        samples = [*trained, *(sample for sample in samples if sample.camera in held)]
    group = find_group()
    with nullcontext() if group is None else group.one_by_one():
        samples = prepare(samples, features(plan.config, plan.hold_out), lambda items: track(list(items), "preparing"))
    if old and is_first():  # only now, when nothing can be wrong with the data any more
        for path in (*find_run(folder), *(folder / BOARD).glob("events.out.tfevents.*")):
            path.unlink()
        plan.save(folder)
    own = [sample for sample in samples if sample.camera not in held]
    cameras = {sample.camera for sample in own}
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
        Plan.load(folder)
    except ReadError:
        return False
    return True


def _extend(plan: Plan, epochs: int | None, say: Callable[[str], None]) -> Plan:
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
