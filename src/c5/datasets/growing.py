"""Arrays that grow: in memory while they are small, beyond that in a mapped file, of which only the parts in use are in
memory."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from c5.errors import WriteError
from c5.io.files import cache_folder

MOST_BYTES = 2**32
"""Up to this size, an array stays in memory."""


class Growing:
    """Bytes that are added one after the other and become an array in the end."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._file: BinaryIO | None = None
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        with writing_unpacked():
            if self._file is None and self.size > MOST_BYTES:
                self._file = open_unpacked()
                self._file.write(self._memory)
                self._memory = bytearray()
            if self._file is None:
                self._memory += data
            else:
                self._file.write(data)

    def array(self, dtype: DTypeLike) -> NDArray[Any]:
        """All of it."""
        if self._file is None:
            return np.frombuffer(self._memory, dtype)
        with writing_unpacked():
            self._file.flush()
        return np.frombuffer(mmap.mmap(self._file.fileno(), 0), dtype)


def open_unpacked() -> BinaryIO:
    """A file for arrays. It has no name, so it is gone when nobody maps it any more, however the processes end."""
    folder = cache_folder() / "unpacked"  # not where temporary files are: that may be memory
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=folder)


def map_unpacked(path: str) -> memoryview:
    """The file of another process, by the path under which the system shows it."""
    with open(path, "r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0))


@contextmanager
def writing_unpacked() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise WriteError(f"{cache_folder()}: a set cannot be unpacked there: {reason}; make room") from None
