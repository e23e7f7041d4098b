"""How the benchmarks measure and print."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table


def milliseconds(job: Callable[[], object], repeats: int = 30) -> float:
    """The median time of a job, after two runs to warm up."""
    job(), job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def show(title: str, headings: list[str], rows: list[list[str]]) -> None:
    table = Table(*headings, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)
