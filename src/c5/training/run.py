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
from c5.errors import ParameterError, ReadError, WriteError
from c5.evaluation.methods import REPEATS
from c5.io.archives import read_whole
from c5.io.files import NOT_OWN, write_file
from c5.io.marks import kind_of
from c5.metrics import Statistics, summarize_repeats
from c5.regular import read_regular
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


class Plan(NamedTuple):
    """What a run was asked to do; `config.json` keeps it for resuming."""

    config: TrainConfig
    data: list[str]  # folders
    hold_out: list[str]  # cameras that are validated on, and never trained on
    making: Making | None = None  # images to make of the others
    matrices: str | None = None  # a CSV with the matrices of cameras that virtual ones are drawn from

    def save(self, folder: Path) -> None:
        making = None if self.making is None else self.making.to_json()
        content = self._asdict() | {"config": self.config.to_json(), "making": making}
        write_file(folder / "config.json", json.dumps(content, indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> Plan:
        try:
            content = json.loads(read_whole(folder / "config.json", MOST_PLAN_BYTES))
            making = None if content["making"] is None else Making.from_json(content["making"])
            config = train_config_from_json(content["config"])
            for names in (content["data"], content["hold_out"]):
                if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                    raise ValueError("folders and cameras must be lists of names")
            matrices = content.get("matrices")
            if not isinstance(matrices, str | None):
                raise ValueError("matrices must be the name of a file")
            return cls(config, content["data"], content["hold_out"], making, matrices)
        except FileNotFoundError:
            raise ReadError(f"{folder}: no training run here; start one first") from None
        except OSError as error:
            raise ReadError(f"{folder / 'config.json'}: cannot be read: {error.strerror}") from None
        except (ReadError, ValueError, KeyError, TypeError, AttributeError, RecursionError, StopIteration) as error:
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
    validation: Statistics | None  # on the cameras held out: now and then, and in a last step with all repeats


def check_hold_out(hold_out: list[str], cameras: set[str]) -> None:
    """Raise an error for a name that is not a camera's, and if no camera would be left."""
    for camera in hold_out:
        if camera not in cameras:
            raise ParameterError(f"no camera is called {camera!r}; there are {', '.join(sorted(cameras))}")
    if hold_out and cameras <= set(hold_out):
        raise ParameterError("all cameras are held out; leave some to train on")


def features(config: TrainConfig, hold_out: Sequence[str]) -> tuple[Feature[Any], ...]:
    """What a run needs from its images: from those to train on, and from those to validate on."""
    return (training_feature(config), *([HistogramFeature(config.grid)] if hold_out else []))


class Validation:
    """Cameras that a run is validated on, and never trained on."""

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
    plan: Plan,
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
    on the cameras held out. `track` may show progress over the samples, `board` is a TensorBoard SummaryWriter. There
    is a checkpoint after every epoch, but none sooner than `checkpoint_seconds` after the last. Cameras that must stay
    `unseen`, and those held out, are not even taken from the matrices. Of the processes that torchrun starts, only the
    first validates and writes.
    """
    check_hold_out(plan.hold_out, {sample.camera for sample in samples})
    own = [sample for sample in samples if sample.camera not in plan.hold_out]
    held = [sample for sample in samples if sample.camera in plan.hold_out and not sample.made]
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


def _describe(plan: Plan, own: Sequence[Sample]) -> dict[str, Any]:
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
    row = {"epoch": epoch.number, "loss": f"{epoch.loss:.5f}", "training_error": f"{epoch.error:.4f}"}
    return row | {
        "validation_mean": "" if validation is None else f"{validation.mean:.4f}",
        "validation_median": "" if validation is None else f"{validation.median:.4f}",
    }


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


def _same_run(one: TrainConfig, other: TrainConfig) -> bool:
    """Whether a checkpoint of one configuration can continue with the other, which may be longer."""
    return one.epochs <= other.epochs and replace(one, epochs=other.epochs) == other


def load_checkpoint(trainer: Trainer, folder: Path) -> list[dict[str, Any]]:
    """Put a trainer where the folder's checkpoint left off, or leave it at the start; returns the rows of its log."""
    path = folder / "checkpoint.pt"
    if not path.exists():
        return []
    state: Mapping[str, Any] = read_checkpoint(path, trainer.device)
    try:
        config = train_config_from_json(json.loads(state["config"]))
        history = [Epoch(**epoch) for epoch in json.loads(state["history"])]
        rows: list[dict[str, Any]] = json.loads(state["rows"])
        if _same_run(config, trainer.config):
            trainer.load_state(state, history)
    except (ArithmeticError, RuntimeError, LookupError, AttributeError, TypeError, ValueError, StopIteration) as error:
        raise ReadError(f"{path}: {DAMAGED}") from error
    if not _same_run(config, trainer.config):
        raise ReadError(f"{path}: belongs to a run with another configuration; choose another folder")
    return rows
