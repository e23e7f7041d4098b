"""Writing files whole or not at all, never over a file that c5 did not write."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import stat
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from c5.errors import ReadError, WriteError
from c5.io.marks import is_own, sign
from c5.regular import read_regular

NOT_OWN = "was not written by c5, or has been changed since; choose another place, or remove it first"

OWN_TEMPORARIES = f".c5-{hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()}-"
"""How the names of this machine's temporary files begin; the process number follows."""

_TEMPORARY = re.compile(re.escape(OWN_TEMPORARIES) + r"(\d{1,10})-[0-9a-f]{16}\.tmp")
_looked_at: set[str] = set()


def write_file(path: str | Path, data: bytes, *, merged: bytes | None = None, dry_run: bool = False) -> Path:
    """Write a file under a temporary name beside its place, then rename it: nobody ever sees half of it.

    Whatever is there already stays, unless c5 wrote it itself, or it holds what was `merged` into the new content. So
    no photograph is ever lost, however it is named or linked. Mode and owner stay, and a file that would not change is
    not written. A dry run finds out what is in the way, and writes nothing.
    """
    asked, path = Path(path), Path(os.path.realpath(path))  # a link stays a link
    data = data if merged is not None else sign(data, path.suffix)
    try:
        status, existing = _find_replaceable(path, asked, data, merged)
        if dry_run:
            check_folder(path.parent)
        if existing == data or dry_run:
            return asked
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
        temporary = path.with_name(f"{OWN_TEMPORARIES}{os.getpid()}-{uuid4().hex[:16]}.tmp")
        try:
            with open(temporary, "xb", opener=partial(os.open, mode=0o666 if status is None else 0o600)) as file:
                if status is not None:
                    _keep_owner(file.fileno(), status)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:  # an interruption, too, must leave nothing behind
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise WriteError(f"{asked}: cannot be written: {error.strerror or error}; choose another place") from error
    return asked


def write_files(files: Sequence[tuple[Path, bytes]]) -> None:
    """Write several files, or none of them if something is in the way of one."""
    places = [Path(os.path.realpath(path)) for path, _ in files]
    for place, (path, data) in zip(places, files, strict=True):
        if places.count(place) > 1 or any(place in other.parents for other in places):
            raise WriteError(f"{path}: is wanted for two files; choose another place for one of them")
        write_file(path, data, dry_run=True)
    for path, data in files:
        write_file(path, data)


def _find_replaceable(
    path: Path, asked: Path, data: bytes, merged: bytes | None
) -> tuple[os.stat_result, bytes] | tuple[None, None]:
    """A file that may be replaced, or that is the new one already; None if there is none. Any other is an error."""
    if not os.path.lexists(path):
        return None, None
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise WriteError(f"{asked}: is not a file that can be written; choose another place")
    existing = read_regular(path)
    if existing not in (merged, data) and (merged is not None or not is_own(existing, data, path.suffix)):
        raise WriteError(f"{asked}: {NOT_OWN}")
    return status, existing


def _keep_owner(descriptor: int, status: os.stat_result) -> None:
    if hasattr(os, "fchown"):
        with suppress(OSError):  # only the administrator can change owners
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def remove_leftovers(folder: Path) -> None:
    """Remove what killed runs on this machine left in a folder. Each process looks at a folder once."""
    if str(folder) in _looked_at:
        return
    _looked_at.add(str(folder))
    for name in os.listdir(folder):
        found = _TEMPORARY.fullmatch(name)
        if found and not _is_alive(int(found[1])):
            with suppress(OSError):
                os.unlink(folder / name)


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where asking would kill it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def read_bytes(path: str | Path) -> bytes:
    """The whole content of a file; a `ReadError` if it cannot be read."""
    try:
        return read_regular(path)
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror or error}") from error


def remove_file(path: Path) -> None:
    """Remove a file; a `WriteError` if that cannot be done."""
    try:
        path.unlink()
    except OSError as error:
        raise WriteError(f"{path}: cannot be removed: {error.strerror or error}") from error


def check_folder(folder: Path) -> None:
    """Raise a `WriteError` if nothing can be written to a folder, which may have to be made first."""
    place = folder.absolute()
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise WriteError(f"{folder}: cannot be a folder: {place} is a file; choose another place")
    if not os.access(place, os.W_OK | os.X_OK):
        raise WriteError(f"{folder}: cannot be written to; choose another place")


def printable(text: object) -> str:
    """Text, such as a file name, made safe to store and show: one line, without terminal escape codes."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))


def cache_folder() -> Path:
    """Where data that can be computed again is kept."""
    return _own_folder("user_cache_dir", ".cache")


def data_folder() -> Path:
    """Where the user's catalog is kept."""
    return _own_folder("user_data_dir", ".local/share")


def config_folder() -> Path:
    """Where the user's defaults are kept."""
    return _own_folder("user_config_dir", ".config")


def _own_folder(kind: str, otherwise: str) -> Path:
    try:
        import platformdirs
    except ImportError:  # on a machine used only for training
        return Path.home() / otherwise / "c5"
    return Path(getattr(platformdirs, kind)("c5"))


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds."""
    try:
        return tomllib.loads(read_bytes(path).decode())
    except UnicodeDecodeError:
        raise ReadError(f"{path}: not UTF-8; save it as UTF-8") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
        raise ReadError(f"{path}: not TOML: {error}") from None
