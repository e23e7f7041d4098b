"""Which photographs of a camera make a roll. Every choice uses an index: none looks at all of a camera's entries."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from c5.choices import SELECTIONS, Selection
from c5.errors import ParameterError
from c5.photos.catalog import entries
from c5.photos.catalog.database import select
from c5.rolls import MOST_VIVID


class Candidate(NamedTuple):
    """An entry that was drawn for a roll."""

    id: int
    path: Path
    digest: bytes
    made: str
    """How its histograms were made: the grid's key and the reading's."""


SELECT = "SELECT id, path, digest, grid || ' ' || reading FROM photograph WHERE camera = ?"


def draw_candidates(
    connection: sqlite3.Connection,
    camera: str,
    count: int,
    selection: Selection,
    rng: np.random.Generator | None,
    exclude: bytes | None = None,
) -> list[Candidate]:
    """Up to `count` photographs of a camera, no two with the same content, nor with that of `exclude`.

    Without `rng`, copies and the order of the entries change nothing: random ones are chosen by their digests.
    """
    if count < 1:
        raise ParameterError(f"a roll has at least 1 photograph, not {count}")
    if selection not in SELECTIONS:
        raise ParameterError(f"a catalogue selects {', '.join(offered.value for offered in SELECTIONS)}")
    unwanted = {row[0] for row in select(connection, "SELECT digest FROM photograph WHERE path = ?", (exclude,), bytes)}
    if selection is Selection.RANDOM and rng is not None:
        return _draw_random(connection, camera, count, rng, unwanted)
    order = {Selection.RANDOM: "digest", Selection.RECENT: "time DESC, modified DESC"}.get(selection, "vividness DESC")
    wanted = count if selection is not Selection.VIVID else max(count, MOST_VIVID)
    with closing(_select(connection, f"ORDER BY {order}", camera)) as rows:
        pool = _first_distinct(rows, wanted, unwanted)
    if selection is not Selection.VIVID or rng is None:
        return pool[:count]
    return [pool[i] for i in rng.permutation(len(pool))[:count]]


def _draw_random(
    connection: sqlite3.Connection, camera: str, count: int, rng: np.random.Generator, unwanted: set[bytes]
) -> list[Candidate]:
    total = entries.count(connection, camera)
    drawn = min(total, 2 * count + 2)  # some may be the same
    while True:
        numbers = json.dumps(rng.choice(total, drawn, replace=False).tolist()) if drawn else "[]"
        found = list(_select(connection, "AND number IN (SELECT value FROM json_each(?))", camera, numbers))
        if len(found) < drawn:  # a damaged catalogue, in which numbers are missing
            found, drawn = list(_select(connection, "", camera)), total
        chosen = _first_distinct((found[i] for i in rng.permutation(len(found))), count, unwanted)
        if len(chosen) == count or drawn == total:
            return chosen
        drawn = min(total, 8 * drawn)


def _first_distinct(candidates: Iterable[Candidate], count: int, unwanted: set[bytes]) -> list[Candidate]:
    """The first ones with different content: copies of a photograph on several disks are one photograph."""
    chosen: dict[bytes, Candidate] = {}
    for candidate in candidates:
        if candidate.digest not in unwanted:
            chosen.setdefault(candidate.digest, candidate)
        if len(chosen) == count:
            break
    return list(chosen.values())


def _select(
    connection: sqlite3.Connection, rest: str, camera: str, *arguments: str
) -> Generator[Candidate, None, None]:
    """Photographs of a camera, with the rest of the query."""
    for number, path, digest, made in select(
        connection, f"{SELECT} {rest}", (camera, *arguments), int, bytes, bytes, str
    ):
        yield Candidate(number, Path(os.fsdecode(path)), digest, made)
