"""Where the command prints, and how it shows that it is at work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from c5.cli.environment import threads_unlimited
from c5.errors import ParameterError

errors = Console(stderr=True, soft_wrap=True, highlight=False)
console = Console(soft_wrap=True, highlight=False)

Item = TypeVar("Item")

FLAGS = {
    "resume=True": "--resume",
    "overwrite=True": "--overwrite",
    "assume_srgb=True": "--assume-srgb",
    "matrices=read_matrices(FILE)": "--matrices FILE",
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
    printable = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in message)
    errors.print(f"c5: {printable}", markup=False)


def progress_bar() -> Progress:
    """On standard error, with the time taken and the time left; nothing where that is no terminal."""
    return Progress(*progress_columns(), console=errors, transient=True, disable=not errors.is_terminal)


def progress_columns() -> tuple[ProgressColumn, ...]:
    return (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )


def show_progress(items: Sequence[Item], what: str) -> Iterable[Item]:
    """The items, with a bar where there are more than a few."""
    if len(items) < 5:
        yield from items
        return
    with progress_bar() as progress:
        yield from progress.track(items, description=what)


def print_table(table: Table) -> None:
    """As wide as the terminal; elsewhere wide enough that nothing is cut."""
    Console(width=None if console.is_terminal else 200, highlight=False).print(table)


def start_torch() -> None:
    """Load torch, and let it use all cores."""
    if find_spec("torch") is None or find_spec("onnx") is None:
        raise ParameterError("this needs torch: run pip install 'c5-awb[train]'")
    with threads_unlimited():
        import_module("torch").get_num_threads()  # which counts the cores the first time
