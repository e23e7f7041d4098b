"""Finding grids of patches: squares separated by dark lines, assembled into lattices seen in perspective.

What is found here is a guess. Whether it is a chart is decided by its colors, in `c5.charts.chart`.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from c5.color import Float32s, Float64s
from c5.errors import ParameterError
from c5.image import project

LINES = (3, 6)
"""How wide a dark line between patches may be, in pixels of the picture and of smaller copies of it."""
SMALLER = (1, 2, 4)
DARKER = (0.1, 0.3)
"""How much darker than both sides a line must be, in nats: the first for lines that are blurred."""
SMALLEST = 48
"""Fewest pixels on the shorter side of a picture."""
DARKEST, STEPS = 0.004, 40
"""What counts as black, where white is 1, and into how many steps a nat is divided."""
LEAST_AREA = 30
"""Fewest pixels of a patch."""
NEAREST, FARTHEST, ASIDE = 0.95, 1.9, 0.35
"""Where the next patch may be, in sides of a patch: from and to how far along, and how far to the side."""
FEWEST = 6
"""Fewest patches of a lattice."""
MOST = 400
"""Most squares of a picture that are looked at."""


class Lattice(NamedTuple):
    """A plane on which patches are at whole numbers."""

    homography: Float64s
    """(3, 3), from places on the lattice to pixels."""
    low: tuple[int, int]
    """The first column and row where a patch was seen."""
    high: tuple[int, int]
    """The last ones."""
    seen: int
    """Patches that were seen."""

    def pixels(self, places: Float64s) -> Float64s:
        """(..., 2) x and y in pixels of places (..., 2) on the lattice."""
        return project(self.homography, places)


def load_opencv() -> Any:
    """OpenCV, which is installed with the extra `chart`."""
    try:
        import cv2
    except ImportError:
        raise ParameterError("finding charts needs OpenCV: run pip install 'c5-awb[chart]'") from None
    return cv2


def find_lattices(rgb: Float32s) -> list[Lattice]:
    """Lattices of patches in linear RGB (height, width, 3), those with the most patches first."""
    cv2 = load_opencv()
    found: list[Lattice] = []
    value = _brightness(rgb)
    for scale, width, darker in itertools.product(SMALLER, LINES, DARKER):
        small = cv2.resize(value, None, fx=1 / scale, fy=1 / scale, interpolation=cv2.INTER_AREA)
        if min(small.shape) >= SMALLEST:
            quads = _find_quads(small, width, darker)
            found += _assemble((quads + 0.5) * scale - 0.5)
    return sorted(found, key=lambda lattice: -lattice.seen)


def _brightness(rgb: Float32s) -> NDArray[np.uint8]:
    """ln of the largest channel, in `STEPS`, with channels balanced: every patch is brighter than the frame."""
    cv2 = load_opencv()
    white = np.maximum(np.percentile(rgb[::8, ::8].reshape(-1, 3), 98, axis=0), 1e-4)
    red, green, blue = (rgb[..., channel] * np.float32(1 / white[channel]) for channel in range(3))
    largest = np.maximum(np.maximum(red, green), blue)
    smooth = cv2.GaussianBlur(largest, (3, 3), 0)
    nats = np.log(np.maximum(smooth, 0) + np.float32(DARKEST))
    return np.asarray(np.clip((nats - np.log(DARKEST)) * STEPS, 0, 255), dtype=np.uint8)


def _find_quads(value: NDArray[np.uint8], width: int, darker: float) -> Float64s:
    """(quads, 4, 2): the corners, clockwise, of shapes with four corners that lines up to `width` separate."""
    cv2 = load_opencv()
    kernel = np.ones((width + 2, width + 2), np.uint8)
    lines = cv2.morphologyEx(value, cv2.MORPH_BLACKHAT, kernel)
    patches = cv2.threshold(lines, round(darker * STEPS), 1, cv2.THRESH_BINARY_INV)[1]
    _, labels, stats, _ = cv2.connectedComponentsWithStats(patches, connectivity=4)
    left, top, wide, high, area = stats.T
    smallest = max(LEAST_AREA, width * width)
    likely = (area >= smallest) & (area < value.size / 24) & (area > 0.4 * wide * high)
    likely &= (wide < 4 * high) & (high < 4 * wide)
    likely[0] = False
    quads = []
    for index in np.flatnonzero(likely)[np.argsort(-area[likely])][:MOST]:
        box = np.s_[top[index] : top[index] + high[index], left[index] : left[index] + wide[index]]
        quad = _as_quad((labels[box] == index).astype(np.uint8), int(area[index]))
        if quad is not None:
            quads.append(quad + np.array([left[index], top[index]]))
    return np.array(quads).reshape(-1, 4, 2)


def _as_quad(shape: NDArray[np.uint8], area: int) -> Float64s | None:
    """The corners of a filled shape, if it is about a parallelogram."""
    cv2 = load_opencv()
    outlines, _ = cv2.findContours(shape, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    hull = cv2.convexHull(max(outlines, key=cv2.contourArea))
    length = cv2.arcLength(hull, True)
    simpler = (cv2.approxPolyDP(hull, share * length, True).reshape(-1, 2) for share in (0.02, 0.04, 0.06, 0.08, 0.1))
    corners = next((found for found in simpler if len(found) <= 4), hull[:0])
    if len(corners) != 4:
        corners = cv2.boxPoints(cv2.minAreaRect(hull))
    corners = corners.astype(np.float64)
    one, other = corners[2] - corners[0], corners[3] - corners[1]  # the diagonals
    size = 0.5 * abs(one[0] * other[1] - one[1] * other[0])
    around = 2 * (np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1).sum())
    if not 0.75 * size < area < 1.3 * size + around / 2:
        return None
    down = corners[1] - corners[0]
    across = corners[3] - corners[0]
    if down[0] * across[1] - down[1] * across[0] > 0:  # always the same way around
        corners = corners[::-1]
    return np.asarray(corners)


def _assemble(quads: Float64s) -> list[Lattice]:
    """Lattices of quads that have neighbors of their size in the directions of their sides."""
    if len(quads) < FEWEST:
        return []
    centers = quads.mean(axis=1)
    side = (quads[:, [3, 2]] - quads[:, [0, 1]]).mean(axis=1)
    down = (quads[:, [1, 2]] - quads[:, [0, 3]]).mean(axis=1)
    basis = np.stack([side, down], axis=-1)  # columns
    size = np.sqrt(np.abs(np.linalg.det(basis)))
    keep = size > 3
    centers, basis, size = centers[keep], basis[keep], size[keep]
    if len(size) < FEWEST:
        return []
    steps = np.einsum("iab,ijb->ija", np.linalg.inv(basis), centers[None] - centers[:, None])  # in sides of i
    far, aside = np.abs(steps).max(axis=-1), np.abs(steps).min(axis=-1)
    near = (far > NEAREST) & (far < FARTHEST) & (aside < ASIDE)
    near &= (size[None] < 1.6 * size[:, None]) & (size[:, None] < 1.6 * size[None])
    near &= near.T
    found, seen = [], np.zeros(len(size), np.bool_)
    for start in np.argsort(-near.sum(axis=1)):
        if seen[start] or near[start].sum() < 2:
            continue
        places = _walk(int(start), near, steps, basis)
        seen[list(places)] = True
        lattice = _fit(places, centers, size)
        if lattice is not None:
            found.append(lattice)
    return found


def _walk(start: int, near: NDArray[np.bool_], steps: Float64s, basis: Float64s) -> dict[int, tuple[int, int]]:
    """The places of quads on the lattice of the first, found from neighbor to neighbor."""
    places = {start: (0, 0)}
    turns = {start: np.eye(2, dtype=int)}  # takes the directions of a quad to those of the lattice
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for there in np.flatnonzero(near[here]).tolist():
            if there in places:
                continue
            step = steps[here, there]
            along = int(np.abs(step).argmax())
            unit = np.zeros(2, dtype=int)
            unit[along] = int(np.sign(step[along]))
            column, row = np.array(places[here]) + turns[here] @ unit
            places[there] = (int(column), int(row))
            alike = np.linalg.inv(basis[here]) @ basis[there]  # the directions of the next quad, seen from this one
            first = np.zeros(2, dtype=int)
            main = int(np.abs(alike[:, 0]).argmax())
            first[main] = int(np.sign(alike[main, 0]))
            turns[there] = turns[here] @ np.array([[first[0], -first[1]], [first[1], first[0]]])
            queue.append(there)
    return places


def _fit(places: dict[int, tuple[int, int]], centers: Float64s, size: Float64s) -> Lattice | None:
    cv2 = load_opencv()
    if len(places) < FEWEST:
        return None
    where = np.array(list(places.values()), dtype=np.float64)
    pixels = centers[list(places)]
    if min(np.ptp(where, axis=0)) < 1 or max(np.ptp(where, axis=0)) < 2:
        return None
    homography, inliers = cv2.findHomography(where, pixels, cv2.RANSAC, 0.15 * float(np.median(size[list(places)])))
    if homography is None:
        return None
    good = where[inliers[:, 0].astype(bool)]
    if len(good) < FEWEST or min(np.ptp(good, axis=0)) < 1:
        return None
    low, high = good.min(axis=0).astype(int), good.max(axis=0).astype(int)
    return Lattice(homography, (int(low[0]), int(low[1])), (int(high[0]), int(high[1])), len(good))
