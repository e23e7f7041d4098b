"""Photographs on disk: which there are, which are the same, and what the catalogue keeps of each."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from c5.color import Float32s
from c5.errors import ReadError
from c5.histograms import Grid, histogram, vividness
from c5.io.raw import RAW_SUFFIXES, Photograph

GRID = Grid(powers=(3, 1))
"""What the stored histograms are on: the grid of the bundled model's rolls, which so need no photograph twice."""

SUFFIXES = RAW_SUFFIXES | {".tif", ".tiff", ".png", ".npy"}
"""Files that can hold linear pixels. JPEG never does."""

OWN_PREVIEWS = (".c5.jpg", ".c5.png")
"""What the names of our own pictures of photographs end in: they are no photographs."""

END_BYTES = 64 * 1024
INNER_BYTES = 16 * 1024
INNER_BLOCKS = 4
"""A digest is of both ends of a file and of blocks evenly between them; of all of it where that is not much more."""


Reader: TypeAlias = Callable[[Path], Photograph]


class Version(NamedTuple):
    """What tells that a file has changed, without opening it."""

    size: int
    modified: int  # nanoseconds


class Content(NamedTuple):
    """What is kept of a photograph."""

    camera: str | None
    time: str | None
    vividness: float
    packed: bytes


@dataclass
class Found:
    """What lies below some folders."""

    files: dict[bytes, Version] = field(default_factory=dict)
    folders: set[bytes] = field(default_factory=set)
    """Those with something in them: a disk that is not mounted shows as an empty folder, or as none."""
    unreadable: list[tuple[Path, str]] = field(default_factory=list)


def is_photograph(path: Path) -> bool:
    """Whether a file may be a linear photograph, by its name. Hidden ones are not, nor pictures that c5 has made."""
    name = path.name.lower()
    return path.suffix.lower() in SUFFIXES and not name.startswith(".") and not name.endswith(OWN_PREVIEWS)


def find_photographs(roots: Iterable[bytes]) -> Found:
    """The files that may be linear photographs. Hidden ones are passed over; links are not followed, so none loops."""
    found = Found()
    folders = []
    for root in roots:
        if os.path.isdir(root):
            folders.append(root)
        else:
            found.files[root] = _version(os.stat(root))
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError as error:
            path = Path(os.fsdecode(folder))
            found.unreadable.append((path, f"{path}: cannot be opened: {error.strerror}; check the permissions"))
            continue
        if entries:
            found.folders.add(folder)
        for entry in entries:
            if entry.name.startswith(b"."):
                continue
            with suppress(FileNotFoundError):  # gone since it was listed
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif is_photograph(Path(os.fsdecode(entry.name))) and entry.is_file(follow_symlinks=False):
                    found.files[entry.path] = _version(entry.stat(follow_symlinks=False))
    return found


def resolve(path: str | Path) -> bytes:
    """The one way to spell a path, whether or not there is something."""
    return os.fsencode(os.path.realpath(os.path.expanduser(path)))


def resolve_existing(path: str | Path) -> bytes:
    resolved = resolve(path)
    if not os.path.exists(resolved):
        raise ReadError(
            f"{path}: no such folder; connect its disk, or forget what was in it with c5 catalog forget {path}"
        )
    return resolved


def digest_file(path: bytes) -> tuple[Version, bytes]:
    """A file's version and a digest of its content, the same wherever it lies.

    Six small blocks and the size tell photographs apart: the noise of no two is alike.
    """
    with open(path, "rb") as file:
        version = _version(os.fstat(file.fileno()))
        digest = hashlib.blake2b(version.size.to_bytes(8, "little"), digest_size=16)
        if version.size <= 2 * END_BYTES + INNER_BLOCKS * INNER_BYTES:
            digest.update(file.read())
        else:
            inner = (version.size * (block + 1) // (INNER_BLOCKS + 1) for block in range(INNER_BLOCKS))
            digest.update(file.read(END_BYTES))
            for offset in inner:
                file.seek(offset)
                digest.update(file.read(INNER_BYTES))
            file.seek(version.size - END_BYTES)
            digest.update(file.read(END_BYTES))
    return version, digest.digest()


def read_content(path: Path, read: Reader) -> Content:
    photograph = read(path)
    counted = histogram(photograph.image, GRID)
    camera, time = photograph.image.camera, photograph.time
    return Content(
        printable(camera.strip()) or None if camera else None,
        # A camera's clock tells local time; a zone beside it would only disturb the order.
        time.replace(tzinfo=None).isoformat(" ", "microseconds") if time else None,
        float(vividness(counted[None], GRID)[0]),
        pack(counted),
    )


def pack(histograms: Float32s) -> bytes:
    """Histograms on `GRID` as float16, compressed: most bins are empty."""
    return zlib.compress(histograms.astype("<f2").tobytes())


def unpack(packed: bytes) -> Float32s:
    """Of `GRID.shape`, float32; damaged ones raise `zlib.error` or `ValueError`."""
    values = np.frombuffer(zlib.decompress(packed), "<f2")
    return values.reshape(GRID.shape).astype(np.float32)


def printable(text: str) -> str:
    """Text that can be stored: names of files need not be."""
    return text.encode("utf-8", "backslashreplace").decode()


def _version(status: os.stat_result) -> Version:
    return Version(status.st_size, status.st_mtime_ns)
