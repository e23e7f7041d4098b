"""`c5 balance`: photographs in, white balance out, where other programs look for it."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from c5.choices import CatalogSelection, Fallback, Selection
from c5.cli.config import find_taste
from c5.cli.console import Follower, complain, console, errors, name_flags, print_table, progress_bar
from c5.cli.options import (
    LOOKS,
    AssumeSrgb,
    Black,
    CameraName,
    CatalogFile,
    ModelName,
    ProfileFile,
    White,
    warn_of_profile,
)
from c5.errors import C5Error, ParameterError, ReadError
from c5.io.files import printable
from c5.photos.outputs import BUILT_IN, Output, find_caveats, list_outputs, load_output
from c5.words import plural

if TYPE_CHECKING:
    from c5.photos.balancing import Balance, Settings
    from c5.photos.catalog import Catalog
    from c5.photos.files import Failure, Photographs
    from c5.photos.groups import Reference
    from c5.photos.roll_building import Roll

PAGE = 60
"""How many photographs fit on a contact sheet; more make more sheets. A JPEG has at most 65,535 pixels on a side."""

SHOWN = 10
"""How many sidecars with a balance set by hand are named."""

TABLES = {"json": "balance.jsonl", "csv": "balance.csv"}

REFERENCE = re.compile(r"(.+):(-?\d+),(-?\d+),(-?\d+),(-?\d+)", re.DOTALL)


OUTPUT_FLAGS: dict[str, str] = {}
"""The kinds of output that have a flag, by its parameter."""


def with_outputs(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for each kind of output and of look, in place of its `**kinds`."""
    signature = inspect.signature(command, eval_str=True)
    files, out, *others = (
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in signature.parameters.values()
        if parameter.name != "kinds"
    )
    looks = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in LOOKS.items()
    ]
    flags = []
    for name, text in list_outputs(_find_flags([out, *looks, *others])).items():
        parameter = f"write_{name.replace('-', '_')}"
        if parameter.isidentifier():
            OUTPUT_FLAGS[parameter] = name
            kind = Annotated[bool, typer.Option(f"--{name}", help=text)]
            flags.append(inspect.Parameter(parameter, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind))
    parameters = [files, out, *flags, *looks, *others]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _find_flags(parameters: list[inspect.Parameter]) -> set[str]:
    """What cannot name an output: the long options of these parameters, and those that every command has."""
    options = (option for each in parameters for option in getattr(each.annotation, "__metadata__", ()))
    given = {str(name) for option in options for name in (option.default, *(option.param_decls or ()))}
    return {"help", *(name.removeprefix("--") for name in given), *(each.name.replace("_", "-") for each in parameters)}


@with_outputs
def balance(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Raw files, linear images, or folders; subfolders are included."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The folder to write to; by default files go beside each photograph, the sheet goes to the current "
            "folder, and --json and --csv are printed.",
        ),
    ] = None,
    sheet: Annotated[
        bool, typer.Option("--sheet", help="Contact sheets, before and after: sheet.jpg, sheet-2.jpg ...")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line: balance.jsonl, or printed.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="A table: balance.csv, or printed.")] = False,
    catalog: CatalogFile = None,
    camera: CameraName = None,
    selection: Annotated[
        CatalogSelection, typer.Option(help="Which of a camera's photographs make its roll.")
    ] = CatalogSelection.RANDOM,
    roll_size: Annotated[int, typer.Option(help="How many photographs a roll has.", min=1)] = 20,
    profile: ProfileFile = None,
    model: ModelName = None,
    smooth: Annotated[
        bool,
        typer.Option(
            "--smooth", help="Steady the light of bursts and time-lapses: one camera, no pause over two minutes."
        ),
    ] = False,
    sets: Annotated[
        bool, typer.Option("--sets", help="Group a shoot by light, across cameras, with one balance per group.")
    ] = False,
    groups: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="For --sets, the file of groups: used if it exists, edited or not; otherwise written."
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            help="For --sets, use a gray card in this photograph to balance its group. The rectangle is in pixels of "
            "the upright picture; default: the middle third.",
            metavar="FILE[:x,y,w,h]",
        ),
    ] = None,
    fallback: Annotated[Fallback, typer.Option(help="What to use where the model is uncertain.")] = Fallback.NONE,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what c5 wrote, and add to sidecars of other programs.")
    ] = False,
    replace_custom: Annotated[
        bool, typer.Option("--replace-custom", help="Like --overwrite, and also replace balances set by hand.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Undo what c5 wrote for these files, and nothing else.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do everything except write, and show what would be written.")
    ] = False,
    assume_srgb: AssumeSrgb = False,
    black: Black = 0,
    white: White = None,
    *,
    ctx: typer.Context,
    **kinds: Any,
) -> None:
    """White-balance photographs: find the light of each, and write it where you want it.

    The file names the camera; what the model knows about it comes from the catalog (`c5 catalog add`).

    c5 never writes to a photograph, and never replaces a file that it did not write; sidecars keep their other content.
    What exists already is skipped, so the same command continues where it was stopped. Files that fail are named at
    the end, and the exit code is then 1.
    """
    from c5.io.files import check_folder
    from c5.photos.files import list_photographs
    from c5.photos.groups import Sets, read_groups

    outputs = find_outputs(kinds)
    asked = list_photographs(files)
    if not asked.paths:
        raise ReadError(f"{files[0]}: no photographs in it; give raw files or folders of them")
    if undo:
        _undo(asked, outputs, out, sheet=sheet, dry_run=dry_run)
        return
    check_copies(outputs, out)
    if as_json and as_csv and out is None:
        raise ParameterError("--json and --csv would be printed into each other: ask for one, or give --out DIR")
    if (groups is not None or reference) and not sets:
        raise ParameterError("--groups and --reference are for --sets; add it")
    if out is not None:
        check_folder(out)
    known_groups = read_groups(groups) if groups is not None and os.path.lexists(groups) else None
    references = tuple(_parse_reference(text) for text in reference or [])
    wanted = {"json": as_json, "csv": as_csv}
    tables = {name: None if out is None else out / file for name, file in TABLES.items() if wanted[name]}
    if groups is not None and known_groups is None:
        tables["groups"] = groups
    with ExitStack() as stack:
        known = open_catalog(catalog, stack)
        how = {"overwrite": overwrite, "replace_custom": replace_custom, "dry_run": dry_run}
        run = Run(outputs, tables, out, known, sheet=sheet, **how)
        run.plan(asked)
        settings = make_settings(ctx, known, outputs)
        settings = replace(settings, thumbnails=sheet, sets=Sets(known_groups or {}, references) if sets else None)
        try:
            run.work(settings)
            run.finish()
        except KeyboardInterrupt:
            again = "without --overwrite it" if overwrite else "the same command"
            complain(f"stopped; what is written stays, and {again} continues from there")
            raise typer.Exit(130) from None
        finally:
            for failure in run.failures:
                complain(failure)
    run.print_summary()
    if run.failures:
        raise typer.Exit(1)


def _without_pixels(result: Balance | Failure) -> Balance | Failure:
    """The same without the pixels of its preview, which is drawn already: a sheet waits for sixty photographs."""
    from c5.photos.files import Failure

    return result if isinstance(result, Failure) else replace(result, photo=replace(result.photo, preview=None))


def _note(text: str) -> None:
    errors.print(f"note: {printable(text)}")


def _parse_reference(text: str) -> Reference:
    from c5.photos.groups import Reference

    found = None if os.path.exists(text) else REFERENCE.fullmatch(text)
    if found is None:
        return Reference(Path(text))
    left, top, width, height = (int(number) for number in found.groups()[1:])
    return Reference(Path(found[1]), (left, top, width, height))


def find_outputs(kinds: Mapping[str, Any]) -> dict[str, Output]:
    """The kinds of output whose flags are set."""
    return {name: load_output(name) for parameter, name in OUTPUT_FLAGS.items() if kinds.get(parameter)}


def offer_outputs() -> str:
    """The flags of all kinds of output, as a sentence lists them."""
    *others, last = (f"--{name}" for name in OUTPUT_FLAGS.values())
    return f"{', '.join(others)} or {last}"


def check_copies(outputs: Mapping[str, Output], out: Path | None) -> None:
    """Refuse to put copies of photographs beside them."""
    for name, output in outputs.items():
        if output.copies and out is None:
            raise ParameterError(f"--{name} makes copies: give --out DIR, a folder outside your library, for them")


def make_settings(context: typer.Context, catalog: Catalog | None, outputs: Mapping[str, Output]) -> Settings:
    """The settings for balancing, from the options of a command and from what it writes."""
    from c5.photos.balancing import Settings

    chosen = _read_options(**{name: context.params[name] for name in SETTINGS})
    previews = any(output.draws for output in outputs.values())
    return Settings(catalog=catalog, taste=find_taste(context), previews=previews, **chosen)


def _read_options(
    *,
    model: str | None,
    profile: Path | None,
    camera: str | None,
    selection: CatalogSelection,
    roll_size: int,
    smooth: bool,
    fallback: Fallback,
    assume_srgb: bool,
    black: float,
    white: float | None,
) -> dict[str, Any]:
    """The fields of the settings that options give."""
    from c5.model import Profile, load_model
    from c5.photos.photo import Reading

    return {
        "model": load_model(model),
        "profile": None if profile is None else Profile.load(profile),
        "camera": camera,
        "selection": Selection(selection.value),
        "roll_size": roll_size,
        "smooth": smooth,
        "fallback": fallback,
        "reading": Reading(black, white, assume_srgb),
    }


SETTINGS = tuple(inspect.signature(_read_options).parameters)
"""The options that say how a photograph is balanced, in whatever command."""


def _undo(asked: Photographs, outputs: dict[str, Output], out: Path | None, *, sheet: bool, dry_run: bool) -> None:
    """Undo what was written for photographs: all kinds of output, unless some are named."""
    from c5.photos.writing import Undone, plan_outputs, remove_sheet, undo_output

    kinds = outputs or (BUILT_IN if not sheet else {})
    places, _ = plan_outputs(asked.paths, kinds, out, asked.root)
    tasks = [
        (place, partial(undo_output, path, kinds[name], place, dry_run=dry_run))
        for (path, name), place in places.items()
        if os.path.lexists(place)
    ]
    for place in sorted((out or Path()).glob("sheet*.jpg")) if sheet or not outputs else []:
        if re.fullmatch(r"sheet(-\d+)?\.jpg", place.name):
            tasks.append((place, partial(remove_sheet, place, asked.paths, dry_run=dry_run)))
    done = dict.fromkeys(Undone, 0)
    failures: list[C5Error] = []
    found = {path for (path, _), place in places.items() if os.path.lexists(place)}
    for path in asked.named - found:  # without their photographs, files can still be undone
        if not os.path.lexists(path):
            failures.append(ReadError(f"{path}: no such file; check the path"))
    for place, task in tasks:
        try:
            became = task()
        except C5Error as error:
            failures.append(error)
            continue
        done[became] += 1
        if became is not Undone.FOREIGN:
            errors.print(f"{printable(place)}: {'would be ' if dry_run else ''}{became.value}")
    for failure in failures:
        complain(failure)
    counts = {what.value: count for what, count in done.items() if what not in (Undone.OTHERS, Undone.FOREIGN)}
    errors.print(", ".join(f"{count} {what}" for what, count in (counts | {"failed": len(failures)}).items()))
    if failures:
        raise typer.Exit(1)


def open_catalog(catalog: Path | None, stack: ExitStack) -> Catalog | None:
    """The catalog that was named, or the user's own if there is one."""
    from c5.photos.catalog import Catalog, default_path

    if catalog is not None and not catalog.is_file():
        raise ReadError(f"{catalog}: no catalog there; make one with c5 catalog add DIR --catalog {catalog}")
    place = catalog or default_path()
    return stack.enter_context(Catalog.open(place)) if place.is_file() else None


@dataclass
class Run:
    """What a run of the command writes and prints, and how far it has got."""

    outputs: dict[str, Output]
    tables: dict[str, Path | None]
    """Tables of the whole set by kind: where they are written, or None if they are printed."""
    out: Path | None
    catalog: Catalog | None
    sheet: bool = False
    overwrite: bool = False
    replace_custom: bool = False
    dry_run: bool = False
    failures: dict[str, None] = field(default_factory=dict, init=False)
    rolls: set[Roll] = field(default_factory=set, init=False)
    cameras: set[str | None] = field(default_factory=set, init=False)
    rows: list[dict[str, Any]] = field(default_factory=list, init=False)
    page: list[Balance] = field(default_factory=list, init=False)
    custom: list[str] = field(default_factory=list, init=False)
    """Sidecars whose balance was set by hand, and stays."""
    written: set[Path] = field(default_factory=set, init=False)
    unchanged: int = field(default=0, init=False)
    developed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.overwrite |= self.replace_custom

    def plan(self, asked: Photographs) -> None:
        """Plan what to write for photographs."""
        from c5.photos.writing import plan_outputs, protect

        def is_cataloged(place: Path) -> bool:
            return self.overwrite and self.catalog is not None and os.path.exists(place) and self.catalog.holds(place)

        self.asked = asked
        paths = asked.paths
        self.places, refused = plan_outputs(paths, self.outputs, self.out, asked.root, is_cataloged)
        self.fail(*(failure.message for failure in (*asked.unreadable, *refused)))
        pages = range(1, -(-len(paths) // PAGE) + 1)
        names = ["sheet.jpg" if page == 1 else f"sheet-{page}.jpg" for page in pages] if self.sheet else []
        self.sheets = [(self.out or Path()) / name for name in names]
        for_set = [*self.sheets, *(place for place in self.tables.values() if place is not None)]
        find_original = protect(paths, is_cataloged)
        self.closed = {place for place in for_set if find_original(place)}
        """Paths for files of the whole set that are taken by originals."""
        self.fail(*(f"{place}: {find_original(place)}; write to another folder" for place in self.closed))
        places = [*self.places.values(), *for_set]
        self.there = set() if self.overwrite else {place for place in places if os.path.lexists(place)} - self.closed
        """What exists already and stays."""
        self.is_printed = (not self.outputs and not for_set) or None in self.tables.values()
        self.due = paths
        """The photographs that need something written or printed."""
        if not self.is_printed and (self.there | self.closed).issuperset(for_set):
            unfinished = {path for (path, _), place in self.places.items() if place not in self.there}
            unfinished |= {failure.path for failure in refused}
            self.due = [path for path in paths if path in unfinished]

    def fail(self, *messages: str) -> None:
        """Record failures, each once."""
        self.failures |= dict.fromkeys(messages)

    def work(self, settings: Settings) -> None:
        """Balance what is due, and write and print results as they come."""
        from c5.parallel import MOST_JOBS, in_parallel
        from c5.photos.balancing import balance

        # Sidecars wait for the disk, previews for a core.
        jobs = None if settings.previews else MOST_JOBS
        with ExitStack() as stack:
            progress = stack.enter_context(progress_bar())
            follow = Follower(progress)
            found = balance(self.asked.paths, settings, wanted=self.due, tell=_note, follow=follow)
            results = stack.enter_context(closing(found))
            written = stack.enter_context(closing(in_parallel(self.write, results, jobs)))
            for result, made in progress.track(written, len(self.due), description="balancing"):
                self.take(_without_pixels(result), made, settings.selection.value)

    def write(self, result: Balance | Failure) -> list[Path | C5Error | None]:
        """Write the files of one photograph. Returns the path or the error of each, None for one that stays."""
        from c5.photos.files import Failure
        from c5.photos.sidecars.marks import CustomBalanceError
        from c5.photos.writing import write_output

        done: list[Path | C5Error | None] = []
        for name, output in self.outputs.items():
            place = self.places.get((result.path, name))
            if place is None or place in self.there or isinstance(result, Failure):
                continue
            how = {"overwrite": self.overwrite, "replace_custom": self.replace_custom, "dry_run": self.dry_run}
            try:
                made = write_output(result, output, place, **how)
                done.append(made)
                if made is not None:
                    self.written.add(made)
            except CustomBalanceError as error:
                done.append(error)
            except C5Error as error:
                done.append(type(error)(f"{error} (--{name})"))
        return done

    def take(self, result: Balance | Failure, made: list[Path | C5Error | None], selection: str) -> None:
        """Print one result and what was written for it."""
        from c5.photos.files import Developed, Failure
        from c5.photos.sidecars.marks import CustomBalanceError
        from c5.photos.summary import describe

        if isinstance(result, Failure):
            if isinstance(result, Developed) and result.path not in self.asked.named:
                self.developed += 1
            else:
                self.fail(result.message)
            return
        if result.roll not in self.rolls:
            self.rolls.add(result.roll)
            self.fail(*(failure.message for failure in result.roll.failures))
            _print_roll(result.roll, selection)
        if result.photo.camera not in self.cameras:
            self.cameras.add(result.photo.camera)
            warn_of_profile(result.path, result.photo.camera, result.roll.profile)
        for item in made:
            if isinstance(item, CustomBalanceError):
                self.custom.append(str(item))
            elif isinstance(item, C5Error):
                self.fail(str(item))
            elif item is None:
                self.unchanged += 1
            else:
                self._show_written(item)
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
        """Write and print what covers the whole set."""
        if not self.rows:
            return
        if None not in self.tables.values():
            _print_table(self.rows)
        paths = [Path(row["file"]) for row in self.rows]
        for caveat in find_caveats((output, path) for output in self.outputs.values() for path in paths):
            errors.print(f"note: {name_flags(caveat)}")
        if self.page:
            self._write_page()
        for name, place in self.tables.items():
            if place is not None:
                encode = partial(_encode_groups, place) if name == "groups" else partial(_encode, name)
                self._write_for_set(place, partial(encode, self.rows))

    def print_summary(self, *, with_hints: bool = True) -> None:
        uncertain = sum(row["uncertain"] for row in self.rows)
        for kept in self.custom[:SHOWN]:
            errors.print(f"left alone: {printable(kept)}")
        if len(self.custom) > SHOWN:
            errors.print(f"left alone: {len(self.custom) - SHOWN} more")
        there = len(self.there - self.written) + self.unchanged
        made = "to write" if self.dry_run else "written"
        counts = {made: len(self.written), "already there": there, "uncertain": uncertain}
        counts |= {"set by hand": len(self.custom)} if self.custom else {}
        parts = [f"{count} {what}" for what, count in counts.items()]
        passed = self.asked.exports + self.developed
        parts += [f"{plural(passed, 'picture')} passed over"] if passed else []
        text = ", ".join([*parts, f"{len(self.failures)} failed"])
        hints = ["--overwrite replaces what is there"] if self.there - self.written else []
        hints += ["--replace-custom replaces what was set by hand"] if self.custom else []
        if not self.outputs and not self.tables and not self.sheets and self.rows:
            hints.append(f"to write files, add {offer_outputs()}")
        errors.print("; ".join([text, *hints] if with_hints else [text]))

    def _write_page(self) -> None:
        from c5.photos.picture import encode_picture
        from c5.photos.summary import draw_sheet
        from c5.photos.writing import name_shown

        number, page = (len(self.rows) - 1) // PAGE, self.page
        self.page = []
        title = plural(len(page), "photograph")
        if len(self.sheets) > 1:
            title = f"Photographs {number * PAGE + 1} to {number * PAGE + len(page)}"
        place = self.sheets[number]
        shown = name_shown(result.path for result in page)
        self._write_for_set(place, lambda: encode_picture(draw_sheet(title, page), place.name, shown))

    def _write_for_set(self, place: Path, make: Callable[[], bytes]) -> None:
        """Write a file for the whole set, unless it exists already."""
        from c5.io.files import write_file

        if place in self.there or place in self.closed:
            return
        try:
            made = write_file(place, make(), dry_run=self.dry_run)
        except C5Error as error:
            self.fail(str(error))
            return
        self.written.add(made)
        self._show_written(made)

    def _show_written(self, path: Path) -> None:
        if self.dry_run:
            console.print(f"would {'change' if os.path.exists(path) else 'write'} {printable(path)}")
        else:
            errors.print(printable(path))


def _encode(table: str, rows: list[dict[str, Any]], *, first: bool = True) -> bytes:
    from c5.photos.summary import to_csv

    text = to_csv(rows, heading=first) if table == "csv" else "".join(json.dumps(row) + "\n" for row in rows)
    return text.encode()


def _encode_groups(place: Path, rows: list[dict[str, Any]]) -> bytes:
    from c5.colorimetry.temperature import show_kelvin
    from c5.photos.groups import encode_groups

    lights = ["" if row["kelvin"] is None else f"{show_kelvin(row['kelvin'])} K, tint {row['tint']:+d}" for row in rows]
    listed = [(Path(row["file"]), row["group"], light) for row, light in zip(rows, lights, strict=True)]
    return encode_groups(listed, place.parent)


def _print_roll(roll: Roll, selection: str) -> None:
    from c5.photos.roll_building import Origin

    what = {
        Origin.NOWHERE: "no roll, from the file alone",
        Origin.CATALOG: f"roll of {plural(roll.size, f'{selection} photograph')}",
        Origin.SET: f"not in the catalog; the roll is {roll.size} of these photographs",
    }.get(roll.origin)
    if what is not None:
        used = f": {', '.join(printable(path.name) for path in roll.paths)}" if roll.paths else ""
        more = "; more would help: c5 catalog add DIR" if roll.size < 2 else ""
        errors.print(f"{roll.camera or 'unknown camera'}: {what}{used}{more}")


def _print_table(rows: list[dict[str, Any]]) -> None:
    from c5.colorimetry.temperature import show_kelvin

    table = []
    has_looks = any(row["look"] for row in rows)
    for row in rows:
        mark = " !" if row["uncertain"] else ""
        cells = [Path(row["file"]).name, " ".join(f"{gain:.3f}" for gain in row["gains"])]
        cells += ["-", "-"] if row["kelvin"] is None else [show_kelvin(row["kelvin"]), f"{row['tint']:+d}"]
        doubt = row["uncertainty_deg"]
        cells += ["-" if doubt is None else f"{doubt:.1f}°{mark}", row["by"]]
        cells += [row["group"]] if row["group"] is not None else []
        cells += ["-" if row["camera_angle_deg"] is None else f"{row['camera_angle_deg']:.1f}°"]
        if has_looks:
            cells += ["-" if row["light_kelvin"] is None else show_kelvin(row["light_kelvin"]), row["look"] or "-"]
        table.append(cells)
    group = ["group"] if any(row["group"] is not None for row in rows) else []
    headings = ["file", "gains r g b", "K", "tint", "uncertainty", "by", *group, "change from camera"]
    print_table([*headings, "the light's K", "look"] if has_looks else headings, table)
    if any(row["uncertain"] for row in rows):
        console.print("! the model is not sure: see --fallback")
