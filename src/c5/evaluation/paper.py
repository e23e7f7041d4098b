"""The tables of the paper as data: what each row was trained and tested on, and which of our methods stands beside it.

Rows that share their training have one setting, so that a network is trained once for all the datasets it is tested on.
`c5.evaluation.suite` runs them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from c5.choices import Selection
from c5.errors import ParameterError
from c5.evaluation.protocols import PROTOCOLS, SPLITS, Protocol, tested_alone
from c5.evaluation.report import read_published

TABLES = {
    1: "Camera-independent, five test sets",
    2: "Ablations, on Cube+",
    3: "With and without augmentation",
    4: "Number of additional images",
    5: "Gain multiplier",
    6: "INTEL-TAU's own protocols",
    7: "Camera-specific",
    8: "Augmentation within one camera",
    9: "Images of other cameras, mapped",
    10: "Without the XYZ step",
    11: "Real and synthetic test cameras",
}
"""What the tables show, numbered through the appendix."""


@dataclass(frozen=True)
class Setting:
    """What is trained on and tested: rows with the same setting have their results in one folder."""

    protocol: str
    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    """Datasets or cameras that are used at all; all of `train` and `test` if empty."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.only or (*self.train, *self.test)

    def find(self, present: set[str], learns: bool = True) -> Protocol | None:
        """The protocol, with the test sets that are present; None without one, or without all of the training side.
        What learns nothing needs no training side."""
        test = tuple(name for name in self.test if name in present)
        if test and not learns:
            return tested_alone(test)
        if not {*self.train, *self.only} <= present or (self.test and not test):
            return None
        if self.protocol in SPLITS:
            return SPLITS[self.protocol](self.train, test)
        return PROTOCOLS[self.protocol]


NUS8 = (
    *("Canon1DsMkIII", "Canon600D", "FujifilmXM1", "NikonD5200"),
    *("OlympusEPL6", "PanasonicGX1", "SamsungNX2000", "SonyA57"),
)
FOUR = ("Canon600D", "FujifilmXM1", "NikonD5200", "SonyA57")
"""The paper does not say which four cameras it mapped to the Canon 5D."""
TESTED = ("Canon1D", *NUS8[2:], "Canon550D")
"""Cameras of the last table that are not trained on."""

SETTINGS = {
    "from-nus-gehler-shi": Setting("split", ("Gehler-Shi", "NUS"), ("Cube+", "Cube+ challenge", "INTEL-TAU")),
    "to-gehler-shi": Setting("split", ("Cube+", "INTEL-TAU", "NUS"), ("Gehler-Shi",)),
    "to-nus": Setting("split", ("Cube+", "Gehler-Shi", "INTEL-TAU"), ("NUS",)),
    "cross-sensor": Setting("leave-one-camera-out", only=("Cube+", "Gehler-Shi", "INTEL-TAU", "NUS")),
    "ten-fold": Setting("ten-fold", only=("INTEL-TAU",)),
    "camera-invariance": Setting("camera-invariance", only=("INTEL-TAU",)),
    "camera-specific": Setting("camera-specific", only=("Cube+",)),
    "challenge": Setting("known-camera", ("Cube+",), ("Cube+ challenge",)),
    "one-camera": Setting("random-split", only=("Canon5D",)),
    "four-cameras": Setting("mapped-split", FOUR, ("Canon5D",)),
    "one-other-camera": Setting("mapped-split", ("Canon1DsMkIII",), ("Canon5D",)),
    "other-cameras": Setting("split", ("Canon5D",), TESTED),
    "synthetic-cameras": Setting("synthetic-cameras", ("Canon5D",)),
}


class Work(NamedTuple):
    """What has to be run for a row; several rows may share it."""

    setting: str
    method: str
    m: int
    selection: Selection


@dataclass(frozen=True)
class PaperRow:
    """One row of one table."""

    table: int
    figures: dict[str, str]
    """What was published: a line of `published.csv`."""
    setting: str
    method: str
    """Our method, as `c5 evaluate --method` takes it."""
    m: int
    selection: Selection

    @property
    def tested_on(self) -> str:
        """A dataset, or one camera of it."""
        return self.figures["tested_on"]

    @property
    def published(self) -> str:
        """What the row is called in the paper."""
        return self.figures["method"]

    @property
    def name(self) -> str:
        return f"{self.tested_on}: {self.published}"

    @property
    def work(self) -> Work:
        return Work(self.setting, self.method, self.m, self.selection)


CLASSICAL = {
    "gray-world": "gray-world",
    "shades-of-gray": "shades-of-gray",
    "white-patch": "white-patch",
    "first-order gray-edge": "gray-edge-1",
    "second-order gray-edge": "gray-edge-2",
    "weighted gray-edge": "weighted-gray-edge",
    "PCA of bright and dark pixels": "pca",
    "local surface reflectance": "local-surface-reflectance",
    "grayness index": "grayness-index",
}
"""Published names of methods that need no training, and ours."""

PLACES = {
    "Cube+": "from-nus-gehler-shi",
    "Cube+ challenge": "from-nus-gehler-shi",
    "INTEL-TAU": "from-nus-gehler-shi",
    "Gehler-Shi": "to-gehler-shi",
    "NUS": "to-nus",
}
FIELDS = {
    "n = 16": "n=16",
    "n = 32": "n=32",
    "n = 128": "n=128",
    "with G": "G=true",
    "no smoothness": "smooth_filters=0,smooth_bias=0",
    "smoothness 0.035 and 0.005": "smooth_filters=0.035,smooth_bias=0.005",
    "smoothness 0.75 and 0.1": "smooth_filters=0.75,smooth_bias=0.1",
    "smoothness 1.85 and 0.25": "smooth_filters=1.85,smooth_bias=0.25",
    "constant batch size": "batch_sizes=[16]",
    "no gradient histogram": "gradient=false",
    "no uv": "uv=false",
}
"""What the published names of C5 variants mean, as settings."""
AUGMENTED = {
    "FFCC": "ffcc+none",
    "FFCC, synthetic images": "ffcc+none",
    "FFCC, original set": "ffcc+none",
    "FFCC, clustering and sampling": "ffcc+clustering",
    "FFCC, sampling": "ffcc+sampling",
    "FFCC, the paper's augmentation": "ffcc+paper",
    "FFCC, synthetic only, the paper's augmentation": "ffcc+paper:alone",
    "FFCC, real and synthetic, the paper's augmentation": "ffcc+paper",
    "FFCC, synthetic only, without XYZ": "ffcc+paper:without-xyz:alone",
    "FFCC, synthetic only, with XYZ": "ffcc+paper:alone",
}
OF_TABLE = {
    6: {"ten-fold": "ten-fold", "camera-invariance": "camera-invariance"},
    8: {"random-split": "one-camera"},
    9: {"random-split": "four-cameras"},
    10: {"random-split": "one-other-camera"},
}
"""The settings of tables by the protocol of their rows."""


def make_rows() -> list[PaperRow]:
    """Every row of every table that a method of ours can stand beside, table by table."""
    found = []
    for one in read_published():
        for table in map(int, one["tables"].split()):
            setting, method = _find_setting(table, one), _find_method(one["method"], one["protocol"])
            if setting and method:
                found.append(PaperRow(table, one, setting, method, *_find_rolls(one["method"])))
    return sorted(found, key=lambda row: row.table)


def count_published() -> dict[int, int]:
    """How many rows each table has, including methods that are not here."""
    tables = [int(table) for one in read_published() for table in one["tables"].split()]
    return {table: tables.count(table) for table in TABLES}


def _find_setting(table: int, one: dict[str, str]) -> str:
    protocol, tested_on = one["protocol"], one["tested_on"]
    if table in OF_TABLE and protocol in OF_TABLE[table]:
        return OF_TABLE[table][protocol]
    if table == 7:
        return "camera-specific" if protocol == "camera-specific" else "challenge"
    if table == 11:
        return "synthetic-cameras" if protocol == "synthetic-cameras" else "other-cameras"
    if protocol == "leave-one-camera-out":
        return "cross-sensor"
    return PLACES.get(tested_on, "") if protocol in ("any", "leave-one-dataset-out") else ""


def _find_method(published: str, protocol: str) -> str:
    if published in CLASSICAL:
        return CLASSICAL[published] if protocol == "any" else ""
    if published in AUGMENTED:
        return AUGMENTED[published]
    name, *parts = re.sub(r" \(.*", "", published).split(", ")
    if name != "C5":
        return ""
    fields = [f"m={_find_rolls(published)[0]}", *(FIELDS[part] for part in parts if part in FIELDS)]
    specific = not any(part.startswith("m = ") for part in parts)  # camera-specific: a single encoder, no augmentation
    added = "+none" if specific or "no augmentation" in parts else ""
    return f"c5:paper,{','.join(fields)}{added}"


def _find_rolls(published: str) -> tuple[int, Selection]:
    m = re.search(r"\bm = (\d+)", published)
    selection = next((each for each in Selection if each.value in published.split(", ")), Selection.RANDOM)
    return (int(m[1]) if m else 1 if published.startswith("C5") else 9), selection


def select_rows(tables: Sequence[int], patterns: Sequence[str]) -> list[PaperRow]:
    """The rows of some tables, or of all, whose name is one of the patterns, or contains one that is not a name."""
    for table in tables:
        if table not in TABLES:
            raise ParameterError(f"the paper has no table {table}; there are 1 to {max(TABLES)}")
    rows = [row for row in make_rows() if not tables or row.table in tables]
    names = {row.name for row in rows}
    found = [
        row
        for row in rows
        if not patterns or any(row.name == each or (each not in names and each in row.name) for each in patterns)
    ]
    if not found:
        raise ParameterError("no row of the paper's tables has such a name; list them to see their names")
    return found
