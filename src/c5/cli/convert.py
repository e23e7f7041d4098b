"""`c5 convert`: published weights as a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from c5.cli.console import console, start_torch
from c5.cli.options import OutFile, Overwrite, check_free


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pth file of weights published with the paper.")],
    out: OutFile,
    overwrite: Overwrite = False,
    bins: Annotated[int, typer.Option(help="Bins of its histograms; the weights do not record this.")] = 64,
) -> None:
    """Make a .c5 model file from the paper's weights.

    Nothing in the weights is executed. Needs the train extra.
    """
    start_torch()
    from c5.training.export import export_model
    from c5.training.published import read_published

    check_free(out, overwrite)
    network = read_published(file, bins)
    made = export_model(network, out, name=file.stem, training={"weights": file.name, "from": "the paper's authors"})
    console.print(f"{out}: {made.n_images} inputs, {made.grid.bins} bins, identity {made.identity}")
