"""What training minimises (Sec. 3.2): the angle to the true illuminant, and roughness of the emitted model."""

from __future__ import annotations

import torch
from torch import Tensor

from c5.training.network import Emitted


def angular_error(estimate: Tensor, truth: Tensor) -> Tensor:
    """Degrees between unit vectors (batch, 3). In the half-angle form the floor keeps the gradient finite at zero."""
    near, far = (estimate - truth).square().sum(dim=1), (estimate + truth).square().sum(dim=1)
    return torch.rad2deg(2 * torch.atan2((near + 1e-12).sqrt(), far.sqrt()))


def roughness(maps: Tensor) -> Tensor:
    """The mean squared Sobel gradient of maps (batch, channels, n, n), summed over channels.

    The paper writes a norm, the sum over all bins. With that the smoothness outweighs the angle by far and training
    ends at about twice the error.
    """
    across, down = maps[..., 2:] - maps[..., :-2], maps[..., 2:, :] - maps[..., :-2, :]
    across = across[..., :-2, :] + 2 * across[..., 1:-1, :] + across[..., 2:, :]
    down = down[..., :-2] + 2 * down[..., 1:-1] + down[..., 2:]
    return (across.square() + down.square()).mean(dim=(0, 2, 3)).sum()


def smoothness(emitted: Emitted, filters: float, bias: float) -> Tensor:
    """S of Eq. 9; G is treated like B."""
    total = filters * roughness(emitted.filters) + bias * roughness(emitted.bias[:, None])
    return total if emitted.gain is None else total + bias * roughness(emitted.gain[:, None])
