"""The file of all estimates of an evaluation: one row for each image and draw, as CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from c5.choices import Selection
from c5.color import Float64s, as_illuminant
from c5.datasets import Sample
from c5.errors import DataError, ParameterError, ReadError
from c5.io.files import read_bytes, write_file

ESTIMATES = (
    *("image", "dataset", "camera", "method", "settings", "m", "selection", "fold", "seed", "draw"),
    *("error_deg", "reproduction_deg", "uncertainty_deg", "r", "g", "b", "true_r", "true_g", "true_b"),
)
"""The columns. Illuminants are unit RGB, `error_deg` is the recovery error; what a method does not give is empty."""

PARQUET = ".parquet"


@dataclass(frozen=True, eq=False)
class Outcome:
    """An image, its true light, and what a method found, the mean over the draws."""

    sample: Sample
    estimate: Float64s
    error: float
    uncertainty: float | None


def check_estimates(path: Path) -> None:
    """Raise an error if a file of this name cannot be written or read, before hours are spent."""
    if path.suffix == PARQUET and find_spec("pyarrow") is None:
        raise ParameterError(f"{path}: Parquet needs pyarrow; run pip install pyarrow, or use a .csv file")


def write_estimates(path: Path, records: Sequence[tuple[Any, ...]]) -> Path:
    """Write records in the order of `ESTIMATES`: as Parquet if the file's name ends in it, else as CSV."""
    if path.suffix == PARQUET:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        columns = zip(*records, strict=True) if records else ([] for _ in ESTIMATES)
        buffer = io.BytesIO()
        parquet.write_table(arrow.table(dict(zip(ESTIMATES, map(list, columns), strict=True))), buffer)
        return write_file(path, buffer.getvalue())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(ESTIMATES)
    writer.writerows(records)
    return write_file(path, text.getvalue().encode())


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file of estimates, CSV or Parquet, as text; what is missing is empty."""
    check_estimates(path)
    content = read_bytes(path)
    if path.suffix == PARQUET:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        try:
            rows = parquet.read_table(io.BytesIO(content)).to_pylist()
        except (OSError, arrow.ArrowException) as error:
            raise ReadError(f"{path}: not a file of estimates ({error}); let an evaluation write one") from error
        return [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
    try:
        return list(csv.DictReader(io.StringIO(content.decode())))
    except (ValueError, csv.Error) as error:
        raise ReadError(f"{path}: not a file of estimates ({error}); let an evaluation write one") from error


def read_estimates(
    path: Path,
    samples: Sequence[Sample],
    method: str | None = None,
    m: int | None = None,
    selection: Selection | None = None,
) -> list[Outcome]:
    """What one method found, with one m and selection, from a file that `c5 evaluate --estimates` has written."""
    known = {sample.name: sample for sample in samples}
    found: dict[str, list[list[float]]] = {}
    rows: set[str] = set()
    try:
        for row in read_rows(path):
            chosen = selection is None or row["selection"] == selection.value
            if chosen and method in (None, row["method"]) and (m is None or row["m"] == str(m)):
                rows.add(", ".join(filter(None, (row["method"], row["m"] and f"m = {row['m']}", row["selection"]))))
                numbers = ("r", "g", "b", "error_deg", "uncertainty_deg")
                found.setdefault(row["image"], []).append([float(row[name] or "nan") for name in numbers])
    except (KeyError, ValueError, TypeError) as error:
        raise ReadError(f"{path}: not a file of estimates ({error}); let an evaluation write one") from error
    if len(rows) != 1:
        held = "; ".join(sorted(rows)) or "none of those"
        raise ParameterError(f"{path}: choose one method, m and selection; it holds {held}")
    tested = []
    for name, draws in found.items():
        if name not in known:
            raise DataError(f"{path}: {name} is not among the images; give the data that were tested")
        *light, degrees, unsure = np.mean(draws, axis=0).tolist()
        tested.append(Outcome(known[name], as_illuminant(light), degrees, None if np.isnan(unsure) else unsure))
    return tested
