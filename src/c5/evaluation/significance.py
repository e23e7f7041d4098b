"""Whether one method is better than another, or only happens to be on these images: a paired bootstrap over images."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float32s, Float64s
from c5.errors import ParameterError
from c5.evaluation.results import Results, Row

RESAMPLES = 1000
LEVEL = 0.95
FEWEST = 10
"""With fewer images, no interval is given."""


class Difference(NamedTuple):
    """The difference of two mean errors, degrees. The interval holds 95 % of the differences over images drawn with
    replacement."""

    mean: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval is on one side of zero."""
        return self.low > 0 or self.high < 0


def compare(errors: ArrayLike, others: ArrayLike) -> Difference:
    """The mean of `errors` minus that of `others`, for the same images in the same order."""
    pairs = np.asarray(errors, dtype=np.float64) - np.asarray(others, dtype=np.float64)
    if pairs.ndim != 1 or pairs.size < FEWEST or not np.isfinite(pairs).all():
        raise ParameterError(f"a comparison needs finite errors of at least {FEWEST} images, one number each")
    low, high = np.quantile(_shares(pairs.size) @ pairs, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Difference(float(pairs.mean()), float(low), float(high))


def interval(errors: ArrayLike) -> tuple[float, float]:
    """The interval that holds 95 % of the means of errors over images drawn with replacement."""
    found = compare(errors, np.zeros(np.size(errors)))
    return found.low, found.high


@lru_cache(maxsize=2)
def _shares(images: int) -> Float32s:
    """(resamples, images) how much of each resample an image is; the same ones for every pair of methods."""
    counts = np.random.default_rng(images).multinomial(images, np.full(images, 1 / images), RESAMPLES)
    return (counts / images).astype(np.float32)


def image_errors(row: Row, results: Results, dataset: str) -> Float64s:
    """The error of each image of a dataset, in the order of `results.images`; NaN where it was not tested.

    If an image was tested more than once, the mean.
    """
    found = []
    for camera in results.cameras(dataset):
        missing: list[float | None] = [None] * len(results.images[camera])
        passes = np.array([tested.get(camera, missing) for tested in row.errors], dtype=np.float64)
        known = np.isfinite(passes)
        total = np.where(known, passes, 0).sum(axis=0)
        found.append(total / np.where(known.any(axis=0), known.sum(axis=0), np.nan))
    return np.concatenate(found)


def find_differences(results: Results, dataset: str) -> tuple[Row, dict[str, Difference]] | None:
    """The best row on a dataset, and how much larger the mean error of each other row is, by its name.

    Only images that both rows have are compared. None if there is nothing to compare.
    """
    rows = results.rows_of(dataset)
    if len(rows) < 2:
        return None
    best = min(rows, key=lambda row: row.statistics[dataset].mean.mean)
    own, found = image_errors(best, results, dataset), {}
    for row in rows:
        errors = image_errors(row, results, dataset)
        both = np.isfinite(errors) & np.isfinite(own)
        if row is not best and both.sum() >= FEWEST:
            found[row.name] = compare(errors[both], own[both])
    return (best, found) if found else None
