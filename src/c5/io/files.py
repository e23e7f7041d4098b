"""Writing files whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from c5.errors import WriteError


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
    try:
        import platformdirs
    except ImportError:  # on a machine for training alone
        return Path.home() / ".cache" / "c5"
    return Path(platformdirs.user_cache_dir("c5"))
