"""JSON of files, checked where it is read, so that the code after it can trust it.

A shape is written like the JSON it describes: `{"name": str, "box": (int, int), "tags?": [str]}`. A key with a question
mark may be missing, `str` stands for any other key, and unknown keys are allowed; a list is of any length, a tuple is a
list of that length. A `float` may be a whole number; `object` is anything.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from types import UnionType
from typing import Any

from c5.errors import ReadError

MOST = 2**62
"""Whole numbers are smaller: anything can compute with them."""

THREE = (float, float, float)
MATRIX = (THREE, THREE, THREE)


@dataclass(frozen=True)
class OrNull:
    """A table or a list that may be null; for a plain type, write `type | None`."""

    shape: Any


def parse_json(text: str | bytes, shape: Any, where: str = "it") -> Any:
    """What JSON says; a ReadError if it is damaged or not of the shape. `where` is what messages call it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReadError(f"{where} is not JSON: {error}") from None
    check_shape(value, shape, where)
    return value


def check_shape(value: Any, shape: Any, where: str = "it") -> None:
    """Raise a ReadError where a value is not of the shape."""
    if isinstance(shape, OrNull):
        if value is not None:
            check_shape(value, shape.shape, where)
    elif isinstance(shape, dict):
        _check_type(value, (dict,), where)
        for key, part in shape.items():
            name = key if key is str else key.removesuffix("?")
            if key is not str and name in value:
                check_shape(value[name], part, f"{where}.{name}")
            elif key is not str and name == key:
                raise ReadError(f"{where} has no {key!r}")
        for key in value.keys() - {key.removesuffix("?") for key in shape if key is not str} if str in shape else ():
            check_shape(value[key], shape[str], f"{where}.{key}")
    elif isinstance(shape, list | tuple):
        _check_type(value, (list,), where)
        if isinstance(shape, tuple) and len(value) != len(shape):
            raise ReadError(f"{where} has {len(value)} parts instead of {len(shape)}")
        for number, part in enumerate(value):
            check_shape(part, shape[number if isinstance(shape, tuple) else 0], where)
    elif shape is not object:
        _check_type(value, shape.__args__ if isinstance(shape, UnionType) else (shape,), where)


def _check_type(value: Any, kinds: tuple[type, ...], where: str) -> None:
    fits = type(value) in kinds or (type(value) is int and float in kinds)
    number = isinstance(value, int | float)
    if not fits or (number and not (math.isfinite(value) if isinstance(value, float) else abs(value) < MOST)):
        raise ReadError(f"{where} cannot be {value!r:.40}")
