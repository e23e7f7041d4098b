"""`c5 archive`: the white balance of a whole archive, as a table."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.console import Log, complain, console, progress_bar
from c5.cli.options import AssumeSrgb, Black, CameraName, ModelName, RayAddress, White
from c5.words import plural

if TYPE_CHECKING:
    from c5.parallel import Spread


def archive(
    source: Annotated[str, typer.Argument(help="A folder, or s3://, gs://, az://...; subfolders are included.")],
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
    from c5.archive.run import archive as run
    from c5.model import load_model
    from c5.photos.photo import Reading

    loaded = load_model(model)
    progress = _Progress()
    try:
        with open_workers(ray, jobs) as spread, progress.bar:
            reading = Reading(black, white, assume_srgb)
            done = run(source, out, spread, model=loaded, camera=camera, reading=reading, report=progress.show)
    except KeyboardInterrupt:
        complain("stopped; the same command continues from there")
        raise typer.Exit(130) from None
    failed = f"{done.failed} failed (their rows have an error)" if done.failed else "none failed"
    cameras = plural(done.cameras, "camera")
    console.print(
        f"{out}: {plural(done.files, 'photograph')} of {cameras} in {plural(len(done.parts), 'part')}, {failed}"
    )
    if done.unread:
        complain(f"{plural(done.unread, 'file')} could not be read now; the same command will retry them")
        raise typer.Exit(1)


def open_workers(ray: str | None, jobs: int | None) -> AbstractContextManager[Spread]:
    """Processes here, or a cluster."""
    from c5.cluster import cluster
    from c5.parallel import processes

    return processes(jobs) if ray is None else cluster(ray)


class _Progress:
    """A bar, or lines where a bar would not show: what is done, how fast, and the time left."""

    def __init__(self) -> None:
        self.bar = progress_bar()
        self._what = ""

    def show(self, what: str, done: int, total: int) -> None:
        if what != self._what:
            self._what, self._began, self._first = what, time.monotonic(), done
            self._log = Log(what, total)
            self._task = self.bar.add_task(what, total=total or None)
        rate = (done - self._first) / max(time.monotonic() - self._began, 1e-9)
        text = f", {rate:.0f} a second" if done > self._first else ""
        self.bar.update(self._task, completed=done, description=f"{what}{text}")
        if done > self._first:
            self._log.first = self._first
            self._log.advance(done, text)
