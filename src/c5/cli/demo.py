"""`c5 demo`: the whole way of a photographer's files, with a camera that nobody owns."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.console import console
from c5.cli.options import find_classical

if TYPE_CHECKING:
    from collections.abc import Callable

    from c5.ccc import Estimate
    from c5.image import LinearImage

SIZE = (1280, 1920)
"""Height and width of a photograph: as with real cameras, several repeats of the filters go into a working pixel."""

AT_ONCE = 8
"""Photographs in memory."""


def demo(
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("demo"),
    count: Annotated[int, typer.Option(help="How many photographs.", min=1, max=64)] = 8,
    seed: Annotated[int, typer.Option(help="Another number, another roll.", min=0)] = 15,
    method: Annotated[str | None, typer.Option(help="A classical estimator instead: see `c5 methods`.")] = None,
) -> None:
    """Render a roll of photographs as DNG files, catalogue it, balance it, and show the result."""
    import numpy as np

    from c5.color import angular_error
    from c5.demo import VirtualCamera, render_roll
    from c5.demo.dng import Layout, write_dng
    from c5.io.files import write_file
    from c5.io.raw import read_photograph
    from c5.model import load_model
    from c5.photos.catalog import Catalog
    from c5.photos.photo import Photo
    from c5.photos.picture import Frame, make_sheet, write_picture
    from c5.photos.summary import show_pair

    rng = np.random.default_rng(seed)
    camera = VirtualCamera.random(rng)
    console.print(f"Rendering {count} photographs with the virtual camera {camera.name} ...", markup=False)
    _remove_old_roll(out / "roll")
    manifest, taken = [], []
    for start in range(0, count, AT_ONCE):
        for index, photo in enumerate(render_roll(camera, min(AT_ONCE, count - start), rng, SIZE), start):
            layout = Layout(time=datetime(2026, 6, 1, 10) + timedelta(minutes=7 * index))
            name = f"{index + 1:03d}-{photo.scene.replace(' ', '-')}.dng"
            path = write_dng(out / "roll" / name, photo, camera, layout)
            manifest.append((name, camera.name, *(f"{value:.6f}" for value in photo.illuminant)))
            taken.append((path, photo.illuminant, f"{photo.scene} in {photo.light}"))
    table = io.StringIO()
    csv.writer(table).writerows([("path", "camera", "r", "g", "b"), *manifest])
    truth = write_file(out / "roll" / "manifest.csv", table.getvalue().encode())
    with Catalog.open(out / "catalog.db") as catalog:
        catalog.add([out / "roll"])
        model = load_model()
        roll = catalog.roll(model, camera.name)
    profile = None if roll is None else roll.profile
    estimator: Callable[[LinearImage], Estimate] = partial(model.estimate, profile=profile)
    if method is not None:
        estimator = find_classical(method)
    frames, misses = [], []
    for path, illuminant, subject in taken:
        photograph = read_photograph(path)
        estimate = estimator(photograph.image)
        misses.append(float(angular_error(estimate.illuminant, illuminant)))
        pair = show_pair(Photo.of(path, photograph, thumbnail=True), estimate.illuminant)
        frames.append(Frame(pair, f"{subject}: {misses[-1]:.1f}° off"))
    by = method or "the bundled model"
    title = f"Camera roll of {camera.name}, balanced by {by}: {np.mean(misses):.1f}° off on average"
    sheet = write_picture(out / "sheet.png", make_sheet(title, ["as shot", "balanced"], frames))
    console.print(f"Mean angular error of {by}: {np.mean(misses):.2f} degrees over {count} photographs")
    console.print(f"DNG files             {out / 'roll'}", markup=False)
    console.print(f"Their catalogue       {out / 'catalog.db'}", markup=False)
    console.print(f"True illuminants      {truth}", markup=False)
    console.print(f"The roll, balanced    {sheet}", markup=False)


def _remove_old_roll(folder: Path) -> None:
    """Remove the photographs of an earlier demo, by its manifest: a roll must come from one camera."""
    manifest = folder / "manifest.csv"
    if manifest.exists():
        for row in csv.DictReader(manifest.read_text().splitlines()):
            if str(row.get("camera")).startswith("Virtual "):  # anything else is somebody's own
                (folder / Path(row["path"]).name).unlink(missing_ok=True)
