"""TIFF files: their directories of tags, and pixels of linear RGB.

Everything is checked against the size of the file before it is read, so that no file, whatever its tags claim, makes
the reader allocate or work more than its own size warrants.
"""

from __future__ import annotations

import itertools
import logging
import math
import struct
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.errors import ImageError, ReadError

MAX_ENTRIES = 4096
MAX_VALUES = 100_000
"""More tags in a directory, or values in a tag, than any photograph has."""

KINDS = {1: "B", 3: "H", 4: "I", 5: "II", 6: "b", 8: "h", 9: "i", 10: "ii", 11: "f", 12: "d", 13: "I", 16: "Q", 18: "Q"}
"""How a number of each TIFF type is stored, in the letters of `struct`."""
TEXT, OPAQUE = 2, 7

# Tags.
NEW_SUBFILE_TYPE, WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER = 254, 256, 257, 258, 259, 262, 266
STRIP_OFFSETS, SAMPLES, ROWS_PER_STRIP, STRIP_LENGTHS, PLANAR, TRANSFER_FUNCTION = 273, 277, 278, 279, 284, 301
PREDICTOR, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_LENGTHS, SAMPLE_FORMAT = 317, 322, 323, 324, 325, 339
ICC_PROFILE = 34675

# Values of PHOTOMETRIC.
BLACK_IS_ZERO, RGB, COLOR_FILTER_ARRAY, LINEAR_RAW = 1, 2, 32803, 34892

# Values of COMPRESSION.
COMPRESSIONS = UNCOMPRESSED, LZW, DEFLATE, PACK_BITS, OLD_DEFLATE = 1, 5, 8, 32773, 32946

TYPES: dict[tuple[float, ...], str] = {(1, 8): "u1", (1, 16): "u2", (3, 16): "f2", (3, 32): "f4", (3, 64): "f8"}
"""Sample format (1 is unsigned, 3 is floating-point) and bits to a type of NumPy."""

DAMAGED = "the file is damaged or incomplete: {}; copy or export it again"


QUIET = logging.NullHandler()


def load_imagecodecs() -> Any:
    """imagecodecs, with the messages of libpng and others kept off the terminal."""
    import imagecodecs

    logging.getLogger(imagecodecs.__name__).addHandler(QUIET)  # added once, however often this is called
    return imagecodecs


class Tag(NamedTuple):
    kind: int
    length: int
    """How many values of that kind."""
    place: int
    """Where in the file its values are."""
    size: int
    """In bytes."""


Directory = dict[int, Tag]


@dataclass(frozen=True)
class Tiff:
    """The structure of a TIFF file, or of one of its relatives among raw files."""

    file: BinaryIO
    size: int
    order: str
    """`<` or `>`, as in `struct`."""
    is_big: bool
    first: Directory

    @classmethod
    def open(cls, file: BinaryIO) -> Tiff:
        """Read the header and the first directory of a file. Damage raises ReadError."""
        size = file.seek(0, 2)
        file.seek(0)
        start = file.read(16).ljust(16, b"\0")
        order = "<" if start[:2] == b"II" else ">"
        is_big = start[:4] in (b"II+\0", b"MM\0+")
        (place,) = struct.unpack(f"{order}Q", start[8:]) if is_big else struct.unpack(f"{order}I", start[4:8])
        empty = cls(file, size, order, is_big, {})
        return cls(file, size, order, is_big, empty.directory(place))

    def directory(self, place: int) -> Directory:
        """The tags of a directory. If a tag appears twice, the first counts."""
        head, entry = ("Q", "HHQ8s") if self.is_big else ("H", "HHI4s")
        (count,) = struct.unpack(self.order + head, self.read(place, struct.calcsize("=" + head)))
        if not 0 < count <= MAX_ENTRIES:
            raise ReadError(DAMAGED.format(f"a directory of {count} tags"))
        step, start = struct.calcsize("=" + entry), place + struct.calcsize("=" + head)
        data = self.read(start, count * step)
        found: Directory = {}
        for index, (code, kind, values, inline) in enumerate(struct.iter_unpack(self.order + entry, data)):
            size = values * (1 if kind in (TEXT, OPAQUE) else struct.calcsize("=" + KINDS.get(kind, "")))
            if size <= len(inline):
                where = start + (index + 1) * step - len(inline)
            else:
                (where,) = struct.unpack(self.order + ("Q" if self.is_big else "I"), inline)
            found.setdefault(code, Tag(kind, values, where, size))
        return found

    def read(self, place: int, size: int) -> bytes:
        if place < 0 or place + size > self.size:
            raise ReadError(DAMAGED.format("it ends before its data does"))
        self.file.seek(place)
        data = self.file.read(size)
        if len(data) < size:
            raise ReadError(DAMAGED.format("it became shorter while it was read"))
        return data

    def numbers(self, tag: Tag | None) -> tuple[float, ...]:
        """The values of a tag; none where it is missing or holds no numbers. Rationals are divided, x/0 is NaN."""
        letters = KINDS.get(tag.kind) if tag else None
        if tag is None or letters is None:
            return ()
        if tag.length > MAX_VALUES:
            raise ReadError(DAMAGED.format(f"a tag of {tag.length} values"))
        values = struct.unpack(self.order + letters * tag.length, self.read(tag.place, tag.size))
        if len(letters) == 2:
            return tuple(top / bottom if bottom else math.nan for top, bottom in zip(*[iter(values)] * 2, strict=True))
        return values

    def integers(self, tag: Tag | None) -> tuple[int, ...]:
        """The same for a tag that holds whole numbers."""
        return tuple(value for value in self.numbers(tag) if isinstance(value, int))

    def intact_integers(self, tag: Tag | None) -> tuple[int, ...]:
        """The same; none where the tag is damaged."""
        try:
            return self.integers(tag)
        except ReadError:
            return ()

    def integer(self, code: int, default: int) -> int:
        """The first whole number of a tag of the first directory."""
        return next(iter(self.integers(self.first.get(code))), default)

    def data(self, tag: Tag, most: int) -> bytes:
        """The bytes of a tag, up to `most`."""
        return self.read(tag.place, min(tag.size, most))


class Picture(NamedTuple):
    """How the first directory of a file says that its pixels are stored. Nothing is read yet."""

    height: int
    width: int
    samples: int
    dtype: np.dtype[Any]
    compression: int
    predictor: int
    separate: bool  # one plane after the other
    tiled: bool
    part: tuple[int, int]  # height and width of a strip or tile
    offsets: tuple[int, ...]
    lengths: tuple[int, ...]


def find_picture(tiff: Tiff) -> Picture:
    """The picture of a TIFF, checked for whether it can be read and fits into its file."""
    first = tiff.first
    height, width = tiff.integer(HEIGHT, 0), tiff.integer(WIDTH, 0)
    samples, planar = tiff.integer(SAMPLES, 1), tiff.integer(PLANAR, 1)
    if min(height, width) < 1:
        raise ReadError(DAMAGED.format("it has no size"))
    if samples != 3:
        raise ImageError(f"an image needs linear RGB of shape (height, width, 3); this one has {samples} channels")
    described = {*itertools.product(*(set(tiff.numbers(first.get(code))) or {1} for code in (SAMPLE_FORMAT, BITS)))}
    name = TYPES.get(described.pop()) if len(described) == 1 else None
    if name is None:
        raise ReadError("samples must be 8- or 16-bit numbers, or floating-point; export it as a 16-bit TIFF")
    if tiff.integer(PHOTOMETRIC, RGB) not in (BLACK_IS_ZERO, RGB, LINEAR_RAW):
        raise ReadError("its colors are not RGB; export it as a linear 16-bit RGB TIFF")
    compression = tiff.integer(COMPRESSION, 1)
    if compression not in COMPRESSIONS or tiff.integer(FILL_ORDER, 1) != 1:
        raise ReadError(f"its compression (number {compression}) is not supported; export it without compression")
    tiled = TILE_OFFSETS in first
    if tiled:
        part = tiff.integer(TILE_HEIGHT, 0), tiff.integer(TILE_WIDTH, 0)
        codes = TILE_OFFSETS, TILE_LENGTHS
    else:
        part = min(tiff.integer(ROWS_PER_STRIP, height), height), width
        codes = STRIP_OFFSETS, STRIP_LENGTHS
    offsets, lengths = (tiff.integers(first.get(code)) for code in codes)
    planes = samples if planar == 2 else 1
    if min(part) < 1 or len(offsets) != len(lengths) or len(offsets) != planes * math.prod(_tiles(height, width, part)):
        raise ReadError(DAMAGED.format("the list of its parts is wrong"))
    if sum(lengths) > tiff.size or min(lengths) < 0:
        raise ReadError(DAMAGED.format("its parts are larger than the file"))
    dtype = np.dtype(tiff.order + name)
    predictor = tiff.integer(PREDICTOR, 1)
    return Picture(height, width, samples, dtype, compression, predictor, planar == 2, tiled, part, offsets, lengths)


def read_pixels(tiff: Tiff, picture: Picture) -> NDArray[Any]:
    """(height, width, samples), a strip or tile at a time."""
    high, wide = picture.part
    samples = 1 if picture.separate else picture.samples
    size = high * wide * samples * picture.dtype.itemsize
    if size > max(2 * picture.height * picture.width * samples * picture.dtype.itemsize, 1 << 24):
        raise ReadError(DAMAGED.format("its tiles are much larger than the picture"))
    pixels = np.empty((picture.height, picture.width, picture.samples), picture.dtype.newbyteorder("="))
    rows, columns = _tiles(picture.height, picture.width, picture.part)
    for index, (offset, length) in enumerate(zip(picture.offsets, picture.lengths, strict=True)):
        plane, place = divmod(index, rows * columns)
        top, left = place // columns * high, place % columns * wide
        tall = high if picture.tiled else min(high, picture.height - top)  # tiles are whole, the last strip is not
        stored = tiff.read(offset, length)
        try:
            data = _decompress(picture.compression, stored, tall * wide * samples * picture.dtype.itemsize)
        except Exception as error:  # whatever a decompressor raises on damaged bytes
            raise ReadError(DAMAGED.format(str(error) or type(error).__name__)) from error
        part = _undo_predictor(data, tall, wide, samples, picture)
        if part.shape == pixels.shape:
            return part
        target = pixels[top : top + tall, left : left + wide, plane : plane + samples]
        target[:] = part[: target.shape[0], : target.shape[1]]
    return pixels


def _tiles(height: int, width: int, part: tuple[int, int]) -> tuple[int, int]:
    return -(-height // max(part[0], 1)), -(-width // max(part[1], 1))


def _undo_predictor(data: bytes, height: int, width: int, samples: int, picture: Picture) -> NDArray[Any]:
    """(height, width, samples) of the bytes of a part, in which rows may be stored as differences."""
    dtype = picture.dtype
    if len(data) < height * width * samples * dtype.itemsize:
        raise ReadError(DAMAGED.format("a part of its pixels is missing"))
    flat = np.frombuffer(data, np.uint8, height * width * samples * dtype.itemsize)
    if picture.predictor == 3 and dtype.kind == "f":
        # The bytes of a row's numbers, most significant first, each kind together; then differences (Adobe, 2005).
        sums = np.add.accumulate(flat.reshape(height, -1, samples), axis=1, dtype=np.uint8)
        planes = sums.reshape(height, dtype.itemsize, width * samples).swapaxes(1, 2)
        return np.ascontiguousarray(planes).view(dtype.newbyteorder(">")).reshape(height, width, samples)
    pixels = flat.view(dtype).reshape(height, width, samples)
    if picture.predictor == 1:
        return pixels
    if picture.predictor != 2:
        raise ReadError(f"its predictor (number {picture.predictor}) is not supported; export it without compression")
    whole = np.dtype(f"u{dtype.itemsize}")
    differences = pixels.view(whole.newbyteorder(picture.dtype.byteorder)).astype(whole)
    return np.add.accumulate(differences, axis=1, dtype=whole).view(dtype.newbyteorder("="))


def _decompress(compression: int, data: bytes, size: int) -> bytes:
    """Decompress stored bytes, to at most `size`."""
    if compression == UNCOMPRESSED:
        return data
    if compression in (DEFLATE, OLD_DEFLATE):
        return zlib.decompressobj().decompress(data, size)
    imagecodecs = load_imagecodecs()
    return bytes((imagecodecs.lzw_decode if compression == LZW else imagecodecs.packbits_decode)(data, out=size))
