"""A model with the profile of one camera baked in, as a short list of layers.

With a profile, everything from the roll is constant: its encoder is gone, and what its features add to a layer of the
query becomes a map of constants. C code is made from the list; ONNX graphs are folded in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from c5.color import Float32s
from c5.errors import ModelFileError, ParameterError, ReadError
from c5.histograms import Geometry, Grid
from c5.io.readers import decoding
from c5.model import Model, Profile

REMEDY = "train it again"
QUERY = "histograms"
"""The name of the first tensor: what the network sees of a frame."""


@dataclass(frozen=True)
class Tensor:
    """Maps between layers."""

    name: str
    channels: int
    size: int  # rows, and columns

    @property
    def numbers(self) -> int:
        return self.channels * self.size * self.size


@dataclass(frozen=True, eq=False)
class Convolution:
    """A sum of convolutions of one or several tensors, 3x3 with zeros beyond the edges, or 1x1."""

    inputs: tuple[Tensor, ...]
    output: Tensor
    weights: Float32s  # (outputs, all inputs, side, side)
    bias: Float32s  # (outputs,), or (outputs, n, n): constants for each place
    slope: float = 1.0  # of the leaky rectifier that follows; 1 where none does

    @property
    def multiply_adds(self) -> int:
        return int(np.prod(self.weights.shape)) * self.output.size**2

    def quantize(self) -> tuple[NDArray[np.int8], Float32s]:
        """The weights in 8 bits, and what one step is for each output."""
        steps = np.maximum(np.abs(self.weights).max(axis=(1, 2, 3)), 1e-12) / 127
        return np.rint(self.weights / steps[:, None, None, None]).astype(np.int8), steps


@dataclass(frozen=True, eq=False)
class Pooling:
    """The largest of each 2x2."""

    inputs: tuple[Tensor]
    output: Tensor
    multiply_adds: int = 0


@dataclass(frozen=True, eq=False)
class Upsampling:
    """Twofold, bilinear, corners on corners."""

    inputs: tuple[Tensor]
    output: Tensor

    @property
    def multiply_adds(self) -> int:
        return 4 * self.output.numbers


@dataclass(frozen=True, eq=False)
class Normalization:
    """Each channel to mean 0 and variance 1 over its places, then the leaky rectifier. In place."""

    inputs: tuple[Tensor]
    output: Tensor
    epsilon: float
    slope: float = 1.0

    @property
    def multiply_adds(self) -> int:
        return 3 * self.output.numbers


Layer = Convolution | Pooling | Upsampling | Normalization


@dataclass(frozen=True)
class Budget:
    """What a query costs on a machine."""

    weights: int  # bytes of weights and other constants, or of the whole graph
    code: int | None  # bytes of code beside them; None where a runtime has it
    memory: int | None  # bytes to work in; None where a runtime decides
    largest: int  # bytes of the largest maps between two layers
    multiply_adds: int  # of the network

    @property
    def cells(self) -> list[str]:
        """The same for a table."""
        sizes = (self.weights, self.code, self.memory, self.largest)
        return [
            *("" if size is None else f"{size / 1000:.0f} KB" for size in sizes),
            f"{self.multiply_adds / 1e6:.1f} M",
        ]


@dataclass(frozen=True, eq=False)
class Folded:
    """The layers from histograms to maps: filters for each of the grid's histograms, bias, and gain if there is one."""

    name: str
    identity: str
    camera: str | None
    grid: Grid
    layers: tuple[Layer, ...]
    gain: bool
    constants: Mapping[str, Float32s] = field(default_factory=dict)
    """Inputs that are the same for every frame, such as the coordinates of bins, by the names of their tensors."""

    @property
    def maps(self) -> Tensor:
        return self.layers[-1].output

    @property
    def multiply_adds(self) -> int:
        return sum(layer.multiply_adds for layer in self.layers)

    @property
    def largest(self) -> int:
        """Bytes of the largest maps between two layers."""
        return max(4 * tensor.numbers for layer in self.layers for tensor in (*layer.inputs, layer.output))

    def cost(self, graph: bytes) -> Budget:
        """What a query costs with a graph for a runtime."""
        return Budget(len(graph), None, None, self.largest, self.multiply_adds)


class Export(NamedTuple):
    """What is to be written."""

    files: list[tuple[Path, bytes]]
    budgets: dict[str, Budget]
    """By the name that a person knows it by: the folder of code, or the file of a graph."""


def fold(model: Model, profile: Profile | None = None) -> Folded:
    """The layers of a model for one camera; without a profile, for frames on their own."""
    if model.file.kind != "profile":
        raise ParameterError(
            f"the model {model.name} looks at query and roll together, so that no profile can be baked in; "
            "train one of kind profile"
        )
    if model.grid.geometry is not Geometry.EXACT:
        raise ParameterError(f"the model {model.name} is of the published geometry; train one of the exact geometry")
    profile = model.pool([]) if profile is None else profile
    model.check_profile(profile)
    load_onnx()  # whose absence is no fault of the network
    try:
        values, nodes = _fold_constants(model, profile)
        return _Reader(model, profile, values).read(nodes)
    except ReadError as error:
        raise ModelFileError(
            f"the network of the model {model.name} has parts that cannot be exported ({error}); export its graph"
        ) from error


def load_onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise ParameterError("exporting needs onnx; run pip install 'c5-awb[export]'") from None
    return onnx


def _fold_constants(model: Model, profile: Profile) -> tuple[dict[str, Any], list[Any]]:
    """Values that are known without a frame, and the nodes that need one."""
    onnx = load_onnx()
    from onnx.reference import ReferenceEvaluator

    with decoding(REMEDY):
        graph = onnx.load_model_from_string(model.file.graphs["query"])
        values = {each.name: onnx.numpy_helper.to_array(each) for each in graph.graph.initializer}
    values |= {f"profile_{level}": features.astype(np.float32) for level, features in enumerate(profile.features)}
    known, folded, left = set(values), [], []
    for node in graph.graph.node:
        if known.issuperset(filter(None, node.input)):
            folded.append(node)
            known |= set(node.output)
        else:
            left.append(node)
    names = [name for node in folded for name in node.output]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in names]
    part = onnx.helper.make_graph(folded, "constants", [], outputs)
    opsets = {each.domain: each.version for each in graph.opset_import}
    with decoding(REMEDY):
        found = ReferenceEvaluator(part, opsets).run(None, values)
    return values | dict(zip(names, found, strict=True)), left


class _Pick(NamedTuple):
    """One of the histograms of the query."""

    channel: int
    channels: int = 1


Part = TypeVar("Part", bound=Tensor | _Pick)


class _Reader:
    """Nodes to layers. A name stands for a tensor, for several side by side, or for constants."""

    def __init__(self, model: Model, profile: Profile, values: Mapping[str, Any]) -> None:
        self.model = model
        self.profile = profile
        self.values = dict(values)
        grid = model.grid
        self.query = Tensor(QUERY, grid.channels, grid.bins)
        self.tensors: dict[str, list[Tensor | _Pick]] = {"query": [self.query]}
        self.constants: dict[str, Float32s] = {}
        self.layers: list[Layer] = []
        self.waiting: dict[str, Any] = {}  # the first of the two products of an upsampling

    def read(self, nodes: list[Any]) -> Folded:
        names = ["filters", "bias", "gain"]
        tail = _find_tail(nodes, names)
        for node in nodes:
            if node.output[0] not in tail:
                if node.op_type not in self._readers:
                    raise ReadError(f"the operator {node.op_type}")
                self._readers[node.op_type](self, node)
        gain = any(name == "gain" for node in nodes for name in node.output)
        self._add_maps([node for node in nodes if node.output[0] in tail], names if gain else names[:2])
        layers = _drop_unused(self.layers)
        used = {tensor.name for layer in layers for tensor in layer.inputs}
        constants = {name: value for name, value in self.constants.items() if name in used}
        model = self.model
        return Folded(model.name, model.identity, self.profile.camera, model.grid, tuple(layers), gain, constants)

    def _one(self, name: str) -> Tensor:
        found = self.tensors.get(name, [])
        if len(found) != 1 or isinstance(found[0], _Pick):
            raise ReadError("one tensor is needed, not a histogram, several or constants")
        return found[0]

    def _constants(self, node: Any, *places: int) -> list[NDArray[Any]]:
        """Inputs of a node that are the same for every frame."""
        names = [node.input[place] if place < len(node.input) else "" for place in places]
        if not all(name in self.values for name in names):
            raise ReadError(f"{node.op_type} with what changes from frame to frame")
        return [self.values[name] for name in names]

    def _put(self, layer: Layer, name: str) -> None:
        self.layers.append(layer)
        self.tensors[name] = [layer.output]

    def _new(self, channels: int, size: int) -> Tensor:
        return Tensor(f"t{len(self.layers)}", channels, size)

    def _read_convolution(self, node: Any) -> None:
        settings = _settings(node)
        weights, bias = self._constants(node, 1, 2)
        tensors = self._parts(node.input[0])
        if weights.ndim != 4 or weights.shape[1] != sum(each.channels for each in tensors) or bias.ndim != 1:
            raise ReadError("a convolution of other channels")
        side = weights.shape[2]
        if weights.shape[2:] not in ((1, 1), (3, 3)) or settings.get("pads", [0] * 4) != [side // 2] * 4:
            raise ReadError(f"a convolution of {side}x{side} with pads {settings.get('pads')}")
        if settings.get("group", 1) != 1 or settings.get("strides", [1, 1]) != [1, 1]:
            raise ReadError("a convolution in groups or strides")
        inputs: list[Tensor] = []
        parts: list[Float32s] = []
        picked = np.zeros((len(weights), self.query.channels, side, side), np.float32)
        constant = bias.astype(np.float64)
        for tensor, own in by_tensor(weights, tensors):
            if isinstance(tensor, _Pick):
                picked[:, tensor.channel] += own[:, 0]
            elif side == 1 and tensor.name in self.constants:  # what a profile adds is the same for every frame
                added = np.einsum("oi,iyx->oyx", own[:, :, 0, 0].astype(np.float64), self.constants[tensor.name])
                constant = added + (constant[:, None, None] if constant.ndim == 1 else constant)
            else:
                inputs.append(tensor)
                parts.append(own)
        if picked.any():
            inputs, parts = [self.query, *inputs], [picked, *parts]
        if not inputs:
            raise ReadError("a convolution of constants")
        output = self._new(len(weights), inputs[0].size)
        kept = np.ascontiguousarray(np.concatenate(parts, axis=1), np.float32)
        self._put(Convolution(tuple(inputs), output, kept, constant.astype(np.float32)), node.output[0])

    def _read_rectifier(self, node: Any) -> None:
        tensor = self._one(node.input[0])
        slope = float(_settings(node).get("alpha", 0.01))
        for place, layer in enumerate(self.layers):
            if layer.output == tensor and isinstance(layer, Convolution | Normalization) and layer.slope == 1:
                self.layers[place] = replace(layer, slope=slope)
                self.tensors[node.output[0]] = [tensor]
                return
        raise ReadError("a rectifier of something else than a convolution")

    def _read_pooling(self, node: Any) -> None:
        settings = _settings(node)
        if settings.get("kernel_shape") != [2, 2] or settings.get("strides") != [2, 2] or any(settings.get("pads", ())):
            raise ReadError(f"pooling over {settings.get('kernel_shape')}")
        tensor = self._one(node.input[0])
        self._put(Pooling((tensor,), self._new(tensor.channels, tensor.size // 2)), node.output[0])

    def _read_normalization(self, node: Any) -> None:
        tensor = self._one(node.input[0])
        scale, shift = self._constants(node, 1, 2)
        if np.any(scale != 1) or np.any(shift != 0):
            raise ReadError("a normalization with weights")
        epsilon = float(_settings(node).get("epsilon", 1e-5))
        self._put(Normalization((tensor,), self._new(tensor.channels, tensor.size), epsilon), node.output[0])

    def _read_product(self, node: Any) -> None:
        """Two products with the same matrix, from the left and from the right, are an upsampling."""
        if node.input[0] in self.values:
            self.waiting[node.output[0]] = node
            return
        if node.input[0] not in self.waiting:
            raise ReadError("a product of maps")
        first = self.waiting.pop(node.input[0])
        (left,), (right,) = self._constants(first, 0), self._constants(node, 1)
        tensor = self._one(first.input[1])
        wanted = upsampling_weights(tensor.size)
        if left.shape != wanted.shape or not (np.allclose(left, wanted, atol=1e-5) and np.array_equal(left.T, right)):
            raise ReadError("a product of matrices that is no twofold upsampling")
        self._put(Upsampling((tensor,), self._new(tensor.channels, 2 * tensor.size)), node.output[0])

    def _read_concatenation(self, node: Any) -> None:
        if _settings(node).get("axis") not in (1, -3):
            raise ReadError("tensors one behind the other")
        self.tensors[node.output[0]] = [part for name in node.input for part in self._parts(name)]

    def _parts(self, name: str) -> list[Tensor | _Pick]:
        if name in self.tensors:
            return self.tensors[name]
        value = self.values.get(name, np.zeros(0))
        if value.ndim != 4 or len(value) != 1:
            raise ReadError("constants that are no maps")
        value = value[0]
        tensor = Tensor(f"constant{len(self.constants)}", len(value), value.shape[-1])
        self.constants[tensor.name] = np.ascontiguousarray(value, np.float32)
        self.tensors[name] = [tensor]
        return [tensor]

    def _read_same(self, node: Any) -> None:
        self.tensors[node.output[0]] = self._parts(node.input[0])

    def _read_pick(self, node: Any) -> None:
        if node.input[0] != "query" or _settings(node).get("axis") not in (1, -3):
            raise ReadError("channels of something else than the query")
        (channel,) = self._constants(node, 1)
        if channel.size != 1 or channel.item() not in range(self.query.channels):
            raise ReadError("a histogram that is not there")
        self.tensors[node.output[0]] = [_Pick(channel.item())]

    _readers: Mapping[str, Callable[[_Reader, Any], None]] = {
        "Conv": _read_convolution,
        "LeakyRelu": _read_rectifier,
        "MaxPool": _read_pooling,
        "InstanceNormalization": _read_normalization,
        "MatMul": _read_product,
        "Concat": _read_concatenation,
        "Expand": _read_same,
        "Unsqueeze": _read_same,
        "Gather": _read_pick,
    }

    def _add_maps(self, tail: list[Any], names: list[str]) -> None:
        """What comes after the last convolutions only picks and averages maps: one convolution does it all."""
        produced = {name for node in tail for name in node.output}
        sources = sorted(
            {name for node in tail for name in node.input if name in self.tensors and name not in produced}
        )
        lasts = [layer for name in sources for layer in self.layers if layer.output == self._one(name)]
        if len(lasts) != len(sources):
            raise ReadError("maps that no layer makes")
        mixing = _probe(tail, sources, [self._one(name) for name in sources], names, self.values)
        weights: list[Float32s] = []
        inputs: list[Tensor] = []
        bias = np.zeros(len(mixing))
        for layer, (_, mix) in zip(lasts, by_tensor(mixing, [layer.output for layer in lasts]), strict=True):
            if not isinstance(layer, Convolution) or layer.slope != 1 or layer.bias.ndim != 1:
                raise ReadError("maps that no convolution makes")
            weights.append(np.einsum("mo,oikl->mikl", mix, layer.weights))
            bias += mix @ layer.bias
            inputs += layer.inputs
        output = Tensor("maps", len(mixing), self.model.grid.bins)
        merged = np.concatenate(weights, axis=1).astype(np.float32)
        self.layers.append(Convolution(tuple(inputs), output, merged, bias.astype(np.float32)))


def by_tensor(weights: NDArray[Any], tensors: Sequence[Part]) -> Iterator[tuple[Part, NDArray[Any]]]:
    """Tensors side by side, each with its part of the weights (outputs, all channels, ...)."""
    ends = np.cumsum([tensor.channels for tensor in tensors])
    return zip(tensors, np.split(weights, ends[:-1], axis=1), strict=True)


def upsampling_weights(size: int) -> Float32s:
    """(2 size, size): twofold bilinear upsampling, corners on corners."""
    position = np.linspace(0, size - 1, 2 * size)
    return np.asarray(np.maximum(1 - np.abs(position[:, None] - np.arange(size)), 0), dtype=np.float32)


def _find_tail(nodes: list[Any], names: list[str]) -> set[str]:
    """Outputs of the nodes after the last convolutions: all that no convolution, pooling or product follows."""
    tail: set[str] = set(names)
    found: set[str] = set()
    for node in reversed(nodes):
        if any(name in tail for name in node.output) and node.op_type != "Conv":
            found |= set(node.output)
            tail |= set(node.input)
    return found


def _probe(
    tail: list[Any], sources: list[str], tensors: list[Tensor], names: list[str], values: Mapping[str, Any]
) -> Float32s:
    """(maps, channels of the sources): how the maps are mixed from them, found by asking for one channel at a time."""
    onnx = load_onnx()
    from onnx.reference import ReferenceEvaluator

    if not (tail and sources):
        raise ReadError("maps that are not made of convolutions")
    wanted = [onnx.helper.make_empty_tensor_value_info(name) for name in names]
    with decoding(REMEDY):
        evaluator = ReferenceEvaluator(onnx.helper.make_graph(tail, "tail", [], wanted), {"": 17})
    columns = []
    for asked, tensor in enumerate(tensors):
        for channel in range(tensor.channels):
            inputs = {
                name: np.zeros((1, each.channels, each.size, each.size), np.float32)
                for name, each in zip(sources, tensors, strict=True)
            }
            inputs[sources[asked]][0, channel] = 1
            with decoding(REMEDY):
                found = evaluator.run(None, {**values, **inputs})
            if any(np.size(maps) % tensor.size**2 for maps in found):
                raise ReadError("maps of another size")
            columns.append(np.concatenate([np.reshape(maps, (-1, tensor.size**2)) for maps in found])[:, 0])
    return np.stack(columns, axis=1)


def _drop_unused(layers: list[Layer]) -> list[Layer]:
    """Without the layers that nothing uses: the convolutions that became part of the last one."""
    kept: list[Layer] = []
    used = {layers[-1].output.name}
    for layer in reversed(layers):
        if layer.output.name in used:
            kept.append(layer)
            used |= {tensor.name for tensor in layer.inputs}
    return kept[::-1]


def _settings(node: Any) -> dict[str, Any]:
    onnx = load_onnx()
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}


def run_layers(folded: Folded, histograms: Float32s) -> Float32s:
    """The maps of a frame (channels, n, n) in NumPy: slow, plain, and what the C code is checked against."""
    values = {QUERY: histograms, **folded.constants}
    for layer in folded.layers:
        values[layer.output.name] = _run(layer, [values[tensor.name] for tensor in layer.inputs])
    return np.asarray(values[folded.maps.name], dtype=np.float32)


def _run(layer: Layer, inputs: list[Float32s]) -> Float32s:
    x = np.concatenate(inputs)
    if isinstance(layer, Pooling):
        channels, n, _ = x.shape
        return np.asarray(x.reshape(channels, n // 2, 2, n // 2, 2).max(axis=(2, 4)))
    if isinstance(layer, Upsampling):
        weights = upsampling_weights(x.shape[-1])
        return np.asarray(weights @ x @ weights.T)
    if isinstance(layer, Normalization):
        mean, variance = x.mean(axis=(1, 2), keepdims=True), x.var(axis=(1, 2), keepdims=True)
        x = (x - mean) / np.sqrt(variance + layer.epsilon)
    else:
        x = convolve_layer(layer, x)
    return np.asarray(np.where(x > 0, x, layer.slope * x), dtype=np.float32)


def convolve_layer(layer: Convolution, x: Float32s) -> Float32s:
    side, n = layer.weights.shape[2], x.shape[-1]
    padded = np.pad(x, ((0, 0), (side // 2, side // 2), (side // 2, side // 2)))
    views = np.stack([padded[:, i : i + n, j : j + n] for i in range(side) for j in range(side)], axis=1)
    total = np.tensordot(layer.weights.reshape(len(layer.weights), -1), views.reshape(-1, n, n), axes=1)
    return np.asarray(total + (layer.bias[:, None, None] if layer.bias.ndim == 1 else layer.bias), dtype=np.float32)
