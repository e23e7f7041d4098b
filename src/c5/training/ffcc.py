"""FFCC, the baseline to measure C5 against: filters for one camera, learned from labeled images of that camera.

Barron and Tsai, "Fast Fourier Color Constancy", CVPR 2017. Log-chroma is wrapped around a torus, so that convolution is
a product of Fourier transforms and a histogram needs few bins. "The paper" in this file means that one. Left out are
the gain map, which did not help here, semantic features and temporal smoothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from c5.color import Float64s, as_illuminant, rgb_to_uv, uv_to_rgb
from c5.datasets.torus import Torus


@dataclass(frozen=True)
class FfccConfig(Torus):
    """The torus, by default 2 nats around, and how a model on it is trained.

    The defaults were chosen on Gehler-Shi and three cameras of NUS, by cross-validation within two of the three folds.
    """

    size: tuple[float, float, float] = (3e-4, 3e-5, 6e-4)
    """lambda_0 of the filters of pixels and edges and of the bias: the weight of the square of each bin."""
    roughness: tuple[float, float, float] = (2e-2, 2e-3, 0.2)
    """lambda_1 of the same: the weight of the square of each difference between neighboring bins."""
    floor: float = 2.0
    """Added to both variances of a heat map, in squared bins, so that no likelihood is infinite."""
    warm_up: int = 16
    """Iterations of L-BFGS on the cross-entropy."""
    iterations: int = 32
    """Iterations of L-BFGS on the likelihood that follow."""

    @property
    def torus(self) -> Torus:
        return Torus(self.bins, self.step, self.weight_power)


DEFAULT = FfccConfig()


@dataclass(frozen=True, eq=False)
class Ffcc:
    """A model of one camera. Everywhere rows run along v, columns along u, and bin (0, 0) is u = v = 0."""

    filters: Float64s  # F, (2, n, n): of pixels and of edges
    bias: Float64s  # B, (n, n)
    center_uv: Float64s  # (2,), the middle of the log-chroma of the training illuminants, in nats
    config: FfccConfig

    def estimate(self, histograms: ArrayLike) -> Float64s:
        """Illuminants (images, 3), unit RGB, of (images, 2, n, n) histograms N, by P = softmax(B + sum_i(N_i * F_i)).

        The mean of a heat map P on the torus stands for infinitely many log-chromas, whole turns apart. The one within
        half a turn of `center_uv` is taken: "gray light" de-aliasing of the paper. The center is half-way between the
        extremes of the training illuminants, because lights are so skewed that some lie half a turn from their mean.
        """
        spectra = torch.fft.rfft2(torch.as_tensor(np.asarray(histograms, dtype=np.float64)))
        filters = torch.fft.rfft2(torch.as_tensor(self.filters))
        heat = _log_heat(spectra, filters, torch.as_tensor(self.bias)).exp()
        return uv_to_rgb(_dealias(_circular_mean(heat).numpy() * self.config.step, self.center_uv, self.config))


# Training -------------------------------------------------------------------------------------------------------------


def train_ffcc(histograms: ArrayLike, illuminants: ArrayLike, config: FfccConfig = DEFAULT) -> Ffcc:
    """The model of a camera from (images, 2, n, n) histograms and (images, 3) illuminants. Deterministic.

    L-BFGS minimizes the data loss over all images plus the prior, half of lambda_0 |Z|^2 + lambda_1 |grad Z|^2 for each
    map Z of F and B: at first with the cross-entropy to the true illuminant, which is convex, then with the negative
    log-likelihood of the truth under the bivariate von Mises distribution fitted to the heat map.
    """
    uv = rgb_to_uv(as_illuminant(illuminants))
    truth = torch.as_tensor(uv / config.step)
    target = _splat(truth, config.bins)
    spectra = torch.fft.rfft2(torch.as_tensor(np.asarray(histograms, dtype=np.float64)))
    n = config.bins
    whitening = _whitening(config)
    white = torch.zeros(3, n, n, dtype=torch.float64, requires_grad=True)

    def log_heat() -> Tensor:
        maps = torch.fft.rfft2(white) * whitening
        return _log_heat(spectra, maps[:2], torch.fft.irfft2(maps[2], s=(n, n)))

    def warm_up() -> Tensor:
        return 0.5 * white.square().sum() - (target * log_heat()).sum()

    def loss() -> Tensor:
        return 0.5 * white.square().sum() + von_mises_loss(log_heat().exp(), truth, config.floor)

    _minimize(warm_up, white, config.warm_up)
    _minimize(loss, white, config.iterations)
    maps = torch.fft.irfft2(torch.fft.rfft2(white.detach()) * whitening, s=(n, n)).numpy()
    return Ffcc(maps[:2], maps[2], (uv.min(axis=0) + uv.max(axis=0)) / 2, config)


def _minimize(loss: Callable[[], Tensor], variable: Tensor, iterations: int) -> None:
    optimizer = torch.optim.LBFGS(
        [variable], max_iter=iterations, max_eval=2 * iterations, history_size=20, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    if iterations:
        optimizer.step(closure)  # type: ignore[no-untyped-call]


def von_mises_loss(heat: Tensor, truth: Tensor, floor: float) -> Tensor:
    """The negative log-likelihood of the truth (images, 2), (u, v) in bins, summed over heat maps (images, n, n).

    The bivariate von Mises of the paper is a Gaussian on the torus, with the circular mean and the covariance of the
    heat map, `floor` added to both variances. A constant is left out.
    """
    mean = _circular_mean(heat)
    var_u, var_v, cov = _covariance(heat, mean, floor)
    determinant = var_u * var_v - cov**2
    u, v = _wrap(truth - mean, heat.shape[-1]).unbind(dim=1)
    distance = (var_v * u**2 + var_u * v**2 - 2 * cov * u * v) / determinant
    return 0.5 * (determinant.log() + distance).sum()


def _log_heat(spectra: Tensor, filters: Tensor, bias: Tensor) -> Tensor:
    """log P, (images, n, n), of spectra (images, 2, n, n/2 + 1) of histograms and (2, n, n/2 + 1) of filters."""
    scores = bias + torch.fft.irfft2((spectra * filters).sum(dim=1), s=bias.shape)
    return torch.log_softmax(scores.flatten(1), dim=1).view_as(scores)


def _whitening(config: FfccConfig) -> Tensor:
    """(3, n, n/2 + 1), what turns the spectra of white maps z into those of the maps Z, such that |z|^2 is the prior.

    The prior is diagonal in Fourier space, lambda_0 + lambda_1 (|d_u|^2 + |d_v|^2), d being spectra of differences.
    Where the paper optimizes Fourier coefficients scaled by its root, this optimizes z, their inverse transform, which
    is the same problem rotated: L-BFGS takes the same steps.
    """
    n = config.bins
    angle = torch.arange(n, dtype=torch.float64) * (torch.pi / n)
    difference = (2 * angle.sin()).square()
    roughness = difference[:, None] + difference[: n // 2 + 1]
    size, rough = (torch.tensor(x, dtype=torch.float64)[:, None, None] for x in (config.size, config.roughness))
    return (size + rough * roughness).rsqrt()


# The torus, in units of bins: heat maps are (images, n, n), rows along v; points are (u, v) ---------------------------


def _circular_mean(heat: Tensor) -> Tensor:
    """(images, 2): along each axis, the direction of the mean of points on a circle."""
    n = heat.shape[-1]
    angle = torch.arange(n, dtype=heat.dtype) * (2 * torch.pi / n)
    margins = torch.stack([heat.sum(dim=1), heat.sum(dim=2)], dim=1)
    return torch.atan2(margins @ angle.sin(), margins @ angle.cos()) * (n / (2 * torch.pi))


def _covariance(heat: Tensor, mean: Tensor, floor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Sigma: the variances along u and v, each raised by the floor, and the covariance, (images,) each.

    The torus is cut open opposite the mean; the gradient ignores that the cut moves with the mean.
    """
    n = heat.shape[-1]
    u, v = _wrap(torch.arange(n) - mean.detach().round()[..., None], n).unbind(dim=1)
    along_u, along_v = heat.sum(dim=1), heat.sum(dim=2)
    mean_u, mean_v = (along_u * u).sum(dim=1), (along_v * v).sum(dim=1)
    var_u, var_v = (along_u * u**2).sum(dim=1) - mean_u**2, (along_v * v**2).sum(dim=1) - mean_v**2
    return var_u + floor, var_v + floor, ((heat @ u[..., None])[..., 0] * v).sum(dim=1) - mean_u * mean_v


def _wrap(offset: Tensor, n: int) -> Tensor:
    """The nearest way around the torus, from -n / 2 to n / 2."""
    return torch.remainder(offset + n / 2, n) - n / 2


def _dealias(uv: Float64s, center_uv: Float64s, config: FfccConfig) -> Float64s:
    """Of all log-chromas that share a point of the torus, the one nearest to the center; in nats."""
    turn = config.bins * config.step
    return np.asarray(uv - turn * np.round((uv - center_uv) / turn))


def _splat(points: Tensor, n: int) -> Tensor:
    """(images, n, n): 1 at each point, shared between the four bins around it."""
    corner = points.floor()
    x, y = (points - corner).unbind(dim=1)
    column, row = corner.long().unbind(dim=1)
    maps = torch.zeros(len(points), n, n, dtype=points.dtype)
    image = torch.arange(len(points))
    for i, share in enumerate((1 - y, y)):
        for j, part in enumerate((1 - x, x)):
            maps[image, (row + i) % n, (column + j) % n] += share * part
    return maps
