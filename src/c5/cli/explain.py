"""`c5 explain`: a picture of how the light of an image was found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from c5.cli import options
from c5.cli.console import console


def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A raw file or a linear image.")],
    out: options.OutFile,
    overwrite: options.Overwrite = False,
    roll: options.RollFolder = None,
    profile: options.ProfileFile = None,
    model: options.ModelName = None,
    assume_srgb: options.AssumeSrgb = False,
    black: options.Black = 0,
    white: options.White = None,
) -> None:
    """Draw how the light of an image was found.

    The picture shows histograms, emitted filters and bias, the heat map, and the image before and after.
    """
    from c5.model import load_model
    from c5.photos.explain import draw_explanation
    from c5.photos.photo import Reading
    from c5.photos.picture import write_picture

    options.check_free(out, overwrite)
    loaded = load_model(model)
    reading = Reading(black, white, assume_srgb)
    known = options.find_roll(roll, profile, loaded, reading, thumbnails=True)
    photograph = reading.read(file)
    options.warn_of_profile(file, photograph.image.camera, known.profile)
    console.print(write_picture(out, draw_explanation(loaded, photograph.image, known, photograph.matrices)))
