"""Where the files for photographs go, and how they are written: never over a photograph, nor over each other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from c5.errors import C5Error, ReadError, WriteError
from c5.io.files import write_file
from c5.photos.balancing import Balance
from c5.photos.files import Failure, read_bytes
from c5.photos.outputs import Output


def plan_outputs(
    paths: Sequence[Path], wanted: dict[str, Output], folder: Path | None
) -> tuple[dict[tuple[Path, str], Path], list[Failure]]:
    """The places of all outputs, in a folder or beside each photograph, by photograph and name of the output.

    No output takes the place of a photograph of the set, and none that of another: both would be lost. Those that
    would come second.
    """
    originals = {_identify(path) for path in paths}
    claims: dict[tuple[object, str], list[tuple[Path, str, Path]]] = {}
    for name, output in wanted.items():
        for path in paths:
            place = (folder or path.parent) / output.name(path)
            claims.setdefault(_identify(place), []).append((path, name, place))
    places: dict[tuple[Path, str], Path] = {}
    refused: list[Failure] = []
    for identity, rivals in claims.items():
        for path, name, place in rivals:
            if identity in originals:
                refused.append(Failure(path, f"{path}: {place} is a photograph of this set; write to another folder"))
            elif len(rivals) > 1:
                others = ", ".join(str(other) for other, kind, _ in rivals if (other, kind) != (path, name))
                message = f"{path}: {place} is wanted for {others} too; write each to a folder of its own"
                refused.append(Failure(path, message))
            else:
                places[path, name] = place
    return places, refused


def check_places(places: Iterable[Path], photographs: Iterable[Path]) -> None:
    """Raise a `WriteError` if a file for the whole set would take the place of one of its photographs."""
    originals = {_identify(path) for path in photographs}
    for place in places:
        if _identify(place) in originals:
            raise WriteError(f"{place}: is a photograph of this set; write to another folder")


def write_output(balance: Balance, output: Output, place: Path, *, overwrite: bool = False) -> Path:
    """Write one file for a photograph. What exists stays unless it may be overwritten; its other content is kept."""
    if os.path.exists(place) and not overwrite:
        raise WriteError(f"{place}: exists already; overwrite it, or write to another folder")
    try:
        source, existing = _find_existing(balance.path, output, place)
        try:
            content = output.make(balance, existing)
        except C5Error as error:
            blamed = source if isinstance(error, ReadError) and existing is not None else balance.path
            raise type(error)(Failure.of(blamed, error).message) from None
        return write_file(place, content)
    except OSError as error:
        raise WriteError(f"{place}: cannot be written: {error.strerror or error}") from error


def _find_existing(photo: Path, output: Output, place: Path) -> tuple[Path, bytes | None]:
    """What a file holds already: the one beside the photograph, where programs look, else the one replaced."""
    if output.keeps:
        for path in (photo.with_name(output.name(photo)), place):
            if os.path.exists(path):
                return path, read_bytes(path)
    return place, None


def _identify(path: Path) -> tuple[object, str]:
    """The same for two paths that would be one file, also on a disk where case does not count."""
    folder, name = os.path.split(os.path.realpath(path))
    try:
        status = os.stat(folder)
    except OSError:  # it is still to be made
        return folder, name.casefold()
    return (status.st_dev, status.st_ino), name.casefold()
