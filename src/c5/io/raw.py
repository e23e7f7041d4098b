"""Raw files of cameras to photographs at working size, with what the camera wrote about them.

The tags of a file are read here, its pixels by `c5.io.mosaic` in a process of its own.
"""

from __future__ import annotations

import io
import os
import struct
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from c5.color import Float64s, as_illuminant
from c5.colorimetry.matrices import CameraMatrices
from c5.errors import NotLinearError, ParameterError, ReadError
from c5.image import WORKING_PIXELS, LinearImage, StoredImage, shrink
from c5.io.mosaic import AGAIN, REMEDY, Task
from c5.io.readers import naming, opening, read_levels
from c5.io.tiff import (
    BITS,
    COLOR_FILTER_ARRAY,
    LINEAR_RAW,
    NEW_SUBFILE_TYPE,
    OPAQUE,
    PHOTOMETRIC,
    RGB,
    STRIP_LENGTHS,
    STRIP_OFFSETS,
    TEXT,
    Directory,
    Tiff,
)
from c5.io.worker import average_apart

Value: TypeAlias = tuple[float, ...] | bytes
"""The value of a tag: numbers, or text."""

RAW_SUFFIXES = frozenset({
    ".3fr", ".arw", ".cr2", ".cr3", ".dcr", ".dng", ".erf", ".fff", ".iiq", ".kdc", ".mef", ".mos", ".nef", ".nrw",
    ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf", ".srw", ".x3f",
})  # fmt: skip
"""The suffixes of raw files, in lower case."""

TIFF_STARTS = (b"II*\0", b"MM\0*", b"IIRO", b"IIRS", b"MMOR", b"IIU\0")  # the last four of Olympus and Panasonic
CR3_START, RAF_START, X3F_START = b"ftypcrx ", b"FUJIFILMCCD-RAW", b"FOVb"

# Tags of TIFF, Exif and DNG.
MAKE, MODEL, DATE_TIME, SUB_IFDS, EXIF, DATE_TIME_ORIGINAL = 271, 272, 306, 330, 34665, 36867
EXPOSURE = EXPOSURE_TIME, F_NUMBER, SPEED = 33434, 33437, 34855
DNG_VERSION, UNIQUE_CAMERA_MODEL, ANALOG_BALANCE, AS_SHOT_WHITE_XY = 50706, 50708, 50727, 50729
COLOR_MATRICES, CAMERA_CALIBRATIONS, CALIBRATION_ILLUMINANTS = (50721, 50722), (50723, 50724), (50778, 50779)
WANTED = (
    MAKE, MODEL, DATE_TIME, SUB_IFDS, EXIF, DATE_TIME_ORIGINAL, *EXPOSURE, DNG_VERSION, UNIQUE_CAMERA_MODEL,
    ANALOG_BALANCE, AS_SHOT_WHITE_XY, *COLOR_MATRICES, *CAMERA_CALIBRATIONS, *CALIBRATION_ILLUMINANTS,
)  # fmt: skip

MAX_PAGES, MAX_TEXT = 16, 1024
"""More directories of pictures, and letters of a name, than any camera writes."""

LIGHT_SOURCES_KELVIN: dict[float, float] = {
    1: 5500, 2: 4150, 3: 2850, 4: 5500, 9: 5500, 10: 6500, 11: 7500, 12: 6400, 13: 5050, 14: 4150, 15: 3525, 16: 2925,
    17: 2856, 18: 5500, 19: 6500, 20: 5500, 21: 6504, 22: 7500, 23: 5000, 24: 3200,
}  # fmt: skip
"""Temperatures of Exif's light sources, as in the DNG SDK, except A and D65, which are exact."""

ORIENTATIONS = {0: 1, 1: 2, 3: 3, 2: 4, 4: 5, 6: 6, 7: 7, 5: 8}
"""LibRaw's flip to Exif's orientation."""

MAKERS_EXTRAS = frozenset({
    "ag", "camera", "co", "company", "computer", "corp", "corporation", "electronics", "imaging", "inc", "ltd",
    "optical",
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class Photograph:
    """A photograph at working size, and what its file says about it."""

    image: LinearImage
    size: tuple[int, int]
    """Height and width of the picture on the sensor, before `orientation`."""
    time: datetime | None = None
    """When it was taken, by the camera's clock."""
    as_shot: Float64s | None = None
    """The illuminant of the camera's own white balance."""
    matrices: CameraMatrices | None = None
    orientation: int = 1
    """How to turn it for a viewer, 1 to 8 as in Exif. `image` is not turned."""
    exposure: float | None = None
    """The exposure value that was set, at ISO 100."""
    larger: StoredImage | None = None
    """The same picture with more pixels, where they were asked for."""


def read_photograph(
    path: str | Path,
    *,
    black: float = 0,
    white: float | None = None,
    assume_srgb: bool = False,
    pixels: int = WORKING_PIXELS,
    more_pixels: int | None = None,
) -> Photograph:
    """Read a camera's raw file (DNG, CR2, CR3, NEF, ARW, RAF, ...), or any image that `read_image` reads.

    It is averaged to about `pixels`, or to one pixel for each repeat of the color filters if those are fewer; with
    `more_pixels` also to that many, in the same pass. A raw file knows its levels; a `black` above 0 and a `white`
    replace them. Raw files are recognized by content; the name decides only for a TIFF that could be either. They are
    decoded in another process: see `c5.io.worker`.
    """
    path = Path(path)
    with naming(path):
        start, tags = _look(path)
        if _is_raw(path, start, tags):
            return _read_raw(path, start, tags, black, white, assume_srgb, (pixels, more_pixels))
        try:
            linear = read_levels(path, black=black, white=white, assume_srgb=assume_srgb)
        except ReadError as error:
            if type(error) is ReadError and path.suffix.lower() in RAW_SUFFIXES and start:
                raise ReadError(f"damaged, or not a raw file; {AGAIN}") from error
            raise
        image = replace(shrink(linear, pixels), source=str(path))
        larger = None if more_pixels is None else StoredImage.of(shrink(linear, more_pixels))
        return Photograph(image, (linear.shape[0], linear.shape[1]), larger=larger)


class Header(NamedTuple):
    """What a file says about itself before any pixel is decoded."""

    camera: str | None
    time: datetime | None
    is_raw: bool
    """Whether `read_photograph` would give it to LibRaw."""


def read_header(path: str | Path) -> Header:
    """Camera and time of a raw file from its first bytes, without decoding it: cheap enough for thousands of files.

    Other images have neither. Nor does a file that cannot be opened: `read_photograph` says what is wrong with it.
    """
    path = Path(path)
    start, tags = b"", NO_TAGS
    with suppress(ReadError):
        start, tags = _look(path)
    if not _is_raw(path, start, tags):
        return Header(None, None, is_raw=False)
    return Header(_camera_name(tags), _time(tags), is_raw=True)


def read_color_tags(path: str | Path) -> dict[int, tuple[float, ...]]:
    """The numbers of a raw file's color matrices and of what goes with them, by tag; none where it has no such tags."""
    path = Path(path)
    with naming(path):
        values = _look(path)[1].values
    return {code: value for code, value in values.items() if isinstance(value, tuple)}


def find_previews(file: BinaryIO) -> list[tuple[int, int]]:
    """The byte ranges of a DNG's previews; none if they are not certain, or if it is not a DNG."""
    found: list[tuple[int, int]] = []
    try:
        tiff = Tiff.open(file)
        if DNG_VERSION not in tiff.first:
            return []
        pages = [tiff.first, *map(tiff.directory, tiff.intact_integers(tiff.first.get(SUB_IFDS))[:MAX_PAGES])]
        for page in pages:
            if tiff.intact_integers(page.get(NEW_SUBFILE_TYPE)) == (1,):
                offsets, lengths = (tiff.integers(page.get(code)) for code in (STRIP_OFFSETS, STRIP_LENGTHS))
                found += [(start, start + length) for start, length in zip(offsets, lengths, strict=True)]
    except (ReadError, ValueError, struct.error):
        return []
    return found


class _Tags(NamedTuple):
    """What the directories of a file say: values by the numbers of their tags, text as bytes."""

    values: dict[int, Value]
    photometric: frozenset[int] = frozenset()  # of all directories that can hold the picture
    deep: bool = False  # more than 8 bits in the first
    only_preview: bool = False  # the directory of the picture is lost

    @property
    def is_dng(self) -> bool:
        return DNG_VERSION in self.values


NO_TAGS = _Tags({})


def _look(path: Path) -> tuple[bytes, _Tags]:
    """The first bytes of a file and what can be read of its tags."""
    with opening(path) as file:
        start = file.read(32)
        if start.startswith(TIFF_STARTS):
            return start, _read_tags(file)
        if start[4:12] == CR3_START:
            # Directories of their own, early in the file: CMT1 has the camera, CMT2 is that of Exif.
            rest = file.read(1 << 16)
            camera, exif = (_read_tags(io.BytesIO(rest[rest.find(box) + 4 :])) for box in (b"CMT1", b"CMT2"))
            return start, _Tags(exif.values | camera.values)
        if start.startswith(RAF_START):  # a JPEG comes first, with an Exif header
            rest = file.read(1 << 16)
            return start, _read_tags(io.BytesIO(rest[rest.find(b"Exif\0\0") + 6 :]))
        return start, NO_TAGS


def _read_tags(file: BinaryIO) -> _Tags:
    """The tags of the first directory and of Exif's, which come first; a damaged one is as good as missing."""
    try:
        tiff = Tiff.open(file)
    except ReadError:
        return NO_TAGS
    pages, lost = [tiff.first], False
    for place in tiff.intact_integers(tiff.first.get(SUB_IFDS))[:MAX_PAGES]:
        try:
            pages.append(tiff.directory(place))
        except ReadError:
            lost = True
    values = _values(tiff, tiff.first)
    for place in tiff.intact_integers(tiff.first.get(EXIF))[:1]:
        with suppress(ReadError):
            values |= _values(tiff, tiff.directory(place), (DATE_TIME_ORIGINAL, *EXPOSURE))
    photometric = frozenset(kind for page in pages for kind in tiff.intact_integers(page.get(PHOTOMETRIC))[:1])
    deep = max(tiff.intact_integers(tiff.first.get(BITS)), default=1) > 8
    is_preview = tiff.intact_integers(tiff.first.get(NEW_SUBFILE_TYPE)) == (1,)
    return _Tags(values, photometric, deep, lost and is_preview and not photometric & {COLOR_FILTER_ARRAY, LINEAR_RAW})


def _values(tiff: Tiff, directory: Directory, codes: tuple[int, ...] = WANTED) -> dict[int, Value]:
    found: dict[int, Value] = {}
    for code in codes:
        tag = directory.get(code)
        if tag is not None:
            with suppress(ReadError):
                found[code] = tiff.data(tag, MAX_TEXT) if tag.kind in (TEXT, OPAQUE) else tiff.numbers(tag)
    return found


def _is_raw(path: Path, start: bytes, tags: _Tags) -> bool:
    if start[4:12] == CR3_START or start.startswith((RAF_START, X3F_START, *TIFF_STARTS[2:])):
        return True
    if not start.startswith(TIFF_STARTS):
        return False
    if tags.is_dng or tags.only_preview or COLOR_FILTER_ARRAY in tags.photometric or start[8:10] == b"CR":
        return True
    linear_export = RGB in tags.photometric and tags.deep
    return path.suffix.lower() in RAW_SUFFIXES and not linear_export


def _read_raw(
    path: Path,
    start: bytes,
    tags: _Tags,
    black: float,
    white: float | None,
    assume_srgb: bool,
    pixels: tuple[int, int | None],
) -> Photograph:
    if assume_srgb:
        raise NotLinearError("this file is raw, and linear already; read it without assume_srgb=True")
    if start.startswith(X3F_START):
        raise ReadError(f"a Foveon sensor has no mosaic of filters; {REMEDY}")
    if tags.only_preview:
        raise ReadError(f"damaged or incomplete: it ends after its preview; {AGAIN}")
    is_linear = tags.is_dng and LINEAR_RAW in tags.photometric
    found = average_apart(Task(os.path.abspath(path), tags.is_dng, is_linear, black, white, *pixels))
    camera = _camera_name(tags)
    matrices = _matrices(tags, np.array(found.matrix), camera or "unknown")
    larger = None
    if found.larger is not None:
        rgb, clipped = found.larger
        larger = StoredImage(rgb, np.broadcast_to(np.True_, clipped.shape), clipped)
    return Photograph(
        LinearImage(found.rgb, clipped=found.clipped, camera=camera, source=str(path)),
        found.size,
        _time(tags) or (datetime.fromisoformat(found.time) if found.time else None),
        _as_shot(tags, found.multipliers, matrices),
        matrices,
        ORIENTATIONS.get(found.flip, 1),
        _exposure(tags),
        larger,
    )


def _camera_name(tags: _Tags) -> str | None:
    """Make and model in one, the make once and without its legal form: NIKON CORPORATION, NIKON D5200: Nikon D5200."""
    make, model, unique = (_text(tags.values.get(code)) for code in (MAKE, MODEL, UNIQUE_CAMERA_MODEL))
    if not model:
        return unique or make or None
    words = [word for word in make.split() if word.strip(".,").lower() not in MAKERS_EXTRAS]
    maker = " ".join(
        word.capitalize() if len(word) > 3 and (word.isupper() or word.islower()) else word for word in words
    )
    for known in (make, maker, *words[:1]):
        if known and model.lower().startswith(known.lower()):
            rest = model[len(known) :]
            return f"{maker}{rest}" if rest[:1] in ("", " ") else model
    return f"{maker} {model}".strip()


def _text(value: Value | None) -> str:
    if not isinstance(value, bytes):
        return ""
    return " ".join(value.split(b"\0")[0].decode("utf-8", "replace").split())


def _time(tags: _Tags) -> datetime | None:
    for code in (DATE_TIME_ORIGINAL, DATE_TIME):
        try:
            return datetime.strptime(_text(tags.values.get(code)), "%Y:%m:%d %H:%M:%S")
        except ValueError:
            continue
    return None


def _exposure(tags: _Tags) -> float | None:
    """The exposure value at ISO 100, if time, aperture and speed are given and possible."""
    seconds, aperture, speed = (_reals(tags.values.get(code), 1) for code in EXPOSURE)
    if seconds is None or aperture is None or speed is None or not min(seconds[0], aperture[0], speed[0]) > 0:
        return None
    return float(np.log2(aperture[0] ** 2 / seconds[0]) - np.log2(speed[0] / 100))


def _as_shot(tags: _Tags, multipliers: list[float], matrices: CameraMatrices | None) -> Float64s | None:
    """The light of the camera's multipliers, or of the chromaticity that some DNGs have instead."""
    white = _reals(tags.values.get(AS_SHOT_WHITE_XY), 2)
    try:
        if min(multipliers) > 0:
            return as_illuminant(1 / np.array(multipliers))
        if white is not None and matrices is not None and white.min() > 0:
            x, y = white
            n = (x - 0.3320) / (0.1858 - y)
            kelvin = 449 * n**3 + 3525 * n**2 + 6823.3 * n + 5520.33  # McCamy 1992
            return as_illuminant(matrices.matrix(max(kelvin, 1000)) @ [x / y, 1, (1 - x - y) / y])
    except (ParameterError, ArithmeticError):
        pass
    return None


def _matrices(tags: _Tags, table: NDArray[np.floating], name: str) -> CameraMatrices | None:
    """The matrices of a DNG's tags; for any other file, LibRaw's matrix of the camera, which is for D65."""
    balance = _reals(tags.values.get(ANALOG_BALANCE), 3)
    found: dict[float, Float64s] = {}
    for default, *codes in zip((2856, 6504), COLOR_MATRICES, CAMERA_CALIBRATIONS, CALIBRATION_ILLUMINANTS, strict=True):
        matrix, unit, light = (tags.values.get(code) for code in codes)
        colors, individual = _reals(matrix, 9), _reals(unit, 9)
        if colors is not None:
            product = (np.eye(3) if individual is None else individual.reshape(3, 3)) @ colors.reshape(3, 3)
            kelvin = LIGHT_SOURCES_KELVIN.get(light[0], default) if light else default
            found[kelvin] = (np.ones(3) if balance is None else balance)[:, None] * product
    if not found and np.isfinite(table).all() and table.any():
        found[6504] = np.asarray(table, dtype=np.float64)
    if not found:
        return None
    warm, cold = min(found), max(found)
    try:
        if warm == cold:
            return CameraMatrices(name, found[warm], found[warm])
        return CameraMatrices(name, found[warm], found[cold], warm, cold)
    except ParameterError:
        return None  # what the file says is impossible


def _reals(value: Value | None, count: int) -> Float64s | None:
    """The numbers of a tag, if they are finite and that many."""
    if not isinstance(value, tuple) or len(value) != count:
        return None
    numbers = np.array(value, dtype=np.float64)
    return numbers if np.isfinite(numbers).all() else None
