"""Photographs to `Samples`: histograms computed once, kept in the user's cache folder by content."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import platformdirs

from c5.color import Float32s
from c5.datasets import Sample
from c5.errors import ReadError
from c5.files import write_file
from c5.histogram import Grid, histogram
from c5.model_file import UNPACKING_ERRORS
from c5.training.samples import Samples

CACHE_VERSION = 1
"""Raise it when `c5.histogram` changes what it computes: entries of other versions are ignored."""


def cache_folder() -> Path:
    return Path(platformdirs.user_cache_dir("c5")) / "histograms"


def load_samples(
    samples: Sequence[Sample],
    grid: Grid,
    track: Callable[[Sequence[Sample]], Iterable[Sample]] = iter,
    cache: Path | None = None,
) -> Samples:
    """The histograms and labels of photographs. `track` may show progress over the samples as they are read."""
    folder = cache or cache_folder()
    histograms = [_cached_histogram(sample, grid, folder) for sample in track(samples)]
    return Samples(
        np.stack(histograms),
        np.stack([sample.illuminant for sample in samples]),
        np.array([sample.camera for sample in samples]),
    )


def _cached_histogram(sample: Sample, grid: Grid, folder: Path) -> Float32s:
    try:
        content = sample.path.read_bytes()
    except OSError as error:
        raise ReadError(f"{sample.path}: cannot be read: {error.strerror}") from None
    what = f"{CACHE_VERSION} {grid.bins} {grid.limit} {grid.geometry.value}"
    key = hashlib.sha256(what.encode() + b"\0" + content).hexdigest()
    path = folder / key[:2] / f"{key[2:34]}.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            kept = file["histograms"]
            if kept.shape == (2, grid.bins, grid.bins):
                return np.asarray(kept, dtype=np.float32)
    except UNPACKING_ERRORS:
        pass  # absent, or damaged: computed anew
    result = histogram(sample.read(), grid)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, histograms=result)
    write_file(path, buffer.getvalue())
    return result
