"""Training on virtual cameras: each step takes the images of real cameras through cameras that do not exist.

A palette is a cloud of weighted colors. A 3x3 matrix over raw RGB takes each color of it to the color another camera
would see, exactly for pixels and nearly so for gradients; the label goes through the same matrix. So do queries and
their roll, since they come from one camera. All of it happens on the device, anew in every step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from c5.color import Float64s
from c5.datasets.palettes import POINTS, VIEWS, Palettes, cell_colors, code_weights
from c5.errors import ParameterError
from c5.histograms import Grid
from c5.training.batches import Batch
from c5.training.config import VirtualTraining
from c5.training.data import TrainingData
from c5.training.sensors import Sensors

OFF_DIAGONAL = ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))
DEVIATIONS = np.array([0.30, 0.11, 0.12, 0.10, 0.08, 0.14])
CORRELATIONS = np.array(
    [
        [1.00, -0.82, -0.49, 0.20, -0.56, 0.35],
        [-0.82, 1.00, 0.48, -0.01, 0.41, -0.32],
        [-0.49, 0.48, 1.00, -0.09, 0.85, -0.06],
        [0.20, -0.01, -0.09, 1.00, -0.15, -0.12],
        [-0.56, 0.41, 0.85, -0.15, 1.00, -0.10],
        [0.35, -0.32, -0.06, -0.12, -0.10, 1.00],
    ]
)
"""From one camera to another: the elements at `OFF_DIAGONAL` of the matrix between their white-balanced RGB, white to
white, at 4500 K. Measured over pairs of 997 cameras with calibration matrices; the ten of NUS and Gehler-Shi are not
among them."""
SAME_COLORS = 0.2
"""Share of virtual cameras that see colors like the real one, with other gains."""
OUT_OF_GAMUT = 0.02
"""A color whose lowest channel is below this part of its highest is left out."""
WAVES = 3
"""Random waves over log-chroma that modulate the weights of a scene's colors."""
WAVE_NUMBER = 2.5  # their standard deviation, per nat


class VirtualBatches:
    """Draws virtual cameras with the queries and the roll of each, and makes their histograms on the device."""

    def __init__(self, data: TrainingData, config: VirtualTraining, device: torch.device) -> None:
        if data.palettes is None or data.palettes.powers != config.grid.powers:
            raise ParameterError("training on virtual cameras needs the palettes of the images, on its grid")
        self.config, self.device = config, device
        self.illuminants = data.illuminants
        self.cameras = [np.flatnonzero(data.cameras == camera) for camera in np.unique(data.cameras)]
        lights = [data.illuminants[own] for own in self.cameras]
        self.references = np.stack([np.exp(np.log(light).mean(axis=0)) for light in lights])  # a typical one of each
        self.sensors = Sensors(data, self.cameras, config) if data.matrices else None
        self.colors = MappedColors(data.palettes) if device.type == "cpu" else PaletteColors(data.palettes, device)
        self.warp = Warp(config.grid, device)

    def draw(self, epoch: int, rng: np.random.Generator) -> Sequence[NDArray[Any]]:
        """As many steps as an epoch has, each with a group of images for every virtual camera in it."""
        config, shape = self.config, (self.config.steps_per_epoch, self.config.cameras_per_step)
        counts = np.array([own.size for own in self.cameras])
        chosen = rng.choice(counts.size, math.prod(shape), p=counts / counts.sum())
        groups = [self._group(self.cameras[camera], rng) for camera in chosen]
        lights = [rng.choice(self.cameras[camera], groups[0].size) for camera in chosen]
        images, lit = np.stack(groups).reshape(*shape, -1), np.stack(lights).reshape(*shape, -1)
        lit = np.where(rng.random(images.shape) < config.relight_share, lit, images)
        reference = self.references[chosen].reshape(*shape, 3)
        matrices, illuminants = self._cameras(images, lit, reference, rng)
        if self.sensors is not None:
            self.sensors.replace(chosen.reshape(shape), images, matrices, illuminants, rng)
        views = rng.choice(len(VIEWS), size=images.shape, p=VIEWS)
        waves = _waves(images.shape, config.repaint_nats, rng)
        present = rng.random((*shape, config.queries_per_camera)) >= config.empty_roll_share
        return images, views, matrices, waves, illuminants, present.astype(np.float32)

    def _group(self, own: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Queries and a roll: all of one camera, and different where it has enough."""
        queries, additional = self.config.queries_per_camera, self.config.n_images - 1
        drawn = rng.choice(own, min(queries + additional, own.size), replace=False)
        others = drawn[queries:] if drawn.size > queries else drawn
        # A roll of d different images repeats them to fill its slots: pooling ignores duplicates.
        roll = others[: rng.integers(1, additional + 1)]
        return np.concatenate([np.resize(drawn, queries), np.resize(roll, additional)])

    def _cameras(
        self, images: NDArray[np.int64], lit: NDArray[np.int64], reference: Float64s, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The matrix (steps, cameras, images, 3, 3) of each image, and the illuminants (..., queries, 3) of queries.

        An image lit anew is first taken to the light of the image in `lit`. `reference` is a typical illuminant of each
        real camera: colors are mixed around it, so that grays stay gray there.
        """
        cameras = draw_cameras(self.config.shift_nats, self.config.matrix_spread, reference, rng)
        light = self.illuminants[lit]
        matrices = cameras[:, :, None] * (light / self.illuminants[images])[..., None, :]
        seen = np.einsum("scij,scqj->scqi", cameras, light[:, :, : self.config.queries_per_camera])
        seen = np.maximum(seen, OUT_OF_GAMUT * seen.max(axis=-1, keepdims=True))
        seen /= np.linalg.norm(seen, axis=-1, keepdims=True)
        return matrices.astype(np.float32), seen.astype(np.float32)

    def make(self, *row: Tensor) -> Batch:
        images, views, matrices, waves, illuminants, present = row
        cameras, count = images.shape
        cells, weights = self.colors.look_up(images.flatten(), views.flatten())
        histograms = self.warp(cells, weights, matrices.flatten(0, 1), waves.flatten(0, 1))
        histograms = histograms.reshape(cameras, count, *histograms.shape[1:])
        query, roll = torch.split(histograms, [self.config.queries_per_camera, self.config.n_images - 1], dim=1)
        return Batch(query.flatten(0, 1), roll, present.flatten(), illuminants.flatten(0, 1))


class PaletteColors:
    """Palettes on the device."""

    def __init__(self, palettes: Palettes, device: torch.device) -> None:
        self.cells = torch.as_tensor(palettes.cells).to(device)
        self.codes = torch.as_tensor(palettes.codes).to(device)
        self.spans = torch.as_tensor(palettes.spans).to(device)
        self.weights = torch.as_tensor(code_weights()).to(device)
        self.points = torch.arange(POINTS, device=device)

    def look_up(self, images: Tensor, views: Tensor) -> tuple[Tensor, Tensor]:
        """Cells (k, 2, points) and weights (k, 2, points, powers) of views (k,) of images (k,)."""
        start, count = self.spans[images, views].unbind(dim=-1)  # (k, 2)
        place = (start[..., None] + self.points).clamp(max=len(self.cells) - 1)
        present = self.points < count[..., None]
        return self.cells[place], self.weights[self.codes[place].int()] * present[..., None]


class MappedColors:
    """The same for a CPU, from arrays that may be larger than memory: each palette is copied in one piece."""

    def __init__(self, palettes: Palettes) -> None:
        self.palettes = palettes
        self.weights = code_weights()

    def look_up(self, images: Tensor, views: Tensor) -> tuple[Tensor, Tensor]:
        """As `PaletteColors.look_up`. Cells that no palette has are 0, and so are their weights."""
        spans = self.palettes.spans[images.numpy(), views.numpy()]  # (k, 2, 2)
        shape = (*spans.shape[:2], POINTS)
        cells = np.zeros(shape, self.palettes.cells.dtype)
        codes = np.zeros((*shape, len(self.palettes.powers)), self.palettes.codes.dtype)
        rows = zip(spans.reshape(-1, 2).tolist(), _rows(cells), _rows(codes), strict=True)
        for (start, count), row_cells, row_codes in rows:
            row_cells[:count] = self.palettes.cells[start : start + count]
            row_codes[:count] = self.palettes.codes[start : start + count]
        return torch.from_numpy(cells), torch.from_numpy(self.weights.take(codes))


def _rows(array: NDArray[Any]) -> NDArray[Any]:
    return array.reshape(-1, *array.shape[2:])


def draw_cameras(shift_nats: float, matrix_spread: float, reference: Float64s, rng: np.random.Generator) -> Float64s:
    """Matrices (..., 3, 3) from the raw RGB of real cameras to that of virtual ones, around illuminants (..., 3)."""
    shape = reference.shape[:-1]
    factor = np.linalg.cholesky(CORRELATIONS) * DEVIATIONS[:, None]
    mixing = matrix_spread * rng.standard_normal((*shape, 6)) @ factor.T
    mixing *= rng.random((*shape, 1)) >= SAME_COLORS
    matrix = np.zeros((*shape, 3, 3))
    for index, (i, j) in enumerate(OFF_DIAGONAL):
        matrix[..., i, j] = mixing[..., index]
    matrix += np.eye(3) * (1 - matrix.sum(axis=-1))[..., None]  # white stays white
    shift = rng.uniform(-shift_nats, shift_nats, (*shape, 2))
    gains = np.exp(-np.stack([shift[..., 0], np.zeros(shape), shift[..., 1]], axis=-1))
    return np.asarray((gains * reference)[..., None] * matrix / reference[..., None, :])


def _waves(shape: tuple[int, ...], strength: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """(..., WAVES, 4): wave numbers along u and v, phase and amplitude; together of the given strength."""
    numbers = WAVE_NUMBER * rng.standard_normal((*shape, WAVES, 2))
    phase = rng.uniform(0, 2 * math.pi, (*shape, WAVES, 1))
    amplitude = strength * math.sqrt(2 / WAVES) * rng.standard_normal((*shape, WAVES, 1))
    return np.concatenate([numbers, phase, amplitude], axis=-1).astype(np.float32)


class Warp:
    """Palettes to histograms through a matrix each, as `c5.histogram` would make them of the mapped image."""

    def __init__(self, grid: Grid, device: torch.device) -> None:
        self.bins, self.step, self.device = grid.bins, grid.step, device
        self.colors = torch.tensor(cell_colors(), dtype=torch.float32, device=device)  # (cells, 2)
        # Of pixels and of gradients, whose further columns hold nothing.
        powers = [grid.powers, [1] * len(grid.powers)]
        self.powers = torch.tensor(powers, dtype=torch.float32, device=device)
        line = torch.tensor([0.25, 0.5, 0.25], device=device)
        self.blur = (line[:, None] * line)[None, None]

    def __call__(self, cells: Tensor, weights: Tensor, matrices: Tensor, waves: Tensor | None = None) -> Tensor:
        """Cells (k, 2, points), weights (k, 2, points, powers), matrices (k, 3, 3): histograms (k, channels, n, n)."""
        n = self.bins
        u, v = self.colors[cells.long()].unbind(dim=-1)  # (k, 2, points)
        r, b = (-u).exp(), (-v).exp()
        m = matrices[:, None, :, :, None]
        mapped = [m[:, :, i, 0] * r + m[:, :, i, 1] + m[:, :, i, 2] * b for i in range(3)]
        lowest = torch.minimum(torch.minimum(mapped[0], mapped[1]), mapped[2])
        highest = torch.maximum(torch.maximum(mapped[0], mapped[1]), mapped[2])
        log_r, log_g, log_b = (channel.clamp_min(1e-6).log() for channel in mapped)
        brighter = (log_r + log_g + log_b + u + v) / 3
        exponent = brighter[..., None] * self.powers[:, None]
        if waves is not None:
            wave = waves[:, None, None]  # (k, 1, 1, waves, 4)
            angle = u[..., None] * wave[..., 0] + v[..., None] * wave[..., 1] + wave[..., 2]
            exponent = exponent + (wave[..., 3] * angle.cos()).sum(dim=-1, keepdim=True)
        x, y = (log_g - log_r) / self.step + (n - 1) / 2, (log_g - log_b) / self.step + (n - 1) / 2
        inside = (x > 0) & (x < n - 1) & (y > 0) & (y < n - 1) & (lowest > OUT_OF_GAMUT * highest)
        mass = weights.float() * exponent.exp() * inside[..., None]
        return self._finish(self._splat(x, y, mass))

    def _splat(self, x: Tensor, y: Tensor, mass: Tensor) -> Tensor:
        """Bilinear shares of masses (k, 2, points, powers) as (k, channels, n, n)."""
        n, (images, _, _, powers) = self.bins, mass.shape
        x, y = x.clamp(0, n - 1.001), y.clamp(0, n - 1.001)
        column, row = x.floor(), y.floor()
        right, up = (x - column)[..., None], (y - row)[..., None]
        corner = torch.arange(2 * images, device=self.device).reshape(images, 2, 1) * (n * n)
        corner = corner + row.long() * n + column.long()
        total = torch.zeros(2 * images * n * n, powers, device=self.device)
        for offset, share in (
            (0, (1 - right) * (1 - up)),
            (1, right * (1 - up)),
            (n, (1 - right) * up),
            (n + 1, right * up),
        ):
            total.index_add_(0, (corner + offset).flatten(), (mass * share).flatten(0, 2))
        pixels, gradients = total.reshape(images, 2, n, n, powers).permute(1, 0, 4, 2, 3)
        return torch.cat([pixels, gradients[:, :1]], dim=1)

    def _finish(self, total: Tensor) -> Tensor:
        """Blurred, scaled to sum 1, and its root taken."""
        images, channels, n, _ = total.shape
        total = functional.conv2d(total.reshape(-1, 1, n, n), self.blur, padding=1).reshape(images, channels, n, n)
        sums = total.sum(dim=(2, 3), keepdim=True)
        return (total / sums.clamp_min(1e-6)).sqrt()
