"""Small text files beside images: numbers, words, illuminants. Errors are one line each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float64s, as_illuminant
from c5.errors import DataError, ParameterError
from c5.regular import read_text


def as_label(rgb: ArrayLike, path: Path) -> Float64s:
    """Numbers from a label file as an illuminant."""
    try:
        return as_illuminant(rgb)
    except ParameterError as error:
        raise DataError(f"{path}: {error}; correct the label or remove the image") from None


def read_numbers(path: Path, count: int | None) -> Float64s:
    """All numbers of a text file; there must be `count` of them."""
    try:
        values = np.array(read_text(path).replace(",", " ").split(), dtype=np.float64)
    except (OSError, ValueError):
        raise DataError(f"{path}: missing or not numbers; complete the folder or remove the image") from None
    if count is not None and values.size != count:
        raise DataError(f"{path}: holds {values.size} numbers instead of {count}")
    return values


def read_word(path: Path, remedy: str) -> str:
    """The one line of a text file."""
    try:
        text = read_text(path).strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        raise DataError(f"{path}: missing or empty; {remedy}")
    return text
