"""What a person has asked to write: planned, reviewed, then written or stopped."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from c5.photos.balancing import Balance
from c5.photos.files import Failure
from c5.photos.outputs import Output, find_caveats
from c5.photos.plans import Action, Step, plan_steps, take_step
from c5.studio.work import Work

STEPS_SHOWN = 2000


@dataclass
class Plan:
    """What will be written, and how far that has got."""

    outputs: dict[str, Output]
    replace_custom: bool
    which: str
    """all, or agreed."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    balances: dict[Path, Balance] = field(default_factory=dict)
    """The photographs as they were when the plan was made: they are written as they are shown."""
    steps: list[Step] = field(default_factory=list)
    state: str = "planning"
    """planning, ready, writing, written, or stopped."""
    message: str = ""

    @property
    def due(self) -> list[int]:
        """Which of the steps write something."""
        return [index for index, step in enumerate(self.steps) if step.action in (Action.WRITE, Action.CHANGE)]

    def make(
        self,
        balances: Sequence[Balance],
        places: Mapping[tuple[Path, str], Path],
        refused: Sequence[Failure],
        work: Work,
        is_stopping: Callable[[], bool],
    ) -> None:
        """Find out what would be written for photographs. `refused` are outputs that have no place to go."""
        self.balances = {each.path: each for each in balances}
        unwanted = (each for each in refused if each.path in self.balances)
        steps = [Step(each.path, "", each.path, Action.FAIL, each.message) for each in unwanted]
        for step in plan_steps(balances, self.outputs, places, replace_custom=self.replace_custom):
            steps.append(step)
            work.done += 1
            if is_stopping():
                return
        self.steps, self.state = steps, "ready"

    def carry_out(self, work: Work, is_stopping: Callable[[], bool]) -> None:
        """Write it. If the disk is full, the rest remains to be written."""
        for index in self.due:
            step = self.steps[index]
            output = self.outputs[step.output]
            step = take_step(step, self.balances[step.path], output, replace_custom=self.replace_custom)
            self.steps[index] = step
            if step.is_full:
                self.state = "stopped"
                self.message = f"the disk is full: {work.done} of {work.total} written; make room, then write again"
                return
            work.done += step.action is not Action.FAIL
            if is_stopping():
                return
        self.state = "written"

    def tell(self, shorten: Callable[[object], str]) -> dict[str, Any]:
        """What a page shows of it, the worst first."""
        counts = {action.value: 0 for action in Action}
        for step in self.steps:
            counts[step.action.value] += 1
        order = list(Action)
        shown = sorted(self.steps, key=lambda step: -order.index(step.action))[:STEPS_SHOWN]
        caveats = find_caveats((self.outputs[step.output], step.path) for step in self.steps if step.output)
        return {
            "id": self.id,
            "state": self.state,
            "message": shorten(self.message),
            "counts": counts,
            "note": "; ".join(caveats),
            "steps": [[step.action.value, shorten(step.place), shorten(step.message)] for step in shown],
        }
