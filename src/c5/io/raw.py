"""Raw files of cameras to photographs at working size, with what the camera wrote about them.

LibRaw unpacks the sensor's numbers; nothing is demosaiced. Each repeat of the color filters, a *unit* of 2x2 photosites
or of 6x6, gives one color, and units are averaged straight to the working size, with red, green and blue moved to where
the unit has its center.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.color import Bools, Float32s, Float64s, as_illuminant
from c5.colorimetry.matrices import CameraMatrices
from c5.errors import C5Error, ImageError, NotLinearError, ParameterError, ReadError
from c5.image import WORKING_PIXELS, LinearImage, resize, shrink
from c5.io.readers import DECODER_ERRORS, MAX_PIXELS, read_image

RAW_SUFFIXES = frozenset({
    ".3fr", ".arw", ".cr2", ".cr3", ".dcr", ".dng", ".erf", ".fff", ".iiq", ".kdc", ".mef", ".mos", ".nef", ".nrw",
    ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf", ".srw", ".x3f",
})  # fmt: skip
"""What the names of raw files end in, in lower case."""

MAX_PIXELS_PER_BYTE = 256
"""No camera compresses better; a damaged header can claim any size."""

TIFF_STARTS = (b"II*\0", b"MM\0*", b"IIRO", b"IIRS", b"MMOR", b"IIU\0")  # the last four of Olympus and Panasonic
CR3_START, RAF_START, X3F_START = b"ftypcrx ", b"FUJIFILMCCD-RAW", b"FOVb"

# Tags of TIFF, Exif and DNG.
PHOTOMETRIC, MAKE, MODEL, DATE_TIME, SUB_IFDS, EXIF, DATE_TIME_ORIGINAL = 262, 271, 272, 306, 330, 34665, 36867
DNG_VERSION, UNIQUE_CAMERA_MODEL, ANALOG_BALANCE, AS_SHOT_WHITE_XY = 50706, 50708, 50727, 50729
COLOR_MATRICES, CAMERA_CALIBRATIONS, CALIBRATION_ILLUMINANTS = (50721, 50722), (50723, 50724), (50778, 50779)
WANTED = (
    MAKE, MODEL, DATE_TIME, SUB_IFDS, EXIF, DATE_TIME_ORIGINAL, DNG_VERSION, UNIQUE_CAMERA_MODEL, ANALOG_BALANCE,
    AS_SHOT_WHITE_XY, *COLOR_MATRICES, *CAMERA_CALIBRATIONS, *CALIBRATION_ILLUMINANTS,
)  # fmt: skip

# Values of PHOTOMETRIC.
RGB, COLOR_FILTER_ARRAY, LINEAR_RAW = 2, 32803, 34892

LIGHT_SOURCES_KELVIN = {
    1: 5500, 2: 4150, 3: 2850, 4: 5500, 9: 5500, 10: 6500, 11: 7500, 12: 6400, 13: 5050, 14: 4150, 15: 3525, 16: 2925,
    17: 2856, 18: 5500, 19: 6500, 20: 5500, 21: 6504, 22: 7500, 23: 5000, 24: 3200,
}  # fmt: skip
"""Temperatures of Exif's light sources, as the DNG SDK takes them but for A and D65, which are exact."""

SMALL_UNITS = 2_000_000
"""Repeats of the color filters in a small picture."""

REMEDY = "export a linear 16-bit TIFF from a raw converter"

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


def read_photograph(
    path: str | Path,
    *,
    black: float = 0,
    white: float | None = None,
    assume_srgb: bool = False,
    pixels: int = WORKING_PIXELS,
) -> Photograph:
    """Read a camera's raw file (DNG, CR2, CR3, NEF, ARW, RAF, ...), or any image that `read_image` reads.

    It is averaged to about `pixels`, or to one for each repeat of the color filters if those are fewer. A raw file
    knows its levels; a `black` above 0 and a `white` replace them. What is raw is told by content, and by the name only
    of a TIFF that could be either.
    """
    path = Path(path)
    start, header = _look(path)
    if not _is_raw(path, start, header):
        try:
            image = read_image(path, black=black, white=white, assume_srgb=assume_srgb)
        except ReadError as error:
            if type(error) is ReadError and path.suffix.lower() in RAW_SUFFIXES and path.is_file() and start:
                raise ReadError(f"{path}: damaged, or no raw file; copy it again from its source") from None
            raise
        return Photograph(shrink(image, pixels), (image.rgb.shape[0], image.rgb.shape[1]))
    if assume_srgb:
        raise NotLinearError(f"{path}: --assume-srgb is for 8-bit files; this one is raw")
    if start.startswith(X3F_START):
        raise ReadError(f"{path}: a Foveon sensor has no mosaic of filters; {REMEDY}")
    try:
        return _read_raw(path, header, black, white, pixels)
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None


class Header(NamedTuple):
    """What a file says about itself before any pixel is decoded."""

    camera: str | None
    time: datetime | None
    is_raw: bool
    """Whether `read_photograph` would give it to LibRaw."""


def read_header(path: str | Path) -> Header:
    """Camera and time of a file from its first bytes, without decoding it; cheap enough for thousands of files.

    A file that cannot be opened or understood has no camera and no time: `read_photograph` says what is wrong with it.
    """
    path = Path(path)
    start, header = _look(path)
    return Header(_camera_name(header), _header_time(header), _is_raw(path, start, header))


class _Header(NamedTuple):
    """Tags of the first directory of a file by their numbers; of the Exif directory by their names."""

    tags: dict[int, Any]
    exif: dict[str, Any]
    photometric: frozenset[int]  # of all directories that can hold the picture
    deep: bool  # more than 8 bits in the first

    @property
    def is_dng(self) -> bool:
        return DNG_VERSION in self.tags


NO_HEADER = _Header({}, {}, frozenset(), False)


def _look(path: Path) -> tuple[bytes, _Header]:
    """The first bytes of a file and what can be told of its tags; nothing where it cannot be opened."""
    try:
        with path.open("rb") as file:
            start = file.read(32)
            if start.startswith(TIFF_STARTS):
                return start, _read_tags(file)
            if start[4:12] == CR3_START:
                # Directories of their own, early in the file: CMT1 has the camera, CMT2 is that of Exif.
                rest = file.read(1 << 16)
                camera, exif = (_read_tags(io.BytesIO(rest[rest.find(box) + 4 :])) for box in (b"CMT1", b"CMT2"))
                return start, _Header({**exif.tags, **camera.tags}, {}, frozenset(), False)
            if start.startswith(RAF_START):  # a JPEG comes first, with an Exif header
                rest = file.read(1 << 16)
                return start, _read_tags(io.BytesIO(rest[rest.find(b"Exif\0\0") + 6 :]))
            return start, NO_HEADER
    except OSError:
        return b"", NO_HEADER


def _read_tags(file: Any) -> _Header:
    import tifffile

    tifffile.logger().setLevel(logging.CRITICAL)  # a damaged tag is no more than missing
    try:
        file.seek(0)
        with tifffile.TiffFile(file) as tiff:
            page = tiff.pages.first
            tags = {code: page.tags[code].value for code in WANTED if code in page.tags}  # others can be large
            pages = [page, *page.pages] if SUB_IFDS in tags and page.pages else [page]
            kinds = frozenset(int(each.tags[PHOTOMETRIC].value) for each in pages if PHOTOMETRIC in each.tags)
            exif = tags.get(EXIF)
            return _Header(tags, exif if isinstance(exif, dict) else {}, kinds, page.bitspersample > 8)
    except DECODER_ERRORS:
        return NO_HEADER


def _is_raw(path: Path, start: bytes, header: _Header) -> bool:
    if start[4:12] == CR3_START or start.startswith((RAF_START, X3F_START, *TIFF_STARTS[2:])):
        return True
    if not start.startswith(TIFF_STARTS):
        return False
    if header.is_dng or COLOR_FILTER_ARRAY in header.photometric or start[8:10] == b"CR":
        return True
    linear_export = RGB in header.photometric and header.deep
    return path.suffix.lower() in RAW_SUFFIXES and not linear_export


def _read_raw(path: Path, header: _Header, black: float, white: float | None, pixels: int) -> Photograph:
    import rawpy

    try:
        with rawpy.RawPy() as raw:
            raw.open_file(str(path))
            height, width = raw.sizes.raw_height, raw.sizes.raw_width
            if height * width > min(MAX_PIXELS, MAX_PIXELS_PER_BYTE * path.stat().st_size):
                raise ReadError(f"{path}: claims to hold {width}x{height} pixels; copy it again from its source")
            raw.unpack()
            camera = _camera_name(header)
            mosaic, sites = _find_mosaic(raw, header, black, white)
            rgb, clipped = _average(mosaic, sites, pixels)
            matrices = _matrices(header, raw.rgb_xyz_matrix[:3], camera or "unknown")
            return Photograph(
                LinearImage(rgb, clipped=clipped, camera=camera, source=str(path)),
                (mosaic.shape[0], mosaic.shape[1] // sites.samples),
                _time(header, raw),
                _as_shot(header, raw.camera_whitebalance, matrices),
                matrices,
                ORIENTATIONS.get(raw.sizes.flip, 1),
            )
    except C5Error:
        raise
    except rawpy.LibRawFileUnsupportedError:
        version = ".".join(map(str, rawpy.libraw_version))
        raise ReadError(f"{path}: damaged, or unknown to LibRaw {version}; {REMEDY}") from None
    except (rawpy.LibRawError, *DECODER_ERRORS) as error:
        said = error.args[0] if error.args else b""
        reason = _text(said) or str(error) or type(error).__name__
        raise ReadError(f"{path}: damaged or incomplete: {reason}; copy it again from its source") from error


class _Sites(NamedTuple):
    """The photosites of a unit."""

    color: NDArray[np.intp]  # (rows, columns): 0, 1, 2 for red, green, blue; -1 for none
    black: Float64s  # (rows, columns)
    clip: NDArray[np.uint16]  # (rows, columns), the numbers from which on a site is clipped
    white: float
    samples: int = 1  # numbers a pixel

    def places(self) -> Float64s:
        """(3, 2), how far down and right of the unit's center red, green and blue are seen, in units."""
        if self.samples > 1:
            return np.zeros((3, 2))
        center = (np.array(self.color.shape) - 1) / 2
        seen = [np.argwhere(self.color == channel).mean(axis=0) for channel in range(3)]
        return np.asarray((np.array(seen) - center) / self.color.shape)


def _find_mosaic(raw: Any, header: _Header, black: float, white: float | None) -> tuple[NDArray[np.uint16], _Sites]:
    """The numbers of the picture, (height, width * samples), and what they mean. A view, not a copy."""
    place, pattern, image = raw.sizes, raw.raw_pattern, raw.raw_image
    top, left = place.top_margin, place.left_margin
    letters = raw.color_desc.decode("ascii", "replace")
    samples = 1
    if raw.num_colors == 1:
        raise ImageError("a monochrome sensor sees no colors; there is no white to balance")
    if pattern is None:
        if not (header.is_dng and LINEAR_RAW in header.photometric and image.ndim == 3 and raw.num_colors == 3):
            raise ImageError("its colors were processed by the camera; photograph in raw of full size")
        samples = image.shape[2]
        image = image.reshape(image.shape[0], -1)
        color = np.array([[0, 1, 2, -1][:samples]])
        channel = color
    else:
        # raw_pattern starts outside the picture, and is wrong where margins of X-Trans are wider than 6.
        places = [raw.raw_color(top + i, left + j) for i, j in np.ndindex(pattern.shape)]
        channel = np.array(places).reshape(pattern.shape)
        if pattern.shape not in ((2, 2), (6, 6)) or {letters[i] for i in np.unique(channel)} != set("RGB"):
            raise ImageError(f"filters other than red, green and blue in 2x2 or 6x6 are not supported; {REMEDY}")
        color = np.array(["RGB".index(letters[i]) for i in channel.ravel()]).reshape(channel.shape)
    mosaic = image[top : top + place.height, left * samples : (left + place.width) * samples]

    levels = np.asarray(raw.black_level_per_channel, dtype=np.float64)
    levels[3] = levels[3] or levels[1]  # some files leave out the second green
    if black:
        levels[:] = black
    top_level = float(raw.white_level if white is None else white)
    if not 0 <= levels[channel].max() < top_level:
        raise ImageError(f"the black level {levels[channel].max():g} must lie below the white level {top_level:g}")
    clip = np.full(4, top_level)
    linear = raw.camera_white_level_per_channel
    if white is None and linear and not header.is_dng:  # a DNG says itself what is white
        clip = np.where(np.asarray(linear) > levels + 0.5 * (top_level - levels), np.minimum(linear, clip), clip)
    limits = np.where(color >= 0, np.minimum(np.ceil(clip[channel]), 65535), 65535).astype(np.uint16)
    return mosaic, _Sites(color, levels[channel], limits, top_level, samples)


def _average(mosaic: NDArray[np.uint16], sites: _Sites, target: int) -> tuple[Float32s, Bools]:
    """The mosaic area-averaged to about `target` pixels, and where less than half of the units under one are unclipped.

    A unit with one clipped photosite does not count at all, so that what is left keeps its color. Memory is read once:
    a row of cells stays in the cache while it is summed and searched, and only cells with a clipped number pay for a
    look at each, unless all their units are clipped.
    """
    high, wide = sites.color.shape
    height, width = mosaic.shape[0] // high, mosaic.shape[1] // wide
    if not height or not width:
        raise ImageError("the picture is smaller than one repeat of the color filters")
    scale = max(1.0, (height * width / target) ** 0.5)
    side = min(int(scale), height, width)  # whole cells first; then the fraction that is left, on few
    places = sites.places()
    if side < 12 * np.abs(places).max() and height * width < SMALL_UNITS:
        side = 1  # a small picture: to move large cells by so much would blur red and blue
    rows, columns = height // side, width // side
    blocks = mosaic[: rows * side * high, : columns * side * wide].reshape(rows, side, high, columns, side * wide)

    share = (sites.color[..., None] == np.arange(3)).astype(np.float32)
    share /= share.sum(axis=(0, 1)) * np.float32(side * side)
    across = np.tile(share, (1, side, 1))  # (high, side * wide, 3) takes the sums of a cell's columns to mean colors
    limits = np.tile(sites.clip, (1, columns * side)).reshape(blocks.shape[2:])
    cells = np.empty((rows, 4, columns), np.float32)  # red, green, blue, and how much the cell counts
    cells[:, 3] = 1
    suspect, lost = np.zeros((2, rows, columns), np.bool_)  # cells with a clipped number; with one in every unit
    for row, block in enumerate(blocks):
        peaks = block.max(axis=0)
        cells[row, :3] = (_sum(block, int(peaks.max())) @ across).sum(axis=0).T
        full = peaks >= limits
        if full.any():
            suspect[row] = full.any(axis=0).any(axis=1)
            if np.count_nonzero(suspect[row]) * 8 > columns:  # else it is not worth it
                always = (block.min(axis=0) >= limits).any(axis=0)
                for j in range(1, wide):
                    always[:, ::wide] |= always[:, j::wide]
                lost[row] = always[:, ::wide].all(axis=1)
    for some in _batches(np.flatnonzero(suspect & ~lost)):
        y, x = np.divmod(some, columns)
        numbers = blocks[y, :, :, x].reshape(some.size, side, high, side, wide)
        seen = [numbers[:, :, i, :, j].reshape(some.size, -1) for i, j in np.ndindex(high, wide)]  # units of each cell
        good = np.logical_and.reduce([values < limit for values, limit in zip(seen, sites.clip.flat, strict=True)])
        fraction = good.mean(axis=1, dtype=np.float32)
        enough = fraction >= 0.5
        counts = good[enough].astype(np.float32)
        sums = np.stack([np.einsum("cu,cu->c", values[enough], counts) for values in seen], axis=-1)
        cells[y[enough], :3, x[enough]] = sums @ share.reshape(-1, 3) / fraction[enough, None]
        cells[y, 3, x] = np.where(enough, fraction, 0)
    cells[:, 3] = np.maximum(np.where(lost, 0, cells[:, 3]), 1e-6)  # where nothing else is, clipped cells are shown
    any_clipped = bool(suspect.any())
    if any_clipped:
        cells[:, :3] *= cells[:, 3:]

    size = max(1, round(height / scale)), max(1, round(width / scale))
    span = sites.white - sites.black[sites.color >= 0].max()  # one for all colors, which keeps their ratios
    rgb = np.empty((*size, 3), np.float32)
    for channel, (down, right) in enumerate((places / side).tolist()):
        # Each color is moved to the unit's center, or edges would have fringes; how much cells count moves with it.
        small = resize(cells[:, [channel, 3] if any_clipped else [channel]], size, (down, right))
        light = small[:, 0] / small[:, 1] if any_clipped else small[:, 0]
        black = sites.black[sites.color == channel].mean()
        rgb[..., channel] = (light - np.float32(black)) / np.float32(span)
    clipped = resize(cells[:, 3:], size)[:, 0] < 0.5 if any_clipped else np.zeros(size, np.bool_)
    return np.clip(rgb, 0, 1, out=rgb), clipped


def _sum(block: NDArray[np.uint16], peak: int) -> Float32s:
    """Sums over the first axis of numbers up to `peak`: in 16 bits as far as they hold them, which is faster."""
    step = 65535 // max(peak, 1)
    if step < min(4, len(block)):
        return np.asarray(block.sum(axis=0, dtype=np.uint32), np.float32)
    total: Float32s = np.asarray(block[:step].sum(axis=0, dtype=np.uint16), np.float32)
    for start in range(step, len(block), step):
        total += block[start : start + step].sum(axis=0, dtype=np.uint16)
    return total


def _batches(indices: NDArray[np.intp], size: int = 2048) -> Iterator[NDArray[np.intp]]:
    for start in range(0, indices.size, size):
        yield indices[start : start + size]


def _camera_name(header: _Header) -> str | None:
    """Make and model in one, the make once and without its legal form: NIKON CORPORATION, NIKON D5200: Nikon D5200."""
    make, model, unique = (_text(header.tags.get(code)) for code in (MAKE, MODEL, UNIQUE_CAMERA_MODEL))
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


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return " ".join(value.split("\0")[0].split()) if isinstance(value, str) else ""


def _header_time(header: _Header) -> datetime | None:
    for value in (header.exif.get("DateTimeOriginal"), header.tags.get(DATE_TIME_ORIGINAL), header.tags.get(DATE_TIME)):
        try:
            return datetime.strptime(_text(value), "%Y:%m:%d %H:%M:%S")
        except ValueError:
            continue
    return None


def _time(header: _Header, raw: Any) -> datetime | None:
    told = _header_time(header)
    if told is not None:
        return told
    try:
        found: datetime = raw.other.timestamp
    except (ArithmeticError, OSError, ValueError):  # a number that is no time
        return None
    return found if found.year > 1970 else None


def _as_shot(header: _Header, multipliers: list[float], matrices: CameraMatrices | None) -> Float64s | None:
    """The light of the camera's multipliers, or of the chromaticity that some DNGs have in their place."""
    white = _reals(header.tags.get(AS_SHOT_WHITE_XY), 2)
    try:
        if min(multipliers[:3]) > 0:
            return as_illuminant(1 / np.array(multipliers[:3]))
        if white is not None and matrices is not None and white.min() > 0:
            x, y = white
            n = (x - 0.3320) / (0.1858 - y)
            kelvin = 449 * n**3 + 3525 * n**2 + 6823.3 * n + 5520.33  # McCamy 1992
            return as_illuminant(matrices.matrix(max(kelvin, 1000)) @ [x / y, 1, (1 - x - y) / y])
    except (ParameterError, ArithmeticError):
        pass
    return None


def _matrices(header: _Header, table: NDArray[np.floating], name: str) -> CameraMatrices | None:
    """The matrices of a DNG's tags; of any other file, LibRaw's for the camera, which is that for D65."""
    balance = _reals(header.tags.get(ANALOG_BALANCE), 3)
    found: dict[float, Float64s] = {}
    for default, *codes in zip((2856, 6504), COLOR_MATRICES, CAMERA_CALIBRATIONS, CALIBRATION_ILLUMINANTS, strict=True):
        matrix, unit, light = (header.tags.get(code) for code in codes)
        colors, individual = _reals(matrix, 9), _reals(unit, 9)
        if colors is not None:
            product = (np.eye(3) if individual is None else individual.reshape(3, 3)) @ colors.reshape(3, 3)
            kelvin = LIGHT_SOURCES_KELVIN.get(light, default) if isinstance(light, int) else default
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
        return None  # what the file says cannot be


def _reals(value: Any, count: int) -> Float64s | None:
    """Numbers of a tag, which come as they are or as numerators and denominators in turn."""
    if not isinstance(value, tuple) or len(value) not in (count, 2 * count):
        return None
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if len(value) == 2 * count:
        if not numbers[1::2].all():
            return None
        numbers = numbers[::2] / numbers[1::2]
    return numbers if np.isfinite(numbers).all() else None
