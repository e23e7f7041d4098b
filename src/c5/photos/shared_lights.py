"""Which photographs of a shoot were taken in the same light, and what that light is.

The model, in the log-chroma of a space that all cameras share:

- A photograph sees its light with a normal error, with the covariance of its heat map. The errors of photographs in one
  light are correlated, as they show the same things: however many there are, a share `COMMON` of the variance stays. So
  a large group does not come to disagree with what is only a little off.
- The chance that two photographs are in the same light falls with the pause between them; if a time is not known, it is
  that of a long pause. Another light is either a little different, like the sun's an hour later, or any light. Its
  exposure differs too.
- The matrices of a camera are off by `MATRICES`, by the same amount in all of its photographs: where cameras share
  lights, that is found and removed.
- Lights change in one of two ways, whichever is likelier for the shoot: they last, or they are switched and come back.

Groups grow by likelihood: two become one if each is the other's likeliest match, and if one light is likelier than two.
Photographs that might as well be in the light of another group are then kept apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.color import Bools, Float64s, as_illuminant, rgb_to_uv
from c5.colorimetry.adaptation import BRADFORD
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.temperature import neutral_to_xy, xy_to_temperature

CONES = BRADFORD
"""The camera whose log-chroma all cameras share."""

FLICKER = 0.8
"""The variance of errors from photograph to photograph, relative to that of the heat maps."""
COMMON = 0.3
"""The share of the flicker's variance that photographs in one light have in common, as they show the same things."""
TOGETHER = 0.98
"""The chance that two photographs are in one light, moments apart."""
APART, DRIFT = 0.6, 0.1
"""How far away another light is, in nats: any light, or one that is a little different."""
STOPS = (2.0, 5.0)
"""How far apart exposures are in one light, and in two."""
DOUBT, TELLING = 3.0, 0.1
"""A photograph leaves its group if another light is nearly as likely, within `DOUBT` log odds. Lights no more than
`TELLING` nats apart count as the same."""
MATRICES = 0.05
"""How far the matrices of a camera are off, in nats: a degree or two."""
ROUNDS = 50
"""How often lights and offsets of cameras are found in turn."""
TIE = 1e-6
"""Of equally likely pairs, chance decides which is joined first: in a regular shoot they would wait for each other."""
BURST = 8.0
"""Seconds: photographs closer in time show the same thing."""


class Course(NamedTuple):
    """How lights change in the course of a shoot."""

    lasts: float
    """Seconds that a light lasts, roughly."""
    again: float
    """The chance that two photographs are in one light, hours apart."""
    drifts: float
    """The chance that another light is only a little different."""


STEADY = Course(1200.0, 0.01, 0.8)
"""Places and daylight: lights last, and an hour later they are a little different."""
SWITCHED = Course(60.0, 0.3, 0.1)
"""A stage: lights come and go, and come back as they were."""

CLOCKS = range(-12, 13)
"""Hours by which the clock of a camera may be off."""
SURE = 10.0
"""How much likelier, in log odds, another time must make the lights before a clock counts as wrong."""

Labels = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Views:
    """What photographs say about their lights."""

    uv: Float64s
    """(n, 2) log-chroma of each light."""
    covariance: Float64s
    """(n, 2, 2) of the error of each."""
    seconds: Float64s
    """(n,) when each was taken, NaN where that is not known."""
    exposure: Float64s
    """(n,) exposure values, NaN where not known."""
    space: Labels
    """(n,) photographs in different spaces cannot be compared."""

    @cached_property
    def precision(self) -> Float64s:
        """(n, 2, 2) inverses of the covariances."""
        return np.asarray(np.linalg.inv(self.covariance))

    @cached_property
    def order(self) -> Labels:
        """The photographs whose time is known, by time."""
        return np.argsort(self.seconds, kind="stable")[: int(np.isfinite(self.seconds).sum())]

    def take(self, chosen: Labels) -> Views:
        """Those of some photographs."""
        return Views(*(getattr(self, each.name)[chosen] for each in fields(self)))


def to_common(illuminant: Float64s, matrices: CameraMatrices) -> Float64s:
    """The log-chroma, in the space of all cameras, of the light in which a camera sees white as `illuminant`."""
    x, y = neutral_to_xy(illuminant, matrices)
    return rgb_to_uv(CONES @ [x / y, 1, (1 - x - y) / y])


def from_common(uv: Float64s, matrices: CameraMatrices) -> Float64s:
    """The illuminant of a camera in a light; `to_common` undoes it."""
    white = np.linalg.solve(CONES, np.exp([-uv[0], 0, -uv[1]]))
    kelvin = xy_to_temperature(white[:2] / white.sum()).kelvin
    return as_illuminant(matrices.matrix(kelvin) @ white)


def group_lights(views: Views, follow: Callable[[int, int], object] = lambda done, total: None) -> Labels:
    """(n,) numbers from 0, the same for photographs in the same light. Their order matters only for ties.

    `follow` receives how much is done, and the total.
    """
    count = len(views.uv)
    labels: Labels = np.arange(count)
    course = find_course(views)
    best, scores = np.zeros(count, dtype=np.intp), np.full(count, -np.inf)
    is_stale = np.ones(count, dtype=bool)
    while True:
        groups = _Groups(views, labels, course)
        for group in np.flatnonzero(is_stale).tolist():
            if len(best) == count:
                follow(group, 2 * count)
            row = groups.score(group)
            best[group], scores[group] = row.argmax(), row.max()
            is_better = row > scores
            best[is_better], scores[is_better] = group, row[is_better]
        places = np.arange(len(best))
        is_mutual = (best[best] == places) & (scores > 0)
        if not is_mutual.any():
            return _keep_doubtful_apart(views, labels, course, follow)
        kept, to = np.unique(np.where(is_mutual, np.minimum(places, best), places), return_inverse=True)
        labels, is_stale = to[labels], (is_mutual | is_mutual[best])[kept]
        best, scores = to[best[kept]], np.where(is_stale, -np.inf, scores[kept])


def find_course(views: Views) -> Course:
    """How lights change in a shoot: whichever is likelier for neighbors in time."""
    order = np.argsort(views.seconds, kind="stable")
    pauses = np.diff(views.seconds[order])
    apart = (pauses > BURST) & (np.diff(views.space[order]) == 0)
    steady, switched = (
        _likelihood(views, order[:-1][apart], order[1:][apart], pauses[apart], course) for course in (STEADY, SWITCHED)
    )
    return SWITCHED if switched > steady else STEADY


def find_clock(views: Views, first: Bools, second: Bools) -> int:
    """By how many hours the clock of the second photographs is behind that of the first, judging by their lights."""
    timed = np.isfinite(views.seconds) & (views.space == 0)
    one, two = np.flatnonzero(first & timed), np.flatnonzero(second & timed)
    if not one.size or not two.size:
        return 0
    one = one[np.argsort(views.seconds[one], kind="stable")]
    scores = {}
    for hours in CLOCKS:
        seconds = views.seconds[two] + 3600 * hours
        after = np.clip(np.searchsorted(views.seconds[one], seconds), 1, max(one.size - 1, 1))
        pauses = np.abs(seconds - views.seconds[one[np.minimum(after, one.size - 1)]])
        earlier = np.abs(seconds - views.seconds[one[after - 1]])
        near = one[np.where(earlier < pauses, after - 1, np.minimum(after, one.size - 1))]
        scores[hours] = _likelihood(views, near, two, np.minimum(earlier, pauses), STEADY)
    best = max(CLOCKS, key=lambda hours: (scores[hours], -abs(hours)))
    return best if scores[best] > scores[0] + SURE else 0


def _likelihood(views: Views, first: Labels, second: Labels, pauses: Float64s, course: Course) -> float:
    """The log-likelihood of what pairs of photographs see."""
    same = _chance_of_same(pauses, course)
    covariance = FLICKER * (views.covariance[first] + views.covariance[second])
    alike, differ = _compare_lights(views.uv[second] - views.uv[first], covariance, course)
    return float(np.logaddexp(np.log(same) + alike, np.log(1 - same) + differ).sum())


def _keep_doubtful_apart(views: Views, labels: Labels, course: Course, follow: Callable[[int, int], object]) -> Labels:
    """The same groups without the photographs that might as well be in the light of another group.

    Frames of a burst show the same thing, so they stay together and do not confirm each other.
    """
    result, count = labels.copy(), int(labels.max()) + 1
    sizes, seen = np.bincount(labels), len(labels)
    for burst in _bursts(views.seconds):
        follow(seen, 2 * len(labels))
        seen += len(burst)
        for own in set(labels[burst].tolist()):
            photos = burst[labels[burst] == own]
            if len(photos) == sizes[own]:
                continue
            without = labels.copy()
            without[photos] = count
            groups = _Groups(views, without, course)
            scores = groups.score(count)[:count]
            far = np.linalg.norm(groups.uv[:count] - groups.uv[own], axis=1) > TELLING
            if (scores[far] > scores[own] - DOUBT).any():
                result[photos] = result.max() + 1
    return np.unique(result, return_inverse=True)[1]


def _bursts(seconds: Float64s) -> list[Labels]:
    """Photographs in quick succession; one without a time stands alone."""
    order = np.argsort(seconds, kind="stable")
    with np.errstate(invalid="ignore"):
        apart = ~(np.diff(seconds[order]) <= BURST)
    return np.split(order, np.flatnonzero(apart) + 1)


def fuse_lights(views: Views, members: Labels) -> Float64s:
    """(2,) the light that some photographs agree on, each weighted by its precision."""
    return np.asarray(_average(views.uv[members], views.precision[members], np.zeros_like(members))[0][0])


def find_offsets(views: Views, labels: Labels, cameras: Labels) -> Float64s:
    """(n, 2) how far the camera of each photograph is off, judging by the lights it shares with other cameras.

    What the photographs of a camera in one light have in common may be the things they show: it takes several lights to
    tell these from the camera.
    """
    (lights, _, owners), pairs = np.unique(np.stack([labels, views.space, cameras]), axis=1, return_inverse=True)
    seen = _Groups(views, pairs, STEADY)  # each light as one camera sees it
    lights = np.unique(np.stack([lights, seen.space]), axis=1, return_inverse=True)[1]
    precision = np.linalg.inv(seen.covariance) * (np.bincount(lights) > 1)[lights][:, None, None]

    offsets = np.zeros_like(seen.uv)
    for _ in range(ROUNDS):
        common = _average(seen.uv - offsets, precision, lights, 1e-9)[0]
        offsets = _average(seen.uv - common[lights], precision, owners, MATRICES**-2)[0][owners]
    return np.asarray(offsets[pairs])


def _average(
    uv: Float64s, precision: NDArray[np.floating], keys: Labels, prior: float = 0.0
) -> tuple[Float64s, Float64s]:
    """For each key, (keys, 2) the mean of places, weighted by their precision, and (keys, 2, 2) the precision of that.

    A prior of some precision says that it is zero.
    """

    def add(values: NDArray[np.floating]) -> Float64s:
        sums = [np.bincount(keys, column) for column in values.reshape(len(keys), -1).T]
        return np.stack(sums, axis=-1, dtype=np.float64).reshape(-1, *values.shape[1:])

    total = add(precision) + prior * np.eye(2)
    moment = add(np.einsum("nij,nj->ni", precision, uv))
    return np.asarray(np.linalg.solve(total, moment[..., None])[..., 0]), total


class _Groups:
    """Groups of photographs, and how likely two of them are in the same light."""

    def __init__(self, views: Views, labels: Labels, course: Course) -> None:
        self.course = course
        count = int(labels.max()) + 1
        self.uv, total = _average(views.uv, views.precision, labels)
        self.covariance = (FLICKER * (1 + COMMON * (np.bincount(labels) - 1)))[:, None, None] * np.linalg.inv(total)
        known = np.isfinite(views.exposure)
        weights = np.bincount(labels[known], minlength=count)
        sums = np.bincount(labels[known], views.exposure[known], minlength=count)
        with np.errstate(invalid="ignore"):
            self.exposure = sums / weights
        self.space = np.zeros(count, dtype=np.intp)
        self.space[labels] = views.space
        self.seconds, self.labels = views.seconds[views.order], labels[views.order]
        self.first = np.unique(labels, return_index=True)[1]

    def score(self, group: int) -> Float64s:
        """(groups,) the log odds that each group shares the light of the given one."""
        same = _chance_of_same(self._pauses(group), self.course)
        alike, differ = _compare_lights(self.uv - self.uv[group], self.covariance + self.covariance[group], self.course)
        score = (
            np.log(same) - np.log(1 - same) + alike - differ + _compare_exposures(self.exposure - self.exposure[group])
        )
        score += TIE * _shuffle(self.first, self.first[group])
        score[(self.space != self.space[group]) | (np.arange(len(score)) == group)] = -np.inf
        return score

    def _pauses(self, group: int) -> Float64s:
        """(groups,) the shortest pause between each and one of them."""
        own = self.seconds[self.labels == group]
        pauses = np.full(len(self.uv), np.inf)
        if own.size:
            after = np.searchsorted(own, self.seconds)
            near = np.abs(self.seconds - own[np.minimum(after, own.size - 1)])
            near = np.minimum(near, np.abs(self.seconds - own[np.maximum(after - 1, 0)]))
            np.minimum.at(pauses, self.labels, near)
        return pauses


def _shuffle(one: Labels, two: Labels) -> Float64s:
    """Numbers from 0 to 1 that look random, the same for two photographs whichever comes first."""
    return np.asarray(((one + two) * 2654435761 ^ (one * two) * 2246822519) % 65521 / 65521)


def _chance_of_same(pauses: Float64s, course: Course) -> Float64s:
    return np.asarray(course.again + (TOGETHER - course.again) * np.exp(-pauses / course.lasts))


def _compare_lights(off: Float64s, covariance: Float64s, course: Course) -> tuple[Float64s, Float64s]:
    """The log-likelihoods that lights are this far apart if they are the same, and if they differ."""
    alike, drifted, other = (_log_normal(off, covariance + far**2 * np.eye(2)) for far in (0.0, DRIFT, APART))
    return alike, np.logaddexp(np.log(course.drifts) + drifted, np.log(1 - course.drifts) + other)


def _compare_exposures(stops: Float64s) -> Float64s:
    """The log odds of one light, from the difference of exposures; 0 if one is not known."""
    one, two = STOPS
    odds = np.log(two / one) - stops**2 / 2 * (1 / one**2 - 1 / two**2)
    return np.where(np.isfinite(stops), odds, 0.0)


def _log_normal(off: Float64s, covariance: Float64s) -> Float64s:
    """The logarithm of normal densities around zero, up to a constant."""
    (a, b), (_, d) = np.moveaxis(covariance, (1, 2), (0, 1))
    u, v = off.T
    determinant = a * d - b**2
    return np.asarray(-np.log(determinant) / 2 - (d * u**2 - 2 * b * u * v + a * v**2) / determinant / 2)
