"""Pictures for people: linear camera RGB developed to sRGB, and sheets of them. Nothing here feeds an estimate."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.color import Bools, Float32s, gains
from c5.image import LinearImage, shrink
from c5.io.files import write_file

if TYPE_CHECKING:
    from PIL import Image

PAPER, INK, FAINT = (250, 249, 246), (34, 34, 34), (120, 118, 112)
MARGIN, GAP, CAPTION = 24, 12, 30
PICTURE_WIDTH = 264
"""Of the pictures on a sheet, unless told otherwise."""

DARKEST_WHITE = (0.3, 0.7)
"""Up to the first, the darkest channel of a clipped pixel tells of a colored thing; from the second on, of white."""

Pixels = NDArray[np.uint8]


def develop(image: LinearImage, illuminant: ArrayLike | None = None, matrix: ArrayLike | None = None) -> Pixels:
    """An 8-bit sRGB picture, (height, width, 3), of a linear image at working size: `render` of its pixels."""
    small = shrink(image)
    return render(small.rgb, small.mask, illuminant, matrix, small.clipped)


def render(
    pixels: Float32s,
    mask: Bools,
    illuminant: ArrayLike | None = None,
    matrix: ArrayLike | None = None,
    clipped: Bools | None = None,
) -> Pixels:
    """An 8-bit sRGB picture of linear camera RGB (height, width, 3) in [0, 1]. The mask says what sets the exposure.

    The illuminant is divided out, highlights are kept neutral, `matrix` (of `adapt_to_srgb`, say) takes the result
    to sRGB, and a soft shoulder compresses what is bright. Clipped pixels become neutral, unless a channel is so dark
    that the thing has a color. Without an illuminant: the camera's own colors.
    """
    rgb = pixels.astype(np.float32, copy=False)
    white = None
    if illuminant is not None:
        # Clipped channels stop at the same level in all three, so that a blown highlight is white and not pink.
        multipliers = gains(illuminant) / gains(illuminant).min()
        rgb = np.minimum(rgb * multipliers.astype(np.float32), 1)
        if clipped is not None:
            white = np.clip((rgb.min(axis=-1) - DARKEST_WHITE[0]) / np.ptp(DARKEST_WHITE), 0, 1) * clipped
    brightness = np.percentile(rgb.max(axis=-1)[mask], 97) if mask.any() else 1.0
    rgb = rgb * np.float32(0.9 / max(brightness, 1e-4))
    if matrix is not None and illuminant is not None:
        rgb = np.maximum(rgb @ np.asarray(matrix, dtype=np.float32).T, 0)
    rgb = np.clip(rgb * 1.2 / (1 + 0.25 * rgb), 0, 1)
    if white is not None:
        rgb += (rgb.max(axis=-1, keepdims=True) - rgb) * white[..., None].astype(np.float32)
    encoded = np.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb ** np.float32(1 / 2.4) - 0.055)
    return np.asarray(np.rint(encoded * 255), dtype=np.uint8)


def turn(pixels: Pixels, orientation: int) -> Pixels:
    """A picture as Exif's orientation, 1 to 8, wants it to be seen."""
    return turn_array(pixels, orientation)


def turn_array(array: NDArray[Any], orientation: int) -> NDArray[Any]:
    """The same for any numbers of pixels, (height, width, ...)."""
    flipped = array[:, ::-1] if orientation in (2, 4, 5, 7) else array
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


def encode_picture(pixels: Pixels, name: str) -> bytes:
    """The content of a PNG file, or of a JPEG file where its name says so."""
    from PIL import Image

    buffer = io.BytesIO()
    if name.lower().endswith((".jpg", ".jpeg")):
        Image.fromarray(pixels).save(buffer, "JPEG", quality=92)
    else:
        Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def fit(pixels: Pixels, width: int, height: int) -> Image.Image:
    """As large as it can be inside a box, in its own shape."""
    from PIL import Image

    picture = Image.fromarray(pixels)
    scale = min(width / picture.width, height / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)
