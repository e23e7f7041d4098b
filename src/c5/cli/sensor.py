"""`c5 sensor`: what labeled shots tell about a sensor."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from c5.cli.console import console, show_progress
from c5.cli.options import LayoutName, MatricesFile, ModelName, Overwrite, Seed, check_free
from c5.plotting import need_matplotlib

app = typer.Typer(no_args_is_help=True, help="Report how well the light is found on a sensor.")


@app.callback()
def sensor() -> None:
    """Report how well the light is found on a sensor."""


@app.command()
def report(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Labeled shots: a folder that `c5 data label` made, or any dataset.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; default: sensor.html in the folder.")
    ] = None,
    overwrite: Overwrite = False,
    only: Annotated[str | None, typer.Option("--only", help="The camera, if there are several.")] = None,
    matrices: MatricesFile = None,
    model: ModelName = None,
    layout: LayoutName = None,
    seed: Seed = 0,
) -> None:
    """Write one page on a sensor: errors by light, what a profile gives, the worst shots, what to photograph next."""
    import numpy as np

    from c5.colorimetry.matrices import read_matrices
    from c5.datasets import read_samples
    from c5.evaluation.sensor import examine_sensor
    from c5.evaluation.sensor_page import make_report
    from c5.io.files import write_file
    from c5.model import load_model

    need_matplotlib()
    page = out or (data if data.is_dir() else data.parent) / "sensor.html"
    check_free(page, overwrite)
    samples = read_samples(data, layout)
    track = partial(show_progress, what="examining")
    table = None if matrices is None else read_matrices(matrices)
    found = examine_sensor(samples, load_model(model), np.random.default_rng(seed), only, table, track)
    console.print(write_file(page, make_report(found)))
