"""Sequences of photographs, bursts and time-lapses, and their light without its flicker."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from c5.choices import Fallback
from c5.color import Float64s
from c5.photos.files import Failure
from c5.photos.walk import follow_light

if TYPE_CHECKING:
    from c5.photos.balancing import Balance

LONGEST_PAUSE = 120.0
"""Seconds without a photograph that end a sequence, whatever its usual pause."""
UNUSUAL_PAUSE = 10.0
"""A pause this many times the usual one ends it too."""


class Moment(NamedTuple):
    """What assigns a photograph to a sequence before it is read."""

    camera: str | None
    time: datetime | None
    certain: bool = True
    """False if reading the file may give a time that is not known yet."""


def smooth(balances: Sequence[Balance], fallback: Fallback = Fallback.NONE) -> list[Balance]:
    """Remove the flicker from sequences: photographs of one camera, at most two minutes from one to the next.

    `c5.photos.walk` describes how their light moves. Where an estimate is uncertain, the fallback counts as a second
    estimate of the same photograph. A pause that is very long for the sequence ends it. Photographs without a time, or
    alone, stay as they are.
    """
    result = list(balances)
    for order, seconds in _sequences(balances):
        seen, uncertainty = zip(*(balances[index].weigh(fallback) for index in order), strict=True)
        pauses = np.diff(seconds)
        lights = follow_light(np.array(seen), np.array(uncertainty), np.maximum(pauses, 1) / _usual(pauses))
        for index, light in zip(order, lights, strict=True):
            result[index] = replace(balances[index], illuminant=light, source="smoothed")
    return result


def smooth_in_turn(
    results: Iterable[Balance | Failure], moments: Mapping[Path, Moment], fallback: Fallback = Fallback.NONE
) -> Iterator[Balance | Failure]:
    """The same for results that come one by one: each leaves, in order, as soon as its sequence is complete.

    `moments` tells which photographs are still to come.
    """
    groups = _group(moments)
    missing = Counter(groups.values())
    gathered: dict[int, list[Balance]] = {}
    smoothed: dict[Path, Balance] = {}
    waiting: deque[Balance | Failure] = deque()
    for result in results:
        waiting.append(result)
        group = groups.get(result.path)
        if group is not None:
            missing[group] -= 1
            if not isinstance(result, Failure):
                gathered.setdefault(group, []).append(result)
            if not missing[group]:
                smoothed |= {balance.path: balance for balance in smooth(gathered.pop(group, []), fallback)}
        while waiting and not missing[groups.get(waiting[0].path, -1)]:
            first = waiting.popleft()
            yield smoothed.pop(first.path, first)


def _group(moments: Mapping[Path, Moment]) -> dict[Path, int]:
    """Numbers for photographs, the same for those that may belong to one sequence."""
    cameras: dict[str | None, list[Path]] = {}
    for path, moment in moments.items():
        if moment.time is not None or not moment.certain:
            cameras.setdefault(moment.camera, []).append(path)
    groups: dict[Path, int] = {}
    number = 0
    for paths in cameras.values():
        timed = sorted((count_seconds(time), path) for path in paths if (time := moments[path].time) is not None)
        runs = [paths]  # one whose time is not known yet may join any two
        if all(moments[path].certain for path in paths):
            edges = _split(np.array([second for second, _ in timed]), LONGEST_PAUSE)
            runs = [[path for _, path in timed[first:last]] for first, last in edges]
        for run in runs:
            groups |= dict.fromkeys(run, number)
            number += 1
    return groups


def _sequences(balances: Sequence[Balance]) -> Iterator[tuple[list[int], Float64s]]:
    """For each sequence of two or more, the indices of its photographs in the order of their times, and those times."""
    cameras: dict[str | None, list[tuple[float, str, int]]] = {}
    for index, balance in enumerate(balances):
        time = balance.photo.time
        if time is not None:
            cameras.setdefault(balance.photo.camera, []).append((count_seconds(time), str(balance.path), index))
    for moments in cameras.values():
        moments.sort()
        seconds = np.array([second for second, *_ in moments])
        for first, last in _split(seconds, LONGEST_PAUSE):
            usual = _usual(np.diff(seconds[first:last]))
            for start, stop in _split(seconds[first:last], UNUSUAL_PAUSE * usual):
                if stop - start > 1:
                    order = [index for *_, index in moments[first + start : first + stop]]
                    yield order, seconds[first + start : first + stop]


def count_seconds(time: datetime) -> float:
    """A moment as a number of seconds, to measure pauses."""
    return time.replace(tzinfo=UTC).timestamp()  # local time, without the jumps of any time zone


def _split(seconds: Float64s, longest: float) -> list[tuple[int, int]]:
    """Where runs without a longer pause begin and end."""
    edges = [0, *(np.flatnonzero(np.diff(seconds) > longest) + 1).tolist(), len(seconds)]
    return list(itertools.pairwise(edges))


def _usual(pauses: Float64s) -> float:
    """The median pause; cameras count whole seconds, so none is shorter."""
    return max(float(np.median(pauses)), 1.0) if pauses.size else 1.0
