"""`c5 plugin`: c5 as a part of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from c5.cli.console import console

app = typer.Typer(no_args_is_help=True, help="Add c5 to other programs.")


@app.callback()
def _plugin() -> None:
    """Add c5 to other programs."""


@app.command()
def darktable(
    undo: Annotated[bool, typer.Option("--undo", help="Undo what c5 wrote, and nothing else.")] = False,
    configdir: Annotated[
        Path | None, typer.Option(help="darktable's configuration folder; default: where darktable looks for it.")
    ] = None,
) -> None:
    """Add a button to darktable, 4.2 or later: white balance for the selected images.

    It writes lua/c5.lua to darktable's configuration folder, and adds a line to luarc that loads it. The button appears
    the next time darktable starts, in the lighttable under "selected images".
    """
    from c5.photos.programs import find_darktable, install_darktable, remove_darktable

    folder = configdir or find_darktable()
    changed = remove_darktable(folder) if undo else install_darktable(folder)
    for path in changed:
        console.print(path)
    if not undo:
        console.print('start darktable again: the button is in the lighttable, under "selected images"')
    elif changed:
        console.print("removed; the button is gone the next time darktable starts")
    else:
        console.print("nothing to undo")
