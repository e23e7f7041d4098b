"""Where the command prints, and how it shows that it is at work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from c5.cli.environment import threads_unlimited
from c5.errors import ParameterError
from c5.io.files import printable

errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
console = Console(soft_wrap=True, highlight=False, markup=False)

Item = TypeVar("Item")

FLAGS = {
    "resume=True": "--resume",
    "overwrite=True": "--overwrite",
    "assume_srgb=True": "--assume-srgb",
    "matrices=read_matrices(FILE)": "--matrices FILE",
    "write to another folder": "write to another folder: --out DIR",
    "write each to a folder of its own": "write each to a folder of its own: --out DIR",
    "Model.calibrate": "c5 calibrate",
    "prepare it for this recipe too": "prepare it again with c5 data prepare --for RECIPE",
    "more problems)": "more problems: see c5 data check)",
}
"""Remedies in the library's words, which are Python's, and in those of the command."""


def complain(problem: object) -> None:
    """One line on standard error, with the remedy as a flag and nothing that a terminal would obey."""
    message = str(problem)
    for python, flag in FLAGS.items():
        message = message.replace(python, flag)
    errors.print(f"c5: {printable(message)}")


def progress_bar(*, transient: bool = True) -> Progress:
    """On standard error, with the time taken and the time left; nothing where that is no terminal."""
    times = (MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), *times)
    return Progress(*columns, console=errors, transient=transient, disable=not errors.is_terminal)


def show_progress(items: Sequence[Item], what: str) -> Iterable[Item]:
    """The items, with a bar where there are more than a few."""
    if len(items) < 5:
        yield from items
        return
    with progress_bar() as progress:
        yield from progress.track(items, description=what)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """As wide as the terminal; elsewhere wide enough that nothing is cut."""
    table = Table(*headings)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console(width=None if console.is_terminal else 200, highlight=False).print(table)


def start_torch() -> None:
    """Load torch, and let it use all cores."""
    if find_spec("torch") is None or find_spec("onnx") is None:
        raise ParameterError("this needs torch: run pip install 'c5-awb[train]'")
    with threads_unlimited():
        import_module("torch").get_num_threads()  # which counts the cores the first time
