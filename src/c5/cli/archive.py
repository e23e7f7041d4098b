"""`c5 archive`: the white balance of a whole archive, as a table."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.console import Follower, complain, console, progress_bar
from c5.cli.options import AssumeSrgb, Black, CameraName, ModelName, RayAddress, White
from c5.words import plural

if TYPE_CHECKING:
    from c5.parallel import Spread


def archive(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A folder, or s3://, gs://, az://...; subfolders are included.")
    ],
    out: Annotated[str, typer.Option("--out", "-o", help="The folder or address to write Parquet files to.")],
    ray: RayAddress = None,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Worker processes; default: one per core.", min=1)] = None,
    model: ModelName = None,
    camera: CameraName = None,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
) -> None:
    """Find the light of every photograph in an archive: one row of a Parquet table for each.

    What is known of a camera comes from a roll drawn from the whole archive. A file that fails gets a row with an
    error. If it is stopped or killed, the same command continues from there; run again later, it reads what is new.
    """
    from c5.archive.archiving import archive as run
    from c5.model import load_model
    from c5.photos.photo import Reading

    loaded = load_model(model)
    try:
        with open_workers(ray, jobs) as spread, progress_bar() as progress:
            reading = Reading(black, white, assume_srgb)
            done = run(source, out, spread, model=loaded, camera=camera, reading=reading, report=Follower(progress))
    except KeyboardInterrupt:
        complain("stopped; the same command continues from there")
        raise typer.Exit(130) from None
    failed = f"{done.failed} failed (their rows have an error)" if done.failed else "none failed"
    cameras = plural(done.cameras, "camera")
    parts = plural(len(done.parts), "part")
    again = "; nothing has changed since the last run" if done.unchanged else ""
    console.print(f"{out}: {plural(done.files, 'photograph')} of {cameras} in {parts}, {failed}{again}")
    if done.unread:
        complain(f"{plural(done.unread, 'file')} could not be read now; the same command will retry them")
        raise typer.Exit(1)


def open_workers(ray: str | None, jobs: int | None) -> AbstractContextManager[Spread]:
    """Processes here, or a cluster."""
    from c5.cluster import cluster
    from c5.parallel import processes

    return processes(jobs) if ray is None else cluster(ray)
