"""Photographs to `Samples`: histograms computed once, kept in the user's cache folder by content."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import platformdirs
from numpy.typing import NDArray

from c5.color import Float32s
from c5.datasets import Sample
from c5.errors import ImageError, WriteError
from c5.histograms import Grid, histogram
from c5.image import LinearImage, shrink
from c5.io.files import write_file
from c5.model_file import UNPACKING_ERRORS
from c5.training.palettes import POINTS, VIEWS, make_palettes
from c5.training.samples import Samples

Made = TypeVar("Made", bound=NDArray[Any])

CACHE_VERSION = 3
"""Raise it when `c5.histogram` changes what it computes: entries of other versions are ignored."""


def cache_folder() -> Path:
    return Path(platformdirs.user_cache_dir("c5")) / "histograms"


def load_samples(
    samples: Sequence[Sample],
    grid: Grid,
    crops: int = 0,
    track: Callable[[Sequence[Sample]], Iterable[Sample]] = iter,
    cache: Path | None = None,
) -> Samples:
    """The histograms and labels of photographs, with those of some random crops of each.

    `track` may show progress over the samples as they are read.
    """
    folder = cache or cache_folder()
    return Samples(
        np.stack([_cached_views(sample, grid, crops, folder) for sample in track(samples)]),
        np.stack([sample.illuminant for sample in samples]),
        np.array([sample.camera for sample in samples]),
    )


def load_palettes(
    samples: Sequence[Sample], grid: Grid, track: Callable[[Sequence[Sample]], Iterable[Sample]] = iter
) -> NDArray[np.uint16]:
    """(samples, ...) of `make_palettes`."""
    what, shape = f"palettes {','.join(map(str, grid.powers))}", (len(VIEWS), 2, POINTS, grid.channels)
    return np.stack(
        [
            remember(sample, what, shape, lambda image, rng: make_palettes(image, grid.powers, rng))
            for sample in track(samples)
        ]
    )


def _cached_views(sample: Sample, grid: Grid, crops: int, folder: Path) -> Float32s:
    powers = [] if grid.powers == (1,) else ["power", *grid.powers]
    strips = [] if grid.strips == 1 else ["strips", grid.strips]
    what = " ".join(map(str, [grid.bins, grid.limit, grid.geometry.value, *powers, *strips, crops]))
    return remember(
        sample, what, (1 + crops, *grid.shape), lambda image, rng: make_views(image, grid, crops, rng), folder
    )


def remember(
    sample: Sample,
    what: str,
    shape: tuple[int, ...],
    make: Callable[[LinearImage, np.random.Generator], Made],
    folder: Path | None = None,
) -> Made:
    """What is computed of an image, from the cache if it was computed before; `what` names it. Chance is repeatable."""
    key = hashlib.sha256(f"{CACHE_VERSION} {what} {sample.pixels.digest()}".encode()).hexdigest()
    path = (folder or cache_folder()) / key[:2] / f"{key[2:34]}.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            kept = file["views"]
            if kept.shape == shape:
                return cast(Made, kept)
    except UNPACKING_ERRORS:
        pass  # absent, or damaged: computed anew
    result = make(sample.read(), np.random.default_rng(int(key[:16], 16)))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, views=result)
    with suppress(WriteError):  # a cache that cannot be written is only slower
        write_file(path, buffer.getvalue())
    return result


def make_views(image: LinearImage, grid: Grid, crops: int, rng: np.random.Generator) -> Float32s:
    """Histograms (1 + crops, ...) of an image and of random parts of it, a quarter of its area or more."""
    image = shrink(image)
    height, width = image.rgb.shape[:2]
    views = [histogram(image, grid)]
    for _ in range(crops):
        h, w = (max(1, round(side * rng.uniform(0.5, 1))) for side in (height, width))
        y, x = rng.integers(0, height - h + 1), rng.integers(0, width - w + 1)
        part = (slice(y, y + h), slice(x, x + w))
        try:
            views.append(histogram(LinearImage(image.rgb[part], image.mask[part], image.clipped[part]), grid))
        except ImageError:  # nothing there counts
            views.append(views[0])
    return np.stack(views)
