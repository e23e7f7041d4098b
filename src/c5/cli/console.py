"""Where the command prints, and how it shows progress."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from operator import length_hint
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from c5.cli.environment import threads_unlimited
from c5.errors import ParameterError
from c5.io.files import printable

errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
console = Console(soft_wrap=True, highlight=False, markup=False)

Item = TypeVar("Item")

FLAGS = {
    "plan=None": "--resume",
    "overwrite=True": "--overwrite",
    "assume_srgb=True": "--assume-srgb",
    "matrices=read_matrices(FILE)": "--matrices FILE",
    "the augmentation none": "--augmentation none",
    "write to another folder": "write to another folder: --out DIR",
    "write each to a folder of its own": "write each to a folder of its own: --out DIR",
    "Model.calibrate": "c5 calibrate",
    "learn one from your edits": "learn one from your edits: c5 learn DIR",
    "prepare it for the recipe": "prepare it again with c5 data prepare --for",
    "check the dataset": "see c5 data check",
    "make some for other cameras by augmentation": "make some with c5 augment --source and --target",
    "say which camera it is from": "say which camera it is from: --camera NAME",
    "choose one of them": "choose one: --only NAME",
    "let an evaluation write one": "make it with c5 evaluate --estimates FILE",
    "write DNG copies of them to another folder": "use --dng --out DIR for those",
}
"""Remedies as the library words them, for Python, and as the command does, with flags. They stand after the last
semicolon of a message, where no file names are."""


LONGEST = 2000
"""The longest message: a damaged file can hold names of any length."""


def name_flags(message: str) -> str:
    """A message of the library with its remedy as a flag."""
    what, semicolon, remedy = message.rpartition("; ")
    for python, flag in FLAGS.items() if semicolon else ():
        remedy = remedy.replace(python, flag)
    return f"{what}{semicolon}{remedy}"


def complain(problem: object) -> None:
    """Print one line on standard error, with the remedy as a flag and without terminal escape codes."""
    message = printable(name_flags(str(problem)))
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} [...] {message[-LONGEST // 2 :]}"
    errors.print(f"c5: {message}")


def progress_bar(*, transient: bool = True) -> Progress:
    """A bar on standard error, with the time taken and the time left; nothing if that is not a terminal."""
    times = (MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), *times)
    return Progress(*columns, console=errors, transient=transient, disable=not errors.is_terminal)


class Log:
    """Progress for a log file: a line now and then, with the time taken and the time left. Terminals have a bar."""

    SOONEST, LATEST = 5, 60  # seconds after the last line: if another tenth is done, and in any case

    def __init__(self, what: str, total: int, first: int = -1) -> None:
        self.what, self.total, self.first = what, total, first
        self.started = self.last = time.monotonic()
        self.shown = -1

    def advance(self, done: int, text: str = "") -> None:
        now, tenth = time.monotonic(), 10 * done // max(self.total, 1)
        self.first = done - 1 if self.first < 0 else self.first
        due = self.LATEST if tenth == self.shown else self.SOONEST
        if errors.is_terminal or now - self.last < due or done <= self.first:
            return
        self.last, self.shown = now, tenth
        taken = now - self.started
        if not self.total:
            errors.print(f"{self.what}: {done}{text}, {_clock(taken)} taken")
            return
        left = taken * (self.total - done) / (done - self.first)
        errors.print(f"{self.what}: {done} of {self.total}{text}, {_clock(taken)} taken, {_clock(left)} left")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


class Follower:
    """Shows the progress of several steps, and how fast they are: a bar each, or lines now and then."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.steps: dict[str, tuple[TaskID, Log]] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        if what not in self.steps:
            self.steps[what] = self.progress.add_task(what, total=total or None), Log(what, total, first=done)
        task, log = self.steps[what]
        rate = (done - log.first) / max(time.monotonic() - log.started, 1e-9)
        text = f", {rate:.0f} a second" if rate >= 1 else ""
        unfinished = not total or done < total
        self.progress.update(task, completed=done, total=total or None, description=f"{what}{text}", visible=unfinished)
        log.advance(done, text)


def show_progress(items: Iterable[Item], what: str, total: int | None = None) -> Iterable[Item]:
    """The items, with a bar if there are more than a few, or a line now and then if a bar would not show. A generator
    needs the `total`."""
    total = length_hint(items) if total is None else total
    if total < 5 and errors.is_terminal:
        yield from items
        return
    log = Log(what, total)
    with progress_bar() as progress:
        for done, item in enumerate(progress.track(items, total=total, description=what), 1):
            yield item
            log.advance(done)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table as wide as the terminal; elsewhere, wide enough that nothing is cut."""
    table = Table(*headings)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console(width=None if console.is_terminal else 100_000, highlight=False).print(table)


def print_markdown(text: str) -> None:
    """Print Markdown as it is; on a terminal, with its tables drawn."""
    if not console.is_terminal:
        console.print(text)
        return
    from rich.markdown import Markdown

    Console(highlight=False).print(Markdown(text))


def start_torch() -> None:
    """Load torch, and let it use all cores."""
    if find_spec("torch") is None or find_spec("onnx") is None:
        raise ParameterError("this needs torch: run pip install 'c5-awb[train]'")
    with threads_unlimited():
        import_module("torch").get_num_threads()  # the first call counts the cores
