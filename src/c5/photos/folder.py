"""A folder of photographs of one camera as a roll."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from c5.errors import C5Error, ReadError
from c5.histograms import Grid, histogram
from c5.image import LinearImage, shrink
from c5.io.raw import Photograph
from c5.photos.catalog.photographs import OWN_PREVIEWS, is_photograph

if TYPE_CHECKING:
    from c5.histograms import Histograms

JPEG_SUFFIXES = (".jpg", ".jpeg")


def find_roll(folder: Path) -> list[Path]:
    """The photographs in a folder, JPEGs included, since they may be linearised."""
    if not folder.is_dir():
        raise ReadError(f"{folder}: no such folder; give a folder of images from the camera")
    listed = [path for path in folder.iterdir() if not path.name.lower().endswith(OWN_PREVIEWS)]
    return sorted(path for path in listed if is_photograph(path) or path.suffix.lower() in JPEG_SUFFIXES)


def read_roll(
    paths: Iterable[Path], folder: Path, grid: Grid, read: Callable[[Path], Photograph], report: Callable[[str], None]
) -> Iterator[tuple[LinearImage, Histograms]]:
    """The images at working size with their histograms on a grid.

    Those that cannot be used are reported and passed over. Images of two cameras are an error.
    """
    cameras: set[str] = set()
    used = 0
    for path in paths:
        try:
            image = shrink(read(path).image)
            histograms = histogram(image, grid)
        except C5Error as error:
            report(f"passed over: {error}")
            continue
        used += 1
        cameras |= {image.camera} if image.camera else set()
        if len(cameras) > 1:
            named = " and ".join(sorted(cameras))
            raise ReadError(f"{folder}: photographs of {named}; a roll needs one camera's alone")
        yield image, histograms
    if not used:
        raise ReadError(f"{folder}: no image in it can be used as a roll; give raw files or linear images")
