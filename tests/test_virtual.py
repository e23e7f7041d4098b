"""Training on virtual cameras: palettes through matrices are the histograms of mapped images."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from c5.training.palettes import VIEWS, make_palettes
from c5.training.samples import Samples
from numpy.typing import NDArray

from c5.augmentation import map_image
from c5.color import Float64s, angular_error
from c5.demo import VirtualCamera, render_roll
from c5.errors import ParameterError
from c5.histograms import Grid, histogram
from c5.image import LinearImage
from c5.training.config import NetworkConfig, TrainConfig, Virtual
from c5.training.loop import Trainer
from c5.training.run import Plan, load_checkpoint, train
from c5.training.virtual import CORRELATIONS, DEVIATIONS, OFF_DIAGONAL, VirtualBatches, Warp, draw_cameras

Array = NDArray[Any]
CPU = torch.device("cpu")
NETWORK = NetworkConfig(bins=64, widths=(4, 8), n_images=4, coordinates=False, one_decoder=True, power=3)
OTHER = dataclasses.replace(NETWORK, coordinates=True, power=1)
CONFIG = TrainConfig(
    NETWORK,
    (OTHER,),
    epochs=4,
    learning_rate=2e-3,
    likelihood=1,
    virtual=Virtual(steps=3, cameras=2, queries=3),
    average=0.9,
)


@pytest.fixture(scope="module")
def photos() -> list[tuple[LinearImage, Float64s]]:
    rng = np.random.default_rng(11)
    return [(photo.image, photo.illuminant) for photo in render_roll(VirtualCamera.random(rng), 6, rng, (96, 144))]


@pytest.fixture(scope="module")
def samples(photos: list[tuple[LinearImage, Float64s]]) -> Samples:
    rng = np.random.default_rng(3)
    return Samples(
        np.stack([histogram(image, CONFIG.grid)[None] for image, _ in photos]),
        np.stack([illuminant for _, illuminant in photos]),
        np.array(["Alpha", "Alpha", "Alpha", "Alpha", "Beta", "Beta"]),
        np.stack([make_palettes(image, CONFIG.grid.powers, rng) for image, _ in photos]),
    )


def warp(palettes: Array, matrices: Float64s) -> Array:
    cells = torch.as_tensor(palettes[..., 0].astype(np.int32))
    weights = torch.as_tensor(palettes[..., 1:].copy().view(np.float16))
    made = Warp(CONFIG, CPU)(cells, weights, torch.as_tensor(matrices, dtype=torch.float32))
    return np.asarray(made.numpy())


def overlap(a: Array, b: Array) -> Array:
    """The mass that pairs of (..., n, n) histograms share; 1 where they are equal."""
    return np.asarray(np.minimum(a**2, b**2).sum(axis=(-2, -1)))


def test_a_palette_is_its_image(photos: list[tuple[LinearImage, Float64s]], samples: Samples) -> None:
    assert samples.palettes is not None
    made = warp(samples.palettes[:, 0], np.tile(np.eye(3), (len(photos), 1, 1)))
    shared = overlap(made, samples.histograms)
    assert (shared[:, :-1] > 0.97).all()
    assert (shared[:, -1] > 0.88).all()  # gradients have more colors than a palette


def test_a_palette_through_a_matrix_is_the_mapped_image(photos: list[tuple[LinearImage, Float64s]]) -> None:
    """Exactly for pixels, but for the width of cells; gradients that differ in sign between channels add a little."""
    rng = np.random.default_rng(5)
    for image, illuminant in photos:
        matrix = draw_cameras(Virtual(), illuminant, rng)
        balanced = matrix * illuminant  # of white-balanced RGB; what is gray has the color of the light after it
        after = balanced.sum(axis=1)
        mapped = map_image(image, balanced / after[:, None], illuminant, after)
        expected = histogram(mapped, CONFIG.grid)
        made = warp(make_palettes(image, CONFIG.grid.powers, rng)[:1, ...], matrix[None])[0]
        shared = overlap(made, expected)
        assert (shared[:-1] > 0.9).all()
        assert shared[-1] > 0.8


def test_virtual_cameras_differ_as_cameras_do() -> None:
    rng = np.random.default_rng(0)
    reference = np.full((20000, 3), 1.0)
    matrices = draw_cameras(Virtual(matrix=1, shift=0), reference, rng)
    np.testing.assert_allclose(matrices.sum(axis=-1), 1, atol=1e-12)  # gray stays gray
    elements = np.stack([matrices[:, i, j] for i, j in OFF_DIAGONAL], axis=1)
    elements = elements[np.abs(elements).max(axis=1) > 0]
    assert 0.78 < len(elements) / len(matrices) < 0.82
    np.testing.assert_allclose(elements.std(axis=0), DEVIATIONS, rtol=0.05)
    np.testing.assert_allclose(np.corrcoef(elements.T), CORRELATIONS, atol=0.05)
    moved = draw_cameras(Virtual(matrix=0, shift=0.3), reference, rng)
    np.testing.assert_array_equal(moved, moved * np.eye(3))
    assert np.abs(np.log(np.diagonal(moved, axis1=1, axis2=2))).max() == pytest.approx(0.3, abs=0.001)


def test_an_epoch_has_every_image_and_keeps_cameras_apart(samples: Samples) -> None:
    batches = VirtualBatches(samples, CONFIG, CPU)
    images, views, matrices, waves, illuminants, present = batches.draw(0, np.random.default_rng(1))
    queries, rolls = images[..., :3], images[..., 3:]
    assert images.shape[:2] == (3, 2)  # two deals of three hands
    assert sorted(set(queries.ravel().tolist())) == list(range(len(samples)))
    assert (samples.cameras[rolls] == samples.cameras[queries[..., :1]]).all()
    assert samples.palettes is not None
    assert views.max() < samples.palettes.shape[1] == len(VIEWS)
    assert matrices.shape == (*images.shape, 3, 3)
    assert waves.shape[:3] == images.shape
    np.testing.assert_allclose(np.linalg.norm(illuminants, axis=-1), 1, rtol=1e-5)
    assert present.shape == queries.shape
    same = batches.draw(0, np.random.default_rng(1))
    assert all(
        np.array_equal(a, b) for a, b in zip(same, (images, views, matrices, waves, illuminants, present), strict=True)
    )


@pytest.mark.parametrize("steps", [1, 40])
def test_an_epoch_is_as_long_as_asked(samples: Samples, steps: int) -> None:
    config = dataclasses.replace(CONFIG, virtual=Virtual(steps=steps, cameras=2, queries=3))
    images = VirtualBatches(samples, config, CPU).draw(0, np.random.default_rng(1))[0]
    assert images.shape == (steps, 2, 6)
    assert (samples.cameras[images] == samples.cameras[images[..., :1]]).all()


def test_labels_go_where_gray_goes(photos: list[tuple[LinearImage, Float64s]]) -> None:
    """A gray wall under the light of each image: through any virtual camera it has the color of the label."""
    walls = [
        LinearImage(np.broadcast_to(light / light.max() * 0.5, (8, 8, 3)).astype(np.float32)) for _, light in photos
    ]
    rng = np.random.default_rng(3)
    gray = Samples(
        np.stack([histogram(wall, CONFIG.grid)[None] for wall in walls]),
        np.stack([light for _, light in photos]),
        np.array(["Alpha"] * len(walls)),
        np.stack([make_palettes(wall, CONFIG.grid.powers, rng) for wall in walls]),
    )
    config = dataclasses.replace(CONFIG, virtual=Virtual(steps=1, cameras=2, queries=3, relight=0.5, repaint=0.5))
    batches = VirtualBatches(gray, config, CPU)
    grid = Grid()
    images, views, *rest = batches.draw(0, np.random.default_rng(2))
    batch = batches.make(*(torch.as_tensor(array[0]) for array in (images, np.zeros_like(views), *rest)))
    mass = batch.query[:, 0].numpy() ** 2
    u, v = mass.sum(axis=1) @ grid.u, mass.sum(axis=2) @ grid.v
    seen = np.stack([np.exp(-u), np.ones_like(u), np.exp(-v)], axis=1)
    assert (angular_error(seen, batch.illuminants.numpy()) < 0.6).all()  # half a cell of the fine grid


def test_resume_is_the_same_run_and_the_model_is_the_average(samples: Samples, tmp_path: Path) -> None:
    whole = Trainer(CONFIG, samples, CPU)
    list(whole.run())
    plan = Plan(CONFIG, ["x"], [])
    for _ in zip(range(2), train(plan, samples, tmp_path, device=CPU), strict=False):
        pass
    resumed = Trainer(CONFIG, samples, CPU)
    load_checkpoint(resumed, tmp_path)
    assert resumed.epoch == 2
    list(resumed.run())
    for name, tensor in whole.model.state_dict().items():
        torch.testing.assert_close(resumed.model.state_dict()[name], tensor, rtol=0, atol=0, msg=name)
    assert whole.model is whole.averaged
    first = next(iter(whole.network.parameters()))
    assert not torch.equal(first, next(iter(whole.model.parameters())))


def test_bad_settings_are_refused(samples: Samples) -> None:
    good = Virtual()
    for name, wrong in (
        ("steps", 0),
        ("cameras", 0),
        ("queries", 0),
        ("shift", 2.0),
        ("matrix", -1.0),
        ("relight", 2.0),
    ):
        with pytest.raises(ParameterError):
            dataclasses.replace(good, **{name: wrong})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="palettes"):
        Trainer(CONFIG, dataclasses.replace(samples, palettes=None), CPU)
    with pytest.raises(ParameterError, match="exact geometry"):
        dataclasses.replace(TrainConfig.paper(), virtual=Virtual())
