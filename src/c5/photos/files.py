"""Photographs on disk: which there are, and which cannot be used."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from c5.errors import NotLinearError
from c5.io.files import printable
from c5.io.raw import RAW_SUFFIXES
from c5.io.versions import Version, version_of
from c5.photos.outputs import OWN_PREVIEWS

SUFFIXES = RAW_SUFFIXES | {".tif", ".tiff", ".png", ".npy"}
"""Files that can hold linear pixels. JPEG never does."""


class Failure(NamedTuple):
    """A file that cannot be used, and why."""

    path: Path
    message: str
    """One line that names the file and says what to do."""

    @classmethod
    def of(cls, path: Path, error: Exception) -> Failure:
        """What an exception says about a file."""
        if isinstance(error, OSError):
            return cls(path, printable(f"{path}: cannot be read: {error.strerror or error}"))
        name, reason = printable(path), printable(error) or type(error).__name__
        message = reason if name in reason else f"{name}: {reason}"
        return (Developed if isinstance(error, NotLinearError) else cls)(path, message)


class Developed(Failure):
    """An intact file that is a developed picture, not a raw file."""

    __slots__ = ()


@dataclass
class Listing:
    """The photographs below some folders."""

    files: dict[bytes, Version] = field(default_factory=dict)
    folders: set[bytes] = field(default_factory=set)
    """Those that are not empty: a disk that is not mounted shows as an empty folder, or as none."""
    unreadable: list[Failure] = field(default_factory=list)
    pictures: int = 0
    """JPEG files, which are never linear; previews made by c5 do not count."""


def is_photograph(path: Path) -> bool:
    """Whether a file may be a linear photograph, by its name. Hidden files and pictures made by c5 are not."""
    name = path.name.lower()
    return path.suffix.lower() in SUFFIXES and not name.startswith(".") and not name.endswith(OWN_PREVIEWS)


def find_photographs(roots: Iterable[bytes]) -> Listing:
    """The photographs below some folders. Hidden ones are skipped; links are not followed, so there are no loops."""
    found = Listing()
    folders = []
    for root in roots:
        if os.path.isdir(root):
            folders.append(root)
        else:
            found.files[root] = version_of(os.stat(root))
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError as error:
            path = Path(os.fsdecode(folder))
            message = f"{path}: cannot be opened: {error.strerror}; check the permissions"
            found.unreadable.append(Failure(path, message))
            continue
        if entries:
            found.folders.add(folder)
        for entry in entries:
            if entry.name.startswith(b"."):
                continue
            with suppress(FileNotFoundError):  # gone since it was listed
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    continue
                elif is_photograph(Path(os.fsdecode(entry.name))):
                    found.files[entry.path] = version_of(entry.stat(follow_symlinks=False))
                elif entry.name.lower().endswith((b".jpg", b".jpeg")):
                    found.pictures += not entry.name.lower().endswith(OWN_PREVIEWS[0].encode())
    return found


class Photographs(NamedTuple):
    """The photographs that were asked for."""

    paths: list[Path]
    named: set[Path]
    """Those that were named directly, not found in a folder."""
    exports: int
    """Pictures in the folders that are not raw files: those of cameras, and exports beside their raw file."""
    unreadable: list[Failure]
    """Folders that cannot be opened."""
    root: Path
    """The folder that contains them all."""


def list_photographs(asked: Sequence[Path]) -> Photographs:
    """The files given, and the photographs below the folders given; each once, however its path is spelled."""
    listed: list[Path] = []
    named = {path for path in asked if not os.path.isdir(path)}
    unreadable: list[Failure] = []
    exports = 0
    for path in asked:
        if path in named:
            listed.append(path)
            continue
        found = find_photographs([os.fsencode(path)])
        files = sorted(Path(os.fsdecode(name)) for name in found.files)
        raw = {file.with_suffix("") for file in files if file.suffix.lower() in RAW_SUFFIXES}
        kept = [file for file in files if file.suffix.lower() in RAW_SUFFIXES or file.with_suffix("") not in raw]
        exports += found.pictures + len(files) - len(kept)
        listed += kept
        unreadable += found.unreadable
    paths = list({os.path.realpath(path): path for path in reversed(listed)}.values())[::-1]
    folders = [os.path.abspath(path.parent if path in named else path) for path in asked]
    try:
        root = Path(os.path.commonpath(folders))
    except ValueError:  # on several drives
        root = Path(os.path.abspath(os.sep))
    return Photographs(paths, named, exports, unreadable, root)


def resolve(path: str | Path) -> bytes:
    """The canonical spelling of a path, whether or not it exists."""
    return os.fsencode(os.path.realpath(os.path.expanduser(path)))
