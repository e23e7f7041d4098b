"""Rendered photographs as raw files: the mosaic of a virtual camera in a DNG that any raw converter opens."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.color import as_illuminant
from c5.colorimetry.spectra import daylight
from c5.demo.camera import VirtualCamera
from c5.demo.photo import Photo
from c5.errors import ParameterError
from c5.io.files import write_file

XTRANS = "GGRGGBGGBGGRBRGRBGGGBGGRGGRGGBRBGBRG"
"""The 6 by 6 pattern of Fujifilm's sensors, row by row."""

STANDARD_A, D65 = 17, 21
"""What Exif calls the two lights of calibration."""

BYTE, ASCII, SHORT, LONG, RATIONAL, SRATIONAL = 1, 2, 3, 4, 5, 10

TILE = 256
DENOMINATOR = 1_000_000

Tag = tuple[int, int, int, Any, bool]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a DNG holds a photograph; the default is what most cameras do."""

    pattern: str = "RGGB"
    """The colors of the smallest square that repeats, row by row: 4 letters, or 36. Empty: all three at each place."""
    border: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Rows and columns without light around the picture: top, left, bottom, right."""
    matrices: int = 2
    """Two color matrices, for illuminant A and D65, or the latter's alone."""
    lossless_jpeg: bool = False
    """Compressed, as by most cameras that write DNGs; for mosaics only."""
    orientation: int = 1
    """As in Exif, 1 to 8."""
    time: datetime = field(default=datetime(2024, 6, 21, 12, 0, 0))
    exposure: float | None = None
    """The exposure value at ISO 100; written as a time, at f/4 and ISO 400."""

    def __post_init__(self) -> None:
        if len(self.pattern) not in (0, 4, 36) or (self.pattern and set(self.pattern) != set("RGB")):
            raise ParameterError(f"a pattern has 4 or 36 letters R, G and B, or none, not {self.pattern!r}")
        if self.lossless_jpeg and not self.pattern:
            raise ParameterError("lossless JPEG is for mosaics here; give a pattern")
        if self.matrices not in (1, 2):
            raise ParameterError(f"a DNG has one color matrix here or two, not {self.matrices}")
        if not 1 <= self.orientation <= 8:
            raise ParameterError(f"orientation must be 1 to 8, not {self.orientation}")
        if min(self.border) < 0:
            raise ParameterError(f"a border must be 0 or more, not {self.border}")


def write_dng(path: str | Path, photo: Photo, camera: VirtualCamera, layout: Layout = Layout()) -> Path:
    """Write a rendered photograph as a DNG."""
    return write_file(path, encode_dng(photo.raw, camera, layout))


def encode_dng(
    raw: NDArray[np.uint16], camera: VirtualCamera, layout: Layout, *, neutral: ArrayLike | None = None
) -> bytes:
    """The bytes of a DNG of sensor numbers (height, width, 3), black level included.

    `neutral` is the illuminant that the camera believed in, its "as shot" white balance; noon daylight by default.
    """
    import tifffile

    pixels = np.asarray(raw, dtype=np.uint16)
    options: dict[str, Any] = {"photometric": 34892, "planarconfig": "contig"}
    if layout.pattern:
        pixels = mosaic(pixels, layout.pattern)
        options = {"photometric": 32803}
    top, left, bottom, right = layout.border
    area = (top, left, top + pixels.shape[0], left + pixels.shape[1])
    edges = [(top, bottom), (left, right)] + [(0, 0)] * (pixels.ndim - 2)
    pixels = np.pad(pixels, edges, constant_values=camera.black_level)
    options |= {"shape": pixels.shape, "dtype": pixels.dtype}
    if layout.lossless_jpeg:
        options |= {"compression": 7, "tile": (TILE, TILE)}
    else:
        options |= {"rowsperstrip": len(pixels)}  # one strip, which every reader understands
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer,
        _lossless_tiles(pixels) if layout.lossless_jpeg else pixels,
        subfiletype=0,
        software=False,
        metadata=None,
        datetime=layout.time,
        extratags=[*_camera_tags(camera, layout, neutral), *_sensor_tags(camera, layout, area)],
        **options,
    )
    return buffer.getvalue()


def mosaic(raw: NDArray[np.uint16], pattern: str) -> NDArray[np.uint16]:
    """(height, width) of what a sensor with that pattern of filters sees of (height, width, 3)."""
    side = int(len(pattern) ** 0.5)
    seen = np.empty(raw.shape[:2], np.uint16)
    for place, color in enumerate(pattern):
        here = (slice(place // side, None, side), slice(place % side, None, side))
        seen[here] = raw[(*here, "RGB".index(color))]
    return seen


def _lossless_tiles(pixels: NDArray[np.uint16]) -> Iterator[bytes]:
    import imagecodecs

    height, width = pixels.shape
    for top, left in itertools.product(range(0, height, TILE), range(0, width, TILE)):
        tile = pixels[top : top + TILE, left : left + TILE]
        whole = np.pad(tile, ((0, TILE - tile.shape[0]), (0, TILE - tile.shape[1])), mode="edge")
        yield bytes(imagecodecs.ljpeg_encode(whole, bitspersample=16))


def _camera_tags(camera: VirtualCamera, layout: Layout, neutral: ArrayLike | None) -> list[Tag]:
    make, _, model = camera.name.partition(" ")
    believed = as_illuminant(camera.illuminant(daylight(5500)) if neutral is None else neutral)
    lights = ((STANDARD_A, 2856), (D65, 6504))[-layout.matrices :]
    tags: list[Tag] = [
        _text(271, make),
        _text(272, model or make),
        _numbers(274, SHORT, layout.orientation),
        _numbers(50706, BYTE, 1, 4, 0, 0),  # DNGVersion
        _numbers(50707, BYTE, 1, 1, 0, 0),  # DNGBackwardVersion
        _text(50708, camera.name),
        _numbers(50728, RATIONAL, *_rationals(believed / believed.max())),
        _numbers(50730, SRATIONAL, 0, 1),  # BaselineExposure
    ]
    if layout.exposure is not None:
        seconds = np.array(4**2 * 100 / 400 / 2**layout.exposure)
        tags += [_numbers(33434, RATIONAL, *_rationals(seconds)), _numbers(33437, RATIONAL, 4, 1)]
        tags.append(_numbers(34855, SHORT, 400))
    for i, (light, kelvin) in enumerate(lights):
        tags.append(_numbers(50721 + i, SRATIONAL, *_rationals(camera.color_matrix(kelvin))))
        tags.append(_numbers(50778 + i, SHORT, light))
    return tags


def _sensor_tags(camera: VirtualCamera, layout: Layout, area: tuple[int, ...]) -> list[Tag]:
    samples = 1 if layout.pattern else 3
    tags: list[Tag] = [
        _numbers(50714, LONG, *[camera.black_level] * samples),
        _numbers(50717, LONG, *[camera.white_level] * samples),
        _numbers(50829, LONG, *area),
    ]
    if layout.pattern:
        side = int(len(layout.pattern) ** 0.5)
        tags.append(_numbers(33421, SHORT, side, side))  # CFARepeatPatternDim
        tags.append(_numbers(33422, BYTE, *("RGB".index(color) for color in layout.pattern)))
        tags.append(_numbers(50710, BYTE, 0, 1, 2))  # CFAPlaneColor
        tags.append(_numbers(50711, SHORT, 1))  # CFALayout: rectangular
    return tags


def _text(code: int, text: str) -> Tag:
    return code, ASCII, 0, text, True


def _numbers(code: int, kind: int, *values: int) -> Tag:
    count = len(values) // 2 if kind in (RATIONAL, SRATIONAL) else len(values)
    return code, kind, count, values if count > 1 or kind in (RATIONAL, SRATIONAL) else values[0], True


def _rationals(values: NDArray[np.floating]) -> list[int]:
    return [part for value in np.ravel(values) for part in (round(float(value) * DENOMINATOR), DENOMINATOR)]
