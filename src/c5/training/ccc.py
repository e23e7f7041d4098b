"""The CCC step in torch, batched and differentiable. `c5.ccc` is the same in NumPy; a test compares the two."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from c5.ccc import padded
from c5.histograms import Geometry, Grid
from c5.training.network import Emitted


class Located(NamedTuple):
    illuminant: Tensor  # (batch, 3), unit RGB
    log_heat: Tensor  # (batch, n, n), the logarithm of P


class Locator(nn.Module):
    """Eqs. 4 to 7 on a grid: an emitted model and the histograms it is for, to an illuminant."""

    u: Tensor
    v: Tensor

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.grid = grid
        self.register_buffer("u", torch.tensor(grid.u, dtype=torch.float32), persistent=False)
        self.register_buffer("v", torch.tensor(grid.v, dtype=torch.float32), persistent=False)

    def forward(self, emitted: Emitted, histograms: Tensor) -> Located:
        """For a batch of histograms in which the light is searched for, one for each filter."""
        n = self.grid.bins
        published = self.grid.geometry is Geometry.PUBLISHED
        size = (n, n) if published else padded(n)
        spectrum = torch.fft.rfft2(histograms, s=size) * torch.fft.rfft2(emitted.filters, s=size)
        scores = torch.fft.irfft2(spectrum.sum(dim=1), s=size)
        if not published:
            scores = scores[:, n // 2 : n // 2 + n, n // 2 : n // 2 + n]
        if emitted.gain is not None:
            scores = scores * emitted.gain
        scores = scores + emitted.bias
        if published:
            scores = scores.clamp(-100, 100)
        log_heat = functional.log_softmax(scores.flatten(1), dim=1).reshape(-1, n, n)
        heat = log_heat.exp()
        u, v = heat.sum(dim=1) @ self.u, heat.sum(dim=2) @ self.v
        rgb = torch.stack([(-u).exp(), torch.ones_like(u), (-v).exp()], dim=1)
        return Located(functional.normalize(rgb, dim=1), log_heat)

    def uncertainty(self, located: Located) -> Tensor:
        """(batch,) degrees: the mean angle between the illuminants and those of their heat maps."""
        v, u = torch.meshgrid(self.v, self.u, indexing="ij")
        rgb = functional.normalize(torch.stack([(-u).exp(), torch.ones_like(u), (-v).exp()], dim=-1), dim=-1)
        chords = (rgb.reshape(1, -1, 3) - located.illuminant[:, None]).norm(dim=-1)  # exact where cosines are not
        return torch.rad2deg((2 * (chords / 2).arcsin() * located.log_heat.exp().flatten(1)).sum(dim=1))
