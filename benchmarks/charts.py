"""What `c5.charts` finds in rendered photographs with and without color charts: it must not be wrong on any of them.

python benchmarks/charts.py               5,000 of them, in several minutes
python benchmarks/charts.py --count 280
python benchmarks/charts.py --folder DIR  photographs without a chart, of your own
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from chart_cases import CASES, render_case
from timing import show

from c5.charts.chart import Reading, Refusal
from c5.charts.finding import LOOKED_AT, agree, find_charts
from c5.color import angular_error
from c5.image import LinearImage
from c5.io.raw import read_photograph
from c5.parallel import in_parallel, in_processes

MOST_DEG = 1.0
"""A label that is further off is wrong."""


class Outcome(NamedTuple):
    """The result for a photograph."""

    case: str
    seed: int
    charts: int
    error: float | None
    """Degrees between the label and the nearest light that falls on a chart; None without a label."""
    reason: str

    @property
    def wrong(self) -> bool:
        return self.error is not None and not (self.charts and self.error <= MOST_DEG)


def label_case(index: int, seed: int) -> Outcome:
    """Render one photograph, and look for charts in it."""
    case = CASES[index % len(CASES)]
    shot = render_case(case, np.random.default_rng([seed, index]))
    image = LinearImage(shot.photo.image.rgb, clipped=shot.photo.image.clipped)
    found = find_charts(image)
    result = agree(found) if found else Refusal("no chart", np.inf)
    if isinstance(result, Refusal):
        return Outcome(case, index, len(shot.lights), None, result.reason)
    errors = [float(angular_error(result.illuminant, light)) for light in shot.lights]
    return Outcome(case, index, len(errors), min(errors, default=np.inf), "")


def print_table(outcomes: list[Outcome]) -> None:
    rows = []
    by_case: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_case[outcome.case].append(outcome)
    for case, own in [*by_case.items(), ("all", outcomes)]:
        labeled = [outcome.error for outcome in own if outcome.error is not None]
        off = [f"{np.median(labeled):.2f}°", f"{max(labeled):.2f}°"] if labeled else ["-", "-"]
        refused = sum(outcome.error is None and outcome.reason != "no chart" for outcome in own)
        wrong = sum(outcome.wrong for outcome in own)
        rows.append(
            [case, *map(str, (len(own), len(labeled), refused, len(own) - len(labeled) - refused)), *off, str(wrong)]
        )
    headings = ["case", "photographs", "labeled", "refused", "no chart found", "median error", "largest", "wrong"]
    show("Rendered photographs with and without charts", headings, rows)


def check_folder(folder: Path) -> int:
    """How many photographs of a folder are labeled: none should be."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".png", ".dng", ".tif", ".tiff"))

    def look(path: Path) -> bool:
        image = read_photograph(path, pixels=LOOKED_AT).image
        found = find_charts(image)
        return bool(found) and isinstance(agree(found), Reading)

    labeled = [path for path, has in in_parallel(look, paths) if has]
    print(f"{len(paths)} photographs without a chart, {len(labeled)} labeled", *labeled)
    return len(labeled)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="where to begin: a long run can be made in parts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.folder is not None:
        sys.exit(check_folder(asked.folder) > 0)
    chosen = range(asked.first, asked.first + asked.count)
    outcomes = [outcome for _, outcome in in_processes(partial(label_case, seed=asked.seed), chosen)]
    print_table(outcomes)
    for outcome in outcomes:
        if outcome.wrong:
            print(f"wrong: {outcome}")
    sys.exit(any(outcome.wrong for outcome in outcomes))


if __name__ == "__main__":
    main()
