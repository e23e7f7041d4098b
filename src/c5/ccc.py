"""Convolutional color constancy: a filtered histogram to an illuminant (Eqs. 4 to 7).

This is the tiny model that C5 emits for each query. Training has a second implementation in torch; a test checks that
the two agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from c5.color import Float32s, Float64s, gains, rgb_to_uv, uv_to_rgb
from c5.errors import ParameterError
from c5.histograms import Geometry, Grid, Histograms
from c5.metrics import bound_errors


@dataclass(frozen=True, eq=False)
class Estimate:
    """What is known about the light of one image."""

    illuminant: Float64s
    """(3,) unit RGB."""
    heat_map: Float32s | None = field(default=None, repr=False)
    """(bins, bins), P of Eq. 4: how likely each illuminant on the grid is; sums to 1. None for classical methods."""
    uncertainty: float | None = None
    """Degrees: the mean angle between the illuminant and those of the heat map. None without a heat map."""
    covariance: Float64s | None = field(default=None, repr=False)
    """(2, 2) of u and v in the heat map, in nats squared. None without a heat map."""

    @cached_property
    def gains(self) -> Float64s:
        """(3,) white-balance multipliers, green = 1."""
        return gains(self.illuminant)

    @cached_property
    def uv(self) -> Float64s:
        """(2,) log-chroma of the illuminant, in nats."""
        return rgb_to_uv(self.illuminant)

    @cached_property
    def bound_deg(self) -> float | None:
        """The 90 % bound: the error on nine in ten photographs of a new camera is smaller. None without a heat map."""
        return None if self.uncertainty is None else float(bound_errors(self.uncertainty))

    @cached_property
    def bound_covariance(self) -> Float64s | None:
        """(2, 2) the covariance scaled to the bound: the root of a variance is a 90 % bound in its direction."""
        if self.covariance is None or self.bound_deg is None:
            return None
        return scale_covariance(self.covariance, self.illuminant, self.bound_deg)


EVEN = 0.05
"""The share of the squared bound that is the same in all directions: heat maps hardly doubt the tint, even for cameras
they do not know (`benchmarks/bounds.py`)."""


def scale_covariance(covariance: Float64s, illuminant: Float64s, degrees: float) -> Float64s:
    """The covariance of u and v around an illuminant, scaled so that its root-mean-square angle is `degrees`.

    With the 90 % bound as the angle, the roots of its variances are 90 % bounds too: exactly so where all doubt lies
    along one line, and 8 % too small where it is the same in all directions. A small part of it always is.
    """
    # How u and v turn a unit vector: the angle of a small step is the root of step @ metric @ step.
    red, _, blue = illuminant
    metric = np.array([[red**2 - red**4, -((red * blue) ** 2)], [-((red * blue) ** 2), blue**2 - blue**4]])
    shape = covariance / max(float((metric * covariance).sum()), 1e-12)
    return np.asarray(np.radians(degrees) ** 2 * ((1 - EVEN) * shape + EVEN * np.linalg.inv(metric) / 2))


def convolve(histograms: Float32s, filters: Float32s) -> Float32s:
    """The (channels, n, n) histograms, each convolved with its filter, summed to (n, n); zero beyond the edges.

    Bin (n/2, n/2) of a filter is its origin: a filter that is 1 there and 0 elsewhere changes nothing.
    """
    n = histograms.shape[-1]
    size = padded(n)
    total = (np.fft.rfft2(histograms, s=size) * np.fft.rfft2(filters, s=size)).sum(axis=0)
    window = slice(n // 2, n // 2 + n)
    rows = np.fft.ifft(total, axis=0)[window]  # the others need not be transformed back
    return np.fft.irfft(rows, size[1], axis=1)[:, window].astype(np.float32, copy=False)


def padded(n: int) -> tuple[int, int]:
    """The size of the transforms: at one and a half times the grid, what wraps around stays outside the window."""
    return 3 * n // 2, 3 * n // 2


def convolve_wrapped(histograms: Float32s, filters: Float32s) -> Float32s:
    """The same on a torus, with bin (0, 0) as the origin of a filter, as the published models were trained."""
    total = (np.fft.rfft2(histograms) * np.fft.rfft2(filters)).sum(axis=0)
    return np.fft.irfft2(total, s=histograms.shape[-2:]).astype(np.float32)


def locate(histograms: Histograms, filters: Float32s, bias: Float32s, gain: Float32s | None = None) -> Estimate:
    """The illuminant that filters F, bias B and gain G find in the histograms of an image: softmax(B + G * sum(N * F)).

    `filters` are (channels, bins, bins), `bias` and `gain` (bins, bins).
    """
    grid, n = histograms.grid, histograms.grid.bins
    for name, array, shape in (
        ("filters", filters, (grid.channels, n, n)),
        ("bias", bias, (n, n)),
        ("gain", gain, (n, n)),
    ):
        if array is not None and array.shape != shape:
            raise ParameterError(f"{name} must have the shape {shape} on this grid, not {array.shape}")
    published = grid.geometry is Geometry.PUBLISHED
    scores = (convolve_wrapped if published else convolve)(histograms.searched, filters)
    if gain is not None:
        scores = scores * gain
    scores = scores + bias
    if published:
        scores = np.clip(scores, -100, 100)
    heat = np.exp(scores - scores.max(), dtype=np.float64)
    heat /= heat.sum()
    columns, rows = heat.sum(axis=0), heat.sum(axis=1)
    mean_u, mean_v = columns @ grid.u, rows @ grid.v
    illuminant = uv_to_rgb([mean_u, mean_v])
    angles = np.arccos(np.clip(_illuminants(grid) @ illuminant, -1, 1))
    u, v = grid.u - mean_u, grid.v - mean_v
    across = v @ heat @ u
    covariance = np.array([[columns @ u**2, across], [across, rows @ v**2]])
    return Estimate(illuminant, heat.astype(np.float32), float(np.degrees((angles * heat).sum())), covariance)


@lru_cache(maxsize=8)
def _illuminants(grid: Grid) -> Float64s:
    """(bins, bins, 3) the illuminant of each bin."""
    return uv_to_rgb(np.stack(np.meshgrid(grid.u, grid.v), axis=-1))
