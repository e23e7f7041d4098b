"""What a person has decided about a shoot, as a pure function of the events in its journal.

Photographs are named by their ids here, never by paths. Events are dictionaries, so that they can be kept as JSON:

| do | with | means |
|---|---|---|
| found | groups | the groups that C5 found; cannot be undone |
| group | groups | photographs by id, each with the name of its new group |
| rename | group, name | a new name for a group; another group's name joins the two |
| adjust | ids, strength, warmer, tint | a look of their own |
| gray | ids, source, box, light | a gray patch of one photograph gives the light of some |
| refer | id, box, light | a gray patch of a photograph gives the light of its group |
| release | id | it is no longer a reference |
| reset | ids | removes corrections |
| agree | ids, agreed | a person has looked, and it is right, or not yet |
| undo, redo | | undoes the last event, or does it again |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from c5.errors import ParameterError, ReadError
from c5.io.shapes import THREE, check_shape
from c5.photos.groups import Box
from c5.photos.taste import Look

LONGEST_NAME = 80

_GRAY = {"box": (float,) * 4, "light": THREE}
SHAPES: dict[str, dict[str, Any]] = {
    "found": {"groups": {str: str | None}},
    "group": {"groups": {str: str}},
    "rename": {"group": str, "name": str},
    "adjust": {"ids": [str], "strength": float, "warmer": float, "tint": float},
    "gray": {"ids": [str], "source": str, **_GRAY},
    "refer": {"id": str, **_GRAY},
    "release": {"id": str},
    "reset": {"ids": [str]},
    "agree": {"ids": [str], "agreed": bool},
    "undo": {},
    "redo": {},
}
"""What events have with them, as the journal keeps them."""
WISHES = {kind: {key: part for key, part in shape.items() if key != "light"} for kind, shape in SHAPES.items()}
WISHES |= {"group": {"ids": [str], "name": str}}
del WISHES["found"]
"""What a page asks for: lights are measured, and groups found, by C5."""


@dataclass(frozen=True)
class Gray:
    """A gray patch of a photograph."""

    source: str
    box: Box
    light: tuple[float, float, float]
    """What the camera of that photograph saw of it."""


@dataclass(frozen=True)
class Correction:
    """What a person wants of one photograph. Its parts are independent."""

    look: Look | None = None
    gray: Gray | None = None


@dataclass(frozen=True)
class Decisions:
    """All decisions, after some events."""

    groups: Mapping[str, str] = field(default_factory=dict)
    corrections: Mapping[str, Correction] = field(default_factory=dict)
    references: Mapping[str, Gray] = field(default_factory=dict)
    agreed: frozenset[str] = frozenset()
    can_undo: str = ""
    """What the event that would be undone did; empty if there is none."""
    can_redo: str = ""


def decide(events: Iterable[Mapping[str, Any]]) -> Decisions:
    """The decisions after some events."""
    done: list[Mapping[str, Any]] = []
    undone: list[Mapping[str, Any]] = []
    found: dict[str, str] = {}
    for event in events:
        if event["do"] == "found":
            found |= event["groups"]
        elif event["do"] == "undo":
            undone += [done.pop()] if done else []
        elif event["do"] == "redo":
            done += [undone.pop()] if undone else []
        else:
            done, undone = [*done, event], []
    decisions = Decisions(found)
    for event in done:
        decisions = follow(decisions, event)
    return replace(decisions, can_undo=_describe(done), can_redo=_describe(undone))


def follow(before: Decisions, event: Mapping[str, Any]) -> Decisions:
    """The decisions after one more event."""
    return _EVENTS[event["do"]][0](before, event)


def check_event(event: Mapping[str, Any], shapes: Mapping[str, Any]) -> None:
    """Raise a ParameterError for an event that is none of these."""
    kind = event.get("do")
    if not isinstance(kind, str) or kind not in shapes:
        raise ParameterError(f"not a decision: {str(event)[:80]}")
    try:
        check_shape(event, shapes[kind], kind)
    except ReadError as error:
        raise ParameterError(f"not a decision: {error}") from None


def _group(before: Decisions, event: Mapping[str, Any]) -> Decisions:
    groups = {str(each): check_name(name) for each, name in event["groups"].items()}
    return replace(before, groups={**before.groups, **groups})


def _rename(before: Decisions, event: Mapping[str, Any]) -> Decisions:
    name = check_name(event["name"])
    moved = {each: name if group == event["group"] else group for each, group in before.groups.items()}
    return replace(before, groups=moved)


def _adjust(before: Decisions, event: Mapping[str, Any]) -> Decisions:
    look = Look(float(event["strength"]), False, float(event["warmer"]), float(event["tint"]))
    return _correct(before, event["ids"], look=look if look else None)


def _gray(before: Decisions, event: Mapping[str, Any]) -> Decisions:
    return _correct(before, event["ids"], gray=_read_gray(event, event["source"]))


def _correct(before: Decisions, ids: Sequence[str], **parts: Any) -> Decisions:
    corrections = dict(before.corrections)
    for each in ids:
        corrections[each] = replace(corrections.get(each, Correction()), **parts)
    kept = {each: one for each, one in corrections.items() if one != Correction()}
    return replace(before, corrections=kept, agreed=before.agreed | {*ids})


def _refer(before: Decisions, event: Mapping[str, Any]) -> Decisions:
    return replace(before, references={**before.references, event["id"]: _read_gray(event, event["id"])})


def _release(before: Decisions, event: Mapping[str, Any]) -> Decisions:
    return replace(before, references={k: gray for k, gray in before.references.items() if k != event["id"]})


def _reset(before: Decisions, event: Mapping[str, Any]) -> Decisions:
    ids = {*event["ids"]}
    kept = {each: one for each, one in before.corrections.items() if each not in ids}
    return replace(before, corrections=kept, agreed=before.agreed - ids)


def _agree(before: Decisions, event: Mapping[str, Any]) -> Decisions:
    ids = {*event["ids"]}
    return replace(before, agreed=before.agreed | ids if event["agreed"] else before.agreed - ids)


def _read_gray(event: Mapping[str, Any], source: str) -> Gray:
    left, top, width, height = (int(number) for number in event["box"])
    red, green, blue = (float(number) for number in event["light"])
    return Gray(source, (left, top, width, height), (red, green, blue))


def check_name(name: object) -> str:
    """The name of a group, without what a table of groups could not hold."""
    text = " ".join(str(name).split())
    if not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise ParameterError(f"a group needs a name of 1 to {LONGEST_NAME} letters")
    return text


_EVENTS: dict[str, tuple[Callable[[Decisions, Mapping[str, Any]], Decisions], str]] = {
    "group": (_group, "moving to another group"),
    "rename": (_rename, "naming a group"),
    "adjust": (_adjust, "a correction"),
    "gray": (_gray, "a gray patch"),
    "refer": (_refer, "a reference"),
    "release": (_release, "releasing a reference"),
    "reset": (_reset, "a reset"),
    "agree": (_agree, "agreeing"),
}
"""What each event does, and in words what undoing it would undo."""


def _describe(events: Sequence[Mapping[str, Any]]) -> str:
    return _EVENTS[events[-1]["do"]][1] if events else ""
