"""Which files have changed, and which are the same."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from c5.regular import open_regular

DIGEST_BYTES = 16
END_BYTES = 64 * 1024
INNER_BYTES = 16 * 1024
INNER_BLOCKS = 4
"""A digest covers both ends of a file and blocks evenly between them, or all of a file that is not much larger."""


class Version(NamedTuple):
    """What shows that a file has changed, without opening it."""

    size: int
    modified: int  # nanoseconds


def file_version(path: str | bytes | Path) -> Version | None:
    """A file's version, without opening it; None if there is no such file."""
    try:
        return version_of(os.stat(path))
    except OSError:
        return None


def digest_file(path: bytes) -> tuple[Version, bytes]:
    """A file's version and a digest of its content, which is the same wherever the file is.

    Six small blocks and the size tell photographs apart: no two have the same noise.
    """
    with open_regular(path) as file:
        version = version_of(os.fstat(file.fileno()))
        digest = hashlib.blake2b(version.size.to_bytes(8, "little"), digest_size=DIGEST_BYTES)
        for start, end in digest_ranges(version.size):
            file.seek(start)
            digest.update(file.read(end - start))
    return version, digest.digest()


def digest_content(path: Path) -> bytes:
    """The digest of a file's content, by which rolls are ordered; the name of one that cannot be read."""
    name = os.fsencode(path)
    try:
        return digest_file(name)[1] if path.is_file() else name  # reading it will tell what is wrong with it
    except OSError:
        return name


def digest_ranges(size: int) -> list[tuple[int, int]]:
    """The bytes of a file that its digest covers."""
    if size <= 2 * END_BYTES + INNER_BLOCKS * INNER_BYTES:
        return [(0, size)]
    inner = [size * (block + 1) // (INNER_BLOCKS + 1) for block in range(INNER_BLOCKS)]
    return [(0, END_BYTES), *((start, start + INNER_BYTES) for start in inner), (size - END_BYTES, size)]


def version_of(status: os.stat_result) -> Version:
    """The version of a file with this status."""
    return Version(status.st_size, status.st_mtime_ns)
