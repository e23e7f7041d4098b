"""What `c5 train` does around the training itself: reading and preparing the data, progress, going on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from c5.datasets import read_samples
from c5.datasets.prepared import prepare
from c5.errors import ParameterError, WriteError
from c5.io.files import NOT_OWN
from c5.training.loop import default_device
from c5.training.run import Plan, Progress, check_hold_out, features, train


def run_training(
    folder: Path,
    plan: Plan | None,
    *,
    overwrite: bool = False,
    tensorboard: bool,
    report: Callable[[Plan, Progress], None],
    track: Callable[[Sequence[Any], str], Iterable[Any]],
    say: Callable[[str], None],
) -> None:
    """Start a run in a folder, or go on with the one there where there is no new plan.

    `report` hears of each epoch, `track(items, what)` may show progress over items, `say(line)` prints one.
    """
    if plan is None:
        plan = Plan.load(folder)
    elif (folder / "checkpoint.pt").exists() and not overwrite:
        raise ParameterError(f"{folder}: holds a run already; resume it (resume=True), or replace it (overwrite=True)")
    held = frozenset(plan.hold_out)
    given = read_samples(plan.data)
    check_hold_out(plan.hold_out, {sample.camera for sample in given if not sample.made})
    samples = [sample for sample in given if not (sample.made and sample.cameras & held)]
    if len(samples) < len(given):
        say(f"{len(given) - len(samples)} made images left out: a camera that is held out went into them")
    checkpoint = folder / "checkpoint.pt"
    if overwrite and checkpoint.exists():  # only now, when the data are known to be good
        if not (folder / "config.json").exists():
            raise WriteError(f"{checkpoint}: {NOT_OWN}")
        checkpoint.unlink()
    plan.save(folder)
    board = _board(folder) if tensorboard else None
    if plan.making is not None:
        own = [sample for sample in samples if not sample.made and sample.camera not in held]
        samples += plan.making.make(own, held, lambda items: track(items, "making images"))
    samples = prepare(samples, features(plan.config, plan.hold_out), lambda items: track(list(items), "preparing"))
    own = [sample for sample in samples if sample.camera not in held]
    cameras = {sample.camera for sample in own}
    apart = f"; {len(samples) - len(own)} images held out" if held else ""
    count = "1 camera" if len(cameras) == 1 else f"{len(cameras)} cameras"
    say(f"training on {default_device()}: {len(own)} images of {count}{apart}")
    try:
        train(
            plan,
            samples,
            folder,
            report=partial(report, plan),
            track=lambda items: track(items, "loading"),
            board=board,
            checkpoint_seconds=10,
        )
    finally:
        if board is not None:
            board.close()


def _board(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ParameterError("TensorBoard is not installed; run pip install 'c5-awb[train]'") from None
    return SummaryWriter(str(folder / "tensorboard"))
