"""How things are put into words."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """A number with its noun: 1 photograph, 2 photographs."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_line(error: BaseException) -> str:
    """What the error of another library says, as a part of a message of ours."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
