"""Checkpoints, published weights and plans of runs that are damaged, or made to do harm."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laws import textured
from memory import make_sample
from test_training import CPU, config

from c5 import LinearImage, ReadError
from c5.classical import gray_world
from c5.training.data import load_training_data
from c5.training.learners import load_network
from c5.training.loop import Trainer
from c5.training.published import read_published
from c5.training.run import TrainingPlan, features, load_checkpoint, save_checkpoint
from c5.training.tensors import load_tensors, seal, unseal


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, Callable[[], Trainer]]:
    """A folder with a checkpoint of two epochs, and what makes a trainer that can go on from it."""
    training = config(epochs=2)
    images = [LinearImage(textured(seed)) for seed in range(6)]
    samples = [
        make_sample(image, gray_world(image), f"camera {n % 2}", str(n), features(training, []))
        for n, image in enumerate(images)
    ]
    data = load_training_data(samples, training)
    trainer = Trainer(training, data, CPU)
    epochs = list(trainer.run())
    save_checkpoint(trainer, [{"epoch": epoch.number} for epoch in epochs], tmp_path)
    return tmp_path, lambda: Trainer(training, data, CPU)


def test_no_flipped_bit_of_a_checkpoint_is_accepted(run: tuple[Path, Callable[[], Trainer]]) -> None:
    folder, make = run
    path, trainer = folder / "checkpoint.pt", make()
    good = path.read_bytes()
    assert len(load_checkpoint(trainer, folder)) == 2
    rng = np.random.default_rng(0)
    for place in {*range(100), *rng.integers(0, len(good), 150).tolist(), len(good) - 1}:
        bad = bytearray(good)
        bad[place] ^= 1 << rng.integers(8)
        path.write_bytes(bad)
        with pytest.raises(ReadError, match="damaged") as caught:
            load_checkpoint(trainer, folder)
        assert "\n" not in str(caught.value)
    with pytest.raises(ReadError, match=r"checkpoint\.pt: damaged"):
        load_network(folder, trainer.config)
    for short in (good[:-1], good[: len(good) // 2], good[:20], b"", good + b"\0", good[48:]):
        path.write_bytes(short)
        with pytest.raises(ReadError, match="damaged"):
            load_checkpoint(trainer, folder)


def test_a_sealed_checkpoint_that_does_not_fit_is_damaged(run: tuple[Path, Callable[[], Trainer]]) -> None:
    folder, make = run
    path = folder / "checkpoint.pt"
    good = path.read_bytes()

    def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
        state = load_tensors(unseal(good), CPU)
        change(state)
        buffer = io.BytesIO()
        torch.save(state, buffer)
        return seal(buffer.getvalue())

    changes: list[Callable[[dict[str, Any]], object]] = [
        lambda state: state.update(epoch=float("inf")),
        lambda state: state.update(epoch=7),
        lambda state: state.update(history=json.dumps([{"number": 1, "loss": 10**400, "error": 1.0}] * 2)),
        lambda state: state["optimizer"]["state"][0].update(
            exp_avg=state["optimizer"]["state"][0]["exp_avg"].to(torch.bfloat16)
        ),
        lambda state: state.update(history="[]"),
        lambda state: state.update(history=state["history"].replace(":", ": Infinity,", 1)),
        lambda state: state.update(config="[" * 100_000),
        lambda state: state.update(config="[]"),
        lambda state: state.update(network=[]),
        lambda state: state.pop("optimizer"),
        lambda state: next(iter(state["network"].values())).fill_(torch.nan),
        lambda state: next(iter(state["optimizer"]["state"].values())).update(exp_avg=torch.zeros(3)),
        lambda state: state["optimizer"]["state"].update({10**6: {"exp_avg": torch.zeros(3)}}),
    ]
    for change in changes:
        path.write_bytes(changed(change))
        with pytest.raises(ReadError, match="damaged") as caught:
            load_checkpoint(make(), folder)
        assert "\n" not in str(caught.value)
    path.write_bytes(changed(lambda state: None))
    assert len(load_checkpoint(make(), folder)) == 2
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ReadError, match="a pipe"):
        load_checkpoint(make(), folder)


@pytest.mark.parametrize(
    "change",
    [
        {"data": 5},
        {"data": [1]},
        {"hold_out": None},
        {"making": 3},
        {"making": {"method": "jitter", "count": "9", "matrices": None, "seed": 0}},
        {"config": []},
        {"config.epochs": "3"},
        {"config.epochs": float("inf")},
        {"config.seed": "x"},
        {"config.learning_rate": None},
        {"config.learning_rate": 10**400},
        {"config.seed": 10**30},
        {"config.batch_sizes": [16, "32"]},
        {"config.bfloat16": 1},
        {"config.cameras": "none"},
        {"config.networks": 3},
        {"config.networks.widths": [8.5, 8]},
        {"config.networks.grid": 64},
        {"config.networks.grid": {"bins": "64"}},
        {"config.networks.n_images": 10**30},
        {"config.networks.kind": 1},
        {"config.networks.more": 1},
    ],
    ids=str,
)
def test_plans_of_wrong_types_are_one_line(tmp_path: Path, change: dict[str, Any]) -> None:
    TrainingPlan(config(epochs=2), ["x"], []).save(tmp_path)
    assert TrainingPlan.load(tmp_path).config == config(epochs=2)
    content = json.loads((tmp_path / "config.json").read_text())
    for name, value in change.items():
        *way, last = name.split(".")
        place = content
        for key in way:
            place = place[key][0] if isinstance(place[key], list) else place[key]
        place[last] = value
    (tmp_path / "config.json").write_text(json.dumps(content))
    with pytest.raises(ReadError, match=r"config\.json: damaged") as caught:
        TrainingPlan.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_deep_plan_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.raises(ReadError, match="damaged"):
        TrainingPlan.load(tmp_path)


def test_weights_of_which_most_are_missing_or_huge(tmp_path: Path) -> None:
    name, layer = "encoder.encoders.0.0.double_conv_1.conv.weight", torch.zeros(8, 4, 3, 3)
    last = {"decoder_F.final_block.conv.weight": torch.zeros(2, 8, 1, 1)}
    wide = {f"encoder.encoders.0.{n}.double_conv_1.conv.weight": torch.zeros(1).expand(1 << 14, 1) for n in range(4)}
    states: list[Any] = [
        {name: layer},
        {name: layer.sum()},
        {name: layer, 3: layer},
        {name: torch.full_like(layer, torch.nan)},
        last | wide | {f"encoder.encoders.{n}.0.double_conv_1.conv.weight": torch.zeros(1) for n in range(1, 64)},
        [layer],
    ]
    for state in states:
        torch.save(state, tmp_path / "bad.pth")
        with pytest.raises(ReadError, match=r"bad\.pth") as caught:
            read_published(tmp_path / "bad.pth")
        assert "\n" not in str(caught.value)
