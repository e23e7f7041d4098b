"""`c5 learn`: a look from the balances that a person has set."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.balance import open_catalog
from c5.cli.console import complain, console, progress_bar
from c5.cli.options import AssumeSrgb, Black, CameraName, CatalogFile, ModelName, Overwrite, White, check_free
from c5.errors import ParameterError, ReadError

if TYPE_CHECKING:
    from c5.photos.balancing import Settings
    from c5.photos.learning import Edit, LearnedLook

LIGHTS = {"lamp light": 2850, "low sun": 4000, "daylight": 5500, "shade": 8000}


def learn(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR", help="Folders of photographs that you have balanced.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show what was learned, and draw it.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Remove what was learned.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The picture that --show draws; default: look.png.")
    ] = None,
    overwrite: Overwrite = False,
    catalog: CatalogFile = None,
    camera: CameraName = None,
    model: ModelName = None,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
) -> None:
    """Learn the look that you like from white balances that you have set.

    It reads the balances in sidecars of Adobe's programs, RawTherapee and darktable, and learns how they differ from
    neutral. The look is kept only if it predicts your edits of other shoots better than neutral balance does. Thirty
    edits from three shoots are enough. `c5 balance --learned` uses the look. Balances that c5 wrote do not count.
    """
    from c5.model import load_model
    from c5.photos.balancing import Settings
    from c5.photos.learning import forget_look, learn_look, load_look, look_path, save_look
    from c5.photos.photo import Reading
    from c5.photos.picture import write_picture
    from c5.photos.plot import draw_look

    if forget:
        if folders or show or out is not None:
            raise ParameterError("--forget stands alone: it removes what was learned")
        console.print(f"{look_path()}: {'removed' if forget_look() else 'nothing has been learned'}")
        return
    if not folders and not show:
        raise ParameterError("give folders of photographs that you have balanced, or --show or --forget")
    if out is not None and not show:
        raise ParameterError("--out is the picture that --show draws; add --show")
    picture = out or Path("look.png")
    if show:
        check_free(picture, overwrite)
    if folders:
        with ExitStack() as stack:
            reading = Reading(black, white, assume_srgb)
            settings = Settings(load_model(model), catalog=open_catalog(catalog, stack), camera=camera, reading=reading)
            console.print(save_look(learn_look(_read_edits(folders, settings))))
    look = load_look()
    _describe(look)
    if show:
        console.print(write_picture(picture, draw_look(look)))


def _read_edits(folders: list[Path], settings: Settings) -> list[Edit]:
    """The edits below folders; what is wrong with others is printed."""
    from c5.photos.files import Developed, Failure, list_photographs
    from c5.photos.learning import read_edits

    for folder in folders:
        if not folder.exists():
            raise ReadError(f"{folder}: no such folder; give folders of photographs that you have balanced")
    asked = list_photographs(folders)
    for failure in asked.unreadable:
        complain(failure.message)
    edits = []
    with progress_bar() as progress:
        for found in progress.track(read_edits(asked.paths, settings), description="comparing"):
            if not isinstance(found, Failure):
                edits.append(found)
            elif not isinstance(found, Developed):
                complain(found.message)
    return edits


def _describe(look: LearnedLook) -> None:
    """Print what a look does in familiar lights."""
    from c5.colorimetry.adaptation import MiredTint

    for name, kelvin in LIGHTS.items():
        light = MiredTint(1e6 / kelvin, 0)
        there = look.prefer(light)
        shift = light.mired - there.mired
        how = f"{abs(shift):.0f} mireds {'warmer' if shift > 0 else 'colder'}"
        console.print(f"{name}, {kelvin} K: {how}, tint {there.tint:+.0f}")
    console.print(look.summary)
