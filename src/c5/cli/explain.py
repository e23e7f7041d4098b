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
    RollFolder,
    White,
    check_free,
    make_reader,
    read_roll,
)


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
    from c5.photos.picture import write_picture

    check_free(out, overwrite)
    loaded = load_model(model)
    read = make_reader(black, white, assume_srgb)
    image = read(file).image
    known = [] if roll is None else list(read_roll(roll, read, loaded))
    profile = loaded.calibrate_histograms([histograms for _, histograms in known])
    picture = draw_explanation(loaded, image, [one for one, _ in known], profile)
    console.print(write_picture(out, picture), markup=False)
