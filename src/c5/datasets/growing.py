"""Arrays that grow: in memory while they are small, beyond that in a file that is mapped, of which memory holds what is
in use."""

from __future__ import annotations

import tempfile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from c5.io.files import cache_folder

MOST_BYTES = 2**32
"""So much of an array stays in memory."""


class Growing:
    """Bytes that are added one after the other, and become an array at last."""

    def __init__(self, most: int | None = None) -> None:
        self._most = MOST_BYTES if most is None else most
        self._memory = bytearray()
        self._file: BinaryIO | None = None
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        if self._file is None and self.size > self._most:
            folder = cache_folder() / "unpacked"  # not where temporary files are: that may be memory
            folder.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, it lives as long as the array
            self._file.write(self._memory)
            self._memory = bytearray()
        if self._file is None:
            self._memory += data
        else:
            self._file.write(data)

    def array(self, dtype: DTypeLike) -> NDArray[Any]:
        """All of it. The file has no name: it is gone with the array, however the process ends."""
        if self._file is None:
            return np.frombuffer(self._memory, dtype)
        self._file.flush()
        return np.memmap(self._file, dtype, mode="r+")
