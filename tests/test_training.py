from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from c5.training.samples import Samples

from c5 import Grid, ParameterError, ReadError, WriteError, angular_error, histogram, load_model
from c5.classical import shades_of_gray
from c5.demo import VirtualCamera, render_roll
from c5.rolls import draw_rolls
from c5.training import loop
from c5.training.batches import StoredBatches
from c5.training.config import NetworkConfig, RollKind, TrainConfig
from c5.training.loop import Trainer, TrainingError
from c5.training.run import Plan, check_hold_out, load_checkpoint, split, train, validate

SMALL = NetworkConfig(bins=16, widths=(4, 8), n_images=4)
CPU = torch.device("cpu")


def render_samples(cameras: int, photos: int, bins: int, seed: int) -> tuple[Samples, list[float]]:
    """Histograms of rendered photographs, and the errors that shades-of-gray makes on them."""
    rng = np.random.default_rng(seed)
    histograms, illuminants, names, classical = [], [], [], []
    for index in range(cameras):
        camera = VirtualCamera.random(rng)
        for photo in render_roll(camera, photos, rng, (40, 60)):
            histograms.append(histogram(photo.image, Grid(bins)))
            illuminants.append(photo.illuminant)
            names.append(f"{camera.name} {index}")
            classical.append(float(angular_error(shades_of_gray(photo.image), photo.illuminant)))
    return Samples(np.stack(histograms)[:, None], np.stack(illuminants), np.array(names)), classical


@pytest.fixture(scope="module")
def few() -> Samples:
    return render_samples(3, 8, 16, seed=1)[0]


def test_training_helps_on_cameras_it_has_not_seen() -> None:
    """The claim of the whole method, on rendered photographs and within two minutes on a CPU."""
    seen, _ = render_samples(16, 24, 32, seed=10)
    unseen, classical = render_samples(4, 20, 32, seed=11)
    network = NetworkConfig(bins=32, widths=(8, 16, 32), n_images=6)
    config = TrainConfig(network, epochs=24, batch_sizes=(16, 32), learning_rate=2e-3, shift=4)
    trainer = Trainer(config, seen, CPU)
    before = validate(trainer, unseen, 3).mean()
    for _ in trainer.run():
        pass
    after = validate(trainer, unseen, 3).mean()
    assert after < 0.5 * before
    assert after < 0.9 * np.mean(classical)


def test_resumed_is_uninterrupted(few: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(TrainConfig(SMALL, epochs=4, batch_sizes=(4, 8), shift=2), ["x"], [])
    whole = [progress.epoch for progress in train(plan, few, tmp_path / "whole", device=CPU)]
    stopped = train(plan, few, tmp_path / "parts", device=CPU)
    next(stopped), next(stopped)
    del stopped  # as good as killed: nothing after this point runs
    resumed = [progress.epoch for progress in train(plan, few, tmp_path / "parts", device=CPU)]
    assert resumed == whole[2:]
    assert [epoch.number for epoch in whole] == [1, 2, 3, 4, 4]  # the last step is the export
    models = [load_model(tmp_path / name / "model.c5") for name in ("whole", "parts")]
    assert models[0].identity == models[1].identity
    assert (tmp_path / "whole" / "log.csv").read_text() == (tmp_path / "parts" / "log.csv").read_text()


def test_a_model_names_the_cameras_behind_made_images(few: Samples, tmp_path: Path) -> None:
    plan = Plan(TrainConfig(SMALL, epochs=1, batch_sizes=(8,), shift=2), ["x"], [])
    for _ in train(plan, few, tmp_path, met=frozenset({"Behind"}), device=CPU):
        pass
    named = load_model(tmp_path / "model.c5").file.training["cameras"]
    assert named == sorted({*few.cameras.tolist(), "Behind"})
    check_hold_out([], set())  # made images alone can be trained on


def test_same_seed_same_run_other_seed_other_run(few: Samples) -> None:
    def losses(seed: int) -> list[float]:
        config = TrainConfig(SMALL, epochs=2, batch_sizes=(8,), shift=2, seed=seed)
        return [epoch.loss for epoch in Trainer(config, few, CPU).run()]

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


def test_a_nan_stops_with_the_last_good_checkpoint(few: Samples, tmp_path: Path) -> None:
    plan = Plan(TrainConfig(SMALL, epochs=3, batch_sizes=(8,), shift=2), ["x"], [])
    steps = train(plan, few, tmp_path, device=CPU)
    next(steps)
    good = (tmp_path / "checkpoint.pt").read_bytes()
    broken = dataclasses.replace(few, illuminants=few.illuminants * np.nan)
    with pytest.raises(TrainingError, match="checkpoint is good"):
        list(train(plan, broken, tmp_path, device=CPU))
    assert (tmp_path / "checkpoint.pt").read_bytes() == good
    assert not (tmp_path / "model.c5").exists()


def test_weights_that_break_in_the_last_step_are_not_saved(few: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(TrainConfig(SMALL, epochs=2, batch_sizes=(24,), shift=2), few, CPU)
    step = trainer.optimizer.step

    def break_weights() -> None:
        step()
        next(trainer.network.parameters()).data.fill_(np.nan)

    monkeypatch.setattr(trainer.optimizer, "step", break_weights)
    with pytest.raises(TrainingError, match="weights"):
        trainer.run_epoch()
    assert trainer.epoch == 0


def test_a_full_disk_leaves_the_last_checkpoint(few: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(TrainConfig(SMALL, epochs=3, batch_sizes=(8,), shift=2), ["x"], [])
    steps = train(plan, few, tmp_path, device=CPU)
    next(steps)
    good = (tmp_path / "checkpoint.pt").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("c5.io.files.os.fsync", full)
    with pytest.raises(WriteError, match="No space left"):
        next(steps)
    assert (tmp_path / "checkpoint.pt").read_bytes() == good
    assert not list(tmp_path.glob(".checkpoint*"))


def test_damaged_and_foreign_checkpoints(few: Samples, tmp_path: Path) -> None:
    config = TrainConfig(SMALL, epochs=2, batch_sizes=(8,), shift=2)
    list(train(Plan(config, ["x"], []), few, tmp_path, device=CPU))
    other = Trainer(dataclasses.replace(config, seed=5), few, CPU)
    with pytest.raises(ReadError, match="another configuration"):
        load_checkpoint(other, tmp_path)
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    described = json.loads(state["config"])
    del described["network"]["strips"]  # as written before there were any
    torch.save(state | {"config": json.dumps(described)}, tmp_path / "checkpoint.pt")
    assert len(load_checkpoint(Trainer(config, few, CPU), tmp_path)) == 2
    (tmp_path / "checkpoint.pt").write_bytes(b"nonsense")
    with pytest.raises(ReadError, match="damaged"):
        load_checkpoint(Trainer(config, few, CPU), tmp_path)


def test_held_out_cameras_are_not_trained_on(few: Samples, tmp_path: Path) -> None:
    name = str(few.cameras[0])
    own, held = split(few, [name])
    assert held is not None
    assert set(held.cameras) == {name}
    assert name not in set(own.cameras)
    plan = Plan(TrainConfig(SMALL, epochs=1, batch_sizes=(8,), shift=2), ["x"], [name])
    *_, progress = train(plan, few, tmp_path, device=CPU)
    assert progress.validation is not None
    file = load_model(tmp_path / "model.c5").file
    assert name not in file.training["cameras"]
    assert file.errors[f"held out: {name}"]["mean"] > 0
    with pytest.raises(ParameterError, match="no camera is called 'nobody'"):
        split(few, ["nobody"])
    with pytest.raises(ParameterError, match="all cameras"):
        split(few, [str(camera) for camera in set(few.cameras)])


def test_rolls_come_from_the_same_camera_and_never_hold_the_query(few: Samples) -> None:
    config = TrainConfig(SMALL, shift=2, batch_sizes=(5,))
    images, views, _, _ = StoredBatches(few, config, CPU).draw(0, np.random.default_rng(0))
    query, roll = images[..., :1], images[..., 1:]
    assert sorted(set(query.ravel().tolist())) == list(range(len(few)))
    assert (few.cameras[roll] == few.cameras[query]).all()
    assert (roll != query).all()
    assert not views.any()
    # A name inside another is another camera.
    names = np.array(["D5", "D50", "D5", "D50", "D500"])
    rolls = draw_rolls(names, np.arange(5), 3, np.random.default_rng(0))
    assert (rolls[0] == 2).all()
    assert (rolls[1] == 3).all()
    assert (rolls[4] == 4).all()


def test_roll_sizes_vary(few: Samples) -> None:
    config = TrainConfig(dataclasses.replace(SMALL, n_images=8), shift=2)
    images, *_ = StoredBatches(few, config, CPU).draw(0, np.random.default_rng(0))
    sizes = {len(set(roll.tolist())) for roll in images[..., 1:].reshape(-1, 7)}
    assert {1, 2, 3} <= sizes


def test_crops_are_drawn_half_of_the_time(few: Samples) -> None:
    cropped = Samples(np.repeat(few.views, 3, axis=1), few.illuminants, few.cameras)
    _, views, *_ = StoredBatches(cropped, TrainConfig(SMALL, shift=2), CPU).draw(0, np.random.default_rng(0))
    shares = np.bincount(views.ravel(), minlength=3) / views.size
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.12)


def test_bfloat16_trains_alike(few: Samples) -> None:
    def error(bfloat16: bool) -> float:
        config = TrainConfig(SMALL, epochs=8, batch_sizes=(4,), shift=2, learning_rate=2e-3, bfloat16=bfloat16)
        return [epoch.error for epoch in Trainer(config, few, CPU).run()][-1]

    assert error(True) == pytest.approx(error(False), rel=0.25)


@pytest.mark.parametrize("geometry", ["exact", "published"])
def test_shifted_samples_stay_true(geometry: str) -> None:
    """A shift of the histograms by whole bins is the image under other gains, and its label moves with it."""
    grid = Grid(32) if geometry == "exact" else Grid.published(32)
    rng = np.random.default_rng(4)
    photo = render_roll(VirtualCamera.random(rng), 1, rng, (40, 60))[0]
    samples = Samples(histogram(photo.image, grid)[None, None], photo.illuminant[None], np.array(["a"]))
    network = NetworkConfig(bins=32, widths=(4, 8), n_images=2, geometry=grid.geometry, kind=RollKind.SEPARATE)
    batches = StoredBatches(samples, TrainConfig(network, shift=3), CPU)
    index, shift = torch.zeros(1, 1, dtype=torch.int64), torch.tensor([[2, -1]])
    moved = batches._moved(index, index, shift)[0, 0].numpy()
    expected = np.roll(samples.histograms[0], (2, -1), axis=(1, 2))
    expected[:, :2] = expected[:, :, -1:] = 0
    np.testing.assert_array_equal(moved, expected)
    light = batches._moved_light(index[0], shift)[0].numpy()
    up = 2 if geometry == "exact" else -2
    gained = photo.illuminant * np.exp([grid.step, 0, -up * grid.step])
    assert angular_error(light, gained) < 1e-4


def test_the_learning_rate_and_the_batch_follow_the_paper(few: Samples) -> None:
    config = TrainConfig(SMALL, epochs=6, batch_sizes=(2, 4, 8), shift=0)
    trainer = Trainer(config, few, CPU)
    rates, batches = [], []
    for _ in trainer.run():
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        batches.append(max(trainer.steps))
    expected = 5e-4 * 0.5 * (1 + np.cos(np.pi * np.arange(6) / 6))
    np.testing.assert_allclose(rates, expected)
    assert batches == [2, 2, 4, 4, 8, 8]


def test_default_device_needs_no_flag() -> None:
    assert loop.default_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
