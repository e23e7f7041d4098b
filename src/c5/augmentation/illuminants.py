"""The lights of one camera: the photographs taken in conditions like another's, and new lights along their curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from c5.color import Float64s, angular_error
from c5.datasets import Sample
from c5.errors import DataError
from c5.words import plural

FEWEST = 8
"""Photographs that a camera needs for a cubic to be fitted to its lights."""


class Near(NamedTuple):
    """The neighbors of a photograph in a camera's set."""

    indices: np.ndarray[tuple[int], np.dtype[np.intp]]
    weights: Float64s
    """They sum to 1."""


@dataclass(frozen=True, eq=False)
class CameraLights:
    """The labels of one camera with what is known about how they were taken: the set T of the paper."""

    camera: str
    illuminants: Float64s
    """(n, 3)"""
    features: Float64s
    """(n, 4): see `describe`."""
    ccms: Float64s
    """(n, 3, 3) white-balanced camera RGB to linear sRGB."""
    cubic: Float64s
    """(4,) the polynomial from r to g chromaticity, the highest power first."""
    cameras: frozenset[str]
    sources: frozenset[str]

    @classmethod
    def fit(cls, samples: Sequence[Sample], features: Float64s, ccms: Float64s) -> CameraLights:
        camera = samples[0].camera
        if len(samples) < FEWEST:
            raise DataError(
                f"{camera}: {plural(len(samples), 'photograph')}; {FEWEST} are needed to know the lights of a camera"
            )
        illuminants = np.stack([sample.illuminant for sample in samples])
        return cls(
            camera,
            illuminants,
            features,
            ccms,
            fit_cubic(illuminants),
            frozenset().union(*(sample.cameras for sample in samples)),
            frozenset().union(*(sample.sources for sample in samples)),
        )

    def find_near(self, feature: Float64s, count: int) -> Near:
        """The photographs of the camera taken in conditions most like that feature, and their weights.

        Parts that are unknown, in it or in a photograph here, are left out; each of the others is divided by its range
        here. w = exp(1 - d) / sum, with d the distance relative to that of the farthest neighbor.
        """
        known = np.isfinite(feature) & np.isfinite(self.features).all(axis=0)
        spans = np.ptp(self.features[:, known], axis=0)
        away = (self.features[:, known] - feature[known]) / np.where(spans > 0, spans, 1)
        distances = np.sqrt((away**2).sum(axis=1))
        indices = np.argsort(distances, kind="stable")[:count]
        near = distances[indices]
        weights = np.exp(1 - near / max(near[-1], 1e-12))
        return Near(indices, weights / weights.sum())

    def sample_light(self, near: Near, shift: Float64s) -> Float64s:
        """RGB of a new light: a place on the curve among the neighbors, moved along r and g (Eqs. 23 to 25).

        `shift` is in standard deviations of the neighbors' chromaticities. The result may have a channel below zero.
        """
        rg = chromaticity(self.illuminants[near.indices])
        spread_r, spread_g = rg.std(axis=0)
        r = near.weights @ rg[:, 0] + shift[0] * spread_r
        g = np.polyval(self.cubic, r) + shift[1] * spread_g
        return np.array([r, g, 1 - r - g])

    def mix_ccms(self, near: Near) -> Float64s:
        return np.asarray(np.tensordot(near.weights, self.ccms[near.indices], axes=1))

    def measure_distance(self, light: Float64s) -> float:
        """Degrees from a light to the nearest known light of the camera."""
        return float(angular_error(self.illuminants, light).min())


def describe(samples: Sequence[Sample], positions: Float64s) -> Float64s:
    """(n, 4) the retrieval features (Eq. 20): temperature, or any place on the curve of lights, then the logarithms of
    gain, aperture and exposure; NaN where unknown. Logarithms, because these grow by factors.
    """
    rows = []
    for sample, position in zip(samples, positions, strict=True):
        capture = sample.capture
        settings = (None, None, None) if capture is None else (capture.gain, capture.aperture, capture.exposure)
        rows.append([position, *(np.log(value) if value is not None and value > 0 else np.nan for value in settings)])
    return np.array(rows, dtype=np.float64)


def chromaticity(rgb: Float64s) -> Float64s:
    """r and g: the first two channels of RGB with the sum 1."""
    return np.asarray(rgb[..., :2] / rgb.sum(axis=-1, keepdims=True))


def fit_cubic(illuminants: Float64s) -> Float64s:
    """The cubic from r to g chromaticity, with a constant term, which Eq. 24 as printed lacks."""
    r, g = chromaticity(illuminants).T
    degree = min(3, len(np.unique(r.round(9))) - 1)
    return np.pad(np.polyfit(r, g, degree), (3 - degree, 0))


def cluster(points: Float64s, count: int, rng: np.random.Generator) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """k-means from k-means++ seeds: the indices of the points of each cluster, none empty."""
    centers = points[rng.integers(len(points))][None]
    while len(centers) < min(count, len(points)):
        away = ((points[:, None] - centers) ** 2).sum(axis=-1).min(axis=1)
        if away.sum() == 0:  # fewer distinct points than clusters
            break
        centers = np.vstack([centers, points[rng.choice(len(points), p=away / away.sum())]])
    owners = np.full(len(points), -1)
    for _ in range(100):
        nearest = ((points[:, None] - centers) ** 2).sum(axis=-1).argmin(axis=1)
        if (nearest == owners).all():
            break
        owners = nearest
        for index in np.unique(owners):
            centers[index] = points[owners == index].mean(axis=0)
    return [np.flatnonzero(owners == index) for index in np.unique(owners)]
