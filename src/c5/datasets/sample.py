"""One labeled photograph, whatever layout it comes from, and what every layout must offer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from c5.color import Bools, Float64s
from c5.errors import DataError
from c5.image import LinearImage
from c5.io.files import read_bytes
from c5.io.raw import Photograph, read_photograph
from c5.io.readers import MAX_PIXELS, read_mask

Decoded = TypeVar("Decoded")


class Pixels(Protocol):
    """Where the pixels of a sample come from. They are read when they are asked for."""

    @property
    def path(self) -> Path:
        """The file, for messages."""
        ...

    def read(self) -> LinearImage: ...

    def digest(self) -> str:
        """64 hexadecimal digits, the same for the same pixels: results computed from them are cached under it."""
        ...


class Prepared(Protocol):
    """What a prepared set holds for an image: encoded features by their keys."""

    def has(self, key: str) -> bool: ...

    def find(self, key: str, decode: Callable[[bytes], Decoded]) -> Decoded: ...


Levels = float | tuple[float, ...]
"""One for all channels, or one for each of the three."""


@dataclass(frozen=True, eq=False)
class ImageFile:
    """A raw file or a linear image with the levels of its camera, and the calibration object in it masked."""

    path: Path
    black: Levels = 0
    white: Levels | None = None
    """Required if `black` is one for each channel."""
    masked: tuple[Float64s, ...] = ()
    """Polygons (corners, 2), x and y of pixels: what they cover does not count."""
    drawn_on: tuple[float, float] | None = None
    """Width and height of the picture in whose pixels the polygons are given; by default those of the file."""
    mask: Path | None = None
    """An image of the same size, 0 where a pixel does not count."""

    def read(self) -> LinearImage:
        return self.read_photograph().image

    def read_photograph(self) -> Photograph:
        """The image, and what else its file says."""
        black = float(np.min(self.black))
        white = None if self.white is None else float(np.max(self.white))
        photograph = read_photograph(self.path, black=black, white=white, pixels=MAX_PIXELS)
        image = photograph.image
        if white is not None and (isinstance(self.black, tuple) or isinstance(self.white, tuple)):
            stored = image.rgb * (white - black) + black
            blacks = np.asarray(self.black, np.float32)
            rgb = (stored - blacks) / (np.asarray(self.white, np.float32) - blacks)
            image = replace(image, rgb=np.clip(rgb, 0, 1), clipped=image.clipped | (rgb >= 1 - 1e-6).any(axis=-1))
        if self.mask is not None:
            image = replace(image, mask=image.mask & self._read_mask(photograph.size, image.rgb.shape[:2]))
        if self.masked:
            height, width = image.rgb.shape[:2]
            drawn_on = self.drawn_on or photograph.size[::-1]
            polygons = [polygon * (width / drawn_on[0], height / drawn_on[1]) for polygon in self.masked]
            image = replace(image, mask=image.mask & ~cover(polygons, (height, width)))
        return replace(photograph, image=image)

    def _read_mask(self, size: tuple[int, int], shape: tuple[int, ...]) -> Bools:
        assert self.mask is not None
        mask = read_mask(self.mask)
        if mask.shape != size:
            found, wanted = (f"{width}x{height}" for height, width in (mask.shape, size))
            raise DataError(f"{self.mask}: {found} instead of the {wanted} of its image; draw it anew")
        rows, columns = (np.arange(n) * full // n for n, full in zip(shape, size, strict=True))
        return np.asarray(mask[rows][:, columns])

    def digest(self) -> str:
        return self._digest

    @cached_property  # it reads all of the file, and evaluations and prepared sets both ask for it
    def _digest(self) -> str:
        content = read_bytes(self.path)
        if self.mask is not None:
            content += b"\0mask\0" + read_bytes(self.mask)
        levels = f"{self.black} {self.white} {[polygon.tolist() for polygon in self.masked]} {self.drawn_on}"
        return hashlib.sha256(levels.encode() + b"\0" + content).hexdigest()


def cover(polygons: Sequence[Float64s], size: tuple[int, ...]) -> Bools:
    """(height, width), True where a pixel lies in one of the polygons, their edges included."""
    from PIL import Image, ImageDraw

    canvas = Image.new("1", (size[1], size[0]))
    for polygon in polygons:
        ImageDraw.Draw(canvas).polygon([(float(x), float(y)) for x, y in polygon], fill=1, outline=1)
    return np.asarray(canvas, dtype=np.bool_)


@dataclass(frozen=True)
class Capture:
    """How a photograph was taken, as far as known. Used to find similarly taken photographs, never to estimate."""

    gain: float | None = None
    """ISO times the baseline noise of the camera."""
    aperture: float | None = None
    exposure: float | None = None
    """Seconds, times the square root of two to the baseline exposure; or relative to the others of the dataset."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A photograph and the truth about its light."""

    pixels: Pixels
    illuminant: Float64s
    """(3,) unit RGB."""
    camera: str
    """Cameras are told apart by their whole name: Canon1D is not Canon1DsMkIII."""
    dataset: str
    name: str
    """Unique for each photograph: dataset/camera/file."""
    scene: str | None = None
    """The same for photographs of one scene, within a dataset."""
    ccm: Float64s | None = None
    """(3, 3) white-balanced camera RGB to linear sRGB, for this photograph."""
    capture: Capture | None = None
    fold: int | None = None
    """Its published cross-validation fold, from 0."""
    cameras: frozenset[str] = frozenset()
    """All cameras whose images, labels or matrices went into it; only its own if it was taken and not made."""
    sources: frozenset[str] = frozenset()
    """The names of all photographs whose pixels or labels went into it; only its own if it was taken and not made."""
    prepared: Prepared | None = None
    """What has been computed from it already."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cameras", self.cameras or frozenset({self.camera}))
        object.__setattr__(self, "sources", self.sources or frozenset({self.name}))

    @property
    def path(self) -> Path:
        return self.pixels.path

    @property
    def made(self) -> bool:
        """Whether augmentation made it, rather than a camera."""
        return self.sources != frozenset({self.name})

    @property
    def of_one_photograph(self) -> bool:
        """Whether it is a photograph, or made from nothing else, as zones are."""
        return len(self.sources) == 1 and self.cameras == {self.camera}

    def read(self) -> LinearImage:
        return replace(self.pixels.read(), camera=self.camera)


class Problem(NamedTuple):
    """What is wrong with one file of a dataset, and what to do about it."""

    path: Path
    message: str


class Found(NamedTuple):
    """What a folder holds."""

    samples: list[Sample]
    problems: list[Problem]

    @contextmanager
    def noting(self, path: Path) -> Iterator[None]:
        """Turn a DataError into a problem of that file: reading continues with the others."""
        try:
            yield
        except DataError as error:
            self.problems.append(Problem(path, str(error)))

    def note_unused(self, labels: Iterable[Path], used: Container[Path], what: str) -> None:
        """Make each label that belongs to no image a problem."""
        self.problems.extend(Problem(path, f"{path}: {what}") for path in labels if path not in used)


class Dataset(Protocol):
    """A layout on disk. Each module of this package that reads one is a `Dataset`."""

    @property
    def NAME(self) -> str: ...  # noqa: N802

    @property
    def DESCRIPTION(self) -> str: ...  # noqa: N802

    def recognizes(self, folder: Path) -> bool:
        """Whether the folder looks like this layout. Quick: it looks at some names, not into images. Never raises."""
        ...

    def read(self, folder: Path) -> Found:
        """The samples below a folder, without their pixels, and the files that do not fit."""
        ...
