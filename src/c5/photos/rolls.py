"""The roll of a camera: the photographs from which a model learns what the camera is like.

`build_roll` makes every roll: of a folder, of the catalogue's photographs, of the set that is being balanced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

from c5.errors import ReadError
from c5.model import Model, Profile
from c5.parallel import in_parallel
from c5.photos.files import OWN_PREVIEWS, Failure, is_photograph
from c5.photos.photo import Photo, Reading, read_photo

JPEG_SUFFIXES = (".jpg", ".jpeg")

Load = Callable[[Sequence[Path]], Iterable[Photo | Failure]]
"""Gives the photographs of some files with their histograms, in order, or why they cannot be used."""


class Origin(Enum):
    """Where what is known of a camera comes from."""

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
    """The roll of up to `size` photographs, or of all that the model takes, spread evenly over `paths`.

    Those that cannot be used are replaced by others, and so are copies of one that is in the roll already, unless there
    are more copies than photographs. Photographs of two cameras are refused. Without any that can be used, the roll has
    no profile. `camera` is the name to keep; by default the one that the files tell.
    """
    count = model.takes(len(paths) if size is None else min(size, len(paths)))
    waiting = _spread(range(len(paths)), count)
    copies = 0
    chosen: dict[int, Photo] = {}
    failures: list[Failure] = []
    contents: set[bytes] = set()
    cameras: set[str] = set()
    while waiting and len(chosen) < count and copies < count:
        batch, waiting = waiting[: count - len(chosen)], waiting[count - len(chosen) :]
        for index, photo in zip(batch, load([paths[index] for index in batch]), strict=True):
            if isinstance(photo, Failure):
                failures.append(photo)
                continue
            cameras |= {photo.camera} if photo.camera else set()
            if len(cameras) > 1:
                both = " and ".join(sorted(cameras))
                raise ReadError(f"{photo.path.parent}: photographs of {both}; a roll needs one camera's alone")
            content = _digest_content(photo)
            if content in contents:
                copies += 1
            else:
                contents.add(content)
                chosen[index] = photo
    photos = [chosen[index] for index in sorted(chosen)]
    camera = camera or next(iter(cameras), None)
    profile = None
    if photos:
        profile = model.calibrate_histograms([photo.histograms for photo in photos if photo.histograms], camera)
    return Roll(
        camera,
        origin if photos else Origin.NOWHERE,
        profile,
        tuple(photo.path for photo in photos),
        tuple(photo.without_histograms() for photo in photos),
        tuple(failures),
    )


def read_roll(
    folder: Path,
    model: Model,
    reading: Reading = Reading(),
    *,
    size: int | None = None,
    camera: str | None = None,
    thumbnails: bool = False,
    track: Callable[[Sequence[Path]], Iterable[Path]] = iter,
) -> Roll:
    """The roll of the photographs in a folder. `track` may show progress over the files that are read."""
    read = partial(read_photo, grid=model.grid, reading=reading, thumbnail=thumbnails)

    def load(paths: Sequence[Path]) -> Iterable[Photo | Failure]:
        return (photo for _, photo in in_parallel(read, track(paths)))

    paths = list_roll(folder)
    roll = build_roll(model, paths, load, origin=Origin.FOLDER, size=size, camera=camera)
    if roll.profile is None:
        reason = f" ({roll.failures[0].message})" if roll.failures else ""
        raise ReadError(f"{folder}: no image in it can be used as a roll{reason}; give raw files or linear images")
    return roll


def list_roll(folder: Path) -> list[Path]:
    """The files of a folder that may make a roll, in order."""
    if not folder.is_dir():
        raise ReadError(f"{folder}: no such folder; give a folder of images from the camera")
    listed = [path for path in folder.iterdir() if not path.name.lower().endswith(OWN_PREVIEWS)]
    return sorted(path for path in listed if is_photograph(path) or path.suffix.lower() in JPEG_SUFFIXES)


def _spread(items: Sequence[int], count: int) -> list[int]:
    """So many items spread evenly, then as many of the rest, then what is left."""
    ordered: list[int] = []
    for _ in range(2):
        some = [items[index * len(items) // count] for index in range(count)] if count < len(items) else list(items)
        ordered += some
        items = sorted(set(items) - set(some))
    return [*ordered, *items]


def _digest_content(photo: Photo) -> bytes:
    """The same for copies of a photograph, also where only their metadata differ."""
    assert photo.histograms is not None  # they are what a photograph is loaded for
    return hashlib.blake2b(photo.histograms.seen.tobytes(), digest_size=16).digest()
