"""`c5 sensor`: what labelled shots tell about a sensor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from c5.cli.console import console, show_progress
from c5.cli.options import LayoutName, ModelName, Overwrite, Seed, check_free
from c5.plotting import need_matplotlib

app = typer.Typer(no_args_is_help=True, help="Report how well the light is found on a sensor.")


@app.callback()
def sensor() -> None:
    """Report how well the light is found on a sensor."""


@app.command()
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Labelled shots: a dataset, such as `c5 data label` makes.")
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page; default: DIR/sensor.html.")] = None,
    overwrite: Overwrite = False,
    camera: Annotated[str | None, typer.Option("--camera", help="The camera, if there are several.")] = None,
    model: ModelName = None,
    layout: LayoutName = None,
    seed: Seed = 0,
) -> None:
    """Write one page on a sensor: errors by light, what a profile gives, the worst shots, what to photograph next."""
    import numpy as np

    from c5.datasets import read_samples
    from c5.evaluation.sensor import examine_sensor
    from c5.evaluation.sensor_page import make_report
    from c5.io.files import write_file
    from c5.model import load_model

    need_matplotlib()
    page = out or folder / "sensor.html"
    check_free(page, overwrite)
    samples = read_samples(folder, layout)
    found = examine_sensor(
        samples,
        load_model(model),
        np.random.default_rng(seed),
        camera,
        lambda shots: show_progress(list(shots), "examining"),
    )
    console.print(write_file(page, make_report(found)))
