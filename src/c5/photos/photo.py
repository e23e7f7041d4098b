"""A photograph as this whole package knows it: what its file says, its histograms, perhaps a thumbnail."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.classical import gray_world
from c5.color import Bools, Float64s
from c5.colorimetry.adaptation import srgb_matrix
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.temperature import TemperatureTint, ToldLight, tell_light
from c5.errors import C5Error, ParameterError
from c5.histograms import Grid, Histograms, histogram
from c5.image import WORKING_PIXELS, LinearImage, StoredImage, shrink
from c5.io import raw
from c5.photos.files import Failure
from c5.photos.picture import PICTURE_WIDTH
from c5.rolls import name_camera
from c5.zones import average_zones

PREVIEW_PIXELS = 2048 * 1365
"""A 3:2 picture that is 2048 pixels wide."""


@dataclass(frozen=True)
class Reading:
    """How files are read, as `c5.io.raw.read_photograph` takes it."""

    black: float = 0
    white: float | None = None
    assume_srgb: bool = False

    def read(self, path: Path, pixels: int = WORKING_PIXELS, more_pixels: int | None = None) -> raw.Photograph:
        """A photograph, averaged to about `pixels`, and also to `more_pixels` if given."""
        return raw.read_photograph(
            path,
            black=self.black,
            white=self.white,
            assume_srgb=self.assume_srgb,
            pixels=pixels,
            more_pixels=more_pixels,
        )

    def read_preview(self, path: Path) -> tuple[StoredImage, raw.Photograph]:
        """The pixels of a preview, and what else the file says."""
        photograph = self.read(path, more_pixels=PREVIEW_PIXELS)
        assert photograph.larger is not None  # it was asked for
        return photograph.larger, photograph

    @property
    def key(self) -> str:
        """Distinguishes histograms of files read in this way from others. The catalog contains it."""
        white = None if self.white is None else float(self.white)
        return json.dumps([float(self.black), white, self.assume_srgb])


class Thumbnail(NamedTuple):
    """As many linear pixels as a contact sheet shows."""

    rgb: NDArray[np.float16]  # (height, width, 3)
    mask: Bools
    clipped: Bools

    @classmethod
    def of(cls, image: LinearImage) -> Thumbnail:
        height, width = image.rgb.shape[:2]
        small = shrink(image, round(height * width * (PICTURE_WIDTH / max(height, width)) ** 2))
        return cls(small.rgb.astype(np.float16), small.mask, small.clipped)


@dataclass(frozen=True, eq=False)
class Photo:
    """What is known of a photograph. It holds few or no pixels: thousands fit into memory."""

    path: Path
    camera: str | None
    """As the file names it."""
    time: datetime | None
    """When it was taken, by the camera's clock."""
    as_shot: Float64s | None
    """The illuminant of the camera's own white balance."""
    gray_world: Float64s
    """The illuminant that the gray-world method finds."""
    matrices: CameraMatrices | None
    orientation: int
    reading: Reading = Reading()
    """How the file was read."""
    histograms: Histograms | None = None
    """Dropped once the light is estimated."""
    thumbnail: Thumbnail | None = None
    exposure: float | None = None
    """The exposure value that was set, at ISO 100."""
    preview: StoredImage | None = None
    """The pixels of a preview, dropped once it is drawn."""

    @classmethod
    def of(
        cls, path: Path, photograph: raw.Photograph, reading: Reading = Reading(), *, thumbnail: bool = False
    ) -> Photo:
        """What is kept of a photograph that was read, without its histograms."""
        camera, time = photograph.image.camera, photograph.time
        return cls(
            path,
            name_camera(camera),
            None if time is None else time.replace(tzinfo=None),  # a zone would only disturb the order
            photograph.as_shot,
            gray_world(photograph.image),
            photograph.matrices,
            photograph.orientation,
            reading,
            thumbnail=Thumbnail.of(photograph.image) if thumbnail else None,
            exposure=photograph.exposure,
            preview=photograph.larger,
        )

    def need_matrices(self) -> CameraMatrices:
        """The camera's matrices, or an error that they are missing."""
        if self.matrices is None:
            raise ParameterError(f"{self.path}: this needs the camera's matrices, and none are known")
        return self.matrices

    def temperature(self, illuminant: Float64s) -> TemperatureTint | None:
        """What Adobe's programs show for a light; None if the matrices are not known, or fit no such light."""
        told = self.tell_light(illuminant)
        return None if told is None else told.at

    def tell_light(self, illuminant: Float64s, covariance: Float64s | None = None) -> ToldLight | None:
        """The same, with how far the light may be from that if its covariance is known."""
        return tell_light(illuminant, self.matrices, covariance)

    def srgb_matrix(self, illuminant: Float64s) -> Float64s | None:
        """From white-balanced camera RGB to linear sRGB in this light; None where its temperature is not known."""
        return srgb_matrix(illuminant, self.matrices)


def read_photo(
    path: Path,
    grid: Grid,
    reading: Reading = Reading(),
    *,
    histograms: Histograms | None = None,
    thumbnail: bool = False,
    preview: bool = False,
    zones: tuple[int, int] | None = None,
) -> Photo | Failure:
    """Read a photograph and count its histograms, unless they are given; or say why that cannot be done.

    With `zones` (rows, columns), the histograms are of its zones instead of its pixels.
    """
    try:
        photograph = reading.read(path, more_pixels=PREVIEW_PIXELS if preview else None)
        photo = Photo.of(path, photograph, reading, thumbnail=thumbnail)
        image = photograph.image if zones is None else average_zones(photograph.image, *zones)
        return replace(photo, histograms=histograms or histogram(image, grid))
    except C5Error as error:
        return Failure.of(path, error)
