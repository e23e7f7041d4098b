"""`c5 watch`: balance photographs as a card import brings them in."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.balance import (
    OUTPUT_FLAGS,
    SETTINGS,
    Run,
    balance,
    check_copies,
    find_outputs,
    make_settings,
    offer_outputs,
    open_catalog,
)
from c5.cli.console import complain, errors
from c5.cli.options import LOOKS
from c5.errors import ParameterError, ReadError

if TYPE_CHECKING:
    from c5.io.versions import Version
    from c5.photos.balancing import Settings
    from c5.photos.files import Photographs


def with_options_of_balance(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command those options of `c5 balance` that count for each photograph, in place of its `**options`."""
    own = inspect.signature(command, eval_str=True).parameters
    offered = {"ctx", "catalog", *OUTPUT_FLAGS, *LOOKS, *SETTINGS}
    shared = {name: each for name, each in inspect.signature(balance).parameters.items() if name in offered}
    named = {name: each for name, each in own.items() if name != "options"} | shared
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in named.values()]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


@with_options_of_balance
def watch(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders to watch, with their subfolders.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write to; default: beside each file.")
    ] = None,
    every: Annotated[float, typer.Option("--every", help="Seconds between two checks of the folders.", min=0.1)] = 2,
    *,
    ctx: typer.Context,
    catalog: Path | None,
    **options: object,
) -> None:
    """Balance photographs as they arrive, for example from a card import, until you press Ctrl-C.

    A file is taken once its size and time stay the same between two checks. It is balanced as by `c5 balance`. What is
    written already is skipped, so the same command continues where it stopped.
    """
    from c5.io.files import check_folder
    from c5.photos.files import list_photographs

    outputs = find_outputs(options)
    if not outputs:
        raise ParameterError(f"say what is to be written: {offer_outputs()}")
    for folder in folders:
        if not os.path.isdir(folder):
            raise ReadError(f"{folder}: no such folder; give the one that photographs are copied to")
    check_copies(outputs, out)
    if out is not None:
        check_folder(out)
        if any(output.copies for output in outputs.values()) and any(_is_in(out, folder) for folder in folders):
            raise ParameterError(f"{out}: is in a folder that is watched, and copies would be copied; choose another")
    with ExitStack() as stack:
        known = open_catalog(catalog, stack)
        settings = make_settings(ctx, known, outputs)
        run = Run(outputs, {}, out, known)
        watcher = _Watcher(folders, run, list_photographs(folders))
        errors.print(f"watching {', '.join(map(str, folders))}; Ctrl-C ends it")
        try:
            while True:
                watcher.look(settings)
                time.sleep(every)
        except KeyboardInterrupt:
            errors.print("stopped; the same command continues from here")
    run.finish()
    run.print_summary(with_hints=False)
    if run.failures:
        raise typer.Exit(1)


class _Watcher:
    """What was seen of the folders, and what was done about it."""

    def __init__(self, folders: list[Path], run: Run, asked: Photographs) -> None:
        self.folders, self.run, self.asked = folders, run, asked
        self.seen: dict[Path, Version] = {}
        self.taken: dict[Path, Version] = {}
        """Photographs as they were when they were balanced, or when that failed."""
        self.gone: set[Path] = set()
        run.plan(asked._replace(paths=[]))

    def look(self, settings: Settings) -> None:
        """Balance what is new and has not changed since the last check."""
        from c5.io.versions import file_version
        from c5.photos.files import list_photographs

        self._name_gone()
        present = [folder for folder in self.folders if folder not in self.gone]
        found = list_photographs(present)._replace(root=self.asked.root)
        versions = {path: version for path in found.paths if (version := file_version(path)) is not None}
        steady = {path: version for path, version in versions.items() if self.seen.get(path) == version}
        self.seen = versions
        new = {path for path, version in steady.items() if self.taken.get(path) != version}
        if not new:
            return
        said = set(self.run.failures)
        self.run.plan(found._replace(paths=list(steady)))
        self.run.due = [path for path in self.run.due if path in new]
        self.taken |= {path: steady[path] for path in new}
        self.run.work(settings)
        for failure in self.run.failures:
            if failure not in said:
                complain(failure)

    def _name_gone(self) -> None:
        """Say once which folders are gone, and which are back."""
        gone = {folder for folder in self.folders if not os.path.isdir(folder)}
        for folder in sorted(gone - self.gone):
            complain(f"{folder}: is gone; it is watched again when it is back")
        for folder in sorted(self.gone - gone):
            errors.print(f"{folder}: is back")
        self.gone = gone


def _is_in(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
