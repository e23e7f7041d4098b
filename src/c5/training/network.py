"""The hypernetwork (Sec. 3.1): histograms of a query and of a camera roll in, filters and bias of a CCC model out."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from c5 import plugins
from c5.errors import ParameterError
from c5.histograms import Geometry
from c5.training.config import NetworkConfig, RollKind

SLOPE = 0.01  # of the leaky rectifiers
HAS_TRITON = find_spec("triton") is not None
"""torch brings it along where it supports the GPU with it."""


class Emitted(NamedTuple):
    """The parameters of one CCC model for each query."""

    filters: Tensor  # F, (batch, histograms, n, n)
    bias: Tensor  # B, (batch, n, n)
    gain: Tensor | None  # G, (batch, n, n)


class RepeatEdges(torch.autograd.Function):
    """The outermost rows and columns once more. Unlike torch's own, it ends in the layout of the fast convolutions, and
    its gradient is the same in every run on a GPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        channels_last = x.permute(0, 2, 3, 1)[None]
        return functional.pad(channels_last, (0, 0, 1, 1, 1, 1), mode="replicate")[0].permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.clone(memory_format=torch.channels_last)
        for dim in (-1, -2):
            inner = gradient.narrow(dim, 1, gradient.shape[dim] - 2)
            for end in (0, -1):  # the same row twice where only one is kept
                inner.select(dim, end).add_(gradient.select(dim, end))
            gradient = inner
        return gradient


class Convolution(nn.Conv2d):
    """3x3, keeping the size; zero beyond the edges, or the edge repeated as in the published models. Encoders that
    stand side by side are groups of channels, each with its own inputs, outputs and weights."""

    def __init__(self, inputs: int, outputs: int, config: NetworkConfig, encoders: int = 1) -> None:
        mode: Literal["replicate", "zeros"] = "replicate" if config.kind is RollKind.SEPARATE else "zeros"
        super().__init__(encoders * inputs, encoders * outputs, 3, padding=1, padding_mode=mode, groups=encoders)

    def forward(self, x: Tensor, slope: float = 1.0) -> Tensor:
        """With the leaky rectifier that follows, unless `slope` is 1."""
        if self.padding_mode == "replicate" and HAS_TRITON and x.is_cuda and torch.is_autocast_enabled("cuda"):
            from c5.training.kernels import convolve

            assert self.bias is not None
            return convolve(x.to(torch.get_autocast_dtype("cuda")), self.weight, self.bias, self.groups, slope)
        if self.padding_mode == "zeros" or not (self.training or x.is_cuda):  # as ONNX can say it
            y = super().forward(x)
        else:
            y = convolve_groups(RepeatEdges.apply(x), self)  # type: ignore[no-untyped-call]
        return y if slope == 1 else functional.leaky_relu(y, slope)


def convolve_groups(x: Tensor, layer: nn.Conv2d) -> Tensor:
    """The convolution of a layer with groups, without padding. A GPU is faster without groups."""
    weight, groups = layer.weight, layer.groups
    if x.is_cuda and groups > 1:
        weight, groups = fill_between(weight, groups), 1
    return functional.conv2d(x, weight, layer.bias, groups=groups)


def fill_between(weight: Tensor, groups: int) -> Tensor:
    """The weights of groups (outputs, inputs of a group, h, w) as those of one convolution, zero between groups."""
    own = torch.eye(groups, device=weight.device)[:, None, :, None, None, None]
    return (weight.view(groups, -1, 1, *weight.shape[1:]) * own).flatten(2, 3).flatten(0, 1)


class EncoderBlock(nn.Module):
    """Two convolutions, then 2x2 max pooling."""

    def __init__(self, inputs: int, outputs: int, config: NetworkConfig, *, normalize: bool, encoders: int = 1) -> None:
        super().__init__()
        self.first = Convolution(inputs, outputs, config, encoders)
        self.second = Convolution(outputs, outputs, config, encoders)
        self.norm = nn.BatchNorm2d(encoders * outputs) if normalize else nn.Identity()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The activations before and after pooling."""
        x = self.first(x, SLOPE)
        x = functional.leaky_relu(self.norm(self.second(x)), SLOPE)
        return x, functional.max_pool2d(x, 2)


def encoder_blocks(config: NetworkConfig, encoders: int = 1) -> nn.ModuleList:
    inputs = [1 + config.gradient + 2 * config.coordinates, *config.widths[:-1]]
    return nn.ModuleList(
        EncoderBlock(i, o, config, normalize=level % 2 == 0, encoders=encoders)
        for level, (i, o) in enumerate(zip(inputs, config.widths, strict=True))
    )


def merges(widths: Sequence[int], encoders: int = 1) -> nn.ModuleList:
    """1x1 convolutions that join an encoder's own features and the pooled ones."""
    return nn.ModuleList(
        nn.Conv2d(encoders * 2 * width, encoders * width, kernel_size=1, groups=encoders) for width in widths
    )


class Upsample(nn.Module):
    """Twofold bilinear upsampling with aligned corners, as two products with a fixed matrix.

    Unlike torch's own, it has a gradient that is the same in every run on a GPU.
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
        self.upsamples = nn.ModuleList(Upsample(config.grid.bins >> (len(levels) - i)) for i in range(len(levels)))
        self.firsts = nn.ModuleList(Convolution(2 * width, width, config) for width in levels)
        self.seconds = nn.ModuleList(Convolution(w, o, config) for w, o in zip(levels, after, strict=True))
        self.last = Convolution(after[-1], outputs, config)

    def forward(self, x: Tensor, skips: list[Tensor]) -> Tensor:
        for upsample, first, second, skip in zip(
            self.upsamples, self.firsts, self.seconds, reversed(skips), strict=True
        ):
            x = torch.cat([skip, upsample(x)], dim=1)
            x = first(x, SLOPE)
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

    def forward(self, latent: Tensor, skips: list[Tensor]) -> Emitted:
        for convolution in self.bottleneck:
            latent = convolution(latent, SLOPE)
        maps = torch.cat([decoder(latent, skips) for decoder in self.decoders.values()], dim=1)
        filters, bias, *gain = torch.split(maps, self.outputs, dim=1)
        return Emitted(filters, bias[:, 0], gain[0][:, 0] if gain else None)


class Sight(nn.Module):
    """Which of a grid's histograms a network looks at, and where its filters belong among those of the grid."""

    coordinates: Tensor

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        grid = config.grid
        self.channels = grid.channels
        self.index = [grid.powers.index(config.power), *([grid.channels - 1] if config.gradient else [])]
        self.with_coordinates = config.coordinates
        along = torch.linspace(0, 1, grid.bins)
        v, u = torch.meshgrid(along, along, indexing="ij")
        if grid.geometry is Geometry.PUBLISHED:
            v = v.flip(0)
        self.register_buffer("coordinates", torch.stack([u, v])[None], persistent=False)

    def pick(self, histograms: Tensor) -> Tensor:
        """Those of the grid's histograms (..., channels, n, n) that the network looks at."""
        if self.index == list(range(self.channels)):
            return histograms
        return torch.stack([histograms[..., i, :, :] for i in self.index], dim=-3)

    def forward(self, histograms: Tensor) -> Tensor:
        """The input of the encoders (k, ...), with the bins' coordinates in [0, 1] (CoordConv)."""
        x = self.pick(histograms)
        if self.with_coordinates:
            x = torch.cat([x, self.coordinates.expand(x.shape[0], -1, -1, -1)], dim=1)
        return x

    def place(self, emitted: Emitted) -> Emitted:
        """The same CCC model with a filter for each of the grid's histograms: zero where the network does not look."""
        if self.index == list(range(self.channels)):
            return emitted
        own = dict(zip(self.index, emitted.filters.unbind(dim=1), strict=True))
        zero = torch.zeros_like(emitted.bias)
        return emitted._replace(filters=torch.stack([own.get(i, zero) for i in range(self.channels)], dim=1))


class Lesson(NamedTuple):
    """What one network is to learn from a batch: the model it emitted, and the histograms that model is for."""

    emitted: Emitted
    histograms: Tensor  # (batch, histograms, n, n)


class ProfileNetwork(nn.Module):
    """The roll's features are pooled on their own, one set per level: the profile. It is then joined to the query."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.grid = config.grid
        self.sight = Sight(config)
        self.roll = encoder_blocks(config)
        self.query = encoder_blocks(config)
        self.merges = merges(config.widths)
        self.head = Head(config)

    def encode(self, histograms: Tensor) -> list[Tensor]:
        """Features of images (k, channels, n, n) at each level, (k, c, n/2, n/2) and so on, each image by itself."""
        x, features = self.sight(histograms), []
        for block in self.roll:
            _, x = block(x)
            features.append(x)
        return features

    def emit(self, query: Tensor, profile: list[Tensor]) -> Emitted:
        """The CCC models of queries (batch, channels, n, n), with profiles of their cameras (batch or 1, c, ...)."""
        return self.sight.place(self._emit(query, profile))

    def _emit(self, query: Tensor, profile: list[Tensor]) -> Emitted:
        x, skips = self.sight(query), []
        for block, merge, pooled in zip(self.query, self.merges, profile, strict=True):
            skip, x = block(x)
            skips.append(skip)
            x = functional.leaky_relu(merge(torch.cat([x, pooled.expand(x.shape[0], -1, -1, -1)], dim=1)), SLOPE)
        return self.head(x, skips)  # type: ignore[no-any-return]

    def profile(self, roll: Tensor, present: Tensor) -> list[Tensor]:
        """Pooled features (batch, c, ...) of rolls (cameras, k, channels, n, n), for (batch,) queries, those of one
        camera after the other; where `present` is 0 instead of 1 a query has no roll."""
        cameras, images = roll.shape[:2]
        return [
            features.reshape(cameras, images, *features.shape[1:])
            .amax(dim=1)
            .repeat_interleave(len(present) // cameras, dim=0)
            * present[:, None, None, None]
            for features in self.encode(roll.flatten(0, 1))
        ]

    def forward(self, query: Tensor, roll: Tensor, present: Tensor) -> Emitted:
        """Queries (batch, channels, n, n); rolls and `present` as for `profile`."""
        return self.emit(query, self.profile(roll, present))

    def lessons(self, query: Tensor, roll: Tensor, present: Tensor) -> list[Lesson]:
        """The same for training: one lesson for each network in this one."""
        return [Lesson(self._emit(query, self.profile(roll, present)), self.sight.pick(query))]


class TeamNetwork(nn.Module):
    """Several profile networks, each of which looks at its own histograms; a query's CCC model is the mean of theirs.

    The scores of a CCC model are linear in its filters and bias, so the mean averages the logarithms of the heat maps:
    what one member rules out is out.
    """

    def __init__(self, configs: Sequence[NetworkConfig]) -> None:
        super().__init__()
        self.config = configs[0]
        self.grid = configs[0].grid
        self.members = nn.ModuleList(build_network(config) for config in configs)

    @property
    def _members(self) -> list[ProfileNetwork]:
        return cast(list[ProfileNetwork], list(self.members))

    def encode(self, histograms: Tensor) -> list[Tensor]:
        """Features at each level, the members' side by side as channels."""
        levels = zip(*(member.encode(histograms) for member in self._members), strict=True)
        return [torch.cat(level, dim=1) for level in levels]

    def emit(self, query: Tensor, profile: list[Tensor]) -> Emitted:
        widths = zip(*(member.config.widths for member in self._members), strict=True)
        parts = zip(
            *(torch.split(level, list(w), dim=1) for level, w in zip(profile, widths, strict=True)), strict=True
        )
        return _mean([member.emit(query, list(part)) for member, part in zip(self._members, parts, strict=True)])

    def forward(self, query: Tensor, roll: Tensor, present: Tensor) -> Emitted:
        return _mean([member(query, roll, present) for member in self._members])

    def lessons(self, query: Tensor, roll: Tensor, present: Tensor) -> list[Lesson]:
        return [lesson for member in self._members for lesson in member.lessons(query, roll, present)]


def _mean(emitted: Sequence[Emitted]) -> Emitted:
    filters, bias = (
        torch.stack(maps).mean(dim=0) for maps in zip(*((e.filters, e.bias) for e in emitted), strict=True)
    )
    return Emitted(filters, bias, None)


class SeparateNetwork(nn.Module):
    """The paper's architecture: m encoders with weights of their own, which exchange their maximum after each block.

    They stand side by side in the channels, the query's first. A single encoder has nothing to exchange.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.grid = config.grid
        self.sight = Sight(config)
        self.encoders = encoder_blocks(config, config.n_images)
        self.merges = merges(config.widths[:-1] if config.n_images > 1 else (), config.n_images)
        self.head = Head(config)

    def forward(self, query: Tensor, roll: Tensor | None = None, present: Tensor | None = None) -> Emitted:
        """Queries (batch, channels, n, n) and their rolls (batch, m - 1, channels, n, n), none if m = 1."""
        return self.sight.place(self._emit(query, roll))

    def _emit(self, query: Tensor, roll: Tensor | None) -> Emitted:
        m = self.config.n_images
        others = () if roll is None else roll.unbind(dim=1)
        x = torch.cat([self.sight(image) for image in (query, *others)], dim=1)
        skips = []
        for block, merge in zip_longest(self.encoders, self.merges):
            skip, x = block(x)
            skips.append(skip.unflatten(1, (m, -1))[:, 0])
            each = x.permute(0, 2, 3, 1).unflatten(3, (m, -1))  # (batch, h, w, m, c), as they lie in memory
            pooled = each.amax(dim=3, keepdim=True)
            if merge is not None:
                both = torch.cat([each, pooled.expand_as(each)], dim=4).flatten(3).permute(0, 3, 1, 2)
                x = functional.leaky_relu(convolve_groups(both, cast(nn.Conv2d, merge)), SLOPE)
        return self.head(pooled[:, :, :, 0].permute(0, 3, 1, 2), skips)  # type: ignore[no-any-return]

    def lessons(self, query: Tensor, roll: Tensor, present: Tensor | None = None) -> list[Lesson]:
        return [Lesson(self._emit(query, roll), self.sight.pick(query))]


Network = ProfileNetwork | TeamNetwork | SeparateNetwork


def _find_architecture(name: str) -> Any:
    if ":" in name:
        return plugins.load(name)
    found = plugins.find(plugins.NETWORKS)
    if name not in found:
        raise ParameterError(f"no network is called {name!r}; there are {', '.join(found) or 'none'}, and module:Class")
    return found[name].load()


def build_network(*configs: NetworkConfig) -> Network:
    """The network of a configuration, or the team of several. A custom network must offer what a `ProfileNetwork` does:
    `config`, `grid`, `encode`, `emit`, `forward` and `lessons`."""
    if len(configs) > 1:
        return TeamNetwork(configs)
    (config,) = configs
    if config.architecture:
        return cast(Network, _find_architecture(config.architecture)(config))
    network: Network = (SeparateNetwork if config.kind is RollKind.SEPARATE else ProfileNetwork)(config)
    if config.he_normal:
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
                nn.init.zeros_(cast(Tensor, module.bias))
    return network
