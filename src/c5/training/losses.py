"""What training minimizes (Sec. 3.2): the angle to the true illuminant, and the roughness of the emitted model; and,
beyond the paper, how unlikely the true illuminant is under the heat map."""

from __future__ import annotations

import torch
from torch import Tensor

from c5.training.ccc import Located, Locator
from c5.training.network import Emitted

LEAST_VARIANCE = 1e-3
"""Square nats that are added to the variance of a heat map along u and v: a third of a bin."""


def angular_error(estimate: Tensor, truth: Tensor) -> Tensor:
    """Degrees between unit vectors (batch, 3). In the half-angle form the floor keeps the gradient finite at zero."""
    near, far = (estimate - truth).square().sum(dim=1), (estimate + truth).square().sum(dim=1)
    return torch.rad2deg(2 * torch.atan2((near + 1e-12).sqrt(), far.sqrt()))


def roughness(maps: Tensor) -> Tensor:
    """The mean squared Sobel gradient of maps (batch, channels, n, n), summed over channels.

    The paper writes a norm: the sum over all bins but those at the edge, (n - 2)^2 times as much.
    """
    across, down = maps[..., 2:] - maps[..., :-2], maps[..., 2:, :] - maps[..., :-2, :]
    across = across[..., :-2, :] + 2 * across[..., 1:-1, :] + across[..., 2:, :]
    down = down[..., :-2] + 2 * down[..., 1:-1] + down[..., 2:]
    return (across.square() + down.square()).mean(dim=(0, 2, 3)).sum()


def smoothness(emitted: Emitted, filters: float, bias: float) -> Tensor:
    """S of Eq. 9, and of Eq. 11: G is treated like B."""
    total = filters * roughness(emitted.filters) + bias * roughness(emitted.bias[:, None])
    return total if emitted.gain is None else total + bias * roughness(emitted.gain[:, None])


def log_likelihood(located: Located, truth: Tensor, locator: Locator) -> Tensor:
    """(batch,) the logarithm of the density of illuminants (batch, 3) under the normal distribution in log-chroma that
    has the mean and covariance of their heat map, up to a constant."""
    heat = located.log_heat.exp()
    along_u, along_v = heat.sum(dim=1), heat.sum(dim=2)  # (batch, n)
    u, v = along_u @ locator.u, along_v @ locator.v
    from_u, from_v = locator.u - u[:, None], locator.v - v[:, None]
    var_u = (along_u * from_u.square()).sum(dim=1) + LEAST_VARIANCE
    var_v = (along_v * from_v.square()).sum(dim=1) + LEAST_VARIANCE
    both = (heat * from_v[:, :, None] * from_u[:, None, :]).sum(dim=(1, 2))
    determinant = var_u * var_v - both.square()
    off_u = (truth[:, 1] / truth[:, 0]).log() - u
    off_v = (truth[:, 1] / truth[:, 2]).log() - v
    squared = (var_v * off_u.square() - 2 * both * off_u * off_v + var_u * off_v.square()) / determinant
    return -(determinant.log() + squared) / 2
