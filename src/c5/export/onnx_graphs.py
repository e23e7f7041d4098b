"""ONNX graphs of a model with a camera's profile baked in: from histograms, and from the pixels or zones of a frame.

Opset 18. `docs/model-file.md` has names and shapes of inputs and outputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.export.layers import (
    QUERY,
    Convolution,
    Export,
    Folded,
    Layer,
    Normalization,
    Pooling,
    fold,
    load_onnx,
    upsampling_weights,
)
from c5.histograms import FLAT, FLOOR, Grid
from c5.model import Model, Profile

OPSET = 18
IR_VERSION = 8
FILES = {"histograms.onnx": False, "pixels.onnx": True}


def export_onnx(model: Model, profile: Profile | None, folder: Path, *, int8: bool) -> Export:
    """Both graphs for a folder."""
    folded = fold(model, profile)
    files = [(folder / name, make_graph(folded, from_pixels=flag, int8=int8)) for name, flag in FILES.items()]
    return Export(files, {str(path): folded.cost(data) for path, data in files})


def make_graph(folded: Folded, *, from_pixels: bool, int8: bool) -> bytes:
    """A graph to the light: from the pixels of a frame, or from its histograms."""
    graph = _Builder()
    onnx, grid = graph.onnx, folded.grid
    number = onnx.TensorProto.FLOAT
    if from_pixels:
        inputs = [("image", number, ["height", "width", 3]), ("ignore", onnx.TensorProto.BOOL, ["height", "width"])]
        seen, searched = _count(graph, grid)
    else:
        shape = [1, grid.channels, grid.bins, grid.bins]
        inputs = [("seen", number, shape), ("searched", number, shape)]
        seen, searched = "seen", "searched"
    maps = _emit(graph, folded, seen, int8=int8)
    _locate(graph, folded, searched, maps)
    outputs = [("illuminant", [3]), ("gains", [3]), ("uncertainty", [1]), ("heat_map", [grid.bins, grid.bins])]
    made = onnx.helper.make_graph(
        graph.nodes,
        "c5",
        [onnx.helper.make_tensor_value_info(*each) for each in inputs],
        [onnx.helper.make_tensor_value_info(name, number, shape) for name, shape in outputs],
        initializer=graph.constants,
    )
    model = onnx.helper.make_model(
        made, opset_imports=[onnx.helper.make_opsetid("", OPSET)], producer_name="c5-awb", ir_version=IR_VERSION
    )
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


class _Builder:
    """Nodes and constants, one after the other."""

    def __init__(self) -> None:
        self.onnx = load_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.names: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def add(self, operator: str, *inputs: str | ArrayLike, name: str = "", **settings: Any) -> str:
        """A node; numbers among its inputs become constants. Returns the name of what it gives."""
        names = [each if isinstance(each, str) else self.keep(each) for each in inputs]
        output = name or f"n{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **settings))
        return output

    def keep(self, value: ArrayLike) -> str:
        array: NDArray[Any] = np.asarray(value)
        if array.dtype.kind == "f" and array.dtype != np.float32:
            array = array.astype(np.float32)
        content = (array.dtype.str, array.shape, array.tobytes())
        if content not in self.names:
            self.names[content] = f"c{len(self.constants)}"
            self.constants.append(self.onnx.numpy_helper.from_array(np.array(array), self.names[content]))
        return self.names[content]


def _emit(graph: _Builder, folded: Folded, seen: str, *, int8: bool) -> str:
    names = {QUERY: seen} | {name: graph.keep(value[None]) for name, value in folded.constants.items()}
    for layer in folded.layers:
        inputs = [names[tensor.name] for tensor in layer.inputs]
        together = inputs[0] if len(inputs) == 1 else graph.add("Concat", *inputs, axis=1)
        names[layer.output.name] = _add_layer(graph, layer, together, int8=int8)
    return names[folded.maps.name]


def _add_layer(graph: _Builder, layer: Layer, x: str, *, int8: bool) -> str:
    if isinstance(layer, Pooling):
        return graph.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    if isinstance(layer, Convolution):
        weights: str | ArrayLike = layer.weights
        if int8:
            rounded, scales = layer.quantize()
            zeros = np.zeros(len(scales), np.int8)
            weights = graph.add("DequantizeLinear", rounded, scales, zeros, axis=0)
        pads = [layer.weights.shape[2] // 2] * 4
        if layer.bias.ndim == 1:
            x = graph.add("Conv", x, weights, layer.bias, pads=pads)
        else:
            x = graph.add("Add", graph.add("Conv", x, weights, pads=pads), layer.bias[None])
        return x if layer.slope == 1 else graph.add("LeakyRelu", x, alpha=layer.slope)
    if isinstance(layer, Normalization):
        ones, zeros = np.ones(layer.output.channels, np.float32), np.zeros(layer.output.channels, np.float32)
        x = graph.add("InstanceNormalization", x, ones, zeros, epsilon=layer.epsilon)
        return x if layer.slope == 1 else graph.add("LeakyRelu", x, alpha=layer.slope)
    matrix = upsampling_weights(layer.inputs[0].size)
    return graph.add("MatMul", graph.add("MatMul", matrix, x), np.ascontiguousarray(matrix.T))


def _locate(graph: _Builder, folded: Folded, searched: str, maps: str) -> None:
    """The last step: filtered histograms, bias, softmax, and the mean of the heat map."""
    grid, n = folded.grid, folded.grid.bins
    sizes = np.array([grid.channels, 1, *([1] if folded.gain else [])])
    parts = [f"map{i}" for i in range(len(sizes))]
    graph.nodes.append(graph.onnx.helper.make_node("Split", [maps, graph.keep(sizes)], parts, axis=1))
    scores = _convolve(graph, searched, parts[0], n)
    if folded.gain:
        scores = graph.add("Mul", scores, parts[2])
    flat = graph.add("Reshape", graph.add("Add", scores, parts[1]), np.array([n * n]))
    heat = graph.add("Softmax", flat, axis=0)
    graph.add("Reshape", heat, np.array([n, n]), name="heat_map")
    u, v = (axis.ravel() for axis in np.meshgrid(grid.u, grid.v))
    minus_uv = np.stack([-u, np.zeros(n * n), -v], axis=1)
    minus = graph.add("MatMul", heat, minus_uv)  # -u, 0, -v
    rgb = graph.add("Exp", minus)
    graph.add("Div", rgb, graph.add("ReduceL2", rgb, np.array([0]), keepdims=1), name="illuminant")
    graph.add("Exp", graph.add("Neg", minus), name="gains")
    lights = np.exp(minus_uv)
    lights /= np.linalg.norm(lights, axis=1, keepdims=True)
    cosines = graph.add("Clip", graph.add("MatMul", lights, "illuminant"), np.float32(-1), np.float32(1))
    angles = graph.add("Acos", cosines)
    mean = graph.add("ReduceSum", graph.add("Mul", angles, heat), np.array([0]), keepdims=1)
    graph.add("Mul", mean, np.float32(180 / np.pi), name="uncertainty")


def _convolve(graph: _Builder, searched: str, filters: str, n: int) -> str:
    """The sum over channels of the convolutions of two stacks, by products with the matrices of a Fourier transform.

    It goes over 2n bins, so that nothing wraps around; half of the frequencies along u are enough. The origin of a
    filter is its bin (n/2, n/2).
    """
    add = graph.add
    turn = np.pi / n
    row = turn * np.outer(np.arange(2 * n), np.arange(n))
    column = turn * np.outer(np.arange(n), np.arange(n + 1))
    cos_v, sin_v, cos_u, sin_u = np.cos(row), np.sin(row), np.cos(column), np.sin(column)

    def transform(stack: str) -> tuple[str, str]:
        real, minus = add("MatMul", stack, cos_u), add("MatMul", stack, sin_u)  # minus the imaginary part
        whole = add("Sub", add("MatMul", cos_v, real), add("MatMul", sin_v, minus))
        return whole, add("Neg", add("Add", add("MatMul", cos_v, minus), add("MatMul", sin_v, real)))

    (a, b), (c, d) = transform(searched), transform(filters)
    real, imaginary = add("Sub", add("Mul", a, c), add("Mul", b, d)), add("Add", add("Mul", a, d), add("Mul", b, c))
    real, imaginary = (add("ReduceSum", each, np.array([1]), keepdims=1) for each in (real, imaginary))
    place = np.arange(n // 2, n // 2 + n)
    row = turn * np.outer(place, np.arange(2 * n))
    column = turn * np.outer(np.arange(n + 1), place)
    twice = np.where((np.arange(n + 1) == 0) | (np.arange(n + 1) == n), 1, 2)[:, None] / (2 * n) ** 2
    back_r = add("Sub", add("MatMul", np.cos(row), real), add("MatMul", np.sin(row), imaginary))
    back_i = add("Add", add("MatMul", np.cos(row), imaginary), add("MatMul", np.sin(row), real))
    return add("Sub", add("MatMul", back_r, twice * np.cos(column)), add("MatMul", back_i, twice * np.sin(column)))


def _count(graph: _Builder, grid: Grid) -> tuple[str, str]:
    """`image` and `ignore` to what the network sees, and where the light is searched for."""
    add = graph.add
    zero, one = np.float32(0), np.float32(1)
    brightest = add("ReduceMax", "image", np.array([2]), keepdims=0)
    dark = add("Equal", add("ReduceMax", add("Relu", "image"), np.array([2]), keepdims=0), zero)
    out = add("Or", add("Or", "ignore", dark), add("GreaterOrEqual", brightest, one))
    counts = add("Cast", add("Not", out), to=1)  # (height, width), 1 where a pixel counts
    # Pixels that must not count may hold anything; none of it may get any further.
    planes = add("Relu", add("Where", add("Unsqueeze", "ignore", np.array([2])), zero, "image"))
    planes = add("Transpose", planes, perm=[2, 0, 1])
    gradient, all_count = _gradient(graph, planes, counts)
    every = _row_step(graph, grid, counts)
    height = add("Gather", add("Shape", counts), np.int64(0))
    pairs = [_add_histogram(graph, grid, planes, counts, every, height, power, 0.0) for power in grid.powers]
    pairs.append(_add_histogram(graph, grid, gradient, all_count, every, height, 1, FLAT))
    seen, searched = (add("Concat", *each, axis=1) for each in zip(*pairs, strict=True))
    return seen, searched


def _gradient(graph: _Builder, planes: str, counts: str) -> tuple[str, str]:
    """The gradient image, and where all nine pixels count."""
    add = graph.add
    padded = add("Pad", planes, np.array([0, 1, 1, 0, 1, 1]), mode="edge")
    flags = add("Pad", counts, np.array([1, 1, 1, 1]), np.float32(1))
    size = add("Shape", counts)
    total, together = "", counts
    for i in range(3):
        for j in range(3):
            if (i, j) == (1, 1):
                continue
            start, end = np.array([i, j]), add("Add", size, np.array([i, j]))
            other = add("Slice", padded, start, end, np.array([1, 2]))
            difference = add("Abs", add("Sub", planes, other))
            total = add("Add", total, difference) if total else difference
            together = add("Mul", together, add("Slice", flags, start, end, np.array([0, 1])))
    return add("Mul", total, np.float32(0.125)), together


def _row_step(graph: _Builder, grid: Grid, counts: str) -> str:
    """(1,) One row in this many is used."""
    add = graph.add
    counted = add("Cast", add("ReduceSum", counts, keepdims=0), to=7)
    every = add("Max", add("Div", counted, np.int64(grid.pixels)), np.int64(1))
    every = add("Reshape", every, np.array([1]))
    far = np.array([np.iinfo(np.int64).max])
    some = add("ReduceMax", add("Slice", counts, np.array([0]), far, np.array([0]), every), keepdims=0)
    return add("Where", add("Greater", some, np.float32(0)), every, np.array([1]))


def _add_histogram(
    graph: _Builder, grid: Grid, planes: str, counts: str, every: str, height: str, power: int, least: float
) -> tuple[str, str]:
    """One histogram of what the network sees, and the one where the light is searched for."""
    add, n, strips = graph.add, grid.bins, grid.strips
    side = n + 2  # one more bin on every side takes what falls outside
    far = np.array([np.iinfo(np.int64).max])
    colors = add("Slice", planes, np.array([0]), far, np.array([1]), every)
    which = add("Slice", counts, np.array([0]), far, np.array([0]), every)
    colors = add("Add", colors, np.float32(FLOOR))
    r, g, b = (add("Gather", colors, np.int64(channel)) for channel in range(3))
    u, v = (add("Log", add("Div", g, other)) for other in (r, b))
    brightness = add("Mul", g, add("Exp", add("Mul", add("Add", u, v), np.float32(-1 / 3))))
    weight = which
    for _ in range(power):
        weight = add("Mul", weight, brightness)
    x, y = (add("Add", add("Mul", uv, np.float32(1 / grid.step)), np.float32((n - 1) / 2)) for uv in (u, v))
    inside = which
    for place in (x, y):
        reaches = add("GreaterOrEqual", place, np.float32(-1))
        inside = add("Mul", inside, add("Cast", add("And", reaches, add("Less", place, np.float32(n))), to=1))
    weight = add("Mul", weight, inside)
    x, y = (add("Clip", place, np.float32(-1), np.float32(n - 0.001)) for place in (x, y))
    left, low = add("Floor", x), add("Floor", y)
    right, high = add("Sub", x, left), add("Sub", y, low)
    row = add("Mul", add("Range", np.int64(0), height, np.int64(1)), np.int64(strips))
    strip = add("Div", add("Add", row, np.int64(strips - 1)), height)
    strip = add("Slice", strip, np.array([0]), far, np.array([0]), every)
    strip = add("Expand", add("Unsqueeze", strip, np.array([1])), add("Shape", which))
    column, line = (add("Add", add("Cast", place, to=7), np.int64(1)) for place in (left, low))
    cell = add("Add", add("Mul", add("Add", add("Mul", strip, np.int64(side)), line), np.int64(side)), column)
    indices, shares = [], []
    for i in range(2):
        for j in range(2):
            vertical = high if i else add("Sub", np.float32(1), high)
            across = right if j else add("Sub", np.float32(1), right)
            shares.append(_flat(graph, add("Mul", add("Mul", weight, vertical), across)))
            indices.append(_flat(graph, add("Add", cell, np.int64(i * side + j))))
    index, share = (add("Concat", *each, axis=0) for each in (indices, shares))
    empty = np.zeros(strips * side * side, np.float32)
    bins = add("ScatterElements", empty, index, share, axis=0, reduction="add")
    bins = add(
        "Slice", add("Reshape", bins, np.array([strips, 1, side, side])), *map(np.array, ([1, 1], [-1, -1], [2, 3]))
    )
    per_strip, none = _flat(graph, strip), np.zeros(strips, np.float32)
    within = add("ScatterElements", none, per_strip, _flat(graph, weight), axis=0, reduction="add")
    counted = add("ScatterElements", none, per_strip, _flat(graph, which), axis=0, reduction="add")
    some = add("Greater", within, np.float32(least))
    even = add("Where", some, add("Div", counted, add("Where", some, within, np.float32(1))), np.float32(0))
    even = add("Mul", bins, add("Reshape", even, np.array([strips, 1, 1, 1])))
    seen, searched = (_scale(graph, add("ReduceSum", each, np.array([0]), keepdims=1), least) for each in (bins, even))
    return seen, searched


def _flat(graph: _Builder, x: str) -> str:
    return graph.add("Reshape", x, np.array([-1]))


def _scale(graph: _Builder, bins: str, least: float) -> str:
    """Blurred, divided by its sum, and the square root taken."""
    blur = np.outer([1, 2, 1], [1, 2, 1]).astype(np.float32)[None, None] / 16
    blurred = graph.add("Conv", bins, blur, pads=[1, 1, 1, 1])
    total = graph.add("ReduceSum", blurred, np.array([1, 2, 3]), keepdims=1)
    some = graph.add("Greater", total, np.float32(least))
    share = graph.add("Div", blurred, graph.add("Where", some, total, np.float32(np.inf)))
    return graph.add("Sqrt", share)
