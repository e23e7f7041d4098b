"""`c5 explain`: a picture of how the light of an image was found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from c5.cli.console import console
from c5.cli.options import AssumeSrgb, Black, ModelName, OutFile, Overwrite, RollFolder, White, check_free, read_roll


def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A raw file or a linear image.")],
    out: OutFile,
    overwrite: Overwrite = False,
    roll: RollFolder = None,
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
    from c5.photos.rolls import Roll

    check_free(out, overwrite)
    loaded = load_model(model)
    reading = Reading(black, white, assume_srgb)
    image = reading.read(file).image
    known = Roll() if roll is None else read_roll(roll, loaded, reading, thumbnails=True)
    console.print(write_picture(out, draw_explanation(loaded, image, known)))
