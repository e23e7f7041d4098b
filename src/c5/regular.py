"""Reading from regular files only: reading a pipe could block forever, and a device may do anything."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: str | bytes | Path) -> BinaryIO:
    """Open a file to read from. Folders, pipes, devices and sockets raise OSError and are not opened."""
    _check_regular(path, os.stat(path).st_mode)
    # The path may name something else by the time it is opened; opening must not wait for a writer to a pipe.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        _check_regular(path, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | bytes | Path) -> bytes:
    """The whole content of a file, opened by `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def read_text(path: str | Path) -> str:
    """The same as text, which must be UTF-8."""
    return read_regular(path).decode("utf-8")


def _check_regular(path: str | bytes | Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe, a device or a socket, not a file", os.fspath(path))
