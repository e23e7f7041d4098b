"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from c5.errors import WriteError


def write_file(path: str | Path, data: bytes) -> Path:
    """Write a file under a temporary name beside its place, then rename it: nobody ever sees half of it."""
    asked, path = Path(path), Path(os.path.realpath(path))  # a link stays a link
    if path.exists() and not path.is_file():
        raise WriteError(f"{path}: is no file to write to; choose another place")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:  # an interruption too must leave nothing behind
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror or error}; choose another place") from error
    return asked


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
