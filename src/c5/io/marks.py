"""How c5 recognizes a file that it wrote itself, so that it never replaces any other.

Pictures, DNG copies, Markdown, HTML, LaTeX, Lua and C code carry a signature: `c5-awb` and a digest of everything else
in the file. It holds until a byte of the file changes. The other formats are recognized by their content: the members
of an archive, the format or the keys of JSON, the columns of a table, the producer of an ONNX graph. A cell that
somebody changes in a table goes unnoticed: a signature there would get in the way of every program that reads it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from typing import NamedTuple

TIFF_STARTS = (b"II*\0", b"MM\0*")

_TEXT = rb"c5-awb [0-9a-f]{32}"


class _Place(NamedTuple):
    """Where a format has room for a signature."""

    pattern: re.Pattern[bytes]
    form: bytes


_JPEG = _Place(re.compile(rb"\xff\xfe\0\x29" + _TEXT), b"\xff\xfe\0\x29%s")  # a comment
_PNG = _Place(re.compile(rb"\0\0\0\x30tEXtSoftware\0" + _TEXT + rb".{4}", re.DOTALL), b"tEXtSoftware\0%s")
_TIFF = _Place(re.compile(_TEXT + rb"\n\Z"), b"%s\n")  # after everything that its directories point to
_MARKDOWN = _Place(re.compile(rb"\n<!-- " + _TEXT + rb" -->\n\Z"), b"\n<!-- %s -->\n")
_LUA = _Place(re.compile(rb"\n-- " + _TEXT + rb"\n\Z"), b"\n-- %s\n")
_LATEX = _Place(re.compile(rb"\n% " + _TEXT + rb"\n\Z"), b"\n%% %s\n")
_C = _Place(re.compile(rb"\n/\* " + _TEXT + rb" \*/\n\Z"), b"\n/* %s */\n")
_MAKE = _Place(re.compile(rb"\n# " + _TEXT + rb"\n\Z"), b"\n# %s\n")

_ONNX = b"\x12\x06c5-awb"  # the producer, after the version of the format


def sign(data: bytes, suffix: str = "") -> bytes:
    """The content of a file with its signature, where its format has room for one. The suffix tells texts apart."""
    place = _place(data, suffix)
    if place is None:
        return data
    data = place.pattern.sub(b"", data)
    text = place.form % (b"c5-awb " + _digest(data))
    if place is _JPEG:
        start = 4 + int.from_bytes(data[4:6], "big") if data[2:4] == b"\xff\xe0" else 2  # JFIF's header comes first
        return data[:start] + text + data[start:]
    if place is _PNG:
        return data[:-12] + struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text)) + data[-12:]
    return data + text


def cut_signature(data: bytes, suffix: str = "") -> bytes:
    """What `sign` was given."""
    place = _place(data, suffix)
    return data if place is None else place.pattern.sub(b"", data)


def is_signed(data: bytes, suffix: str = "") -> bool:
    """Whether a file carries a signature, and nothing in it has changed since."""
    return _place(data, suffix) is not None and sign(cut_signature(data, suffix), suffix) == data


def is_own(existing: bytes, made: bytes, suffix: str = "") -> bool:
    """Whether c5 wrote a file, and it is of the same kind as the one that will replace it."""
    place = _place(made, suffix)
    if place is not None:
        return _place(existing, suffix) is place and is_signed(existing, suffix)
    kind = kind_of(made)
    return kind is not None and kind_of(existing) == kind


def kind_of(data: bytes) -> tuple[str, ...] | None:
    """What a file without room for a signature is recognized by; None for an unknown file.

    It is the first member of an archive, the format that JSON names, the keys of every line of JSON, the columns of a
    table that has them in every line, or a first line that says what the file is: `c5 ...`.
    """
    if data.startswith(b"PK"):
        return _kind_of_archive(data)
    if data[:1] == b"\x08" and data[2:].startswith(_ONNX):
        return ("onnx",)
    if data.startswith(b"c5 "):
        return ("c5", data.partition(b"\n")[0].decode("utf-8", "replace"))
    try:
        text = data.decode("utf-8")
        return _kind_of_json(text) if text.startswith("{") else _kind_of_table(text)
    except (ValueError, RecursionError, csv.Error):
        return None


def _place(data: bytes, suffix: str) -> _Place | None:
    starts = {b"\xff\xd8\xff": _JPEG, b"\x89PNG\r\n\x1a\n": _PNG, TIFF_STARTS[0]: _TIFF, TIFF_STARTS[1]: _TIFF}
    starts |= {b"# make ": _MAKE}
    for start, place in starts.items():
        if data.startswith(start):
            return place
    kinds = {".md": _MARKDOWN, ".html": _MARKDOWN, ".tex": _LATEX, ".lua": _LUA, ".c": _C, ".h": _C, ".ld": _C}
    return kinds.get(suffix.lower())


def _kind_of_archive(data: bytes) -> tuple[str, ...] | None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return ("archive", *archive.namelist()[:1])
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return None


def _kind_of_json(text: str) -> tuple[str, ...] | None:
    try:
        objects = [json.loads(text)]
    except ValueError:
        objects = [json.loads(line) for line in text.splitlines()]
    if not all(isinstance(each, dict) for each in objects):
        return None
    if isinstance(name := objects[0].get("format"), str):
        return ("format", name)
    kinds = {tuple(sorted(each)) for each in objects}
    return ("keys", *kinds.pop()) if len(kinds) == 1 and () not in kinds else None


def _kind_of_table(text: str) -> tuple[str, ...] | None:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns = next(rows, [])
    return ("columns", *columns) if len(columns) > 2 and all(len(row) == len(columns) for row in rows) else None


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).hexdigest().encode()
