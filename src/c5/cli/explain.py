"""`c5 explain`: a picture of how the light of an image was found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from c5.cli.console import console
from c5.cli.options import (
    AssumeSrgb,
    Black,
    ModelName,
    OutFile,
    Overwrite,
    ProfileFile,
    RollFolder,
    White,
    check_free,
    find_roll,
)


def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A raw file or a linear image.")],
    out: OutFile,
    overwrite: Overwrite = False,
    roll: RollFolder = None,
    profile: ProfileFile = None,
    model: ModelName = None,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
) -> None:
    """Draw how the light of an image was found.

    The picture shows histograms, emitted filters and bias, the heat map, and the image before and after.
    """
    from c5.model import load_model
    from c5.photos.explain import draw_explanation
    from c5.photos.photo import Reading
    from c5.photos.picture import write_picture

    check_free(out, overwrite)
    loaded = load_model(model)
    reading = Reading(black, white, assume_srgb)
    known = find_roll(roll, profile, loaded, reading, thumbnails=True)
    console.print(write_picture(out, draw_explanation(loaded, reading.read(file).image, known)))
