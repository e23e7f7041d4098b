"""`c5 catalog`: keep a catalog of photographs, from which camera rolls and profiles come."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from c5.cli.console import complain, console, print_table, progress_bar
from c5.cli.options import AsJson, AssumeSrgb, Black, CameraName, CatalogFile, Jobs, White
from c5.errors import ReadError
from c5.words import plural

app = typer.Typer(no_args_is_help=True, help="Keep a catalog of photographs, from which rolls and profiles come.")

SHOWN = 20
"""How many failures are listed; `c5 catalog status --failed` lists them all."""


@app.command()
def add(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="Folders of photographs; subfolders are included.")
    ],
    catalog: CatalogFile = None,
    jobs: Jobs = None,
    camera: CameraName = None,
    retry: Annotated[bool, typer.Option("--retry", help="Retry files that failed before.")] = False,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
) -> None:
    """Update the catalog from folders: new, changed, moved and deleted photographs.

    Only new and changed files are opened. If it is stopped or killed, the same command continues from there.
    Photographs whose whole folder is gone or empty stay in the catalog until `c5 catalog forget`, since a disk may
    not be mounted. Files that cannot be used are named, and the exit code is then 1; pictures that were developed
    already are passed over. Levels apply to the files that are opened: to change those of photographs in the catalog,
    forget them first.
    """
    from c5.photos.catalog import Catalog
    from c5.photos.photo import Reading

    reading = Reading(black, white, assume_srgb)
    try:
        with progress_bar() as progress, Catalog.open(catalog) as opened:
            looking = progress.add_task("looking for photographs", total=None)

            def track(paths: Sequence[Path]) -> Iterable[Path]:
                progress.remove_task(looking)
                return progress.track(paths, description="reading the photographs")

            added = opened.add(folders, jobs=jobs, camera=camera, retry=retry, track=track, reading=reading)
            nameless = sum(row.images for row in opened.status() if row.camera is None)
    except KeyboardInterrupt:
        complain("stopped; what was read is kept, and the same command continues from there")
        raise typer.Exit(130) from None
    counts = {name: getattr(added, name) for name in ("new", "changed", "moved", "deleted", "unchanged")}
    parts = [f"{count} {name}" for name, count in counts.items()]
    parts += [f"{plural(added.pictures, 'picture')} passed over"] if added.pictures else []
    console.print(", ".join(parts))
    if nameless:
        console.print(f"note: {plural(nameless, 'photograph')} of an unnamed camera: give it with --camera to use them")
    for folder, count in sorted(added.absent.items()):
        complain(f"{folder}: gone, empty or closed; {count} kept: mount its disk, or run c5 catalog forget")
    for failure in added.failed[:SHOWN]:
        complain(failure.message)
    if len(added.failed) > SHOWN:
        complain(f"and {len(added.failed) - SHOWN} more: see c5 catalog status --failed")
    if added.failed:
        raise typer.Exit(1)


@app.command()
def status(
    catalog: CatalogFile = None,
    as_json: AsJson = False,
    failed: Annotated[bool, typer.Option("--failed", help="List the files that cannot be used, and why.")] = False,
) -> None:
    """Show how many photographs there are of each camera, and from when."""
    from c5.photos.catalog import Catalog

    with Catalog.open(_existing(catalog)) as opened:
        if failed:
            for path, message in opened.failures():
                print(json.dumps({"file": str(path), "message": message}) if as_json else message)
            return
        rows = opened.status()
    if as_json:
        for row in rows:
            print(json.dumps(row._asdict(), default=datetime.isoformat))
        return
    table = []
    for row in rows:
        days = ("-" if time is None else f"{time:%Y-%m-%d}" for time in (row.oldest, row.newest))
        table.append([row.camera or "(unknown)", str(row.images), str(row.failed or "-"), *days])
    print_table(["camera", "images", "failed", "oldest", "newest"], table)


@app.command()
def forget(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder or a file; it need not exist any more.")],
    catalog: CatalogFile = None,
) -> None:
    """Remove the photographs of a folder from the catalog. The files themselves are left alone."""
    from c5.photos.catalog import Catalog

    with Catalog.open(_existing(catalog)) as opened:
        console.print(f"{opened.forget(folder)} forgotten")


def _existing(catalog: Path | None) -> Path:
    from c5.photos.catalog import default_path

    path = catalog or default_path()
    if not path.is_file():
        raise ReadError(f"{path}: no catalog yet; make one with c5 catalog add DIR")
    return path
