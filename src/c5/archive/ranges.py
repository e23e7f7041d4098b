"""A copy of an object that reads like the photograph, without the bytes that nobody looks at.

A DNG holds previews, often a third of the file, which LibRaw skips: the copy has holes there, which read as zeros and
take no room. In other formats, what LibRaw needs may be anywhere, so these are fetched whole.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path

from c5.errors import ReadError
from c5.io.raw import find_previews
from c5.io.readers import MAX_BYTES
from c5.io.versions import digest_ranges

BLOCK = 1 << 16
"""At least this many bytes are fetched: a request takes as long as a few times as many bytes."""

Read = Callable[[int, int], bytes]
"""The bytes of an object from one place to another."""


class ChangedError(ReadError):
    """A file is no longer what it was when it was listed."""

    def __init__(self) -> None:
        super().__init__("it has changed or is gone since it was listed; run the same command again")

    def __reduce__(self) -> tuple[type[ChangedError], tuple[()]]:
        return type(self), ()


def fetch(copy: Path, size: int, read: Read) -> int:
    """Write the copy of an object of `size` bytes. Returns how many of them were fetched."""
    if size > MAX_BYTES:
        raise ReadError(f"{size / 1e9:.1f} GB are more than a photograph has; leave it out")
    with copy.open("xb+", buffering=0) as file:
        file.truncate(size)
        partial = _Partial(file, size, read)
        holes = find_previews(io.BufferedReader(partial, BLOCK)) if size > 4 * BLOCK else []
        wanted = set(range(partial.blocks)) - {block for hole in holes for block in _inside(*hole)}
        wanted |= {block for start, end in digest_ranges(size) for block in range(start // BLOCK, -(-end // BLOCK))}
        partial.fill(wanted)
        return partial.fetched


def _inside(start: int, end: int) -> Iterable[int]:
    """The blocks that lie in a hole, but for its first: a decoder may look at how a preview begins."""
    return range(start // BLOCK + 1, end // BLOCK)


class _Partial(io.RawIOBase):
    """An object whose blocks are fetched when they are first read."""

    def __init__(self, file: io.FileIO, size: int, read: Read) -> None:
        self._file, self._size, self._read = file, size, read
        self._here: set[int] = set()
        self._place = 0
        self.blocks = -(-size // BLOCK)
        self.fetched = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        end = min(self._place + len(buffer), self._size)
        if end <= self._place:
            return 0
        self.fill(set(range(self._place // BLOCK, -(-end // BLOCK))))
        self._file.seek(self._place)
        count = self._file.readinto(memoryview(buffer)[: end - self._place])
        self._place += count
        return count

    def fill(self, wanted: set[int]) -> None:
        """Fetch the blocks that are not there yet, neighbors in one request."""
        missing = sorted(wanted - self._here)
        while missing:
            count = 1
            while count < len(missing) and missing[count] == missing[0] + count:
                count += 1
            start, end = missing[0] * BLOCK, min((missing[0] + count) * BLOCK, self._size)
            data = self._read(start, end)
            if len(data) != end - start:
                raise ChangedError
            self._file.seek(start)
            self._file.write(data)
            self._here.update(missing[:count])
            self.fetched += len(data)
            del missing[:count]
