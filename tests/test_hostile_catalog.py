"""Catalogs that somebody else has written to."""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
from laws import textured

from c5 import C5Error, load_model
from c5.choices import Selection
from c5.errors import DataError
from c5.photos.balancing import Balance, Settings, balance
from c5.photos.catalog import Catalog
from c5.photos.catalog.entries import stored_grid

CAMERA = "A camera"
MODEL = load_model()


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photographs")
    for seed in range(4):
        pixels = np.rint(textured(seed, 40, 60) * 60000).astype(np.uint16)
        (folder / f"{seed}.png").write_bytes(imagecodecs.png_encode(pixels))
    return folder


@pytest.fixture(scope="module")
def used(photographs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("catalog") / "catalog.db"
    with Catalog.open(path) as catalog:
        catalog.add([photographs], camera=CAMERA)
    use(path, photographs)
    return path


@pytest.fixture
def path(used: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(used, tmp_path / "catalog.db"))


def use(path: Path, photographs: Path) -> list[Balance]:
    """All that a catalog is used for, by somebody who does not know that it is damaged."""
    with Catalog.open(path) as catalog:
        catalog.status()
        catalog.failures()
        for photograph in sorted(photographs.iterdir()):
            catalog.find(photograph, stored_grid())
            catalog.find_camera_and_time(photograph)
        for selection in (Selection.RANDOM, Selection.RECENT, Selection.VIVID):
            catalog.roll(MODEL, CAMERA, 3, selection)
        catalog.add([photographs], camera=CAMERA, retry=True)
        results = list(balance(sorted(photographs.iterdir()), Settings(MODEL, catalog=catalog, camera=CAMERA, jobs=1)))
    assert all(isinstance(result, Balance) for result in results), results
    return [result for result in results if isinstance(result, Balance)]


def change(**columns: object) -> Callable[[sqlite3.Connection], object]:
    def run(connection: sqlite3.Connection) -> None:
        (first,) = connection.execute("SELECT MIN(id) FROM photograph").fetchone()
        for column, value in columns.items():
            where = "details" if column in ("facts", "packed") else "profile" if column == "features" else "photograph"
            condition = {"details": "photograph = ?", "profile": "? IS NOT NULL", "photograph": "id = ?"}[where]
            connection.execute(f"UPDATE {where} SET {column} = ? WHERE {condition}", (value, first))

    return run


def fact(**facts: Any) -> Callable[[sqlite3.Connection], object]:
    def run(connection: sqlite3.Connection) -> None:
        for number, stored in connection.execute("SELECT photograph, facts FROM details").fetchall():
            changed = json.dumps(json.loads(stored) | facts)
            connection.execute("UPDATE details SET facts = ? WHERE photograph = ?", (changed, number))

    return run


def camera_of_bytes(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE photograph SET camera = CAST(x'ff41fe' AS TEXT)")


CHANGES: dict[str, Callable[[sqlite3.Connection], object]] = {
    "a camera that is not UTF-8": camera_of_bytes,
    "a camera of bytes": change(camera=b"abc"),
    "a number of 2^62": change(number=2**62),
    "a number of 2^61": change(number=2**61),
    "a number of text": change(number="many"),
    "a number below zero": change(number=-5),
    "a time of text": change(time="yesterday"),
    "a time with a zone": change(time="2020-01-01 00:00:00+02:00"),
    "a time of bytes": change(time=b"\xff"),
    "a path of text": change(path="somewhere"),
    "a digest of text": change(digest="abc"),
    "a size of text": change(size="large"),
    "a date of the far future": change(modified=2**63 - 1),
    "an error of bytes": change(error=b"\xff\xfe"),
    "an error": change(error="x" * 50_000),
    "a vividness of text": change(vividness="very"),
    "a grid of bytes": change(grid=b"\xff"),
    "facts that are no JSON": change(facts="{"),
    "facts of bytes": change(facts=b"\xff"),
    "deep facts": change(facts="[" * 10_000),
    "facts of a list": change(facts="[]"),
    "histograms of nothing": change(packed=b""),
    "histograms of text": change(packed="abc"),
    "a profile of text": change(features="abc"),
    "a profile of bytes": change(features=b"PK\3\4"),
    "a light that is not a number": fact(gray_world=[math.nan, 1, 1]),
    "a light of text": fact(as_shot="white"),
    "a camera of a list": fact(camera=["a"]),
    "an infinite orientation": fact(orientation=math.inf),
    "matrices of nothing": fact(matrices=[]),
    "matrices that are not numbers": fact(matrices=["a", [[math.nan] * 3] * 3, [[1] * 3] * 3, 2856, 6504]),
    "a reading of text": fact(reading=["a", None, False]),
    "an infinite reading": fact(reading=[math.inf, None, False]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_any_row_is_used_or_the_catalog_is_called_damaged(photographs: Path, path: Path, name: str) -> None:
    with sqlite3.connect(path) as connection:
        CHANGES[name](connection)
    try:
        results = use(path, photographs)
    except DataError as error:
        assert str(path) in str(error)  # noqa: PT017
        assert "damaged" in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
        assert len(str(error)) < 500 + len(str(path))  # noqa: PT017
    else:
        assert len(results) == 4
        assert all(np.isfinite(result.illuminant).all() for result in results)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER more AFTER INSERT ON photograph BEGIN DELETE FROM photograph; END",
        "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
        "DROP INDEX by_time",
        "DROP TABLE profile",
        "ALTER TABLE photograph ADD COLUMN more",
    ],
)
def test_other_tables_are_not_used(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    with pytest.raises(DataError, match="other tables"):
        Catalog.open(path)


@pytest.mark.parametrize("statement", ["ANALYZE", "PRAGMA user_version = 4"])
def test_what_is_no_table_does_not_matter(photographs: Path, path: Path, statement: str) -> None:
    """What SQLite adds itself, and the version that catalogs once had."""
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    assert len(use(path, photographs)) == 4


def test_a_pipe_is_no_catalog(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "catalog.db")
    with pytest.raises(C5Error, match="not a file"):
        Catalog.open(tmp_path / "catalog.db")
