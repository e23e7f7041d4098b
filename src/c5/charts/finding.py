"""Color charts in a photograph: lattices of patches whose colors are those of a chart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from c5.charts.chart import COLUMNS, ROWS, Measured, Reading, Refusal, places, read_chart
from c5.charts.grid import Lattice, find_lattices
from c5.color import Float64s, angular_error
from c5.image import LinearImage, project

LOOKED_AT = 800 * 533
"""Pixels of the picture that is searched for charts."""

SAMPLED = 0.2
"""How far from its middle a patch is measured, in patches."""
POINTS = 9
"""Measured points in each direction."""
BORDER = 0.5
"""What is masked around the outermost patches, in patches: the frame."""
ALMOST = 8.0
"""What is within this many degrees of a chart's colors is reported, even if it is not a chart."""
SCREEN_DEG = 9.0
"""Degrees by which the grays may differ at first sight."""
SAME_DEG = 1.0
"""Two charts whose lights are this close are in one light."""
FLATTEST = 0.02
"""The nearest place of a chart is at least this part of the way to the farthest; else its plane is seen edge on."""
BAD_CORNERS = " (or its corners are wrong)"


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart, or what resembles one."""

    corners: Float64s
    """(4, 2), x and y in pixels of the outer corners of the patches: at dark skin, at bluish green, at black, at white.
    """
    result: Reading | Refusal

    @property
    def outline(self) -> Float64s:
        """(4, 2), the same for the frame: what to mask."""
        homography = _from_corners(self.corners)
        return project(homography, _box(BORDER))


def find_charts(image: LinearImage) -> list[Chart]:
    """All charts in a photograph, at its own size, and what comes close to one."""
    found: list[Chart] = []
    for lattice in find_lattices(image.rgb):
        middle = lattice.pixels((np.array(lattice.low) + np.array(lattice.high)) / 2)
        if any(_inside(chart.outline, middle) for chart in found if isinstance(chart.result, Reading)):
            continue
        read = (_read(image, lattice, order) for order in _orders(lattice))
        best = min((chart for chart in read if chart is not None), key=_rank, default=None)
        if best is None or best.result.off > ALMOST:
            continue
        center = best.corners.mean(axis=0)
        rivals = [chart for chart in found if _inside(chart.outline, center)]
        if all(_rank(best) < _rank(rival) for rival in rivals):
            found = [chart for chart in found if chart not in rivals] + [best]
    return found


def read_corners(image: LinearImage, corners: Float64s) -> Chart:
    """The chart whose corners (4, 2) in pixels somebody has pointed out, starting at any of them, either way around."""
    charts = []
    for turned in range(4):
        for way in (1, -1):
            given = np.roll(corners[::way], turned, axis=0)
            homography = _from_corners(given)
            if not _in_front(homography):
                return Chart(corners, Refusal(f"no chart is seen like this{BAD_CORNERS}", np.inf))
            charts.append(Chart(given, _measure(image, homography)))
    best = min(charts, key=_rank)
    if isinstance(best.result, Refusal):
        return replace(best, result=replace(best.result, reason=best.result.reason + BAD_CORNERS))
    return best


def agree(charts: list[Chart]) -> Reading | Refusal:
    """The light of all charts of a photograph together."""
    readings = [chart.result for chart in charts if isinstance(chart.result, Reading)]
    if not readings:
        return min((chart.result for chart in charts if isinstance(chart.result, Refusal)), key=lambda one: one.off)
    lights = np.array([reading.illuminant for reading in readings])
    apart = max(float(angular_error(one, other)) for one in lights for other in lights)
    if apart > SAME_DEG:
        return Refusal(f"{len(readings)} charts are in lights {apart:.1f}° apart; keep one of them", readings[0].off)
    best = min(readings, key=lambda reading: reading.noise)
    return replace(best, illuminant=lights.mean(axis=0) / np.linalg.norm(lights.mean(axis=0)))


def _rank(chart: Chart) -> tuple[bool, float]:
    return isinstance(chart.result, Refusal), chart.result.off


def _box(border: float) -> Float64s:
    """The corners of a rectangle around the patches, on the lattice of a chart."""
    low, right, bottom = -0.5 - border, COLUMNS - 0.5 + border, ROWS - 0.5 + border
    return np.array([[low, low], [right, low], [right, bottom], [low, bottom]])


def _orders(lattice: Lattice) -> Iterator[Float64s]:
    """(3, 3) maps from the lattice of a chart to the one that was seen: unseen patches may be on any side."""
    for wide, high, turns in ((COLUMNS, ROWS, (0, 2)), (ROWS, COLUMNS, (1, 3))):
        columns = sorted((lattice.high[0] - wide + 1, lattice.low[0]))
        rows = sorted((lattice.high[1] - high + 1, lattice.low[1]))
        for column in range(columns[0], columns[1] + 1):
            for row in range(rows[0], rows[1] + 1):
                for turn in turns:
                    yield _turned(turn, column, row)


def _turned(turn: int, column: int, row: int) -> Float64s:
    """A chart turned by quarter turns, whose patches begin at a column and a row."""
    rotation = np.linalg.matrix_power(np.array([[0, -1], [1, 0]]), turn)
    last = rotation @ [COLUMNS - 1, ROWS - 1]
    order = np.eye(3)
    order[:2, :2] = rotation
    order[:2, 2] = [column, row] - np.minimum(last, 0)
    return order


def _read(image: LinearImage, lattice: Lattice, order: Float64s) -> Chart | None:
    homography = lattice.homography @ order
    return Chart(project(homography, _box(0)), _measure(image, homography)) if _in_front(homography) else None


def _in_front(homography: Float64s) -> bool:
    """Whether a chart and its frame are on one side of the horizon of its plane: beyond it, there are no places."""
    depths = _box(BORDER) @ homography[2, :2] + homography[2, 2]
    depths *= np.sign(depths.sum())
    return bool(depths.min() > FLATTEST * depths.max())


def _measure(image: LinearImage, homography: Float64s) -> Reading | Refusal:
    """What the patches at their places, in the middle of each, say of the light."""
    offsets = np.linspace(-SAMPLED, SAMPLED, POINTS)
    around = np.stack(np.meshgrid(offsets, offsets), axis=-1).reshape(-1, 2)
    pixels = np.rint(project(homography, places()[:, None] + around)).astype(np.intp)
    height, width = image.rgb.shape[:2]
    x, y = np.clip(pixels[..., 0], 0, width - 1), np.clip(pixels[..., 1], 0, height - 1)
    inside = ((x == pixels[..., 0]) & (y == pixels[..., 1])).all(axis=1)
    rgb = image.rgb[y, x].astype(np.float64)
    usable = inside & ~image.clipped[y, x].any(axis=1) & image.mask[y, x].all(axis=1)
    steps = project(homography, places()[:, None] + [(0, 0), (SAMPLED, 0), (0, SAMPLED)])
    sides = 2 * (steps[:, 1:] - steps[:, :1])
    area = np.abs(sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0])
    count = np.clip(area, 1, POINTS**2)[:, None]
    measured = Measured(rgb.mean(axis=1), rgb.std(axis=1) / np.sqrt(count), usable)
    return read_chart(measured) if _gray_enough(measured) else Refusal("it has no row of grays", np.inf)


def _gray_enough(measured: Measured) -> bool:
    """Whether the row of grays may be one, at first sight: of one color, from light to dark."""
    grays = measured.rgb[18:23][measured.good[18:23]]
    if len(grays) < 2 or (grays <= 0).any() or (np.diff(grays.sum(axis=1)) > 0).any():
        return False
    return bool(angular_error(grays, grays[:1]).max() < SCREEN_DEG)


def _from_corners(corners: Float64s) -> Float64s:
    """The homography (3, 3) that takes the lattice of a chart to the corners of its patches."""
    box = _box(0)
    rows = []
    for (u, v), (x, y) in zip(box, corners, strict=True):
        rows += [[u, v, 1, 0, 0, 0, -x * u, -x * v], [0, 0, 0, u, v, 1, -y * u, -y * v]]
    found = np.linalg.lstsq(np.array(rows), corners.ravel(), rcond=None)[0]
    return np.append(found, 1).reshape(3, 3)


def _inside(outline: Float64s, point: Float64s) -> bool:
    """Whether a point lies in a convex polygon."""
    edges = np.roll(outline, -1, axis=0) - outline
    away = point - outline
    side = edges[:, 0] * away[:, 1] - edges[:, 1] * away[:, 0]
    return bool((side >= 0).all() or (side <= 0).all())
