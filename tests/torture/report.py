"""What the campaign has found, as a table."""

from __future__ import annotations

import platform
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]

MEMORY_LIMIT = 1_500_000_000
HANG_SECONDS = 20
"""Of the processor's time: on a busy machine everything takes longer."""
BAD = ("changed", "traceback", "crash", "hang", "memory", "lost")
"""What must not happen. changed: damage accepted with another meaning; lost: another end than without the mishap."""
HEADINGS = (
    "part",
    "cases",
    "accepted",
    "one-line errors",
    "tracebacks",
    "crashes",
    "hangs",
    "changed or lost",
    "peak memory",
    "slowest",
)


@dataclass
class Part:
    """What became of the cases of one part."""

    name: str
    results: Counter[str] = field(default_factory=Counter)
    memory: int = 0
    slowest: float = 0.0

    def add(self, result: str, seconds: float = 0.0, memory: int = 0) -> None:
        self.results[result] += 1
        self.memory = max(self.memory, memory)
        self.slowest = max(self.slowest, seconds)

    @property
    def cases(self) -> int:
        return sum(self.results.values()) - self.results["memory"]  # which is counted besides

    @property
    def bad(self) -> int:
        return sum(self.results[result] for result in BAD)

    def row(self) -> list[str]:
        results = self.results
        counts = [
            self.cases,
            results["accepted"],
            results["refused"],
            results["traceback"],
            results["crash"],
            results["hang"],
        ]
        shown = [f"{count:,}" for count in (*counts, results["changed"] + results["lost"])]
        memory = f"{self.memory / 1e6:,.0f} MB" if self.memory else "-"
        return [self.name, *shown, memory, f"{self.slowest:.1f} s"]


def total(parts: list[Part]) -> Part:
    whole = Part("all")
    for part in parts:
        whole.results.update(part.results)
        whole.memory = max(whole.memory, part.memory)
        whole.slowest = max(whole.slowest, part.slowest)
    return whole


def to_markdown(parts: list[Part], facts: list[str]) -> str:
    """The table, and below it how it was made."""
    rows = [[*HEADINGS], ["---", *["---:"] * (len(HEADINGS) - 1)], *(part.row() for part in [*parts, total(parts)])]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", *facts, ""])


def commit() -> str:
    """The commit of this checkout, and whether it has been changed since."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=10"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return found.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
