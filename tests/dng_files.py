"""DNG files to try the raw reader on: any tags, any damage."""

from __future__ import annotations

import io
import struct
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from c5.color import Bools, Float64s
from c5.demo import VirtualCamera
from c5.demo.raw_files import BYTE, LONG, RATIONAL, SHORT, SRATIONAL, Layout, Tag, encode_dng, mosaic
from c5.errors import C5Error
from c5.image import LinearImage, shrink
from c5.io.raw import read_photograph

Numbers = NDArray[np.uint16]


def camera(black_level: int = 512, white_level: int = 15871) -> VirtualCamera:
    """One that LibRaw has never heard of."""
    return VirtualCamera("Test Camera", VirtualCamera.nikon_d5100().sensitivities, black_level, white_level)


def numbers(seed: int, height: int, width: int, *, unit: int = 1, black: int = 512, white: int = 15871) -> Numbers:
    """Sensor numbers (height, width, 3) of smooth light with texture, one color in each square of `unit` photosites."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: -(-height // unit), : -(-width // unit)][..., None]
    phase = rng.uniform(0, 6, 3)
    light = 0.35 + 0.25 * np.sin(y / 19 + phase) * np.cos(x / 31 + phase) + rng.uniform(-0.08, 0.08, (*y.shape[:2], 3))
    whole = np.repeat(np.repeat(np.rint(black + light * (white - black)), unit, axis=0), unit, axis=1)
    return np.asarray(whole[:height, :width], dtype=np.uint16)


def average_units(raw: Numbers, pattern: str, black: float, white: float) -> LinearImage:
    """What each repeat of the filters sees, done slowly, with its colors where they are."""
    side = int(len(pattern) ** 0.5) if pattern else 1
    height, width = raw.shape[0] // side, raw.shape[1] // side
    whole = raw[: height * side, : width * side]
    seen = mosaic(whole, pattern)[..., None] if pattern else whole
    colors = np.array(["RGB".index(letter) for letter in pattern]) if pattern else np.arange(3)
    sites = seen.reshape(height, side, width, side, -1).swapaxes(1, 2).reshape(height, width, -1)
    light = (sites - black) / (white - black)
    rgb: Float64s = np.stack([light[..., colors == color].mean(axis=-1) for color in range(3)], axis=-1)
    clipped: Bools = np.asarray((sites >= white).any(axis=-1))
    return LinearImage(np.clip(rgb, 0, 1), clipped=clipped)


def register(units: LinearImage, pattern: str) -> LinearImage:
    """Each color interpolated from where its photosites are to the centers of the units, done slowly."""
    side = int(len(pattern) ** 0.5) if pattern else 1
    rgb = units.rgb.astype(np.float64)
    for channel, letter in enumerate("RGB" if pattern else ""):
        found = np.argwhere(np.array(list(pattern)).reshape(side, side) == letter)
        for axis, place in enumerate((found.mean(axis=0) + 0.5) / side):
            count = rgb.shape[axis]
            centers, seen = np.arange(count) + 0.5, np.arange(count) + place
            moved = [np.interp(centers, seen, line) for line in np.moveaxis(rgb[..., channel], axis, 1)]
            rgb[..., channel] = np.moveaxis(np.array(moved), 1, axis)
    return LinearImage(rgb, clipped=units.clipped)


def expected_image(raw: Numbers, pattern: str = "RGGB", black: float = 512, white: float = 15871) -> LinearImage:
    """What the reader must come to where nothing is clipped and a pixel is a few units, away from borders."""
    return shrink(register(average_units(raw, pattern, black, white), pattern))


def tagged_dng(pixels: Numbers, tags: dict[int, tuple[int, tuple[Any, ...]]] | None = None, **options: Any) -> bytes:
    """A small DNG, RGGB unless its tags say otherwise: tag number to (type, values); no values leave a tag out."""
    shown: dict[int, tuple[int, tuple[Any, ...]]] = {
        33421: (SHORT, (2, 2)),
        33422: (BYTE, (0, 1, 1, 2)),
        50706: (BYTE, (1, 4, 0, 0)),
        50707: (BYTE, (1, 1, 0, 0)),
        50714: (LONG, (512,)),
        50717: (LONG, (15871,)),
        **(tags or {}),
    }
    extra = [
        (code, kind, len(values) // (2 if kind in (RATIONAL, SRATIONAL) else 1), values, True)
        if kind != 2
        else (code, kind, 0, values[0], True)
        for code, (kind, values) in sorted(shown.items())
        if values
    ]
    buffer = io.BytesIO()
    settings: dict[str, Any] = {"photometric": 32803, "rowsperstrip": len(pixels), **options}
    tifffile.imwrite(buffer, pixels, subfiletype=0, software=False, metadata=None, extratags=extra, **settings)
    return buffer.getvalue()


def after_preview(pixels: Numbers, byteorder: str = "<", *, is_dng: bool = True) -> bytes:
    """A file as cameras write them: the first directory has a preview and the camera, one below it the mosaic."""
    extra: list[Tag] = [(271, 2, 0, "Test", True), (272, 2, 0, "Camera", True)]
    if is_dng:
        extra += [(50706, BYTE, 4, (1, 4, 0, 0), True), (50728, RATIONAL, 3, (1, 2, 1, 1, 3, 4), True)]
    sensor: list[Tag] = [(33421, SHORT, 2, (2, 2), True), (33422, BYTE, 4, (0, 1, 1, 2), True)]
    sensor += [(50714, LONG, 1, 512, True), (50717, LONG, 1, 15871, True)]
    settings: dict[str, Any] = {"metadata": None, "software": False}
    buffer = io.BytesIO()
    with tifffile.TiffWriter(buffer, byteorder=byteorder) as tiff:
        preview = np.full((30, 40, 3), 99, np.uint8)
        tiff.write(preview, photometric="rgb", subfiletype=1, subifds=1, extratags=extra, **settings)
        tiff.write(pixels, photometric=32803, subfiletype=0, rowsperstrip=len(pixels), extratags=sensor, **settings)
    return buffer.getvalue()


def set_number(data: bytes, code: int, value: int, *, new_code: int | None = None) -> bytes:
    """The same little-endian TIFF with one tag another number, and renamed where a code is given."""
    whole = bytearray(data)
    entry = next(place for place in range(10, len(data), 12) if data[place : place + 2] == struct.pack("<H", code))
    whole[entry : entry + 12] = struct.pack("<HHII", code if new_code is None else new_code, LONG, 1, value)
    return bytes(whole)


def with_tags(data: bytes, tags: Mapping[int, tuple[int, bytes] | None]) -> bytes:
    """The same little-endian TIFF with tags replaced or added, number to (type, packed values), or left out."""
    (first,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, first)
    entries = {place: data[first + 2 + 12 * place :][:12] for place in range(count)}
    kept = [entry for entry in entries.values() if struct.unpack("<H", entry[:2])[0] not in tags]
    made = bytearray(data + b"\0" * (len(data) % 2))
    for code, tag in tags.items():
        if tag is not None:
            kind, values = tag
            length = len(values) // {SHORT: 2, LONG: 4, RATIONAL: 8, SRATIONAL: 8}.get(kind, 1)
            place = values.ljust(4, b"\0") if len(values) <= 4 else struct.pack("<I", len(made))
            kept.append(struct.pack("<HHI", code, kind, length) + place)
            made += values + b"\0" * (len(values) % 2) if len(values) > 4 else b""
    made[4:8] = struct.pack("<I", len(made))
    kept.sort(key=lambda entry: struct.unpack("<H", entry[:2]))
    return bytes(made) + struct.pack("<H", len(kept)) + b"".join(kept) + bytes(4)


def rationals(*values: float) -> bytes:
    """Numbers as a TIFF stores them as SRATIONAL, and as RATIONAL where none is negative."""
    return struct.pack(f"<{2 * len(values)}i", *(part for value in values for part in (round(value * 1e6), 10**6)))


def with_exif(data: bytes, time: str, placeholder: int) -> bytes:
    """The same TIFF with an Exif directory that holds a time, its pointer in the place of another tag."""
    start = len(data) + len(data) % 2
    text = time.encode() + b"\0"
    directory = struct.pack("<HHHIII", 1, 36867, 2, len(text), start + 18, 0)
    return set_number(data, placeholder, start, new_code=34665).ljust(start, b"\0") + directory + text


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes changed, most of them in the tags; or a piece cut out, doubled or zeroed."""
    bad = bytearray(data)
    head = min(len(bad), 1000)
    kind = rng.integers(8)
    if kind < 5:
        for place in rng.integers(0, head if kind < 4 else len(bad), rng.integers(1, 5)):
            bad[place] = rng.choice([0, 1, 2, 127, 128, 255, int(rng.integers(256))])
    elif kind == 5:
        place = int(rng.integers(0, head - 4)) // 4 * 4
        bad[place : place + 4] = struct.pack("<I", rng.choice([0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, len(bad) - 1]))
    else:
        first, last = sorted(int(place) for place in rng.integers(0, len(bad), 2))
        bad[first:last] = b"" if kind == 6 else bytes(last - first)
    return bytes(bad)


def fuzz(seed: int, count: int) -> None:
    """Read damaged files; anything that is not an error of ours ends the process."""
    rng = np.random.default_rng(seed)
    raw = numbers(seed, 40, 62)
    layouts = [Layout(), Layout(lossless_jpeg=True), Layout(""), Layout("GRBG", border=(3, 4, 1, 2), matrices=1)]
    whole = [encode_dng(raw, camera(), layout) for layout in layouts]
    read = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.dng"
        for i in range(count):
            path.write_bytes(damage(whole[i % len(whole)], rng))
            try:
                photograph = read_photograph(path)
            except C5Error as error:
                assert "\n" not in str(error)  # noqa: PT017
            else:
                read += 1
                assert np.isfinite(photograph.image.rgb).all()
    print(f"{read} of {count} were read")


if __name__ == "__main__":
    fuzz(int(sys.argv[1]), int(sys.argv[2]))
