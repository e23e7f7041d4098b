"""A quick look at what a folder holds, however large it is."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

MOST_NAMES = 20_000
MOST_NAMES_IN_A_FOLDER = 4_000
"""How many names are looked at: enough to recognize a layout, too few to take long."""


def glance(folder: Path) -> Iterator[Path]:
    """The files in a folder and below, the nearest first, up to a limit. What cannot be opened is skipped."""
    left = MOST_NAMES
    folders = deque([folder])
    while folders and left > 0:
        try:
            with os.scandir(folders.popleft()) as entries:
                for entry, _ in zip(entries, range(min(left, MOST_NAMES_IN_A_FOLDER)), strict=False):
                    left -= 1
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir():
                        folders.append(Path(entry.path))
                    else:
                        yield Path(entry.path)
        except OSError:
            continue


def files_below(folder: Path, *patterns: str) -> list[Path]:
    """All files below a folder whose names match one of the patterns, in lower or upper case, sorted.

    Hidden files are left out. Links to folders are followed, each folder is entered once.
    """
    found, entered = [], set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in entered:
            folders.clear()
            continue
        entered.add(real)
        for name in names:
            if not name.startswith(".") and any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns):
                found.append(Path(place, name))
    return sorted(found)
