"""A roll of a virtual camera on disk: DNG files, and the truth about their lights in `manifest.csv`."""

from __future__ import annotations

import csv
import io
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

from c5.color import Float64s
from c5.demo.camera import VirtualCamera
from c5.demo.photo import render_roll
from c5.demo.raw_files import Layout, write_dng
from c5.errors import WriteError
from c5.io.files import NOT_OWN, write_file
from c5.io.marks import is_signed
from c5.regular import read_regular, read_text

SIZE = (1280, 1920)
"""Height and width of a photograph: as with real cameras, several repeats of the filters go into a working pixel."""

AT_ONCE = 8
"""Photographs in memory at a time."""

MANIFEST = "manifest.csv"


class Rendered(NamedTuple):
    """A photograph and the truth about it."""

    path: Path
    illuminant: Float64s
    subject: str


def write_roll(folder: Path, camera: VirtualCamera, count: int, rng: np.random.Generator) -> list[Rendered]:
    """Render photographs into a folder, where they replace those of an earlier roll."""
    if os.path.lexists(folder / MANIFEST):
        remove_rendered(folder, folder / MANIFEST)
    rows: list[tuple[str, ...]] = [("path", "camera", "r", "g", "b")]
    rendered = []
    for start in range(0, count, AT_ONCE):
        for index, photo in enumerate(render_roll(camera, min(AT_ONCE, count - start), rng, SIZE), start):
            layout = Layout(time=datetime(2026, 6, 1, 10) + timedelta(minutes=7 * index))
            name = f"{index + 1:03d}-{photo.scene.replace(' ', '-')}.dng"
            path = write_dng(folder / name, photo, camera, layout)
            rows.append((name, camera.name, *(f"{value:.6f}" for value in photo.illuminant)))
            rendered.append(Rendered(path, photo.illuminant, f"{photo.scene} in {photo.light}"))
    table = io.StringIO()
    csv.writer(table).writerows(rows)
    write_file(folder / MANIFEST, table.getvalue().encode())
    return rendered


def remove_rendered(folder: Path, manifest: Path) -> None:
    """Remove the photographs that were rendered into a folder, by their manifest: a roll must come from one camera."""
    try:
        rows = list(csv.DictReader(read_text(manifest).splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error):
        rows = [{}]
    if not all(str(row.get("camera")).startswith("Virtual ") and row.get("path") for row in rows):
        raise WriteError(f"{manifest}: {NOT_OWN}")
    for row in rows:
        path = folder / Path(row["path"]).name
        if path.is_file() and is_signed(read_regular(path)):  # anything else is somebody's own
            path.unlink()
