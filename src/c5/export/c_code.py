"""C99 code of a model with a camera's profile baked in: readable, without a heap, with a test vector and a Makefile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c5.ccc import locate
from c5.color import Float32s
from c5.demo import VirtualCamera, render_roll
from c5.errors import ParameterError
from c5.export.layers import (
    QUERY,
    Budget,
    Convolution,
    Export,
    Folded,
    Layer,
    Normalization,
    Pooling,
    Tensor,
    Upsampling,
    by_tensor,
    fold,
    run_layers,
)
from c5.histograms import Grid, histogram
from c5.image import LinearImage
from c5.metrics import BOUND_FACTOR, UNKNOWN_DEG
from c5.model import Model, Profile
from c5.zones import average_zones

FLOAT_MAPS_APART, INT8_MAPS_APART = 0.01, 1.0
"""How far the maps of the test vector may be from those in Python: rounding differs, and int8 rounds."""
FLOAT_DEGREES, INT8_DEGREES = 0.02, 0.5


CODE = 10_000
"""Bytes of the code itself, in round figures: `c5_awb.c` for a Cortex-M4, as arm-none-eabi-gcc -Os makes it."""


def export_c(model: Model, profile: Profile | None, folder: Path, *, int8: bool, prefix: str = "c5") -> Export:
    """The C code of a model for a folder.

    All its public names, and those of its files, begin with the prefix: programs can hold the code of several sensors.
    """
    files, budget = write_c(fold(model, profile), vector_image(), int8=int8, prefix=prefix)
    return Export([(folder / name, data) for name, data in files.items()], {str(folder): budget})


def vector_image() -> LinearImage:
    """The frame of the test vector: 24x32 zones of a rendered photograph, some of them clipped."""
    rng = np.random.default_rng(4)
    (photo,) = render_roll(VirtualCamera.random(rng), 1, rng, (96, 128))
    return average_zones(photo.image, 24, 32)


def write_c(folded: Folded, vector: LinearImage, *, int8: bool, prefix: str = "c5") -> tuple[dict[str, bytes], Budget]:
    """The files of the C code, by name, with an image as test vector, and what a query costs."""
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]{,39}", prefix):
        raise ParameterError(
            f"{prefix[:60]!r} cannot begin names in C; give up to 40 letters, digits and _, a letter first"
        )
    steps = _list_steps(folded)
    places, size = _place(steps, folded.grid)
    size += 64 // 4  # to begin at a multiple of 64 bytes
    convolutions = [step for step in steps if isinstance(step, Convolution)]
    weights = _Weights(convolutions, folded.constants, int8=int8)
    kind = "int8 weights" if int8 else "float weights"
    camera = f"the camera {folded.camera}" if folded.camera else "no camera in particular"
    grid = folded.grid
    about = f'Made by C5: the model "{_plain(folded.name)}" ({folded.identity}) for {_plain(camera)}, {kind}.'
    words: dict[str, Any] = {
        "bins": grid.bins,
        "channels": grid.channels,
        "maps": folded.maps.channels,
        "and_gain": ", a gain" if folded.gain else "",
        "workspace": size,
        "tiles": _tiles(grid.bins),
        "limit": grid.limit,
        "strips": grid.strips,
        "pixels": grid.pixels,
        "powers": ", ".join(map(str, (*grid.powers, 1))),
        "kept": KEPT,
        "places": "\n".join(f"#define {name} {places[name]}" for name in sorted(places, key=_by_number)),
        "n_constants": sum(map(len, folded.constants.values())),
        "constants": PLACE_CONSTANTS if folded.constants else "",
        "calls": "".join(_call(number, steps) for number in range(len(steps))),
        "gained": GAINED if folded.gain else "",
        "bound_factor": float(BOUND_FACTOR),
        "bound_least": float(UNKNOWN_DEG),
        "weights": INT8_WEIGHTS if int8 else FLOAT_WEIGHTS,
        "biased": "layer->bias_scale * (float)bias[i]" if int8 else "bias[i]",
        "bias_type": "int16_t" if int8 else "float",
        "weight_type": "int8_t" if int8 else "float",
        "tensors": max(len(layer.inputs) for layer in convolutions),
        "fields": INT8_FIELDS if int8 else FLOAT_FIELDS,
        "layers": len(convolutions),
        "declared": DECLARED_CONSTANTS if folded.constants else "",
    }
    words = {key: _rename(str(value), prefix) for key, value in words.items()} | {"about": about}
    files = {_rename(name, prefix): _fill(name, prefix, words) for name in TEMPLATES}
    files[f"{prefix}_weights.c"] = _rename(weights.text, prefix)
    files[f"{prefix}_vector.h"] = _rename(_vector(folded, vector, int8=int8), prefix)
    budget = Budget(weights.size, CODE, 4 * size, folded.largest, folded.multiply_adds)
    return {name: text.encode() for name, text in files.items()}, budget


def _by_number(name: str) -> tuple[str, int]:
    """A key to sort names that end in numbers."""
    number = re.sub(r"\D", "", name)
    return name.removesuffix(number), int(number or 0)


def _rename(text: str, prefix: str) -> str:
    """With another prefix for the names in C."""
    return re.sub(r"\bC5_", f"{prefix.upper()}_", re.sub(r"\bc5_", f"{prefix}_", text))


TEMPLATES = ("c5_awb.h", "c5_awb.c", "c5_weights.h", "c5_test.c", "Makefile", "cortex_m.c", "cortex_m.ld")
PLACE_CONSTANTS = """    for (int c = 0; c < CONSTANTS; c++)
        place(c5_constants + c * N * N, C5_SEEN + c, blocks);
"""
DECLARED_CONSTANTS = "extern const float c5_constants[]; /* maps that are the same for every frame, [maps][n][n] */\n"
GAINED = "maps[(C5_SEEN + 1) * N * N + i] * "
FLOAT_WEIGHTS = """    (void)space; /* only int8 weights need it */
    return from;"""
INT8_WEIGHTS = """    for (int i = 0; i < count; i++)
        for (int k = 0; k < LANES; k++)
            space[LANES * i + k] = layer->scales[LANES * block + k] * (float)from[LANES * i + k];
    return space;"""
FLOAT_FIELDS = """    const float *bias;     /* one for each output, */
    const float *bias_map; /* or [outputs][n][n], what the camera's profile adds at each place */
"""
INT8_FIELDS = """    const float *scales;     /* of the weights of each output */
    const float *bias;       /* one for each output, */
    const int16_t *bias_map; /* or [outputs][n][n], what the camera's profile adds at each place, */
    float bias_scale;        /* in steps of this */
"""


def _fill(name: str, prefix: str, words: Mapping[str, str]) -> str:
    text = (resources.files("c5.export") / "templates" / name).read_text("utf-8")
    return Template(_rename(text, prefix)).substitute(words)


def _plain(text: str) -> str:
    """A name as part of a comment, whatever it is."""
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text).replace("*/", "* /")


@dataclass(frozen=True)
class Sight:
    """What the network sees of a frame, from its histograms and constants, in blocks of channels."""

    output: Tensor
    inputs: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Collection:
    """Maps out of a block: the first ones, or added to those that are there."""

    inputs: tuple[Tensor]
    output: Tensor
    first: bool


Step = Layer | Sight | Collection


def _list_steps(folded: Folded) -> list[Step]:
    """The layers as C code runs them, so that few maps are needed at one time.

    Histograms and constants are put together for each layer that looks at them, and what each tensor adds to the maps
    is added once the tensor is there.
    """
    grid = folded.grid
    if any(value.shape[-1] != grid.bins for value in folded.constants.values()):
        raise ParameterError("this network has constants of another size than its histograms; C code cannot have them")
    first, channels = {QUERY: 0}, grid.channels
    for name, value in folded.constants.items():
        first[name], channels = channels, channels + len(value)
    steps: list[Step] = []
    for layer in _split_maps(folded.layers):
        if isinstance(layer, Convolution) and any(each.name in first for each in layer.inputs):
            weights = np.zeros((len(layer.weights), channels, *layer.weights.shape[2:]), np.float32)
            others, parts = [], []
            for tensor, own in by_tensor(layer.weights, layer.inputs):
                if tensor.name in first:
                    place = first[tensor.name]
                    weights[:, place : place + tensor.channels] = own
                else:
                    others.append(tensor)
                    parts.append(own)
            seen = Tensor(f"seen_{len(steps)}", channels, grid.bins)
            steps.append(Sight(seen))
            layer = replace(layer, inputs=(seen, *others), weights=np.concatenate([weights, *parts], axis=1))
        steps.append(layer)
        if layer.output.name.startswith("part_"):
            steps.append(Collection((layer.output,), folded.maps, layer.output.name == "part_0"))
    return steps


def _split_maps(layers: Sequence[Layer]) -> list[Layer]:
    """The layers, with a convolution for each tensor that the maps are made of, right behind it."""
    *split, last = layers
    if not isinstance(last, Convolution):
        raise ParameterError("the maps of this network are not made by a convolution; C code cannot have them")
    behind = {layer.output: number + 1 for number, layer in enumerate(split)}
    parts = sorted(by_tensor(last.weights, last.inputs), key=lambda part: behind.get(part[0], 0))
    for number, (tensor, own) in enumerate(parts):
        bias = last.bias if number == 0 else np.zeros_like(last.bias)
        part = Convolution((tensor,), replace(last.output, name=f"part_{number}"), own, bias)
        split.insert(behind.get(tensor, 0) + number, part)
    return split


def _place(steps: Sequence[Step], grid: Grid) -> tuple[dict[str, int], int]:
    """Where everything is in the workspace, in floats, and its size: what is needed at one time does not overlap."""
    n, last = grid.bins, len(steps) - 1
    histograms, maps = grid.channels * n * n, steps[-1].output.channels * n * n
    collected = [number for number, step in enumerate(steps) if isinstance(step, Collection)]
    looks = [number for number, step in enumerate(steps) if isinstance(step, Sight)]
    spans = {"SEARCHED": (histograms, -1, last), "SEEN": (histograms, -1, looks[-1]), "STRIP": (n * n, -1, -1)}
    spans |= {"MAPS": (maps, collected[0], last), "SCORES": (n * n, last, last), "LINES": (2 * n * n, last, last)}
    for number, step in enumerate(steps):
        if isinstance(step, Convolution):
            spans[f"SCRATCH_{number}"] = (_scratch(step, n), number, number)
    ends = {tensor.name: number for number, step in enumerate(steps) for tensor in step.inputs}
    chains: dict[str, list[tuple[Tensor, int]]] = {}  # tensors over each other and their rows, by the last of them
    for number, step in enumerate(steps):
        if isinstance(step, Collection):
            continue
        chain: list[tuple[Tensor, int]] = []
        row = 0
        if isinstance(step, Normalization):  # in place
            chain = chains.pop(step.inputs[0].name)
            row = chain[-1][1]
        elif isinstance(step, Convolution) and step.weights.shape[2] == 3:
            fit = [each for each in step.inputs if ends[each.name] == number and _blocks(each) >= _blocks(step.output)]
            if fit:  # over its input, a row before it
                chain = chains.pop(fit[0].name)
                row = chain[-1][1] - 1
        chains[step.output.name] = [*chain, (step.output, row)]
    starts = {step.output.name: number for number, step in enumerate(steps)}
    for name, chain in chains.items():
        (first, _), (final, low) = chain[0], chain[-1]
        spans[name] = (_size(first) - low * LANES * first.size, starts[first.name], ends[final.name])
    places: dict[str, int] = {}
    largest_first = sorted(spans.items(), key=lambda item: -item[1][0] * (item[1][2] - item[1][1] + 1))
    for name, (size, start, end) in largest_first:
        taken = sorted(
            (places[o], places[o] + spans[o][0]) for o in places if spans[o][1] <= end and spans[o][2] >= start
        )
        place = 0
        for low, high in taken:
            if place + size <= low:
                break
            place = max(place, high)
        places[name] = place
    total = max(place + spans[name][0] for name, place in places.items())
    for name, chain in chains.items():
        base, low = places.pop(name), chain[-1][1]
        places |= {tensor.name.upper(): base + (row - low) * LANES * tensor.size for tensor, row in chain}
    return places, total


LANES = 8  # as in the template
KEPT = 4
"""Blocks of transformed weights that a convolution keeps for its next tiles. More would take more memory than time."""


def _blocks(tensor: Tensor) -> int:
    return -(-tensor.channels // LANES)


def _size(tensor: Tensor) -> int:
    """Floats of a tensor in blocks, each with a row to spare."""
    return LANES * _blocks(tensor) * tensor.size * (tensor.size + 1)


def _tiles(bins: int) -> int:
    """How many tiles of 4x4 are processed at a time: at least a row of the largest maps."""
    return max(16, bins // 4)


def _scratch(layer: Convolution, bins: int) -> int:
    """Floats that a convolution works in."""
    if layer.weights.shape[2] == 1:
        return LANES * (layer.output.size**2 + LANES)  # sums, weights
    blocks, tiles, most = _blocks(layer.output), (-(-layer.output.size // 4)) ** 2, _tiles(bins)
    kept = blocks * sum(map(_blocks, layer.inputs)) if tiles > most else 1
    lines = 10 * (4 * most + 2)
    # tiles and sums, weights
    return LANES * (lines + 36 * (most * (1 + blocks) + LANES * (kept if kept <= KEPT else 1)) + 72)


def _call(number: int, steps: Sequence[Step]) -> str:
    """One line of `c5_emit`."""
    step = steps[number]
    out, places = step.output, [f"t + {tensor.name.upper()}" for tensor in step.inputs]
    target = f"t + {out.name.upper()}"
    if isinstance(step, Sight):
        call = f"see(t + SEEN, {target})"
    elif isinstance(step, Collection):
        call = f"collect({places[0]}, {int(not step.first)}, t + MAPS)"
    elif isinstance(step, Convolution):
        inputs = f"(const float *const[]){{{', '.join(places)}}}"
        before = sum(isinstance(each, Convolution) for each in steps[:number])
        call = f"convolve(&c5_layers[{before}], {inputs}, {target}, t + SCRATCH_{number})"
    elif isinstance(step, Pooling):
        call = f"pool({out.channels}, {out.size}, {places[0]}, {target})"
    elif isinstance(step, Upsampling):
        call = f"upsample({out.channels}, {step.inputs[0].size}, {places[0]}, {target})"
    else:
        call = f"normalize({out.channels}, {out.size}, {_f(step.epsilon)}, {_f(step.slope)}, {target})"
    return f"    {call}; /* {out.channels} x {out.size} x {out.size} */\n"


class _Weights:
    """The arrays of `c5_weights.c`, and their bytes."""

    def __init__(self, convolutions: Sequence[Convolution], constants: Mapping[str, Float32s], *, int8: bool) -> None:
        self.int8 = int8
        self.size = 0
        self.parts: list[str] = ['#include "c5_weights.h"\n\n#include <stddef.h>\n']
        if constants:
            value = np.concatenate(list(constants.values()))
            self._array("float", "c5_constants", value, f"{len(value)} maps", storage="const")
        layers = [self._add(number, layer) for number, layer in enumerate(convolutions)]
        self.parts.append(f"const c5_layer c5_layers[{len(layers)}] = {{\n{''.join(layers)}}};\n")
        most = max(len(layer.inputs) for layer in convolutions)
        self.size += 4 * len(layers) * (6 + most + (5 if int8 else 3))  # with pointers of 32 bits

    @property
    def text(self) -> str:
        return "\n".join(self.parts)

    def _add(self, number: int, layer: Convolution) -> str:
        """The arrays of a layer; returns its line in the table of layers."""
        outputs, _, side, _ = layer.weights.shape
        size = layer.output.size
        kept: NDArray[Any] = layer.weights
        fields = [f"weights_{number}"]
        if self.int8:
            kept, scales = layer.quantize()
            self._array("float", f"scales_{number}", _fill_up(scales), "one for each output")
            fields.append(f"scales_{number}")
        kept = _fill_inputs(layer, kept)
        inputs = kept.shape[1]
        order = _fill_up(kept).reshape(-1, LANES, inputs, side, side).transpose(0, 2, 3, 4, 1)
        self._array("c5_weight", f"weights_{number}", order, f"{outputs} outputs of {inputs} inputs, {side} x {side}")
        if layer.bias.ndim == 1:
            self._array("float", f"bias_{number}", _fill_up(layer.bias), "one for each output")
            fields += [f"bias_{number}", "NULL", *(["0"] if self.int8 else [])]
        else:
            step = max(float(np.abs(layer.bias).max()), 1e-12) / 32767
            values: NDArray[Any] = np.rint(layer.bias / step).astype(np.int16) if self.int8 else layer.bias
            kind = "int16_t" if self.int8 else "float"
            self._array(kind, f"bias_{number}", _in_blocks(values), f"{outputs} outputs x {size} x {size}")
            fields += ["NULL", f"bias_{number}", *([_f(step)] if self.int8 else [])]
        channels = ", ".join(str(tensor.channels) for tensor in layer.inputs)
        head = f"{size}, {side}, {outputs}, {inputs}, {len(layer.inputs)}, {{{channels}}}, {_f(layer.slope)}"
        return f"    {{{head}, {', '.join(fields)}}},\n"

    def _array(
        self, kind: str, name: str, values: NDArray[Any], comment: str, *, storage: str = "static const"
    ) -> None:
        self.parts.append(f"/* {comment} */\n{storage} {kind} {name}[{values.size}] = {{\n{_lines(values)}\n}};\n")
        self.size += int(values.size) * (values.dtype.itemsize if values.dtype.kind == "i" else 4)


def _in_blocks(maps: NDArray[Any]) -> NDArray[Any]:
    """(channels, n, n) as the C code keeps them: [channels / 8][n][n][8]."""
    filled = _fill_up(maps)
    return filled.reshape(-1, LANES, *maps.shape[1:]).transpose(0, 2, 3, 1)


def _fill_inputs(layer: Convolution, weights: NDArray[Any]) -> NDArray[Any]:
    """The weights of a convolution with zeros for the channels that fill up the blocks of each tensor."""
    parts = [_fill_up(own.swapaxes(0, 1)).swapaxes(0, 1) for _, own in by_tensor(weights, layer.inputs)]
    return np.concatenate(parts, axis=1)


def _fill_up(values: NDArray[Any]) -> NDArray[Any]:
    """Padded with zeros to whole blocks of outputs."""
    missing = -len(values) % LANES
    return np.concatenate([values, np.zeros((missing, *values.shape[1:]), values.dtype)])


def _f(value: float) -> str:
    """A number of type float."""
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if any(letter in text for letter in ".en") else f"{text}.0f"


def _lines(values: NDArray[Any]) -> str:
    flat = values.ravel()
    texts = [str(value) for value in flat.tolist()] if flat.dtype.kind in "iu" else [_f(value) for value in flat]
    per_line = 10 if flat.dtype.kind == "f" else 24
    return ",\n".join("    " + ", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line))


def _vector(folded: Folded, image: LinearImage, *, int8: bool) -> str:
    """A frame and what Python finds in it, step by step."""
    stack = histogram(image, folded.grid)
    maps = run_layers(folded, stack.seen)
    channels = folded.grid.channels
    found = locate(stack, maps[:channels], maps[channels], maps[channels + 1] if folded.gain else None)
    height, width = image.rgb.shape[:2]
    ignored = (~image.mask | image.clipped).astype(np.uint8)
    arrays: Iterable[tuple[str, str, NDArray[Any]]] = (
        ("float", "vector_rgb", image.rgb),
        ("uint8_t", "vector_ignore", ignored),
        ("float", "vector_seen", stack.seen),
        ("float", "vector_searched", stack.searched),
        ("float", "vector_maps", maps),
        ("float", "vector_illuminant", found.illuminant.astype(np.float32)),
    )
    lines = [
        "/* A frame, its histograms, the maps that the network emits for it, and its light, as Python finds them. */",
        "#ifndef C5_VECTOR_H\n#define C5_VECTOR_H\n\n#include <stdint.h>\n",
        f"#define VECTOR_ROWS {height}\n#define VECTOR_COLUMNS {width}",
        f"#define VECTOR_UNCERTAINTY {found.uncertainty:.7g}",
        f"#define VECTOR_MAPS_APART {INT8_MAPS_APART if int8 else FLOAT_MAPS_APART}",
        f"#define VECTOR_DEGREES_APART {INT8_DEGREES if int8 else FLOAT_DEGREES}\n",
    ]
    for kind, name, values in arrays:
        lines.append(f"static const {kind} {name}[{values.size}] = {{\n{_lines(values)}\n}};\n")
    return "\n".join([*lines, "#endif\n"])
