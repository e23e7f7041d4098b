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

if TYPE_CHECKING:
    from collections.abc import Callable

    from c5.ccc import Estimate
    from c5.image import LinearImage


def demo(
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("demo"),
    count: Annotated[int, typer.Option(help="How many photographs.", min=1, max=64)] = 8,
    seed: Annotated[int, typer.Option(help="Another number, another roll.", min=0)] = 15,
    method: Annotated[str | None, typer.Option(help="A classical estimator instead: see `c5 methods`.")] = None,
) -> None:
    """Render a roll of photographs as DNG files, catalogue it, balance it, and show the result."""
    import numpy as np

    from c5.balance import Balance, show_pair
    from c5.catalog import Catalog
    from c5.color import angular_error
    from c5.demo import VirtualCamera, render_roll
    from c5.demo.dng import Layout, write_dng
    from c5.estimator import load_model
    from c5.files import write_file
    from c5.picture import Frame, make_sheet, write_picture
    from c5.raw import read_photograph

    rng = np.random.default_rng(seed)
    camera = VirtualCamera.random(rng)
    console.print(f"Rendering {count} photographs with the virtual camera {camera.name} ...", markup=False)
    photos = render_roll(camera, count, rng)
    _remove_old_roll(out / "roll")
    manifest, paths = [], []
    for index, photo in enumerate(photos):
        layout = Layout(time=datetime(2026, 6, 1, 10) + timedelta(minutes=7 * index))
        paths.append(write_dng(out / "roll" / f"{photo.image.source}.dng", photo, camera, layout))
        manifest.append((paths[-1].name, camera.name, *(f"{value:.6f}" for value in photo.illuminant)))
    table = io.StringIO()
    csv.writer(table).writerows([("path", "camera", "r", "g", "b"), *manifest])
    truth = write_file(out / "roll" / "manifest.csv", table.getvalue().encode())
    with Catalog.open(out / "catalog.db") as catalog:
        catalog.add([out / "roll"])
        model = load_model()
        found = catalog.profile(model, camera.name)
    profile = None if found is None else found[0]
    estimator: Callable[[LinearImage], Estimate] = partial(model.estimate, profile=profile)
    if method is not None:
        from c5.cli.main import classical

        estimator = classical(method)
    frames, misses = [], []
    for path, photo in zip(paths, photos, strict=True):
        photograph = read_photograph(path)
        estimate = estimator(photograph.image)
        misses.append(float(angular_error(estimate.illuminant, photo.illuminant)))
        n_roll = 0 if profile is None else profile.n_images
        one = Balance(path, photograph, estimate, estimate.illuminant, "model", n_roll, partial(read_photograph, path))
        frames.append(Frame(show_pair(one), f"{photo.scene} in {photo.light}: {misses[-1]:.1f}° off"))
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
