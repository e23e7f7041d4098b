"""How things are put into words."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """So many of something: 1 photograph, 2 photographs."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
