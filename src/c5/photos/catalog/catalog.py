"""`Catalog`: which photographs there are, from which camera, and their rolls and profiles."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType, UnionType
from typing import Any, NamedTuple, Self

import numpy as np

from c5.choices import Selection
from c5.errors import ParameterError, ProfileError, ReadError, WriteError
from c5.histograms import Grid
from c5.io.archives import parse_levels, parse_part, unpack
from c5.io.versions import DIGEST_BYTES, file_version
from c5.model import Model, Profile
from c5.model_file import MOST_BYTES
from c5.photos.catalog.adding import BELOW, Added, add_photographs, below
from c5.photos.catalog.database import (
    FAILED,
    connect,
    damaged,
    default_path,
    explain_errors,
    select,
    snapshot,
    transaction,
)
from c5.photos.catalog.drawing import Candidate, draw_candidates
from c5.photos.catalog.entries import COLUMNS, JOINED, KINDS, parse_time, restore, stored_grid
from c5.photos.files import Failure, resolve
from c5.photos.photo import Photo, Reading, read_photo
from c5.photos.roll_building import Origin, Roll, build_roll
from c5.rolls import MOST_VIVID

SPARE = 2
"""How many times the photographs of a roll are drawn: some may show the same thing."""


class CameraStatus(NamedTuple):
    """What the catalog has of one camera."""

    camera: str | None
    """None for files that do not name one, and for those that failed."""
    images: int
    failed: int
    oldest: datetime | None
    newest: datetime | None


class Catalog:
    """An open catalog. Several processes may use one file at the same time; nothing is written beside photographs."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection = connect(self.path)

    @classmethod
    def open(cls, path: str | Path | None = None) -> Self:
        """The user's catalog, or another one; it is created if there is none."""
        return cls(default_path() if path is None else path)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(
        self,
        folders: Iterable[str | Path],
        *,
        jobs: int | None = None,
        camera: str | None = None,
        retry: bool = False,
        track: Callable[[Sequence[Path]], Iterable[Path]] = iter,
        reading: Reading = Reading(),
    ) -> Added:
        """Bring the catalog up to date with all photographs below some folders, `jobs` of them read at a time.

        A file is opened only if its size or its time of modification is not the recorded one, or if its histograms are
        not those of the bundled model's grid. If it is stopped or killed, the same call continues from there. `camera`
        names the camera of files that do not name theirs, `retry` opens files again that failed before, `track` may
        show progress over the files that are opened.

        The entry of a file that is gone is deleted, unless its folder is gone or empty too: then a disk may not be
        mounted, and the entry stays until `forget`. A file that cannot be read is recorded with the reason, and not
        opened again until it changes; one that cannot even be opened is tried again each time. Developed pictures in
        the folders are passed over.
        """
        if jobs is not None and jobs < 1:
            raise ParameterError(f"jobs must be at least 1, not {jobs}")
        roots = []
        for folder in folders:
            roots.append(resolve(folder))
            if not os.path.exists(roots[-1]):
                raise ReadError(f"{folder}: no such folder; connect its disk, or forget it if its photographs are gone")
        with explain_errors(self.path):
            return add_photographs(
                self._connection, roots, jobs=jobs, camera=camera, retry=retry, track=track, reading=reading
            )

    def forget(self, folder: str | Path) -> int:
        """Remove the entries of a folder or a file, whether or not it still exists. Returns how many there were."""
        with explain_errors(self.path), transaction(self._connection):
            return self._connection.execute(f"DELETE FROM photograph WHERE {BELOW}", below(resolve(folder))).rowcount

    def status(self) -> list[CameraStatus]:
        """What the catalog has of each camera, by name; files without a camera come last."""
        with explain_errors(self.path), snapshot(self._connection):
            (failed,) = self._connection.execute(f"SELECT COUNT(*) FROM photograph WHERE {FAILED}").fetchone()
            query = "SELECT camera, COUNT(*), MIN(time), MAX(time) FROM photograph WHERE developed = 0 GROUP BY camera"
            rows = list(select(self._connection, query, (), str | None, int, str | None, str | None))
        rows.sort(key=lambda row: (row[0] is None, row[0]))
        statuses = []
        for camera, count, oldest, newest in rows:
            unusable = failed if camera is None else 0
            statuses.append(CameraStatus(camera, count - unusable, unusable, parse_time(oldest), parse_time(newest)))
        return statuses

    def failures(self) -> list[Failure]:
        """The files that cannot be used, and why."""
        with explain_errors(self.path):
            query = f"SELECT path, error FROM photograph WHERE {FAILED} ORDER BY path"
            rows = select(self._connection, query, (), bytes, str)
            return [Failure(Path(os.fsdecode(path)), message) for path, message in rows]

    def holds(self, path: str | Path) -> bool:
        """Whether a file is in the catalog, whatever has happened to it since."""
        with explain_errors(self.path):
            query = "SELECT 1 FROM photograph WHERE path = ?"
            return self._connection.execute(query, (resolve(path),)).fetchone() is not None

    def find(self, path: str | Path, grid: Grid, reading: Reading = Reading()) -> Photo | None:
        """The photograph of a file that the catalog holds, the same to the last bit as reading it would give.

        None if the file has changed since, or if the entry is on another grid or was read in another way. The file is
        not opened.
        """
        row = self._select_unchanged(path, f"grid, reading, {COLUMNS}", str | None, str | None, *KINDS)
        if row is None or grid != stored_grid() or row[:2] != (grid.key, reading.key):
            return None
        with suppress(ReadError):  # the file itself is whole
            return restore(Path(path), *row[2:])
        return None

    def find_camera_and_time(self, path: str | Path) -> tuple[str | None, datetime | None] | None:
        """What a file says of its camera and time, without opening it; None if it has changed since it was added."""
        row = self._select_unchanged(path, "json_extract(facts, '$.camera'), time", str | None, str | None)
        return None if row is None else (row[0], parse_time(row[1]))

    def _select_unchanged(self, path: str | Path, columns: str, *kinds: type | UnionType) -> tuple[Any, ...] | None:
        """Columns of a file's entry; None if there is none, or if the file has changed since."""
        version = file_version(path)
        if version is None:
            return None
        query = f"SELECT {columns} FROM {JOINED} WHERE (path, size, modified) = (?, ?, ?)"
        with explain_errors(self.path):
            return next(select(self._connection, query, (resolve(path), *version), *kinds), None)

    def roll(
        self,
        model: Model,
        camera: str,
        size: int = MOST_VIVID,
        selection: Selection = Selection.RANDOM,
        *,
        reading: Reading = Reading(),
    ) -> Roll | None:
        """The roll of a camera with its profile; None if there is no photograph of that camera.

        The camera's name is compared whole. The roll changes only with the photographs, and copies of them change
        nothing. The profile is kept if the catalog can be written to, and made again when its roll has changed.
        Photographs whose stored histograms are not on the model's grid are read again, once.
        """
        size = model.takes(size)
        key = (model.identity, camera, selection.value, size)
        with explain_errors(self.path), snapshot(self._connection):
            drawn = draw_candidates(self._connection, camera, SPARE * size, selection)
            if not drawn:
                return None
            if any(len(candidate.digest) != DIGEST_BYTES for candidate in drawn):
                raise damaged(self.path, "a digest of another length")
            contents = _digest_roll(drawn)
            query = "SELECT features FROM profile WHERE (model, camera, selection, count, roll) = (?, ?, ?, ?, ?)"
            kept = next(select(self._connection, query, (*key, contents), bytes), None)
            known = None if kept is None else _unpack_profile(kept[0], model, camera)
            if known is not None:
                profile, used = known
                paths = tuple(sorted(candidate.path for candidate in drawn if candidate.digest in used))
                return Roll(camera, Origin.CATALOG, profile, paths)
            fits = model.grid.without_strips == stored_grid().without_strips
            stored = {candidate.path: self._restore(candidate) for candidate in drawn} if fits else {}

        def load(paths: Sequence[Path]) -> Iterator[Photo | Failure]:
            for path in paths:
                photo = stored.get(path)
                if photo is None or photo.histograms is None:
                    yield read_photo(path, model.grid.without_strips, reading)
                else:
                    yield replace(photo, histograms=photo.histograms.without_strips)

        places = [candidate.path for candidate in drawn]
        roll = build_roll(model, places, load, origin=Origin.CATALOG, size=size, camera=camera)
        if roll.profile is not None and not roll.failures:
            used = {candidate.digest for candidate in drawn if candidate.path in roll.paths}
            with suppress(WriteError), explain_errors(self.path), transaction(self._connection):  # it may be read-only
                self._connection.execute(
                    "INSERT OR REPLACE INTO profile VALUES (?, ?, ?, ?, ?, ?)",
                    (*key, contents, _pack_profile(roll.profile, used)),
                )
        return roll

    def _restore(self, candidate: Candidate) -> Photo:
        query = f"SELECT {COLUMNS} FROM {JOINED} WHERE id = ?"
        row = next(select(self._connection, query, (candidate.id,), *KINDS), None)
        try:
            if row is None:
                raise ReadError("it has no details")
            return restore(candidate.path, *row)
        except ReadError as error:
            raise damaged(self.path, f"the entry of {candidate.path}") from error


def _digest_roll(drawn: Iterable[Candidate]) -> bytes:
    """What identifies the histograms of a roll, whatever their order."""
    contents = sorted(candidate.digest + candidate.made.encode() for candidate in drawn)
    return hashlib.blake2b(b"\0".join(contents), digest_size=DIGEST_BYTES).digest()


def _pack_profile(profile: Profile, used: set[bytes]) -> bytes:
    """A profile, with the digests of the photographs it was made of."""
    buffer = io.BytesIO()
    levels = {f"level_{i}": level for i, level in enumerate(profile.features)}
    np.savez(buffer, allow_pickle=False, used=np.array([list(digest) for digest in sorted(used)], np.uint8), **levels)
    return buffer.getvalue()


def _unpack_profile(packed: bytes, model: Model, camera: str) -> tuple[Profile, set[bytes]] | None:
    """The profile and digests that were kept; None if they are damaged, so that they are made again."""
    try:
        parts = unpack(packed, MOST_BYTES)
        digests = parse_part(parts, "used", "u")
        if digests.ndim != 2:
            return None
        used = {digest.tobytes() for digest in digests}
        profile = Profile(model.identity, parse_levels(parts), len(used), camera)
        model.check_profile(profile)
    except (ParameterError, ProfileError, ReadError):
        return None
    return profile, used
