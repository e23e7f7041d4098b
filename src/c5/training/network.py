"""The hypernetwork (Sec. 3.1): histograms of a query and of a camera roll in, filters and bias of a CCC model out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from c5.histograms import Geometry
from c5.training.config import NetworkConfig, RollKind, join_grids

SLOPE = 0.01  # of the leaky rectifiers


class Emitted(NamedTuple):
    """The parameters of one CCC model for each query."""

    filters: Tensor  # F, (batch, channels, n, n)
    bias: Tensor  # B, (batch, n, n)
    gain: Tensor | None  # G, (batch, n, n)


class Convolution(nn.Conv2d):
    """3x3 that keeps the size; beyond the edges is zero, or the edge repeated as in the published models."""

    def __init__(self, inputs: int, outputs: int, config: NetworkConfig) -> None:
        mode: Literal["replicate", "zeros"] = "replicate" if config.kind is RollKind.SEPARATE else "zeros"
        super().__init__(inputs, outputs, kernel_size=3, padding=1, padding_mode=mode)


class EncoderBlock(nn.Module):
    """Two convolutions, then 2x2 max pooling."""

    def __init__(self, inputs: int, outputs: int, config: NetworkConfig, *, normalise: bool) -> None:
        super().__init__()
        self.first = Convolution(inputs, outputs, config)
        self.second = Convolution(outputs, outputs, config)
        self.norm = nn.BatchNorm2d(outputs) if normalise else nn.Identity()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The activations before and after pooling."""
        x = functional.leaky_relu(self.first(x), SLOPE)
        x = functional.leaky_relu(self.norm(self.second(x)), SLOPE)
        return x, functional.max_pool2d(x, 2)


def encoder_blocks(config: NetworkConfig) -> nn.ModuleList:
    inputs = [1 + config.gradient + 2 * config.coordinates, *config.widths[:-1]]
    return nn.ModuleList(
        EncoderBlock(i, o, config, normalise=level % 2 == 0)
        for level, (i, o) in enumerate(zip(inputs, config.widths, strict=True))
    )


def merges(config: NetworkConfig, count: int) -> nn.ModuleList:
    """1x1 convolutions that join an encoder's own features and the pooled ones."""
    return nn.ModuleList(nn.Conv2d(2 * width, width, kernel_size=1) for width in config.widths[:count])


class Upsample(nn.Module):
    """Twofold bilinear upsampling with aligned corners, as two products with a fixed matrix.

    Unlike the library's own it has a gradient that is the same in every run on a GPU.
    """

    weights: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        position = torch.linspace(0, size - 1, 2 * size)
        distance = (position[:, None] - torch.arange(size)).abs()
        self.register_buffer("weights", (1 - distance).clamp(min=0), persistent=False)  # (2 size, size)

    def forward(self, x: Tensor) -> Tensor:
        return self.weights @ x @ self.weights.T


class Decoder(nn.Module):
    """Latent features and the query's skips to one map of the CCC model."""

    def __init__(self, outputs: int, config: NetworkConfig) -> None:
        super().__init__()
        levels = list(reversed(config.widths))  # deepest first
        after = [*levels[1:], max(1, levels[-1] // 2)]
        self.upsamples = nn.ModuleList(Upsample(config.bins >> (len(levels) - i)) for i in range(len(levels)))
        self.firsts = nn.ModuleList(Convolution(2 * width, width, config) for width in levels)
        self.seconds = nn.ModuleList(Convolution(w, o, config) for w, o in zip(levels, after, strict=True))
        self.last = Convolution(after[-1], outputs, config)

    def forward(self, x: Tensor, skips: list[Tensor]) -> Tensor:
        for upsample, first, second, skip in zip(
            self.upsamples, self.firsts, self.seconds, reversed(skips), strict=True
        ):
            x = torch.cat([skip, upsample(x)], dim=1)
            x = functional.leaky_relu(first(x), SLOPE)
            x = functional.leaky_relu(functional.instance_norm(second(x)), SLOPE)
        return self.last(x)  # type: ignore[no-any-return]


class Head(nn.Module):
    """Latent features to filters, bias and gain."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.widths[-1]
        self.bottleneck = nn.ModuleList(Convolution(width, width, config) for _ in range(2))
        outputs = {"filters": 1 + config.gradient, "bias": 1} | ({"gain": 1} if config.gain else {})
        self.outputs = list(outputs.values())
        if config.one_decoder:
            self.decoders = nn.ModuleDict({"all": Decoder(sum(self.outputs), config)})
        else:
            self.decoders = nn.ModuleDict({name: Decoder(count, config) for name, count in outputs.items()})
        self.gradient = config.gradient

    def forward(self, latent: Tensor, skips: list[Tensor]) -> Emitted:
        for convolution in self.bottleneck:
            latent = functional.leaky_relu(convolution(latent), SLOPE)
        maps = torch.cat([decoder(latent, skips) for decoder in self.decoders.values()], dim=1)
        filters, bias, *gain = torch.split(maps, self.outputs, dim=1)
        if not self.gradient:  # its filter is zero
            filters = torch.cat([filters, torch.zeros_like(filters)], dim=1)
        return Emitted(filters, bias[:, 0], gain[0][:, 0] if gain else None)


class Channels(nn.Module):
    """What a network sees of (k, 2, n, n) histograms, with the bins' coordinates in [0, 1] (CoordConv)."""

    coordinates: Tensor

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        along = torch.linspace(0, 1, config.bins)
        v, u = torch.meshgrid(along, along, indexing="ij")
        if config.geometry is Geometry.PUBLISHED:
            v = v.flip(0)
        self.register_buffer("coordinates", torch.stack([u, v])[None], persistent=False)

    def forward(self, histograms: Tensor) -> Tensor:
        x = histograms
        if not self.config.gradient:
            x = x[:, :1]
        if self.config.coordinates:
            x = torch.cat([x, self.coordinates.expand(x.shape[0], -1, -1, -1)], dim=1)
        return x


class ProfileNetwork(nn.Module):
    """The roll's features are pooled on their own, one set for each level: the profile. The query then meets them."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.grid = config.grid
        self.channels = Channels(config)
        self.roll = encoder_blocks(config)
        self.query = encoder_blocks(config)
        self.merges = merges(config, len(config.widths))
        self.head = Head(config)

    def encode(self, histograms: Tensor) -> list[Tensor]:
        """Features of images (k, 2, n, n) at each level, (k, c, n/2, n/2) and on, each image by itself."""
        x, features = self.channels(histograms), []
        for block in self.roll:
            _, x = block(x)
            features.append(x)
        return features

    def emit(self, query: Tensor, profile: list[Tensor]) -> Emitted:
        """The CCC models of queries (batch, 2, n, n), with profiles of their cameras (batch or 1, c, ...)."""
        x, skips = self.channels(query), []
        for block, merge, pooled in zip(self.query, self.merges, profile, strict=True):
            skip, x = block(x)
            skips.append(skip)
            x = functional.leaky_relu(merge(torch.cat([x, pooled.expand(x.shape[0], -1, -1, -1)], dim=1)), SLOPE)
        return self.head(x, skips)  # type: ignore[no-any-return]

    def profile(self, roll: Tensor, present: Tensor) -> list[Tensor]:
        """Pooled features (batch, c, ...) of rolls (cameras, k, 2, n, n), for (batch,) queries, each camera's in
        turn; where `present` is 0 instead of 1 a query has no roll."""
        cameras, images = roll.shape[:2]
        return [
            features.reshape(cameras, images, *features.shape[1:])
            .amax(dim=1)
            .repeat_interleave(len(present) // cameras, dim=0)
            * present[:, None, None, None]
            for features in self.encode(roll.flatten(0, 1))
        ]

    def forward(self, query: Tensor, roll: Tensor, present: Tensor) -> Emitted:
        """Queries (batch, 2, n, n); rolls and `present` as for `profile`."""
        return self.emit(query, self.profile(roll, present))

    def each(self, query: Tensor, roll: Tensor, present: Tensor) -> list[tuple[Emitted, Tensor]]:
        """What every network in this one emits, and the histograms that is for: it is the only one."""
        return [(self(query, roll, present), query)]


class TeamNetwork(nn.Module):
    """Several profile networks, each of which looks at its own histograms; a query's CCC model is the mean of theirs.

    The scores of a CCC model are linear in its filters and bias, so that the mean averages the logarithms of the heat
    maps: what one rules out is out.
    """

    def __init__(self, configs: Sequence[NetworkConfig]) -> None:
        super().__init__()
        self.config = configs[0]
        self.grid = join_grids(configs)
        self.members = nn.ModuleList(ProfileNetwork(config) for config in configs)
        self.seen = [self.grid.powers.index(config.power) for config in configs]  # which pixel histogram, by each

    def _members(self) -> Iterator[tuple[ProfileNetwork, int]]:
        return zip(cast(list[ProfileNetwork], list(self.members)), self.seen, strict=True)

    def encode(self, histograms: Tensor) -> list[Tensor]:
        """Features at each level, the members' side by side as channels."""
        levels = zip(*(member.encode(_pick(histograms, seen)) for member, seen in self._members()), strict=True)
        return [torch.cat(level, dim=1) for level in levels]

    def emit(self, query: Tensor, profile: list[Tensor]) -> Emitted:
        widths = zip(*(member.config.widths for member, _ in self._members()), strict=True)
        parts = zip(
            *(torch.split(level, list(w), dim=1) for level, w in zip(profile, widths, strict=True)), strict=True
        )
        pairs = zip(self._members(), parts, strict=True)
        return self._mean([member.emit(_pick(query, seen), list(part)) for (member, seen), part in pairs])

    def forward(self, query: Tensor, roll: Tensor, present: Tensor) -> Emitted:
        return self._mean([emitted for emitted, _ in self.each(query, roll, present)])

    def each(self, query: Tensor, roll: Tensor, present: Tensor) -> list[tuple[Emitted, Tensor]]:
        picked = [(member, _pick(query, seen), _pick(roll, seen)) for member, seen in self._members()]
        return [(member(own, others, present), own) for member, own, others in picked]

    def _mean(self, emitted: list[Emitted]) -> Emitted:
        pixels: list[Tensor] = []
        for histogram in range(len(self.grid.powers)):
            own = [one.filters[:, 0] for one, seen in zip(emitted, self.seen, strict=True) if seen == histogram]
            pixels.append(torch.stack(own).sum(dim=0) / len(emitted))
        gradients = torch.stack([one.filters[:, 1] for one in emitted]).mean(dim=0)
        bias = torch.stack([one.bias for one in emitted]).mean(dim=0)
        return Emitted(torch.stack([*pixels, gradients], dim=1), bias, None)


def _pick(histograms: Tensor, index: int) -> Tensor:
    """Of (..., channels, n, n) histograms, one of pixels and that of gradients."""
    if histograms.shape[-3] == 2:
        return histograms
    return torch.stack([histograms[..., index, :, :], histograms[..., -1, :, :]], dim=-3)


class SeparateNetwork(nn.Module):
    """The paper's architecture: m encoders with weights of their own, which exchange their maximum after each block."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.grid = config.grid
        self.channels = Channels(config)
        self.encoders = nn.ModuleList(encoder_blocks(config) for _ in range(config.n_images))
        self.merges = nn.ModuleList(merges(config, len(config.widths) - 1) for _ in range(config.n_images))
        self.head = Head(config)

    def forward(self, query: Tensor, roll: Tensor, present: Tensor | None = None) -> Emitted:
        """Queries (batch, 2, n, n) and their rolls (batch, m - 1, 2, n, n)."""
        inputs = [self.channels(query), *(self.channels(image) for image in roll.unbind(dim=1))]
        skips = []
        for level in range(len(self.config.widths)):
            pairs = [encoder[level](x) for encoder, x in zip(self.encoders, inputs, strict=True)]  # type: ignore[index]
            skips.append(pairs[0][0])
            pooled = torch.stack([x for _, x in pairs]).amax(dim=0)
            if level < len(self.config.widths) - 1:
                inputs = [
                    functional.leaky_relu(merge[level](torch.cat([x, pooled], dim=1)), SLOPE)  # type: ignore[index]
                    for merge, (_, x) in zip(self.merges, pairs, strict=True)
                ]
        return self.head(pooled, skips)  # type: ignore[no-any-return]

    def each(self, query: Tensor, roll: Tensor, present: Tensor | None = None) -> list[tuple[Emitted, Tensor]]:
        return [(self(query, roll), query)]


Network = ProfileNetwork | TeamNetwork | SeparateNetwork


def build_network(*configs: NetworkConfig) -> Network:
    if len(configs) > 1:
        return TeamNetwork(configs)
    return (SeparateNetwork if configs[0].kind is RollKind.SEPARATE else ProfileNetwork)(configs[0])
