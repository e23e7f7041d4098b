"""What training and evaluation compute from an image, each kind with a key and a compact encoding."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np

from c5.classical import METHODS
from c5.color import Float32s, Float64s
from c5.datasets import palettes
from c5.datasets.palettes import Palettes, make_palettes
from c5.errors import ImageError, ReadError
from c5.fingerprints import fingerprint, probe
from c5.histograms import Grid, Histograms, histogram
from c5.image import Crop, LinearImage, shrink
from c5.io.archives import inflate
from c5.zones import average_zones

Made = TypeVar("Made", covariant=True)

STEP = 0.002
"""Histograms are kept as logarithms in steps of this many nats: within 0.1 %."""
CODES = 8192
"""Smaller numbers than exp(-STEP * CODES) are zero."""


class Feature(Protocol[Made]):
    """One kind of thing computed from an image."""

    @property
    def key(self) -> str:
        """Identifies it, including the way it is computed."""
        ...

    @property
    def purpose(self) -> str:
        """What a set must be prepared for to have it: the name of a recipe or method, if one needs it."""
        ...

    def encode(self, image: LinearImage, rng: np.random.Generator) -> bytes:
        """The feature of an image at working size, compressed."""
        ...

    def decode(self, data: bytes) -> Made:
        """Undo `encode`; damaged bytes raise a ReadError."""
        ...


@dataclass(frozen=True)
class HistogramFeature:
    """Histograms on a grid, of the whole image and of random crops of it."""

    grid: Grid
    crops: int = 0
    purpose: str = field(default="", compare=False)
    zones: tuple[int, int] | None = None
    """Rows and columns that the image is averaged to first; None for its pixels."""

    @property
    def key(self) -> str:
        zones = "" if self.zones is None else f" zones {self.zones[0]} {self.zones[1]}"
        return f"histograms {self.grid.key} {self.crops} {STEP}{zones}"

    def encode(self, image: LinearImage, rng: np.random.Generator) -> bytes:
        image = image if self.zones is None else average_zones(image, *self.zones)
        views = [histogram(image, self.grid).stack]
        for _ in range(self.crops):
            try:
                views.append(histogram(Crop.random(rng, 0.5).cut(image), self.grid).stack)
            except ImageError:  # nothing there counts
                views.append(views[0])
        return encode_sparse(np.concatenate(views).reshape(-1, self.grid.bins**2), self.grid.channels)

    def decode(self, data: bytes) -> Histograms:
        """Of shape (1 + crops, ...)."""
        channels, bins, _ = self.grid.shape
        views = 1 + self.crops
        stack = decode_sparse(data, (views * channels, bins * bins), self.grid.channels)
        return Histograms(self.grid, stack.reshape(views, channels, bins, bins))


@dataclass(frozen=True)
class PaletteFeature:
    """Palettes with weights for some powers of brightness."""

    powers: tuple[int, ...]
    purpose: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        numbers = f"{palettes.POINTS} {palettes.CODE_STEP} {palettes.BLACK_LEVEL_NOISE} {len(palettes.VIEWS)}"
        return f"palettes {''.join(map(str, self.powers))} {palettes.FINE.key} {numbers}"

    def encode(self, image: LinearImage, rng: np.random.Generator) -> bytes:
        return palettes.encode(make_palettes(image, self.powers, rng))

    def decode(self, data: bytes) -> Palettes:
        return palettes.decode(data, self.powers)


@dataclass(frozen=True)
class VividnessFeature:
    """How much the colors of an image vary, whatever the model: rolls can be chosen by it."""

    purpose = ""

    @property
    def key(self) -> str:
        return f"vividness {Grid().key}"

    def encode(self, image: LinearImage, rng: np.random.Generator) -> bytes:
        return np.asarray(histogram(image, Grid()).vividness, dtype="<f8").tobytes()

    def decode(self, data: bytes) -> float:
        return float(_parse_numbers(data, 1)[0])


@dataclass(frozen=True)
class EstimateFeature:
    """The estimate of a classical method."""

    method: str
    purpose = ""

    @property
    def key(self) -> str:
        return f"estimate {self.method} {_method_key(self.method)}"

    def encode(self, image: LinearImage, rng: np.random.Generator) -> bytes:
        return METHODS[self.method](image).astype("<f8").tobytes()

    def decode(self, data: bytes) -> Float64s:
        """(3,) unit RGB."""
        return _parse_numbers(data, 3)


def _parse_numbers(data: bytes, count: int) -> Float64s:
    values = np.frombuffer(data, "<f8").astype(np.float64) if len(data) == 8 * count else np.array(np.nan)
    if not np.isfinite(values).all():
        raise ReadError(f"not {count} finite numbers")
    return values


@cache
def _method_key(method: str) -> str:
    return fingerprint(METHODS[method](probe(CLASSICAL_SEED)))


CLASSICAL_SEED = 32


def encode_sparse(rows: Float32s, lag: int) -> bytes:
    """Rows (n, bins) of numbers from 0 to 1, most of them 0. Each row is like the one `lag` before it."""
    codes = np.zeros(rows.shape, np.uint16)
    steps = np.rint(-np.log(np.maximum(rows, np.float32(1e-30))) / STEP) + 1
    np.copyto(codes, steps.astype(np.uint16), where=(rows > 0) & (steps < CODES))
    filled = codes > 0
    differs, change = filled.copy(), codes.copy()
    differs[lag:] ^= filled[:-lag]
    change[lag:] -= codes[:-lag]
    values = change[filled]
    low, high = (values & 255).astype(np.uint8), (values >> 8).astype(np.uint8)
    return zlib.compress(np.packbits(differs).tobytes() + high.tobytes() + low.tobytes(), 6)


def decode_sparse(data: bytes, shape: tuple[int, int], lag: int) -> Float32s:
    """Undo `encode_sparse`."""
    size = shape[0] * shape[1]
    raw = np.frombuffer(inflate(data, size // 8 + 2 * size), np.uint8)
    if raw.size < size // 8:
        raise ReadError("histograms are cut short")
    filled = np.unpackbits(raw[: size // 8]).reshape(shape).astype(np.bool_)
    for row in range(lag, shape[0]):
        filled[row] ^= filled[row - lag]
    if raw.size != size // 8 + 2 * np.count_nonzero(filled):
        raise ReadError("histograms are cut short")
    high, low = raw[size // 8 :].reshape(2, -1).astype(np.uint16)
    codes = np.zeros(shape, np.uint16)
    codes[filled] = (high << 8) + low
    for row in range(lag, shape[0]):
        codes[row] += codes[row - lag] * filled[row]
    if codes.max(initial=0) >= CODES:
        raise ReadError("a number is out of range")
    return np.asarray(np.take(palettes.code_weights(STEP, CODES), codes), dtype=np.float32)


def feature_rng(digest: str) -> np.random.Generator:
    """Random numbers that depend on the image alone."""
    return np.random.default_rng(int(digest[:16], 16))


def prepare_image(image: LinearImage, features: tuple[Feature[Any], ...], digest: str) -> list[bytes]:
    """The encoded features of an image, in order."""
    image = shrink(image)
    return [feature.encode(image, feature_rng(digest)) for feature in features]
