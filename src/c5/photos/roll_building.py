"""The roll of a camera: the photographs from which a model learns what the camera is like.

`build_roll` makes every roll: of a folder, of the catalog's photographs, of the set that is being balanced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from c5.errors import C5Error, ReadError
from c5.histograms import Grid, Histograms, histogram
from c5.image import LinearImage
from c5.io.versions import digest_content
from c5.model import Model, Profile
from c5.parallel import in_parallel
from c5.photos.files import Failure, is_photograph
from c5.photos.outputs import OWN_PREVIEWS
from c5.photos.photo import Photo, Reading, read_photo
from c5.rolls import AnyShot, choose_shots

JPEG_SUFFIXES = (".jpg", ".jpeg")

Load = Callable[[Sequence[Path]], Iterable[Photo | Failure]]
"""Loads the photographs of some files with their histograms, in order, or why they cannot be used."""


class Origin(Enum):
    """Where the knowledge of a camera comes from."""

    NOWHERE = "nowhere"
    """There is no roll: the model works from each image alone."""
    PROFILE = "profile"
    """A profile was given."""
    CATALOG = "catalog"
    FOLDER = "folder"
    SET = "set"
    """Other photographs of the set that is being balanced."""


@dataclass(frozen=True, eq=False)
class Roll:
    """What a model knows of a camera, and which photographs it knows it from."""

    camera: str | None = None
    origin: Origin = Origin.NOWHERE
    profile: Profile | None = None
    paths: tuple[Path, ...] = ()
    """The photographs it was made of."""
    photos: tuple[Photo, ...] = ()
    """The same without their histograms; empty if the profile was made earlier."""
    failures: tuple[Failure, ...] = ()
    """Photographs that were chosen and could not be used."""

    @property
    def size(self) -> int:
        """How many photographs the model knows the camera from."""
        return 0 if self.profile is None else self.profile.n_images


def build_roll(
    model: Model,
    paths: Sequence[Path],
    load: Load,
    *,
    origin: Origin,
    size: int | None = None,
    camera: str | None = None,
) -> Roll:
    """The roll of the first `size` photographs, or of all that the model takes, as `choose_shots` chooses them.

    If none can be used, the roll has no profile; nor if there is only one, and it is to be balanced itself. `camera` is
    the name to keep; by default the one that the files give.
    """
    count = model.takes(len(paths) if size is None else min(size, len(paths)))
    failures: list[Failure] = []
    where = f"{paths[0].parent}: " if paths else ""
    photos, found = choose_shots(paths, count, lambda batch: _drop_failures(load(batch), failures), where=where)
    camera = camera or found
    if origin is Origin.SET and len(photos) == 1 and size != 1:
        photos = []  # no photograph teaches anything about itself
    profile = None
    if photos:
        profile = model.calibrate_histograms([photo.histograms for photo in photos if photo.histograms], camera)
    photos.sort(key=lambda photo: photo.path)
    return Roll(
        camera,
        origin if photos else Origin.NOWHERE,
        profile,
        tuple(photo.path for photo in photos),
        tuple(replace(photo, histograms=None, preview=None) for photo in photos),
        tuple(failures),
    )


def read_roll(
    folder: Path,
    model: Model,
    reading: Reading = Reading(),
    *,
    thumbnails: bool = False,
    zones: tuple[int, int] | None = None,
    track: Callable[[Sequence[Path]], Iterable[Path]] = iter,
) -> Roll:
    """The roll of the photographs in a folder, or of their zones. `track` may show progress over the files read."""
    read = partial(read_photo, grid=model.grid, reading=reading, thumbnail=thumbnails, zones=zones)

    def load(paths: Sequence[Path]) -> Iterable[Photo | Failure]:
        return (photo for _, photo in in_parallel(read, track(paths)))

    roll = build_roll(model, order_by_content(list_roll(folder)), load, origin=Origin.FOLDER)
    if roll.profile is None:
        raise _nothing_usable(folder, roll.failures)
    return roll


def read_shots(
    folder: Path,
    read: Callable[[Path], AnyShot | Failure],
    *,
    camera: str | None = None,
    track: Callable[[Sequence[Path]], Iterable[Path]] = iter,
) -> tuple[list[AnyShot], list[Failure]]:
    """All photographs in a folder that differ, as `read` reads them, and those that cannot be used."""
    failures: list[Failure] = []

    def load(paths: Sequence[Path]) -> Iterable[AnyShot]:
        return _drop_failures((shot for _, shot in in_parallel(read, track(paths))), failures)

    paths = order_by_content(list_roll(folder))
    shots, _ = choose_shots(paths, len(paths), load, camera=camera, where=f"{folder}: ")
    if not shots:
        raise _nothing_usable(folder, failures)
    return shots, failures


class ImageShot(NamedTuple):
    """An image with its pixels."""

    image: LinearImage
    histograms: Histograms

    @property
    def camera(self) -> str | None:
        return self.image.camera


def read_image_shot(path: Path, reading: Reading = Reading()) -> ImageShot | Failure:
    """Read an image of a roll for an estimator that looks at its pixels."""
    try:
        image = reading.read(path).image
        return ImageShot(image, histogram(image, Grid()))
    except C5Error as error:
        return Failure.of(path, error)


def _drop_failures(shots: Iterable[AnyShot | Failure], failures: list[Failure]) -> Iterator[AnyShot]:
    for shot in shots:
        if isinstance(shot, Failure):
            failures.append(shot)
        else:
            yield shot


def _nothing_usable(folder: Path, failures: Sequence[Failure]) -> ReadError:
    reason = f" ({failures[0].message if failures else 'folders in it are not searched'})"
    return ReadError(f"{folder}: no image in it can be used as a roll{reason}; give raw files or linear images")


def list_roll(folder: Path) -> list[Path]:
    """The files of a folder that may make a roll, in order."""
    if not folder.is_dir():
        what = "is a file" if os.path.exists(folder) else "no such folder"
        raise ReadError(f"{folder}: {what}; give a folder of images from the camera")
    listed = [path for path in folder.iterdir() if not path.name.lower().endswith(OWN_PREVIEWS)]
    return sorted(path for path in listed if is_photograph(path) or path.suffix.lower() in JPEG_SUFFIXES)


def order_by_content(paths: Iterable[Path]) -> list[Path]:
    """One file of each content, in an order that is as good as random and depends on nothing else.

    So neither names, nor order, nor copies of files change a roll.
    """
    found = {digest_content(path): path for path in sorted(paths, reverse=True)}
    return [found[content] for content in sorted(found)]
