"""Which additional images an evaluation gives to each query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from c5.choices import Selection
from c5.color import Float64s
from c5.errors import DataError, ParameterError

MOST_VIVID = 20
"""How many photographs of a camera count as vivid, and how many as dull, as in the paper."""

Ints = NDArray[np.int64]
Names = NDArray[np.str_]


def draw_rolls(cameras: Names, query: Ints, count: int, rng: np.random.Generator, *, distinct: bool = False) -> Ints:
    """For each query, `count` other images of its camera; itself if it is the only one.

    They are drawn with replacement, or without if they are to be `distinct` and the camera has enough.
    """
    rolls = np.empty((*query.shape, count), np.int64)
    for camera in np.unique(cameras):
        own = np.flatnonzero(cameras == camera)
        place = np.full(len(cameras), -1)
        place[own] = np.arange(own.size)
        mine = cameras[query] == camera
        if own.size == 1:
            rolls[mine] = own[0]
            continue
        shape = int(mine.sum()), count
        drawn = _draw_distinct(own.size - 1, shape, rng) if distinct else rng.integers(0, own.size - 1, shape)
        rolls[mine] = own[drawn + (drawn >= place[query[mine]][:, None])]
    return rolls


def _draw_distinct(total: int, shape: tuple[int, int], rng: np.random.Generator) -> Ints:
    """Rows of numbers below `total`; no row repeats a number while there are enough."""
    rows, count = shape
    if count * count > total:
        orders = np.argsort(rng.random((rows, total)), axis=1)
        return np.asarray(orders[:, np.arange(count) % total], np.int64)
    drawn = rng.integers(0, total, shape)
    while (again := (np.diff(np.sort(drawn, axis=1), axis=1) == 0).any(axis=1)).any():
        drawn[again] = rng.integers(0, total, (int(again.sum()), count))
    return drawn


def select_rolls(
    selection: Selection,
    cameras: Names,
    vivid: Float64s,
    queries: Ints,
    count: int,
    rng: np.random.Generator,
    *,
    distinct: bool = False,
) -> Ints:
    """(queries, count) rolls for queries among images; `cameras` has the camera of every image."""
    if selection is Selection.RECENT:
        raise ParameterError("photographs of datasets have no times: rolls cannot be chosen by time")
    if selection is Selection.RANDOM:
        return draw_rolls(cameras, queries, count, rng, distinct=distinct)
    rolls = np.empty((len(queries), count), np.int64)
    names = np.unique(cameras)
    if selection is Selection.OTHER_CAMERA and len(names) < 2:
        raise DataError("rolls of another camera need data of another camera; give more data")
    for row, query in enumerate(queries):
        if selection is Selection.OTHER_CAMERA:
            pool = np.flatnonzero(cameras == rng.choice(names[names != cameras[query]]))
        else:
            own = np.flatnonzero(cameras == cameras[query])
            order = own[np.argsort(vivid[own], kind="stable")]
            pool = order[-MOST_VIVID:] if selection is Selection.VIVID else order[:MOST_VIVID]
            pool = pool[pool != query] if (pool != query).any() else pool
        rolls[row] = rng.choice(pool, count, replace=count > len(pool))
    return rolls
