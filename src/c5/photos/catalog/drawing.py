"""Which photographs of a camera make a roll. Every choice uses an index: none looks at all of a camera's entries."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from c5.choices import SELECTIONS, Selection
from c5.errors import ParameterError
from c5.photos.catalog.database import select


class Candidate(NamedTuple):
    """An entry that was drawn for a roll."""

    id: int
    path: Path
    digest: bytes
    made: str
    """How its histograms were made: the grid's key and the reading's."""


def draw_candidates(connection: sqlite3.Connection, camera: str, count: int, selection: Selection) -> list[Candidate]:
    """Up to `count` photographs of a camera, no two with the same content.

    Copies and the order of the entries change nothing: random ones are chosen by their digests.
    """
    if count < 1:
        raise ParameterError(f"a roll has at least 1 photograph, not {count}")
    if selection not in SELECTIONS:
        raise ParameterError(f"a catalog selects {', '.join(offered.value for offered in SELECTIONS)}")
    order = {Selection.RANDOM: "digest", Selection.RECENT: "time DESC, modified DESC"}.get(selection, "vividness DESC")
    query = f"SELECT id, path, digest, grid || ' ' || reading FROM photograph WHERE camera = ? ORDER BY {order}"
    chosen: dict[bytes, Candidate] = {}
    with closing(select(connection, query, (camera,), int, bytes, bytes, str)) as rows:
        for number, path, digest, made in rows:
            chosen.setdefault(digest, Candidate(number, Path(os.fsdecode(path)), digest, made))
            if len(chosen) == count:
                break
    return list(chosen.values())
