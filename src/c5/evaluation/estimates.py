"""The file of all estimates of an evaluation: one row for each image and draw, as CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from c5.errors import ParameterError
from c5.io.files import write_file

ESTIMATES = (
    *("image", "dataset", "camera", "method", "settings", "m", "selection", "fold", "seed", "draw"),
    *("error_deg", "reproduction_deg", "uncertainty_deg", "r", "g", "b", "true_r", "true_g", "true_b"),
)
"""The columns. Illuminants are unit RGB, `error_deg` is the recovery error; what a method does not give is empty."""

PARQUET = ".parquet"


def check_estimates(path: Path) -> None:
    """Raise an error if a file of this name cannot be written, before hours are spent."""
    if path.suffix == PARQUET and find_spec("pyarrow") is None:
        raise ParameterError(f"{path}: Parquet needs pyarrow: run pip install pyarrow, or write a .csv file")


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
