"""The .c5data file: images at working size with their labels, compact and checksummed. docs/datasets.md specifies it.

Records stand one after the other, each whole in itself, so that a packing that was stopped goes on where it was. The
index at the end repeats their labels: opening a pack reads nothing else, and pixels are read when they are asked for.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from c5.color import Bools
from c5.datasets.sample import Capture, Found, Sample
from c5.errors import DataError, ReadError
from c5.image import LinearImage
from c5.io.readers import DECODER_ERRORS

NAME = "pack"
DESCRIPTION = "a .c5data pack"

MAGIC = b"\x89C5DATA\n"
VERSION = 1
CODEC = "jpegxl"

START = struct.Struct("<8sI")  # magic, version
CHUNK = struct.Struct("<4sII")  # kind, bytes of the head, bytes of the payload; then both, and the CRC-32 of all of it
CRC = struct.Struct("<I")
END = struct.Struct("<Q8s")  # where the index begins, magic
RECORD, INDEX = b"shot", b"indx"

UNPACKING_ERRORS = (*DECODER_ERRORS, zlib.error)


@dataclass(frozen=True, eq=False)
class PackedImage:
    """The pixels of one record of a pack."""

    path: Path
    name: str
    number: int
    """Counted from 1."""
    offset: int
    length: int
    content: str
    """The digest of the pixels and their flags."""

    def read(self) -> LinearImage:
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                data = file.read(self.length)
        except OSError as error:
            raise ReadError(f"{self.path}: cannot be read: {error.strerror}; check the path") from None
        try:
            head, payload = open_chunk(data, RECORD)
            if head["name"] != self.name or head["image"]["content"] != self.content:
                raise ValueError("another record is in its place")
            image = _decode(head["image"], payload)
        except UNPACKING_ERRORS as error:
            where = f"{self.path}: record {self.number} ({self.name})"
            raise DataError(f"{where} is damaged: {error}; copy or make the pack again") from error
        return LinearImage(*image, source=f"{self.path}: {self.name}")

    def digest(self) -> str:
        return self.content


def recognises(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read(path: Path) -> Found:
    """The samples of a pack, from its index. Each record is checked when its pixels are read."""
    try:
        with path.open("rb") as file:
            index = _read_index(path, file)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    try:
        sets = [frozenset(index["names"][number] for number in numbers) for numbers in index["sets"]]
        samples = [_as_sample(path, number, entry, sets) for number, entry in enumerate(index["samples"], 1)]
    except UNPACKING_ERRORS as error:
        raise DataError(f"{path}: its index is damaged: {error!r}; copy or make the pack again") from error
    return Found(samples, [])


def _decode(image: dict[str, Any], payload: bytes) -> tuple[NDArray[np.uint16], Bools, Bools]:
    """Pixels, mask and clipped flags of a record."""
    import imagecodecs

    if image["codec"] != CODEC:
        raise ValueError(f"its codec {image['codec']!r} is not known: run pip install --upgrade c5-awb")
    size = (image["height"], image["width"])
    pixels = np.asarray(imagecodecs.jpegxl_decode(payload[: image["pixels"]], numthreads=1))
    if pixels.shape != (*size, 3) or pixels.dtype != np.uint16:
        raise ValueError(f"its pixels are {pixels.dtype} {pixels.shape}")
    if len(payload) == image["pixels"]:
        return pixels, np.ones(size, np.bool_), np.zeros(size, np.bool_)
    bits = np.frombuffer(zlib.decompress(payload[image["pixels"] :]), np.uint8)
    masked, clipped = np.unpackbits(bits, count=2 * size[0] * size[1]).reshape(2, *size).astype(np.bool_)
    return pixels, ~masked, clipped


def _as_sample(path: Path, number: int, entry: dict[str, Any], sets: list[frozenset[str]]) -> Sample:
    capture = entry["capture"]
    return Sample(
        PackedImage(path, entry["name"], number, entry["offset"], entry["length"], entry["image"]["content"]),
        np.array(entry["illuminant"], dtype=np.float64),
        camera=entry["camera"],
        dataset=entry["dataset"],
        name=entry["name"],
        scene=entry["scene"],
        ccm=None if entry["ccm"] is None else np.array(entry["ccm"], dtype=np.float64),
        capture=None if capture is None else Capture(*capture),
        fold=entry["fold"],
        cameras=frozenset() if entry["cameras"] is None else sets[entry["cameras"]],
        sources=frozenset() if entry["sources"] is None else sets[entry["sources"]],
    )


def _read_index(path: Path, file: BinaryIO) -> dict[str, Any]:
    start = file.read(START.size)
    if not start.startswith(MAGIC):
        raise DataError(f"{path}: not a .c5data pack; give a pack, or the folder of a dataset")
    version = START.unpack(start)[1] if len(start) == START.size else 0
    if version > VERSION:
        raise DataError(
            f"{path}: made for a newer version of c5-awb, or damaged (format {version}, this one reads up to "
            f"{VERSION}); run pip install --upgrade c5-awb"
        )
    size = file.seek(0, os.SEEK_END)
    try:
        file.seek(max(0, size - END.size))
        offset, magic = END.unpack(file.read(END.size))
        if magic != MAGIC or version < VERSION or not START.size <= offset < size:
            raise ValueError("it does not end as a pack does")
        file.seek(offset)
        _, payload = open_chunk(file.read(size - END.size - offset), INDEX)
        index = json.loads(zlib.decompress(payload))
        return dict(index)
    except UNPACKING_ERRORS as error:
        remedy = "copy it again, or let the packing that began it finish"
        raise DataError(f"{path}: cut short or damaged: {error}; {remedy}") from error


def open_chunk(data: bytes, kind: bytes) -> tuple[dict[str, Any], bytes]:
    """The head and the payload of a chunk, if it is whole and of that kind."""
    if len(data) < CHUNK.size + CRC.size:
        raise ValueError("the file ends inside it")
    found, head, payload = CHUNK.unpack_from(data)
    if found != kind or len(data) != CHUNK.size + head + payload + CRC.size:
        raise ValueError("it does not begin as it should, or the file ends inside it")
    if zlib.crc32(memoryview(data)[: -CRC.size]) != CRC.unpack(data[-CRC.size :])[0]:
        raise ValueError("its checksum does not fit")
    start = CHUNK.size + head
    return json.loads(data[CHUNK.size : start]), data[start : -CRC.size]
