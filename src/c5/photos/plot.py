"""A picture of a learned look: the edits it was learned from, and the line that it draws through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from c5.colorimetry.adaptation import MiredTint
from c5.photos.learning import LearnedLook
from c5.photos.picture import FAINT, INK, MARGIN, PAPER, Pixels

if TYPE_CHECKING:
    from PIL import ImageDraw

WIDTH, HEIGHT = 560, 260
"""Of a panel."""
LEFT, TOP, GAP = 40, 104, 64
LINE, DOT, PALE = (178, 24, 43), (33, 102, 172), (230, 228, 222)

KELVINS = (2000, 2500, 3000, 4000, 5500, 8000, 15000)


class _Panel(NamedTuple):
    """Where things are drawn: lights across, the warm ones at the left, and shifts upwards."""

    top: int
    reach: float
    low: float
    high: float

    def x(self, mired: float) -> float:
        return MARGIN + LEFT + (self.high - mired) / (self.high - self.low) * WIDTH

    def y(self, shift: float) -> float:
        return self.top + HEIGHT / 2 * (1 - min(max(shift / self.reach, -1), 1))


def draw_look(look: LearnedLook) -> Pixels:
    """Two panels: how much warmer, and how much more magenta, pictures in each light are made."""
    from PIL import Image, ImageDraw, ImageFont

    points = np.array(look.points).reshape(-1, 4)
    mireds = np.linspace(*look.range, 50)
    there = np.array([look.prefer(MiredTint(mired, 0)) for mired in mireds])
    sheet = Image.new("RGB", (2 * MARGIN + LEFT + WIDTH, TOP + 2 * (HEIGHT + GAP) + MARGIN), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((MARGIN, MARGIN - 4), "The look that was learned", INK, ImageFont.load_default(21))
    draw.text((MARGIN, MARGIN + 26), look.summary, FAINT, ImageFont.load_default(13))
    low, high = min(look.range[0], 120) - 15, max(look.range[1], 260) + 15
    shifts = {
        "mireds warmer": (points[:, 0] - points[:, 2], mireds - there[:, 0]),
        "tint, more magenta": (points[:, 3] - points[:, 1], there[:, 1]),
    }
    for row, (heading, (dots, line)) in enumerate(shifts.items()):
        reach = 1.15 * max(10.0, *np.abs(line), *np.percentile(np.abs(dots), [95] if dots.size else []))
        panel = _Panel(TOP + row * (HEIGHT + GAP), float(reach), low, high)
        _draw_axes(draw, panel, heading)
        for mired, shift in zip(points[:, 0], dots, strict=True):
            x, y = panel.x(mired), panel.y(shift)
            draw.ellipse((x - 3, y - 3, x + 3, y + 3), outline=DOT)
        draw.line([(panel.x(mired), panel.y(shift)) for mired, shift in zip(mireds, line, strict=True)], LINE, 3)
    return np.asarray(sheet)


def _draw_axes(draw: ImageDraw.ImageDraw, panel: _Panel, heading: str) -> None:
    """Temperatures below, shifts at the left, and a line for neutral balance."""
    from PIL import ImageFont

    font = ImageFont.load_default(13)
    left, right, bottom = panel.x(panel.high), panel.x(panel.low), panel.top + HEIGHT
    step = next(step for step in (5, 10, 20, 50, 100) if panel.reach / step < 5.5 or step == 100)
    most = int(panel.reach / step)
    for shift in range(-most * step, most * step + 1, step):
        draw.line((left, panel.y(shift), right, panel.y(shift)), FAINT if shift == 0 else PALE)
        draw.text((left - 8, panel.y(shift)), f"{shift:+d}" if shift else "0", FAINT, font, anchor="rm")
    for kelvin in KELVINS:
        x = panel.x(1e6 / kelvin)
        if left + 20 < x < right - 20:
            draw.line((x, bottom, x, bottom + 5), FAINT)
            draw.text((x, bottom + 8), f"{kelvin} K", FAINT, font, anchor="ma")
    draw.rectangle((left, panel.top, right, bottom), outline=FAINT)
    draw.text((left, panel.top - 20), heading, INK, font)
