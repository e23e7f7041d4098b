"""How the benchmarks measure and print."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def milliseconds(job: Callable[[], object], repeats: int = 30) -> float:
    """The median time of a job, after two runs to warm up."""
    job()
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def show(title: str, headings: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown."""
    table = [headings, ["-" * len(heading) for heading in headings], *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
    print(f"\n{title}\n")
    for row in table:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")
