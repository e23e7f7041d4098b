"""A TensorFlow Lite graph of a model with a camera's profile baked in: from histograms to the light.

The graph is written directly, with the schema that LiteRT's runtime ships: no converter is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c5.errors import ParameterError
from c5.export.layers import QUERY, Convolution, Export, Folded, Layer, Normalization, Pooling, Upsampling, fold
from c5.model import Model, Profile

VERSION = 3
"""Version of the file format."""


def load_schema() -> Any:
    """The classes of the file format, and its packer."""
    try:
        import flatbuffers
        from ai_edge_litert import schema_py_generated
    except ImportError:
        raise ParameterError("a TensorFlow Lite graph needs ai-edge-litert; run pip install 'c5-awb[tflite]'") from None
    return flatbuffers, schema_py_generated


def export_tflite(model: Model, profile: Profile | None, path: Path) -> Export:
    """The graph of a model for a file."""
    folded = fold(model, profile)
    data = make_tflite(folded)
    return Export([(path, data)], {str(path): folded.cost(data)})


def make_tflite(folded: Folded) -> bytes:
    """The content of the file: `seen` and `searched` in, the light out, in the shapes of the ONNX graph."""
    graph = _Builder()
    n, channels = folded.grid.bins, folded.grid.channels
    seen, searched = (graph.tensor((1, channels, n, n), name) for name in ("seen", "searched"))
    values = {QUERY: graph.transpose(seen, (0, 2, 3, 1))}
    values |= {name: graph.constant(_channels_last(value)) for name, value in folded.constants.items()}
    for layer in folded.layers:
        inputs = [values[tensor.name] for tensor in layer.inputs]
        values[layer.output.name] = _add_layer(graph, layer, inputs)
    lights = _locate(graph, folded, graph.transpose(searched, (0, 2, 3, 1)), values[folded.maps.name])
    return graph.pack([seen, searched], lights)


class _Builder:
    """Tensors and operators, one after the other; a tensor is its number."""

    def __init__(self) -> None:
        self.flatbuffers, self.schema = load_schema()
        self.buffers: list[Any] = [self.schema.BufferT()]
        self.tensors: list[Any] = []
        self.shapes: list[tuple[int, ...]] = []
        self.operators: list[Any] = []
        self.codes: list[int] = []

    def tensor(self, shape: tuple[int, ...], name: str = "", *, buffer: int = 0, kind: int = 0) -> int:
        made = self.schema.TensorT()
        made.shape, made.type, made.buffer, made.name = list(shape), kind, buffer, name or f"t{len(self.tensors)}"
        self.tensors.append(made)
        self.shapes.append(shape)
        return len(self.tensors) - 1

    def constant(self, values: Any) -> int:
        array: NDArray[Any] = np.asarray(values)
        whole = array.dtype.kind in "iu"
        array = array.astype("<i4" if whole else "<f4")
        made = self.schema.BufferT()
        made.data = np.frombuffer(array.tobytes(), np.uint8)
        self.buffers.append(made)
        kind = self.schema.TensorType.INT32 if whole else self.schema.TensorType.FLOAT32
        return self.tensor(array.shape, buffer=len(self.buffers) - 1, kind=kind)

    def add(self, name: str, inputs: list[int], shape: tuple[int, ...], options: str = "", **settings: Any) -> int:
        """An operator by its name in the schema, and the tensor that it gives."""
        code = getattr(self.schema.BuiltinOperator, name)
        if code not in self.codes:
            self.codes.append(code)
        made = self.schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = self.codes.index(code), inputs, [self.tensor(shape)]
        if options:
            made.builtinOptionsType = getattr(self.schema.BuiltinOptions, options)
            made.builtinOptions = getattr(self.schema, f"{options}T")()
            for key, value in settings.items():
                setattr(made.builtinOptions, key, value)
        self.operators.append(made)
        return int(made.outputs[0])

    def transpose(self, x: int, order: tuple[int, ...]) -> int:
        shape = tuple(self.shapes[x][axis] for axis in order)
        return self.add("TRANSPOSE", [x, self.constant(np.array(order))], shape)

    def reshape(self, x: int, shape: tuple[int, ...]) -> int:
        return self.add("RESHAPE", [x, self.constant(np.array(shape))], shape, "ReshapeOptions", newShape=list(shape))

    def combine(self, name: str, one: int, other: int) -> int:
        """ADD, SUB, MUL, DIV or ATAN2 of two tensors, number by number."""
        shape = np.broadcast_shapes(self.shapes[one], self.shapes[other])
        return self.add(name, [one, other], shape, "" if name == "ATAN2" else f"{name.title()}Options")

    def reduce(self, name: str, x: int, axes: tuple[int, ...]) -> int:
        """MEAN or SUM over axes, which stay as 1."""
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(self.shapes[x]))
        return self.add(name, [x, self.constant(np.array(axes))], shape, "ReducerOptions", keepDims=True)

    def slice(self, x: int, first: int, count: int) -> int:
        """Part of the last axis."""
        *rest, _ = self.shapes[x]
        shape = (*rest, count)
        return self.add(
            "SLICE", [x, *map(self.constant, (np.array([0] * len(rest) + [first]), np.array(shape)))], shape
        )

    def pack(self, inputs: list[int], outputs: dict[str, int]) -> bytes:
        for name, tensor in outputs.items():
            self.tensors[tensor].name = name
        schema = self.schema
        graph, model = schema.SubGraphT(), schema.ModelT()
        graph.tensors, graph.operators, graph.inputs, graph.outputs = (
            self.tensors,
            self.operators,
            inputs,
            list(outputs.values()),
        )
        model.version, model.subgraphs, model.buffers, model.operatorCodes = VERSION, [graph], self.buffers, []
        for code in self.codes:
            made = schema.OperatorCodeT()
            made.builtinCode, made.deprecatedBuiltinCode, made.version = code, min(code, 127), 1
            model.operatorCodes.append(made)
        builder = self.flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def _channels_last(maps: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(maps.transpose(1, 2, 0))[None]


def _convolve(graph: _Builder, x: int, weights: int, bias: int, *, same: bool) -> int:
    _, height, width, _ = graph.shapes[x]
    outputs, rows, columns, _ = graph.shapes[weights]
    size = (height, width) if same else (height - rows + 1, width - columns + 1)
    padding = graph.schema.Padding.SAME if same else graph.schema.Padding.VALID
    settings = {"padding": padding, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    return graph.add("CONV_2D", [x, weights, bias], (1, *size, outputs), "Conv2DOptions", **settings)


def _add_layer(graph: _Builder, layer: Layer, inputs: list[int]) -> int:
    x, n = inputs[0], layer.output.size
    if len(inputs) > 1:
        shape = (*graph.shapes[x][:3], sum(graph.shapes[each][3] for each in inputs))
        x = graph.add("CONCATENATION", inputs, shape, "ConcatenationOptions", axis=3)
    if isinstance(layer, Pooling):
        settings = {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}
        settings["padding"] = graph.schema.Padding.VALID
        return graph.add("MAX_POOL_2D", [x], (1, n, n, layer.output.channels), "Pool2DOptions", **settings)
    if isinstance(layer, Upsampling):
        size = graph.constant(np.array([n, n]))
        shape = (1, n, n, layer.output.channels)
        return graph.add("RESIZE_BILINEAR", [x, size], shape, "ResizeBilinearOptions", alignCorners=True)
    if isinstance(layer, Convolution):
        flat = layer.bias.ndim == 1
        weights = graph.constant(layer.weights.transpose(0, 2, 3, 1))
        x = _convolve(graph, x, weights, graph.constant(layer.bias if flat else np.zeros(len(layer.bias))), same=True)
        x = x if flat else graph.combine("ADD", x, graph.constant(_channels_last(layer.bias)))
    elif isinstance(layer, Normalization):
        x = graph.combine("SUB", x, graph.reduce("MEAN", x, (1, 2)))
        variance = graph.reduce("MEAN", graph.combine("MUL", x, x), (1, 2))
        variance = graph.combine("ADD", variance, graph.constant(np.float32(layer.epsilon).reshape(1)))
        x = graph.combine("MUL", x, graph.add("RSQRT", [variance], graph.shapes[variance]))
    return (
        x if layer.slope == 1 else graph.add("LEAKY_RELU", [x], graph.shapes[x], "LeakyReluOptions", alpha=layer.slope)
    )


def _locate(graph: _Builder, folded: Folded, searched: int, maps: int) -> dict[str, int]:
    """The last step, as `c5.export.onnx_graphs` has it; the histograms are the weights of one large convolution."""
    grid, n, channels = folded.grid, folded.grid.bins, folded.grid.channels
    for axis in (1, 2):
        searched = graph.add("REVERSE_V2", [searched, graph.constant(np.array([axis]))], graph.shapes[searched])
    before, behind = n // 2 - 1, n // 2
    pads = graph.constant(np.array([[0, 0], [before, behind], [before, behind], [0, 0]]))
    wide = graph.add("PAD", [graph.slice(maps, 0, channels), pads], (1, 2 * n - 1, 2 * n - 1, channels))
    scores = _convolve(graph, wide, searched, graph.constant(np.zeros(1)), same=False)
    if folded.gain:
        scores = graph.combine("MUL", scores, graph.slice(maps, channels + 1, 1))
    scores = graph.reshape(graph.combine("ADD", scores, graph.slice(maps, channels, 1)), (1, n * n))
    heat = graph.add("SOFTMAX", [scores], (1, n * n), "SoftmaxOptions", beta=1.0)
    u, v = (axis.ravel() for axis in np.meshgrid(grid.u, grid.v))
    minus_uv = np.stack([-u, np.zeros(n * n), -v])  # (3, bins)
    inputs = [heat, graph.constant(minus_uv), graph.constant(np.zeros(3))]
    logs = graph.add("FULLY_CONNECTED", inputs, (1, 3), "FullyConnectedOptions")
    rgb = graph.add("EXP", [logs], (1, 3))
    length = graph.add("SQRT", [graph.reduce("SUM", graph.combine("MUL", rgb, rgb), (1,))], (1, 1))
    illuminant = graph.combine("DIV", rgb, length)
    gains = graph.combine("DIV", graph.constant(np.ones((1, 3))), rgb)
    lights = np.exp(minus_uv.T)
    lights /= np.linalg.norm(lights, axis=1, keepdims=True)
    sides = []
    for name in ("SUB", "ADD"):
        apart = graph.combine(name, graph.constant(lights), illuminant)
        sides.append(graph.add("SQRT", [graph.reduce("SUM", graph.combine("MUL", apart, apart), (1,))], (n * n, 1)))
    angles = graph.reshape(graph.combine("ATAN2", sides[0], sides[1]), (1, n * n))  # halves of them
    mean = graph.reduce("SUM", graph.combine("MUL", angles, heat), (1,))
    degrees = graph.combine("MUL", mean, graph.constant(np.full((1, 1), 360 / np.pi)))
    return {
        "illuminant": graph.reshape(illuminant, (3,)),
        "gains": graph.reshape(gains, (3,)),
        "uncertainty": graph.reshape(degrees, (1,)),
        "heat_map": graph.reshape(heat, (n, n)),
    }
