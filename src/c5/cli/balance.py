"""`c5 balance`: photographs in, white balance out, where other programs look for it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from c5.balance import Balance, Fallback
from c5.catalog import Order
from c5.cli.console import console, errors, progress_bar
from c5.errors import C5Error, ReadError, WriteError

SHOWN = 8
"""So many photographs of a roll are named."""

if TYPE_CHECKING:
    from c5.estimator import Model, Profile
    from c5.raw import Photograph


def balance(
    files: Annotated[list[Path], typer.Argument(help="Raw files, linear images, or folders of them.")],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write; default: beside each file.")] = None,
    preview: Annotated[bool, typer.Option("--preview", help="A rendered JPEG of each.")] = False,
    png: Annotated[bool, typer.Option("--png", help="The same as PNG.")] = False,
    sheet: Annotated[bool, typer.Option("--sheet", help="One contact sheet, before and after: sheet.jpg.")] = False,
    xmp: Annotated[bool, typer.Option("--xmp", help="Adobe sidecars: Lightroom, Camera Raw.")] = False,
    pp3: Annotated[bool, typer.Option("--pp3", help="RawTherapee profiles.")] = False,
    darktable: Annotated[bool, typer.Option("--darktable", help="darktable sidecars.")] = False,
    dng: Annotated[bool, typer.Option("--dng", help="Copies of DNG files with another AsShotNeutral.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line: balance.jsonl, or printed.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="A table: balance.csv, or printed.")] = False,
    catalog: Annotated[Path | None, typer.Option(help="The catalogue to take rolls from; default: your own.")] = None,
    order: Annotated[Order, typer.Option(help="Which of a camera's photographs make its roll.")] = Order.VIVID,
    roll: Annotated[int, typer.Option(help="How many photographs a roll has.", min=1)] = 20,
    profile: Annotated[Path | None, typer.Option(help="A profile made by `c5 calibrate`, for all files.")] = None,
    model: Annotated[str | None, typer.Option(help="A .c5 file, or the name of a bundled model.")] = None,
    smooth: Annotated[bool, typer.Option("--smooth", help="Steady the light of bursts and time-lapses.")] = False,
    fallback: Annotated[Fallback, typer.Option(help="What is used where the model is uncertain.")] = Fallback.NONE,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace or add to what exists.")] = False,
    assume_srgb: Annotated[bool, typer.Option("--assume-srgb", help="Linearise 8-bit files as sRGB.")] = False,
    black: Annotated[float, typer.Option(help="The black level; default: the file's own.")] = 0,
    white: Annotated[float | None, typer.Option(help="The white level; default: the file's own.")] = None,
) -> None:
    """White-balance photographs: find the light of each, and write it where it is wanted.

    The camera is told by the file; what the model knows of it comes from the catalogue (`c5 catalog add`).
    """
    from c5.balance import apply_fallback
    from c5.balance import smooth as steady
    from c5.estimator import Profile, load_model
    from c5.raw import read_photograph

    loaded = load_model(model)
    known = None if profile is None else Profile.load(profile)
    if known is not None:
        loaded.check_profile(known)
    read = partial(read_photograph, black=black, white=white, assume_srgb=assume_srgb)
    failures: list[str] = []
    photographs = _read(_expand(files), read, failures)
    profiles = _profiles(loaded, photographs, known, catalog, order, roll)
    balances = []
    for path, photograph in photographs:
        found = profiles[photograph.image.camera]
        estimate = loaded.estimate(photograph.image, found)
        n_roll = 0 if found is None else found.n_images
        one = Balance(path, photograph, estimate, estimate.illuminant, "model", n_roll, partial(read, path))
        balances.append(apply_fallback(one, fallback))
    if smooth:
        balances = steady(balances)
    if not (as_json or as_csv) or out is not None:
        _print_table(balances)
    asked = {"preview": preview and not png, "png": png, "xmp": xmp, "pp3": pp3, "darktable": darktable, "dng": dng}
    _write_each(balances, [kind for kind, wanted in asked.items() if wanted], out, overwrite, failures)
    whole = {"sheet": sheet, "json": as_json, "csv": as_csv}
    _write_set(balances, [kind for kind, wanted in whole.items() if wanted], out, overwrite)
    for failure in failures:
        errors.print(f"c5: {failure}", markup=False)
    if failures:
        raise typer.Exit(1)


def _expand(files: list[Path]) -> list[Path]:
    """Files as they are, folders as the photographs in them."""
    from c5.catalog.photographs import is_photograph

    paths: list[Path] = []
    for path in files:
        paths += sorted(filter(is_photograph, path.iterdir())) if path.is_dir() else [path]
    if not paths:
        raise ReadError(f"{files[0]}: no photographs in it; give raw files or folders of them")
    return list(dict.fromkeys(paths))


Taken = list[tuple[Path, "Photograph"]]


def _read(paths: list[Path], read: Callable[..., Photograph], failures: list[str]) -> Taken:
    """The photographs that can be read, several at a time; what is wrong with the others is added to `failures`."""
    from c5.parallel import in_parallel

    def one(path: Path) -> Photograph | C5Error:
        try:
            return read(path)
        except C5Error as error:
            return error

    taken: Taken = []
    with progress_bar() as progress:
        for path, found in progress.track(in_parallel(one, paths), len(paths), description="reading"):
            if isinstance(found, C5Error):
                failures.append(str(found))
            else:
                taken.append((path, found))
    return taken


def _profiles(
    model: Model, taken: Taken, given: Profile | None, catalog: Path | None, order: Order, count: int
) -> dict[str | None, Profile | None]:
    """What the model knows of each camera: as given, from the catalogue, or from the photographs of the set itself."""
    from c5.catalog import Catalog, default_path
    from c5.histogram import histogram

    cameras = dict.fromkeys(photograph.image.camera for _, photograph in taken)
    if given is not None:
        return dict.fromkeys(cameras, given)
    if catalog is not None and not catalog.is_file():
        raise ReadError(f"{catalog}: no catalogue there; make one with c5 catalog add DIR --catalog {catalog}")
    place = catalog or default_path()
    profiles: dict[str | None, Profile | None] = {}
    for camera in cameras:
        found = None
        if camera is not None and place.is_file():
            with Catalog.open(place) as opened:
                found = opened.profile(model, camera, count, order)
        name = camera or "camera not told"
        if found is not None:
            profiles[camera], used = found
            listed = ", ".join(path.name for path in used[:SHOWN]) + (" ..." if len(used) > SHOWN else "")
            errors.print(f"{name}: roll of {len(used)} {order.value} photographs: {listed}", markup=False)
            continue
        own = [photograph.image for _, photograph in taken if photograph.image.camera == camera]
        if len(own) > 1:
            some = own[:: -(-len(own) // count)]
            profiles[camera] = model.calibrate_histograms([histogram(image, model.grid) for image in some], camera)
            errors.print(f"{name}: not in the catalogue; the roll is {len(some)} of these photographs", markup=False)
        else:
            profiles[camera] = None
            errors.print(f"{name}: no roll, from the file alone; more would help: c5 catalog add DIR", markup=False)
    return profiles


def _write_each(
    balances: list[Balance], kinds: list[str], out: Path | None, overwrite: bool, failures: list[str]
) -> None:
    from c5.balance import write_output
    from c5.parallel import in_parallel

    def write(one: Balance) -> list[Path | C5Error]:
        done: list[Path | C5Error] = []
        for kind in kinds:
            try:
                done.append(write_output(one, kind, out, overwrite))
            except C5Error as error:
                done.append(error)
        return done

    if not kinds:
        return
    with progress_bar() as progress:
        for _, done in progress.track(in_parallel(write, balances), len(balances), description="writing"):
            for each in done:
                if isinstance(each, C5Error):
                    failures.append(str(each))
                else:
                    errors.print(each, markup=False)


def _write_set(balances: list[Balance], kinds: list[str], out: Path | None, overwrite: bool) -> None:
    """What is one for the whole set: the contact sheet, the table."""
    from c5.balance import describe, show_pair
    from c5.files import write_file
    from c5.picture import Frame, make_sheet, write_picture

    def place(name: str) -> Path:
        path = (out or Path()) / name
        if path.exists() and not overwrite:
            raise WriteError(f"{path}: exists already; give --overwrite, or --out DIR for another place")
        return path

    rows = [describe(one) for one in balances]
    if "sheet" in kinds and balances:
        frames = [Frame(show_pair(one), _caption(row)) for one, row in zip(balances, rows, strict=True)]
        headings = ["as shot", "balanced"]
        path = write_picture(place("sheet.jpg"), make_sheet(f"{len(frames)} photographs", headings, frames))
        errors.print(path, markup=False)
    for kind, name, text in (("json", "balance.jsonl", _as_json(rows)), ("csv", "balance.csv", _as_csv(rows))):
        if kind in kinds and out is None:
            print(text, end="")
        elif kind in kinds:
            errors.print(write_file(place(name), text.encode()), markup=False)


def _caption(row: dict[str, Any]) -> str:
    light = "" if row["kelvin"] is None else f"{row['kelvin']} K, tint {row['tint']:+d}"
    return f"{Path(row['file']).name}   {light}{'   uncertain' if row['uncertain'] else ''}"


def _as_json(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _as_csv(rows: list[dict[str, Any]]) -> str:
    """The same with three columns for each color."""
    flat = []
    for row in rows:
        cells: dict[str, Any] = {}
        for key, value in row.items():
            several = key in ("illuminant", "gains", "camera_gains")
            cells |= (
                {f"{key}_{c}": v for c, v in zip("rgb", value or [None] * 3, strict=True)} if several else {key: value}
            )
        flat.append(cells)
    table = io.StringIO()
    writer = csv.DictWriter(table, list(flat[0]) if flat else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return table.getvalue()


def _print_table(balances: list[Balance]) -> None:
    from c5.balance import describe

    table = Table("file", "gains r g b", "K", "tint", "uncertainty", "by", "from the camera's")
    for row in map(describe, balances):
        mark = " !" if row["uncertain"] else ""
        cells = [Path(row["file"]).name, " ".join(f"{gain:.3f}" for gain in row["gains"])]
        cells += ["-" if row[key] is None else str(row[key]) for key in ("kelvin", "tint")]
        cells += [f"{row['uncertainty_deg']:.1f}°{mark}", row["by"]]
        cells += ["-" if row["camera_angle_deg"] is None else f"{row['camera_angle_deg']:.1f}°"]
        table.add_row(*map(Text, cells))
    Console(width=None if console.is_terminal else 200, highlight=False).print(table)
