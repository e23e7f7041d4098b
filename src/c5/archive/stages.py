"""What is done with the shards of an archive. Each function is one task, for any process on any machine.

1. `count` reads the photographs of a shard and counts their histograms.
2. `draw` finds which photographs of each camera make its roll, and `calibrate` makes a profile of a roll.
3. `estimate` finds the light of the photographs of a shard.
4. `gather` joins shards into a part of the result.

Files are called DIGEST-FAILURES.parquet: counted ones with how many photographs may be readable next time, estimated
ones with how many have no light. What a task writes depends only on its arguments, and on files that are kept under
the digest of their content. So a task may be done twice, anywhere, and gives the same bytes.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from c5.archive.places import Place, StoredFile, find_place
from c5.archive.shards import Shard, encode_table, read_table, write_table
from c5.color import gains
from c5.errors import C5Error, ReadError, WorkerError
from c5.io.files import printable
from c5.io.shapes import check_shape
from c5.io.versions import digest_file
from c5.model import Model, Profile
from c5.model_file import decode_model
from c5.parallel import in_parallel
from c5.photos import balancing
from c5.photos.catalog.entries import describe, restore
from c5.photos.files import Failure
from c5.photos.photo import Photo, Reading, read_photo
from c5.photos.roll_building import Origin, Roll, build_roll
from c5.rolls import MOST_VIVID

COUNTED, PROFILES, ESTIMATED, PARTS = "_work/counted", "_work/profiles", "_work/estimated", "_work/parts"
SPARE = 2
"""How many times the photographs of a roll are drawn: `build_roll` never looks at more."""


@dataclass(frozen=True)
class Job:
    """What all tasks of an archive have in common."""

    source: str
    result: str
    model: str
    """The model's file in the result."""
    camera: str | None = None
    """The camera of files that do not name theirs."""
    reading: Reading = Reading()


class Candidate(NamedTuple):
    """A photograph that may be drawn for a roll; those with the smallest digests are."""

    digest: bytes
    file: str
    row: int


class Drawn(NamedTuple):
    """What `draw` finds in some shards."""

    cameras: list[tuple[str, ...]]
    """Of each shard."""
    candidates: dict[str, list[Candidate]]
    """Of each camera, no two with the same content."""


def failures(name: str) -> int:
    """How many photographs of a file failed, by its name."""
    return int(name.partition("-")[2].partition(".")[0])


def count(job: Job, shard: Shard) -> str:
    """Read the photographs of a shard and count their histograms."""
    model, source, result = _load_model(job), _find_source(job.source), find_place(job.result)
    one = partial(_count_one, job, model)
    rows = [row for _, row in in_parallel(one, shard.entries, source.at_once)]
    columns: dict[str, tuple[str, list[Any]]] = {
        "path": ("string", [printable(entry.path) for entry in shard.entries]),
        "camera": ("string", [row.camera for row in rows]),
        "digest": ("binary", [row.digest for row in rows]),
        "time": ("string", [row.time for row in rows]),
        "facts": ("string", [row.facts for row in rows]),
        "packed": ("binary", [row.packed for row in rows]),
        "error": ("string", [row.error for row in rows]),
    }
    file = f"{shard.name}-{sum(row.again for row in rows)}.parquet"
    if failures(file):
        result.remove(f"{COUNTED}/{file}")  # of an earlier attempt
    result.write(f"{COUNTED}/{file}", encode_table(columns))
    return file


class _Row(NamedTuple):
    """What is known of a photograph once it is counted."""

    digest: bytes = b""
    camera: str | None = None
    time: str | None = None
    facts: str | None = None
    packed: bytes | None = None
    error: str | None = None
    again: bool = False
    """Whether it may be readable next time."""


def _count_one(job: Job, model: Model, entry: StoredFile) -> _Row:
    source = _find_source(job.source)
    where = printable(source.join(entry.path))
    try:
        with source.borrow(entry) as file:
            digest = digest_file(os.fsencode(file))[1]
            photo = read_photo(file, model.grid, job.reading)
    except (C5Error, OSError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else error
        return _Row(error=f"{where}: {printable(reason).removeprefix(f'{where}: ')}", again=True)
    if isinstance(photo, Failure):
        return _Row(digest, error=photo.message.replace(printable(file), where))
    assert photo.histograms is not None
    time = None if photo.time is None else photo.time.isoformat(" ", "microseconds")
    return _Row(digest, photo.camera or job.camera, time, describe(photo), photo.histograms.pack())


def draw(job: Job, files: Sequence[str]) -> Drawn:
    """Which photographs of some shards may make the rolls of their cameras."""
    place = find_place(job.result)
    cameras = []
    drawn: dict[str, list[Candidate]] = {}
    for file in files:
        table = _read(place, f"{COUNTED}/{file}", "camera", "digest")
        found: dict[str, list[Candidate]] = {}
        for row, (camera, digest) in enumerate(zip(*table.values(), strict=True)):
            if camera is not None:
                found.setdefault(camera, []).append(Candidate(digest, file, row))
        cameras.append(tuple(sorted(found)))
        for camera, candidates in found.items():
            drawn[camera] = first_distinct(drawn.get(camera, []), candidates)
    return Drawn(cameras, drawn)


def first_distinct(drawn: list[Candidate], others: Iterable[Candidate]) -> list[Candidate]:
    """The first candidates, one of each content: as many as a roll can need."""
    most = SPARE * MOST_VIVID
    if len(drawn) == most:
        others = [other for other in others if other.digest < drawn[-1].digest]
        if not others:
            return drawn
    chosen: dict[bytes, Candidate] = {}
    for candidate in sorted(chain(drawn, others)):
        chosen.setdefault(candidate.digest, candidate)
    return list(chosen.values())[:most]


def calibrate(job: Job, roll: tuple[str, list[Candidate], str]) -> None:
    """Write the profile of a camera. A camera with a single photograph has nothing else to learn from."""
    camera, candidates, name = roll
    model, place = _load_model(job), find_place(job.result)
    photos: dict[Candidate, Photo | Failure] = {}
    for file in {candidate.file for candidate in candidates}:
        own = [candidate for candidate in candidates if candidate.file == file]
        rows = _read(place, f"{COUNTED}/{file}", rows=[candidate.row for candidate in own])
        photos |= zip(own, _restore(job, rows, file), strict=True)
    found = {photos[candidate].path: photos[candidate] for candidate in candidates}  # in their order
    load = partial(map, found.__getitem__)
    built = build_roll(model, list(found), load, origin=Origin.SET, size=MOST_VIVID, camera=camera)
    profile = built.profile or model.calibrate_histograms([], camera)
    place.write(f"{PROFILES}/{name}", profile.encode())


def estimate(job: Job, task: tuple[str, dict[str, str], str]) -> str:
    """Find the light of the photographs of a shard, with profiles by camera."""
    file, profiles, key = task
    model, source, place = _load_model(job), find_place(job.source), find_place(job.result)
    settings = balancing.Settings(model=model)
    rolls = {camera: Roll(camera, Origin.SET, _load_profile(job.result, name)) for camera, name in profiles.items()}
    table = _read(place, f"{COUNTED}/{file}")
    results = []
    for photo, camera in zip(_restore(job, table, file), table["camera"], strict=True):
        results.append(balancing.estimate(photo, rolls.get(camera, Roll()), settings))
    found = [None if isinstance(result, Failure) else result for result in results]
    lights = [None if result is None else result.illuminant for result in found]
    colors = {"illuminant": lights, "gains": [None if light is None else gains(light) for light in lights]}
    temperatures = [r and r.photo.temperature(r.illuminant) for r in found]
    columns: dict[str, tuple[str, list[Any]]] = {
        "path": ("string", [source.join(path) for path in table["path"]]),
        "camera": ("string", table["camera"]),
        "time": ("timestamp[us]", [time and datetime.fromisoformat(time) for time in table["time"]]),
    }
    for what, values in colors.items():
        for channel, letter in enumerate("rgb"):
            numbers = [None if value is None else float(value[channel]) for value in values]
            columns[f"{what}_{letter}"] = ("double", numbers)
    columns |= {
        "kelvin": ("double", [t and float(t.kelvin) for t in temperatures]),
        "tint": ("double", [t and float(t.tint) for t in temperatures]),
        "uncertainty_deg": ("double", [r and r.uncertainty for r in found]),
        "uncertain": ("bool", [r and r.uncertain for r in found]),
        "roll": ("int32", [r and r.roll.size for r in found]),
        "content": ("string", [digest.hex() or None for digest in table["digest"]]),
        "histogram_key": ("string", [r and model.grid.key for r in found]),
        "error": ("string", [result.message if isinstance(result, Failure) else None for result in results]),
    }
    name = f"{key}-{sum(result is None for result in found)}.parquet"
    place.write(f"{ESTIMATED}/{name}", encode_table(columns))
    return name


def gather(job: Job, task: tuple[Sequence[str], str]) -> None:
    """Join estimated shards into one part of the result."""
    import pyarrow as pa

    files, name = task
    place = find_place(job.result)
    tables = []
    for file in files:
        with place.open(f"{ESTIMATED}/{file}") as opened:
            tables.append(read_table(opened, place.join(f"{ESTIMATED}/{file}")))
    place.write(f"{PARTS}/{name}", write_table(pa.concat_tables(tables)))


def _restore(job: Job, table: dict[str, list[Any]], file: str) -> Iterator[Photo | Failure]:
    """The photographs of a shard, as they were counted."""
    source, grid = find_place(job.source), _load_model(job).grid
    columns = (table[name] for name in ("path", "time", "facts", "packed", "error"))
    for path, time, facts, packed, error in zip(*columns, strict=True):
        where = Path(source.join(path))
        if error is not None:
            yield Failure(where, error)
            continue
        try:
            check_shape([time, facts, packed], (str | None, str, bytes))
            yield restore(where, time, grid.key, facts, packed, grid)
        except ReadError as reason:
            name = find_place(job.result).join(f"{COUNTED}/{file}")
            raise ReadError(f"{name}: damaged; remove it and run the same command again") from reason


def _read(place: Place, name: str, *columns: str, rows: list[int] | None = None) -> dict[str, list[Any]]:
    with place.open(name) as file:
        table = read_table(file, place.join(name), list(columns) or None)
    found: dict[str, list[Any]] = (table if rows is None else table.take(rows)).to_pydict()
    return found


@lru_cache(maxsize=2)
def _load_model(job: Job) -> Model:
    place = find_place(job.result)
    try:
        return Model(decode_model(place.read(job.model), place.join(job.model)))
    except ReadError as error:
        shared = "results must be at an address in object storage, or in a folder that all machines share"
        raise WorkerError(f"{platform.node()}: {error}; {shared}") from None


@lru_cache(maxsize=512)  # 180 KB each
def _load_profile(result: str, name: str) -> Profile:
    place = find_place(result)
    return Profile.decode(place.read(f"{PROFILES}/{name}"), place.join(f"{PROFILES}/{name}"))


@lru_cache(maxsize=2)
def _find_source(source: str) -> Place:
    place = find_place(source)
    try:
        place.check()
    except ReadError as error:
        raise WorkerError(f"{platform.node()}: {error}") from None
    return place
