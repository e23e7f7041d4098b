"""`c5 calibrate`: the profile of a camera."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from c5.cli.console import console
from c5.cli.options import (
    AssumeSrgb,
    Black,
    CameraName,
    ModelName,
    OutFile,
    Overwrite,
    White,
    check_free,
    make_reader,
    read_roll,
)


def calibrate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Images from one camera, as varied as possible.")],
    out: OutFile,
    overwrite: Overwrite = False,
    model: ModelName = None,
    camera: CameraName = None,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
) -> None:
    """Make a profile of a camera from a folder of its images.

    It is made once and then serves every image of that camera.
    """
    from c5.model import load_model

    check_free(out, overwrite)
    loaded = load_model(model)
    roll = read_roll(folder, make_reader(black, white, assume_srgb), loaded)
    profile = loaded.calibrate_histograms([histograms for _, histograms in roll], camera)
    path = profile.save(out)
    size = path.stat().st_size / 1000
    console.print(
        f"{path}: profile of {profile.n_images} images for the model {loaded.name}, {size:.0f} KB", markup=False
    )
