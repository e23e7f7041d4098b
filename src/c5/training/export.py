"""A trained network to a model file, checked against torch before it is written."""

from __future__ import annotations

import io
import math
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from c5.color import Float64s, angular_error
from c5.errors import C5Error
from c5.histograms import Histograms
from c5.model import Model
from c5.model_file import ModelFile, write_model
from c5.training.ccc import Locator
from c5.training.network import Emitted, Network, SeparateNetwork

LARGE = 64
"""Arrays of at least this many numbers are stored in half precision."""
ROUNDING_DEG = 0.2
"""How much that may change on random histograms, whose heat maps spread far more than those of images."""
OWN_ROUNDING = 5
"""How many times the difference that rounding makes in torch itself the exported graphs may add to that."""


class ExportError(C5Error):
    """The exported graphs do not do what the network does."""


class _Graph(nn.Module):
    """One of the things that a network does, as a module: torch exports only modules."""

    def __init__(self, network: Network, run: Callable[..., Iterable[Tensor | None]]) -> None:
        super().__init__()
        self.network = network
        self.run = run

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        return [maps for maps in self.run(*inputs) if maps is not None]


def export_model(
    network: Network,
    path: str | Path,
    *,
    name: str,
    training: Mapping[str, Any],
    errors: Mapping[str, Any] | None = None,
) -> ModelFile:
    """Write a network as a .c5 file, after checking that the file gives the same illuminants."""
    network = network.cpu().eval()
    config = network.config
    n = network.grid.bins
    outputs = ["filters", "bias", *(["gain"] if config.gain else [])]
    query = torch.zeros(1, network.grid.channels, n, n)
    if not isinstance(network, SeparateNetwork):
        with torch.no_grad():
            profile = network.encode(query)

        def emit(query: Tensor, *profile: Tensor) -> Emitted:
            return network.emit(query, list(profile))

        names = [f"profile_{level}" for level in range(len(profile))]
        graphs = {
            "roll": _to_onnx(_Graph(network, network.encode), [query], ["histograms"], names),
            "query": _to_onnx(_Graph(network, emit), [query, *profile], ["query", *names], outputs),
        }
    else:
        others = [torch.zeros(1, config.n_images - 1, network.grid.channels, n, n)] if config.n_images > 1 else []
        names = ["query", "roll"][: 1 + len(others)]
        graphs = {"query": _to_onnx(_Graph(network, network), [query, *others], names, outputs)}
    file = ModelFile(
        name=name,
        kind=config.kind.value,
        grid=network.grid,
        n_images=config.n_images,
        graphs=graphs,
        training=dict(training),
        errors=dict(errors or {}),
    )
    check_export(network, file)
    if not isinstance(network, SeparateNetwork):  # published weights stay as they are
        file = replace(file, graphs={name: _halve(graph) for name, graph in graphs.items()})
        check_export(network, file, ROUNDING_DEG)
    write_model(path, file)
    return file


def check_export(network: Network, file: ModelFile, tolerance_deg: float = 0.02) -> None:
    """Random histograms through torch and through the file must give the same light.

    Networks that have hardly been trained normalize maps without structure, so that the last digits of their input move
    the light by up to a tenth of a degree. How far is measured, and allowed.
    """
    config, model = network.config, Model(file)
    rng = np.random.default_rng(0)
    count = config.n_images - 1 if isinstance(network, SeparateNetwork) else 3
    masses = rng.random((1 + count, *network.grid.shape)) ** 40
    stacks = np.sqrt(masses / masses.sum(axis=(2, 3), keepdims=True)).astype(np.float32)
    query, *others = (Histograms(network.grid, stack) for stack in stacks)
    estimate = model.estimate_histogram(query, model.calibrate_histograms(others))
    searched = torch.as_tensor(query.searched[None])

    def locate(disturbed: float = 0.0) -> Float64s:
        given = [each.seen * (1 + disturbed * rng.standard_normal(each.seen.shape)) for each in (query, *others)]
        first, *rest = (torch.as_tensor(seen, dtype=torch.float32)[None] for seen in given)
        with torch.no_grad():
            emitted = network(first, torch.stack(rest, dim=1) if rest else None, torch.ones(1))
            found: Tensor = Locator(network.grid)(emitted, searched).illuminant[0]
        return np.asarray(found, np.float64)

    expected = locate()
    own = max(float(angular_error(locate(disturbed=1e-7), expected)) for _ in range(5))
    difference = angular_error(estimate.illuminant, expected)
    if not difference < tolerance_deg + OWN_ROUNDING * own:
        raise ExportError(f"the exported model differs from the network by {difference:.3f} degrees; nothing written")


_ONE_AT_A_TIME = threading.Lock()
"""The exporter and warnings keep state for the whole process, but folds are trained in threads."""


def _to_onnx(module: nn.Module, inputs: Sequence[Tensor], names: list[str], outputs: list[str]) -> bytes:
    buffer = io.BytesIO()
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            tuple(inputs),
            buffer,  # type: ignore[arg-type]
            input_names=names,
            output_names=outputs,
            opset_version=17,
            dynamo=False,
        )
    return buffer.getvalue()


def _halve(graph: bytes) -> bytes:
    """The graph with its weights in half precision, and so of half the size; it computes in single precision."""
    model = onnx.load_model_from_string(graph)
    casts = []
    for weights in model.graph.initializer:
        if weights.data_type == onnx.TensorProto.FLOAT and math.prod(weights.dims) >= LARGE:
            name, values = weights.name, onnx.numpy_helper.to_array(weights)
            weights.CopyFrom(onnx.numpy_helper.from_array(values.astype(np.float16), f"{name}_half"))
            casts.append(onnx.helper.make_node("Cast", [f"{name}_half"], [name], to=onnx.TensorProto.FLOAT))
    for cast in reversed(casts):
        model.graph.node.insert(0, cast)
    return bytes(model.SerializeToString())
