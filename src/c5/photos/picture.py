"""Pictures for people: linear camera RGB developed to sRGB, and sheets of them. Nothing here feeds an estimate."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.color import WHITE_LEVEL, Bools, Float32s, gains
from c5.image import WORKING_PIXELS, LinearImage, shrink
from c5.io.files import write_file

if TYPE_CHECKING:
    from PIL import Image

PAPER, INK, FAINT = (250, 249, 246), (34, 34, 34), (120, 118, 112)
MARGIN, GAP, CAPTION = 24, 12, 30
PICTURE_WIDTH = 264
"""The default width of the pictures on a sheet."""

NEARLY_CLIPPED = 0.8
"""From this value of its brightest channel on, as the sensor saw it, a pixel fades to white."""
DARKEST_WHITE = (0.3, 0.7)
"""How a nearly clipped pixel is drawn depends on the darkest of its balanced channels: up to the first value it keeps
its color, from the second on it is white, and between them it fades."""

BRIGHTEST = 1 / 0.95
"""From this light on, the shoulder gives white."""
STEPS = 1 << 15
"""Steps from dark to there: each level of a picture has at least eight."""
ROWS = 8

Pixels = NDArray[np.uint8]
Number = TypeVar("Number", bound=np.generic)


def develop(image: LinearImage, illuminant: ArrayLike | None = None, matrix: ArrayLike | None = None) -> Pixels:
    """An 8-bit sRGB picture, (height, width, 3), of a linear image at working size: `render` of its pixels."""
    small = shrink(image)
    return render(small.rgb, small.mask, illuminant, matrix, small.clipped)


def render(
    pixels: Float32s | NDArray[np.uint16],
    mask: Bools,
    illuminant: ArrayLike | None = None,
    matrix: ArrayLike | None = None,
    clipped: Bools | None = None,
) -> Pixels:
    """An 8-bit sRGB picture of linear camera RGB (height, width, 3), where white is 1, or 65535 in uint16.

    The mask says which pixels set the exposure.

    The illuminant is divided out, `matrix` (of `adapt_to_srgb`, say) takes the result to sRGB, and a soft shoulder
    compresses what is bright. A clipped channel has lost its ratio to the others, so pixels fade to white as they come
    near to clipping, unless a channel is so dark that the thing has a color. Without an illuminant: the camera's own
    colors.
    """
    multipliers = np.ones(3)
    if illuminant is not None:
        multipliers = gains(illuminant) / gains(illuminant).min()
    white = np.float32(WHITE_LEVEL.get(pixels.dtype, 1))
    balanced = multipliers.astype(np.float32) / white
    every = max(1, int((mask.size / WORKING_PIXELS) ** 0.5))  # as many pixels as at working size set the exposure
    sample = np.minimum(pixels[::every, ::every] * balanced, 1).max(axis=-1)[mask[::every, ::every]]
    exposure = 0.9 / max(np.percentile(sample, 97) if sample.size else 1.0, 1e-4)
    to_srgb = np.eye(3) if matrix is None or illuminant is None else np.asarray(matrix)
    colors = np.asarray(to_srgb.T * exposure, dtype=np.float32)
    across = np.tile(balanced, pixels.shape[1])  # a row at a time is eight times as fast as a pixel at a time
    picture = np.empty(pixels.shape, np.uint8)
    for rows in (slice(top, top + ROWS) for top in range(0, len(pixels), ROWS)):  # they stay in a core's cache
        seen = pixels[rows]
        rgb = (seen.reshape(-1, across.size) * across).reshape(-1, 3)
        steps = rgb @ (colors * np.float32(STEPS / BRIGHTEST))
        np.clip(steps, 0, STEPS, out=steps)
        full = None if clipped is None else clipped[rows].ravel()
        if seen.max() > NEARLY_CLIPPED * white or (full is not None and full.any()):
            brightest = np.maximum(np.maximum(seen[..., 0], seen[..., 1]), seen[..., 2]).ravel() / white
            near = np.clip((brightest - NEARLY_CLIPPED) / np.float32(1 - NEARLY_CLIPPED), 0, 1) ** 2
            if full is not None:
                near[full] = 1
            darkest = np.minimum(np.minimum(rgb[:, 0], rgb[:, 1]), rgb[:, 2])
            near *= np.clip((darkest - DARKEST_WHITE[0]) / np.float32(np.ptp(DARKEST_WHITE)), 0, 1)
            steps += (STEPS - steps) * near[:, None]
        np.take(_encoded(), steps.astype(np.intp), out=picture[rows].reshape(-1, 3), mode="clip")
    return picture


@cache
def _encoded() -> Pixels:
    """(STEPS + 1,) levels of a picture for light from 0 to `BRIGHTEST`."""
    light = (np.arange(STEPS + 1) + 0.5) * (BRIGHTEST / STEPS)
    toned = np.clip(light * 1.2 / (1 + 0.25 * light), 0, 1)
    encoded = np.where(toned <= 0.0031308, 12.92 * toned, 1.055 * toned ** (1 / 2.4) - 0.055)
    return np.asarray(np.rint(encoded * 255), dtype=np.uint8)


def turn(pixels: NDArray[Number], orientation: int) -> NDArray[Number]:
    """A picture, (height, width, ...), turned as Exif's orientation, 1 to 8, says."""
    flipped = pixels[:, ::-1] if orientation in (2, 4, 5, 7) else pixels
    quarters = {3: 2, 4: 2, 5: 1, 6: 3, 7: 3, 8: 1}.get(orientation, 0)
    return np.ascontiguousarray(np.rot90(flipped, quarters))


class Frame(NamedTuple):
    """One image on a sheet: pictures side by side and a line about them."""

    pictures: Sequence[Pixels]
    caption: str


def make_sheet(
    title: str, headings: Sequence[str], frames: Sequence[Frame], columns: int = 2, width: int = PICTURE_WIDTH
) -> Pixels:
    """A contact sheet: a title, the meaning of the pictures of a frame, and the frames in columns."""
    from PIL import Image, ImageDraw, ImageFont

    across = len(headings)
    pictures = [[fit(picture, width, width) for picture in frame.pictures] for frame in frames]
    height = max(picture.height for row in pictures for picture in row)
    frame_width, frame_height = across * width + (across - 1) * 4, height + CAPTION
    rows = -(-len(frames) // columns)
    top = MARGIN + 68
    size = (2 * MARGIN + columns * frame_width + (columns - 1) * GAP * 2, top + rows * (frame_height + GAP) + MARGIN)
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((MARGIN, MARGIN - 4), title, INK, ImageFont.load_default(21))
    for index, (frame, row) in enumerate(zip(frames, pictures, strict=True)):
        left = MARGIN + index % columns * (frame_width + GAP * 2)
        up = top + index // columns * (frame_height + GAP)
        for place, (picture, heading) in enumerate(zip(row, headings, strict=True)):
            x = left + place * (width + 4)
            if index < columns:
                draw.text((x, top - 24), heading, FAINT, ImageFont.load_default(14))
            sheet.paste(picture, (x, up + (height - picture.height) // 2))
        draw.text((left, up + height + 5), frame.caption, INK, ImageFont.load_default(14))
    return np.asarray(sheet)


def write_picture(path: str | Path, pixels: Pixels) -> Path:
    """Write a PNG, or a JPEG where the name says so."""
    return write_file(path, encode_picture(pixels, Path(path).name))


def encode_picture(pixels: Pixels, name: str, comment: bytes = b"", *, quality: int = 92) -> bytes:
    """The content of a PNG file, or of a JPEG file where its name says so. A JPEG can have a comment."""
    from PIL import Image

    buffer = io.BytesIO()
    if name.lower().endswith((".jpg", ".jpeg")):
        Image.fromarray(pixels).save(buffer, "JPEG", quality=quality, comment=comment)
    else:
        Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def fit(pixels: Pixels, width: int, height: int) -> Image.Image:
    """A picture as large as fits into a box, in its own shape."""
    from PIL import Image

    picture = Image.fromarray(pixels)
    scale = min(width / picture.width, height / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)
