"""Inference written from docs/model-file.md alone: NumPy, the zip of the model file, and nothing of this package.

The tests hold it, the package and the C code to the same test vectors.
"""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

Array = NDArray[Any]


class Reference:
    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            self.grid = json.loads(archive.read("model.json"))["grid"]
            self.graphs = {
                name: onnx.load_model_from_string(archive.read(f"{name}.onnx")) for name in ("roll", "query")
            }
        self.n = self.grid["bins"]
        self.step = 2 * self.grid["limit"] / self.n
        self.centers = (np.arange(self.n) - (self.n - 1) / 2) * self.step

    def histograms(self, image: Array, ignore: Array) -> tuple[Array, Array]:
        """What the networks see, and where the light is searched for: (k, n, n) each."""
        counts = ~ignore & (image.sum(axis=2) > 0)
        height, width = counts.shape
        gradient, all_count = np.zeros_like(image), counts.copy()
        for y in range(height):
            for x in range(width):
                for i in range(y - 1, y + 2):
                    for j in range(x - 1, x + 2):
                        inside = 0 <= i < height and 0 <= j < width
                        neighbor = image[min(max(i, 0), height - 1), min(max(j, 0), width - 1)]
                        gradient[y, x] += np.abs(image[y, x] - neighbor) / 8
                        all_count[y, x] &= counts[i, j] if inside else True
        seen, searched = [], []
        every = max(1, int(counts.sum()) // self.grid["pixels"])
        for colors, which, power in [*((image, counts, p) for p in self.grid["powers"]), (gradient, all_count, 1)]:
            whole, even = np.zeros((2, self.n, self.n))
            for strip in range(self.grid["strips"]):
                ends = [edge * height // self.grid["strips"] for edge in (strip, strip + 1)]
                rows = [row for row in range(*ends) if row % every == 0]
                bins, within = self.count(colors[rows][which[rows]], power)
                whole += bins
                even += bins * which[rows].sum() / max(within, 1e-21)
            seen.append(self.scale(whole))
            searched.append(self.scale(even))
        return np.array(seen), np.array(searched)

    def count(self, colors: Array, power: int) -> tuple[Array, float]:
        bins, within = np.zeros((self.n, self.n)), 0.0
        for r, g, b in colors.astype(float) + 1e-30:
            x, y = (math.log(g / other) / self.step + (self.n - 1) / 2 for other in (r, b))
            weight = (r * g * b) ** (power / 3)
            if -1 <= x < self.n and -1 <= y < self.n:
                within += weight
                for row in (math.floor(y), math.floor(y) + 1):
                    for column in (math.floor(x), math.floor(x) + 1):
                        if 0 <= row < self.n and 0 <= column < self.n:
                            bins[row, column] += weight * (1 - abs(y - row)) * (1 - abs(x - column))
        return bins, within

    def scale(self, bins: Array) -> Array:
        for _ in range(2):
            padded = np.pad(bins, ((1, 1), (0, 0)))
            bins = ((padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4).T
        return np.asarray(np.sqrt(bins / bins.sum())) if bins.sum() > 1e-21 else np.zeros_like(bins)

    def profile(self, roll: list[Array]) -> list[Array]:
        """Of the histograms that the networks see of each image."""
        features = [self.run("roll", {"histograms": seen[None]}) for seen in roll]
        return [np.max(level, axis=0).astype(np.float16).astype(float) for level in zip(*features, strict=True)]

    def maps(self, seen: Array, profile: list[Array]) -> tuple[Array, Array]:
        inputs = {"query": seen[None]} | {f"profile_{level}": each for level, each in enumerate(profile)}
        filters, bias = self.run("query", inputs)
        return filters[0], bias[0]

    def light(self, searched: Array, filters: Array, bias: Array) -> tuple[Array, float]:
        """The illuminant, and its uncertainty in degrees."""
        n = self.n
        scores = bias.astype(float)
        for channel, i, j in zip(*np.nonzero(searched), strict=True):
            for y in range(max(0, i - n // 2), min(n, i + n // 2)):
                for x in range(max(0, j - n // 2), min(n, j + n // 2)):
                    scores[y, x] += searched[channel, i, j] * filters[channel, y - i + n // 2, x - j + n // 2]
        heat = np.exp(scores - scores.max())
        heat /= heat.sum()
        u, v = heat.sum(axis=0) @ self.centers, heat.sum(axis=1) @ self.centers
        light = self.unit(u, v)
        angles = [[math.acos(min(1, float(light @ self.unit(u, v)))) for u in self.centers] for v in self.centers]
        return light, math.degrees(float((heat * angles).sum()))

    def unit(self, u: float, v: float) -> Array:
        rgb = np.exp([-u, 0, -v])
        return np.asarray(rgb / np.linalg.norm(rgb))

    def run(self, name: str, inputs: dict[str, Array]) -> list[Array]:
        """A graph, operator by operator."""
        graph = self.graphs[name].graph
        values: dict[str, Any] = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
        values |= {key: value.astype(float) for key, value in inputs.items()}
        for node in graph.node:
            settings = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
            given = [values[each] for each in node.input if each]
            found = operate(node.op_type, given, settings)
            values |= zip(node.output, found if isinstance(found, list) else [found], strict=True)
        return [values[output.name] for output in graph.output]


def operate(operator: str, given: list[Array], settings: dict[str, Any]) -> Any:
    """The operators that the networks of this package are made of."""
    match operator:
        case "Conv":
            return convolve(given[0], given[1], given[2])
        case "LeakyRelu":
            return np.where(given[0] > 0, given[0], settings["alpha"] * given[0])
        case "MaxPool":
            batch, channels, height, width = given[0].shape
            return given[0].reshape(batch, channels, height // 2, 2, width // 2, 2).max(axis=(3, 5))
        case "InstanceNormalization":
            mean, variance = (f(given[0], axis=(2, 3), keepdims=True) for f in (np.mean, np.var))
            return (given[0] - mean) / np.sqrt(variance + settings["epsilon"])
        case "MatMul":
            return given[0] @ given[1]
        case "Concat":
            return np.concatenate(given, axis=settings["axis"])
        case "Split":
            return np.split(given[0], np.cumsum(given[1])[:-1], axis=settings["axis"])
        case "Gather":
            return np.take(given[0], given[1], axis=settings.get("axis", 0))
        case "Unsqueeze":
            return np.expand_dims(given[0], tuple(given[1].tolist()))
        case "Squeeze":
            return np.squeeze(given[0], tuple(given[1].tolist()))
        case "ReduceMean":
            return given[0].mean(axis=tuple(settings["axes"]), keepdims=bool(settings.get("keepdims", 1)))
        case "Constant":
            return onnx.numpy_helper.to_array(settings["value"])
        case "Cast":
            return given[0].astype(float)
        case "ConstantOfShape":
            value = onnx.numpy_helper.to_array(settings["value"])
            return np.full(given[0].astype(int), value[0])
        case "Mul":
            return given[0] * given[1]
        case "Equal":
            return given[0] == given[1]
        case "Where":
            return np.where(*given)
        case "Expand":
            return given[0] * np.ones(given[1].astype(int))
    raise ValueError(operator)


def convolve(x: Array, weights: Array, bias: Array) -> Array:
    """Zeros beyond the edges; the size stays."""
    side, n = weights.shape[2], x.shape[2]
    padded = np.pad(x, ((0, 0), (0, 0), (side // 2,) * 2, (side // 2,) * 2))
    total = np.zeros((1, len(weights), n, n)) + bias[None, :, None, None]
    for i in range(side):
        for j in range(side):
            total += np.einsum("oc,bcyx->boyx", weights[:, :, i, j], padded[:, :, i : i + n, j : j + n])
    return np.asarray(total)
