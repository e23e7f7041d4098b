"""`Catalog`: which photographs there are, of which camera, and rolls and profiles of them."""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from c5.color import Float32s
from c5.errors import ParameterError, ProfileError, WriteError
from c5.histograms import MOST_VIVID, histogram
from c5.io.raw import read_photograph
from c5.model import Model, Profile
from c5.model_file import UNPACKING_ERRORS
from c5.photos.catalog.adding import BELOW, Added, Task, add_photographs, below
from c5.photos.catalog.database import connect, damaged, default_path, explain_errors, snapshot, transaction
from c5.photos.catalog.photographs import GRID, Reader, resolve, resolve_existing, unpack
from c5.photos.catalog.rolls import Order, Row, draw_rows, parse_time


class CameraStatus(NamedTuple):
    """What there is of one camera."""

    camera: str | None
    """None for files that do not tell, and for those that failed."""
    images: int
    failed: int
    oldest: datetime | None
    newest: datetime | None


@dataclass(frozen=True, eq=False)
class Entry:
    """A photograph of a roll."""

    path: Path
    time: datetime | None
    histograms: Float32s
    """On the grid of the bundled model's rolls, as exact as float16."""


class Catalog:
    """An open catalogue. Several processes may use one file at the same time; nothing is written beside photographs."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection = connect(self.path)

    @classmethod
    def open(cls, path: str | Path | None = None) -> Self:
        """The user's catalogue, or another one; it is made where there is none."""
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
        read: Reader = read_photograph,
    ) -> Added:
        """Bring the catalogue up to date with all photographs below some folders, `jobs` of them read at a time.

        A file is opened only if its size or its time of modification is not the recorded one. Stopped or killed, the
        same call goes on where it was. `camera` names the camera of files that do not tell theirs, `retry` opens those
        again that failed before, `track` may show progress over the files that are opened.

        The entry of a file that is gone is deleted, unless its folder is gone or empty too: then a disk may not be
        mounted, and the entry stays until `forget`. A file that cannot be read is recorded with the reason, and not
        opened again until it changes; one that cannot even be opened is tried again each time.
        """
        if jobs is not None and jobs < 1:
            raise ParameterError(f"jobs must be at least 1, not {jobs}")
        roots = [resolve_existing(folder) for folder in folders]
        with explain_errors(self.path):
            return add_photographs(self._connection, roots, Task(read, jobs, camera, retry, track))

    def forget(self, folder: str | Path) -> int:
        """Remove the entries of a folder or a file, whether or not it is still there, and say how many they were."""
        with explain_errors(self.path), transaction(self._connection):
            return self._connection.execute(f"DELETE FROM photograph WHERE {BELOW}", below(resolve(folder))).rowcount

    def status(self) -> list[CameraStatus]:
        """What there is of each camera, by name; what has no camera comes last."""
        with explain_errors(self.path), snapshot(self._connection):
            (failed,) = self._connection.execute("SELECT COUNT(*) FROM photograph WHERE error IS NOT NULL").fetchone()
            rows = self._connection.execute(
                "SELECT camera, COUNT(*), MIN(time), MAX(time) FROM photograph GROUP BY camera"
            ).fetchall()
        rows.sort(key=lambda row: (row[0] is None, row[0]))
        statuses = []
        for camera, count, oldest, newest in rows:
            unusable = failed if camera is None else 0
            statuses.append(CameraStatus(camera, count - unusable, unusable, parse_time(oldest), parse_time(newest)))
        return statuses

    def failures(self) -> list[tuple[Path, str]]:
        """The files that cannot be used, and why."""
        with explain_errors(self.path):
            rows = self._connection.execute("SELECT path, error FROM photograph WHERE error IS NOT NULL ORDER BY path")
            return [(Path(os.fsdecode(path)), message) for path, message in rows]

    def roll(
        self, camera: str, count: int, order: Order, *, rng: np.random.Generator, exclude: str | Path | None = None
    ) -> list[Entry]:
        """Up to `count` photographs of a camera, no two with the same content, nor with that of the file `exclude`.

        The camera's name is compared whole.
        """
        excluded = None if exclude is None else resolve(exclude)
        with explain_errors(self.path), snapshot(self._connection):
            rows = draw_rows(self._connection, camera, count, order, rng, excluded)
            return [Entry(row.path, row.time, self._histograms(row)) for row in rows]

    def profile(
        self,
        model: Model,
        camera: str,
        count: int = MOST_VIVID,
        order: Order = Order.VIVID,
        *,
        rng: np.random.Generator | None = None,
        read: Reader = read_photograph,
    ) -> tuple[Profile, list[Path]] | None:
        """A profile of a camera, and the photographs it was made of; None if there is none of that camera.

        It is kept where the catalogue can be written to, and made again when its roll has become another one. Without
        `rng`, the roll changes only with the catalogue. A model with another grid than the stored histograms' needs the
        photographs of the roll: they are read again, once.
        """
        count = model.takes(count)
        key = (model.identity, camera, order.value, count)
        with explain_errors(self.path), snapshot(self._connection):
            rows = draw_rows(self._connection, camera, count, order, rng or np.random.default_rng(0))
            if not rows:
                return None
            paths = [row.path for row in rows]
            roll = hashlib.blake2b(b"".join(sorted(row.digest for row in rows)), digest_size=16).digest()
            kept = self._connection.execute(
                "SELECT features FROM profile WHERE (model, camera, selection, count, roll) = (?, ?, ?, ?, ?)",
                (*key, roll),
            ).fetchone()
            if kept is not None:
                profile = _unpack_profile(kept[0], model, len(rows), camera)
                if profile is not None:
                    return profile, paths
            grid = model.grid.without_strips
            histograms = [self._histograms(row) for row in rows] if grid == GRID else []
        histograms = histograms or [histogram(read(path).image, grid) for path in paths]
        profile = model.calibrate_histograms(histograms, camera)
        with suppress(WriteError), explain_errors(self.path), transaction(self._connection):  # it may be read-only
            self._connection.execute(
                "INSERT OR REPLACE INTO profile VALUES (?, ?, ?, ?, ?, ?)", (*key, roll, _pack_profile(profile))
            )
        return profile, paths

    def _histograms(self, row: Row) -> Float32s:
        found = self._connection.execute("SELECT packed FROM histograms WHERE photograph = ?", (row.id,)).fetchone()
        try:
            return unpack(found[0])
        except (TypeError, ValueError, zlib.error) as error:
            raise damaged(self.path, f"the histograms of {row.path}") from error


def _pack_profile(profile: Profile) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{f"level_{i}": level for i, level in enumerate(profile.features)})
    return buffer.getvalue()


def _unpack_profile(packed: bytes, model: Model, n_images: int, camera: str) -> Profile | None:
    """The profile as it was kept; None if it is damaged, so that it is made again."""
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as file:
            profile = Profile(
                model.identity, tuple(file[f"level_{i}"] for i in range(len(file.files))), n_images, camera
            )
        model.check_profile(profile)
    except (*UNPACKING_ERRORS, ProfileError):
        return None
    return profile
