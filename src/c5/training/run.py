"""A training run on disk: `config.json`, `log.csv`, `checkpoint.pt`, and `model.c5` at the end.

Every file is written whole or not at all, so a run can be killed at any moment and resumed.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from c5.color import Float64s, angular_error
from c5.colorimetry.matrices import read_matrices
from c5.datasets import Sample
from c5.datasets.facts import leave_out
from c5.datasets.features import Feature, HistogramFeature
from c5.errors import C5Error, ParameterError, ReadError, WriteError
from c5.evaluation.methods import REPEATS
from c5.io.archives import read_whole
from c5.io.files import NOT_OWN, write_file
from c5.io.marks import kind_of
from c5.io.shapes import OrNull, check_shape, parse_json
from c5.metrics import Statistics, summarize_repeats
from c5.regular import read_regular, read_text
from c5.rolls import draw_rolls
from c5.training.config import TrainConfig, train_config_from_json
from c5.training.data import Track, load_stacks, load_training_data, training_feature
from c5.training.export import export_model
from c5.training.loop import Epoch, Evaluator, Trainer
from c5.training.making import Making, digest_table
from c5.training.network import Network
from c5.training.tensors import DAMAGED, SEAL, read_checkpoint, seal
from c5.training.together import find_group

VALIDATE_EVERY = 10  # epochs
LOG = ("epoch", "loss", "training_error", "validation_mean", "validation_median")
MOST_PLAN_BYTES = 2**20
PLAN = {"config": dict, "data": [str], "hold_out": [str], "making": OrNull(dict), "matrices?": str | None}


class TrainingPlan(NamedTuple):
    """What a run was asked to do; `config.json` keeps it for resuming."""

    config: TrainConfig
    data: list[str]  # folders
    hold_out: list[str]  # cameras, and published folds such as fold:1, that are validated on and never trained on
    making: Making | None = None  # images to make of the others
    matrices: str | None = None  # a CSV with the matrices of cameras that virtual ones are drawn from

    def save(self, folder: Path) -> None:
        making = None if self.making is None else self.making.to_json()
        content = self._asdict() | {"config": self.config.to_json(), "making": making}
        write_file(folder / "config.json", json.dumps(content, indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> TrainingPlan:
        try:
            content = parse_json(read_whole(folder / "config.json", MOST_PLAN_BYTES), PLAN, "the plan")
            making = None if content["making"] is None else Making.from_json(content["making"])
            config = train_config_from_json(content["config"])
            return cls(config, content["data"], content["hold_out"], making, content.get("matrices"))
        except FileNotFoundError:
            raise ReadError(f"{folder}: no training run here; start one first") from None
        except OSError as error:
            raise ReadError(f"{folder / 'config.json'}: cannot be read: {error.strerror}") from None
        except C5Error as error:
            raise ReadError(f"{folder / 'config.json'}: damaged ({error}); start the run anew") from error


def find_run(folder: Path) -> list[Path]:
    """What a run has left in its folder besides its plan. A file there that c5 did not write is a WriteError."""
    kinds = {
        "checkpoint.pt": ("c5", SEAL.decode().strip()),
        "log.csv": ("columns", *LOG),
        "model.c5": ("archive", "model.json"),
    }
    paths = [path for path in map(folder.joinpath, kinds) if os.path.lexists(path)]
    for path in paths:
        try:
            known = kind_of(read_regular(path)) == kinds[path.name]
        except OSError:
            known = False
        if not known:
            raise WriteError(f"{path}: {NOT_OWN}")
    return paths


class Progress(NamedTuple):
    epoch: Epoch
    validation: Statistics | None  # on what is held out: now and then, and in a last step with all repeats


def _names(sample: Sample) -> set[str]:
    """What an image is held out by: its camera, or its published fold, counted from 1."""
    return {sample.camera} if sample.fold is None else {sample.camera, f"fold:{sample.fold + 1}"}


def is_held_out(sample: Sample, hold_out: Sequence[str]) -> bool:
    return not _names(sample).isdisjoint(hold_out)


def check_hold_out(hold_out: Sequence[str], samples: Sequence[Sample]) -> None:
    """Raise an error for a name that is no camera's and no fold's, and if nothing would be left."""
    known = {name for sample in samples for name in _names(sample)}
    for name in hold_out:
        if name not in known:
            raise ParameterError(f"no camera is called {name!r}; the data have {', '.join(sorted(known))}")
    if hold_out and all(is_held_out(sample, hold_out) for sample in samples):
        raise ParameterError("all cameras are held out; leave some to train on")


def features(config: TrainConfig, hold_out: Sequence[str]) -> tuple[Feature[Any], ...]:
    """What a run needs from its images: from those to train on, and from those to validate on."""
    return (training_feature(config), *([HistogramFeature(config.grid)] if hold_out else []))


class Validation:
    """Images that a run is validated on, and never trained on."""

    def __init__(self, samples: Sequence[Sample], config: TrainConfig) -> None:
        self.stacks = load_stacks(samples, config.grid)
        self.illuminants = np.stack([sample.illuminant for sample in samples])
        self.cameras = np.array([sample.camera for sample in samples])
        self.additional = config.n_images - 1

    def errors(self, network: Network, repeats: int) -> Float64s:
        """Angular errors (repeats, images), each image with other images of its camera as its roll."""
        evaluator, queries = Evaluator(network, self.stacks), np.arange(len(self.cameras))
        rolls = [
            draw_rolls(self.cameras, queries, self.additional, np.random.default_rng([7, i])) for i in range(repeats)
        ]
        return np.stack([angular_error(evaluator.estimate(roll).illuminants, self.illuminants) for roll in rolls])


def train(
    plan: TrainingPlan,
    samples: Sequence[Sample],
    folder: Path,
    *,
    report: Callable[[Progress], None] = lambda progress: None,
    track: Track = iter,
    device: torch.device | None = None,
    board: Any = None,
    checkpoint_seconds: float = 0,
    unseen: Iterable[str] = (),
) -> Network:
    """Train from the last checkpoint in the folder, or from the start, and write the model file.

    The samples must be prepared with `features`. `report` is called after each epoch, and a last time with the errors
    on what is held out. `track` may show progress over the samples, `board` is a TensorBoard SummaryWriter. There
    is a checkpoint after every epoch, but none sooner than `checkpoint_seconds` after the last. Cameras that must stay
    `unseen`, and those held out, are not even taken from the matrices. Of the processes that torchrun starts, only the
    first validates and writes.
    """
    check_hold_out(plan.hold_out, samples)
    own = [sample for sample in samples if not is_held_out(sample, plan.hold_out)]
    held = [sample for sample in samples if is_held_out(sample, plan.hold_out)]
    table = None if plan.matrices is None else leave_out(read_matrices(plan.matrices), {*plan.hold_out, *unseen})
    group = find_group()
    load = partial(load_training_data, own, plan.config, track, table)
    trainer = Trainer(plan.config, load() if group is None else group.share(load), device, group)
    rows, saved = load_checkpoint(trainer, folder), -math.inf
    if group is not None and group.rank:
        for _ in trainer.run():
            pass
        return trainer.model
    validation = Validation(held, plan.config) if held else None
    try:
        for epoch in trainer.run():
            found = None
            if validation is not None and epoch.number % VALIDATE_EVERY == 0 and epoch.number < plan.config.epochs:
                found = summarize_repeats(validation.errors(trainer.model, 1)).mean
            rows.append(_row(epoch, found))
            if time.monotonic() >= saved + checkpoint_seconds:
                save_checkpoint(trainer, rows, folder)
                saved = time.monotonic()
            _post(board, rows[-1])
            report(Progress(epoch, found))
    except KeyboardInterrupt:
        if rows and len(rows) == trainer.epoch and not trainer.amid_epoch:
            save_checkpoint(trainer, rows, folder)
        raise
    final = None if validation is None else summarize_repeats(validation.errors(trainer.model, REPEATS)).mean
    rows[-1] = _row(trainer.history[-1], final)
    save_checkpoint(trainer, rows, folder)
    _post(board, rows[-1])
    export_model(
        trainer.model,
        folder / "model.c5",
        name=folder.resolve().name,
        training=_describe(plan, own),
        errors={} if final is None else {f"held out: {', '.join(plan.hold_out)}": final._asdict()},
    )
    report(Progress(trainer.history[-1], final))
    return trainer.model


def _describe(plan: TrainingPlan, own: Sequence[Sample]) -> dict[str, Any]:
    cameras = sorted({camera for sample in own for camera in sample.cameras})
    described = {"config": plan.config.to_json(), "cameras": cameras, "images": len(own)}
    if plan.matrices is not None:
        described["matrices"] = {"file": Path(plan.matrices).name, "digest": digest_table(plan.matrices)}
    return described if plan.making is None else described | {"making": plan.making.to_json()}


def _post(board: Any, row: dict[str, Any]) -> None:
    if board is not None:
        for name, value in row.items():
            if value != "" and name != "epoch":
                board.add_scalar(name, float(value), row["epoch"])


def _row(epoch: Epoch, validation: Statistics | None) -> dict[str, Any]:
    measured = ("", "") if validation is None else (f"{validation.mean:.4f}", f"{validation.median:.4f}")
    return dict(zip(LOG, (epoch.number, f"{epoch.loss:.5f}", f"{epoch.error:.4f}", *measured), strict=True))


def save_checkpoint(trainer: Trainer, rows: list[dict[str, Any]], folder: Path) -> None:
    """All that resuming needs in one file; the log beside it is for people."""
    buffer = io.BytesIO()
    torch.save(
        {
            **trainer.state(),
            "config": json.dumps(trainer.config.to_json()),
            "history": json.dumps([asdict(epoch) for epoch in trainer.history]),
            "rows": json.dumps(rows),
        },
        buffer,
    )
    write_file(folder / "checkpoint.pt", seal(buffer.getvalue()))
    table = io.StringIO()
    writer = csv.DictWriter(table, fieldnames=LOG)
    writer.writeheader()
    writer.writerows(rows)
    write_file(folder / "log.csv", table.getvalue().encode())


def count_epochs(folder: Path) -> int:
    """How many epochs the log in a folder has: those of its checkpoint."""
    path = folder / "log.csv"
    return len(read_text(path).splitlines()) - 1 if path.exists() else 0


def load_checkpoint(trainer: Trainer, folder: Path) -> list[dict[str, Any]]:
    """Put a trainer where the folder's checkpoint left off, or leave it at the start; returns the rows of its log."""
    path = folder / "checkpoint.pt"
    if not path.exists():
        return []
    state: Mapping[str, Any] = read_checkpoint(path, trainer.device)
    wanted = trainer.config
    try:
        check_shape(state, {"config": str, "history": str, "rows": str})
        config = train_config_from_json(parse_json(state["config"], dict))
        epochs = parse_json(state["history"], [{"number": int, "loss": float, "error": float}])
        rows: list[dict[str, Any]] = parse_json(state["rows"], [dict])
        same = (
            config.epochs <= wanted.epochs and replace(config, epochs=wanted.epochs) == wanted
        )  # it may become longer
        if same:
            trainer.load_state(state, [Epoch(each["number"], each["loss"], each["error"]) for each in epochs])
    except C5Error as error:
        raise ReadError(f"{path}: {DAMAGED}") from error
    if not same:
        raise ReadError(f"{path}: belongs to a run with another configuration; choose another folder")
    return rows
