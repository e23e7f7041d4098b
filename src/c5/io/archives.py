"""Zip archives and arrays within bounds: what they claim to hold is checked before any of it is allocated."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c5.errors import ReadError
from c5.io.readers import decoding, read_npy_header
from c5.regular import open_regular

MOST_PARTS = 64
REMEDY = "get or make it again"


def read_whole(path: str | Path, most: int) -> bytes:
    """The content of a regular file; OSError if it cannot be read, ReadError if it is larger than `most` bytes."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ReadError(f"larger than {most >> 20} MiB: too large for such a file; {REMEDY}")
    return data


def unpack(data: bytes, most: int) -> dict[str, bytes]:
    """The parts of a zip archive by their names, if together they are no larger than `most` bytes."""
    archive = open_archive(data, most)
    with decoding(REMEDY):
        return {part.filename: archive.read(part) for part in archive.infolist()}


def open_archive(data: bytes, most: int, parts: int = MOST_PARTS) -> zipfile.ZipFile:
    """A zip archive, if it unpacks to at most that many bytes and parts."""
    if data.count(b"PK\1\2") > parts:  # before a list is made of them
        raise ReadError(f"damaged: it has too many parts; {REMEDY}")
    with decoding(REMEDY):
        archive = zipfile.ZipFile(io.BytesIO(data))
    if sum(part.file_size for part in archive.infolist()) > most:
        raise ReadError(f"damaged: it would unpack to more than {most} bytes; {REMEDY}")
    if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in archive.infolist()):
        raise ReadError(f"damaged: it is compressed in a way that is not used here; {REMEDY}")
    return archive


def inflate(data: bytes, most: int) -> bytes:
    """The first `most` bytes of what zlib has compressed; a ReadError if it is damaged."""
    try:
        return zlib.decompressobj().decompress(data, most)
    except zlib.error as error:
        raise ReadError(str(error)) from None


def parse_part(parts: dict[str, bytes], name: str, kind: str = "f") -> NDArray[Any]:
    """An array that `np.savez` has written into an archive."""
    if f"{name}.npy" not in parts:
        raise ReadError(f"damaged: it has no {name}; {REMEDY}")
    return parse_array(parts[f"{name}.npy"], kind)


def parse_levels(parts: dict[str, bytes]) -> tuple[NDArray[Any], ...]:
    """The arrays level_0, level_1 ... of an archive that has one more part."""
    return tuple(parse_part(parts, f"level_{level}") for level in range(len(parts) - 1))


def parse_array(data: bytes, kind: str = "f") -> NDArray[Any]:
    """The array of an .npy file: floating-point numbers, or another kind by NumPy's letter for it."""
    file = io.BytesIO(data)
    shape, by_column, dtype = read_npy_header(file)
    if dtype.kind != kind or not dtype.itemsize or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ReadError(f"damaged: an array is not what it should be; {REMEDY}")
    with decoding(REMEDY):
        return np.frombuffer(data, dtype, offset=file.tell()).reshape(shape, order="F" if by_column else "C")
