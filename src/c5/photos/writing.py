"""Where the files for photographs go, how they are written, and how that is undone.

Nothing is written over a photograph, nor over what c5 did not write itself: `c5.io.files.write_file` ensures that.
This module covers sets: no output overwrites another, and sidecars keep their other content.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from pathlib import Path

import numpy as np

from c5.errors import C5Error, ReadError, WriteError
from c5.io.files import read_bytes, remove_file, write_file
from c5.io.marks import cut_signature, is_signed
from c5.photos.balancing import Balance
from c5.photos.files import Failure
from c5.photos.outputs import Output
from c5.photos.sidecars.marks import CustomBalanceError, is_marked, merge, take_back

Holds = Callable[[Path], bool]


class Undone(Enum):
    """What happened to a file when c5 undid what it had written."""

    REMOVED = "removed"
    RESTORED = "restored"
    CHANGED = "kept with your changes"
    OTHERS = "kept, since it shows other photographs"
    FOREIGN = "not by c5"


_SHOWN = re.compile(rb"\xff\xfe..(shows(?: [0-9a-f]{16})+)", re.DOTALL)
"""The comment of a contact sheet."""


def plan_outputs(
    paths: Sequence[Path],
    wanted: dict[str, Output],
    folder: Path | None,
    root: Path | None = None,
    is_cataloged: Holds = lambda path: False,
) -> tuple[dict[tuple[Path, str], Path], list[Failure]]:
    """The places of all outputs, in a folder or beside each photograph, by photograph and name of the output.

    In a folder they are arranged as the photographs are below `root`. No output takes the place of a photograph of the
    set or of the catalog, nor of another output: one would be lost. Outputs that would are returned as failures.
    """
    find_original = protect(paths, is_cataloged)
    claims: dict[tuple[object, str], list[tuple[Path, str, Path]]] = {}
    for name, output in wanted.items():
        for path in paths:
            place = _folder_of(path, folder, root) / output.name(path)
            claims.setdefault(_identify(place), []).append((path, name, place))
    places: dict[tuple[Path, str], Path] = {}
    refused: list[Failure] = []
    for rivals in claims.values():
        for path, name, place in rivals:
            if original := find_original(place):
                refused.append(Failure(path, f"{path}: {place} {original}; write to another folder"))
            elif len(rivals) > 1:
                others = ", ".join(str(other) for other, kind, _ in rivals if (other, kind) != (path, name))
                message = f"{path}: {place} is wanted for {others} too; write each to a folder of its own"
                refused.append(Failure(path, message))
            else:
                places[path, name] = place
    return places, refused


def protect(paths: Sequence[Path], is_cataloged: Holds) -> Callable[[Path], str]:
    """A function that tells whether a path is that of an original photograph, which must not be overwritten.

    It gives the reason, or an empty text if it is not. It sees through links and other spellings of a path.
    """
    names = {_identify(path) for path in paths}
    numbers = {number for number in map(_number, paths) if number is not None}

    def find(place: Path) -> str:
        if _identify(place) in names or _number(place) in numbers:
            return "is a photograph of this set"
        return "is in the catalog" if is_cataloged(place) else ""

    return find


def write_output(
    balance: Balance,
    output: Output,
    place: Path,
    *,
    overwrite: bool = False,
    replace_custom: bool = False,
    dry_run: bool = False,
) -> Path | None:
    """Write one file for a photograph; None if it is there already and would not change.

    What exists stays unless it may be overwritten. Then the other content of a sidecar is kept; a balance that a person
    set there is a `CustomBalanceError` unless it may be replaced. A dry run does the same without writing.
    """
    exists = os.path.lexists(place)
    if exists and not overwrite:
        raise WriteError(f"{place}: exists already; overwrite it, or write to another folder")
    own = balance.path.with_name(output.name(balance.path))  # where programs look
    existing = read_bytes(place) if output.keeps and exists else None
    beside = read_bytes(own) if output.keeps and os.path.exists(own) and _identify(own) != _identify(place) else None
    try:
        if output.form is None:
            content = output.make(balance, beside if existing is None else existing)
        else:
            make, as_shot = partial(output.make, balance), balance.photo.as_shot
            how = {"replace_custom": replace_custom, "chosen": balance.source == "hand"}
            content = merge(output.form(), make, existing, beside, as_shot=as_shot, **how)
    except CustomBalanceError as error:
        raise CustomBalanceError(f"{place}: {error}") from None
    except C5Error as error:
        source = own if beside is not None else place
        blamed = source if isinstance(error, ReadError) and (existing or beside) is not None else balance.path
        raise type(error)(Failure.of(blamed, error).message) from None
    if content == existing:
        return None
    return write_file(place, content, merged=existing, dry_run=dry_run)


def undo_output(photo: Path, output: Output, place: Path, *, dry_run: bool = False) -> Undone:
    """Undo what c5 wrote for a photograph: a picture or a copy is removed, a sidecar becomes what it was before."""
    if output.form is None:
        return remove_own(place, photo if output.copies else None, dry_run=dry_run)
    existing, form = read_bytes(place), output.form()
    try:
        former = take_back(form, existing)
        is_ours = is_marked(form, existing)
    except ReadError as error:
        if b"c5" not in existing.lower():  # damaged, but not by us
            return Undone.FOREIGN
        raise ReadError(Failure.of(place, error).message) from None
    if former == existing:
        return Undone.CHANGED if is_ours else Undone.FOREIGN
    if former is not None:
        if not dry_run:
            write_file(place, former, merged=existing)
        return Undone.RESTORED
    return _remove(place, dry_run=dry_run)


def name_shown(paths: Iterable[Path]) -> bytes:
    """The comment in a contact sheet that says which photographs it shows: digests of names, sizes and times."""
    return b" ".join([b"shows", *(_digest(path) for path in paths)])


def remove_sheet(place: Path, paths: Iterable[Path], *, dry_run: bool = False) -> Undone:
    """Remove a contact sheet that c5 signed, unless it shows photographs other than these."""
    existing = read_bytes(place)
    if not is_signed(existing):
        return Undone.FOREIGN
    found = _SHOWN.search(existing)
    if found is None or not {*found[1].split()} <= {b"shows", *map(_digest, paths)}:
        return Undone.OTHERS
    return _remove(place, dry_run=dry_run)


def remove_own(place: Path, copy_of: Path | None = None, *, dry_run: bool = False) -> Undone:
    """Remove a picture that c5 signed, or a copy of a photograph, but the copy only while the photograph exists."""
    existing = read_bytes(place)
    if not is_signed(existing):
        return Undone.FOREIGN
    if copy_of is not None:
        original = cut_signature(read_bytes(copy_of)) if os.path.exists(copy_of) else b""
        old, new = (np.frombuffer(data, np.uint8, len(original)) for data in (original, existing.ljust(len(original))))
        if np.count_nonzero(old != new) >= len(original) // 8:  # tags may differ, pixels do not
            return Undone.FOREIGN
    return _remove(place, dry_run=dry_run)


def _digest(path: Path) -> bytes:
    try:
        status = os.stat(path)
    except OSError:  # it has vanished
        return b"-"
    known = f"{status.st_size} {status.st_mtime_ns} ".encode() + os.fsencode(path.name)
    return hashlib.blake2b(known, digest_size=8).hexdigest().encode()


def _remove(place: Path, *, dry_run: bool) -> Undone:
    if os.path.islink(place):  # a person made it
        return Undone.CHANGED
    if not dry_run:
        remove_file(place)
    return Undone.REMOVED


def _folder_of(path: Path, folder: Path | None, root: Path | None) -> Path:
    if folder is None:
        return path.parent
    if root is None:
        return folder
    return folder / os.path.relpath(os.path.abspath(path.parent), root)


def _identify(path: Path) -> tuple[object, str]:
    """The same for two paths that would be one file, also on a disk that ignores case or Unicode composition."""
    folder, name = os.path.split(os.path.realpath(path))
    name = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    try:
        status = os.stat(folder)
    except OSError:  # it does not exist yet
        return folder, name
    return (status.st_dev, status.st_ino), name


def _number(path: Path) -> tuple[int, int] | None:
    """What identifies a file on its file system, whatever its name; None if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
