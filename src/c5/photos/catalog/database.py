"""The catalog's file: an SQLite database, its tables, and what can be wrong with it."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import UnionType
from typing import Any

from c5.errors import C5Error, DataError, WriteError
from c5.io.files import data_folder
from c5.regular import open_regular

APPLICATION = 0x63354341
"""What SQLite keeps in the file's header to tell it from the databases of other programs."""

LARGEST = 2**62
"""Sizes, times and numbers are smaller."""
LONGEST = 10_000
"""Messages and facts are shorter."""

BESIDE = {
    "-wal": (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"),
    "-journal": (b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7",),
    "-shm": ((3007000).to_bytes(4, sys.byteorder),),
}
"""How the files that SQLite keeps beside a database begin; they may also begin with zeros, or be empty."""

BUSY_SECONDS = 60
"""How long a writer waits for another; each writes for milliseconds at a time."""

FAILED = "error IS NOT NULL AND developed = 0"
"""Which entries are of files that should be usable and are not."""

SCHEMA = (
    """
    CREATE TABLE photograph (
        id INTEGER PRIMARY KEY,
        path BLOB NOT NULL UNIQUE,       -- as the file system spells it, links resolved
        size INTEGER NOT NULL,
        modified INTEGER NOT NULL,       -- nanoseconds
        digest BLOB NOT NULL,            -- of the content
        camera TEXT,
        number INTEGER,                  -- 0, 1, 2 ... within the camera, without gaps
        time TEXT,                       -- ISO 8601, by the camera's clock
        vividness REAL,
        grid TEXT,                       -- key of the grid of its histograms
        reading TEXT,                    -- key of how the file was read
        error TEXT,                      -- why the file cannot be used
        developed INTEGER NOT NULL       -- 1 if that is because it is a developed picture
    )""",
    """
    CREATE TABLE details (
        photograph INTEGER PRIMARY KEY,
        facts TEXT NOT NULL,             -- JSON: what else the file says
        packed BLOB NOT NULL             -- its histograms
    )""",
    """
    CREATE TABLE profile (
        model TEXT NOT NULL,
        camera TEXT NOT NULL,
        selection TEXT NOT NULL,
        count INTEGER NOT NULL,
        roll BLOB NOT NULL,              -- digest of the histograms it was made of
        features BLOB NOT NULL,
        PRIMARY KEY (model, camera, selection, count)
    )""",
    "CREATE UNIQUE INDEX by_number ON photograph (camera, number)",
    "CREATE INDEX by_content ON photograph (camera, digest)",
    "CREATE INDEX by_vividness ON photograph (camera, vividness)",
    "CREATE INDEX by_time ON photograph (camera, time, modified)",
    "CREATE INDEX by_digest ON photograph (digest)",
    f"CREATE INDEX failed ON photograph (path) WHERE {FAILED}",
    """
    CREATE TRIGGER forget AFTER DELETE ON photograph BEGIN
        DELETE FROM details WHERE photograph = OLD.id;
        UPDATE photograph SET number = OLD.number  -- the last one fills the gap
        WHERE camera = OLD.camera AND number > OLD.number AND number = (
            SELECT number FROM photograph WHERE camera = OLD.camera ORDER BY number DESC LIMIT 1
        );
    END""",
    f"PRAGMA application_id = {APPLICATION}",
)


def default_path() -> Path:
    """Where the catalog is unless another file is named: in the user's data folder."""
    return data_folder() / "catalog.db"


def connect(path: Path) -> sqlite3.Connection:
    """Open a catalog's database, or make an empty one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{path}: cannot be made: {error.strerror}; choose another place for the catalog") from None
    if os.path.exists(path) and not (path.is_file() or path.is_dir()):  # SQLite would wait for a pipe
        raise DataError(f"{path}: not a file; choose another for the catalog")
    _check_beside(path)
    with explain_errors(path):
        # Transactions are begun by hand: a writer must take its turn before it reads what it is going to change.
        place = f"{path.absolute().as_uri()}{'?immutable=1' if _is_fixed(path) else ''}"
        connection = sqlite3.connect(place, timeout=BUSY_SECONDS, isolation_level=None, uri=True)
        try:
            connection.execute("PRAGMA synchronous = NORMAL")  # survives a killed process, and a power cut undamaged
            if not _check_tables(connection, path):
                _create(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _check_beside(path: Path) -> None:
    """SQLite writes to files beside the database, known by their names, and removes them: they must be its own."""
    for ending, starts in BESIDE.items():
        beside = f"{os.path.realpath(path)}{ending}"
        with suppress(FileNotFoundError):
            status = os.lstat(beside)
            start = b"a link"
            if stat.S_ISREG(status.st_mode) and status.st_nlink < 2:
                with open_regular(beside) as file:
                    start = file.read(8)
            if not start.startswith(starts) and start.strip(b"\0"):
                raise DataError(f"{beside}: in the way of the catalog; move it, or choose another catalog")


def _is_fixed(path: Path) -> bool:
    """Whether a catalog can only be read: by default, SQLite writes beside it even for that."""
    return path.is_file() and not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()


def _check_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the database is a catalog that can be used: False if it is empty."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if not (application or version or tables):
        return False
    if application != APPLICATION:
        raise DataError(f"{path}: a database of another program; choose another file for the catalog")
    query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    if {_words(sql) for (sql,) in select(connection, query, (), str)} != {
        _words(statement) for statement in SCHEMA if "CREATE" in statement
    }:  # views and triggers of others could do anything, and never end
        raise DataError(
            f"{path}: it has other tables than this version of c5-awb makes; run pip install --upgrade c5-awb, or move "
            "it away and add the photographs again"
        )
    return True


def _words(statement: str) -> str:
    """A statement without comments and white space."""
    return "".join(re.sub("--.*", "", statement).split())


def select(
    connection: sqlite3.Connection, query: str, arguments: Sequence[Any], *kinds: type | UnionType
) -> Generator[tuple[Any, ...], None, None]:
    """The rows of a query, whose columns must be of these types: SQLite itself stores anything in any column."""
    for row in connection.execute(query, arguments):
        for value, kind in zip(row, kinds, strict=True):
            plausible = len(value) <= LONGEST if isinstance(value, str) else True
            if isinstance(value, int):
                plausible = -LARGEST < value < LARGEST
            if not isinstance(value, kind) or not plausible:
                error = sqlite3.DatabaseError(f"a column holds {value!r:.60}")
                error.sqlite_errorname = "SQLITE_CORRUPT"
                raise error
        yield row


def _create(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA page_size = 16384")  # an entry's histograms take a few KB
    deadline = time.monotonic() + BUSY_SECONDS
    while True:  # SQLite itself does not wait here for another process that makes the same file
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    with transaction(connection):
        if not _check_tables(connection, path):  # unless another process was quicker
            for statement in SCHEMA:
                connection.execute(statement)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is written inside becomes visible at once, or not at all."""
    try:
        connection.execute("BEGIN IMMEDIATE")  # here, since Ctrl-C may come at its end
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is read inside is from one moment, whatever other processes write meanwhile."""
    try:
        connection.execute("BEGIN DEFERRED")
        yield
    finally:
        if connection.in_transaction:  # a damaged file may have ended it
            connection.execute("COMMIT")


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into one line that says what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", None)
        if name is None and "decode to UTF-8" in str(error):
            name = "SQLITE_CORRUPT"
        if name is None:  # a bug, not a state of the file
            raise
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise DataError(f"{path}: another program is writing to the catalog; try again when it is done") from None
        if name.startswith(("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_PERM")):
            raise WriteError(
                f"{path}: cannot be read or written: {error}; fix that, or choose another file for the catalog"
            ) from error
        raise damaged(path, str(error)) from error
    except UnicodeDecodeError as error:  # SQLite names in its message what it found
        raise damaged(path, str(error)) from error


def damaged(path: Path, reason: str) -> C5Error:
    """The error for a file that is not an intact catalog."""
    shown = "".join(letter if letter.isprintable() else " " for letter in reason[:200])
    return DataError(
        f"{path}: not a catalog, or damaged ({shown}); move it away and add the photographs again: "
        "all in it comes from them"
    )
