"""`c5 calibrate`: the profile of a camera."""

from __future__ import annotations

from dataclasses import replace
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
    Zones,
    check_free,
    read_roll,
)
from c5.words import plural


def calibrate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Images from one camera, as varied as possible.")],
    out: OutFile,
    overwrite: Overwrite = False,
    model: ModelName = None,
    camera: CameraName = None,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
    zones: Zones = None,
) -> None:
    """Make a profile of a camera from a folder of its images.

    Make it once; it then serves every image from that camera.
    """
    from c5.model import load_model
    from c5.photos.photo import Reading
    from c5.zones import parse_zones

    check_free(out, overwrite)
    loaded = load_model(model)
    averaged = None if zones is None else parse_zones(zones)
    profile = read_roll(folder, loaded, Reading(black, white, assume_srgb), zones=averaged).profile
    assert profile is not None  # a roll of a folder has one
    path = replace(profile, camera=camera or profile.camera).save(out)
    size, images = path.stat().st_size / 1000, plural(profile.n_images, "image")
    console.print(f'{path}: profile of {images} for the model "{loaded.name}", {size:.0f} KB')
