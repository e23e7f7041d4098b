"""The models published with the paper, read from their state dicts into the network of this package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from c5.errors import ParameterError, ReadError
from c5.histograms import Grid
from c5.io.readers import naming
from c5.training.config import NetworkConfig, RollKind
from c5.training.network import SeparateNetwork
from c5.training.tensors import load_tensors, load_weights, read_file
from c5.words import first_line

# Their names of layers, and ours.
NAMES = [
    (r"^encoder\.encoders\.(\d+)\.(\d+)\.double_conv_1\.conv\.", r"encoders.\1.\2.first."),
    (r"^encoder\.encoders\.(\d+)\.(\d+)\.double_conv_2\.conv\.", r"encoders.\1.\2.second."),
    (r"^encoder\.encoders\.(\d+)\.(\d+)\.double_conv_2\.normalization\.", r"encoders.\1.\2.norm."),
    (r"^encoder\.merge_layers\.(\d+)\.(\d+)\.conv\.", r"merges.\1.\2."),
    (r"^bottleneck\.double_conv_1\.conv\.", "head.bottleneck.0."),
    (r"^bottleneck\.double_conv_2\.conv\.", "head.bottleneck.1."),
    (r"^decoder_B\.", "head.decoders.bias."),
    (r"^decoder_F\.", "head.decoders.filters."),
    (r"^decoder_G\.", "head.decoders.gain."),
    (r"\.decoder\.(\d+)\.double_conv_1\.conv\.", r".firsts.\1."),
    (r"\.decoder\.(\d+)\.double_conv_2\.conv\.", r".seconds.\1."),
    (r"\.final_block\.conv\.", ".last."),
]


def read_published(path: str | Path, bins: int = 64) -> SeparateNetwork:
    """The network in a published .pth file. Only tensors are read from it: nothing in it is executed."""
    path = Path(path)
    with naming(path):
        data = read_file(path)
        try:
            state = load_tensors(data, "cpu")
        except ReadError as error:
            raise ReadError("not a file of weights, or it holds more than weights; nothing was run") from error
        if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
            raise ReadError("holds no state dict of a published C5 model")
        return _build(state, len(data), bins)


def _build(state: Mapping[Any, Tensor], size: int, bins: int) -> SeparateNetwork:
    ours = {_rename(str(name)): tensor for name, tensor in state.items()}
    slots = {int(found[1]) for name in ours if (found := re.match(r"encoders\.(\d{1,3})\.", name))}
    if "encoders.0.0.first.weight" not in ours:
        raise ReadError("not a published C5 model: it has no multi-encoder network")
    if sum(tensor.numel() for tensor in ours.values()) > size:  # some repeat what they hold
        raise ReadError("it claims to hold more weights than it has bytes; download it again")
    if not all(tensor.isfinite().all() for tensor in ours.values()):
        raise ReadError("holds numbers that are not finite; download it again")
    last, firsts = "head.decoders.filters.last.weight", [f"encoders.0.{level}.first.weight" for level in range(4)]
    try:
        if not all(name in ours and ours[name].ndim for name in (last, *firsts)):
            raise ReadError("some are missing")
        if 9 * max(ours[name].shape[0] for name in firsts) ** 2 > size:  # torch would not even count them
            raise ReadError("they are fewer than its widths need")
        config = NetworkConfig(
            Grid.published(bins),
            kind=RollKind.SEPARATE,
            widths=tuple(ours[name].shape[0] for name in firsts),
            gain=any(name.startswith("head.decoders.gain.") for name in ours),
            gradient=ours[last].shape[0] == 2,
            n_images=len(slots),
        )
        with torch.device("meta"):  # which takes no memory
            needed = sum(tensor.numel() for tensor in SeparateNetwork(config).state_dict().values())
        if needed > size:
            raise ReadError("they are fewer than its widths need")
        network = SeparateNetwork(config)
        load_weights(network, _side_by_side(ours, len(slots)))
    except (ParameterError, ReadError) as error:
        reason = first_line(error)
        raise ReadError(f"its layers do not fit the published architecture: {reason}; download it again") from error
    return network.eval()


def _side_by_side(state: Mapping[str, Tensor], encoders: int) -> dict[str, Tensor]:
    """The weights with those of each encoder after those of the one before it."""
    own = re.compile(r"(encoders|merges)\.0\.")
    others = re.compile(r"(encoders|merges)\.[1-9]")
    stacked = {name: tensor for name, tensor in state.items() if not others.match(name)}
    for name in filter(own.match, list(stacked)):
        names = [own.sub(rf"\1.{slot}.", name) for slot in range(encoders)]
        parts = [state[each] for each in names if each in state]
        if len({part.shape for part in parts}) > 1 or len(parts) < encoders:
            raise ReadError(f"the encoders have other {name}")
        stacked[own.sub(r"\1.", name)] = torch.cat(parts) if parts[0].ndim else parts[0]
        del stacked[name]
    return stacked


def _rename(name: str) -> str:
    for pattern, replacement in NAMES:
        name = re.sub(pattern, replacement, name)
    return name
