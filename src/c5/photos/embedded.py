"""The small JPEG that cameras put into their raw files: available at once, in the camera's own colors."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from c5.errors import ReadError
from c5.io.raw import CR3_START, RAF_START, SUB_IFDS
from c5.io.readers import naming, opening
from c5.io.tiff import (
    COLOR_FILTER_ARRAY,
    COMPRESSION,
    LINEAR_RAW,
    PHOTOMETRIC,
    STRIP_LENGTHS,
    STRIP_OFFSETS,
    Directory,
    Tiff,
)
from c5.photos.picture import Pixels, turn

ORIENTATION, JPEG_START, JPEG_LENGTH, PANASONIC_JPEG = 274, 513, 514, 46
JPEG_COMPRESSIONS = (6, 7)
MOST_BYTES, MOST_PIXELS = 64 << 20, 200_000_000
MOST_DIRECTORIES = 16
CR3_HEAD = 1 << 18
"""Where the preview of a CR3 file begins: early, after its header."""


def read_embedded(path: str | Path, side: int) -> Pixels | None:
    """The smallest embedded picture that is not smaller than `side`, else the largest, reduced to that and upright.

    None if the file holds no picture that can be read: LibRaw knows many formats. The raw data is not decoded.
    """
    from PIL import Image, ImageOps

    path = Path(path)
    found: list[tuple[int, bytes, int]] = []
    with naming(path), opening(path) as file:
        for data, orientation in _find(file):
            with suppress(OSError, ValueError, SyntaxError), Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
                if picture.width * picture.height <= MOST_PIXELS:
                    found.append((max(picture.size), data, orientation))
    if not found:
        return None
    large = [each for each in found if each[0] >= side]
    _, data, orientation = min(large) if large else max(found)
    try:
        with Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
            picture.draft("RGB", (side, side))
            upright = picture if orientation else ImageOps.exif_transpose(picture)
            upright.thumbnail((side, side))
            pixels = np.asarray(upright.convert("RGB"))
    except (OSError, ValueError, SyntaxError):  # damaged
        return None
    return turn(pixels, orientation or 1)


def _find(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Possible JPEG files, each with the orientation given by the raw file; 0 if the JPEG gives it itself."""
    start = file.read(100)
    if start.startswith(RAF_START):
        place, size = struct.unpack(">II", start[84:92])
        yield _read(file, place, size), 0
    elif start[4:12] == CR3_START:
        head = start + file.read(CR3_HEAD)
        place = head.find(b"\xff\xd8\xff", max(head.find(b"PRVW"), 0))
        if place > 4:
            yield _read(file, place, *struct.unpack(">I", head[place - 4 : place])), 0
    elif start[:2] in (b"II", b"MM"):
        with suppress(ReadError):
            tiff = Tiff.open(file)
            orientation = next(iter(tiff.intact_integers(tiff.first.get(ORIENTATION))), 1)
            for directory in _directories(tiff):
                with suppress(ReadError):
                    yield from ((_read(file, *where), orientation) for where in _places(tiff, directory))


def _directories(tiff: Tiff) -> Iterator[Directory]:
    """The first directory, those below it, and the one that follows."""
    yield tiff.first
    below = [*tiff.intact_integers(tiff.first.get(SUB_IFDS))][:MOST_DIRECTORIES]
    with suppress(ReadError, struct.error):
        order = tiff.order
        (first,) = struct.unpack(f"{order}I", tiff.read(4, 4))
        (count,) = struct.unpack(f"{order}H", tiff.read(first, 2))
        (following,) = struct.unpack(f"{order}I", tiff.read(first + 2 + 12 * count, 4))
        below += [following] if following else []
    for place in below:
        with suppress(ReadError):
            yield tiff.directory(place)


def _places(tiff: Tiff, directory: Directory) -> Iterator[tuple[int, int]]:
    """Where the JPEG files of a directory begin, and how long they are."""
    tag = directory.get(PANASONIC_JPEG)
    if tag is not None:
        yield tag.place, tag.size
    starts, lengths = (tiff.intact_integers(directory.get(code)) for code in (JPEG_START, JPEG_LENGTH))
    yield from zip(starts[:1], lengths[:1], strict=False)
    is_sensor = {*tiff.intact_integers(directory.get(PHOTOMETRIC))} & {COLOR_FILTER_ARRAY, LINEAR_RAW}
    if {*tiff.intact_integers(directory.get(COMPRESSION))} & {*JPEG_COMPRESSIONS} and not is_sensor:
        starts, lengths = (tiff.intact_integers(directory.get(code)) for code in (STRIP_OFFSETS, STRIP_LENGTHS))
        if len(starts) == 1:
            yield from zip(starts, lengths, strict=False)


def _read(file: BinaryIO, place: int, size: int) -> bytes:
    if not 0 < size <= MOST_BYTES:
        return b""
    file.seek(place)
    return file.read(size)
