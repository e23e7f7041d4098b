"""Statistics of angular errors, as the field reports them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float64s
from c5.errors import ParameterError


class Statistics(NamedTuple):
    """Degrees, over a set of images."""

    mean: float
    median: float
    trimean: float
    """(Q1 + 2 Q2 + Q3) / 4."""
    best_25: float
    """The mean of the lowest quarter of the errors (rounded up to whole images)."""
    worst_25: float
    worst_5: float
    maximum: float


SHARES = tuple(round(0.05 * step, 2) for step in range(1, 21))
"""The shares of most uncertain images at which `worst_found` is evaluated."""


PERCENT = np.arange(1, 101)
"""The shares of all errors at which `bound_factors` is evaluated."""

BOUND_FACTOR, UNKNOWN_DEG = 1.3, 2.5
"""Constants of `bound_errors`. The factor is the mean of those that `c5 evaluate --protocol leave-one-dataset-out`
finds right for four datasets. What the uncertainty misses about a new camera is taken to be 2.5 degrees: with less, the
right factors differ more between datasets; with more, bounds differ less between images."""


class RepeatedStatistics(NamedTuple):
    """Statistics over repeats with different additional images."""

    mean: Statistics
    deviation: Statistics
    """The standard deviation of each statistic over the repeats (population, not sample)."""


def summarize(errors: ArrayLike) -> Statistics:
    """Statistics of the errors of one run, one number per image, in degrees."""
    ordered = np.sort(np.asarray(errors, dtype=np.float64), axis=None)
    if ordered.size == 0:
        raise ParameterError("there are no errors to summarize")
    if not np.isfinite(ordered).all():
        raise ParameterError("some errors are NaN or infinite; every image needs a finite estimate")
    q1, q2, q3 = np.quantile(ordered, [0.25, 0.5, 0.75])
    quarter = -(-ordered.size // 4)
    twentieth = -(-ordered.size // 20)
    return Statistics(
        mean=float(ordered.mean()),
        median=float(q2),
        trimean=float((q1 + 2 * q2 + q3) / 4),
        best_25=float(ordered[:quarter].mean()),
        worst_25=float(ordered[-quarter:].mean()),
        worst_5=float(ordered[-twentieth:].mean()),
        maximum=float(ordered[-1]),
    )


def summarize_repeats(errors: ArrayLike) -> RepeatedStatistics:
    """Mean and standard deviation of each statistic over repeats; `errors` is (repeats, images)."""
    array = np.asarray(errors, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] == 0:
        raise ParameterError(f"repeats need errors of shape (repeats, images), not {array.shape}")
    table = np.array([summarize(run) for run in array])
    return RepeatedStatistics(Statistics(*table.mean(axis=0).tolist()), Statistics(*table.std(axis=0).tolist()))


def worst_found(errors: ArrayLike, uncertainties: ArrayLike) -> Float64s:
    """How much of the worst quarter is among the most uncertain images, for each of `SHARES`.

    A meaningless uncertainty finds a part as large as the share; the best finds everything within a quarter.
    """
    wrong, unsure = np.asarray(errors, dtype=np.float64), np.asarray(uncertainties, dtype=np.float64)
    if wrong.ndim != 1 or wrong.shape != unsure.shape or not wrong.size:
        raise ParameterError("errors and uncertainties need one number per image each")
    worst = np.zeros(wrong.size, bool)
    worst[np.argsort(-wrong, kind="stable")[: -(-wrong.size // 4)]] = True
    found = np.cumsum(worst[np.argsort(-unsure, kind="stable")]) / worst.sum()
    return np.asarray(found[[max(0, round(share * wrong.size) - 1) for share in SHARES]])


def bound_errors(uncertainties: ArrayLike) -> Float64s:
    """Bounds in degrees, from uncertainties, for 90 % of the errors on cameras that are not in training."""
    return np.asarray(BOUND_FACTOR * np.hypot(UNKNOWN_DEG, uncertainties))


def bound_factors(errors: ArrayLike, uncertainties: ArrayLike) -> Float64s:
    """The factors with which bounds would hold for 1, 2, ... 100 % of the errors."""
    ratios = np.asarray(errors, dtype=np.float64) / np.hypot(UNKNOWN_DEG, uncertainties)
    return np.asarray(np.percentile(ratios, PERCENT, method="inverted_cdf"))


def coverage(factors: ArrayLike, factor: float = BOUND_FACTOR) -> float:
    """The percentage of errors that are below their bounds with a factor, given their `bound_factors`."""
    return float(np.interp(factor, [0, *np.asarray(factors)], [0, *PERCENT]))
