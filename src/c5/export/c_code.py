"""C99 code of a model with a camera's profile baked in: readable, without a heap, with a test vector and a Makefile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c5.ccc import locate
from c5.demo import VirtualCamera, render_roll
from c5.errors import ParameterError
from c5.export.layers import (
    QUERY,
    Budget,
    Convolution,
    Folded,
    Layer,
    Normalisation,
    Pooling,
    Tensor,
    Upsampling,
    fold,
    run_layers,
)
from c5.histograms import histogram
from c5.image import LinearImage
from c5.io.files import write_file
from c5.metrics import BOUND_FACTOR, UNKNOWN_DEG
from c5.model import Model, Profile
from c5.zones import average_zones

FLOAT_MAPS_APART, INT8_MAPS_APART = 0.01, 1.0
"""How far the maps of the test vector may be from those in Python: rounding differs, and int8 rounds."""
FLOAT_DEGREES, INT8_DEGREES = 0.02, 0.5


def export_c(model: Model, profile: Profile | None, folder: Path, *, int8: bool) -> Budget:
    """Write the C code of a model to a folder; returns what a query costs."""
    files, budget = write_c(fold(model, profile), vector_image(), int8=int8)
    for name, data in files.items():
        write_file(folder / name, data)
    return budget


def vector_image() -> LinearImage:
    """The frame of the test vector: 24x32 zones of a rendered photograph, some of them clipped."""
    rng = np.random.default_rng(4)
    (photo,) = render_roll(VirtualCamera.random(rng), 1, rng, (96, 128))
    return average_zones(photo.image, 24, 32)


def write_c(folded: Folded, vector: LinearImage, *, int8: bool) -> tuple[dict[str, bytes], Budget]:
    """The files of the C code, by name, with an image as test vector, and what a query costs."""
    seen = _see_constants(folded)
    places, size = _place(seen)
    size += 64 // 4  # to begin at a multiple of 64 bytes
    weights = _Weights(seen, int8=int8)
    kind = "int8 weights" if int8 else "float weights"
    camera = f"the camera {folded.camera}" if folded.camera else "no camera in particular"
    grid = folded.grid
    words: dict[str, Any] = {
        "about": f"Made by C5: the model {_plain(folded.name)} ({folded.identity}) for {_plain(camera)}, {kind}.",
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
        "places": "\n".join(f"#define {name} {place}" for name, place in places.items()),
        "n_constants": sum(map(len, folded.constants.values())),
        "constants": "".join(
            f"    place(seen, {channel}, {name} + {index} * N * N);\n"
            for channel, (name, index) in enumerate(
                ((name, index) for name, value in folded.constants.items() for index in range(len(value))),
                start=grid.channels,
            )
        ),
        "calls": "".join(_call(number, layer) for number, layer in enumerate(seen.layers)),
        "gained": GAINED if folded.gain else "",
        "bound_factor": float(BOUND_FACTOR),
        "bound_least": float(UNKNOWN_DEG),
        "weights": INT8_WEIGHTS if int8 else FLOAT_WEIGHTS,
        "biased": "layer->bias_scale * (float)bias[i]" if int8 else "bias[i]",
        "bias_type": "int16_t" if int8 else "float",
        "weight_type": "int8_t" if int8 else "float",
        "tensors": max(len(layer.inputs) for layer in seen.layers),
        "fields": INT8_FIELDS if int8 else FLOAT_FIELDS,
        "declarations": weights.declarations,
    }
    files = {name: _fill(name, words) for name in TEMPLATES}
    files |= {"c5_weights.c": weights.text, "c5_vector.h": _vector(folded, vector, int8=int8)}
    budget = Budget(weights.size, 4 * size, folded.largest, folded.multiply_adds)
    return {name: text.encode() for name, text in files.items()}, budget


TEMPLATES = ("c5_awb.h", "c5_awb.c", "c5_weights.h", "c5_test.c", "Makefile", "cortex_m.c", "cortex_m.ld")
GAINED = "maps[AT(N, C5_SEEN + 1, i)] * "
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


def _fill(name: str, words: Mapping[str, Any]) -> str:
    text = (resources.files("c5.export") / "templates" / name).read_text("utf-8")
    return Template(text).substitute(words)


def _plain(text: str) -> str:
    """A name as part of a comment, whatever it is."""
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text).replace("*/", "* /")


def _see_constants(folded: Folded) -> Folded:
    """The same network, with constants as further channels beside the histograms: one tensor instead of several."""
    grid = folded.grid
    if any(value.shape[-1] != grid.bins for value in folded.constants.values()):
        raise ParameterError("this network has constants of another size than its histograms; C code cannot have them")
    first, channels = {}, grid.channels
    for name, value in folded.constants.items():
        first[name], channels = channels, channels + len(value)
    seen = Tensor(QUERY, channels, grid.bins)
    layers: list[Layer] = []
    for layer in folded.layers:
        if isinstance(layer, Convolution) and any(each.name in (QUERY, *first) for each in layer.inputs):
            weights = np.zeros((len(layer.weights), channels, *layer.weights.shape[2:]), np.float32)
            others, parts, start = [], [], 0
            for tensor in layer.inputs:
                own = layer.weights[:, start : start + tensor.channels]
                start += tensor.channels
                if tensor.name in (QUERY, *first):
                    place = first.get(tensor.name, 0)
                    weights[:, place : place + tensor.channels] = own
                else:
                    others.append(tensor)
                    parts.append(own)
            layer = replace(layer, inputs=(seen, *others), weights=np.concatenate([weights, *parts], axis=1))
        layers.append(layer)
    return replace(folded, layers=tuple(layers))


def _place(folded: Folded) -> tuple[dict[str, int], int]:
    """Where each tensor is in the workspace, in floats, and its size: tensors needed at one time do not overlap."""
    n, channels, last = folded.grid.bins, folded.grid.channels, len(folded.layers)
    spans = {"SEARCHED": (channels * n * n, -1, last), "WHOLE": (channels * n * n, -1, -1), "STRIP": (n * n, -1, -1)}
    spans |= {"SCORES": (n * n, last, last), "LINES": (2 * n * n, last, last)}
    for number, layer in enumerate(folded.layers):
        if isinstance(layer, Convolution):
            spans[f"SCRATCH_{number}"] = (_scratch(layer, n), number, number)
    alias: dict[str, str] = {}
    ends: dict[str, int] = {folded.maps.name: last}
    for number, layer in enumerate(folded.layers):
        if isinstance(layer, Normalisation):  # in place
            alias[layer.output.name] = alias.get(layer.input.name, layer.input.name)
        for tensor in layer.inputs:
            ends[alias.get(tensor.name, tensor.name)] = number
        if layer.output.name in alias:
            ends[alias[layer.output.name]] = number
    starts = {QUERY: -1} | {layer.output.name: number for number, layer in enumerate(folded.layers)}
    tensors = {tensor.name: tensor for layer in folded.layers for tensor in (*layer.inputs, layer.output)}
    sizes = {name: LANES * _blocks(tensor.channels) * tensor.size**2 for name, tensor in tensors.items()}
    for name, size in sizes.items():
        if name not in alias:
            spans[name.upper()] = (size, starts[name], ends[name])
    places: dict[str, int] = {}
    for name, (size, start, end) in sorted(spans.items(), key=lambda item: -item[1][0]):
        taken = sorted(
            (places[o], places[o] + spans[o][0]) for o in places if spans[o][1] <= end and spans[o][2] >= start
        )
        place = 0
        for low, high in taken:
            if place + size <= low:
                break
            place = max(place, high)
        places[name] = place
    places |= {name.upper(): places[other.upper()] for name, other in alias.items()}
    total = max(place + spans[name][0] for name, place in places.items() if name in spans)
    order = dict(sorted(places.items(), key=lambda item: (item[0].startswith("T"), item[0])))
    return order, total


LANES = 8  # as in the template


def _blocks(channels: int) -> int:
    return -(-channels // LANES)


def _tiles(bins: int) -> int:
    """How many tiles of 4x4 are processed at a time: at least a row of the largest maps."""
    return max(16, bins // 4)


def _scratch(layer: Convolution, bins: int) -> int:
    """Floats that a convolution works in."""
    if layer.weights.shape[2] == 1:
        return LANES * (layer.output.size**2 + LANES)  # sums, weights
    blocks, tiles, most = _blocks(layer.output.channels), (-(-layer.output.size // 4)) ** 2, _tiles(bins)
    kept = sum(_blocks(tensor.channels) for tensor in layer.inputs) if tiles > most else 1
    lines = 10 * (4 * most + 2)
    return LANES * (lines + 36 * (most * (1 + blocks) + LANES * blocks * kept) + 72)  # tiles and sums, weights


def _call(number: int, layer: Layer) -> str:
    """One line of `c5_emit`."""
    out, places = layer.output, [f"t + {tensor.name.upper()}" for tensor in layer.inputs]
    target = f"t + {out.name.upper()}"
    shape = f"/* {out.channels} x {out.size} x {out.size} */"
    if isinstance(layer, Convolution):
        inputs = f"(const float *const[]){{{', '.join(places)}}}"
        return f"    convolve(&layer_{number}, {inputs}, {target}, t + SCRATCH_{number}); {shape}\n"
    if isinstance(layer, Pooling):
        return f"    pool({out.channels}, {out.size}, {places[0]}, {target}); {shape}\n"
    if isinstance(layer, Upsampling):
        return f"    upsample({out.channels}, {layer.input.size}, {places[0]}, {target}); {shape}\n"
    return f"    normalise({out.channels}, {out.size}, {layer.epsilon:.9g}f, {_f(layer.slope)}, {target}); {shape}\n"


class _Weights:
    """The arrays of `c5_weights.c`, and their bytes."""

    def __init__(self, folded: Folded, *, int8: bool) -> None:
        self.int8 = int8
        self.size = 0
        self.parts: list[str] = ['#include "c5_weights.h"\n\n#include <stddef.h>\n']
        names = []
        for name, value in folded.constants.items():
            names.append(f"extern const float {name}[{value.size}];")
            self._array("float", name, value, f"{value.shape}", static=False)
        for number, layer in enumerate(folded.layers):
            if isinstance(layer, Convolution):
                names.append(f"extern const c5_layer layer_{number};")
                self._add(number, layer)
        self.declarations = "\n".join(names) + "\n"

    @property
    def text(self) -> str:
        return "\n".join(self.parts)

    def _add(self, number: int, layer: Convolution) -> None:
        outputs, _, side, _ = layer.weights.shape
        size = layer.output.size
        kept: NDArray[Any] = layer.weights
        fields = [f"weights_{number}"]
        if self.int8:
            kept, scales = layer.quantise()
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
        self.parts.append(f"const c5_layer layer_{number} = {{{head}, {', '.join(fields)}}};\n")

    def _array(self, kind: str, name: str, values: NDArray[Any], comment: str, *, static: bool = True) -> None:
        storage = "static const" if static else "const"
        self.parts.append(f"/* {comment} */\n{storage} {kind} {name}[{values.size}] = {{\n{_lines(values)}\n}};\n")
        self.size += int(values.size) * (values.dtype.itemsize if values.dtype.kind == "i" else 4)


def _in_blocks(maps: NDArray[Any]) -> NDArray[Any]:
    """(channels, n, n) as the C code keeps them: [channels / 8][n][n][8]."""
    filled = _fill_up(maps)
    return filled.reshape(-1, LANES, *maps.shape[1:]).transpose(0, 2, 3, 1)


def _fill_inputs(layer: Convolution, weights: NDArray[Any]) -> NDArray[Any]:
    """The weights of a convolution with zeros for the channels that fill up the blocks of each tensor."""
    parts, first = [], 0
    for tensor in layer.inputs:
        own = weights[:, first : first + tensor.channels]
        parts.append(_fill_up(own.swapaxes(0, 1)).swapaxes(0, 1))
        first += tensor.channels
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
