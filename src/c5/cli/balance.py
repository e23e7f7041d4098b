"""`c5 balance`: photographs in, white balance out, where other programs look for it."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from c5.choices import SELECTIONS, Fallback, Selection
from c5.cli.console import complain, console, errors, print_table, progress_bar
from c5.cli.options import AssumeSrgb, Black, CameraName, CatalogFile, ModelName, ProfileFile, White
from c5.errors import C5Error, ParameterError, ReadError
from c5.photos.outputs import Output, list_outputs, load_output

if TYPE_CHECKING:
    from c5.photos.balancing import Balance
    from c5.photos.catalog import Catalog
    from c5.photos.files import Failure
    from c5.photos.rolls import Roll

PAGE = 60
"""So many photographs fit on a contact sheet; more make more sheets. A JPEG has at most 65,535 pixels on a side."""

SELECTION_NAMES = [selection.value for selection in SELECTIONS]

TABLES = {"json": "balance.jsonl", "csv": "balance.csv"}


def with_outputs(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for each kind of output, in the place of its `**kinds`."""
    signature = inspect.signature(command, eval_str=True)
    files, out, *others = (
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in signature.parameters.values()
        if parameter.name != "kinds"
    )
    flags = []
    for name, text in list_outputs().items():
        parameter = name.replace("-", "_")
        if parameter.isidentifier() and parameter not in signature.parameters:
            kind = Annotated[bool, typer.Option(f"--{name}", help=text)]
            flags.append(inspect.Parameter(parameter, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind))
    parameters = [files, out, *flags, *others]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _check_selection(value: str) -> str:
    if value not in SELECTION_NAMES:
        raise typer.BadParameter(f"choose {', '.join(SELECTION_NAMES)}")
    return value


@with_outputs
def balance(
    files: Annotated[
        list[Path], typer.Argument(help="Raw files, linear images, or folders; what is below counts too.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The folder to write to; default: beside each file, the sheet in the current folder, and --json and "
            "--csv printed.",
        ),
    ] = None,
    sheet: Annotated[
        bool, typer.Option("--sheet", help="Contact sheets, before and after: sheet.jpg, sheet-2.jpg ...")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line: balance.jsonl, or printed.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="A table: balance.csv, or printed.")] = False,
    catalog: CatalogFile = None,
    camera: CameraName = None,
    selection: Annotated[
        str,
        typer.Option(
            help="Which of a camera's photographs make its roll.",
            callback=_check_selection,
            metavar="|".join(SELECTION_NAMES),
        ),
    ] = Selection.RANDOM.value,
    roll_size: Annotated[int, typer.Option(help="How many photographs a roll has.", min=1)] = 20,
    profile: ProfileFile = None,
    model: ModelName = None,
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
    **kinds: bool,
) -> None:
    """White-balance photographs: find the light of each, and write it where it is wanted.

    The camera is told by the file; what the model knows of it comes from the catalogue (`c5 catalog add`).

    No photograph is ever written to. What exists already is passed over, so that the same command goes on where it was
    stopped. A file that fails is named at the end, and makes the exit code 1.
    """
    from c5.model import Profile, load_model
    from c5.parallel import in_parallel
    from c5.photos import balancing
    from c5.photos.files import list_photographs
    from c5.photos.photo import Reading

    outputs = {name: load_output(name) for name in list_outputs() if kinds.get(name.replace("-", "_"))}
    for name, output in outputs.items():
        if output.copies and out is None:
            raise ParameterError(f"--{name} makes copies: give --out DIR, a folder outside your library, for them")
    if as_json and as_csv and out is None:
        raise ParameterError("--json and --csv would be printed into each other: ask for one, or give --out DIR")
    paths, unreadable = list_photographs(files)
    if not paths:
        raise ReadError(f"{files[0]}: no photographs in it; give raw files or folders of them")
    tables = [name for name, asked in (("json", as_json), ("csv", as_csv)) if asked]
    run = _Run(paths, outputs, tables, out, sheet=sheet, overwrite=overwrite)
    run.failures += [failure.message for failure in unreadable]
    try:
        with ExitStack() as stack:
            settings = balancing.Settings(
                load_model(model),
                None if profile is None else Profile.load(profile),
                _open_catalog(catalog, stack),
                camera,
                Selection(selection),
                roll_size,
                smooth,
                fallback,
                Reading(black, white, assume_srgb),
                thumbnails=sheet,
            )
            results = stack.enter_context(closing(balancing.balance(paths, settings, wanted=run.due)))
            written = stack.enter_context(closing(in_parallel(run.write, results)))
            progress = stack.enter_context(progress_bar())
            for result, made in progress.track(written, len(run.due), description="balancing"):
                run.take(result, made, selection)
        run.finish()
    except KeyboardInterrupt:
        how = "without --overwrite it goes on from there" if overwrite else "the same command goes on from there"
        complain(f"stopped; what is written stays, and {how}")
        raise typer.Exit(130) from None
    finally:
        for failure in run.failures:
            complain(failure)
    run.print_summary()
    if run.failures:
        raise typer.Exit(1)


def _open_catalog(catalog: Path | None, stack: ExitStack) -> Catalog | None:
    from c5.photos.catalog import Catalog, default_path

    if catalog is not None and not catalog.is_file():
        raise ReadError(f"{catalog}: no catalogue there; make one with c5 catalog add DIR --catalog {catalog}")
    place = catalog or default_path()
    return stack.enter_context(Catalog.open(place)) if place.is_file() else None


class _Run:
    """What a run of the command writes and prints, and what has become of it so far."""

    def __init__(
        self,
        paths: list[Path],
        outputs: dict[str, Output],
        tables: list[str],
        out: Path | None,
        *,
        sheet: bool,
        overwrite: bool,
    ) -> None:
        from c5.photos.writing import check_places, plan_outputs

        self.outputs = outputs
        self.overwrite = overwrite
        self.places, refused = plan_outputs(paths, outputs, out)
        self.failures = [failure.message for failure in refused]
        pages = range(1, -(-len(paths) // PAGE) + 1)
        names = ["sheet.jpg" if page == 1 else f"sheet-{page}.jpg" for page in pages] if sheet else []
        self.sheets = [(out or Path()) / name for name in names]
        self.tables = {name: None if out is None else out / TABLES[name] for name in tables}
        for_set = [*self.sheets, *(place for place in self.tables.values() if place is not None)]
        check_places(for_set, paths)
        places = [*self.places.values(), *for_set]
        self.there = set() if overwrite else {place for place in places if os.path.lexists(place)}
        """What exists already and stays."""
        is_printed = (not outputs and not for_set) or None in self.tables.values()
        self.due = paths
        """The photographs of which something is to be written or printed."""
        if not is_printed and self.there.issuperset(for_set):
            unfinished = {path for (path, _), place in self.places.items() if place not in self.there}
            unfinished |= {failure.path for failure in refused}
            self.due = [path for path in paths if path in unfinished]
        self.rolls: set[Roll] = set()
        self.rows: list[dict[str, Any]] = []
        self.page: list[Balance] = []
        self.written = 0

    def write(self, result: Balance | Failure) -> list[Path | str]:
        """Write the files of one photograph; where they are, or what is wrong with them."""
        from c5.photos.files import Failure
        from c5.photos.writing import write_output

        done: list[Path | str] = []
        for name, output in self.outputs.items():
            place = self.places.get((result.path, name))
            if place is None or place in self.there or isinstance(result, Failure):
                continue
            try:
                done.append(write_output(result, output, place, overwrite=self.overwrite))
            except C5Error as error:
                done.append(f"{error} (--{name})")
        return done

    def take(self, result: Balance | Failure, made: list[Path | str], selection: str) -> None:
        """Print one result and what was written for it."""
        from c5.photos.files import Failure
        from c5.photos.summary import describe

        if isinstance(result, Failure):
            self.failures.append(result.message)
            return
        if result.roll not in self.rolls:
            self.rolls.add(result.roll)
            self.failures += [failure.message for failure in result.roll.failures]
            _print_roll(result.roll, selection)
        for item in made:
            if isinstance(item, str):
                self.failures.append(item)
            else:
                self._note_written(item)
        row = describe(result, self.outputs.values())
        self.rows.append(row)
        if row["note"]:
            errors.print(f"note: {row['file']}: {row['note']}")
        for name, place in self.tables.items():
            if place is None:
                print(_encode(name, [self.rows[-1]], first=len(self.rows) == 1).decode(), end="", flush=True)
        if self.sheets:
            self.page.append(result)
            if len(self.page) == PAGE:
                self._write_page()

    def finish(self) -> None:
        """Write and print what is one for the whole set."""
        if not self.rows:
            return
        if None not in self.tables.values():
            _print_table(self.rows)
        if "xmp" in self.outputs and any(Path(row["file"]).suffix.lower() == ".dng" for row in self.rows):
            errors.print("note: Adobe's programs read no sidecar of a DNG: use --dng --out DIR for those")
        if self.page:
            self._write_page()
        for name, place in self.tables.items():
            if place is not None:
                self._write_for_set(place, partial(_encode, name, self.rows))

    def print_summary(self) -> None:
        uncertain = sum(row["uncertain"] for row in self.rows)
        counts = {"written": self.written, "already there": len(self.there), "uncertain": uncertain}
        counts["failed"] = len(self.failures)
        text = ", ".join(f"{count} {what}" for what, count in counts.items())
        errors.print(f"{text}{'; --overwrite replaces what is there' if self.there else ''}")

    def _write_page(self) -> None:
        from c5.photos.picture import encode_picture
        from c5.photos.summary import draw_sheet

        number, page = (len(self.rows) - 1) // PAGE, self.page
        self.page = []
        title = f"{len(page)} photographs"
        if len(self.sheets) > 1:
            title = f"Photographs {number * PAGE + 1} to {number * PAGE + len(page)}"
        place = self.sheets[number]
        self._write_for_set(place, lambda: encode_picture(draw_sheet(title, page), place.name))

    def _write_for_set(self, place: Path, make: Callable[[], bytes]) -> None:
        """Write a file of the whole set, unless it is there already."""
        from c5.io.files import write_file

        if place in self.there:
            return
        try:
            self._note_written(write_file(place, make()))
        except C5Error as error:
            self.failures.append(str(error))

    def _note_written(self, path: Path) -> None:
        self.written += 1
        errors.print(path)


def _encode(table: str, rows: list[dict[str, Any]], *, first: bool = True) -> bytes:
    from c5.photos.summary import to_csv

    text = to_csv(rows, heading=first) if table == "csv" else "".join(json.dumps(row) + "\n" for row in rows)
    return text.encode()


def _print_roll(roll: Roll, selection: str) -> None:
    from c5.photos.rolls import Origin

    what = {
        Origin.NOWHERE: "no roll, from the file alone",
        Origin.CATALOG: f"roll of {roll.size} {selection} photographs",
        Origin.SET: f"not in the catalogue; the roll is {roll.size} of these photographs",
    }.get(roll.origin)
    if what is not None:
        used = f": {', '.join(path.name for path in roll.paths)}" if roll.paths else ""
        more = "; more would help: c5 catalog add DIR" if roll.size < 2 else ""
        errors.print(f"{roll.camera or 'camera not told'}: {what}{used}{more}")


def _print_table(rows: list[dict[str, Any]]) -> None:
    from c5.photos.summary import show_kelvin

    table = []
    for row in rows:
        mark = " !" if row["uncertain"] else ""
        cells = [Path(row["file"]).name, " ".join(f"{gain:.3f}" for gain in row["gains"])]
        cells += ["-" if row[key] is None else show(row[key]) for key, show in (("kelvin", show_kelvin), ("tint", str))]
        cells += [f"{row['uncertainty_deg']:.1f}°{mark}", row["by"]]
        cells += ["-" if row["camera_angle_deg"] is None else f"{row['camera_angle_deg']:.1f}°"]
        table.append(cells)
    print_table(["file", "gains r g b", "K", "tint", "uncertainty", "by", "from the camera's own"], table)
    if any(row["uncertain"] for row in rows):
        console.print("! the model is not sure: see --fallback")
