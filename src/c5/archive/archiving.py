"""Running an archive: its stages one after the other, each on any number of workers.

The result is a folder of Parquet files, `part-*.parquet`; `_archive.json` says whether they are complete. What is known
so far is kept in `_work`: if it is killed at any moment, the same call continues from there, and reads the files that
are new or have changed since.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from importlib.metadata import version
from itertools import compress
from typing import Any, NamedTuple, TypeVar

from c5.archive import stages
from c5.archive.places import Place, find_place
from c5.archive.shards import Spool, cut, digest, load_parquet
from c5.archive.stages import COUNTED, ESTIMATED, PARTS, PROFILES, Candidate, Job, failures
from c5.errors import ReadError, WriteError
from c5.io.shapes import parse_json
from c5.model import Model, load_model
from c5.model_file import encode_model
from c5.parallel import Spread
from c5.photos.photo import Reading

RECORD, FORMAT = "_archive.json", "c5-archive"
RECORD_SHAPE = {"format": str, "source": str, "complete": object, "parts": [str]}

DRAWN, GATHERED = 256, 1024
"""How many shards a task for rolls looks at, and how many make a part of the result."""

Item = TypeVar("Item")
Report = Callable[[str, int, int], object]
"""Receives what is being done, how much of it is done, and the total."""


class Archived(NamedTuple):
    """The outcome for an archive."""

    files: int
    failed: int
    """Files with an error in place of a light."""
    unread: int
    """Those among them that may be readable next time."""
    cameras: int
    parts: list[str]
    unchanged: bool = False
    """Whether it was complete already, and nothing was read."""


def archive(
    source: str,
    result: str,
    spread: Spread,
    *,
    model: Model | None = None,
    camera: str | None = None,
    reading: Reading = Reading(),
    report: Report = lambda what, done, total: None,
) -> Archived:
    """The white balance of every photograph below a folder or an address, as Parquet in a folder or at an address.

    A camera's roll is drawn from the whole archive. `spread` does the work: see `c5.parallel.processes` and
    `c5.cluster.cluster`; what is written is the same. `camera` is the camera of files that do not name theirs; without
    it, they are estimated from their own pixels alone.
    """
    load_parquet()
    model = model or load_model()
    place, origin = find_place(result), find_place(source)
    origin.check()
    record = _claim(place, origin.address)
    job = Job(origin.address, place.address, f"_work/model-{model.identity}.c5", camera, reading)
    made = digest(model.grid.key, reading.key, camera)
    with closing(Spool(cut(_tell(origin.entries(), report), made))) as spool:
        if not spool.files:
            raise ReadError(f"{source}: no photographs below it; give a folder or an address of raw files")
        wanted = digest(model.identity, spool.names)
        if record["complete"] == wanted:
            files, failed, unread, cameras = record["counts"]
            return Archived(files, failed, unread, cameras, record["parts"], unchanged=True)
        place.write(RECORD, json.dumps(record | {"complete": None}, indent=1).encode())
        place.write(job.model, encode_model(model.file))
        return _Run(job, place, spread, report, record).work(spool, model, wanted)


def _tell(entries: Iterator[Item], report: Report) -> Iterator[Item]:
    for number, entry in enumerate(entries, 1):
        if number % 1000 == 0:
            report("listing", number, 0)
        yield entry


def _claim(place: Place, source: str) -> dict[str, Any]:
    """What the result says of itself. A place that holds anything else is an error."""
    names = place.names("")
    if RECORD not in names:
        if names:
            raise WriteError(f"{place.address}: holds something else already; choose another place for the result")
        return {"format": FORMAT, "source": source, "complete": None, "parts": []}
    content = place.read(RECORD)
    try:
        record: dict[str, Any] = parse_json(content, RECORD_SHAPE)
        if record["format"] != FORMAT:
            raise ReadError(f"of the format {record['format']}")
    except ReadError:
        message = f"{place.join(RECORD)}: damaged or not c5's; choose another place for the result"
        raise WriteError(message) from None
    if record["source"] != source:
        raise WriteError(
            f"{place.address}: holds the archive of {record['source']}; choose another place for the result"
        )
    return record


class _Run(NamedTuple):
    job: Job
    place: Place
    spread: Spread
    report: Report
    record: dict[str, Any]

    def work(self, spool: Spool, model: Model, wanted: str) -> Archived:
        counted, unread = self._count(spool)
        cameras, rolls = self._draw(counted)
        profiles = self._calibrate(rolls, model)
        estimated, failed = self._estimate(spool, counted, cameras, profiles, model)
        parts = self._gather(estimated)
        counts = (spool.files, failed, unread, len(profiles))
        self._finish(parts, None if unread else wanted, counts)
        for folder, used in ((COUNTED, counted), (PROFILES, profiles.values()), (ESTIMATED, estimated)):
            for name in self.place.names(folder) - set(used):
                self.place.remove(f"{folder}/{name}")
        return Archived(*counts, parts)

    def _count(self, spool: Spool) -> tuple[list[str], int]:
        """The file of each shard, and how many photographs may be readable next time."""
        done = {key: name for key, name in self._find(COUNTED).items() if failures(name) == 0}
        todo = [name not in done for name in spool.names]
        for shard, file in self._map("reading", stages.count, spool, spool.sizes, todo):
            done[shard.name] = file
        files = [done[name] for name in spool.names]
        return files, sum(map(failures, files))

    def _draw(self, counted: list[str]) -> tuple[list[tuple[str, ...]], dict[str, list[Candidate]]]:
        """The cameras of each shard, and the candidates for the roll of each camera."""
        cameras: list[tuple[str, ...]] = []
        rolls: dict[str, list[Candidate]] = {}
        groups = _batches(counted, DRAWN)
        sizes = [len(group) for group in groups]
        for _, drawn in self._map("drawing rolls", stages.draw, groups, sizes, [True] * len(groups)):
            cameras += (tuple(map(sys.intern, each)) for each in drawn.cameras)  # the same few names again and again
            for camera, candidates in drawn.candidates.items():
                rolls[camera] = stages.first_distinct(rolls.get(camera, []), candidates)
        return cameras, rolls

    def _calibrate(self, rolls: dict[str, list[Candidate]], model: Model) -> dict[str, str]:
        """The file of each camera's profile."""
        done = self.place.names(PROFILES)
        profiles = {}
        for camera, candidates in sorted(rolls.items()):
            contents = [candidate.digest.hex() for candidate in candidates]
            profiles[camera] = f"{digest(model.identity, camera, contents)}.c5p"
        todo = [name not in done for name in profiles.values()]
        tasks = ((camera, rolls[camera], name) for camera, name in profiles.items())
        for _ in self._map("making profiles", stages.calibrate, tasks, [1] * len(todo), todo):
            pass
        return profiles

    def _estimate(
        self,
        spool: Spool,
        counted: list[str],
        cameras: list[tuple[str, ...]],
        profiles: dict[str, str],
        model: Model,
    ) -> tuple[list[str], int]:
        """The estimated file of each shard, and how many photographs have no light."""
        done = self._find(ESTIMATED)
        keys = []
        for file, own in zip(counted, cameras, strict=True):
            salt = uuid.uuid4().hex if failures(file) else ""  # the same name may hold something else next time
            keys.append(digest(model.identity, file, sorted(profiles[camera] for camera in own), salt))
        todo = [key not in done for key in keys]
        tasks = (
            (file, {camera: profiles[camera] for camera in own}, key)
            for file, own, key in zip(counted, cameras, keys, strict=True)
        )
        for (_, _, key), file in self._map("estimating", stages.estimate, tasks, spool.sizes, todo):
            done[key] = file
        files = [done[key] for key in keys]
        return files, sum(map(failures, files))

    def _gather(self, estimated: list[str]) -> list[str]:
        """The parts of the result, some of which may be in place already."""
        groups = _batches(estimated, GATHERED)
        names = [f"part-{number:05d}-{digest(group)}.parquet" for number, group in enumerate(groups)]
        there = self.place.names("") | self.place.names(PARTS)
        todo = [name not in there for name in names]
        tasks = zip(groups, names, strict=True)
        for _ in self._map("gathering", stages.gather, tasks, [1] * len(todo), todo):
            pass
        return names

    def _finish(self, parts: list[str], complete: str | None, counts: tuple[int, ...]) -> None:
        """Put the parts in place, and remove the parts of an earlier result."""
        former = [name for name in self.record["parts"] if name not in parts]
        told = self.record | {"model": self.job.model, "version": version("c5-awb"), "counts": counts}
        self._write(told | {"complete": None, "parts": [*parts, *former]})
        for name in former:
            self.place.remove(name)
        for name in sorted(self.place.names(PARTS)):
            if name in parts:
                self.place.move(f"{PARTS}/{name}", name)
            else:
                self.place.remove(f"{PARTS}/{name}")
        self._write(told | {"complete": complete, "parts": parts})

    def _write(self, record: dict[str, Any]) -> None:
        self.place.write(RECORD, json.dumps(record, indent=1).encode())

    def _find(self, folder: str) -> dict[str, str]:
        """The files of a folder by the digests that they are kept under; of two, the one with fewer failures."""
        names = sorted(self.place.names(folder), key=failures, reverse=True)
        return {name.partition("-")[0]: name for name in names}

    def _map(
        self,
        what: str,
        function: Callable[[Job, Any], Any],
        tasks: Iterable[Any],
        sizes: Sequence[int],
        todo: Sequence[bool],
    ) -> Iterator[tuple[Any, Any]]:
        """Each task that is still to do with its result. The others count as done."""
        if not any(todo):
            return
        total = sum(sizes)
        due = [*compress(sizes, todo)]
        done = total - sum(due)
        self.report(what, done, total)
        with closing(self.spread(partial(function, self.job), compress(tasks, todo))) as results:
            for size, (task, result) in zip(due, results, strict=True):
                yield task, result
                done += size
                self.report(what, done, total)


def _batches(items: list[str], size: int) -> list[list[str]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
