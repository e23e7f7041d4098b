"""Files of labeled images: the container that packs and prepared sets share. docs/file-formats.md specifies it.

Records follow one another, each complete in itself, so that interrupted writing resumes where it stopped. The index at
the end repeats their labels: opening a file reads nothing else, and a record is read when it is asked for.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from c5.datasets.sample import Capture, Pixels, Problem, Sample
from c5.errors import C5Error, DataError, ReadError, WriteError, reason
from c5.io.archives import inflate
from c5.io.files import NOT_OWN
from c5.io.shapes import MATRIX, THREE, OrNull, check_shape, parse_json
from c5.regular import open_regular

START = struct.Struct("<8sI")  # magic, version
CHUNK = struct.Struct("<4sII")  # kind, bytes of the head, bytes of the payload; then both, and the CRC-32 of all of it
CRC = struct.Struct("<I")
END = struct.Struct("<Q8s")  # where the index begins, magic
RECORD, INDEX = b"shot", b"indx"

MOST_INDEX_BYTES = 256 * 2**20
"""An index never unpacks to more: a million images take less. Nor to much more than the records it repeats."""

SMALL_INDEX_BYTES = 2**20

ENTRY = {
    "name": str,
    "camera": str,
    "dataset": str,
    "scene": str | None,
    "illuminant": THREE,
    "ccm": OrNull(MATRIX),
    "capture": OrNull((float | None,) * 3),
    "fold": int | None,
    "cameras": int | None,
    "sources": int | None,
}
"""The JSON of the labels of one image."""
PLACE = {"offset": int, "length": int}


class Format(NamedTuple):
    """One kind of file."""

    magic: bytes
    version: int
    noun: str
    """What messages call such a file."""
    image: dict[str, Any]
    """The JSON that its records have as `image`, besides `source` and `content`."""
    more: dict[str, Any]
    """The JSON that its index has, besides that of every file."""

    def recognizes(self, path: Path) -> bool:
        try:
            with open_regular(path) as file:
                return file.read(len(self.magic)) == self.magic
        except OSError:
            return False


@dataclass(frozen=True, eq=False)
class Container:
    """An open file of labeled images, mapped into memory."""

    path: Path
    form: Format
    index: dict[str, Any]

    @classmethod
    def open(cls, path: Path, form: Format) -> Container:
        try:
            with open_regular(path) as file:
                return cls(path, form, _read_index(path, file, form))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}; check the path") from None

    def samples(self, pixels: Callable[[Container, int, dict[str, Any]], Pixels]) -> list[Sample]:
        """Its samples, from the index; `pixels` is a kind of `Record` that is a source of pixels."""
        names = self.index["names"]
        sets = [frozenset(names[number] for number in numbers) for numbers in self.index["sets"]]
        entries = enumerate(self.index["samples"], 1)
        return [_as_sample(pixels(self, number, entry), entry, sets) for number, entry in entries]

    @cached_property
    def content(self) -> mmap.mmap:
        try:
            with open_regular(self.path) as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise ReadError(f"{self.path}: cannot be read: {reason(error)}; check the path") from None

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to read records of the same file; of the large index, only the features."""
        kept = {key: value for key, value in self.index.items() if key == "features"}
        return {"path": self.path, "form": self.form, "index": kept}


@dataclass(frozen=True, eq=False)
class Record:
    """One image of a container."""

    container: Container
    number: int
    """Counted from 1."""
    entry: dict[str, Any]
    """What the index says about it."""

    @property
    def path(self) -> Path:
        return self.container.path

    @contextmanager
    def open(self) -> Iterator[bytes]:
        """The payload of the record, checked. A ReadError inside the block is reported as a damaged file."""
        entry, content = self.entry, self.container.content
        try:
            head, payload = open_chunk(content[entry["offset"] : entry["offset"] + entry["length"]], RECORD)
            if (head.get("name"), head.get("image")) != (entry["name"], entry["image"]):
                raise ReadError("another record is in its place")
            yield payload
        except ReadError as error:
            where = f"{self.path}: record {self.number} ({entry['name']})"
            raise DataError(f"{where} is damaged: {error}; copy or make the file again") from error


def _read_index(path: Path, file: BinaryIO, form: Format) -> dict[str, Any]:
    start = file.read(START.size)
    if not start.startswith(form.magic):
        raise DataError(f"{path}: not a {form.noun}; give another file")
    version = START.unpack(start)[1] if len(start) == START.size else 0
    if version > form.version:
        raise DataError(
            f"{path}: made for a newer version of c5-awb, or damaged (format {version}, this one reads up to "
            f"{form.version}); run pip install --upgrade c5-awb"
        )
    size = file.seek(0, os.SEEK_END)
    try:
        file.seek(max(0, size - END.size))
        offset, magic = END.unpack(file.read(END.size).rjust(END.size))
        if magic != form.magic or version < form.version or not START.size <= offset < size:
            raise ReadError(f"it does not end as a {form.noun} does")
        file.seek(offset)
        _, payload = open_chunk(file.read(size - END.size - offset), INDEX)
        text = inflate(payload, min(MOST_INDEX_BYTES, offset + SMALL_INDEX_BYTES))
        image = {"source": str, "content": str, **form.image}
        shape = {"names": [str], "sets": [[int]], "samples": [{**ENTRY, **PLACE, "image": image}], **form.more}
        index: dict[str, Any] = parse_json(text, shape, "its index")
        _check_references(index, offset)
        return index
    except ReadError as error:
        remedy = "copy it again, or let the command that writes it finish"
        raise DataError(f"{path}: cut short or damaged: {error}; {remedy}") from error


def _check_references(index: dict[str, Any], end: int) -> None:
    """Raise a ReadError for a record outside the file, a name or a set that is not there, or a light that cannot be."""
    names, sets = range(len(index["names"])), range(len(index["sets"]))
    if not all(number in names for members in index["sets"] for number in members):
        raise ReadError("a set has a name that is not there")
    for entry in index["samples"]:
        offset, length = entry["offset"], entry["length"]
        if not START.size <= offset < offset + length <= end:
            raise ReadError("a record lies outside the file")
        if not all(entry[which] is None or entry[which] in sets for which in ("cameras", "sources")):
            raise ReadError(f"{entry['name']!r:.80} is of a set that is not there")
        if min(entry["illuminant"]) <= 0:
            raise ReadError(f"the illuminant of {entry['name']!r:.80} is not three positive numbers")


def open_chunk(data: bytes, kind: bytes) -> tuple[dict[str, Any], bytes]:
    """The head and the payload of a chunk, if it is whole and of that kind."""
    if len(data) < CHUNK.size + CRC.size:
        raise ReadError("the file ends inside it")
    found, head, payload = CHUNK.unpack_from(data)
    if found != kind or len(data) != CHUNK.size + head + payload + CRC.size:
        raise ReadError("it does not begin as it should, or the file ends inside it")
    if zlib.crc32(memoryview(data)[: -CRC.size]) != CRC.unpack(data[-CRC.size :])[0]:
        raise ReadError("its checksum does not fit")
    start = CHUNK.size + head
    return parse_json(data[CHUNK.size : start], dict, "its head"), data[start : -CRC.size]


def _as_sample(pixels: Pixels, entry: dict[str, Any], sets: list[frozenset[str]]) -> Sample:
    capture, ccm = entry["capture"], entry["ccm"]
    return Sample(
        pixels,
        np.array(entry["illuminant"], dtype=np.float64),
        camera=entry["camera"],
        dataset=entry["dataset"],
        name=entry["name"],
        scene=entry["scene"],
        ccm=None if ccm is None else np.array(ccm, dtype=np.float64),
        capture=None if capture is None else Capture(*capture),
        fold=entry["fold"],
        cameras=frozenset() if entry["cameras"] is None else sets[entry["cameras"]],
        sources=frozenset() if entry["sources"] is None else sets[entry["sources"]],
    )


# Writing --------------------------------------------------------------------------------------------------------------


class Report(NamedTuple):
    """The result of writing a file."""

    written: int
    skipped: list[Problem]
    """Images that could not be used, and are not in the file."""


class BusyError(WriteError):
    """Another process is writing the same file."""


class Encoded(NamedTuple):
    """What is written for one image."""

    image: dict[str, Any]
    """What the record says about the payload: `source`, a digest of what it was made from and how; `content`, a digest
    of what it holds; and whatever else the format needs."""
    payload: bytes


Encode = Callable[[Sample, str | None], Encoded | str]
"""Gives what to write for a sample, or only the digest of its source if that is the one given."""


def write_container(
    samples: Iterable[Sample],
    path: str | Path,
    form: Format,
    encode: Encode,
    each: Callable[..., Iterable[tuple[tuple[Sample, str | None], Encoded | str | C5Error]]],
    *,
    overwrite: bool = False,
    complete: bool = False,
    more: dict[str, Any] | None = None,
) -> Report:
    """Write samples to one file, whole or not at all; if `complete`, only if every image can be used.

    Records are collected in a file with `.part` after its name, which becomes the file at the end. If it exists
    already, an earlier run was interrupted: its records that are still the same are not made again. The result is the
    same to the last byte. `each(function, items)` gives every item with its result, in order. `more` goes into the
    index.
    """
    path = Path(os.path.realpath(path))  # a link stays a link
    if path.exists() and not overwrite:
        raise WriteError(f"{path}: exists already; choose another name or give overwrite=True")
    if path.exists() and not form.recognizes(path):
        raise WriteError(f"{path}: {NOT_OWN}")
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _open_part(part) as file:
            draft = _Draft(file, form)
            skipped = _write_records(draft, samples, encode, each)
            wanted = bool(draft.entries) and not (complete and skipped)
            if wanted:
                draft.finish(more or {})
            if os.name == "nt":  # where an open file cannot be renamed; elsewhere its lock holds until it is
                file.close()
            if wanted:
                os.replace(part, path)
            else:
                part.unlink()
        if complete and skipped:
            raise DataError(skipped[0].message)
        if not draft.entries:
            reason = f"; the first: {skipped[0].message}" if skipped else ""
            raise DataError(f"{path}: no image could be used{reason}")
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror or error}; choose another place") from error
    return Report(len(draft.entries), skipped)


def _write_records(draft: _Draft, samples: Iterable[Sample], encode: Encode, each: Any) -> list[Problem]:
    skipped: list[Problem] = []
    names: set[str] = set()
    earlier = draft.earlier()
    tasks = ((sample, earlier.get(sample.name)) for sample in samples)
    with closing(each(partial(_attempt, encode), tasks)) as results:
        for (sample, _), found in results:
            try:
                if sample.name in names:
                    raise DataError(f"{sample.path}: {sample.name} appears twice; give each photograph once")
                if isinstance(found, C5Error):
                    raise found
                if isinstance(found, str) and not draft.keep(sample, found):
                    found = encode(sample, None)  # the record is there, but not in its place
                if isinstance(found, Encoded) and not draft.keep(sample, found.image["source"]):
                    draft.append(sample, found)
                names.add(sample.name)
            except C5Error as error:
                skipped.append(Problem(sample.path, str(error)))
    return skipped


def _attempt(encode: Encode, task: tuple[Sample, str | None]) -> Encoded | str | C5Error:
    """What to write, or what is wrong: one bad image does not stop the work on the others."""
    try:
        return encode(*task)
    except C5Error as error:
        return error


@dataclass
class _Draft:
    """A file being written: its records, the first of which may be from an earlier run."""

    file: BinaryIO
    form: Format
    entries: list[dict[str, Any]] = field(default_factory=list)
    """The heads of the records so far, each with its place in the file."""
    names: dict[str, int] = field(default_factory=dict)
    sets: dict[tuple[int, ...], int] = field(default_factory=dict)
    """Names of photographs and cameras, and sets of them, by number: each is stored once."""
    _kept: list[dict[str, Any]] = field(default_factory=list)
    _end: int = 0

    def __post_init__(self) -> None:
        """Take over the complete records of an earlier run."""
        start, found = START.pack(self.form.magic, self.form.version), self.file.read(START.size)
        if not start.startswith(found):
            raise _in_the_way(Path(self.file.name))
        self.file.write(start[len(found) :])
        self._end = position = START.size
        with suppress(ReadError):
            while True:
                chunk = _read_chunk(self.file, position)
                head, _ = open_chunk(chunk, RECORD)
                check_shape(head, {"name": str, "image": {"source": str}})
                self._kept.append({**head, "offset": position, "length": len(chunk)})
                position += len(chunk)

    def earlier(self) -> dict[str, str]:
        """The digests of the sources of the records taken over, by name."""
        return {head["name"]: head["image"]["source"] for head in self._kept}

    def keep(self, sample: Sample, source: str) -> bool:
        """Whether the next record of the earlier run is this sample; then it stays."""
        if len(self.entries) >= len(self._kept):
            return False
        entry = self._kept[len(self.entries)]
        place = {key: entry[key] for key in ("offset", "length", "image")}
        if entry["image"]["source"] != source or entry != self._describe(sample) | place:
            return False
        self._add(entry)
        return True

    def append(self, sample: Sample, encoded: Encoded) -> None:
        """Write the record of a sample after the last one; what an earlier run had there is cut off."""
        head = {**self._describe(sample), "image": encoded.image}
        chunk = _make_chunk(RECORD, head, encoded.payload)
        del self._kept[len(self.entries) :]
        self._write(chunk)
        self._add({**head, "offset": self._end, "length": len(chunk)})

    def finish(self, more: dict[str, Any]) -> None:
        """Write the index. It has names and sets once, not in each sample."""
        samples = [
            {key: value for key, value in entry.items() if key not in ("names", "sets")} for entry in self.entries
        ]
        index = {**more, "names": list(self.names), "sets": list(self.sets), "samples": samples}
        chunk = _make_chunk(INDEX, {}, zlib.compress(_to_json(index), 9))
        self._write(chunk + END.pack(self._end, self.form.magic))
        os.fsync(self.file.fileno())

    def _write(self, data: bytes) -> None:
        """Put bytes after the last record, replacing whatever is there."""
        self.file.seek(self._end)
        self.file.truncate()
        self.file.write(data)
        self.file.flush()

    def _describe(self, sample: Sample) -> dict[str, Any]:
        """The labels of a sample, with the names and sets that it is the first to need."""
        names: dict[str, int] = {}
        sets: dict[tuple[int, ...], int] = {}

        def number(members: frozenset[str], own: str) -> int | None:
            if members == {own}:
                return None
            for name in sorted(members - self.names.keys() - names.keys()):
                names[name] = len(self.names) + len(names)
            numbers = tuple(sorted(names[name] if name in names else self.names[name] for name in members))
            if numbers not in self.sets and numbers not in sets:
                sets[numbers] = len(self.sets) + len(sets)
            return self.sets[numbers] if numbers in self.sets else sets[numbers]

        capture = sample.capture
        labels = {
            "name": sample.name,
            "dataset": sample.dataset,
            "camera": sample.camera,
            "illuminant": sample.illuminant.tolist(),
            "scene": sample.scene,
            "ccm": None if sample.ccm is None else sample.ccm.tolist(),
            "capture": None if capture is None else [capture.gain, capture.aperture, capture.exposure],
            "fold": sample.fold,
            "cameras": number(sample.cameras, sample.camera),
            "sources": number(sample.sources, sample.name),
        }
        return labels | {"names": list(names), "sets": [list(each) for each in sets]}

    def _add(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)
        self.names |= {name: number for number, name in enumerate(entry["names"], len(self.names))}
        self.sets |= {tuple(each): number for number, each in enumerate(entry["sets"], len(self.sets))}
        self._end = entry["offset"] + entry["length"]


def _open_part(part: Path) -> BinaryIO:
    """Open a part file, new or left over, for this process alone if the system has such locks."""
    while True:
        if os.path.lexists(part):
            status = os.lstat(part)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:  # a link's target is somebody's
                raise _in_the_way(part)
        file = open(part, "r+b", opener=lambda path, flags: os.open(path, flags | os.O_CREAT, 0o666))  # noqa: SIM115
        try:
            _lock(file, part)
            if os.path.exists(part) and os.path.samestat(os.fstat(file.fileno()), os.stat(part)):
                return file
            file.close()  # another process has finished it in the meantime
        except BaseException:
            file.close()
            raise


def _lock(file: BinaryIO, part: Path) -> None:
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BusyError(f"{part}: another process is writing to it; wait for it or choose another name") from None


def _in_the_way(part: Path) -> WriteError:
    return WriteError(f"{part}: in the way, and not a file to continue with; move or remove it")


def _read_chunk(file: BinaryIO, position: int) -> bytes:
    """The bytes of the chunk at a position in a file, as many as there are."""
    size = file.seek(0, os.SEEK_END)
    file.seek(position)
    prefix = file.read(CHUNK.size)
    if len(prefix) < CHUNK.size:
        return prefix
    _, head, payload = CHUNK.unpack(prefix)
    return prefix + file.read(min(head + payload + CRC.size, size))


def _make_chunk(kind: bytes, head: dict[str, Any], payload: bytes) -> bytes:
    described = _to_json(head)
    chunk = CHUNK.pack(kind, len(described), len(payload)) + described + payload
    return chunk + CRC.pack(zlib.crc32(chunk))


def _to_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
