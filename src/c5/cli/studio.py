"""`c5 studio`: a local web page to view, correct and write a shoot."""

from __future__ import annotations

import secrets
import webbrowser
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.balance import open_catalog
from c5.cli.config import find_taste
from c5.cli.console import console, errors
from c5.cli.options import CameraName, CatalogFile, ModelName
from c5.errors import ParameterError, ReadError

if TYPE_CHECKING:
    from c5.photos.balancing import Settings


def studio(
    ctx: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder of photographs; subfolders are included.")
    ] = Path(),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write to; default: beside each photograph.")
    ] = None,
    port: Annotated[int, typer.Option(help="The port to listen on; default: one that is free.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in your browser.")] = True,
    catalog: CatalogFile = None,
    camera: CameraName = None,
    model: ModelName = None,
) -> None:
    """View, correct and write a shoot, on a page that only this machine can see.

    Photographs are balanced as by `c5 balance --sets`, with your looks. Your decisions are saved at once: close the
    page or the program, and continue later with the same command. Ctrl-C ends it.
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise ParameterError("this needs a server: run pip install 'c5-awb[studio]'")
    from c5.io.files import check_folder
    from c5.model import load_model
    from c5.photos.balancing import Settings
    from c5.photos.outputs import list_outputs, load_output
    from c5.studio.server import HOST, listen, serve
    from c5.studio.session import Session

    if not folder.is_dir():
        raise ReadError(f"{folder}: no such folder; give a folder of photographs")
    if out is not None:
        check_folder(out)
    loaded, taste = load_model(model), find_taste(ctx)

    def open_settings(stack: ExitStack) -> Settings:
        return Settings(loaded, catalog=open_catalog(catalog, stack), camera=camera)

    with ExitStack() as stack:
        open_settings(stack)  # so that problems with the catalog show now
    outputs = {name: load_output(name) for name in list_outputs()}
    offered = {name: output for name, output in outputs.items() if out is not None or not output.copies}
    token = secrets.token_urlsafe(24)
    with listen(port) as listener:
        session = Session(folder, open_settings, offered, out, taste=taste)
        address = f"http://{HOST}:{listener.getsockname()[1]}/{token}/"
        console.print(address)
        errors.print("the studio is open at this address; Ctrl-C ends it")
        if browser:
            webbrowser.open(address)
        try:
            serve(session, listener, token)
        except KeyboardInterrupt:
            pass
        finally:
            session.close()
    errors.print("what you decided is kept; the same command continues from there")
