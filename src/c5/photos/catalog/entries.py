"""What the catalog keeps of a photograph: all that an estimate needs, so that the file need not be opened again."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from types import UnionType
from typing import Any

import numpy as np

from c5.color import Float64s
from c5.colorimetry.matrices import CameraMatrices
from c5.errors import ParameterError, ReadError
from c5.histograms import Grid, Histograms
from c5.io.shapes import MATRIX, THREE, OrNull, parse_json
from c5.io.versions import Version
from c5.model import load_model
from c5.photos.catalog.database import select
from c5.photos.photo import Photo, Reading

FACTS = {
    "camera": str | None,
    "as_shot": OrNull(THREE),
    "gray_world": THREE,
    "matrices": OrNull((str, MATRIX, MATRIX, float, float)),
    "orientation": int,
    "reading": (float, float | None, bool),
    "exposure?": float | None,
}
"""The JSON of what no column says."""

COLUMNS = "time, grid, facts, packed"
"""What `restore` needs, of the tables `JOINED`."""
KINDS: tuple[type | UnionType, ...] = (str | None, str, str, bytes)

JOINED = "photograph JOIN details ON photograph = id"


@cache
def stored_grid() -> Grid:
    """The grid of the stored histograms: the bundled model's."""
    return load_model().grid


def insert(
    connection: sqlite3.Connection,
    path: bytes,
    version: Version,
    digest: bytes,
    photo: Photo | None,
    camera: str | None = None,
    error: str | None = None,
    developed: bool = False,
) -> None:
    """Write one entry, within a transaction. `camera` is for a photograph that does not name its own."""
    if photo is None or photo.histograms is None:
        connection.execute(
            "INSERT INTO photograph (path, size, modified, digest, error, developed) VALUES (?, ?, ?, ?, ?, ?)",
            (path, *version, digest, error, developed),
        )
        return
    name = photo.camera or camera
    number = None
    if name is not None:
        number = count(connection, name)
    time = None if photo.time is None else photo.time.isoformat(" ", "microseconds")
    histograms = photo.histograms
    made = (histograms.grid.key, photo.reading.key)
    cursor = connection.execute(
        "INSERT INTO photograph "
        "(path, size, modified, digest, camera, number, time, vividness, grid, reading, developed) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
        (path, *version, digest, name, number, time, float(histograms.vividness), *made),
    )
    details = (cursor.lastrowid, describe(photo), histograms.pack())
    connection.execute("INSERT INTO details VALUES (?, ?, ?)", details)


def restore(path: Path, time: str | None, grid: str, facts: str, packed: bytes, expected: Grid | None = None) -> Photo:
    """The photograph of an entry, to the last bit; a ReadError if the entry is damaged.

    One on another grid than expected has no histograms.
    """
    expected = expected or stored_grid()
    known = parse_json(facts, FACTS, "what is kept of it")
    as_shot, matrices, exposure = known["as_shot"], known["matrices"], known.get("exposure")
    return Photo(
        path,
        known["camera"],
        parse_time(time),
        None if as_shot is None else _light(as_shot),
        _light(known["gray_world"]),
        None if matrices is None else _matrices(json.dumps(matrices)),
        known["orientation"],
        Reading(*known["reading"]),
        Histograms.unpack(expected, packed) if grid == expected.key else None,
        exposure=None if exposure is None else float(exposure),
    )


@lru_cache(maxsize=64)  # a camera's photographs share them
def _matrices(stored: str) -> CameraMatrices:
    try:
        return CameraMatrices(*json.loads(stored))
    except ParameterError as error:
        raise ReadError(str(error)) from None


def _light(stored: list[float]) -> Float64s:
    light = np.array(stored, dtype=np.float64)
    if light.min() <= 0:
        raise ReadError("a light that cannot be")
    return light


def count(connection: sqlite3.Connection, camera: str) -> int:
    """How many photographs there are of a camera, by their numbers."""
    query = "SELECT MAX(number) FROM photograph WHERE camera = ?"
    ((last,),) = select(connection, query, (camera,), int | None)
    return 0 if last is None else max(0, last + 1)


def parse_time(stored: str | None) -> datetime | None:
    try:
        return None if stored is None else datetime.fromisoformat(stored).replace(tzinfo=None)
    except ValueError:
        return None


def describe(photo: Photo) -> str:
    """What no other column says, as JSON, which keeps every bit of a number."""
    matrices = photo.matrices
    parts: list[Any] | None = None
    if matrices is not None:
        both = (matrices.matrix_a.tolist(), matrices.matrix_d65.tolist())
        parts = [matrices.name, *both, matrices.kelvin_a, matrices.kelvin_d65]
    return json.dumps(
        {
            "camera": photo.camera,
            "as_shot": None if photo.as_shot is None else photo.as_shot.tolist(),
            "gray_world": photo.gray_world.tolist(),
            "matrices": parts,
            "orientation": photo.orientation,
            "reading": json.loads(photo.reading.key),
            "exposure": photo.exposure,
        }
    )
