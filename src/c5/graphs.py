"""ONNX graphs, checked before onnxruntime sees them, and run within limits.

A model file may come from anybody. Its graphs may hold only operators that networks are made of: nothing that loops,
draws at random, reads other files or calls functions. What is left takes the same time for every image, so the first
run shows whether it ends. Its memory comes from a pool of fixed size.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c5.errors import ModelFileError, ReadError
from c5.words import first_line

OPERATORS = frozenset(
    b"""
    Abs Add And ArgMax AveragePool BatchNormalization Cast Ceil Clip Concat Constant ConstantOfShape Conv ConvTranspose
    Cos DepthToSpace Div Dropout Einsum Elu Equal Erf Exp Expand Flatten Floor Gather GatherElements Gelu Gemm
    GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Identity
    InstanceNormalization LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization MatMul Max
    MaxPool Mean Min Mish Mod Mul Neg Not Or PRelu Pad Pow Range Reciprocal ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize Round Selu Shape Sigmoid Sign Sin Size
    Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Tanh ThresholdedRelu Tile Transpose
    Unsqueeze Where
    """.split()
)
MOST_NODES = 10_000
MOST_SIDE = 128
"""Limit for the windows of convolutions and pooling."""
SIDES = (b"kernel_shape", b"pads", b"strides", b"dilations")

MOST_BYTES = 512 * 2**20
"""Memory for the arrays of all graphs of a program together."""
MOST_SECONDS = 10.0
"""Limit for the first run of a graph."""

# Numbers of fields in onnx.proto.
MODEL_GRAPH, MODEL_TRAINING, MODEL_FUNCTIONS = 7, 20, 25
GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_SPARSE = 1, 5, 15
NODE_OPERATOR, NODE_ATTRIBUTE, NODE_DOMAIN = 4, 5, 7
ATTRIBUTE_NAME, ATTRIBUTE_TENSOR, ATTRIBUTE_INTEGERS, ATTRIBUTE_TENSORS = 1, 5, 8, 10
ATTRIBUTE_REFUSED = (6, 11, 22, 23)  # graphs and sparse tensors
TENSOR_DIMENSIONS, TENSOR_ELSEWHERE = 1, (13, 14)


class Graph:
    """A graph that can be run. `name` is for messages."""

    def __init__(self, data: bytes, name: str, threads: int) -> None:
        self.name = name
        self._proven = False
        onnxruntime = _load_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.use_env_allocators", "1")
        options.add_session_config_entry("optimization.constant_folding_max_output_size_in_bytes", str(MOST_BYTES // 8))
        try:
            check_graph(data)
        except ReadError as error:
            raise self._error("cannot be run here", error) from error
        try:
            self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions share no base class
            raise self._error("cannot be run here", error) from error

    @property
    def input_shape(self) -> list[Any]:
        """The shape of the first input."""
        return next((list(each.shape) for each in self._session.get_inputs()), [])

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the outputs, which must be numbers."""
        shapes = [tuple(output.shape) for output in self._session.get_outputs()]
        whole = all(isinstance(side, int) and side > 0 for shape in shapes for side in shape)
        if not whole or any(math.prod(shape) > MOST_BYTES // 64 for shape in shapes):
            raise ModelFileError(f"{self.name} is damaged: it does not declare its outputs; get it again")
        return shapes

    def run(self, inputs: Mapping[str, NDArray[Any]], *shapes: list[tuple[int, ...]]) -> list[NDArray[np.float32]]:
        """The outputs of the graph: finite numbers, in arrays of one of these lists of shapes."""
        options = None if self._proven else _load_onnxruntime().RunOptions()
        try:
            with nullcontext() if options is None else _time_limit(options):
                outputs = self._session.run(None, inputs, options)
        except Exception as error:
            raise self._error("cannot be run", error) from error
        self._proven = True
        found = [output.shape if isinstance(output, np.ndarray) else None for output in outputs]
        if found not in shapes or any(output.dtype != np.float32 for output in outputs):
            raise ModelFileError(f"{self.name} is damaged: its outputs are not those of its kind; get it again")
        if not all(np.isfinite(output).all() for output in outputs):
            raise ModelFileError(f"{self.name} gives numbers that are not finite; get it again or use another")
        return list(outputs)

    def _error(self, what: str, error: Exception) -> ModelFileError:
        return ModelFileError(f"{self.name} {what}: {first_line(error)}; get it again or use another")


@contextmanager
def _time_limit(options: Any) -> Iterator[None]:
    timer = threading.Timer(MOST_SECONDS, setattr, (options, "terminate", True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def check_graph(data: bytes) -> None:
    """Raise a ReadError if a graph is not that of a network. If a field occurs twice, both are checked."""
    for field, value in _fields(memoryview(data)):
        if field in (MODEL_TRAINING, MODEL_FUNCTIONS):
            raise ReadError("it holds functions")
        if field == MODEL_GRAPH:
            _check_graph(value)


def _check_graph(graph: memoryview | int) -> None:
    nodes = 0
    for field, value in _fields(graph):
        if field == GRAPH_NODE:
            _check_node(value)
            nodes += 1
        elif field == GRAPH_INITIALIZER:
            _check_tensor(value)
        elif field == GRAPH_SPARSE:
            raise ReadError("it holds sparse arrays")
    if nodes > MOST_NODES:
        raise ReadError(f"it has {nodes} nodes")


def _check_node(node: memoryview | int) -> None:
    for field, value in _fields(node):
        if field == NODE_OPERATOR and _bytes(value) not in OPERATORS:
            operator = _bytes(value)[:40].decode("ascii", "backslashreplace")
            raise ReadError(f"no network needs the operator {operator!r}")
        if field == NODE_DOMAIN and _bytes(value) not in (b"", b"ai.onnx"):
            raise ReadError("its operators are not those of ONNX")
        if field == NODE_ATTRIBUTE:
            _check_attribute(value)


def _check_attribute(attribute: memoryview | int) -> None:
    names, numbers = [], []
    for field, value in _fields(attribute):
        if field in ATTRIBUTE_REFUSED:
            raise ReadError("it holds a graph within the graph")
        if field == ATTRIBUTE_NAME:
            names.append(_bytes(value))
        elif field == ATTRIBUTE_INTEGERS:
            numbers += _integers(value)
        elif field in (ATTRIBUTE_TENSOR, ATTRIBUTE_TENSORS):
            _check_tensor(value)
    if any(name in SIDES for name in names) and max(numbers, default=0) > MOST_SIDE:
        raise ReadError(f"a window of {max(numbers)} bins is wider than any histogram")


def _check_tensor(tensor: memoryview | int) -> None:
    sides: list[int] = []
    for field, value in _fields(tensor):
        if field in TENSOR_ELSEWHERE:
            raise ReadError("its numbers are in another file")
        if field == TENSOR_DIMENSIONS:
            sides += _integers(value)
    if math.prod(sides) > len(_view(tensor)):  # a number has at least one byte
        raise ReadError("an array is larger than the file")


def _fields(message: memoryview | int) -> Iterator[tuple[int, memoryview | int]]:
    """The fields of a Protocol Buffers message: the number of each, and its value as stored."""
    message, place = _view(message), 0
    while place < len(message):
        key, place = _varint(message, place)
        kind, size = key & 7, 0
        if kind == 0:
            number, place = _varint(message, place)
            yield key >> 3, number
            continue
        if kind == 2:
            size, place = _varint(message, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ReadError("it is damaged")
        if place + size > len(message):
            raise ReadError("it is cut short")
        yield key >> 3, message[place : place + size]
        place += size


def _integers(value: memoryview | int) -> list[int]:
    """Repeated whole numbers: each a field, or all in one."""
    if isinstance(value, int):
        return [value]
    found, place = [], 0
    while place < len(value):
        number, place = _varint(value, place)
        found.append(number)
    return found


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    number = 0
    for index, byte in enumerate(message[place : place + 10]):
        number |= (byte & 127) << 7 * index
        if byte < 128:
            return number, place + index + 1
    raise ReadError("it is damaged")


def _view(value: memoryview | int) -> memoryview:
    if isinstance(value, int):
        raise ReadError("it is damaged")
    return value


def _bytes(value: memoryview | int) -> bytes:
    return bytes(_view(value))


@cache
def _load_onnxruntime() -> Any:
    """onnxruntime with a memory pool and without telemetry: it reads this variable when it is imported."""
    asked = os.environ.get("ORT_DISABLE_TELEMETRY")
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    finally:
        if asked is None:
            del os.environ["ORT_DISABLE_TELEMETRY"]
    kinds = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    with suppress(Exception):  # the program has one already
        onnxruntime.create_and_register_allocator(
            onnxruntime.OrtMemoryInfo("Cpu", *kinds), onnxruntime.OrtArenaCfg(MOST_BYTES, -1, -1, -1)
        )
    return onnxruntime
