"""Photographs of a shoot, grouped by light: one balance per group, for all of its cameras.

`c5.photos.shared_lights` decides which photographs are in one light and what that light is. This module
covers what photographs say about it, gray cards, clocks that differ, and the file of groups that a person may edit.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from c5.choices import Fallback
from c5.color import Float64s, as_illuminant, rgb_to_uv, uv_to_rgb
from c5.errors import C5Error, ImageError, ParameterError, ReadError
from c5.io.files import printable, read_bytes
from c5.photos.files import Failure
from c5.photos.photo import Photo
from c5.photos.picture import turn
from c5.photos.shared_lights import (
    MATRICES,
    Labels,
    Views,
    find_clock,
    find_offsets,
    from_common,
    fuse_lights,
    group_lights,
    to_common,
)
from c5.photos.smoothing import count_seconds

if TYPE_CHECKING:
    from c5.photos.balancing import Balance

Box = tuple[int, int, int, int]
"""Left, top, width and height in pixels of the upright picture."""

COLUMNS = ("file", "group", "light")
MOST_BYTES = 64 * 2**20

CARD = 0.05
"""How exactly a gray card gives the light of the photographs around it."""
MEASURED_PIXELS = 4_000_000
MOST_CLIPPED, DARKEST = 0.05, 0.005
"""Of a gray card: the part that may be clipped, and the least brightness of a channel."""

ALIKE = 0.6
"""Photographs in one light have similar errors: this share of the variance is common to all of them, so that averaging
over a group does not reduce it."""


class Reference(NamedTuple):
    """A gray card or a gray patch in one photograph."""

    path: Path
    box: Box | None = None
    """Where it is; by default it fills the middle third of the picture, each way."""
    light: Float64s | None = None
    """Its light, if it was measured before."""


@dataclass(frozen=True)
class Sets:
    """What is known of the lights of a shoot beforehand."""

    groups: Mapping[Path, str] = field(default_factory=dict)
    """The groups of some photographs, by absolute path; the others are grouped among themselves."""
    references: tuple[Reference, ...] = ()


def balance_sets(
    balances: Sequence[Balance],
    sets: Sets,
    fallback: Fallback,
    tell: Callable[[str], object],
    follow: Callable[[int, int], object] = lambda done, total: None,
) -> tuple[list[Balance], list[Failure]]:
    """The same photographs, each with its group and the light of its group, and what could not be done.

    Where an estimate is uncertain, the fallback counts as a second estimate of the same photograph. A group with a
    reference gets the reference's light. `follow` receives how much is done, and the total.
    """
    places = {printable(os.path.abspath(balance.path)): index for index, balance in enumerate(balances)}
    given = {printable(path): name for path, name in sets.groups.items()}
    failures = [
        Failure(Path(file), f"{file}: is in a group, but not among the photographs; correct the file of groups")
        for file in given
        if file not in places
    ]
    measured: dict[int, Float64s] = {}
    for reference in sets.references:
        index = places.get(printable(os.path.abspath(reference.path)))
        try:
            if index is None:
                raise ParameterError("is not a readable photograph of this set; a reference must be one")
            known = reference.light
            measured[index] = measure_reference(balances[index].photo, reference.box) if known is None else known
        except C5Error as error:
            failures.append(Failure.of(reference.path, error))
    if not balances:
        return [], failures
    views = _see_lights(balances, fallback, measured)
    views = _align_clocks(views, balances, tell)
    named = {places[file]: name for file, name in given.items() if file in places}
    names = _name_groups(balances, views, named, follow)
    if len(balances) == 1:
        tell("one photograph: there is nothing to group it with")
    untimed = int(np.isnan(views.seconds).sum())
    if untimed and len(balances) > 1:
        tell(f"{untimed} of {len(balances)} photographs have no time: grouped by their light alone")
    result = [replace(balance, group=name) for balance, name in zip(balances, names, strict=True)]
    labels, cameras = (
        np.unique(each, return_inverse=True)[1] for each in (names, [str(balance.photo.camera) for balance in balances])
    )
    offsets = find_offsets(views, labels, cameras)
    views = replace(views, uv=views.uv - offsets)
    for name in range(int(labels.max()) + 1):
        members = np.flatnonzero(labels == name)
        for space in set(views.space[members].tolist()):
            _share_light(result, views, members[views.space[members] == space], measured, offsets)
    return result, failures


def _share_light(
    balances: list[Balance], views: Views, members: Labels, measured: Mapping[int, Float64s], offsets: Float64s
) -> None:
    """Give photographs of one group their light, in place. A single one keeps its own, unless it was measured."""
    cards = [index for index in members.tolist() if index in measured]
    if len(members) == 1 and not cards:
        return
    fused_uv = fuse_lights(views, members)
    degrees = np.maximum([balances[index].uncertainty or 0 for index in members], 0.1)
    fused = ((1 + ALIKE * (len(members) - 1)) / np.sum(1 / degrees**2)) ** 0.5
    for index in members.tolist():
        # A card photographed by the same camera says more than matrices do.
        camera = balances[index].photo.camera
        own = [card for card in cards if balances[card].photo.camera == camera] or cards
        uv = (np.mean(views.uv[own], axis=0) if own else fused_uv) + offsets[index]
        matrices = None if views.space[index] else balances[index].photo.matrices
        try:
            light = uv_to_rgb(uv) if matrices is None else from_common(uv, matrices)
        except ParameterError:  # a light that this camera cannot see
            continue
        how = ("reference", None) if cards else ("set", float(fused))
        balances[index] = replace(balances[index], illuminant=light, source=how[0], uncertainty=how[1])


def _see_lights(balances: Sequence[Balance], fallback: Fallback, measured: Mapping[int, Float64s]) -> Views:
    """What photographs say about their lights, in the space of all cameras; in the camera's own without matrices."""
    own: dict[str | None, int] = {}
    uvs, covariances, spaces = [], [], []
    for index, balance in enumerate(balances):
        if index in measured:
            uv, covariance, is_common = _carry(balance.photo, measured[index], np.eye(2) * CARD**2)
        else:
            known = _views.setdefault(balance, {})
            if fallback not in known:
                light, degrees = balance.weigh(fallback)
                spread = np.eye(2) * CARD**2 if balance.spread is None else balance.spread
                known[fallback] = _carry(
                    balance.photo, light, spread * (degrees / (balance.uncertainty or degrees)) ** 2
                )
            uv, covariance, is_common = known[fallback]
        uvs.append(uv)
        covariances.append(covariance + MATRICES**2 * np.eye(2))
        spaces.append(0 if is_common else own.setdefault(balance.photo.camera, len(own) + 1))
    photos = [balance.photo for balance in balances]
    return Views(
        np.array(uvs),
        np.array(covariances),
        np.array([np.nan if photo.time is None else count_seconds(photo.time) for photo in photos]),
        np.array([np.nan if photo.exposure is None else photo.exposure for photo in photos]),
        np.array(spaces, dtype=np.intp),
    )


_views: WeakKeyDictionary[Balance, dict[Fallback, tuple[Float64s, Float64s, bool]]] = WeakKeyDictionary()
"""Cached, since each takes a millisecond to find: a person who edits groups asks for the same again and again."""


def _carry(photo: Photo, light: Float64s, covariance: Float64s) -> tuple[Float64s, Float64s, bool]:
    """The log-chroma of a light and its covariance in the space of all cameras, or in the camera's own; and which."""
    uv, matrices = rgb_to_uv(light), photo.matrices
    if matrices is None:
        return uv, covariance, False
    try:
        steps = 0.01 * np.eye(2)
        sides = [[to_common(uv_to_rgb(uv + sign * step), matrices) for sign in (1, -1)] for step in steps]
        slope = np.stack([(after - before) / 0.02 for after, before in sides], axis=1)
        return to_common(light, matrices), slope @ covariance @ slope.T, True
    except ParameterError:
        return uv, covariance, False


def _align_clocks(views: Views, balances: Sequence[Balance], tell: Callable[[str], object]) -> Views:
    """Times by the clock of the camera with the most photographs; others may be whole hours off."""
    cameras = np.array([str(balance.photo.camera) for balance in balances])
    counted = [(-int((cameras == camera).sum()), camera) for camera in set(cameras.tolist())]
    first, *others = [camera for _, camera in sorted(counted)]
    seconds = views.seconds.copy()
    for camera in others:
        hours = find_clock(views, cameras == first, cameras == camera)
        if hours:
            seconds[cameras == camera] += 3600 * hours
            way = "behind" if hours > 0 else "ahead of"
            tell(f"the clock of {camera} seems to be {abs(hours)} h {way} that of {first}: taken into account")
    return replace(views, seconds=seconds)


def _name_groups(
    balances: Sequence[Balance], views: Views, given: Mapping[int, str], follow: Callable[[int, int], object]
) -> list[str]:
    """The group of each photograph: as given, or a number by the time of its first photograph."""
    free = np.array([index for index in range(len(balances)) if index not in given], dtype=np.intp)
    # In an order independent of names and folders, so that ties are always decided the same way.
    free = free[np.lexsort((*views.uv[free].T, views.seconds[free]))]
    found_labels = group_lights(views.take(free), follow).tolist() if free.size else []
    labels = dict(zip(free.tolist(), found_labels, strict=True))
    unused = (
        name for number in range(1, len(balances) + len(given) + 1) if (name := str(number)) not in {*given.values()}
    )
    names = dict(given)
    found: dict[int, str] = {}
    for index in sorted(labels, key=lambda index: (np.nan_to_num(views.seconds[index], nan=np.inf), index)):
        if labels[index] not in found:
            found[labels[index]] = next(unused)
        names[index] = found[labels[index]]
    return [names[index] for index in range(len(balances))]


def measure_reference(photo: Photo, box: Box | None = None) -> Float64s:
    """The illuminant that a gray card shows."""
    photograph = photo.reading.read(photo.path, MEASURED_PIXELS)
    image = photograph.image
    height, width = photograph.size if photograph.orientation < 5 else photograph.size[::-1]
    left, top, wide, high = box or (width // 3, height // 3, max(width // 3, 1), max(height // 3, 1))
    if min(left, top) < 0 or min(wide, high) < 1 or left + wide > width or top + high > height:
        raise ParameterError(f"the rectangle {left},{top},{wide},{high} is not inside its {width} x {height} pixels")
    rgb, clipped = (turn(pixels, photograph.orientation) for pixels in (image.rgb, image.clipped))
    down, across = len(rgb) / height, rgb.shape[1] / width
    rows = slice(int(top * down), max(round((top + high) * down), int(top * down) + 1))
    columns = slice(int(left * across), max(round((left + wide) * across), int(left * across) + 1))
    if clipped[rows, columns].mean() > MOST_CLIPPED:
        raise ImageError("the gray card is clipped: it says nothing about the light; choose a darker patch or frame")
    mean = rgb[rows, columns][~clipped[rows, columns]].mean(axis=0, dtype=np.float64)
    if mean.min() < DARKEST:
        raise ImageError("the gray card is too dark to tell the light; choose a brighter patch or frame")
    return as_illuminant(mean)


def read_groups(path: str | Path) -> dict[Path, str]:
    """The groups in a file made by `encode_groups`, by absolute path; only its columns file and group count."""
    path = Path(path)
    try:
        data = read_bytes(path)[:MOST_BYTES]
        rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        if not {*COLUMNS[:2]} <= {*(rows.fieldnames or ())}:
            raise ReadError(f"{path}: not a file of groups: its first line must name the columns file and group")
        folder = os.path.abspath(path.parent)
        found: dict[Path, str] = {}
        for row in rows:
            file, group = row["file"], (row["group"] or "").strip()
            if not file or not group:
                continue
            place = Path(os.path.normpath(os.path.join(folder, file)))
            if found.setdefault(place, group) != group:
                raise ReadError(f"{path}: {file} is in two groups, {found[place]} and {group}; remove one of the lines")
        return found
    except (UnicodeDecodeError, csv.Error):
        raise ReadError(f"{path}: not a file of groups: not a table in UTF-8; save it as CSV") from None


def encode_groups(rows: Iterable[tuple[Path, str, str]], folder: Path) -> bytes:
    """The content of a file of groups, in a folder: the photographs, their groups and lights, group by group."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    for path, group, light in rows:
        writer.writerow([os.path.relpath(path, folder), group, light])
    return table.getvalue().encode("utf-8", "surrogateescape")
