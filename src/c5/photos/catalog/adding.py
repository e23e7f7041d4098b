"""Bringing a catalogue up to date with the files on disk, a batch at a time, so that a killed process loses little.

Threads read the files: decoding and counting release Python's lock, and threads are gone with their process, however
it ends.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from c5.errors import C5Error
from c5.parallel import in_parallel
from c5.photos.catalog.database import transaction
from c5.photos.catalog.photographs import (
    Content,
    Found,
    Reader,
    Version,
    digest_file,
    find_photographs,
    printable,
    read_content,
)

BATCH = 32
BATCH_SECONDS = 1.0
"""What was read is written down after so many files, or so much time."""

BELOW = "(path = ? OR (path > ? AND path < ?))"


@dataclass
class Added:
    """What became of the files below some folders."""

    new: int = 0
    changed: int = 0
    moved: int = 0
    unchanged: int = 0
    """Those among them that failed before and are still the same."""
    deleted: int = 0
    failed: list[tuple[Path, str]] = field(default_factory=list)
    absent: dict[Path, int] = field(default_factory=dict)
    """Folders that are gone, empty or closed, with the number of entries kept of each: a disk may not be mounted."""


@dataclass(frozen=True)
class Task:
    """How files are to be added."""

    read: Reader
    jobs: int | None
    camera: str | None
    """The name of the camera, for files that do not tell."""
    retry: bool
    """Whether files that failed before are opened again."""
    track: Callable[[Sequence[Path]], Iterable[Path]]


class _Known(NamedTuple):
    version: Version
    failed: bool
    named: bool


class _Examined(NamedTuple):
    path: bytes
    version: Version
    digest: bytes
    content: Content | None = None
    message: str | None = None
    recorded: bool = True  # False where it may be the disk's fault and not the file's
    twin: bytes | None = None  # the path the content is known by


def below(root: bytes) -> tuple[bytes, bytes, bytes]:
    """The arguments of `BELOW` for a folder, or a file."""
    separator = os.fsencode(os.sep)
    start = root.rstrip(separator)
    return root, start + separator, start + bytes([separator[0] + 1])


def add_photographs(connection: sqlite3.Connection, roots: Sequence[bytes], task: Task) -> Added:
    known = _select_known(connection, roots)  # before looking, so that a newer entry of another process stays
    found = find_photographs(roots)
    added = Added(failed=found.unreadable)
    pending = []
    for path, version in sorted(found.files.items()):
        row = known.get(path)
        again = row is None or row.version != version
        if again or (row and ((task.retry and row.failed) or (task.camera and not row.named))):
            pending.append(Path(os.fsdecode(path)))
        else:
            added.unchanged += 1

    looked_up = _look_up(connection, task.track(pending), known)
    batch: list[_Examined] = []
    started = time.monotonic()
    with closing(in_parallel(lambda one: _examine(one, task.read), looked_up, task.jobs)) as examined:
        try:
            for _, one in examined:
                batch.append(one)
                if len(batch) >= BATCH or time.monotonic() > started + BATCH_SECONDS:
                    full, batch = batch, []
                    _store(connection, full, known, task.camera, added)
                    started = time.monotonic()
        finally:  # an interruption keeps what was read
            _store(connection, batch, known, task.camera, added)
    _delete_missing(connection, known, found, added)
    return added


def _select_known(connection: sqlite3.Connection, roots: Iterable[bytes]) -> dict[bytes, _Known]:
    known = {}
    for root in roots:
        query = f"SELECT path, size, modified, error IS NOT NULL, camera IS NOT NULL FROM photograph WHERE {BELOW}"
        for path, size, modified, failed, named in connection.execute(query, below(root)):
            known[path] = _Known(Version(size, modified), bool(failed), bool(failed or named))
    return known


def _look_up(connection: sqlite3.Connection, paths: Iterable[Path], known: dict[bytes, _Known]) -> Iterator[_Examined]:
    """Each file as it is now, with its content where the catalogue has the same under another path."""
    for name in paths:
        path = os.fsencode(name)
        try:
            version, digest = digest_file(path)
        except OSError as error:
            message = f"{name}: cannot be opened: {error.strerror}; check the permissions and the disk"
            yield _Examined(path, Version(0, 0), b"", message=message, recorded=False)
            continue
        twin, content = None, None
        if path not in known:  # else it was written to, and some blocks of it cannot say that nothing has changed
            query = "SELECT path, camera, time, vividness, packed FROM photograph JOIN histograms ON photograph = id"
            rows = connection.execute(f"{query} WHERE digest = ?", (digest,)).fetchall()
            if rows:
                twin, *values = min(rows, key=lambda row: os.path.lexists(row[0]))  # one that is gone has moved here
                content = Content(*values)
        yield _Examined(path, version, digest, content, twin=twin)


def _examine(one: _Examined, read: Reader) -> _Examined:
    """The same with its content, read where it is not known yet."""
    if one.content is not None or one.message is not None:
        return one
    path = Path(os.fsdecode(one.path))
    try:
        return one._replace(content=read_content(path, read))
    except C5Error as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
    if not reason.startswith(str(path)):
        reason = f"{path}: {reason}"
    try:
        same = digest_file(one.path) == (one.version, one.digest)
    except OSError:
        same = False
    return one._replace(message=printable(reason), recorded=same)


def _store(
    connection: sqlite3.Connection,
    batch: list[_Examined],
    known: dict[bytes, _Known],
    camera: str | None,
    added: Added,
) -> None:
    """Write down what was found out, and count it once that is safe."""
    if not batch:
        return
    moved = 0
    with transaction(connection):
        for one in batch:
            if not one.recorded:
                continue
            connection.execute("DELETE FROM photograph WHERE path = ?", (one.path,))
            insert(connection, one.path, one.version, one.digest, one.content, camera, one.message)
            if one.twin is not None and not os.path.lexists(one.twin):
                moved += connection.execute("DELETE FROM photograph WHERE path = ?", (one.twin,)).rowcount
    good = [one for one in batch if one.message is None]
    changed = sum(one.path in known for one in good)
    added.changed += changed
    added.moved += moved
    added.new += len(good) - changed - moved
    added.failed += [(Path(os.fsdecode(one.path)), one.message) for one in batch if one.message is not None]


def insert(
    connection: sqlite3.Connection,
    path: bytes,
    version: Version,
    digest: bytes,
    content: Content | None,
    camera: str | None = None,
    error: str | None = None,
) -> None:
    """Write one entry, within a transaction. `camera` counts where the content tells none."""
    name = None if content is None else content.camera or camera
    number = None
    if name is not None:
        (last,) = connection.execute("SELECT MAX(number) FROM photograph WHERE camera = ?", (name,)).fetchone()
        number = 0 if last is None else last + 1
    taken, vivid, packed = (None, None, None) if content is None else content[1:]
    cursor = connection.execute(
        "INSERT INTO photograph (path, size, modified, digest, camera, number, time, vividness, error) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (path, *version, digest, name, number, taken, vivid, error),
    )
    if packed is not None:
        connection.execute("INSERT INTO histograms VALUES (?, ?)", (cursor.lastrowid, packed))


def _delete_missing(connection: sqlite3.Connection, known: dict[bytes, _Known], found: Found, added: Added) -> None:
    """Delete the entries of files that are gone, where their folder shows that its disk is there."""
    missing = [path for path in known.keys() - found.files.keys() if not os.path.lexists(path)]
    if not missing:
        return
    with transaction(connection):
        for path in missing:
            folder = os.path.dirname(path)
            if folder in found.folders:
                added.deleted += connection.execute("DELETE FROM photograph WHERE path = ?", (path,)).rowcount
            elif connection.execute("SELECT 1 FROM photograph WHERE path = ?", (path,)).fetchone():  # it has not moved
                name = Path(os.fsdecode(folder))
                added.absent[name] = added.absent.get(name, 0) + 1
