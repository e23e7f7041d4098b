"""Image files to `LinearImage`. The kind of a file is told by its first bytes, never by its name."""

from __future__ import annotations

import io
import logging
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c5.color import WHITE_LEVEL, Float32s
from c5.errors import ImageError, NotLinearError, ReadError
from c5.image import LinearImage, check_pixels

MAX_PIXELS = 300_000_000
"""Larger files are refused before they are decoded: a damaged or hostile header can ask for any size."""

# What the decoding libraries were seen to raise on damaged files.
DECODER_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)


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
    the file's type by default. Files of 8 bits, JPEG among them, are gamma-encoded and refused; with `assume_srgb` they
    are linearised as sRGB, which undoes the gamma but not the camera's rendering, so expect larger errors.
    """
    path = Path(path)
    pixels, is_array = _decode(path)
    try:
        pixels = check_pixels(pixels)
        if pixels.dtype == np.uint8 and not is_array:
            if not assume_srgb:
                raise NotLinearError(
                    f"{path}: 8-bit pixels are not linear; use the raw file or a 16-bit linear export, or give "
                    "--assume-srgb (assume_srgb=True) to linearise them as sRGB"
                )
            return LinearImage(_linearise_srgb(pixels), camera=camera, source=str(path))
        if assume_srgb:
            raise NotLinearError(f"{path}: --assume-srgb is for 8-bit files; this one holds {pixels.dtype}")
        return LinearImage(_scale(pixels, black, white), camera=camera, source=str(path))
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None


def _decode(path: Path) -> tuple[NDArray[Any], bool]:
    """The pixels of a file as they are stored, and whether it is a NumPy array, which says nothing of gamma."""
    try:
        with path.open("rb") as file:
            start = file.read(32)
    except FileNotFoundError:
        raise ReadError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise ReadError(f"{path}: is a folder; name the files in it, as in {path}/*") from None
    except OSError as error:
        raise ReadError(f"{path}: cannot be opened: {error.strerror}") from None
    if not start:
        raise ReadError(f"{path}: the file is empty; copy it again from its source")
    for magic, decode in DECODERS.items():
        if start.startswith(magic):
            try:
                return decode(path), decode is _decode_npy
            except _TooLargeError as error:
                raise ReadError(f"{path}: {error}; reduce it first") from None
            except DECODER_ERRORS as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise ReadError(f"{path}: damaged or unsupported: {reason}; export it again") from error
    raise ReadError(f"{path}: not an image that can be read; give a 16-bit PNG or TIFF, or an .npy array")


def _decode_png(path: Path) -> NDArray[Any]:
    import imagecodecs

    data = path.read_bytes()
    if len(data) < 24:
        raise ValueError("the file ends inside its header")
    _check_size(*struct.unpack(">II", data[16:24]))
    return np.asarray(imagecodecs.png_decode(data))


def _decode_tiff(path: Path) -> NDArray[Any]:
    import tifffile

    # Every damaged tag would be logged; the error that is raised says it once.
    tifffile.logger().setLevel(logging.CRITICAL)
    with tifffile.TiffFile(path) as tiff:
        page = tiff.pages.first
        _check_size(page.imagewidth, page.imagelength)
        pixels = page.asarray()
        if page.planarconfig == tifffile.PLANARCONFIG.SEPARATE and pixels.ndim == 3:
            pixels = np.moveaxis(pixels, 0, -1)
        return np.asarray(pixels)


def _decode_npy(path: Path) -> NDArray[Any]:
    array = np.load(path, allow_pickle=False, mmap_mode="r")
    if array.ndim >= 2:
        _check_size(*array.shape[:2])
    return np.array(array)


def _decode_jpeg(path: Path) -> NDArray[Any]:
    from PIL import Image

    with Image.open(io.BytesIO(path.read_bytes())) as jpeg:
        _check_size(*jpeg.size)
        return np.asarray(jpeg)


DECODERS: dict[bytes, Callable[[Path], NDArray[Any]]] = {
    b"\x89PNG\r\n\x1a\n": _decode_png,
    b"II*\0": _decode_tiff,
    b"MM\0*": _decode_tiff,
    b"II+\0": _decode_tiff,
    b"MM\0+": _decode_tiff,
    b"\x93NUMPY": _decode_npy,
    b"\xff\xd8\xff": _decode_jpeg,
}


class _TooLargeError(ValueError):
    pass


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise _TooLargeError(f"{width}x{height} is more than {MAX_PIXELS // 1_000_000} megapixels")


def _scale(pixels: NDArray[Any], black: float, white: float | None) -> NDArray[Any]:
    """Black to 0, white to 1, what is beyond cut off."""
    if black == 0 and white is None:
        return pixels
    white = float(WHITE_LEVEL.get(pixels.dtype, 1)) if white is None else white
    if not 0 <= black < white:
        raise ImageError(f"the black level {black:g} must lie between 0 and the white level {white:g}")
    scaled = (pixels.astype(np.float32) - np.float32(black)) / np.float32(white - black)
    return np.asarray(np.clip(scaled, 0, 1))


def _linearise_srgb(pixels: NDArray[Any]) -> Float32s:
    """IEC 61966-2-1: 8-bit sRGB to linear light in [0, 1]."""
    encoded = np.arange(256) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return np.take(linear.astype(np.float32), pixels)
