"""The white balance inside a DNG file: its AsShotNeutral tag, and settings of Adobe's programs, which would win."""

from __future__ import annotations

import io
import itertools
import re
import struct

from numpy.typing import ArrayLike

from c5.color import as_illuminant
from c5.errors import ReadError
from c5.io.raw import AS_SHOT_WHITE_XY, DNG_VERSION, EXIF, SUB_IFDS
from c5.io.tiff import MAX_ENTRIES, MAX_VALUES, STRIP_LENGTHS, STRIP_OFFSETS, TILE_LENGTHS, TILE_OFFSETS, Tag, Tiff
from c5.photos.sidecars.adobe import CAMERA_RAW
from c5.photos.sidecars.xmp import Name, Packet

XMP, AS_SHOT_NEUTRAL, GPS = 700, 50728, 34853

BYTE, SHORT, LONG, RATIONAL, UNDEFINED, IFD = 1, 3, 4, 5, 7, 13
"""Types of TIFF."""

MAX_DIRECTORIES = 256
"""More than any camera's file has; hostile ones could keep a reader busy for hours."""

DENOMINATOR = 10**9
"""As many decimals as a rational can have without overflowing any reader's signed numbers."""

WHITE_BALANCE, *NUMBERS = (Name(CAMERA_RAW, local) for local in ("WhiteBalance", "Temperature", "Tint"))
"""The balance in settings of Adobe's programs."""

DAMAGED = "the DNG is damaged: {}; copy it again from its source"


def replace_neutral(data: bytes, illuminant: ArrayLike) -> bytes:
    """A copy of a DNG file with another AsShotNeutral; all image data stays where and as it was.

    The illuminant is in the file's own linear numbers, before any gain that AnalogBalance says was applied is undone:
    the DNG specification defines the tag that way, and AnalogBalance itself stays. AsShotWhiteXY, which would
    contradict it, is removed. Settings of Adobe's programs inside the file then say "As Shot", in as many bytes as
    before.
    """
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(data[:4])
    if order is None:
        raise ReadError("not a DNG: it does not begin as a TIFF file does")
    stretches = _find_stretches(data, order)
    first, first_end = stretches[0]
    raw = [data[place : place + 12] for place in range(first + 2, first_end - 4, 12)]
    entries = [(struct.unpack_from(f"{order}H", entry)[0], entry) for entry in raw]
    codes = [code for code, _ in entries]
    if DNG_VERSION not in codes:
        raise ReadError("not a DNG: a TIFF file without DNGVersion; convert it to DNG first")
    if XMP in codes:
        place, end = _packet_in(order, dict(entries)[XMP], stretches)
        data = data[:place] + follow_neutral(data[place:end]) + data[end:]
    values = as_illuminant(illuminant)
    numbers = [part for value in values / values.max() for part in (round(float(value) * DENOMINATOR), DENOMINATOR)]
    packed = struct.pack(f"{order}6I", *numbers)
    if codes.count(AS_SHOT_NEUTRAL) == 1 and AS_SHOT_WHITE_XY not in codes:
        _, kind, count, place = struct.unpack(f"{order}HHII", dict(entries)[AS_SHOT_NEUTRAL])
        end = place + len(packed)
        # Some writers store equal values once: these must not be used by anything else.
        is_alone = sum(low < end and place < high for low, high in stretches) == 1
        if kind == RATIONAL and count == 3 and is_alone:
            return data[:place] + packed + data[end:]
    # A new first directory at the end of the file, to which the header points.
    end = len(data) + len(data) % 2
    kept = [(code, entry) for code, entry in entries if code not in (AS_SHOT_NEUTRAL, AS_SHOT_WHITE_XY)]
    kept.append((AS_SHOT_NEUTRAL, struct.pack(f"{order}HHII", AS_SHOT_NEUTRAL, RATIONAL, 3, end)))
    kept.sort(key=lambda pair: pair[0])
    place = end + len(packed)
    if place + 6 + 12 * len(kept) > 0xFFFFFFFF:
        raise ReadError("the DNG is too large to add a tag to: 4 GB are the limit of its format")
    directory = [struct.pack(f"{order}H", len(kept)), *(entry for _, entry in kept), data[first_end - 4 : first_end]]
    header = data[:4] + struct.pack(f"{order}I", place)
    return b"".join([header, data[8:], b"\0" * (end - len(data)), packed, *directory])


def follow_neutral(xmp: bytes) -> bytes:
    """An XMP packet, as long as it was, whose settings leave the balance to AsShotNeutral.

    Their temperature and tint become white space, which makes room for "As Shot".
    """
    if not any(name.local.encode() in xmp for name in (WHITE_BALANCE, *NUMBERS)):
        return xmp
    try:
        packet = Packet(xmp.rstrip(b"\0"))
    except ReadError:
        raise ReadError("the settings inside the DNG are damaged: save it again where they were made") from None
    slots: list[tuple[int, int, str]] = []
    for description in packet.descriptions:
        for name in (WHITE_BALANCE, *NUMBERS):
            found = description.attributes.get(name)
            if found and found.value != "As Shot":
                text = f' {found.qualified}="As Shot"' if name == WHITE_BALANCE else ""
                slots.append((found.start, found.end, text))
            for child in description.find(name):
                if child.text.strip() != "As Shot":
                    text = f"<{child.qualified}>As Shot</{child.qualified}>" if name == WHITE_BALANCE else ""
                    start = child.start
                    while xmp[start - 1 : start].isspace():
                        start -= 1
                    slots.append((start, child.end, text))
    made = bytearray(xmp)
    runs: list[tuple[int, int, str]] = []  # of slots that touch
    for start, end, text in sorted(slots):
        made[start:end] = re.sub(rb"\S", b" ", xmp[start:end])
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], end, runs[-1][2] or text)
        else:
            runs.append((start, end, text))
    for start, end, text in runs:
        if len(text.encode()) <= end - start:  # else it is left out, which means the same
            made[end - len(text.encode()) : end] = text.encode()
    return bytes(made)


def _packet_in(order: str, entry: bytes, stretches: list[tuple[int, int]]) -> tuple[int, int]:
    """Where a packet begins and ends, if it can be changed without changing anything else."""
    _, kind, count, place = struct.unpack(f"{order}HHII", entry)
    end = place + count
    if kind not in (BYTE, UNDEFINED) or count <= 4:
        return 0, 0
    if any(low < end and place < high and (low, high) != (place, end) for low, high in stretches):
        raise ReadError(DAMAGED.format("its settings lie where something else does"))
    return place, end


def _find_stretches(data: bytes, order: str) -> list[tuple[int, int]]:
    """Where everything begins and ends: directories, the first one first, values of tags, strips and tiles, header.

    All of it lies inside the file.
    """
    tiff = Tiff(io.BytesIO(data), len(data), order, is_big=False, first={})
    waiting = [_number(data, f"{order}I", 4)]
    seen: set[int] = set()
    stretches: list[tuple[int, int]] = []
    while waiting:
        place = waiting.pop(0)
        if place in seen or len(seen) >= MAX_DIRECTORIES:
            raise ReadError(DAMAGED.format("its directories have no end"))
        seen.add(place)
        count = _number(data, f"{order}H", place)
        if not 0 < count <= MAX_ENTRIES:
            raise ReadError(DAMAGED.format("a directory of no or too many tags"))
        end = place + 2 + 12 * count + 4
        following = _number(data, f"{order}I", end - 4)
        tags = tiff.directory(place)
        found = [(place, end), *((tag.place, tag.place + tag.size) for tag in tags.values())]
        _check_inside(data, found)
        for offsets, lengths in ((STRIP_OFFSETS, STRIP_LENGTHS), (TILE_OFFSETS, TILE_LENGTHS)):
            if offsets in tags and lengths in tags:
                starts, sizes = (_offsets(tiff, code, tags[code]) for code in (offsets, lengths))
                pairs = itertools.zip_longest(starts, sizes, fillvalue=0)
                found += [(start, start + size) for start, size in pairs]
        _check_inside(data, found)
        stretches += found
        for code in (SUB_IFDS, EXIF, GPS):
            if code in tags and tags[code].kind in (LONG, IFD):
                waiting += [offset for offset in _offsets(tiff, code, tags[code]) if offset]
        waiting += [following] if following else []
    return [*stretches, (0, 8)]


def _offsets(tiff: Tiff, code: int, tag: Tag) -> list[int]:
    if tag.kind not in (SHORT, LONG, IFD) or tag.length > MAX_VALUES:
        raise ReadError(DAMAGED.format(f"tag {code} holds no offsets"))
    return [int(number) for number in tiff.numbers(tag)]


def _number(data: bytes, layout: str, place: int) -> int:
    _check_inside(data, [(place, place + struct.calcsize(layout))])
    return int(struct.unpack_from(layout, data, place)[0])


def _check_inside(data: bytes, stretches: list[tuple[int, int]]) -> None:
    if any(end > len(data) for _, end in stretches):
        raise ReadError(DAMAGED.format("it ends before its data does"))
