"""Opening regular files only, and writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from c5.errors import ReadError, WriteError


def open_regular(path: str | bytes | Path) -> BinaryIO:
    """Open a file to read from. Folders, pipes, devices and sockets raise OSError and are not opened."""
    _check_regular(path, os.stat(path).st_mode)
    # What the path names may change between the two; opening must not wait for somebody to write into a pipe.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        _check_regular(path, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_regular(path: str | bytes | Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe, a device or a socket, not a file", os.fspath(path))


def write_file(path: str | Path, data: bytes) -> Path:
    """Write a file under a temporary name beside its place, then rename it: nobody ever sees half of it."""
    asked, path = Path(path), Path(os.path.realpath(path))  # a link stays a link
    if os.path.exists(path) and not path.is_file():
        raise WriteError(f"{path}: is no file to write to; choose another place")
    temporary = path.with_name(f".{uuid4().hex}.c5")  # a name of its own length may be too long for the disk
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:  # an interruption too must leave nothing behind
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror or error}; choose another place") from error
    return asked


def cache_folder() -> Path:
    """Where what can be computed again is kept."""
    return _own_folder("user_cache_dir", ".cache")


def data_folder() -> Path:
    """Where the user's catalogue is kept."""
    return _own_folder("user_data_dir", ".local/share")


def config_folder() -> Path:
    """Where the user's defaults are kept."""
    return _own_folder("user_config_dir", ".config")


def _own_folder(kind: str, otherwise: str) -> Path:
    try:
        import platformdirs
    except ImportError:  # on a machine for training alone
        return Path.home() / otherwise / "c5"
    return Path(getattr(platformdirs, kind)("c5"))


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ReadError(f"{path}: not UTF-8; save it so") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
        raise ReadError(f"{path}: not TOML: {error}") from None
