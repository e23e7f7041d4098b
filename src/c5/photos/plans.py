"""What will be written for photographs, known before it is written, and written only if nothing has changed since."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from c5.errors import C5Error
from c5.io.files import check_folder
from c5.io.versions import Version, file_version
from c5.photos.balancing import Balance
from c5.photos.outputs import Output
from c5.photos.sidecars.marks import CustomBalanceError
from c5.photos.writing import write_output

CHANGED = "another program has changed it meanwhile; look at the plan again"


class Action(Enum):
    """What happens to a file."""

    WRITE = "write"
    """It does not exist yet."""
    CHANGE = "change"
    """It exists, and its other content stays."""
    STAY = "stay"
    """It exists and says the same."""
    CUSTOM = "custom"
    """A person has set its balance: it is left alone."""
    FAIL = "fail"


class Step(NamedTuple):
    """One file of a plan."""

    path: Path
    """The photograph's."""
    output: str
    place: Path
    action: Action
    message: str = ""
    """Why it fails, or is left alone."""
    seen: Version | None = None
    """The file as it was when the plan was made; None if there was none."""
    is_full: bool = False
    """It failed because the disk is full: so will the next."""


def plan_steps(
    balances: Iterable[Balance],
    outputs: Mapping[str, Output],
    places: Mapping[tuple[Path, str], Path],
    *,
    replace_custom: bool = False,
) -> Iterator[Step]:
    """What would be written for photographs, file by file: everything is done except the writing."""
    for balance in balances:
        for name, output in outputs.items():
            place = places.get((balance.path, name))
            if place is not None:
                seen = file_version(place)
                step = Step(balance.path, name, place, Action.CHANGE if seen else Action.WRITE, seen=seen)
                yield _write(step, balance, output, replace_custom=replace_custom, dry_run=True)


def take_step(step: Step, balance: Balance, output: Output, *, replace_custom: bool = False) -> Step:
    """Write a file as planned, unless it has changed since."""
    if step.action not in (Action.WRITE, Action.CHANGE):
        return step
    if file_version(step.place) != step.seen or (step.seen is None and os.path.lexists(step.place)):
        return step._replace(action=Action.FAIL, message=f"{step.place}: {CHANGED}")
    return _write(step, balance, output, replace_custom=replace_custom)


def _write(step: Step, balance: Balance, output: Output, *, replace_custom: bool, dry_run: bool = False) -> Step:
    try:
        check_folder(step.place.parent)
        made = write_output(balance, output, step.place, overwrite=True, replace_custom=replace_custom, dry_run=dry_run)
    except CustomBalanceError as error:
        return step._replace(action=Action.CUSTOM, message=str(error))
    except C5Error as error:
        is_full = isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.ENOSPC, errno.EDQUOT)
        return step._replace(action=Action.FAIL, message=str(error), is_full=is_full)
    return step if made is not None else step._replace(action=Action.STAY)
