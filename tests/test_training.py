from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from memory import make_sample

from c5 import C5Error, Grid, ParameterError, ReadError, WriteError, angular_error, histogram, load_model
from c5.classical import shades_of_gray
from c5.datasets import Sample
from c5.demo import VirtualCamera, render_roll
from c5.rolls import draw_rolls
from c5.training import loop
from c5.training.batches import StoredBatches
from c5.training.command import run_training
from c5.training.config import NetworkConfig, RealTraining, RollKind, TrainConfig
from c5.training.data import TrainingData, load_training_data
from c5.training.loop import Trainer, TrainingError
from c5.training.run import (
    Progress,
    TrainingPlan,
    Validation,
    check_hold_out,
    features,
    load_checkpoint,
    save_checkpoint,
    train,
)

SMALL = NetworkConfig(Grid(16), widths=(4, 8), n_images=4)
CPU = torch.device("cpu")


def config(**changes: Any) -> RealTraining:
    usual: dict[str, Any] = {"networks": (SMALL,), "epochs": 4, "batch_sizes": (8,), "shift_bins": 2, "crops": 0}
    return RealTraining(**(usual | changes))


def render_samples(cameras: int, photos: int, training: TrainConfig, seed: int) -> tuple[list[Sample], list[float]]:
    """Rendered photographs, prepared for a training, and the errors that shades-of-gray makes on them."""
    rng = np.random.default_rng(seed)
    samples, classical = [], []
    wanted = features(training, ["some"])
    for index in range(cameras):
        camera = VirtualCamera.random(rng)
        for number, photo in enumerate(render_roll(camera, photos, rng, (40, 60))):
            name = f"{camera.name} {index}"
            samples.append(make_sample(photo.image, photo.illuminant, name, str(number), wanted))
            classical.append(float(angular_error(shades_of_gray(photo.image), photo.illuminant)))
    return samples, classical


class StoppedError(Exception):
    """Stands for a process that is killed."""


def stop_after(epochs: int) -> Callable[[Progress], None]:
    def report(progress: Progress) -> None:
        if progress.epoch.number == epochs:
            raise StoppedError

    return report


@pytest.fixture(scope="module")
def few() -> list[Sample]:
    return render_samples(3, 8, config(), seed=1)[0]


@pytest.fixture(scope="module")
def data(few: list[Sample]) -> TrainingData:
    return load_training_data(few, config())


def test_training_helps_on_cameras_it_has_not_seen() -> None:
    """The claim of the whole method, on rendered photographs and within two minutes on a CPU."""
    network = NetworkConfig(Grid(32), widths=(8, 16, 32), n_images=6)
    training = config(networks=(network,), epochs=24, batch_sizes=(16, 32), learning_rate=2e-3, shift_bins=4)
    seen, _ = render_samples(16, 24, training, seed=10)
    unseen, classical = render_samples(4, 20, training, seed=11)
    trainer = Trainer(training, load_training_data(seen, training), CPU)
    validation = Validation(unseen, training)
    before = validation.errors(trainer.model, 3).mean()
    for _ in trainer.run():
        pass
    after = validation.errors(trainer.model, 3).mean()
    assert after < 0.5 * before
    assert after < 0.9 * np.mean(classical)


def test_resumed_is_uninterrupted(few: list[Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = TrainingPlan(config(batch_sizes=(4, 8)), ["x"], [])
    whole: list[Progress] = []
    train(plan, few, tmp_path / "whole", report=whole.append, device=CPU)
    with pytest.raises(StoppedError):
        train(plan, few, tmp_path / "parts", report=stop_after(2), device=CPU)
    resumed: list[Progress] = []
    train(plan, few, tmp_path / "parts", report=resumed.append, device=CPU)
    assert resumed == whole[2:]
    assert [progress.epoch.number for progress in whole] == [1, 2, 3, 4, 4]  # the last is after the export
    models = [load_model(tmp_path / name / "model.c5") for name in ("whole", "parts")]
    assert models[0].identity == models[1].identity
    assert (tmp_path / "whole" / "log.csv").read_text() == (tmp_path / "parts" / "log.csv").read_text()


def test_interrupted_amid_an_epoch_is_uninterrupted(
    few: list[Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C saves what is worth saving: never weights of an epoch that has not ended."""
    plan = TrainingPlan(config(epochs=3, batch_sizes=(4,)), ["x"], [])
    whole = train(plan, few, tmp_path / "whole", device=CPU, checkpoint_seconds=1e9)
    step, steps = Trainer._step, 0

    def interrupted(self: Trainer, *row: torch.Tensor) -> None:
        nonlocal steps
        steps += 1
        if steps == 2 * (len(few) // 4) + 2:  # the second step of the third epoch
            raise KeyboardInterrupt
        step(self, *row)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(plan, few, tmp_path / "parts", device=CPU, checkpoint_seconds=1e9)
    parts = train(plan, few, tmp_path / "parts", device=CPU, checkpoint_seconds=1e9)
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert (tmp_path / "whole" / "log.csv").read_text() == (tmp_path / "parts" / "log.csv").read_text()


def test_an_extended_run_goes_on_by_the_longer_schedule(data: TrainingData, tmp_path: Path) -> None:
    """Stopped and resumed it is the same; a checkpoint of a longer run is not one of a shorter."""
    short, longer = (config(batch_sizes=(4, 8), epochs=count) for count in (2, 4))

    def go_on(training: TrainConfig, stop: int) -> Trainer:
        trainer = Trainer(training, data, CPU)
        rows = load_checkpoint(trainer, tmp_path)
        for epoch in trainer.run():
            rows.append({"epoch": epoch.number, "loss": "", "training_error": ""})
            save_checkpoint(trainer, rows, tmp_path)
            if epoch.number == stop:
                break
        return trainer

    go_on(short, 2)
    extended = (tmp_path / "checkpoint.pt").read_bytes()
    whole = go_on(longer, 4)
    assert [epoch.number for epoch in whole.history] == [1, 2, 3, 4]
    assert whole.optimizer.param_groups[0]["lr"] == pytest.approx(5e-4 * 0.5 * (1 + np.cos(np.pi * 3 / 4)))
    with pytest.raises(ReadError, match="another configuration"):
        go_on(short, 2)
    (tmp_path / "checkpoint.pt").write_bytes(extended)
    go_on(longer, 3)
    parts = go_on(longer, 4)
    assert parts.history == whole.history
    for one, other in zip(whole.network.parameters(), parts.network.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def quiet(folder: Path, plan: TrainingPlan | None, **more: Any) -> list[str]:
    """A training as the command runs it; the lines that it says."""
    said: list[str] = []
    run_training(folder, plan, report=lambda *_: None, track=lambda items, _: items, say=said.append, **more)
    return said


def test_a_run_is_replaced_only_when_the_data_are_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder, data = tmp_path / "run", tmp_path / "data"
    rng = np.random.default_rng(0)
    data.mkdir()
    rows = ["path,camera,r,g,b"]
    for index, camera in enumerate("AAAABBBB"):
        np.save(data / f"{index}.npy", rng.uniform(0, 1, (20, 30, 3)).astype(np.float32))
        rows.append(f"{index}.npy,{camera},1,2,{index + 1}")
    (data / "manifest.csv").write_text("\n".join(rows))
    plan = TrainingPlan(config(epochs=1), [str(data)], ["B"])
    said = quiet(folder, plan, tensorboard=True)
    assert said[-1].endswith("4 images of 1 camera; 4 images held out")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert len(before) == 5
    with pytest.raises(ParameterError, match=r"resume it \(plan=None\), or replace it \(overwrite=True\)"):
        quiet(folder, plan)
    # The data cannot be prepared: the old run stays whole.
    np.save(data / "3.npy", np.zeros((20, 30, 3), np.float32))
    with pytest.raises(C5Error, match=r"3\.npy"):
        quiet(folder, plan, overwrite=True)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    # They can: nothing of it is left among the events of the new one.
    np.save(data / "3.npy", rng.uniform(0, 1, (20, 30, 3)).astype(np.float32))
    quiet(folder, plan, overwrite=True, tensorboard=True)
    (events,) = (folder / "tensorboard").iterdir()
    assert events not in before
    # And it can be extended, but not shortened.
    assert quiet(folder, None, epochs=2)[0].startswith("extended from 1 to 2 epochs: from here on learning rate")
    assert (folder / "log.csv").read_text().splitlines()[-1].startswith("2,")
    assert TrainingPlan.load(folder).config.epochs == 2
    with pytest.raises(ParameterError, match="planned for 2 epochs"):
        quiet(folder, None, epochs=1)


def test_a_model_names_the_cameras_behind_made_images(few: list[Sample], tmp_path: Path) -> None:
    plan = TrainingPlan(config(epochs=1), ["x"], [])
    made = dataclasses.replace(few[0], name="made", sources=frozenset({few[0].name}), cameras=frozenset({"Behind"}))
    train(plan, [*few, made], tmp_path, device=CPU)
    named = load_model(tmp_path / "model.c5").file.training["cameras"]
    assert named == sorted({*(sample.camera for sample in few), "Behind"})
    check_hold_out([], [])  # made images alone can be trained on


def test_same_seed_same_run_other_seed_other_run(data: TrainingData) -> None:
    def losses(seed: int) -> list[float]:
        return [epoch.loss for epoch in Trainer(config(epochs=2, seed=seed), data, CPU).run()]

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


def test_a_nan_stops_with_the_last_good_checkpoint(few: list[Sample], tmp_path: Path) -> None:
    plan = TrainingPlan(config(epochs=3), ["x"], [])
    with pytest.raises(StoppedError):
        train(plan, few, tmp_path, report=stop_after(1), device=CPU)
    good = (tmp_path / "checkpoint.pt").read_bytes()
    broken = [dataclasses.replace(sample, illuminant=sample.illuminant * np.nan) for sample in few]
    with pytest.raises(TrainingError, match="checkpoint is good"):
        train(plan, broken, tmp_path, device=CPU)
    assert (tmp_path / "checkpoint.pt").read_bytes() == good
    assert not (tmp_path / "model.c5").exists()


def test_weights_that_break_in_the_last_step_are_not_saved(data: TrainingData, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(config(epochs=2, batch_sizes=(24,)), data, CPU)
    step = trainer.optimizer.step

    def break_weights() -> None:
        step()
        next(trainer.network.parameters()).data.fill_(np.nan)

    monkeypatch.setattr(trainer.optimizer, "step", break_weights)
    with pytest.raises(TrainingError, match="weights"):
        trainer.run_epoch()
    assert trainer.epoch == 0


def test_a_full_disk_leaves_the_last_checkpoint(
    few: list[Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = TrainingPlan(config(epochs=3), ["x"], [])
    with pytest.raises(StoppedError):
        train(plan, few, tmp_path, report=stop_after(1), device=CPU)
    good = (tmp_path / "checkpoint.pt").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("c5.io.files.os.fsync", full)
    with pytest.raises(WriteError, match="No space left"):
        train(plan, few, tmp_path, device=CPU)
    assert (tmp_path / "checkpoint.pt").read_bytes() == good
    assert not list(tmp_path.glob(".checkpoint*"))


def test_damaged_and_foreign_checkpoints(few: list[Sample], data: TrainingData, tmp_path: Path) -> None:
    training = config(epochs=2)
    train(TrainingPlan(training, ["x"], []), few, tmp_path, device=CPU)
    other = Trainer(dataclasses.replace(training, seed=5), data, CPU)
    with pytest.raises(ReadError, match="another configuration"):
        load_checkpoint(other, tmp_path)
    assert len(load_checkpoint(Trainer(training, data, CPU), tmp_path)) == 2
    (tmp_path / "checkpoint.pt").write_bytes(b"nonsense")
    with pytest.raises(ReadError, match="damaged"):
        load_checkpoint(Trainer(training, data, CPU), tmp_path)


def test_held_out_cameras_are_not_trained_on(few: list[Sample], tmp_path: Path) -> None:
    name = few[0].camera
    plan = TrainingPlan(config(epochs=1), ["x"], [name])
    reports: list[Progress] = []
    train(plan, few, tmp_path, report=reports.append, device=CPU)
    assert reports[-1].validation is not None
    file = load_model(tmp_path / "model.c5").file
    assert name not in file.training["cameras"]
    assert file.errors[f"held out: {name}"]["mean"] > 0
    with pytest.raises(ParameterError, match="no camera is called 'nobody'"):
        train(plan._replace(hold_out=["nobody"]), few, tmp_path / "other", device=CPU)
    with pytest.raises(ParameterError, match="all cameras"):
        train(plan._replace(hold_out=[sample.camera for sample in few]), few, tmp_path / "other", device=CPU)


def test_a_published_fold_can_be_held_out(few: list[Sample], tmp_path: Path) -> None:
    folded = [dataclasses.replace(sample, fold=number % 3) for number, sample in enumerate(few)]
    reports: list[Progress] = []
    train(TrainingPlan(config(epochs=1), ["x"], ["fold:1"]), folded, tmp_path, report=reports.append, device=CPU)
    assert reports[-1].validation is not None
    assert load_model(tmp_path / "model.c5").file.training["images"] == sum(sample.fold != 0 for sample in folded)
    with pytest.raises(ParameterError, match=r"fold:4.*the data have .*fold:3"):
        check_hold_out(["fold:4"], folded)


def test_rolls_come_from_the_same_camera_and_never_hold_the_query(data: TrainingData) -> None:
    images, views, _, _ = StoredBatches(data, config(batch_sizes=(5,)), CPU).draw(0, np.random.default_rng(0))
    query, roll = images[..., :1], images[..., 1:]
    assert sorted(set(query.ravel().tolist())) == list(range(len(data)))
    assert (data.cameras[roll] == data.cameras[query]).all()
    assert (roll != query).all()
    assert not views.any()
    # A name inside another is another camera.
    names = np.array(["D5", "D50", "D5", "D50", "D500"])
    rolls = draw_rolls(names, np.arange(5), 3, np.random.default_rng(0))
    assert (rolls[0] == 2).all()
    assert (rolls[1] == 3).all()
    assert (rolls[4] == 4).all()


def test_roll_sizes_vary(data: TrainingData) -> None:
    training = config(networks=(dataclasses.replace(SMALL, n_images=8),))
    images, *_ = StoredBatches(data, training, CPU).draw(0, np.random.default_rng(0))
    sizes = {len(set(roll.tolist())) for roll in images[..., 1:].reshape(-1, 7)}
    assert {1, 2, 3} <= sizes


def test_crops_are_drawn_half_of_the_time(data: TrainingData) -> None:
    assert data.views is not None
    cropped = dataclasses.replace(data, views=np.repeat(data.views, 3, axis=1))
    _, views, *_ = StoredBatches(cropped, config(), CPU).draw(0, np.random.default_rng(0))
    shares = np.bincount(views.ravel(), minlength=3) / views.size
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.12)


def test_bfloat16_trains_alike(data: TrainingData) -> None:
    def error(bfloat16: bool) -> float:
        training = config(epochs=8, batch_sizes=(4,), learning_rate=2e-3, bfloat16=bfloat16)
        return [epoch.error for epoch in Trainer(training, data, CPU).run()][-1]

    assert error(True) == pytest.approx(error(False), rel=0.25)


@pytest.mark.parametrize("geometry", ["exact", "published"])
def test_shifted_samples_stay_true(geometry: str) -> None:
    """A shift of the histograms by whole bins is the image under other gains, and its label moves with it."""
    grid = Grid(32) if geometry == "exact" else Grid.published(32)
    rng = np.random.default_rng(4)
    photo = render_roll(VirtualCamera.random(rng), 1, rng, (40, 60))[0]
    stack = histogram(photo.image, grid).stack.astype(np.float16)
    data = TrainingData(photo.illuminant[None], np.array(["a"]), views=stack[None, None])
    network = NetworkConfig(grid, widths=(4, 8), n_images=2, kind=RollKind.SEPARATE)
    batches = StoredBatches(data, config(networks=(network,), shift_bins=3), CPU)
    index, shift = torch.zeros(1, 1, dtype=torch.int64), torch.tensor([[2, -1]])
    moved = batches._moved(index, index, shift)[0, 0].numpy()
    expected = np.roll(stack.astype(np.float32), (2, -1), axis=(1, 2))
    expected[:, :2] = expected[:, :, -1:] = 0
    np.testing.assert_array_equal(moved, expected)
    light = batches._moved_light(index[0], shift)[0].numpy()
    up = 2 if geometry == "exact" else -2
    gained = photo.illuminant * np.exp([grid.step, 0, -up * grid.step])
    assert angular_error(light, gained) < 1e-4


def test_the_learning_rate_and_the_batch_follow_the_paper(data: TrainingData) -> None:
    trainer = Trainer(config(epochs=6, batch_sizes=(2, 4, 8), shift_bins=0), data, CPU)
    rates, batches = [], []
    for _ in trainer.run():
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        batches.append(max(trainer.steps))
    expected = 5e-4 * 0.5 * (1 + np.cos(np.pi * np.arange(6) / 6))
    np.testing.assert_allclose(rates, expected)
    assert batches == [2, 2, 4, 4, 8, 8]


def test_default_device_needs_no_flag() -> None:
    assert loop.default_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
