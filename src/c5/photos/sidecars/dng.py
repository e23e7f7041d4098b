"""The white balance inside a DNG file: its AsShotNeutral tag."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass

from numpy.typing import ArrayLike

from c5.color import as_illuminant
from c5.errors import ReadError

AS_SHOT_NEUTRAL, AS_SHOT_WHITE_XY, DNG_VERSION = 50728, 50729, 50706

RATIONAL = 5
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
"""Bytes of a value of each of TIFF's types."""

SUB_IFDS, EXIF_IFD, GPS_IFD = 330, 34665, 34853
STRIPS, TILES = (273, 279), (324, 325)
"""The tags of offsets and lengths."""

MAX_DIRECTORIES, MAX_ENTRIES, MAX_PARTS = 256, 4096, 100_000
"""More than any camera's file has; hostile ones could keep a reader busy for hours."""

# All decimals that a rational can have, and no reader's signed numbers overflow.
DENOMINATOR = 10**9


@dataclass(frozen=True, slots=True)
class Entry:
    """One tag of a directory."""

    tag: int
    kind: int
    count: int
    place: int
    """Where its values are in the file."""
    size: int
    raw: bytes
    """Its 12 bytes."""


@dataclass(frozen=True, slots=True)
class Directory:
    place: int
    entries: list[Entry]
    end: int


def replace_neutral(data: bytes, illuminant: ArrayLike) -> bytes:
    """A copy of a DNG file with another AsShotNeutral, and all image data where and as it was.

    The illuminant is in the file's own linear numbers, before any gain that AnalogBalance says was applied is undone:
    so the DNG specification wants the tag, and AnalogBalance itself stays. AsShotWhiteXY, which would contradict it, is
    removed. Settings of Adobe's programs inside the file still take precedence there.
    """
    tiff = _Tiff.open(data)
    first = tiff.directories[0]
    values = as_illuminant(illuminant)
    numbers = [part for each in values / values.max() for part in (round(float(each) * DENOMINATOR), DENOMINATOR)]
    packed = struct.pack(f"{tiff.order}6I", *numbers)
    old = [entry for entry in first.entries if entry.tag == AS_SHOT_NEUTRAL]
    has_xy = any(entry.tag == AS_SHOT_WHITE_XY for entry in first.entries)
    if len(old) == 1 and not has_xy and old[0].kind == RATIONAL and old[0].count == 3 and tiff.is_alone(old[0]):
        place = old[0].place
        return data[:place] + packed + data[place + len(packed) :]
    # A new first directory at the end of the file, and the header names it.
    end = len(data) + len(data) % 2
    new = struct.pack(f"{tiff.order}HHII", AS_SHOT_NEUTRAL, RATIONAL, 3, end)
    kept = [(each.tag, each.raw) for each in first.entries if each.tag not in (AS_SHOT_NEUTRAL, AS_SHOT_WHITE_XY)]
    entries = [raw for _, raw in sorted([*kept, (AS_SHOT_NEUTRAL, new)], key=lambda pair: pair[0])]
    place = end + len(packed)
    if place + 6 + 12 * len(entries) > 0xFFFFFFFF:
        raise ReadError("the DNG is too large to add a tag to: 4 GB are the limit of its format")
    directory = [struct.pack(f"{tiff.order}H", len(entries)), *entries, data[first.end - 4 : first.end]]
    header = data[:4] + struct.pack(f"{tiff.order}I", place)
    return b"".join([header, data[8:], b"\0" * (end - len(data)), packed, *directory])


@dataclass(frozen=True, slots=True)
class _Tiff:
    """The structure of a TIFF file, all of it inside the file."""

    data: bytes
    order: str
    directories: list[Directory]

    @classmethod
    def open(cls, data: bytes) -> _Tiff:
        order = {b"II*\0": "<", b"MM\0*": ">"}.get(data[:4])
        if order is None:
            raise ReadError("not a DNG: it does not begin as a TIFF file does")
        tiff = cls(data, order, [])
        tiff._walk()
        tags = {entry.tag for entry in tiff.directories[0].entries}
        if DNG_VERSION not in tags:
            raise ReadError("not a DNG: a TIFF file without DNGVersion; convert it to DNG first")
        return tiff

    def is_alone(self, entry: Entry) -> bool:
        """Whether the values of an entry serve nothing else: some writers store what is equal once."""
        start, end = entry.place, entry.place + entry.size
        taken = [(0, 8), *((each.place, each.end) for each in self.directories)]
        for directory in self.directories:
            taken += [(each.place, each.place + each.size) for each in directory.entries if each is not entry]
            taken += self._pixels(directory)
        return not any(low < end and start < high for low, high in taken)

    def _walk(self) -> None:
        """Read every directory, those of the raw image and of Exif data among them."""
        waiting = [self._number(4)]
        seen: set[int] = set()
        while waiting:
            place = waiting.pop(0)
            if place in seen or len(seen) >= MAX_DIRECTORIES:
                raise ReadError("the DNG is damaged: its directories have no end; copy it again from its source")
            seen.add(place)
            directory = self._read_directory(place)
            self.directories.append(directory)
            for entry in directory.entries:
                if entry.tag in (SUB_IFDS, EXIF_IFD, GPS_IFD) and entry.kind in (4, 13):
                    waiting += [number for number in self._numbers(entry) if number]
            for low, high in self._pixels(directory):
                self._check(low, high - low)
            following = self._number(directory.end - 4)
            waiting += [following] if following else []

    def _read_directory(self, place: int) -> Directory:
        count = self._unpack("H", self._bytes(place, 2))[0]
        if not 0 < count <= MAX_ENTRIES:
            raise ReadError("the DNG is damaged: a directory of no or too many tags; copy it again from its source")
        end = place + 2 + 12 * count + 4
        self._check(place, end - place)
        return Directory(place, [self._read_entry(place + 2 + 12 * index) for index in range(count)], end)

    def _read_entry(self, place: int) -> Entry:
        raw = self._bytes(place, 12)
        tag, kind, count = self._unpack("HHI", raw[:8])
        size = SIZES.get(kind, 0) * count
        where = place + 8 if size <= 4 else self._number(place + 8)
        self._check(where, size)
        return Entry(tag, kind, count, where, size, raw)

    def _pixels(self, directory: Directory) -> list[tuple[int, int]]:
        """Where the strips or tiles of an image begin and end."""
        entries = {entry.tag: entry for entry in directory.entries}
        found = []
        for offsets, lengths in (STRIPS, TILES):
            if offsets in entries and lengths in entries:
                pairs = itertools.zip_longest(
                    self._numbers(entries[offsets]), self._numbers(entries[lengths]), fillvalue=0
                )
                found += [(start, start + length) for start, length in pairs]
        return found

    def _numbers(self, entry: Entry) -> tuple[int, ...]:
        if entry.kind not in (3, 4, 13) or entry.count > MAX_PARTS:
            raise ReadError(f"the DNG is damaged: tag {entry.tag} holds no offsets; copy it again from its source")
        letter = "H" if entry.kind == 3 else "I"
        return self._unpack(f"{entry.count}{letter}", self._bytes(entry.place, entry.size))

    def _number(self, place: int) -> int:
        return self._unpack("I", self._bytes(place, 4))[0]

    def _unpack(self, layout: str, raw: bytes) -> tuple[int, ...]:
        return struct.unpack(self.order + layout, raw)

    def _bytes(self, place: int, size: int) -> bytes:
        self._check(place, size)
        return self.data[place : place + size]

    def _check(self, place: int, size: int) -> None:
        if place + size > len(self.data):
            raise ReadError("the DNG is damaged: it ends before its data does; copy it again from its source")
