"""A folder with `manifest.csv`: path, camera, r, g, b for each image, and what else is known (`MORE`).

Paths are relative to the manifest and stay in its folder. The images are linear. Unless the manifest gives their
levels, black is at 0 and white at the largest number of their type. `c5 demo` writes such a folder.
"""

from __future__ import annotations

import csv
import io
import os
import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from c5.color import Float64s
from c5.datasets.labels import as_label
from c5.datasets.sample import Found, ImageFile, Levels, Problem, Sample
from c5.errors import DataError, DataWarning, reason
from c5.regular import open_regular

NAME = "manifest"
DESCRIPTION = "a folder with manifest.csv (path, camera, r, g, b)"

FILE = "manifest.csv"
COLUMNS = ("path", "camera", "r", "g", "b")
MORE = ("dataset", "scene", "fold", "black", "white", "mask", "masked")
MOST_NAMED = 20
"""If more rows than this cannot be used, they are counted and only the first is named."""


def recognizes(folder: Path) -> bool:
    try:
        return (folder / FILE).is_file()
    except OSError:
        return False


def read(folder: Path) -> Found:
    manifest = folder / FILE
    files = _Files(folder)
    found = Found([], [])
    rows: dict[str, int] = {}
    wrong: list[str] = []
    count = total = 0
    with found.noting(manifest):
        for number, row in _read_rows(manifest):
            total += 1
            try:
                sample = _read_sample(files, row)
                real = os.path.realpath(sample.path)
                if real in rows:
                    raise DataError(f"{sample.path} is in row {rows[real]} already; keep one of the two")
                rows[real] = number
                found.samples.append(sample)
            except DataError as error:
                count += 1
                if count <= MOST_NAMED:
                    wrong.append(f"row {number}: {error}")
    if count > MOST_NAMED:
        wrong = [f"{count} of {total} rows cannot be used; the first is {wrong[0]}"]
    found.problems.extend(Problem(manifest, f"{manifest}, {message}") for message in wrong)
    return found


def _read_rows(manifest: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row by column, with its number as a spreadsheet shows it: the header is row 1."""
    try:
        with io.TextIOWrapper(open_regular(manifest), "utf-8-sig", newline="") as file:
            lines = ((number, row) for number, row in enumerate(csv.reader(file), 1) if any(map(str.strip, row)))
            _, head = next(lines, (0, []))
            header = [name.strip().lower() for name in head]
            _check_header(manifest, header)
            for number, row in lines:
                yield number, dict(zip(header, map(str.strip, row), strict=False))
    except FileNotFoundError:
        raise DataError(f"{manifest}: missing; write one with the columns {', '.join(COLUMNS)}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{manifest}: cannot be read as CSV ({reason(error)}); save it as CSV in UTF-8") from None


def _check_header(manifest: Path, header: list[str]) -> None:
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise DataError(f"{manifest}: the first line has no {', '.join(missing)}; it must name the columns")
    if twice := sorted({name for name in header if name and header.count(name) > 1}):
        raise DataError(f"{manifest}: the first line names {', '.join(twice)} twice; keep one of each")
    if unknown := [name for name in header if name and name not in COLUMNS + MORE]:
        known = ", ".join(COLUMNS + MORE)
        warnings.warn(
            f"{manifest}: not used: {', '.join(unknown)[:200]}; known columns are {known}", DataWarning, stacklevel=2
        )


def _read_sample(files: _Files, row: dict[str, str]) -> Sample:
    if absent := [name for name in COLUMNS if not row.get(name)]:
        raise DataError(f"{', '.join(absent)} not given; complete the row or remove it")
    path = _find(files, row["path"], "image")
    try:
        rgb = [float(row[channel]) for channel in "rgb"]
    except ValueError:
        raise DataError(f"r, g, b of {path} are not numbers; correct the label or remove the row") from None
    fold = row.get("fold") or None
    if fold is not None and not (fold.isdecimal() and len(fold) < 10):
        raise DataError(f"the fold {fold[:20]!r} of {path} is not a whole number from 0; correct it or leave it empty")
    dataset = row.get("dataset") or files.folder.resolve().name
    return Sample(
        ImageFile(
            path,
            *_read_levels(row, path),
            masked=_read_polygons(row.get("masked", ""), path),
            mask=_find(files, row["mask"], "mask") if row.get("mask") else None,
        ),
        as_label(rgb, path),
        camera=row["camera"],
        dataset=dataset,
        name=f"{dataset}/{row['camera']}/{Path(row['path']).as_posix()}",
        scene=row.get("scene") or None,
        fold=None if fold is None else int(fold),
    )


def _read_polygons(text: str, path: Path) -> tuple[Float64s, ...]:
    """Polygons are separated by semicolons; each is x and y of its corners."""
    try:
        polygons = tuple(
            np.array(each.split(), dtype=np.float64).reshape(-1, 2) for each in text.split(";") if each.strip()
        )
    except ValueError:
        polygons = (np.full((1, 2), np.nan),)
    if not all(len(polygon) > 2 and (np.abs(polygon) < 1e6).all() for polygon in polygons):
        raise DataError(f"masked of {path} is not x and y of three or more corners, in pixels; correct the row")
    return polygons


def _find(files: _Files, name: str, what: str) -> Path:
    """A file that a row names, which must be there."""
    if os.path.isabs(name) or ".." in name.replace("\\", "/").split("/"):
        raise DataError(f"{name} leaves the folder of the manifest; put the {what} below it, or a link to it")
    path = os.path.join(files.folder, name)
    if not files.has(path):
        raise DataError(f"{path} is missing; put the {what} there or remove the row")
    return Path(path)


class _Files:
    """What lies in the folders of a manifest. A folder is listed once, so that a million missing files take seconds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.listed: dict[str, set[str]] = {}

    def has(self, path: str) -> bool:
        place, name = os.path.split(path)
        if place not in self.listed:
            try:
                self.listed[place] = set(map(_fold, os.listdir(place or ".")))
            except (OSError, ValueError):
                self.listed[place] = set()
        return _fold(name) in self.listed[place] and os.path.isfile(path)


def _fold(name: str) -> str:
    """A name as the most lenient file system compares it."""
    return unicodedata.normalize("NFC", name).casefold()


def _read_levels(row: dict[str, str], path: Path) -> tuple[Levels, Levels | None]:
    """Black and white of a row: a number each, or three, one per channel."""
    levels: dict[str, Levels] = {}
    for name in ("black", "white"):
        try:
            numbers = tuple(map(float, row.get(name, "").split()))
        except ValueError:
            numbers = (-1.0,)
        if len(numbers) not in (0, 1, 3) or not all(0 <= number < 1e9 for number in numbers):
            raise DataError(f"{name} of {path} is neither one number from 0 nor three; correct the row")
        if numbers:
            levels[name] = numbers[0] if len(numbers) == 1 else numbers
    black, white = levels.get("black", 0.0), levels.get("white")
    if white is None and isinstance(black, tuple):
        raise DataError(f"{path} has a black level for each channel but no white level; give that too")
    if white is not None and not all(b < w for b, w in zip(_each(black), _each(white), strict=True)):
        raise DataError(f"the black level of {path} is not below its white level; correct the row")
    return black, white


def _each(level: Levels) -> tuple[float, ...]:
    return level if isinstance(level, tuple) else (level,) * 3
