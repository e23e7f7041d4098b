"""Training on virtual cameras: palettes through matrices are the histograms of mapped images."""

from __future__ import annotations

import dataclasses
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laws import textured
from memory import make_sample
from numpy.typing import NDArray
from shots import write_matrices
from test_training import StoppedError, stop_after

from c5.augmentation import map_image
from c5.color import Float64s, angular_error
from c5.colorimetry.matrices import CameraMatrices
from c5.datasets import Sample, palettes
from c5.datasets.features import PaletteFeature
from c5.datasets.palettes import VIEWS, Palettes, code_weights, make_palettes
from c5.demo import VirtualCamera, render_roll
from c5.errors import ParameterError, ReadError
from c5.histograms import Grid, histogram
from c5.image import LinearImage
from c5.training.config import NetworkConfig, VirtualTraining, paper_training
from c5.training.data import TrainingData, load_training_data
from c5.training.loop import Trainer
from c5.training.run import TrainingPlan, load_checkpoint, train
from c5.training.virtual import (
    CORRELATIONS,
    DEVIATIONS,
    OFF_DIAGONAL,
    MappedColors,
    PaletteColors,
    VirtualBatches,
    Warp,
    draw_cameras,
)

Array = NDArray[Any]
CPU = torch.device("cpu")
GRID = Grid(powers=(3, 1))
NETWORK = NetworkConfig(GRID, power=3, widths=(4, 8), n_images=4, coordinates=False, one_decoder=True)
OTHER = dataclasses.replace(NETWORK, coordinates=True, power=1)
CONFIG = VirtualTraining(
    networks=(NETWORK, OTHER),
    epochs=4,
    steps_per_epoch=3,
    cameras_per_step=2,
    queries_per_camera=3,
    average_decay=0.9,
)
MATRICES = {
    "Alpha": (
        [[0.7, -0.2, 0.0], [-0.6, 1.3, 0.4], [-0.1, 0.1, 0.7]],
        [[0.6, -0.1, -0.1], [-0.8, 1.5, 0.3], [-0.1, 0.2, 0.7]],
    ),
    "Beta": (
        [[0.9, -0.3, 0.0], [-0.3, 1.0, 0.3], [0.0, 0.1, 0.6]],
        [[0.7, 0.0, -0.1], [-0.4, 1.2, 0.2], [-0.1, 0.2, 0.5]],
    ),
}
"""Like those that camera makers give."""
NAMES = ["Alpha", "Alpha", "Alpha", "Alpha", "Beta", "Beta"]


@pytest.fixture(scope="module")
def photos() -> list[tuple[LinearImage, Float64s]]:
    rng = np.random.default_rng(11)
    return [(photo.image, photo.illuminant) for photo in render_roll(VirtualCamera.random(rng), 6, rng, (96, 144))]


@pytest.fixture(scope="module")
def samples(photos: list[tuple[LinearImage, Float64s]]) -> list[Sample]:
    features = (PaletteFeature(GRID.powers),)
    return [
        make_sample(image, light, camera, str(index), features)
        for index, ((image, light), camera) in enumerate(zip(photos, NAMES, strict=True))
    ]


@pytest.fixture(scope="module")
def data(samples: list[Sample]) -> TrainingData:
    return load_training_data(samples, CONFIG)


def warp(found: Palettes, matrices: Float64s) -> Array:
    """The first view of each image through a matrix each."""
    images = torch.arange(len(found))
    cells, weights = PaletteColors(found, CPU).look_up(images, torch.zeros_like(images))
    made = Warp(GRID, CPU)(cells, weights, torch.as_tensor(matrices, dtype=torch.float32))
    return np.asarray(made.numpy())


def overlap(a: Array, b: Array) -> Array:
    """The mass that pairs of (..., n, n) histograms share; 1 where they are equal."""
    return np.asarray(np.minimum(a**2, b**2).sum(axis=(-2, -1)))


def test_images_take_little_memory_in_training() -> None:
    """Below 100 KB each, so that forty thousand fit beside everything else."""
    rng = np.random.default_rng(3)
    photos = render_roll(VirtualCamera.random(rng), 2, rng, (256, 384))
    samples = [
        make_sample(photo.image, photo.illuminant, "Alpha", str(index), (PaletteFeature(GRID.powers),))
        for index, photo in enumerate(photos)
    ]
    loaded = load_training_data(samples, CONFIG)
    assert loaded.palettes is not None
    stored = loaded.palettes.cells.nbytes + loaded.palettes.codes.nbytes + loaded.palettes.spans.nbytes
    colors = PaletteColors(loaded.palettes, CPU)
    assert (stored + colors.cells.nbytes + colors.codes.nbytes) / len(photos) < 100_000


def test_a_cpu_looks_up_what_a_device_does(data: TrainingData) -> None:
    assert data.palettes is not None
    images, views = torch.arange(len(data)).repeat(len(VIEWS)), torch.arange(len(VIEWS)).repeat_interleave(len(data))
    expected = PaletteColors(data.palettes, CPU).look_up(images, views)
    found = MappedColors(data.palettes).look_up(images, views)
    assert torch.equal(found[1], expected[1])
    used = (found[1] > 0).any(dim=-1)
    assert torch.equal(found[0][used], expected[0][used])


def test_a_palette_is_its_image(photos: list[tuple[LinearImage, Float64s]], data: TrainingData) -> None:
    assert data.palettes is not None
    made = warp(data.palettes, np.tile(np.eye(3), (len(photos), 1, 1)))
    shared = overlap(made, np.stack([histogram(image, GRID).stack for image, _ in photos]))
    assert (shared[:, :-1] > 0.97).all()
    assert (shared[:, -1] > 0.88).all()  # gradients have more colors than a palette


def test_a_palette_through_a_matrix_is_the_mapped_image(photos: list[tuple[LinearImage, Float64s]]) -> None:
    """Exactly for pixels, but for the width of cells; gradients that differ in sign between channels add a little."""
    rng = np.random.default_rng(5)
    for image, illuminant in photos:
        matrix = draw_cameras(0.4, 0.5, illuminant, rng)
        balanced = matrix * illuminant  # of white-balanced RGB; what is gray has the color of the light after it
        after = balanced.sum(axis=1)
        mapped = map_image(image, balanced / after[:, None], illuminant, after)
        expected = histogram(mapped, GRID).stack
        made = warp(make_palettes(image, GRID.powers, rng), matrix[None])[0]
        shared = overlap(made, expected)
        assert (shared[:-1] > 0.9).all()
        assert shared[-1] > 0.8


def test_virtual_cameras_differ_as_cameras_do() -> None:
    rng = np.random.default_rng(0)
    reference = np.full((20000, 3), 1.0)
    matrices = draw_cameras(0, 1, reference, rng)
    np.testing.assert_allclose(matrices.sum(axis=-1), 1, atol=1e-12)  # gray stays gray
    elements = np.stack([matrices[:, i, j] for i, j in OFF_DIAGONAL], axis=1)
    elements = elements[np.abs(elements).max(axis=1) > 0]
    assert 0.78 < len(elements) / len(matrices) < 0.82
    np.testing.assert_allclose(elements.std(axis=0), DEVIATIONS, rtol=0.05)
    np.testing.assert_allclose(np.corrcoef(elements.T), CORRELATIONS, atol=0.05)
    moved = draw_cameras(0.3, 0, reference, rng)
    np.testing.assert_array_equal(moved, moved * np.eye(3))
    assert np.abs(np.log(np.diagonal(moved, axis1=1, axis2=2))).max() == pytest.approx(0.3, abs=0.001)


def test_an_epoch_keeps_cameras_apart(data: TrainingData) -> None:
    batches = VirtualBatches(data, CONFIG, CPU)
    images, views, matrices, waves, illuminants, present = batches.draw(0, np.random.default_rng(1))
    queries, rolls = images[..., :3], images[..., 3:]
    assert images.shape[:2] == (3, 2)
    assert (data.cameras[rolls] == data.cameras[queries[..., :1]]).all()
    assert views.max() < len(VIEWS)
    assert matrices.shape == (*images.shape, 3, 3)
    assert waves.shape[:3] == images.shape
    np.testing.assert_allclose(np.linalg.norm(illuminants, axis=-1), 1, rtol=1e-5)
    assert present.shape == queries.shape
    same = batches.draw(0, np.random.default_rng(1))
    assert all(
        np.array_equal(a, b) for a, b in zip(same, (images, views, matrices, waves, illuminants, present), strict=True)
    )


@pytest.mark.parametrize("steps", [1, 40])
def test_an_epoch_is_as_long_as_asked(data: TrainingData, steps: int) -> None:
    config = dataclasses.replace(CONFIG, steps_per_epoch=steps)
    images = VirtualBatches(data, config, CPU).draw(0, np.random.default_rng(1))[0]
    assert images.shape == (steps, 2, 6)
    assert (data.cameras[images] == data.cameras[images[..., :1]]).all()


def test_a_camera_is_drawn_as_often_as_it_has_images(data: TrainingData) -> None:
    config = dataclasses.replace(CONFIG, steps_per_epoch=2000)
    images = VirtualBatches(data, config, CPU).draw(0, np.random.default_rng(1))[0]
    assert (data.cameras[images[..., 0]] == "Alpha").mean() == pytest.approx(4 / 6, abs=0.03)


def test_queries_and_their_roll_are_different_images(data: TrainingData) -> None:
    plenty = TrainingData(data.illuminants, np.array(["Alpha"] * len(data)), palettes=data.palettes)
    config = dataclasses.replace(CONFIG, steps_per_epoch=50, queries_per_camera=2)
    images = VirtualBatches(plenty, config, CPU).draw(0, np.random.default_rng(1))[0]
    for group in images.reshape(-1, 5).tolist():
        assert len(set(group[:2])) == 2
        assert not set(group[:2]) & set(group[2:])
        assert 1 <= len(set(group[2:])) <= 3


def test_labels_go_where_gray_goes(photos: list[tuple[LinearImage, Float64s]]) -> None:
    """A gray wall under the light of each image: through any virtual camera it has the color of the label."""
    walls = [
        LinearImage(np.broadcast_to(light / light.max() * 0.5, (8, 8, 3)).astype(np.float32)) for _, light in photos
    ]
    rng = np.random.default_rng(3)
    gray = TrainingData(
        np.stack([light for _, light in photos]),
        np.array(["Alpha"] * len(walls)),
        palettes=palettes.join([make_palettes(wall, GRID.powers, rng) for wall in walls]),
    )
    config = dataclasses.replace(CONFIG, steps_per_epoch=1, relight_share=0.5, repaint_nats=0.5)
    batches = VirtualBatches(gray, config, CPU)
    grid = Grid()
    images, views, *rest = batches.draw(0, np.random.default_rng(2))
    batch = batches.make(*(torch.as_tensor(array[0]) for array in (images, np.zeros_like(views), *rest)))
    mass = batch.query[:, 0].numpy() ** 2
    u, v = mass.sum(axis=1) @ grid.u, mass.sum(axis=2) @ grid.v
    seen = np.stack([np.exp(-u), np.ones_like(u), np.exp(-v)], axis=1)
    assert (angular_error(seen, batch.illuminants.numpy()) < 0.6).all()  # half a cell of the fine grid


TABLE = {name: CameraMatrices(name, np.array(warm), np.array(cold)) for name, (warm, cold) in MATRICES.items()}


def draw_existing(data: TrainingData, table: dict[str, CameraMatrices], **shares: float) -> tuple[Array, Array, Array]:
    """Images, their matrices and the illuminants of the queries of virtual cameras that all exist."""
    config = dataclasses.replace(CONFIG, steps_per_epoch=20, table_share=0.0, exchange_share=0.0)
    config = dataclasses.replace(config, **shares)  # type: ignore[arg-type]
    batches = VirtualBatches(dataclasses.replace(data, matrices=table), config, CPU)
    images, _, matrices, _, illuminants, _ = batches.draw(0, np.random.default_rng(5))
    return images, matrices, illuminants


@pytest.mark.parametrize("share", ["table_share", "exchange_share"])
def test_a_camera_that_exists_takes_the_light_to_the_label(data: TrainingData, share: str) -> None:
    images, matrices, illuminants = draw_existing(data, TABLE, **{share: 1.0})
    queries = images[..., : CONFIG.queries_per_camera]
    seen = np.einsum("scqij,scqj->scqi", matrices[:, :, : queries.shape[-1]], data.illuminants[queries])
    assert angular_error(seen, illuminants).max() < 0.05
    gray = np.einsum("sckij,sckj->scki", matrices, data.illuminants[images])
    assert (gray > 0).all()  # whatever the light


def test_through_its_own_matrices_a_camera_is_itself(data: TrainingData) -> None:
    table = {name: dataclasses.replace(TABLE["Alpha"], name=name) for name in ("Alpha", "Beta")}
    _, matrices, _ = draw_existing(data, table, table_share=1.0)
    np.testing.assert_allclose(
        matrices / matrices[..., 1:2, 1:2], np.broadcast_to(np.eye(3), matrices.shape), atol=1e-5
    )


def test_lights_are_exchanged_for_those_of_the_other_camera(data: TrainingData) -> None:
    images, _, illuminants = draw_existing(data, TABLE, exchange_share=1.0)
    for camera, other in (("Alpha", "Beta"), ("Beta", "Alpha")):
        found = illuminants[data.cameras[images[..., 0]] == camera].reshape(-1, 1, 3)
        known = data.illuminants[data.cameras == other]
        assert angular_error(*np.broadcast_arrays(found, known)).min(axis=1).max() < 0.05


def test_a_camera_without_matrices_keeps_its_virtual_ones(data: TrainingData) -> None:
    alone = {"Beta": TABLE["Beta"]}
    images, matrices, _ = draw_existing(data, alone, table_share=0.5, exchange_share=0.5)
    _, free, _ = draw_existing(data, alone)
    kept = data.cameras[images[..., 0]] == "Alpha"
    assert kept.any()
    np.testing.assert_array_equal(matrices[kept], free[kept])


def test_cameras_held_out_are_not_in_the_table(samples: list[Sample], tmp_path: Path) -> None:
    """Nor under another name: a run with them in its file of matrices is the run without."""
    unseen = dataclasses.replace(TABLE["Beta"], name="Beta")
    twin = dataclasses.replace(unseen, name="Twin")
    models = []
    for number, extra in enumerate(([], [unseen, twin])):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_matrices(folder / "matrices.csv", [TABLE["Alpha"], *extra])
        plan = TrainingPlan(dataclasses.replace(CONFIG, epochs=1), ["x"], [], matrices=str(folder / "matrices.csv"))
        own = [sample for sample in samples if sample.camera == "Alpha"]
        models.append(train(plan, own, folder, device=CPU, unseen=["Beta"]).state_dict())
    for name, tensor in models[0].items():
        torch.testing.assert_close(models[1][name], tensor, rtol=0, atol=0, msg=name)


def test_resume_is_the_same_run_and_the_model_is_the_average(
    samples: list[Sample], data: TrainingData, tmp_path: Path
) -> None:
    whole = Trainer(CONFIG, data, CPU)
    list(whole.run())
    plan = TrainingPlan(CONFIG, ["x"], [])
    with pytest.raises(StoppedError):
        train(plan, samples, tmp_path, report=stop_after(2), device=CPU)
    resumed = Trainer(CONFIG, data, CPU)
    load_checkpoint(resumed, tmp_path)
    assert resumed.epoch == 2
    list(resumed.run())
    for name, tensor in whole.model.state_dict().items():
        torch.testing.assert_close(resumed.model.state_dict()[name], tensor, rtol=0, atol=0, msg=name)
    assert whole.model is whole.averaged
    first = next(iter(whole.network.parameters()))
    assert not torch.equal(first, next(iter(whole.model.parameters())))


def test_bad_settings_are_refused(data: TrainingData) -> None:
    for name, wrong in (
        ("steps_per_epoch", 0),
        ("cameras_per_step", 0),
        ("queries_per_camera", 0),
        ("shift_nats", 2.0),
        ("matrix_spread", -1.0),
        ("relight_share", 2.0),
        ("table_share", 0.8),
        ("table_share", -0.3),
        ("exchange_share", -0.1),
        ("smooth_filters", -5.0),
        ("smooth_bias", -1.0),
        ("weight_decay", -1.0),
        ("seed", -3),
    ):
        with pytest.raises(ParameterError, match=name):
            dataclasses.replace(CONFIG, **{name: wrong})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="palettes"):
        Trainer(CONFIG, dataclasses.replace(data, palettes=None), CPU)
    with pytest.raises(ParameterError, match="exact geometry"):
        VirtualTraining(networks=paper_training().networks)


@pytest.mark.parametrize("size", [(300, 450), (64, 64), (9, 11)])
def test_palettes_survive_their_encoding(size: tuple[int, int]) -> None:
    found = make_palettes(LinearImage(textured(1, *size)), GRID.powers, np.random.default_rng(2))
    again = palettes.decode(palettes.encode(found), GRID.powers)
    for name in ("cells", "codes", "spans"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name), strict=True)
    views = {tuple(span) for span in found.spans[0].reshape(len(VIEWS), -1).tolist()}
    assert len(views) == (6 if size[0] == 300 else 3)  # small images have no smaller views
    first = found.spans[0, 0, 0]
    weights = code_weights()[found.codes[first[0] : first.sum()]]
    np.testing.assert_allclose(weights.sum(axis=0), 1, atol=0.02)


def test_damaged_palettes_are_refused() -> None:
    good = palettes.encode(make_palettes(LinearImage(textured(1, 40, 40)), GRID.powers, np.random.default_rng(2)))
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(zlib.decompress(good))
        damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        cut = bytes(damaged)[: rng.integers(len(damaged))] if rng.random() < 0.5 else bytes(damaged)
        with suppress(ReadError):
            found = palettes.decode(zlib.compress(cut), GRID.powers)
            assert 0 <= found.cells.min(initial=0) <= found.cells.max(initial=0) < 131 * 131
            assert found.spans.sum(axis=-1).max() <= len(found.cells)
