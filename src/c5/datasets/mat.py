"""MATLAB files, in which some datasets keep their labels."""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c5.color import Float64s
from c5.errors import DataError
from c5.regular import read_regular
from c5.words import first_line


def read_mat(path: Path) -> dict[str, NDArray[Any]]:
    """The variables of a MATLAB file."""
    try:
        scipy_io = import_module("scipy.io")
    except ImportError:
        raise DataError(f"{path}: reading it needs scipy: run pip install 'c5-awb[train]'") from None
    try:
        return dict(scipy_io.loadmat(io.BytesIO(read_regular(path))))
    except Exception as error:  # of many kinds, on damaged files and on those of MATLAB 7.3, which SciPy does not read
        reason = first_line(error)
        raise DataError(f"{path}: not a MATLAB file that can be read ({reason}); download it again") from error


def numbers(variables: dict[str, NDArray[Any]], name: str, columns: int, path: Path) -> Float64s:
    """A variable as numbers, of shape (rows, columns)."""
    try:
        return np.asarray(variables[name], dtype=np.float64).reshape(-1, columns)
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{path}: has no {name} with {columns} numbers per row; download it again") from None


def strings(variables: dict[str, NDArray[Any]], name: str, path: Path) -> list[str]:
    """A cell array of strings."""
    try:
        return [str(np.asarray(cell).reshape(-1)[0]).strip() for cell in np.ravel(variables[name])]
    except (KeyError, IndexError):
        raise DataError(f"{path}: has no list {name}; download it again") from None
