"""Making a .c5data file. A packing that is stopped, even killed, goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from c5.datasets.pack import CHUNK, CODEC, CRC, END, INDEX, MAGIC, RECORD, START, UNPACKING_ERRORS, VERSION, open_chunk
from c5.datasets.sample import Problem, Sample
from c5.errors import C5Error, DataError, WriteError
from c5.image import LinearImage, nothing_counts, shrink
from c5.parallel import in_parallel


class PackReport(NamedTuple):
    """What became of a packing."""

    written: int
    skipped: list[Problem]
    """Images that could not be used, and are not in the pack."""


def write_pack(
    samples: Iterable[Sample],
    path: str | Path,
    track: Callable[[Iterable[Sample]], Iterable[Sample]] = iter,
    overwrite: bool = False,
) -> PackReport:
    """Write images at working size, 16 bits a channel, with their labels and flags to one file.

    Records gather in a file with `.part` after its name, which becomes the pack at the end. If it is there already,
    packing was stopped: what is in it and still the same is not read again. The result is the same to the last byte.
    `track` may show progress over the samples.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise WriteError(f"{path}: exists already; choose another name or give overwrite=True")
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("r+b" if part.exists() else "x+b", buffering=0) as file:
            _lock(file, part)
            draft = _Draft(file)
            skipped = _write_records(draft, track(samples))
            if draft.entries:
                draft.finish()
        if not draft.entries:
            part.unlink()
            reason = f"; the first: {skipped[0].message}" if skipped else ""
            raise DataError(f"{path}: no image could be packed{reason}")
        os.replace(part, path)
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror or error}; choose another place") from error
    return PackReport(len(draft.entries), skipped)


def _write_records(draft: _Draft, samples: Iterable[Sample]) -> list[Problem]:
    skipped: list[Problem] = []
    names: set[str] = set()
    earlier = draft.earlier()

    def prepare(sample: Sample) -> tuple[str, _Encoded | None] | C5Error:
        """The digest of the source, and what is to be written; nothing where the draft should have it."""
        try:
            source = sample.pixels.digest()
            return source, None if earlier.get(sample.name) == source else _encode(sample)
        except C5Error as error:
            return error

    for sample, prepared in in_parallel(prepare, samples):
        try:
            if sample.name in names:
                raise DataError(f"{sample.path}: {sample.name} is there twice; give each photograph once")
            if isinstance(prepared, C5Error):
                raise prepared
            source, encoded = prepared
            if not draft.keep(sample, source):
                draft.append(sample, source, encoded or _encode(sample))
            names.add(sample.name)
        except C5Error as error:
            skipped.append(Problem(sample.path, str(error)))
    return skipped


@dataclass
class _Draft:
    """A pack that is being written: records, of which the first may be from an earlier packing."""

    file: BinaryIO
    entries: list[dict[str, Any]] = field(default_factory=list)
    """The heads of the records so far, each with its place in the file."""
    names: dict[str, int] = field(default_factory=dict)
    sets: dict[tuple[int, ...], int] = field(default_factory=dict)
    """Names of photographs and cameras, and sets of them, by number: each is stored once."""
    _kept: list[dict[str, Any]] = field(default_factory=list)
    _end: int = 0

    def __post_init__(self) -> None:
        """Take over the whole records of an earlier packing."""
        start, found = START.pack(MAGIC, VERSION), self.file.read(START.size)
        if not start.startswith(found):
            raise WriteError(f"{self.file.name}: in the way, and not of a packing to go on with; move or remove it")
        _write_all(self.file, start[len(found) :])
        self._end = position = START.size
        while (chunk := _read_chunk(self.file, position)) is not None:
            try:
                head, _ = open_chunk(chunk, RECORD)
            except UNPACKING_ERRORS:
                break
            self._kept.append({**head, "offset": position, "length": len(chunk)})
            position += len(chunk)

    def earlier(self) -> dict[str, str]:
        """The digests of the sources of the records taken over, by name."""
        return {head["name"]: head["image"]["source"] for head in self._kept}

    def keep(self, sample: Sample, source: str) -> bool:
        """Whether the next record of the earlier packing is this sample; then it stays."""
        if len(self.entries) >= len(self._kept):
            return False
        entry = self._kept[len(self.entries)]
        labels, names, sets = self._describe(sample)
        image = entry["image"]
        if image["source"] != source or _without_place(entry) != {**labels, "image": image}:
            return False
        self._add(entry, names, sets)
        return True

    def append(self, sample: Sample, source: str, encoded: _Encoded) -> None:
        """Write the record of a sample after the last one; what an earlier packing had there is cut off."""
        labels, names, sets = self._describe(sample)
        head = {**labels, "image": {**encoded.image, "source": source}}
        chunk = _make_chunk(RECORD, head, encoded.payload)
        del self._kept[len(self.entries) :]
        self.file.seek(self._end)
        self.file.truncate()
        _write_all(self.file, chunk)
        self._add({**head, "offset": self._end, "length": len(chunk)}, names, sets)

    def finish(self) -> None:
        """Write the index. Names and sets stand in it once, not in the samples."""
        samples = [
            {key: value for key, value in entry.items() if key not in ("names", "sets")} for entry in self.entries
        ]
        index = {"names": list(self.names), "sets": list(self.sets), "samples": samples}
        self.file.seek(self._end)
        self.file.truncate()
        chunk = _make_chunk(INDEX, {}, zlib.compress(_to_json(index), 9))
        _write_all(self.file, chunk + END.pack(self._end, MAGIC))
        os.fsync(self.file.fileno())

    def _describe(self, sample: Sample) -> tuple[dict[str, Any], dict[str, int], dict[tuple[int, ...], int]]:
        """The labels of a sample, and the names and sets that it is the first to need."""
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
        labels: dict[str, Any] = {
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
        labels |= {"names": list(names), "sets": [list(each) for each in sets]}
        return labels, names, sets

    def _add(self, entry: dict[str, Any], names: dict[str, int], sets: dict[tuple[int, ...], int]) -> None:
        self.entries.append(entry)
        self.names |= names
        self.sets |= sets
        self._end = entry["offset"] + entry["length"]


class _Encoded(NamedTuple):
    image: dict[str, Any]
    """Size, codec and digest of the image, and how many bytes of the payload are pixels; the rest is flags."""
    payload: bytes


def _encode(sample: Sample) -> _Encoded:
    """A sample's image at working size. One in which nothing counts is refused."""
    import imagecodecs

    image = shrink(sample.read())
    if not image.counts.any():
        raise nothing_counts(image)
    pixels = np.rint(image.rgb * np.float32(65535)).astype(np.uint16)
    flags = _pack_flags(image)
    # The fastest effort decodes twice as fast as the next, and is 4 % larger.
    coded = bytes(imagecodecs.jpegxl_encode(pixels, lossless=True, effort=1, numthreads=1))
    height, width = pixels.shape[:2]
    content = hashlib.sha256(f"{height} {width} ".encode() + pixels.astype("<u2").tobytes() + flags).hexdigest()
    described = {"height": height, "width": width, "codec": CODEC, "pixels": len(coded), "content": content}
    return _Encoded(described, coded + (zlib.compress(flags, 9) if flags else b""))


def _pack_flags(image: LinearImage) -> bytes:
    """Masked and clipped pixels, a bit each; nothing where there are none."""
    if image.mask.all() and not image.clipped.any():
        return b""
    return np.packbits(np.stack([~image.mask, image.clipped])).tobytes()


def _lock(file: BinaryIO, part: Path) -> None:
    """Refuse to write where another process does. Only where the system has such locks."""
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise WriteError(f"{part}: another packing is writing to it; wait for it or choose another name") from None


def _read_chunk(file: BinaryIO, position: int) -> bytes | None:
    """The bytes of the chunk at a place of a file, or nothing where it is not whole."""
    size = file.seek(0, os.SEEK_END)
    file.seek(position)
    prefix = file.read(CHUNK.size)
    if len(prefix) < CHUNK.size:
        return None
    _, head, payload = CHUNK.unpack(prefix)
    length = CHUNK.size + head + payload + CRC.size
    if position + length > size:
        return None
    file.seek(position)
    data = b""
    while len(data) < length and (more := file.read(length - len(data))):  # an unbuffered file may give less
        data += more
    return data


def _make_chunk(kind: bytes, head: dict[str, Any], payload: bytes) -> bytes:
    described = _to_json(head)
    chunk = CHUNK.pack(kind, len(described), len(payload)) + described + payload
    return chunk + CRC.pack(zlib.crc32(chunk))


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Write to an unbuffered file, which may take less at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _without_place(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in ("offset", "length")}


def _to_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
