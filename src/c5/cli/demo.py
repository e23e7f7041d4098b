"""`c5 demo`: from files to balanced pictures, with a camera that nobody owns."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.console import console
from c5.cli.options import MethodName, OutFolder, Overwrite, Seed, check_free
from c5.errors import ParameterError
from c5.words import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from c5.ccc import Estimate
    from c5.image import LinearImage


def demo(
    out: OutFolder = Path("demo"),
    overwrite: Overwrite = False,
    count: Annotated[int, typer.Option(help="How many photographs to render.", min=1, max=1000)] = 8,
    seed: Seed = 15,
    method: MethodName = None,
    shoot: Annotated[
        str | None,
        typer.Option(help="Render a shoot with known lights instead: wedding, hike, concert, charts.", metavar="NAME"),
    ] = None,
) -> None:
    """Render a roll of photographs as DNG files, and balance it."""
    import numpy as np

    from c5.color import angular_error
    from c5.demo import VirtualCamera
    from c5.demo.roll import MANIFEST, write_roll
    from c5.estimators import find_estimator, is_model
    from c5.io.raw import read_photograph
    from c5.model import load_model
    from c5.photos.catalog import Catalog
    from c5.photos.photo import Photo
    from c5.photos.picture import Frame, make_sheet, write_picture
    from c5.photos.summary import show_pair

    if shoot is not None:
        from c5.demo.shoots import write_shoot

        if method is not None:
            raise ParameterError("--method is for a roll, which is balanced: leave it out with --shoot")
        check_free(out, overwrite)
        truth = write_shoot(out, shoot, count, np.random.default_rng(seed), overwrite=overwrite)
        console.print(f"DNG files             {out}")
        console.print(f"True illuminants      {truth}")
        return
    roll, sheet = out / "roll", out / "sheet.jpg"
    for path in (roll, sheet):
        check_free(path, overwrite)
    estimator: Callable[[LinearImage], Estimate] | None = None
    if method is not None and not is_model(method):
        estimator = find_estimator(method)
    rng = np.random.default_rng(seed)
    camera = VirtualCamera.random(rng)
    console.print(f"Rendering {plural(count, 'photograph')} with the virtual camera {camera.name} ...")
    rendered = write_roll(roll, camera, count, rng)
    with Catalog.open(out / "catalog.db") as catalog:
        catalog.add([roll])
        if estimator is None:
            model = load_model(method)
            known = catalog.roll(model, camera.name)
            estimator = partial(model.estimate, profile=None if known is None else known.profile)
    frames, misses = [], []
    for path, illuminant, subject in rendered:
        photograph = read_photograph(path)
        estimate = estimator(photograph.image)
        misses.append(float(angular_error(estimate.illuminant, illuminant)))
        pair = show_pair(Photo.of(path, photograph, thumbnail=True), estimate.illuminant)
        frames.append(Frame(pair, f"{subject}: {misses[-1]:.1f}° off"))
    by = method or "the bundled model"
    title = f"Camera roll of {camera.name}, balanced by {by}: {np.mean(misses):.1f}° off on average"
    write_picture(sheet, make_sheet(title, ["as shot", "balanced"], frames))
    console.print(f"Mean angular error of {by}: {np.mean(misses):.2f} degrees over {plural(count, 'photograph')}")
    console.print(f"DNG files             {roll}")
    console.print(f"Their catalog         {out / 'catalog.db'}")
    console.print(f"True illuminants      {roll / MANIFEST}")
    console.print(f"The roll, balanced    {sheet}")
