"""Which images make a roll: of those that a person gives, and of those of a dataset, for training and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from c5.choices import Selection
from c5.color import Float64s
from c5.errors import DataError, ParameterError, ProfileError
from c5.histograms import Histograms
from c5.io.files import printable

MOST_VIVID = 20
"""How many photographs of a camera count as vivid, and how many as dull, as in the paper."""

ALIKE = 0.99
"""Photographs whose histograms have a higher cosine show the same: frames of a burst or a time-lapse, and copies."""
TINY = 1e-30


class Shot(Protocol):
    """An image that may be in a roll. Its histograms may be dropped later."""

    @property
    def camera(self) -> str | None: ...

    @property
    def histograms(self) -> Histograms | None: ...


Item = TypeVar("Item")
AnyShot = TypeVar("AnyShot", bound=Shot)


def choose_shots(
    items: Sequence[Item],
    count: int,
    load: Callable[[Sequence[Item]], Iterable[AnyShot]],
    *,
    camera: str | None = None,
    where: str = "",
) -> tuple[list[AnyShot], str | None]:
    """The first `count` shots that can be loaded and that differ, and their camera, if it is given or they name it.

    Items that give no shot are replaced by the next ones, and so are shots that show the same as another, unless there
    are more of them than the roll has shots. Shots of two cameras are a `ProfileError`. Items should come in the order
    of their content: then neither names nor copies change a roll.
    """
    waiting, repeated = list(items), 0
    shots: list[AnyShot] = []
    cameras = set() if camera is None else {camera}
    while waiting and len(shots) < count and repeated < count:
        batch, waiting = waiting[: count - len(shots)], waiting[count - len(shots) :]
        for shot in load(batch):
            cameras |= set(filter(None, [name_camera(shot.camera)]))
            if len(cameras) > 1:
                raise ProfileError(
                    f"{where}photographs of {' and '.join(sorted(cameras))}; a roll needs one camera's alone"
                )
            if any(_likeness(shot, other) > ALIKE for other in shots):
                repeated += 1
            else:
                shots.append(shot)
    return shots, next(iter(cameras), None)


def name_camera(written: str | None) -> str | None:
    """The name of a camera as a file has written it."""
    return printable(written.strip()) or None if written else None


def _likeness(shot: Shot, other: Shot) -> float:
    """The cosine between the histograms of two shots."""
    assert shot.histograms is not None  # they are what a shot is loaded for
    assert other.histograms is not None
    one, two = shot.histograms.seen.ravel(), other.histograms.seen.ravel()
    lengths = float(np.linalg.norm(one)) * float(np.linalg.norm(two))
    return float(one @ two) / max(lengths, TINY)


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
