from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c5 import ParameterError
from c5.metrics import SHARES, summarize, summarize_repeats, worst_found

errors = st.lists(st.floats(0, 90), min_size=1, max_size=60)


def test_values_by_hand() -> None:
    found = summarize(np.arange(1, 21))
    assert found.mean == 10.5
    assert found.median == 10.5
    assert found.trimean == pytest.approx((5.75 + 2 * 10.5 + 15.25) / 4)
    assert found.best_25 == 3  # 1 to 5
    assert found.worst_25 == 18  # 16 to 20
    assert found.worst_5 == 20
    assert found.maximum == 20


@given(errors)
def test_order_of_the_statistics(values: list[float]) -> None:
    found = summarize(values)
    ordered = [found.best_25, found.mean, found.worst_25, found.worst_5, found.maximum]
    assert all(a <= b + 1e-9 for a, b in pairwise(ordered))
    assert found == summarize(values[::-1])


@given(errors, st.floats(0.1, 10))
def test_all_scale_with_the_errors(values: list[float], factor: float) -> None:
    np.testing.assert_allclose(summarize(np.array(values) * factor), np.array(summarize(values)) * factor, atol=1e-9)


@given(errors)
def test_equal_repeats_have_no_deviation(values: list[float]) -> None:
    mean, deviation = summarize_repeats([values] * 3)
    np.testing.assert_allclose(mean, summarize(values))
    np.testing.assert_allclose(deviation, 0, atol=1e-9)


def test_deviation_is_over_repeats() -> None:
    mean, deviation = summarize_repeats([[1.0, 1.0], [3.0, 3.0]])
    assert mean.mean == 2
    assert deviation.mean == 1


def test_bad_input() -> None:
    with pytest.raises(ParameterError, match="no errors"):
        summarize([])
    with pytest.raises(ParameterError, match="NaN"):
        summarize([1.0, np.nan])
    with pytest.raises(ParameterError, match="repeats"):
        summarize_repeats([1.0, 2.0])


def test_the_worst_are_found_by_their_uncertainty() -> None:
    rng = np.random.default_rng(0)
    errors = rng.exponential(2, 400)
    at = dict(zip(SHARES, worst_found(errors, errors), strict=True))
    assert at[0.05] == pytest.approx(0.2)  # the best there is
    assert at[0.2] == pytest.approx(0.8)
    assert at[0.25] == at[1.0] == 1
    by_chance = np.mean([worst_found(errors, rng.random(400)) for _ in range(200)], axis=0)
    np.testing.assert_allclose(by_chance, SHARES, atol=0.02)
    assert worst_found(errors, -errors)[SHARES.index(0.75)] == 0
    # Only the order of uncertainties counts.
    noisy = errors * rng.uniform(0.5, 2, 400)
    np.testing.assert_array_equal(worst_found(errors, noisy), worst_found(errors, np.exp(noisy)))
    assert worst_found([1.0], [3.0]).tolist() == [1.0] * len(SHARES)
    with pytest.raises(ParameterError, match="one number per image"):
        worst_found([1.0, 2.0], [1.0])
