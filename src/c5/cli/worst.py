"""`c5 worst`: the worst images of an evaluation, to look at."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from c5.cli.console import console, show_progress
from c5.cli.options import Datasets, MatricesFile, OutFolder, Overwrite, check_free


def worst(
    data: Datasets,
    estimates: Annotated[Path, typer.Option(help="The file that `c5 evaluate --estimates` wrote, .csv or .parquet.")],
    out: OutFolder,
    overwrite: Overwrite = False,
    method: Annotated[str | None, typer.Option(help="The method to look at, if the file holds several.")] = None,
    m: Annotated[
        int | None, typer.Option("--m", help="Images per estimate, including the query, if the file holds several.")
    ] = None,
    count: Annotated[int, typer.Option(help="How many images of each dataset.", min=1)] = 20,
    matrices: MatricesFile = None,
) -> None:
    """Show the worst images of an evaluation, and what they have in common.

    Writes worst.md and a sheet for each dataset: images as the model sees them, balanced by the estimate, and by the
    truth. With --matrices, captions show the temperature of the light.
    """
    from c5.colorimetry.matrices import read_matrices
    from c5.datasets import read_samples
    from c5.evaluation.estimates import read_estimates
    from c5.evaluation.worst import write_page
    from c5.regular import read_regular

    for path in (out / "worst.md", *sorted(out.glob("*-worst.jpg"))):
        check_free(path, overwrite)
    tested = read_estimates(estimates, read_samples(data), method, m)
    known = None if matrices is None else read_matrices(matrices)
    track = partial(show_progress, what="looking at images")
    page = write_page(tested, out, count=count, matrices=known, track=track)
    print(read_regular(page).decode())
    console.print(page)
