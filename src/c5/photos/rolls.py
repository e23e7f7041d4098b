"""The roll of a camera: the photographs from which a model learns what the camera is like.

`build_roll` makes every roll: of a folder, of the catalogue's photographs, of the set that is being balanced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path

import numpy as np

from c5.errors import ReadError
from c5.model import Model, Profile
from c5.parallel import in_parallel
from c5.photos.files import Failure, digest_file, is_photograph
from c5.photos.outputs import OWN_PREVIEWS
from c5.photos.photo import Photo, Reading, read_photo

JPEG_SUFFIXES = (".jpg", ".jpeg")

ALIKE = 0.99
"""Photographs with a higher likeness show the same: frames of a burst or a time-lapse, copies with other metadata."""
TINY = 1e-30

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
    """The roll of the first `size` photographs, or of all that the model takes.

    Those that cannot be used are replaced by the next ones, and so are those that show the same as another in the roll,
    unless there are more of them than the roll has photographs. Photographs of two cameras are refused. If none can be
    used, the roll has no profile. `camera` is the name to keep; by default the one that the files give.
    """
    count = model.takes(len(paths) if size is None else min(size, len(paths)))
    waiting = list(paths)
    repeated = 0
    photos: list[Photo] = []
    failures: list[Failure] = []
    cameras: set[str] = set()
    while waiting and len(photos) < count and repeated < count:
        batch, waiting = waiting[: count - len(photos)], waiting[count - len(photos) :]
        for photo in load(batch):
            if isinstance(photo, Failure):
                failures.append(photo)
                continue
            cameras |= {photo.camera} if photo.camera else set()
            if len(cameras) > 1:
                both = " and ".join(sorted(cameras))
                raise ReadError(f"{photo.path.parent}: photographs of {both}; a roll needs one camera's alone")
            if any(_likeness(photo, other) > ALIKE for other in photos):
                repeated += 1
            else:
                photos.append(photo)
    camera = camera or next(iter(cameras), None)
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
    track: Callable[[Sequence[Path]], Iterable[Path]] = iter,
) -> Roll:
    """The roll of the photographs in a folder. `track` may show progress over the files that are read."""
    read = partial(read_photo, grid=model.grid, reading=reading, thumbnail=thumbnails)

    def load(paths: Sequence[Path]) -> Iterable[Photo | Failure]:
        return (photo for _, photo in in_parallel(read, track(paths)))

    roll = build_roll(model, order_by_content(list_roll(folder)), load, origin=Origin.FOLDER)
    if roll.profile is None:
        reason = f" ({roll.failures[0].message})" if roll.failures else ""
        raise ReadError(f"{folder}: no image in it can be used as a roll{reason}; give raw files or linear images")
    return roll


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
    found: dict[bytes, Path] = {}
    for path in sorted(paths):
        name = os.fsencode(path)
        content = name
        if path.is_file():
            with suppress(OSError):  # it fails when it is read
                content = digest_file(name)[1]
        found.setdefault(content, path)
    return [found[content] for content in sorted(found)]


def _likeness(photo: Photo, other: Photo) -> float:
    """The cosine between the histograms of two photographs."""
    assert photo.histograms is not None  # they are what a photograph is loaded for
    assert other.histograms is not None
    one, two = photo.histograms.seen.ravel(), other.histograms.seen.ravel()
    lengths = float(np.linalg.norm(one)) * float(np.linalg.norm(two))
    return float(one @ two) / max(lengths, TINY)
