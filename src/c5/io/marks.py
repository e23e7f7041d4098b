"""How c5 knows a file that it wrote itself, so that it never replaces any other.

Pictures, DNG copies, Markdown and LaTeX carry a signature: `c5-awb` and a digest of everything else in the file. It
holds until a byte of the file changes. The other formats are known by what they hold: the members of an archive, the
keys of JSON, the columns of a table.
"""

from __future__ import annotations

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
_TIFF = _Place(re.compile(_TEXT + rb"\n\Z"), b"%s\n")  # behind everything that its directories name
_MARKDOWN = _Place(re.compile(rb"\n<!-- " + _TEXT + rb" -->\n\Z"), b"\n<!-- %s -->\n")
_LATEX = _Place(re.compile(rb"\n% " + _TEXT + rb"\n\Z"), b"\n%% %s\n")


def sign(data: bytes, suffix: str = "") -> bytes:
    """The content of a file with its signature, where its format has room for one. The suffix tells text from text."""
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
    """Whether a file is one of c5's, of the kind that is going to replace it."""
    if _place(made, suffix) is not None:
        return is_signed(existing, suffix)
    names, wanted = _names(existing), _names(made)
    return bool(names and wanted) and 2 * len(names & wanted) >= min(len(names), len(wanted))


def _place(data: bytes, suffix: str) -> _Place | None:
    starts = {b"\xff\xd8\xff": _JPEG, b"\x89PNG\r\n\x1a\n": _PNG, TIFF_STARTS[0]: _TIFF, TIFF_STARTS[1]: _TIFF}
    for start, place in starts.items():
        if data.startswith(start):
            return place
    return {".md": _MARKDOWN, ".tex": _LATEX}.get(suffix.lower())


def _names(data: bytes) -> frozenset[str]:
    """What the parts of a file are called: members of an archive, keys of JSON or of its first line, columns.

    A file may also begin with a line that says what it is: `c5 ...`.
    """
    if data.startswith(b"PK"):
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                return frozenset(archive.namelist())
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
            return frozenset()
    first = data.partition(b"\n")[0]
    if data.startswith(b"{"):
        for text in (data, first):
            try:
                content = json.loads(text)
            except (ValueError, RecursionError):
                continue
            return frozenset(content) if isinstance(content, dict) else frozenset()
    line = first.decode("utf-8", "replace").strip()
    cells = line.split(",")
    return frozenset(cells) if len(cells) > 2 or line.startswith("c5 ") else frozenset()


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).hexdigest().encode()
