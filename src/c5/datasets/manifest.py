"""A folder with `manifest.csv`: path, camera, r, g, b for each image, and dataset, scene, fold where they are known.

Paths are relative to the manifest. The images are linear with black at 0 and white at the largest number of their type.
`c5 demo` writes such a folder.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

from c5.datasets.labels import as_label
from c5.datasets.sample import Found, ImageFile, Problem, Sample
from c5.errors import DataError

NAME = "manifest"
DESCRIPTION = "a folder with manifest.csv (path, camera, r, g, b)"

FILE = "manifest.csv"
COLUMNS = ("path", "camera", "r", "g", "b")


def recognises(folder: Path) -> bool:
    try:
        return (folder / FILE).is_file()
    except OSError:
        return False


def read(folder: Path) -> Found:
    manifest = folder / FILE
    found = Found([], [])
    rows: dict[Path, int] = {}
    with found.noting(manifest):
        for number, row in _read_rows(manifest):
            try:
                sample = _read_sample(folder, row)
                if sample.path.resolve() in rows:
                    raise DataError(
                        f"{sample.path} is in row {rows[sample.path.resolve()]} already; keep one of the two"
                    )
                rows[sample.path.resolve()] = number
                found.samples.append(sample)
            except DataError as error:
                found.problems.append(Problem(manifest, f"{manifest}, row {number}: {error}"))
    return found


def _read_rows(manifest: Path) -> list[tuple[int, dict[str, str]]]:
    """Each row by column, with its number as a spreadsheet shows it: the header is row 1."""
    try:
        with manifest.open(newline="", encoding="utf-8-sig") as file:
            lines = [(number, row) for number, row in enumerate(csv.reader(file), 1) if any(map(str.strip, row))]
    except FileNotFoundError:
        raise DataError(f"{manifest}: missing; write one with the columns {', '.join(COLUMNS)}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{manifest}: cannot be read as CSV ({error}); save it as CSV in UTF-8") from None
    header = [name.strip().lower() for name in lines[0][1]] if lines else []
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise DataError(f"{manifest}: the first line has no {', '.join(missing)}; it must name the columns")
    return [(number, dict(zip(header, map(str.strip, row), strict=False))) for number, row in lines[1:]]


def _read_sample(folder: Path, row: dict[str, str]) -> Sample:
    if absent := [name for name in COLUMNS if not row.get(name)]:
        raise DataError(f"{', '.join(absent)} not given; complete the row or remove it")
    path = folder / row["path"]
    if not os.path.isfile(path):  # of any string, unlike Path.is_file
        raise DataError(f"{path} is missing; put the image there or remove the row")
    try:
        rgb = [float(row[channel]) for channel in "rgb"]
    except ValueError:
        raise DataError(f"r, g, b of {path} are not numbers; correct the label or remove the row") from None
    fold = row.get("fold") or None
    if fold is not None and not fold.isdecimal():
        raise DataError(f"the fold {fold!r} of {path} is not a whole number from 0; correct it or leave it empty")
    dataset = row.get("dataset") or folder.resolve().name
    return Sample(
        ImageFile(path),
        as_label(rgb, path),
        camera=row["camera"],
        dataset=dataset,
        name=f"{dataset}/{row['camera']}/{Path(row['path']).as_posix()}",
        scene=row.get("scene") or None,
        fold=None if fold is None else int(fold),
    )
