"""One picture of how an estimate came about: the query, its roll, the emitted filters and bias, the heat map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.ccc import Estimate, locate
from c5.color import Float32s, Float64s, uv_to_rgb
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.temperature import show_told, tell_light
from c5.histograms import Grid, histogram
from c5.image import LinearImage
from c5.model import Model
from c5.photos.picture import FAINT, INK, MARGIN, PAPER, Pixels, develop, fit, render
from c5.photos.roll_building import Roll
from c5.words import plural

if TYPE_CHECKING:
    from PIL import Image

PANEL = 256  # pixels of a map's side
PICTURE = 384  # width of a picture
LABEL = 40  # height of the text over a panel
SPACE = 20
MAPS = LABEL + PANEL + SPACE  # height of a row of maps
THUMBNAIL = 120
ZOOM = 4
"""How much larger than other maps the heat map is."""

POWERS = {0: "all pixels alike", 1: "by brightness", 3: "the brightest pixels"}
"""What the pixel histograms of `Grid.powers` show, in words."""

NEGATIVE, POSITIVE = np.array([33, 102, 172]), np.array([178, 24, 43])


def draw_explanation(model: Model, image: LinearImage, roll: Roll, matrices: CameraMatrices | None = None) -> Pixels:
    """The picture, with thumbnails of the roll where its photographs have them, and the temperature with matrices."""
    from PIL import Image, ImageDraw, ImageFont

    grid = model.grid
    histograms = histogram(image, grid)
    filters, bias, gain = model.emit(histograms, roll.profile)
    estimate = locate(histograms, filters, bias, gain)
    assert estimate.heat_map is not None  # a model always makes one
    assert estimate.bound_covariance is not None
    spot = _bin_of(estimate.uv, grid)
    heat = _outline(_glow(estimate.heat_map, grid), estimate.uv, estimate.bound_covariance, grid)
    gains = " ".join(f"{value:.2f}" for value in estimate.gains)
    top = [
        ("The image", "as the sensor sees it", fit(develop(image), PICTURE, PANEL)),
        ("Balanced", f"gains {gains}", fit(develop(image, estimate.illuminant), PICTURE, PANEL)),
        ("Heat map P", f"{ZOOM} times larger; 90 % within {estimate.bound_deg:.1f}°, as outlined", heat),
    ]
    light = _tell_light(estimate, matrices)
    powers = [POWERS.get(power, f"brightness to the power {power}") for power in grid.powers]
    seen = _show_histograms("N", histograms.seen, grid, [*powers, ""])
    emitted = [
        (f"Filter F{i}", "" if i else "blue -, red +", _signed(weights, grid)) for i, weights in enumerate(filters)
    ]
    emitted.append(("Bias B", "which lights are likely", _mark(_signed(bias - np.median(bias), grid), spot)))
    if gain is not None:
        emitted.append(("Gain G", "", _signed(gain, grid)))
    rows = [seen + emitted] if len(seen + emitted) <= 6 else [seen, emitted]  # no wider than a page
    if grid.strips > 1:
        notes = [f"the same, {grid.strips} strips weighing alike"] * grid.channels
        rows = [seen, _show_histograms("M", histograms.searched, grid, notes), emitted]
    shown = [photo.thumbnail for photo in roll.photos if photo.thumbnail is not None][:10]
    thumbnails = [fit(render(small.rgb.astype(np.float32), small.mask), THUMBNAIL, 80) for small in shown]

    widths = [sum(p.width + SPACE for _, _, p in row) - SPACE for row in (top, *rows)]
    width = 2 * MARGIN + max(*widths, len(thumbnails) * (THUMBNAIL + 8) - 8)
    roll_top = MARGIN + 44 + MAPS
    maps_top = roll_top + (LABEL + 80 if thumbnails else 0)
    sheet = Image.new("RGB", (width, maps_top + len(rows) * MAPS + 14 + MARGIN), PAPER)
    draw = ImageDraw.Draw(sheet)
    source = f" of {Path(image.source).name}" if image.source else ""
    title = f'How the model "{model.name}" found the light{source}'
    draw.text((MARGIN, MARGIN - 6), title[:120], INK, ImageFont.load_default(21))
    for y, row in ((MARGIN + 44, top), *((maps_top + i * MAPS, maps) for i, maps in enumerate(rows))):
        x = MARGIN
        for title, note, picture in row:
            draw.text((x, y), title, INK, ImageFont.load_default(16))
            if row is top and title == "Balanced":
                draw.text((x + 84, y + 3), light, FAINT, ImageFont.load_default(13))
            draw.text((x, y + 20), note, FAINT, ImageFont.load_default(13))
            sheet.paste(picture, (x, y + LABEL))
            x += picture.width + SPACE
    if thumbnails:
        note = plural(roll.size, "image") + (f", {len(thumbnails)} shown" if len(thumbnails) < roll.size else "")
        draw.text((MARGIN, roll_top), "The roll", INK, ImageFont.load_default(16))
        draw.text((MARGIN + 84, roll_top + 3), note, FAINT, ImageFont.load_default(13))
        for index, thumbnail in enumerate(thumbnails):
            sheet.paste(thumbnail, (MARGIN + index * (THUMBNAIL + 8), roll_top + 26))
    limit = f"{grid.limit:g}"
    axes = f"u = ln(g/r) to the right, v = ln(g/b) upwards, both from -{limit} to {limit}; histograms in their colors"
    draw.text((MARGIN, sheet.height - MARGIN - 14), axes, FAINT, ImageFont.load_default(13))
    return np.asarray(sheet)


def _show_histograms(
    letter: str, histograms: Float32s, grid: Grid, notes: list[str]
) -> list[tuple[str, str, Image.Image]]:
    kinds = [*["Pixel"] * len(grid.powers), "Gradient"]
    shown = enumerate(zip(kinds, notes, histograms, strict=True))
    return [(f"{kind} histogram {letter}{index}", note, _glow(masses, grid)) for index, (kind, note, masses) in shown]


def _glow(masses: Float32s, grid: Grid) -> Image.Image:
    """A map of non-negative values, each bin in the color it stands for, on black."""
    u, v = np.meshgrid(grid.u, grid.v)
    colors = uv_to_rgb(np.stack([u, v], axis=-1))
    colors /= colors.max(axis=-1, keepdims=True)
    level = np.sqrt(masses / max(float(masses.max()), 1e-12))
    return _enlarge((np.sqrt(0.35 + 0.65 * colors) * level[..., None] * 255), grid)


def _signed(values: ArrayLike, grid: Grid) -> Image.Image:
    """A map of signed values: white is zero, blue negative, red positive."""
    array = np.asarray(values, dtype=np.float64)
    share = np.clip(array / max(float(np.quantile(np.abs(array), 0.998)), 1e-12), -1, 1)[..., None]
    ends = np.where(share < 0, NEGATIVE, POSITIVE)
    return _enlarge(255 + (ends - 255) * np.abs(share), grid)


def _enlarge(colors: NDArray[np.floating], grid: Grid) -> Image.Image:
    from PIL import Image

    upwards = colors[::-1] if grid.v[0] < grid.v[-1] else colors
    pixels = np.clip(np.rint(upwards), 0, 255).astype(np.uint8)
    return Image.fromarray(pixels).resize((PANEL, PANEL), Image.Resampling.NEAREST)


def _bin_of(uv: Float64s, grid: Grid) -> tuple[float, float]:
    """Where on a panel, in pixels from its left and top, a log-chroma lies."""
    x, y = uv / (grid.step * grid.bins) + 0.5
    return x * PANEL, (1 - y) * PANEL


def _tell_light(estimate: Estimate, matrices: CameraMatrices | None) -> str:
    """The temperature and tint of an estimate, each with its 90 % bound; empty if the matrices do not give them."""
    told = tell_light(estimate.illuminant, matrices, estimate.bound_covariance)
    return "" if told is None else "{} K, tint {}".format(*show_told(told.as_row()))


def _outline(panel: Image.Image, uv: Float64s, covariance: Float64s, grid: Grid) -> Image.Image:
    """The part of a panel around a light, enlarged, with the ellipse of a covariance."""
    from PIL import Image, ImageDraw

    reach = PANEL / ZOOM / 2
    left, top = (float(np.clip(place, reach, PANEL - reach)) - reach for place in _bin_of(uv, grid))
    box = (left, top, left + 2 * reach, top + 2 * reach)
    larger = panel.resize((PANEL, PANEL), Image.Resampling.NEAREST, box)
    variances, axes = np.linalg.eigh(covariance)
    turns = np.linspace(0, 2 * np.pi, 73)
    around = (axes * np.sqrt(np.maximum(variances, 0))) @ np.stack([np.cos(turns), np.sin(turns)])
    places = [_bin_of(uv + step, grid) for step in around.T]
    outline = [((x - left) * ZOOM, (y - top) * ZOOM) for x, y in places]
    ImageDraw.Draw(larger).line(outline, (255, 255, 255), 1)
    return larger


def _mark(panel: Image.Image, spot: tuple[float, float]) -> Image.Image:
    from PIL import ImageDraw

    draw = ImageDraw.Draw(panel)
    x, y = spot
    for radius, color in ((9, (0, 0, 0)), (8, (255, 255, 255))):
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=color, width=1)
    return panel
