"""Bringing a catalog up to date with the files on disk, a batch at a time, so that a killed process loses little.

Threads read the files: decoding and counting release Python's lock, and threads are gone with their process, however
it ends.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from c5.errors import ReadError
from c5.io.files import printable
from c5.io.versions import Version, digest_file
from c5.parallel import in_parallel
from c5.photos.catalog.database import select, transaction
from c5.photos.catalog.entries import COLUMNS, JOINED, KINDS, insert, restore, stored_grid
from c5.photos.files import Developed, Failure, Listing, find_photographs
from c5.photos.photo import Photo, Reading, read_photo

BATCH = 32
BATCH_SECONDS = 1.0
"""Results are stored after this many files, or this much time."""

BELOW = "(path = ? OR (path > ? AND path < ?))"


@dataclass
class Added:
    """What happened to the files below some folders."""

    new: int = 0
    changed: int = 0
    """Files that were modified since, or whose histograms were those of an older version of the package."""
    moved: int = 0
    unchanged: int = 0
    """Files that were not opened again, including those that failed before."""
    deleted: int = 0
    failed: list[Failure] = field(default_factory=list)
    """Files that cannot be used, now or when they were last opened."""
    pictures: int = 0
    """Developed pictures in the folders, which are passed over."""
    absent: dict[Path, int] = field(default_factory=dict)
    """Folders that are gone, empty or closed, with the number of entries kept of each: a disk may not be mounted."""

    def note(self, failure: Failure, named: bool) -> None:
        """Count a file that cannot be used. Pictures count as failures only if they were named."""
        if isinstance(failure, Developed) and not named:
            self.pictures += 1
        else:
            self.failed.append(failure)


class _Known(NamedTuple):
    """What the catalog says of a path."""

    version: Version
    camera: str | None
    current: bool  # its histograms are on the grid that is stored now
    failure: Failure | None

    def is_outdated(self, version: Version, camera: str | None, retry: bool) -> bool:
        if self.version != version:
            return True
        if self.failure is not None:
            return retry
        return not self.current or bool(camera and self.camera is None)


class _Examined(NamedTuple):
    """What a file turned out to be."""

    path: bytes
    version: Version
    digest: bytes
    photo: Photo | None = None
    failure: Failure | None = None  # why it cannot be used
    recorded: bool = True  # False where it may be the disk's fault and not the file's
    twin: bytes | None = None  # the known path of the same content


def below(root: bytes) -> tuple[bytes, bytes, bytes]:
    """The arguments of `BELOW` for a folder, or a file."""
    separator = os.fsencode(os.sep)
    start = root.rstrip(separator)
    return root, start + separator, start + bytes([separator[0] + 1])


def add_photographs(
    connection: sqlite3.Connection,
    roots: Sequence[bytes],
    *,
    jobs: int | None,
    camera: str | None,
    retry: bool,
    track: Callable[[Sequence[Path]], Iterable[Path]],
    reading: Reading,
) -> Added:
    """`Catalog.add`, for paths that are resolved."""
    known = _select_known(connection, roots)  # before looking, so that a newer entry of another process stays
    found = find_photographs(roots)
    added = Added(failed=found.unreadable)
    pending = []
    for name, version in sorted(found.files.items()):
        path = Path(os.fsdecode(name))
        entry = known.get(name)
        again = retry or (reading.assume_srgb and entry is not None and isinstance(entry.failure, Developed))
        if entry is None or entry.is_outdated(version, camera, again):
            pending.append(path)
        else:
            added.unchanged += 1
            if entry.failure is not None:
                added.note(entry.failure, name in roots)

    looked_up = _look_up(connection, track(pending), known, reading)
    batch: list[_Examined] = []
    started = time.monotonic()
    with closing(in_parallel(lambda file: _examine(file, reading), looked_up, jobs)) as results:
        try:
            for _, examined in results:
                batch.append(examined)
                if len(batch) >= BATCH or time.monotonic() > started + BATCH_SECONDS:
                    full, batch = batch, []
                    _store(connection, full, known, camera, roots, added)
                    started = time.monotonic()
        finally:  # an interruption keeps what was read
            _store(connection, batch, known, camera, roots, added)
    _delete_missing(connection, known, found, added)
    return added


def _select_known(connection: sqlite3.Connection, roots: Iterable[bytes]) -> dict[bytes, _Known]:
    grid = stored_grid().key
    known = {}
    for root in roots:
        query = f"SELECT path, size, modified, camera, grid, error, developed FROM photograph WHERE {BELOW}"
        kinds = (bytes, int, int, str | None, str | None, str | None, int)
        for path, size, modified, camera, key, error, developed in select(connection, query, below(root), *kinds):
            kind = Developed if developed else Failure
            failure = None if error is None else kind(Path(os.fsdecode(path)), error)
            known[path] = _Known(Version(size, modified), camera, key == grid, failure)
    return known


def _look_up(
    connection: sqlite3.Connection, paths: Iterable[Path], known: dict[bytes, _Known], reading: Reading
) -> Iterator[_Examined]:
    """Each file as it is now, with its photograph where the catalog has the same content under another path."""
    for name in paths:
        path = os.fsencode(name)
        try:
            version, digest = digest_file(path)
        except OSError as error:
            message = f"{name}: cannot be opened: {error.strerror}; check the permissions and the disk"
            yield _Examined(path, Version(0, 0), b"", failure=Failure(name, printable(message)), recorded=False)
            continue
        twin, photo = None, None
        if path not in known:  # else it was modified, and a few blocks cannot prove that nothing has changed
            query = f"SELECT path, {COLUMNS} FROM {JOINED} WHERE (digest, grid, reading) = (?, ?, ?)"
            rows = list(select(connection, query, (digest, stored_grid().key, reading.key), bytes, *KINDS))
            if rows:
                twin, *columns = min(rows, key=lambda row: os.path.lexists(row[0]))  # one that is gone has moved here
                with suppress(ReadError):  # it is read instead
                    photo = restore(name, *columns)
        yield _Examined(path, version, digest, photo, twin=None if photo is None else twin)


def _examine(file: _Examined, reading: Reading) -> _Examined:
    """The same with its photograph, read where it is not known yet."""
    if file.photo is not None or file.failure is not None:
        return file
    photo = read_photo(Path(os.fsdecode(file.path)), stored_grid(), reading)
    if not isinstance(photo, Failure):
        return file._replace(photo=photo)
    try:
        same = digest_file(file.path) == (file.version, file.digest)
    except OSError:
        same = False
    return file._replace(failure=photo, recorded=same)


def _store(
    connection: sqlite3.Connection,
    batch: list[_Examined],
    known: dict[bytes, _Known],
    camera: str | None,
    roots: Sequence[bytes],
    added: Added,
) -> None:
    """Store what was found, and count it once it is safe."""
    if not batch:
        return
    moved = 0
    with transaction(connection):
        for file in batch:
            if not file.recorded:
                continue
            name = camera
            if name is None and file.path in known:  # a camera that was named once stays named
                name = known[file.path].camera
            connection.execute("DELETE FROM photograph WHERE path = ?", (file.path,))
            error, developed = file.failure and file.failure.message, isinstance(file.failure, Developed)
            insert(connection, file.path, file.version, file.digest, file.photo, name, error, developed)
            if file.twin is not None and not os.path.lexists(file.twin):
                moved += connection.execute("DELETE FROM photograph WHERE path = ?", (file.twin,)).rowcount
    good = [file for file in batch if file.failure is None]
    changed = sum(file.path in known for file in good)
    added.changed += changed
    added.moved += moved
    added.new += len(good) - changed - moved
    for file in batch:
        if file.failure is not None:
            added.note(file.failure, file.path in roots)


def _delete_missing(connection: sqlite3.Connection, known: dict[bytes, _Known], found: Listing, added: Added) -> None:
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
