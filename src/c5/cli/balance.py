"""`c5 balance`: photographs in, white balance out, where other programs look for it."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from c5.cli.console import console, errors, print_table, progress_bar
from c5.cli.options import AssumeSrgb, Black, White, make_reader
from c5.errors import C5Error, ParameterError, ReadError
from c5.photos.balancing import Balance, Fallback
from c5.photos.catalog import Order

PAGE = 60
"""So many photographs fit on a contact sheet; more make more sheets. A JPEG has at most 65,535 pixels on a side."""

if TYPE_CHECKING:
    from c5.color import Float32s
    from c5.histograms import Grid
    from c5.io.raw import Photograph
    from c5.model import Model, Profile
    from c5.photos.balancing import Plan, Shot
    from c5.photos.catalog import Catalog


def balance(
    files: Annotated[
        list[Path], typer.Argument(help="Raw files, linear images, or folders; what is below counts too.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The folder to write to; default: beside each file, the sheet in the current folder, and --json and "
            "--csv printed.",
        ),
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", help="A rendered JPEG of each: NAME.c5.jpg.")] = False,
    png: Annotated[bool, typer.Option("--png", help="A rendered PNG of each: NAME.c5.png.")] = False,
    sheet: Annotated[
        bool, typer.Option("--sheet", help="Contact sheets, before and after: sheet.jpg, sheet-2.jpg ...")
    ] = False,
    xmp: Annotated[bool, typer.Option("--xmp", help="Adobe sidecars: Lightroom, Camera Raw.")] = False,
    pp3: Annotated[bool, typer.Option("--pp3", help="RawTherapee profiles.")] = False,
    darktable: Annotated[bool, typer.Option("--darktable", help="darktable sidecars.")] = False,
    dng: Annotated[
        bool,
        typer.Option(
            "--dng", help="Copies of DNG files with another AsShotNeutral. Needs --out, best outside your library."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line: balance.jsonl, or printed.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="A table: balance.csv, or printed.")] = False,
    catalog: Annotated[Path | None, typer.Option(help="The catalogue to take rolls from; default: your own.")] = None,
    camera: Annotated[str | None, typer.Option(help="The camera of files that do not tell theirs.")] = None,
    order: Annotated[Order, typer.Option(help="Which of a camera's photographs make its roll.")] = Order.VIVID,
    roll: Annotated[int, typer.Option(help="How many photographs a roll has.", min=1)] = 20,
    profile: Annotated[Path | None, typer.Option(help="A profile made by `c5 calibrate`, for all files.")] = None,
    model: Annotated[str | None, typer.Option(help="A .c5 file, or the name of a bundled model.")] = None,
    smooth: Annotated[
        bool,
        typer.Option(
            "--smooth", help="Steady the light of bursts and time-lapses: one camera, no pause above two minutes."
        ),
    ] = False,
    fallback: Annotated[Fallback, typer.Option(help="What is used where the model is uncertain.")] = Fallback.NONE,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace or add to what exists.")] = False,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
) -> None:
    """White-balance photographs: find the light of each, and write it where it is wanted.

    The camera is told by the file; what the model knows of it comes from the catalogue (`c5 catalog add`).

    No photograph is ever written to. A file that fails is named at the end, and makes the exit code 1.
    """
    from c5.model import Profile, load_model
    from c5.photos.balancing import apply_fallback, describe, plan_outputs
    from c5.photos.balancing import smooth as steady

    if dng and out is None:
        raise ParameterError("--dng makes copies: give --out DIR, a folder outside your library, for them")
    if as_json and as_csv and out is None:
        raise ParameterError("--json and --csv would be printed into each other: ask for one, or give --out DIR")
    loaded = load_model(model)
    known = None if profile is None else Profile.load(profile)
    if known is not None:
        loaded.check_profile(known)
    read = make_reader(black, white, assume_srgb)
    asked = {"preview": preview, "png": png, "xmp": xmp, "pp3": pp3, "darktable": darktable, "dng": dng}
    failures: list[str] = []
    try:
        paths = _expand(files, failures)
        whole = _place_set(paths, {"sheet": sheet, "json": as_json, "csv": as_csv}, out, overwrite)
        plan = plan_outputs(paths, [kind for kind, wanted in asked.items() if wanted], out)
        failures += plan.refused
        with ExitStack() as stack:
            opened = None if known else _open_catalog(catalog, stack)
            rolls = _Rolls(loaded, known, opened, order, roll, read)
            balances = _estimate(_read(paths, rolls, camera, sheet, failures), rolls, failures)
        balances = [apply_fallback(one, fallback) for one in (steady(balances) if smooth else balances)]
        rows = [describe(one) for one in balances]
        if balances and (not (as_json or as_csv) or out is not None):
            _print_table(rows)
        if xmp and any(one.path.suffix.lower() == ".dng" for one in balances):
            errors.print("note: Adobe's programs read no sidecar of a DNG: use --dng --out DIR for those", markup=False)
        _write_each(balances, plan, overwrite, failures)
        _write_set(balances, rows, whole, failures)
    finally:
        for failure in failures:
            errors.print(f"c5: {failure}", markup=False)
    if failures:
        raise typer.Exit(1)


def _expand(files: list[Path], failures: list[str]) -> list[Path]:
    """Files as they are, folders as the photographs below them; each once, however it is spelled."""
    from c5.photos.catalog.photographs import find_photographs

    paths: list[Path] = []
    for path in files:
        if os.path.isdir(path):
            found = find_photographs([os.fsencode(path)])
            paths += sorted(Path(os.fsdecode(name)) for name in found.files)
            failures += [message for _, message in found.unreadable]
        else:
            paths.append(path)
    if not paths:
        raise ReadError(f"{files[0]}: no photographs in it; give raw files or folders of them")
    return list({os.path.realpath(path): path for path in reversed(paths)}.values())[::-1]


def _place_set(paths: list[Path], asked: dict[str, bool], out: Path | None, overwrite: bool) -> dict[str, list[Path]]:
    """Where the outputs for the whole set go, checked before the work begins; none for what is printed."""
    from c5.photos.balancing import check_places

    pages = range(1, -(-len(paths) // PAGE) + 1)
    names = {
        "sheet": ["sheet.jpg" if page == 1 else f"sheet-{page}.jpg" for page in pages],
        "json": [] if out is None else ["balance.jsonl"],
        "csv": [] if out is None else ["balance.csv"],
    }
    folder = out or Path()
    places = {kind: [folder / name for name in names[kind]] for kind, wanted in asked.items() if wanted}
    check_places(itertools.chain(*places.values()), paths, overwrite)
    return places


def _open_catalog(catalog: Path | None, stack: ExitStack) -> Catalog | None:
    from c5.photos.catalog import Catalog, default_path

    if catalog is not None and not catalog.is_file():
        raise ReadError(f"{catalog}: no catalogue there; make one with c5 catalog add DIR --catalog {catalog}")
    place = catalog or default_path()
    return stack.enter_context(Catalog.open(place)) if place.is_file() else None


class _Seen(NamedTuple):
    shot: Shot
    packed: bytes
    """Its histograms, compressed, as most bins are empty: thousands must fit into memory."""

    @classmethod
    def of(cls, shot: Shot, histograms: Float32s) -> _Seen:
        return cls(shot, zlib.compress(histograms.tobytes(), 1))

    def histograms(self, grid: Grid) -> Float32s:
        return np.frombuffer(zlib.decompress(self.packed), np.float32).reshape(grid.shape)


@dataclass(frozen=True)
class _Rolls:
    """Where the model's knowledge of cameras comes from."""

    model: Model
    given: Profile | None
    catalog: Catalog | None
    order: Order
    count: int
    read: Callable[..., Photograph]

    def profile(self, camera: str | None, own: list[_Seen], failures: list[str]) -> Profile | None:
        """What is known of a camera: as given, from the catalogue, or from its photographs in the set itself."""
        name = camera or "camera not told"
        if self.given is not None:
            return self.given
        if camera is not None and self.catalog is not None:
            try:
                found = self.catalog.profile(self.model, camera, self.count, self.order, read=self.read)
            except C5Error as error:
                failures.append(f"{name}: its roll cannot be used: {error}")
                found = None
            if found is not None:
                profile, used = found
                _say_roll(f"{name}: roll of {len(used)} {self.order.value} photographs", used)
                return profile
        if len(own) == 1:
            errors.print(f"{name}: no roll, from the file alone; more would help: c5 catalog add DIR", markup=False)
            return None
        some = self.model.choose(own, self.count)
        what = f"{name}: not in the catalogue; the roll is {len(some)} of these photographs"
        _say_roll(what, [one.shot.path for one in some])
        return self.model.calibrate_histograms([one.histograms(self.model.grid) for one in some], camera)


def _say_roll(what: str, used: list[Path]) -> None:
    more = "; more would help: c5 catalog add DIR" if len(used) == 1 else ""
    errors.print(f"{what}: {', '.join(path.name for path in used)}{more}", markup=False)


def _read(paths: list[Path], rolls: _Rolls, camera: str | None, sheet: bool, failures: list[str]) -> list[_Seen]:
    """What is needed of the photographs that can be read; what is wrong with the others is added to `failures`."""
    from c5.histograms import histogram
    from c5.parallel import in_parallel
    from c5.photos.balancing import Shot

    def one(path: Path) -> _Seen | str:
        try:
            photograph = rolls.read(path)
            shot = Shot.of(path, photograph)
            counted = histogram(photograph.image, rolls.model.grid)
        except C5Error as error:
            return _name(path, str(error))
        except OSError as error:
            return f"{path}: cannot be read: {error.strerror or error}"
        shot = replace(shot, camera=shot.camera or camera)
        return _Seen.of(shot.with_thumbnail(photograph.image) if sheet else shot, counted)

    seen: list[_Seen] = []
    with progress_bar() as progress:
        for _, found in progress.track(in_parallel(one, paths), len(paths), description="reading"):
            if isinstance(found, str):
                failures.append(found)
            else:
                seen.append(found)
    return seen


def _estimate(seen: list[_Seen], rolls: _Rolls, failures: list[str]) -> list[Balance]:
    cameras: dict[str | None, list[_Seen]] = {}
    for one in seen:
        cameras.setdefault(one.shot.camera, []).append(one)
    profiles = {camera: rolls.profile(camera, own, failures) for camera, own in cameras.items()}
    balances = []
    for one in seen:
        shot = one.shot
        profile = profiles[shot.camera]
        try:
            found = rolls.model.estimate_histogram(one.histograms(rolls.model.grid), profile)
        except C5Error as error:
            failures.append(_name(shot.path, str(error)))
            continue
        known = 0 if profile is None else profile.n_images
        read = partial(rolls.read, shot.path)
        balances.append(Balance(shot, found.illuminant, found.uncertainty, "model", known, read))
    return balances


def _name(path: Path, message: str) -> str:
    return message if str(path) in message else f"{path}: {message}"


def _write_each(balances: list[Balance], plan: Plan, overwrite: bool, failures: list[str]) -> None:
    from c5.parallel import in_parallel
    from c5.photos.balancing import OUTPUTS, write_output

    def write(one: Balance) -> list[Path | str]:
        done: list[Path | str] = []
        for kind in OUTPUTS:
            place = plan.places.get((one.path, kind))
            if place is not None:
                try:
                    done.append(write_output(one, kind, place, overwrite))
                except C5Error as error:
                    done.append(str(error))
        return done

    if not plan.places:
        return
    with progress_bar() as progress:
        for _, done in progress.track(in_parallel(write, balances), len(balances), description="writing"):
            for each in done:
                if isinstance(each, str):
                    failures.append(each)
                else:
                    errors.print(each, markup=False)


def _write_set(
    balances: list[Balance], rows: list[dict[str, Any]], places: dict[str, list[Path]], failures: list[str]
) -> None:
    """What is one for the whole set: the contact sheets, the table."""
    from c5.io.files import write_file

    makers: dict[str, Callable[[int, Path], Path]] = {
        "sheet": partial(_write_page, balances, rows),
        "json": lambda _, place: write_file(place, _as_json(rows).encode()),
        "csv": lambda _, place: write_file(place, _as_csv(rows).encode()),
    }
    if not balances:
        return
    for kind, wanted in places.items():
        if not wanted:
            print(_as_json(rows) if kind == "json" else _as_csv(rows), end="")
        pages = -(-len(balances) // PAGE)  # fewer than planned where files failed
        for page, place in enumerate(wanted[:pages]):
            try:
                errors.print(makers[kind](page, place), markup=False)
            except C5Error as error:
                failures.append(str(error))


def _write_page(balances: list[Balance], rows: list[dict[str, Any]], page: int, place: Path) -> Path:
    from c5.photos.balancing import show_pair
    from c5.photos.picture import Frame, make_sheet, write_picture

    part = range(page * PAGE, min((page + 1) * PAGE, len(balances)))
    frames = [Frame(show_pair(balances[i].shot, balances[i].illuminant), _caption(rows[i])) for i in part]
    title = f"{len(balances)} photographs"
    if len(balances) > PAGE:
        title += f", {part.start + 1} to {part.stop}"
    return write_picture(place, make_sheet(title, ["as shot", "balanced"], frames))


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


def _print_table(rows: list[dict[str, Any]]) -> None:
    table = Table("file", "gains r g b", "K", "tint", "uncertainty", "by", "from the camera's own")
    for row in rows:
        mark = " !" if row["uncertain"] else ""
        cells = [Path(row["file"]).name, " ".join(f"{gain:.3f}" for gain in row["gains"])]
        cells += ["-" if row[key] is None else str(row[key]) for key in ("kelvin", "tint")]
        cells += [f"{row['uncertainty_deg']:.1f}°{mark}", row["by"]]
        cells += ["-" if row["camera_angle_deg"] is None else f"{row['camera_angle_deg']:.1f}°"]
        table.add_row(*map(Text, cells))
    print_table(table)
    if any(row["uncertain"] for row in rows):
        console.print("! the model is not sure: see --fallback", markup=False)
