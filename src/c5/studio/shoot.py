"""A shoot: its photographs, what C5 found, what the person decided, and the balances that follow.

Every change gets the next number, so that a page can ask for what is newer than the last number it has seen, and a
decision about what another page has changed meanwhile is refused.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from c5.choices import Fallback
from c5.color import Float64s
from c5.errors import C5Error, ParameterError, ReadError
from c5.io.files import printable
from c5.photos.balancing import Balance
from c5.photos.groups import Reference, Sets, balance_sets, measure_reference
from c5.photos.photo import Photo
from c5.photos.shared_lights import from_common, to_common
from c5.photos.summary import describe
from c5.photos.taste import Look, Taste
from c5.studio.decisions import WISHES, Correction, Decisions, Gray, check_event, decide, follow
from c5.studio.journal import Event, Journal

EMBEDDED, LINEAR = "embedded", "linear"
"""Kinds of thumbnails: what the camera put into its file, and what is developed here."""
ABOUT = (
    *("camera", "time", "kelvin", "tint", "kelvin_low", "kelvin_high", "light_kelvin", "light_tint"),
    *("look", "by", "roll", "note"),
)
"""The keys of `describe` that a page receives for every photograph."""


class ConflictError(C5Error):
    """Another page has decided about the same photographs meanwhile."""


class GoneError(C5Error):
    """No such photograph is in the shoot."""


@dataclass(eq=False)
class Entry:
    """A photograph of the shoot."""

    id: str
    path: Path
    name: str
    content: bytes = b""
    """A digest of the file; empty until it is opened."""
    kinds: set[str] = field(default_factory=set)
    """The kinds of thumbnails that exist."""
    own: Balance | None = None
    """What it says about its light by itself."""
    shared: Balance | None = None
    """The same with the light of its group."""
    failure: str = ""
    is_export: bool = False
    """A developed picture, which `c5 balance` skips: it is not shown."""
    changed: int = 0
    """The number of the last change of anything a page shows of it."""
    decided: int = 0
    """The number of the last decision about it."""
    row: tuple[int, dict[str, Any]] = (-1, {})
    """What pages receive about it, as of a number."""


class Shoot:
    """The photographs of a folder and the decisions about them, which are on disk before a call returns."""

    def __init__(self, folder: Path, journal: Journal, taste: Taste) -> None:
        self.folder, self.taste = folder, taste
        self.lock = threading.RLock()
        self.entries: dict[str, Entry] = {}
        self.decisions = decide(journal.events)
        self.number = 0
        self.has_groups = False
        self.notes: dict[str, None] = {}
        self._journal = journal

    def add(self, paths: Iterable[Path]) -> None:
        """Photographs that are there now. Decisions about missing ones stay, and count again when they are back."""
        with self.lock:
            for path in paths:
                name = os.path.relpath(path, self.folder)
                id = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
                if id not in self.entries:
                    self.entries[id] = Entry(id, path, name)
                    self.touch(self.entries[id])

    # What a page receives

    def tell(self, since: int) -> list[dict[str, Any]]:
        """The photographs of which something is newer than a number."""
        return [self._row(entry) for entry in self.entries.values() if entry.changed > since]

    def _row(self, entry: Entry) -> dict[str, Any]:
        if entry.row[0] != entry.changed:
            entry.row = entry.changed, self._describe(entry)
        return entry.row[1]

    def _describe(self, entry: Entry) -> dict[str, Any]:
        if entry.is_export:
            return {"id": entry.id, "gone": True}
        decisions = self.decisions
        row: dict[str, Any] = {
            "id": entry.id,
            "name": entry.name,
            "group": decisions.groups.get(entry.id),
            "agreed": entry.id in decisions.agreed,
            "reference": entry.id in decisions.references,
            "failure": entry.failure,
            "thumbnail": next((kind for kind in (LINEAR, EMBEDDED) if kind in entry.kinds), ""),
        }
        correction = decisions.corrections.get(entry.id, Correction())
        look = correction.look or Look()
        row |= {
            "strength": 1 - look.kept,
            "warmer": look.warmer,
            "shift": look.tint,
            "gray": correction.gray is not None,
        }
        final = self.final(entry)
        if final is None:
            return row | {"version": row["thumbnail"]}
        told = describe(final)
        row |= {key: told[key] for key in ABOUT}
        row |= {"doubt": round(final.uncertainty or 0, 2), "doubtful": final.uncertain}
        row |= {"known": True, "movable": final.photo.matrices is not None}
        seen = hashlib.blake2b(np.round(final.illuminant, 5).tobytes(), digest_size=5).hexdigest()
        return row | {"version": f"{row['thumbnail']}-{seen}"}

    # Decisions

    def act(self, event: Event, seen: int) -> None:
        """Apply a decision by a person who has seen everything up to a number."""
        with self.lock:
            check_event(event, WISHES)
            known = self._complete(event)
            self._check_seen(event, seen)
            if known["do"] not in ("undo", "redo"):
                follow(self.decisions, known)
            self._journal.add(known)
            self._take(decide(self._journal.events))

    def measure(self, id: str, box: Sequence[int]) -> Float64s:
        """The light that a gray patch shows."""
        left, top, width, height = (int(number) for number in box)
        return measure_reference(self.photo(self.find(id)), (left, top, width, height))

    def _find_targets(self, ids: Iterable[str], to: str) -> list[str]:
        """The photographs that a correction goes to: one is these, group all in their groups, rest all untouched."""
        chosen = {self.find(id).id: None for id in ids}
        decisions = self.decisions
        if to == "group":
            groups = {decisions.groups.get(id) for id in chosen} - {None}
            chosen |= {id: None for id in self.entries if decisions.groups.get(id) in groups}
        elif to == "rest":
            touched = {*decisions.corrections} | decisions.agreed
            chosen |= {id: None for id in self.entries if id not in touched}
        elif to != "one":
            raise ParameterError("a correction goes to one, to the group or to the rest")
        return [*chosen]

    def _complete(self, event: Event) -> Event:
        """An event as the journal keeps it: with all photographs it is about, and with the light that was measured."""
        kind = event.get("do")
        if kind in ("group", "rename", "refer", "release", "gray") and not self.has_groups:
            raise ParameterError("the groups are still being found; wait for them")
        if kind in ("adjust", "agree", "reset", "gray", "group"):
            ids = self._find_targets(event["ids"], event.get("to", "one"))
            known = {key: value for key, value in event.items() if key != "to"} | {"ids": ids}
            if kind == "gray":
                known["light"] = self.measure(known["source"], known["box"]).tolist()
            if kind == "group":
                known = {"do": kind, "groups": dict.fromkeys(ids, event["name"])}
            return known
        if kind in ("undo", "redo") and not getattr(self.decisions, f"can_{kind}"):
            raise ParameterError(f"there is nothing to {kind}")
        if kind == "refer":
            return event | {"light": self.measure(event["id"], event["box"]).tolist()}
        if kind == "release":
            self.find(event["id"])
        if kind == "rename" and event.get("group") not in set(self.decisions.groups.values()):
            raise ParameterError("there is no such group; it may have another name by now")
        return event

    def _check_seen(self, event: Event, seen: int) -> None:
        """Refuse a decision about photographs that another page has decided about since this one looked."""
        ids = [*event.get("ids", ()), *([event["id"]] if "id" in event else ())]
        if event["do"] in ("undo", "redo"):
            ids = [*self.entries]
        if event["do"] == "rename":
            ids = [id for id, name in self.decisions.groups.items() if name == event["group"] and id in self.entries]
        if any(self.find(id).decided > seen for id in ids):
            raise ConflictError("another tab has changed this meanwhile; look again, then decide")

    def _take(self, after: Decisions) -> None:
        """Make decisions count, and touch the photographs that they change."""
        before, self.decisions = self.decisions, after
        different = set(before.agreed ^ after.agreed)
        for name in ("corrections", "groups", "references"):
            old, new = getattr(before, name), getattr(after, name)
            different |= {id for id in {*old, *new} if old.get(id) != new.get(id)}
        self.number += 1
        for id in different & self.entries.keys():
            self.entries[id].changed = self.entries[id].decided = self.number
        if before.groups != after.groups or before.references != after.references:
            self.share_lights()

    # Single photographs

    def find(self, id: str) -> Entry:
        entry = self.entries.get(id)
        if entry is None:
            raise GoneError("there is no such photograph in this shoot")
        return entry

    def photo(self, entry: Entry) -> Photo:
        """The photograph of an entry, which may be opened now."""
        if entry.own is None:
            raise ParameterError(entry.failure or "its light is still being found")
        self._check_inside(entry)
        return entry.own.photo

    def _check_inside(self, entry: Entry) -> None:
        """Refuse a file that has become a link since it was listed, or lies below one: it may lead anywhere."""
        if os.path.realpath(entry.path) != os.path.join(os.path.realpath(self.folder), entry.name):
            raise ReadError(f"{entry.name}: has become a link, and is not followed")

    def uncorrected(self, entry: Entry) -> Balance | None:
        """What corrections are relative to: the light with the person's usual look; None until the light is known."""
        with self.lock:
            known, correction = entry.shared or entry.own, self.decisions.corrections.get(entry.id)
            gray = None if correction is None or correction.gray is None else self._carry(correction.gray, entry)
        if known is not None and gray is not None:
            known = replace(known, illuminant=gray, source="reference", uncertainty=None)
        return None if known is None else self.taste.apply(known)

    def final(self, entry: Entry) -> Balance | None:
        """The final balance of a photograph: its light with the person's corrections; None until the light is known."""
        before, correction = self.uncorrected(entry), self.decisions.corrections.get(entry.id)
        if before is None or correction is None or correction.look is None:
            return before
        look = correction.look
        values = {"strength": look.strength, "warmer": look.warmer, "tint": look.tint}
        wanted = Taste(always=values).apply(replace(before, light=None))
        if wanted.light is None:  # without matrices nothing moves
            return before
        looks = ", then ".join(each for each in (before.look, wanted.look) if each)
        return replace(wanted, source="hand", look=looks, light=wanted.light if before.light is None else before.light)

    def _carry(self, gray: Gray, entry: Entry) -> Float64s | None:
        """The light of a gray patch as the camera of a photograph sees it; None if the matrices do not lead there."""
        source, light = self.entries.get(gray.source), np.array(gray.light)
        if source is None or source.own is None or entry.own is None:
            return None
        if source.own.photo.camera == entry.own.photo.camera:
            return light
        try:
            there = to_common(light, source.own.photo.need_matrices())
            return from_common(there, entry.own.photo.need_matrices())
        except ParameterError:
            return None

    def touch(self, entry: Entry) -> None:
        with self.lock:
            self.number += 1
            entry.changed = self.number

    # Groups

    def share_lights(self, follow: Callable[[int, int], object] = lambda done, total: None) -> None:
        """Give every group its light; photographs that are in none yet are grouped first."""
        while True:
            with self.lock:
                decisions = self.decisions
                known = [(entry, entry.own) for entry in self.entries.values() if entry.own is not None]
            # Without the lock: the first time takes many seconds, and pages go on asking.
            sets = self._describe_sets([entry for entry, _ in known], decisions)
            shared, _ = balance_sets([own for _, own in known], sets, Fallback.NONE, self.say, follow)
            with self.lock:
                if (decisions.groups, decisions.references) == (self.decisions.groups, self.decisions.references):
                    self._take_shared([entry for entry, _ in known], shared)
                    return

    def _describe_sets(self, entries: Sequence[Entry], decisions: Decisions) -> Sets:
        places = {entry.id: Path(os.path.abspath(entry.path)) for entry in entries}
        groups = {places[id]: name for id, name in decisions.groups.items() if id in places}
        grays = {id: gray for id, gray in decisions.references.items() if id in places}
        return Sets(groups, tuple(Reference(places[id], gray.box, np.array(gray.light)) for id, gray in grays.items()))

    def _take_shared(self, entries: Sequence[Entry], shared: Sequence[Balance]) -> None:
        for entry, new in zip(entries, shared, strict=True):
            old, entry.shared = entry.shared, new
            if old is None or old.group != new.group or (old.illuminant != new.illuminant).any():
                self.touch(entry)
        self.has_groups = True
        found = {entry.id: new.group for entry, new in zip(entries, shared, strict=True)}
        found = {id: name for id, name in found.items() if id not in self.decisions.groups}
        if found:
            self._journal.add({"do": "found", "groups": found})
            self.decisions = decide(self._journal.events)
            for id in found:
                self.touch(self.entries[id])

    def say(self, note: str) -> None:
        self.notes[printable(note)] = None
