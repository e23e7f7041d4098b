"""Where the command prints, and how it shows that it is at work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

from c5.errors import ParameterError

errors = Console(stderr=True, soft_wrap=True, highlight=False)
console = Console(soft_wrap=True, highlight=False)

Item = TypeVar("Item")


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


def need_torch() -> None:
    if find_spec("torch") is None or find_spec("onnx") is None:
        raise ParameterError("this needs torch: run pip install 'c5-awb[train]'")
