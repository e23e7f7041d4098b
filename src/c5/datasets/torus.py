"""Histograms that wrap around, which FFCC looks at: Barron and Tsai, "Fast Fourier Color Constancy", CVPR 2017."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from c5.color import Bools, Float32s, Floats
from c5.errors import ImageError, ReadError
from c5.fingerprints import fingerprint, probe
from c5.histograms import erode, gradients_of, pad
from c5.image import LinearImage, require_counts, shrink
from c5.io.archives import inflate


@dataclass(frozen=True)
class Torus:
    """Log-chroma wrapped around; bin (0, 0) is u = v = 0."""

    bins: int = 64
    step: float = 1 / 32
    """The width of a bin in nats. The torus is bins * step around."""
    weight_power: float = 0.5
    """Colors are weighted by brightness, the geometric mean of RGB, to this power; 0 is all equally, as in the
    paper."""


@dataclass(frozen=True)
class TorusFeature:
    """`wrapped_histograms`, kept in half precision."""

    torus: Torus
    purpose = "ffcc"

    @property
    def key(self) -> str:
        torus = self.torus
        counted = fingerprint(wrapped_histograms(probe(PROBE_SEED), torus))
        return f"torus {torus.bins} {torus.step} {torus.weight_power} {counted}"

    def encode(self, image: LinearImage, rng: np.random.Generator) -> bytes:
        return zlib.compress(np.sqrt(wrapped_histograms(image, self.torus)).astype("<f2").tobytes(), 6)

    def decode(self, data: bytes) -> Float32s:
        n = self.torus.bins
        raw = inflate(data, 4 * n * n)
        if len(raw) != 4 * n * n:
            raise ReadError("histograms of another size")
        histograms = np.frombuffer(raw, "<f2").reshape(2, n, n).astype(np.float32) ** 2
        if not np.isfinite(histograms).all():
            raise ReadError("histograms are not finite")
        return histograms


PROBE_SEED = 90


def wrapped_histograms(image: LinearImage, torus: Torus) -> Float32s:
    """The log-chroma histograms of an image's pixels and of its edges on a torus, float32 (2, n, n), each of sum 1.

    An edge is the local absolute deviation, the mean absolute difference of a pixel to its eight neighbors, and counts
    where all nine do. A color is shared between the four bins around it, and left out where a channel is zero. A
    picture without edges has zeros for its second histogram. Images above `WORKING_PIXELS` are area-averaged first.
    """
    image = shrink(image)
    counts = require_counts(image)
    padded = pad(image.rgb)
    edges = gradients_of(padded.reshape(3, -1), padded.shape[2]).reshape(padded.shape)
    pixels = _count(padded[:, 1:-1, 1:-1], counts, torus)
    if not pixels.any():
        raise ImageError(f"{image.where}no pixel has all three channels above zero; check the black level")
    return np.stack([pixels, _count(edges[:, 1:-1, 1:-1], erode(counts), torus)])


def _count(planes: Floats, counts: Bools, torus: Torus) -> Float32s:
    n = torus.bins
    counts = counts & (planes[0] > 0) & (planes[1] > 0) & (planes[2] > 0)
    r, g, b = np.log(np.compress(counts.ravel(), planes.reshape(3, -1), axis=1))
    weight = np.exp((r + g + b) * np.float32(torus.weight_power / 3))
    total = np.zeros((n + 1, n + 1))  # the last row and column are the first ones again
    u, v = ((g - other) * np.float32(1 / torus.step) for other in (r, b))
    u, v = (position - n * np.floor(position / n) for position in (u, v))  # many times faster than a remainder
    column, row = (np.minimum(np.floor(position), np.float32(n - 1)) for position in (u, v))  # rounding can give n
    x, y = u - column, v - row
    index = (row * (n + 1) + column).astype(np.int32)
    for i, share in enumerate((weight - weight * y, weight * y)):
        for j, part in enumerate((share - share * x, share * x)):
            total += np.bincount(index + (i * (n + 1) + j), part, total.size).reshape(total.shape)
    total[0] += total[n]
    total[:, 0] += total[:, n]
    total = total[:n, :n]
    return np.asarray(total / max(total.sum(), np.finfo(np.float64).tiny), dtype=np.float32)
