"""`c5 report`: one document of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from c5.choices import Format
from c5.cli.console import console
from c5.cli.options import Overwrite, Plots, PrintedFile, check_free, check_plots, write_or_print


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder of results: NAME.json, and NAME.md with text about them.")
    ],
    out: PrintedFile = None,
    overwrite: Overwrite = False,
    style: Annotated[Format, typer.Option("--format", help="The format to write.")] = Format.MARKDOWN,
    plots: Plots = None,
) -> None:
    """Make one document from a folder of results."""
    from c5.evaluation.plots import write_plots
    from c5.evaluation.report import write_report
    from c5.evaluation.results import Results

    if out is not None:
        check_free(out, overwrite)
    check_plots(plots, overwrite)
    write_or_print(write_report(folder, style), out)
    if plots is not None:
        for path in sorted(folder.glob("*.json")):
            for written in write_plots(Results.load(path), plots, f"{path.stem}-"):
                console.print(written)
