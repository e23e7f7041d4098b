"""Where photographs are read from and results are kept: a folder, or an address in object storage (fsspec).

A place is known by its address alone, so that it can be sent to other processes and machines. Credentials are found by
the storage's own library in the environment of whoever reads or writes; none is ever part of an address or a message.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol

from c5.archive.ranges import BLOCK, ChangedError, fetch
from c5.errors import C5Error, ParameterError, ReadError, WriteError
from c5.io.files import printable, read_bytes, write_file
from c5.io.versions import file_version
from c5.photos.files import is_photograph
from c5.regular import open_regular

ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://")

LIBRARIES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}
"""What fsspec needs for an address, where it does not say so itself."""

VERSIONS = ("ETag", "etag", "generation", "md5Hash", "LastModified", "last_modified", "updated", "mtime", "created")
"""What storages call the value that shows that an object has changed, best first."""


class StoredFile(NamedTuple):
    """A photograph as it was listed."""

    path: str
    """Below the place, with / between its parts."""
    size: int
    version: str
    """Changes when the file does."""


class Place(Protocol):
    """A folder, or an address in object storage."""

    at_once: ClassVar[int]
    """How many photographs are worth reading at once: while one is awaited, another can be decoded."""

    @property
    def address(self) -> str: ...

    def check(self) -> None:
        """Raise an error if there is no such place, or if it may not be looked at."""

    def entries(self) -> Iterator[StoredFile]:
        """The photographs below, in order: one folder after another, each sorted by name. Hidden ones are left out."""

    def names(self, folder: str) -> set[str]:
        """The files in a folder; none if there is no such folder."""

    def read(self, name: str) -> bytes: ...

    def open(self, name: str) -> BinaryIO:
        """A file, to read parts of."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all."""

    def move(self, name: str, to: str) -> None: ...

    def remove(self, name: str) -> None: ...

    def borrow(self, entry: StoredFile) -> Any:
        """A context with a file on this machine that reads like the photograph."""

    def join(self, path: str) -> str:
        """The whole address of a file below."""


def find_place(address: str) -> Place:
    """A folder, or whatever fsspec knows: s3://BUCKET/FOLDER, gs://..., az://..."""
    if not ADDRESS.match(address):
        return Folder(os.path.abspath(os.path.expanduser(address)))
    scheme, _, rest = address.partition("://")
    if "@" in rest.partition("/")[0]:
        raise ParameterError(f"{scheme}://...: credentials do not belong in an address; set them in the environment")
    if scheme == "file":
        return Folder(os.path.abspath(rest))
    return Storage(f"{scheme}://{rest.rstrip('/')}")


@dataclass(frozen=True)
class Folder:
    """A place on a disk of this machine, or on one that all machines share."""

    address: str
    at_once: ClassVar[int] = 1

    def check(self) -> None:
        if not os.path.isdir(self.address):
            raise ReadError(f"{self.address}: no such folder on this machine; check the path")
        if not os.access(self.address, os.R_OK | os.X_OK):
            raise ReadError(f"{self.address}: cannot be opened; check the permissions")

    def entries(self) -> Iterator[StoredFile]:
        folders = [""]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(self.join(folder)) as listing:
                    found = sorted(listing, key=lambda entry: entry.name)
            except FileNotFoundError:
                continue  # gone since it was listed
            except OSError as error:
                where = printable(self.join(folder))
                raise ReadError(f"{where}: cannot be opened: {error.strerror}; check the permissions") from None
            below = []
            for each in found:
                name = f"{folder}/{each.name}".lstrip("/")
                if each.is_dir(follow_symlinks=False) and _is_shown(each.name):
                    below.append(name)
                elif each.is_file(follow_symlinks=False) and is_photograph(Path(each.name)):
                    with suppress(FileNotFoundError):
                        status = each.stat(follow_symlinks=False)
                        yield StoredFile(name, status.st_size, str(status.st_mtime_ns))
            folders += reversed(below)

    def names(self, folder: str) -> set[str]:
        try:
            return {name for name in os.listdir(self.join(folder)) if not name.startswith(".")}
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise ReadError(f"{self.address}: cannot be opened: {error.strerror}; check the permissions") from None

    def read(self, name: str) -> bytes:
        return read_bytes(self.join(name))

    def open(self, name: str) -> BinaryIO:
        try:
            return open_regular(self.join(name))
        except OSError as error:
            raise ReadError(f"{self.join(name)}: cannot be read: {error.strerror or error}") from None

    def write(self, name: str, data: bytes) -> None:
        write_file(self.join(name), data)

    def move(self, name: str, to: str) -> None:
        try:
            os.replace(self.join(name), self.join(to))
        except OSError as error:
            raise WriteError(f"{self.join(to)}: cannot be written: {error.strerror}") from None

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.join(name))

    @contextmanager
    def borrow(self, entry: StoredFile) -> Iterator[Path]:
        path = Path(self.address, entry.path)
        try:
            yield path
        finally:
            found = file_version(path)
            if found is None or (found.size, str(found.modified)) != entry[1:]:
                raise ChangedError

    def join(self, path: str) -> str:
        return os.path.join(self.address, path)


@dataclass(frozen=True)
class Storage:
    """A place in object storage."""

    address: str
    at_once: ClassVar[int] = 4

    @property
    def _root(self) -> str:
        return self.address.partition("://")[2]

    @property
    def _files(self) -> Any:
        return _find_storage(self.address.partition("://")[0])

    def check(self) -> None:
        with _asking(self.address):
            self._files.ls(self._root, detail=False)

    def entries(self) -> Iterator[StoredFile]:
        folders = [self._root]
        while folders:
            folder = folders.pop()
            with _asking(self.address):
                try:
                    found = sorted(self._files.ls(folder, detail=True), key=lambda each: str(each["name"]))
                except FileNotFoundError:
                    if folder == self._root:
                        raise
                    continue  # gone since it was listed
            below = []
            for each in found:
                name = str(each["name"]).rstrip("/")
                if each["type"] == "directory":
                    below += [name] if _is_shown(name.rpartition("/")[2]) else []
                elif is_photograph(Path(name)):
                    yield StoredFile(name[len(self._root) :].lstrip("/"), int(each["size"]), _version(each))
            folders += reversed(below)

    def names(self, folder: str) -> set[str]:
        with _asking(self.address):
            try:
                listed = self._files.ls(f"{self._root}/{folder}".rstrip("/"), detail=False)
            except FileNotFoundError:
                return set()
        return {name for each in listed if (name := str(each).rstrip("/").rpartition("/")[2])}

    def read(self, name: str) -> bytes:
        with _asking(self.join(name)):
            return bytes(self._files.cat_file(f"{self._root}/{name}"))

    def open(self, name: str) -> BinaryIO:
        with _asking(self.join(name)):
            opened: BinaryIO = self._files.open(f"{self._root}/{name}", "rb", block_size=BLOCK)
            return opened

    def write(self, name: str, data: bytes) -> None:
        with _asking(self.join(name), WriteError):
            self._files.pipe_file(f"{self._root}/{name}", data)

    def move(self, name: str, to: str) -> None:
        with _asking(self.join(to), WriteError):
            self._files.mv(f"{self._root}/{name}", f"{self._root}/{to}")

    def remove(self, name: str) -> None:
        with _asking(self.join(name), WriteError), suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{name}")

    @contextmanager
    def borrow(self, entry: StoredFile) -> Iterator[Path]:
        """A copy of as many of its bytes as are needed, with holes where they are not."""
        name = f"{self._root}/{entry.path}"
        with tempfile.TemporaryDirectory(prefix="c5-") as folder:
            copy = Path(folder, PurePosixPath(entry.path).name)
            try:
                with _asking(self.join(entry.path)):
                    fetch(copy, entry.size, lambda start, end: self._files.cat_file(name, start=start, end=end))
            finally:
                self._check_unchanged(entry)
            yield copy

    def _check_unchanged(self, entry: StoredFile) -> None:
        with _asking(self.join(entry.path)):
            try:
                now = self._files.info(f"{self._root}/{entry.path}")
            except FileNotFoundError:
                raise ChangedError from None
            if (int(now["size"]), _version(now)) != entry[1:]:
                raise ChangedError

    def join(self, path: str) -> str:
        return f"{self.address}/{path}"


def _is_shown(name: str) -> bool:
    """Whether what is in a folder counts: not if it is hidden, or kept by this package with its results."""
    return not name.startswith((".", "_work"))


def _version(described: dict[str, Any]) -> str:
    return next((str(described[key]) for key in VERSIONS if described.get(key)), "")


@cache
def _find_storage(scheme: str) -> Any:
    """fsspec's access to a kind of storage. It caches no listings: they are long, and they change."""
    try:
        import fsspec
    except ImportError:
        raise ParameterError(f"{scheme}:// needs fsspec: run pip install 'c5-awb[archive]'") from None
    try:
        return fsspec.filesystem(scheme, use_listings_cache=False)
    except ImportError:
        library = LIBRARIES.get(scheme)
        remedy = f"run pip install {library}" if library else "install what fsspec needs for it"
        raise ParameterError(f"{scheme}:// cannot be opened yet: {remedy}, on every machine") from None
    except ValueError:
        raise ParameterError(
            f"{scheme}:// is not a storage that fsspec knows; give s3://, gs://, az:// or a folder"
        ) from None


@contextmanager
def _asking(address: str, kind: type[C5Error] = ReadError) -> Iterator[None]:
    """Turn what a storage's library raises into one line. Put nothing inside but calls to it."""
    try:
        yield
    except C5Error:
        raise
    except FileNotFoundError:
        raise kind(f"{address}: no such bucket, folder or object; check the address") from None
    except PermissionError:
        remedy = "check the credentials in the environment, and what they allow"
        raise kind(f"{address}: permission denied; {remedy}") from None
    except Exception as error:
        reason = printable((str(error).splitlines() or [""])[0][:200])
        what = f"the storage does not answer as it should ({type(error).__name__}: {reason})"
        raise kind(
            f"{address}: {what}; check the address, the network and the credentials in the environment"
        ) from None
