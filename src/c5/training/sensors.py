"""Virtual cameras that exist: those of a table of matrices, and the other cameras of the data.

Both take an image from its own camera through XYZ to another one, at the temperature of its light. A camera of the
table sees a light on its own curve of black bodies, with the tint that the light had. Another camera of the data sees
the scene in a light that it has really seen, of about the same temperature: this joins scenes and lamps that nobody has
photographed together, without lights that do not exist. This is what the paper's augmentation does with whole images.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from c5.color import Float64s
from c5.colorimetry.matrices import COOLEST, HOTTEST, CameraMatrices
from c5.datasets.facts import match_name
from c5.training.config import VirtualTraining
from c5.training.data import TrainingData

STEP_KELVIN = 100.0
KELVINS = np.arange(COOLEST, HOTTEST + 1, STEP_KELVIN)
OFFERED = 12
"""This many lights of another camera are drawn; the one with the nearest temperature is taken."""


class Sensors:
    """Replaces some virtual cameras with ones that exist."""

    def __init__(self, data: TrainingData, cameras: Sequence[NDArray[np.int64]], config: VirtualTraining) -> None:
        """`cameras` are the images of each camera of the data."""
        matrices = data.matrices or {}
        names = [match_name(str(data.cameras[own[0]]), matrices) for own in cameras]
        self.config, self.cameras, self.illuminants = config, cameras, data.illuminants
        self.known = np.flatnonzero([name is not None for name in names])
        self.curves = {number: _Curve(matrices[name]) for number, name in enumerate(names) if name is not None}
        self.table = list(map(_Curve, matrices.values()))
        self.places = np.zeros(len(data), np.int64)  # of the temperatures of their lights in KELVINS
        for number, curve in self.curves.items():
            kelvin = curve.matrices.temperature(data.illuminants[cameras[number]])
            self.places[cameras[number]] = np.rint((kelvin - COOLEST) / STEP_KELVIN)

    def replace(
        self,
        chosen: NDArray[np.int64],
        images: NDArray[np.int64],
        matrices: NDArray[np.float32],
        illuminants: NDArray[np.float32],
        rng: np.random.Generator,
    ) -> None:
        """Overwrite the matrices (..., images, 3, 3) and illuminants (..., queries, 3) of some groups of images, each
        of a chosen camera (...)."""
        for at in np.ndindex(*chosen.shape):
            source, chance = int(chosen[at]), rng.random() - self.config.table_share
            others = self.known[self.known != source]
            if source not in self.curves or chance >= (self.config.exchange_share if others.size else 0):
                continue
            own, before = images[at], self.illuminants[images[at]]
            if chance < 0:
                target = self.table[rng.integers(len(self.table))]
                place = self.places[own]
                light = before * target.lights[place] / self.curves[source].lights[place]
            else:
                other = int(rng.choice(others))
                target, light = self.curves[other], self._lights_like(own, self.cameras[other], rng)
            light /= np.linalg.norm(light, axis=-1, keepdims=True)
            between = self._between(self.curves[source], target, self.places[own])
            matrices[at] = light[:, :, None] * between / before[:, None, :]
            illuminants[at] = light[: self.config.queries_per_camera]

    def _lights_like(self, images: NDArray[np.int64], others: NDArray[np.int64], rng: np.random.Generator) -> Float64s:
        """(images, 3) lights of other images, near in temperature to those of the images."""
        offered = rng.choice(others, (images.size, OFFERED))
        nearest = np.abs(self.places[offered] - self.places[images][:, None]).argmin(axis=1)
        return np.asarray(self.illuminants[np.take_along_axis(offered, nearest[:, None], 1)[:, 0]])

    def _between(self, source: _Curve, target: _Curve, places: NDArray[np.int64]) -> Float64s:
        """(images, 3, 3) white-balanced RGB of one camera to that of another, white to white."""
        matrix = target.balanced[places] @ source.inverse[places]
        return np.asarray(matrix / matrix.sum(axis=-1, keepdims=True))


class _Curve:
    """What a camera sees in the light of black bodies at `KELVINS`."""

    def __init__(self, matrices: CameraMatrices) -> None:
        self.matrices = matrices
        self.lights = matrices.illuminant(KELVINS)  # (temperatures, 3)
        self.balanced = matrices.matrix(KELVINS) / self.lights[..., None]  # (temperatures, 3, 3): XYZ to balanced RGB
        self.inverse = np.linalg.inv(self.balanced)
