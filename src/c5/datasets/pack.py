"""The .c5data file: images at working size, 16 bits per channel, and their labels. See docs/file-formats.md."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c5.color import Bools
from c5.datasets.container import Container, Encoded, Format, Record, Report, write_container
from c5.datasets.sample import Found, Sample
from c5.errors import ReadError
from c5.image import WORKING_PIXELS, LinearImage, require_counts, shrink
from c5.io.archives import inflate
from c5.io.readers import decoding
from c5.io.tiff import load_imagecodecs
from c5.parallel import in_parallel

NAME = "pack"
DESCRIPTION = "a .c5data pack"

IMAGE = {"height": int, "width": int, "codec": str, "pixels": int}
FORMAT = Format(b"\x89C5DATA\n", 1, "pack of images", image=IMAGE, more={})
CODEC = "jpegxl"
MOST_PIXELS = 2 * WORKING_PIXELS


class PackedImage(Record):
    """The pixels of one record of a pack."""

    def read(self) -> LinearImage:
        with self.open() as payload:
            image = _decode(self.entry["image"], payload)
        return LinearImage(*image, source=f"{self.path}: {self.entry['name']}")

    def digest(self) -> str:
        return str(self.entry["image"]["content"])


recognizes = FORMAT.recognizes


def read(path: Path) -> Found:
    """The samples of a pack, from its index. Each record is checked when its pixels are read."""
    return Found(Container.open(path, FORMAT).samples(PackedImage), [])


def write_pack(
    samples: Iterable[Sample],
    path: str | Path,
    track: Callable[[Iterable[Sample]], Iterable[Sample]] = iter,
    overwrite: bool = False,
) -> Report:
    """Write images at working size with their labels and flags to one file; see `write_container`.

    `track` may show progress over the samples.
    """
    return write_container(track(samples), path, FORMAT, _encode, in_parallel, overwrite=overwrite)


def _decode(image: dict[str, Any], payload: bytes) -> tuple[NDArray[np.uint16], Bools, Bools]:
    """Pixels, mask and clipped flags of a record."""
    imagecodecs = load_imagecodecs()
    if image["codec"] != CODEC:
        raise ReadError(f"its codec {image['codec']!r} is not known: run pip install --upgrade c5-awb")
    size = (image["height"], image["width"])
    if min(size) < 1 or size[0] * size[1] > MOST_PIXELS:
        raise ReadError(f"{size[1]}x{size[0]} pixels are more than the working size")
    pixels = np.empty((*size, 3), np.uint16)  # which the decoder checks before it allocates anything
    with decoding("pack it again"):
        imagecodecs.jpegxl_decode(payload[: image["pixels"]], numthreads=1, out=pixels)
    if len(payload) == image["pixels"]:
        return pixels, np.ones(size, np.bool_), np.zeros(size, np.bool_)
    count = 2 * size[0] * size[1]
    bits = np.frombuffer(inflate(payload[image["pixels"] :], count // 8 + 1), np.uint8)
    if len(bits) < count / 8:
        raise ReadError("its flags are cut short")
    masked, clipped = np.unpackbits(bits, count=count).reshape(2, *size).astype(np.bool_)
    return pixels, ~masked, clipped


def _encode(sample: Sample, earlier: str | None) -> Encoded | str:
    """A sample's image at working size. An image in which nothing counts is refused."""
    source = sample.pixels.digest()
    if source == earlier:
        return source
    image = shrink(sample.read())
    require_counts(image)
    pixels = np.rint(image.rgb * np.float32(65535)).astype(np.uint16)
    flags = _pack_flags(image)
    # The fastest effort decodes twice as fast as the next, and is 4 % larger.
    coded = bytes(load_imagecodecs().jpegxl_encode(pixels, lossless=True, effort=1, numthreads=1))
    height, width = pixels.shape[:2]
    content = hashlib.sha256(f"{height} {width} ".encode() + pixels.astype("<u2").tobytes() + flags).hexdigest()
    described = {"height": height, "width": width, "codec": CODEC, "pixels": len(coded), "content": content}
    return Encoded({**described, "source": source}, coded + (zlib.compress(flags, 9) if flags else b""))


def _pack_flags(image: LinearImage) -> bytes:
    """Masked and clipped pixels, a bit each; nothing if there are none."""
    if image.mask.all() and not image.clipped.any():
        return b""
    return np.packbits(np.stack([~image.mask, image.clipped])).tobytes()
