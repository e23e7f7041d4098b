"""Zones: what the statistics block of an image signal processor gives for a frame, instead of its pixels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.color import Bools, Float32s, to_array, to_float32
from c5.errors import C5Error, ImageError, ParameterError
from c5.image import LinearImage, check_pixels, resize

FEWEST, MOST = 8, 128
"""Limits for the rows and columns of zones."""


def zone_image(means: ArrayLike, counts: ArrayLike | None = None, saturated: ArrayLike | None = None) -> LinearImage:
    """Zones as a small image: a zone counts if at least half of its pixels did.

    `means` (rows, columns, 3) are linear camera RGB, black level removed: uint8, uint16, or float in [0, 1]. `counts`
    (rows, columns) says how many pixels, neither saturated nor dead, went into each mean; a zone with less than half as
    many as the fullest does not count. `saturated` (rows, columns) flags zones that do not count either. The means of
    zones that do not count may be anything, even NaN.
    """
    rgb = check_pixels(means)
    check_zones(rgb.shape[:2], ImageError)
    usable = np.ones(rgb.shape[:2], np.bool_)
    if counts is not None:
        numbers = _per_zone(counts, rgb.shape[:2], "counts")
        if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
            raise ImageError("counts of zones must be numbers of pixels, zero or more")
        usable &= (numbers > 0) & (numbers >= numbers.max() / 2)
    clipped = np.zeros(rgb.shape[:2], np.bool_)
    if saturated is not None:
        flags = _per_zone(saturated, rgb.shape[:2], "saturated")
        clipped = flags.astype(np.bool_)
    values = to_float32(rgb)
    clipped |= np.any(values == 1, axis=2)
    return LinearImage(np.where((usable & ~clipped)[..., None], values, 0), usable, clipped, source="zones")


def check_zones(shape: tuple[int, ...], error: type[C5Error] = ParameterError) -> None:
    """Raise an error if these are fewer or more zones than a statistics block has."""
    if len(shape) != 2 or not all(FEWEST <= side <= MOST for side in shape):
        raise error(f"zones must be {FEWEST} to {MOST} rows and columns, not {'x'.join(map(str, shape))}")


def parse_zones(text: str) -> tuple[int, int]:
    """Rows and columns as they are written: 24x32."""
    found = re.fullmatch(r"(\d{1,4})x(\d{1,4})", text)
    if found is None:
        raise ParameterError(f"zones are written as ROWSxCOLUMNS, such as 24x32, not {text[:40]!r}")
    zones = int(found[1]), int(found[2])
    check_zones(zones)
    return zones


def average_zones(image: LinearImage, rows: int, columns: int) -> LinearImage:
    """The zones of an image, as a processor would average them: over the pixels that are neither masked nor clipped."""
    check_zones((rows, columns))
    height, width = image.rgb.shape[:2]
    if (height, width) == (rows, columns):
        return image
    good = image.mask & ~image.clipped
    if good.all():
        return LinearImage(np.clip(_average(image.rgb, rows, columns), 0, 1), camera=image.camera, source=image.source)
    share = good[..., None].astype(np.float32)
    usable, unmasked = (
        _average(flags, rows, columns)[..., 0] for flags in (share, image.mask[..., None].astype(np.float32))
    )
    rgb = np.clip(_average(image.rgb * share, rows, columns) / np.maximum(usable, 1e-6)[..., None], 0, 1)
    enough: Bools = usable >= 0.5
    return LinearImage(rgb, unmasked >= 0.5, (unmasked >= 0.5) & ~enough, image.camera, image.source)


def _average(planes: Float32s, rows: int, columns: int) -> Float32s:
    """(height, width, k) to (rows, columns, k)."""
    height, width, channels = planes.shape
    if height % rows == 0 and width % columns == 0:  # whole pixels
        tall = planes.reshape(rows, height // rows, -1).sum(axis=1).reshape(rows, columns, -1, channels)
        return np.asarray(tall.sum(axis=2) / (height // rows * (width // columns)))
    # A side that has fewer pixels than zones is stretched first; each pixel then lies in several zones.
    tall = np.repeat(np.repeat(planes, -(-rows // height), axis=0), -(-columns // width), axis=1)
    cells = np.ascontiguousarray(tall.transpose(0, 2, 1))
    return np.ascontiguousarray(resize(cells, (rows, columns)).transpose(0, 2, 1))


def _per_zone(values: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[Any]:
    array = to_array(values, name)
    if array.shape != shape or array.dtype.kind not in "biuf":
        raise ImageError(f"{name} must be one number for each of the {shape[0]}x{shape[1]} zones, not {array.shape}")
    return array
