"""Which photographs of a camera make a roll. Every choice goes by an index: none looks at all of a camera's entries."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from c5.errors import ParameterError
from c5.histograms import MOST_VIVID


class Order(Enum):
    """Which of a camera's photographs make a roll."""

    RANDOM = "random"
    RECENT = "recent"
    """Those taken last; those that do not tell when, by the time of their files, come after all others."""
    VIVID = "vivid"
    """Drawn from the `MOST_VIVID` with the largest variation of chroma."""


class Row(NamedTuple):
    """A photograph of a roll, without its histograms."""

    id: int
    path: Path
    digest: bytes
    time: datetime | None


SELECT = "SELECT id, path, digest, time FROM photograph WHERE camera = ?"


def draw_rows(
    connection: sqlite3.Connection,
    camera: str,
    count: int,
    order: Order,
    rng: np.random.Generator,
    exclude: bytes | None = None,
) -> list[Row]:
    """Up to `count` photographs of a camera, no two with the same content, nor with that of `exclude`."""
    if count < 1:
        raise ParameterError(f"a roll has at least 1 photograph, not {count}")
    excluded = connection.execute("SELECT digest FROM photograph WHERE path = ?", (exclude,)).fetchone()
    unwanted = set() if excluded is None else {excluded[0]}
    if order is Order.RANDOM:
        return _draw_random(connection, camera, count, rng, unwanted)
    if order is Order.RECENT:
        with closing(connection.execute(f"{SELECT} ORDER BY time DESC, modified DESC", (camera,))) as rows:
            return _first_distinct(map(_row, rows), count, unwanted)
    with closing(connection.execute(f"{SELECT} ORDER BY vividness DESC", (camera,))) as rows:
        pool = _first_distinct(map(_row, rows), max(count, MOST_VIVID), unwanted)
    return [pool[i] for i in rng.permutation(len(pool))[:count]]


def _draw_random(
    connection: sqlite3.Connection, camera: str, count: int, rng: np.random.Generator, unwanted: set[bytes]
) -> list[Row]:
    (last,) = connection.execute("SELECT MAX(number) FROM photograph WHERE camera = ?", (camera,)).fetchone()
    total = 0 if last is None else last + 1
    drawn = min(total, 2 * count + 2)  # some may be the same
    while True:
        numbers = json.dumps(rng.choice(total, drawn, replace=False).tolist()) if drawn else "[]"
        query = f"{SELECT} AND number IN (SELECT value FROM json_each(?))"
        found = [_row(row) for row in connection.execute(query, (camera, numbers))]
        rows = _first_distinct((found[i] for i in rng.permutation(len(found))), count, unwanted)
        if len(rows) == count or drawn == total:
            return rows
        drawn = min(total, 8 * drawn)


def _first_distinct(rows: Iterable[Row], count: int, unwanted: set[bytes]) -> list[Row]:
    """The first rows of different content; copies of a photograph on several disks are one photograph."""
    chosen: dict[bytes, Row] = {}
    for row in rows:
        if row.digest not in unwanted:
            chosen.setdefault(row.digest, row)
        if len(chosen) == count:
            break
    return list(chosen.values())


def _row(row: tuple[int, bytes, bytes, str | None]) -> Row:
    number, path, digest, time = row
    return Row(number, Path(os.fsdecode(path)), digest, parse_time(time))


def parse_time(stored: str | None) -> datetime | None:
    return None if stored is None else datetime.fromisoformat(stored)
