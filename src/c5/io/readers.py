"""Image files to `LinearImage`. The kind of a file is recognized by its first bytes, never by its name.

Sizes are checked before anything of that size is allocated. What a decoding library raises about the bytes of a file
becomes a ReadError; only the calls into such libraries are guarded, so that a bug of ours shows as what it is.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.color import WHITE_LEVEL, Float32s, check_type
from c5.errors import C5Error, ImageError, NotLinearError, ReadError
from c5.image import LinearImage, check_pixels
from c5.io.encoding import (
    MAX_PROFILE_BYTES,
    Encoding,
    Told,
    judge_gamma,
    judge_profile,
    judge_table,
    linearize_srgb,
)
from c5.io.tiff import BITS, ICC_PROFILE, TRANSFER_FUNCTION, Tiff, find_picture, load_imagecodecs, read_pixels
from c5.regular import open_regular
from c5.words import first_line

MAX_PIXELS = 300_000_000
MAX_BYTES = 2_000_000_000
"""Larger images and files are refused: a damaged or hostile header can ask for any size."""

MAX_EXPANSION = 128
"""No photograph compresses better than this."""
SMALL_BYTES = 64_000_000
"""An image may always be this large, however well it compresses."""

MAX_JPEG_SCANS = 100
MAX_PNG_CHUNKS = 100_000
MAX_NPY_HEADER = 1 << 14

NPY_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@contextmanager
def decoding(remedy: str = "export it again") -> Iterator[None]:
    """Turn what a decoding library raises into a ReadError. Put nothing inside but calls to the library."""
    try:
        yield
    except Exception as error:
        raise ReadError(f"damaged or unsupported: {first_line(error)}; {remedy}") from error


def read_image(
    path: str | Path,
    *,
    black: float = 0,
    white: float | None = None,
    camera: str | None = None,
    assume_srgb: bool = False,
) -> LinearImage:
    """Read linear camera RGB: a 16-bit PNG or TIFF, or an .npy array (uint8, uint16, or float in [0, 1]).

    `black` and `white` are the levels that become 0 and 1, in the numbers of the file; white is the largest number of
    the file's type by default. Files that are gamma-encoded are refused: JPEG and everything else of 8 bits, and files
    whose ICC profile or gamma says so. With `assume_srgb`, sRGB is linearized, which undoes the gamma but not the
    camera's rendering, so expect larger errors. Files of 8 bits are then taken as sRGB unless they say otherwise,
    others only if they say that they are.
    """
    path = Path(path)
    with naming(path):
        pixels = read_levels(path, black=black, white=white, assume_srgb=assume_srgb)
        return LinearImage(pixels, camera=camera, source=str(path))


def read_levels(path: Path, *, black: float, white: float | None, assume_srgb: bool) -> NDArray[Any]:
    """The pixels of `read_image`, as they are stored where no levels are given. Errors do not name the file."""
    pixels, told, is_array = _decode(path)
    pixels = check_pixels(pixels)
    eight_bits = pixels.dtype == np.uint8 and not is_array
    if assume_srgb:
        if told and told.encoding is not Encoding.SRGB:
            raise NotLinearError(f"it has {told.name}, which is not sRGB; convert it, or use the raw file")
        if not eight_bits and not told:
            raise NotLinearError(
                f"it holds {pixels.dtype} and does not say that it is sRGB, as files of more than 8 bits must; read it "
                "without assume_srgb=True"
            )
        return _linearize(pixels)
    if eight_bits:
        raise NotLinearError(
            "8-bit pixels are not linear; use the raw file or a 16-bit linear export, or linearize them as sRGB "
            "(assume_srgb=True)"
        )
    if told and told.encoding is not Encoding.LINEAR:
        srgb = ", or linearize it (assume_srgb=True)" if told.encoding is Encoding.SRGB else ""
        raise NotLinearError(f"it is not linear, by {told.name}; use the raw file or a linear export{srgb}")
    return _scale(pixels, black, white)


def read_mask(path: Path) -> NDArray[np.bool_]:
    """(height, width) of a PNG, a TIFF or an .npy array: True where it is not 0."""
    with naming(path):
        pixels = _decode(path).pixels
        if pixels.ndim not in (2, 3):
            raise ImageError(f"a mask needs the shape (height, width), not {pixels.shape}")
        return np.asarray((pixels if pixels.ndim == 2 else pixels[..., :3].any(axis=-1)) != 0)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of the file at the start of the library's errors."""
    try:
        yield
    except C5Error as error:
        raise type(error)(f"{path}: {error}") from error.__cause__


@contextmanager
def opening(path: Path) -> Iterator[BinaryIO]:
    """An open file; ReadError, without its name, if it cannot be opened or read."""
    try:
        file = open_regular(path)
    except FileNotFoundError:
        raise ReadError("no such file; check the path") from None
    except IsADirectoryError:
        raise ReadError(f"is a folder; name the files in it, as in {path}/*") from None
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise ReadError(f"cannot be opened: {getattr(error, 'strerror', None) or error}") from None
    with file:
        try:
            yield file
        except OSError as error:
            raise ReadError(f"cannot be read: {error.strerror or error}; check the disk") from error


class _Decoded(NamedTuple):
    pixels: NDArray[Any]
    told: Told | None = None
    """What the file says of its encoding."""
    is_array: bool = False
    """A NumPy array, whose 8 bits may well be linear."""


def _decode(path: Path) -> _Decoded:
    with opening(path) as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(32)
        file.seek(0)
        if not start:
            raise ReadError("the file is empty; copy it again from its source")
        if size > MAX_BYTES:
            raise ReadError(f"{size / 1e9:.1f} GB are more than an image has; reduce it first")
        for magic, decode in DECODERS.items():
            if start.startswith(magic):
                return decode(file, size)
    raise ReadError("not an image that can be read; give a 16-bit PNG or TIFF, or an .npy array")


def _decode_png(file: BinaryIO, size: int) -> _Decoded:
    data = file.read(size)
    if data[12:16] != b"IHDR" or len(data) < 33:
        raise ReadError("damaged or incomplete: it has no header; copy or export it again")
    width, height, bits = struct.unpack(">IIB", data[16:25])
    _check_size(height, width, 4 * max(bits // 8, 1), size)
    kept, said = [data[:8]], dict[bytes, bytes]()
    for kind, chunk in _png_chunks(data):
        if kind in (b"IHDR", b"PLTE", b"IDAT", b"IEND"):  # others cost the decoder memory and mean nothing to it
            kept.append(chunk)
        if kind in (b"cICP", b"iCCP", b"sRGB", b"gAMA"):
            said.setdefault(kind, chunk[8:-4])
    with decoding():
        pixels = load_imagecodecs().png_decode(b"".join(kept))
    return _Decoded(np.asarray(pixels), _judge_png(said))


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and bytes of each chunk, its length and checksum included."""
    place = 8
    for _ in range(MAX_PNG_CHUNKS):
        end = place + 12 + int.from_bytes(data[place : place + 4], "big")
        if end > len(data):
            raise ReadError("damaged or incomplete: it ends before its data does; copy or export it again")
        kind = data[place + 4 : place + 8]
        yield kind, data[place:end]
        if kind == b"IEND":
            return
        place = end
    raise ReadError("damaged: it has too many parts; export it again")


def _judge_png(said: dict[bytes, bytes]) -> Told | None:
    """What the chunks of a PNG say of its encoding, the most precise first, as the PNG specification requires."""
    if len(said.get(b"cICP", b"")) == 4:
        primaries, transfer = said[b"cICP"][:2]  # ITU-T H.273
        srgb = Encoding.SRGB if (primaries, transfer) == (1, 13) else Encoding.OTHER
        return Told(Encoding.LINEAR if transfer == 8 else srgb, f"transfer characteristics {transfer}")
    if b"iCCP" in said:
        packed = said[b"iCCP"].partition(b"\0")[2][1:]
        try:
            profile = zlib.decompressobj().decompress(packed, MAX_PROFILE_BYTES)
        except zlib.error:
            profile = b""
        return judge_profile(profile)
    if b"sRGB" in said:
        return Told(Encoding.SRGB, "its sRGB mark")
    if len(said.get(b"gAMA", b"")) == 4:
        return judge_gamma(int.from_bytes(said[b"gAMA"], "big"))
    return None


def _decode_tiff(file: BinaryIO, size: int) -> _Decoded:
    tiff = Tiff.open(file)
    picture = find_picture(tiff)
    _check_size(picture.height, picture.width, picture.samples * picture.dtype.itemsize, size)
    told = None
    if ICC_PROFILE in tiff.first:
        told = judge_profile(tiff.data(tiff.first[ICC_PROFILE], MAX_PROFILE_BYTES))
    elif TRANSFER_FUNCTION in tiff.first:
        table = tiff.data(tiff.first[TRANSFER_FUNCTION], 2 << tiff.integer(BITS, 8))  # of the first channel
        told = judge_table(np.frombuffer(table[: len(table) // 2 * 2], tiff.order + "u2"))
    return _Decoded(read_pixels(tiff, picture), told)


def read_npy_header(start: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order (whether by column) and type of an .npy file."""
    with decoding():
        version = np.lib.format.read_magic(start)
    if version not in NPY_HEADERS:
        raise ReadError("an .npy file of a version that cannot hold an image; save it again")
    with decoding():
        shape, by_column, dtype = NPY_HEADERS[version](start)
    if dtype.shape:  # each number of it an array
        raise ReadError("an array of arrays; save an array of numbers")
    return tuple(map(int, shape)), by_column, dtype  # some are True


def _decode_npy(file: BinaryIO, size: int) -> _Decoded:
    start = io.BytesIO(file.read(MAX_NPY_HEADER))
    shape, by_column, dtype = read_npy_header(start)
    if dtype.hasobject:
        raise ReadError("it holds Python objects, not pixels; save an array of numbers")
    check_type(np.empty(0, dtype))
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count * dtype.itemsize > size - start.tell():
        raise ReadError("damaged or incomplete: it ends before its data does; save it again")
    if len(shape) != 3:
        raise ImageError(f"an image needs linear RGB of shape (height, width, 3); this one has the shape {shape}")
    _check_size(*shape[:2], shape[2] * dtype.itemsize, size)
    file.seek(start.tell())
    with decoding():
        array = np.fromfile(file, dtype, count)
    return _Decoded(array.reshape(shape, order="F" if by_column else "C"), is_array=True)


def _decode_jpeg(file: BinaryIO, size: int) -> _Decoded:
    from PIL.JpegImagePlugin import JpegImageFile

    data = file.read(size)
    if data.count(b"\xff\xda") > MAX_JPEG_SCANS:  # each costs a pass over all pixels
        raise ReadError("damaged: it has too many scans; export it again")
    with decoding():
        jpeg = JpegImageFile(io.BytesIO(data))
        width, height = jpeg.size
    _check_size(height, width, 3, size)
    with decoding():
        pixels, profile = np.asarray(jpeg), jpeg.info.get("icc_profile")
    return _Decoded(pixels, judge_profile(profile[:MAX_PROFILE_BYTES]) if profile else None)


DECODERS: dict[bytes, Callable[[BinaryIO, int], _Decoded]] = {
    b"\x89PNG\r\n\x1a\n": _decode_png,
    b"II*\0": _decode_tiff,
    b"MM\0*": _decode_tiff,
    b"II+\0": _decode_tiff,
    b"MM\0+": _decode_tiff,
    b"\x93NUMPY": _decode_npy,
    b"\xff\xd8\xff": _decode_jpeg,
}


def _check_size(height: int, width: int, pixel_bytes: int, file_bytes: int) -> None:
    if height * width > MAX_PIXELS:
        raise ReadError(f"{width}x{height} is more than {MAX_PIXELS // 1_000_000} megapixels; reduce it first")
    if height * width * pixel_bytes > max(MAX_EXPANSION * file_bytes, SMALL_BYTES):
        raise ReadError(f"damaged: claims to hold {width}x{height} pixels in {file_bytes} bytes; export it again")


def _scale(pixels: NDArray[Any], black: float, white: float | None) -> NDArray[Any]:
    """Black to 0, white to 1, and what is beyond clipped."""
    if black == 0 and white is None:
        return pixels
    white = float(WHITE_LEVEL.get(pixels.dtype, 1)) if white is None else white
    if not 0 <= black < white:
        raise ImageError(f"the black level {black:g} must lie between 0 and the white level {white:g}")
    with np.errstate(over="ignore"):  # infinite pixels are refused later
        scaled = pixels.astype(np.float32)
    scaled -= np.float32(black)
    scaled /= np.float32(white - black)
    return np.clip(scaled, 0, 1, out=scaled)


def _linearize(pixels: NDArray[Any]) -> Float32s:
    """sRGB to linear light in [0, 1]."""
    if pixels.dtype.kind == "f":
        with np.errstate(all="ignore"):  # pixels that are not finite are refused later
            return linearize_srgb(pixels).astype(np.float32)
    table = linearize_srgb(np.linspace(0, 1, WHITE_LEVEL[pixels.dtype] + 1)).astype(np.float32)
    return np.take(table, pixels)
