"""Labels for photographs that show a color chart or a gray card: the light, and what to mask.

Charts are found. A gray card looks like any gray thing, so it is measured only where somebody has pointed it out, in
`corrections.csv`; charts that are not found, or that are found wrongly, are corrected there, too.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from c5.charts.chart import Reading, Refusal
from c5.charts.finding import LOOKED_AT, Chart, agree, find_charts, read_corners
from c5.charts.grid import load_opencv
from c5.charts.label_page import draw_label
from c5.color import Float64s, angular_error, as_illuminant
from c5.colorimetry.temperature import tell_light
from c5.datasets.sample import cover
from c5.errors import C5Error, DataError, NotLinearError
from c5.image import LinearImage
from c5.io.files import printable, write_file
from c5.parallel import in_parallel
from c5.photos.files import list_photographs
from c5.photos.photo import Reading as Levels
from c5.regular import read_text

MANIFEST, CORRECTIONS = "manifest.csv", "corrections.csv"
COLUMNS = ("path", "camera", "r", "g", "b", "black", "white", "masked")
KINDS = ("chart", "card", "none")
"""What a correction may say that a photograph shows."""

CARD_INSIDE = 0.8
"""How much of a card is measured, in each direction."""
CARD_DEG = 1.0
"""Degrees by which the quarters of a card may differ."""
CARD_PIXELS = 64
NOT_LINEAR = "its pixels are not linear; use the raw file or a 16-bit linear export"
UNKNOWN = "names no camera; say which camera it is from"


@dataclass(frozen=True, eq=False)
class Correction:
    """What somebody says about photographs."""

    pattern: str
    """A path below the folder; * stands for any part of one."""
    kind: str
    corners: Float64s | None
    """(4, 2), x and y in pixels of the picture as it is on the sensor; None where there is nothing to see."""

    def is_of(self, path: Path) -> bool:
        """Whether it is about a photograph, whose name may have brackets and question marks in it."""
        return fnmatchcase(path.as_posix(), re.sub(r"[\[?]", r"[\g<0>]", self.pattern))


@dataclass(frozen=True, eq=False)
class Label:
    """What was found in a photograph."""

    path: Path
    """Below the folder."""
    camera: str | None
    size: tuple[int, int]
    """Height and width in pixels of the picture on the sensor."""
    result: Reading | Refusal
    outlines: list[Float64s]
    """(4, 2) each, what to mask, in those pixels; for a refusal, what was looked at."""
    kind: str
    """A chart, a card, or none."""
    corrected: bool
    picture: bytes = b""
    """A JPEG of the photograph with the outlines; empty if it cannot be read."""
    orientation: int = 1
    """How the picture is turned, as in Exif."""
    kelvin: float | None = None
    """The temperature of the light, if the file has the camera's matrices."""

    @property
    def reason(self) -> str:
        """Why there is no label; empty if there is one."""
        return "" if isinstance(self.result, Reading) else self.result.reason

    @property
    def illuminant(self) -> Float64s | None:
        return self.result.illuminant if isinstance(self.result, Reading) else None


def read_corrections(folder: Path) -> list[Correction]:
    """What `corrections.csv` in a folder says; nothing where there is none. Later lines win over earlier ones."""
    path = folder / CORRECTIONS
    if not os.path.lexists(path):
        return []
    try:
        rows = list(csv.reader(io.StringIO(read_text(path).removeprefix("\ufeff"), newline="")))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; it must be a file") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as CSV ({error}); save it as CSV in UTF-8") from None
    found = []
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[:2] == ["path", "kind"]:
            continue
        name, kind, corners = [*cells, "", "", ""][:3]
        if not name or kind not in KINDS or len(cells) > 3:
            raise DataError(f"{path}, row {number}: a row is a path, {' or '.join(KINDS)}, and corners; correct it")
        found.append(Correction(name, kind, None if kind == "none" else _read_corners(corners, path, number)))
    return found


def _read_corners(text: str, path: Path, number: int) -> Float64s:
    try:
        corners = np.array([float(word) for word in text.split()]).reshape(4, 2)
    except ValueError:
        corners = np.full((4, 2), np.nan)
    corners = np.where(np.abs(corners) < 1e6, corners, np.nan)
    edges = np.roll(corners, -1, axis=0) - corners
    after = np.roll(edges, -1, axis=0)
    bends = edges[:, 0] * after[:, 1] - edges[:, 1] * after[:, 0]
    if not (np.abs(bends) > 1).all() or abs(np.sign(bends).sum()) != 4:
        raise DataError(f"{path}, row {number}: corners are x and y of four points around the patches; correct it")
    return corners


def label_folder(
    folder: Path,
    levels: Levels,
    camera: str | None = None,
    track: Callable[[Sequence[Path]], Iterable[Path]] = iter,
    jobs: int | None = None,
) -> list[Label]:
    """Look for charts in all photographs below a folder. Those that cannot be read are refused like the others."""
    load_opencv()
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; give a folder of photographs")
    listed = list_photographs([folder])
    paths = [path.relative_to(folder) for path in listed.paths]
    if not paths:
        raise DataError(f"{folder}: no photographs in it; give a folder of raw files")
    corrections = read_corrections(folder)
    for one in corrections:
        if not any(map(one.is_of, paths)):
            raise DataError(f"{folder / CORRECTIONS}: no photograph is called {one.pattern}; correct the path")

    def work(path: Path) -> Label:
        told = [one for one in corrections if one.is_of(path)]
        return label_photograph(folder, path, levels, camera, told[-1] if told else None)

    return [label for _, label in in_parallel(work, track(paths), jobs)]


def label_photograph(
    folder: Path, path: Path, levels: Levels, camera: str | None = None, correction: Correction | None = None
) -> Label:
    """Look for a chart in one photograph of a folder, or where a correction says that it is."""
    corrected = correction is not None
    text = path.as_posix()
    if text.encode(errors="replace").decode().strip() != text:
        reason = f"{printable(folder / path)}: {MANIFEST} cannot hold its name; rename it"
        return Label(path, None, (1, 1), Refusal(reason, np.inf), [], "none", corrected)
    try:
        photograph = levels.read(folder / path, LOOKED_AT)
    except C5Error as error:
        reason = f"{folder / path}: {NOT_LINEAR}" if isinstance(error, NotLinearError) else str(error)
        return Label(path, None, (1, 1), Refusal(reason, np.inf), [], "none", corrected)
    image, size = photograph.image, photograph.size
    scale = np.array(image.rgb.shape[1::-1]) / size[::-1]
    name = camera or image.camera
    kind, outlines = "chart", []
    result: Reading | Refusal
    if correction is not None and correction.corners is None:
        kind, result = "none", Refusal(f"by {CORRECTIONS}", np.inf)
    elif correction is not None and correction.kind == "card":
        assert correction.corners is not None
        kind, outlines = "card", [correction.corners]
        result = read_card(image, correction.corners * scale)
    else:
        charts = find_charts(image) if correction is None else [read_corners(image, correction.corners * scale)]
        kind, result = ("chart", agree(charts)) if charts else ("none", Refusal("no chart found", np.inf))
        outlines = _outlines(charts, scale)
    if isinstance(result, Reading) and name is None:
        result = Refusal(UNKNOWN, result.off)
    light = result.illuminant if isinstance(result, Reading) else None
    picture = draw_label(photograph, light, [outline * scale for outline in outlines])
    told = None if light is None else tell_light(light, photograph.matrices)
    kelvin = None if told is None else told.at.kelvin
    return Label(path, name, size, result, outlines, kind, corrected, picture, photograph.orientation, kelvin)


def _outlines(charts: list[Chart], scale: Float64s) -> list[Float64s]:
    """What to mask: all charts, those without a light too; if none has one, where one was looked for."""
    known = any(isinstance(chart.result, Reading) for chart in charts)
    return [(chart.outline if known else chart.corners) / scale for chart in charts]


def read_card(image: LinearImage, corners: Float64s) -> Reading | Refusal:
    """The light of a gray card whose corners (4, 2) in pixels somebody has pointed out."""
    inner = corners.mean(axis=0) + CARD_INSIDE * (corners - corners.mean(axis=0))
    inside = cover([inner], image.rgb.shape[:2])
    if inside.sum() < CARD_PIXELS:
        return Refusal("the card is outside the picture, or too small to be measured; point it out again", np.inf)
    if image.clipped[inside].mean() > 0.01:
        return Refusal("the card is clipped; expose it less", np.inf)
    counted = inside & image.counts
    if counted.sum() < CARD_PIXELS:
        return Refusal("the card is too dark to be measured; expose it longer", np.inf)
    rgb = image.rgb[counted].astype(np.float64)
    y, x = np.nonzero(counted)
    middle = corners.mean(axis=0)
    quarters = 2 * (x > middle[0]) + (y > middle[1])
    means = np.array([rgb[quarters == one].mean(axis=0) for one in range(4) if (quarters == one).sum() > 9])
    light = as_illuminant(rgb.mean(axis=0))
    error = float(np.degrees((rgb.std(axis=0) / rgb.mean(axis=0)).max() / np.sqrt(len(rgb))))
    if (means <= 0).any() or float(angular_error(means, light).max()) > CARD_DEG:
        return Refusal("the card is not of one color: two lights fall on it, or it is not a card", np.inf)
    shading = float(means.sum(axis=1).max() / means.sum(axis=1).min())
    turn = max(float(angular_error(one, other)) for one in means for other in means)
    return Reading(light, 0.0, shading, turn, error, 1)


def write_manifest(folder: Path, labels: Sequence[Label], levels: Levels, *, dry_run: bool = False) -> Path:
    """Write the labels of a folder to its `manifest.csv`, or only make sure that nothing is in the way."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(COLUMNS)
    black = f"{levels.black:g}" if levels.black else ""
    white = "" if levels.white is None else f"{levels.white:g}"
    for label in labels:
        if label.illuminant is not None:
            light = (f"{value:.6f}" for value in label.illuminant)
            masked = "; ".join(" ".join(f"{value:.1f}" for value in outline.ravel()) for outline in label.outlines)
            rows.writerow([label.path.as_posix(), label.camera, *light, black, white, masked])
    return write_file(folder / MANIFEST, table.getvalue().encode(), dry_run=dry_run)
