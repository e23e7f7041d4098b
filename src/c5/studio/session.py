"""A shoot that is open: its photographs, what C5 found, what the person decided, and the work that is under way.

One object, one lock. Threads of the server ask and decide; one thread lists, balances and draws, and another writes.
Every change gets the next number, so that a page can ask for what is newer than the last number it has seen, and a
decision about what another page has changed meanwhile is refused.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from c5.choices import Fallback
from c5.color import Float64s
from c5.colorimetry.adaptation import DAYLIGHT, locate_light
from c5.errors import C5Error, ParameterError, ReadError
from c5.io.files import cache_folder, check_folder, printable
from c5.io.worker import close_workers
from c5.parallel import in_parallel
from c5.photos.balancing import Balance, Settings, balance
from c5.photos.embedded import read_embedded
from c5.photos.explain import draw_explanation
from c5.photos.files import Developed, Failure, digest_file, list_photographs
from c5.photos.groups import Reference, Sets, balance_sets, measure_reference
from c5.photos.lights import from_common, to_common
from c5.photos.outputs import Output
from c5.photos.photo import Photo, Thumbnail
from c5.photos.picture import Pixels, encode_picture
from c5.photos.plane import tabulate_plane
from c5.photos.previews import (
    SIDE,
    Thumbnails,
    encode_thumbnail,
    pack_thumbnail,
    read_preview,
    rebalance,
    turn_thumbnail,
    unpack_thumbnail,
)
from c5.photos.summary import describe
from c5.photos.taste import Look, Taste
from c5.photos.writing import plan_outputs
from c5.studio.decisions import Correction, Decisions, Gray, decide, follow
from c5.studio.journal import Event, Journal, journal_path
from c5.studio.planning import Plan
from c5.studio.work import Work
from c5.words import plural

EMBEDDED, LINEAR = "embedded", "linear"
"""Kinds of thumbnails: what the camera put into its file, and what is developed here."""
KEPT_PREVIEWS = 5
"""Of 17 MB each."""
ABOUT = {"file", "camera", "time", "kelvin", "tint", "light_kelvin", "light_tint", "look", "by", "note"}
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


class Session:
    """An open shoot. `close` ends its work; what was decided is on disk already."""

    def __init__(
        self,
        folder: Path,
        open_settings: Callable[[ExitStack], Settings],
        outputs: Mapping[str, Output],
        out: Path | None = None,
        *,
        taste: Taste | None = None,
        journal: Path | None = None,
        cache: Path | None = None,
    ) -> None:
        self.folder = Path(os.path.abspath(folder))
        self.outputs, self.out = dict(outputs), out
        self.taste = taste or Taste()
        self.start = secrets.token_hex(8)
        """New each time, so that a page sees that the program was started again."""
        self._open_settings = open_settings
        self._journal = Journal(journal or journal_path(self.folder), self.folder)
        self._thumbnails = Thumbnails(cache or cache_folder() / "studio" / "thumbnails.db")
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}
        self._decisions = decide(self._journal.events)
        self._number = 0
        self._work: dict[str, Work] = {}
        self._said: dict[str, None] = {}
        self._problem = ""
        self._stopping = threading.Event()
        self._wanted: OrderedDict[str, None] = OrderedDict()
        self._previews: OrderedDict[str, bytes] = OrderedDict()
        self._planes: dict[str, bytes] = {}
        self._plan: Plan | None = None
        self._is_gone = self._has_groups = False
        self._is_due = self._is_looking = False
        self._listed = threading.Event()
        self._threads: list[threading.Thread] = []
        self.look_again()

    def close(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(10)  # what takes longer is abandoned: it changes nothing that is kept
        self._journal.close()
        self._thumbnails.close()

    # What a page receives

    def tell(self, since: int = 0) -> dict[str, Any]:
        """All that is newer than a number, and what is under way."""
        self._watch_folder()
        with self._lock:
            number = self._number
            rows = [self._row(entry) for entry in self._entries.values() if entry.changed > since]
            decisions = self._decisions
            return {
                "start": self.start,
                "number": number,
                "folder": printable(self.folder.name or self.folder),
                "total": sum(not entry.is_export for entry in self._entries.values()),
                "photos": rows,
                "work": [work.tell() for work in self._work.values()],
                "problems": self._problems(),
                "notes": [*self._said],
                "grouped": self._has_groups,
                "undo": decisions.can_undo,
                "redo": decisions.can_redo,
                "outputs": {name: output.help for name, output in self.outputs.items()},
                "plan": None if self._plan is None else self._plan.tell(self._short),
            }

    def _row(self, entry: Entry) -> dict[str, Any]:
        if entry.row[0] != entry.changed:
            entry.row = entry.changed, self._describe(entry)
        return entry.row[1]

    def _describe(self, entry: Entry) -> dict[str, Any]:
        if entry.is_export:
            return {"id": entry.id, "gone": True}
        decisions = self._decisions
        row: dict[str, Any] = {
            "id": entry.id,
            "name": entry.name,
            "group": decisions.groups.get(entry.id),
            "agreed": entry.id in decisions.agreed,
            "reference": entry.id in decisions.references,
            "failure": entry.failure,
            "thumbnail": LINEAR if LINEAR in entry.kinds else EMBEDDED if EMBEDDED in entry.kinds else "",
        }
        correction = decisions.corrections.get(entry.id, Correction())
        look = correction.look or Look()
        row |= {
            "strength": 1 - look.kept,
            "warmer": look.warmer,
            "shift": look.tint,
            "gray": correction.gray is not None,
        }
        final = self._finish(entry)
        if final is None or entry.own is None:
            return row | {"version": row["thumbnail"]}
        told = describe(final)
        row |= {key: told[key] for key in ABOUT if key != "file"}
        row |= {"doubt": round(final.uncertainty or 0, 2), "doubtful": final.uncertain, "roll": told["roll"]}
        row["kelvin_low"], row["kelvin_high"] = told["kelvin_low"], told["kelvin_high"]
        row |= {"known": True, "movable": final.photo.matrices is not None}
        seen = hashlib.blake2b(np.round(final.illuminant, 5).tobytes(), digest_size=5).hexdigest()
        return row | {"version": f"{row['thumbnail']}-{seen}"}

    def _problems(self) -> list[str]:
        found = [self._problem] if self._problem else []
        if self._is_gone:
            found.append(f"{self.folder}: is gone; connect its disk. What you decided is kept, and work goes on then")
        elif self._listed.is_set() and not self._entries:
            found.append(f"{self.folder}: no photographs in it; open a folder of raw files")
        elif not self._is_gone:
            try:
                check_folder(self.out or self.folder)
            except C5Error as error:
                found.append(f"{error}: look at everything, then write to another folder")
        failed = sum(bool(entry.failure) for entry in self._entries.values())
        if failed:
            found.append(f"{plural(failed, 'photograph')} cannot be read; the others are here")
        return [printable(problem) for problem in found]

    def _watch_folder(self) -> None:
        """See whether the folder is gone, and look again when it is back."""
        is_gone = not self.folder.is_dir()
        was_gone, self._is_gone = self._is_gone, is_gone
        if was_gone and not is_gone:
            self.look_again()

    # Pictures

    def thumbnail(self, id: str, *, before: bool = False) -> bytes | None:
        """A JPEG of a photograph as it will be, or as shot; None if nothing can be shown yet."""
        entry = self._find(id)
        final = self._finish(entry)
        kept = self._thumbnails.find(entry.content, LINEAR) if LINEAR in entry.kinds else None
        if kept is not None:
            small = unpack_thumbnail(kept)
            if final is None:  # gray on average, until its light is known
                return encode_thumbnail(small.develop(small.linear.mean(axis=(0, 1)) + 1e-4, None))
            light = final.photo.as_shot if before else final.illuminant
            matrix = None if light is None else final.photo.srgb_matrix(light)
            return encode_thumbnail(small.develop(light, matrix))
        with self._lock:
            self._wanted[id] = None
            self._wanted.move_to_end(id)
        kept = self._thumbnails.find(entry.content, EMBEDDED) if EMBEDDED in entry.kinds else None
        if kept is None or before or final is None:
            return kept
        return encode_thumbnail(rebalance(_decode(kept), final.photo, final.illuminant))

    def preview(self, id: str) -> bytes:
        """The linear pixels of a photograph, as `Preview.encode` makes them."""
        entry = self._find(id)
        with self._lock:
            if id in self._previews:
                self._previews.move_to_end(id)
                return self._previews[id]
        data = read_preview(self._photo(entry)).encode()
        with self._lock:
            self._previews[id] = data
            while len(self._previews) > KEPT_PREVIEWS:
                self._previews.popitem(last=False)
        return data

    def develop(self, id: str) -> dict[str, Any]:
        """What a page needs to develop the pixels: lights and matrices, and where the light is in the plane."""
        start, final = self._start(self._find(id)), self._finish(self._find(id))
        if start is None or final is None:
            raise ParameterError("its light is still being found")
        photo, light = final.photo, start.illuminant
        place = None
        if photo.matrices is not None:
            try:
                place = locate_light(light, photo.matrices)._asdict()
            except ParameterError:
                place = None
        lights = {"illuminant": final.illuminant, "light": light, "as_shot": photo.as_shot}
        told: dict[str, Any] = {name: None if rgb is None else rgb.tolist() for name, rgb in lights.items()}
        for name, rgb in lights.items():
            matrix = None if rgb is None else photo.srgb_matrix(rgb)
            told[f"{name}_matrix"] = None if matrix is None else matrix.ravel().tolist()
        return told | {"place": place, "camera": photo.camera, "daylight": DAYLIGHT._asdict()}

    def plane(self, id: str) -> bytes:
        """The table of the photograph's camera, with which a page follows its sliders."""
        photo = self._photo(self._find(id))
        key = photo.camera or id
        if key not in self._planes:
            self._planes[key] = tabulate_plane(photo.need_matrices()).encode()
        return self._planes[key]

    def explain(self, id: str) -> bytes:
        """A picture of what the estimate is based on, with the heat map."""
        entry = self._find(id)
        photo = self._photo(entry)
        assert entry.own is not None
        with ExitStack() as stack:
            model = self._open_settings(stack).model
            image = photo.reading.read(photo.path).image
            return encode_picture(draw_explanation(model, image, entry.own.roll, photo.matrices), "why.png")

    # Decisions

    def act(self, event: Event, seen: int) -> None:
        """Apply a decision by a person who has seen everything up to a number."""
        with self._lock:
            try:
                known = self._complete(event)
                self._check_seen(event, seen)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                if isinstance(error, C5Error):
                    raise
                raise ParameterError(f"not a decision: {str(event)[:80]}") from None
            if known["do"] not in ("undo", "redo"):
                follow(self._decisions, known)
            self._journal.add(known)
            self._take(decide(self._journal.events))

    def measure(self, id: str, box: Sequence[int]) -> Float64s:
        """The light that a gray patch shows."""
        left, top, width, height = (int(number) for number in box)
        return measure_reference(self._photo(self._find(id)), (left, top, width, height))

    def targets(self, ids: Iterable[str], to: str) -> list[str]:
        """The photographs that a correction goes to: one is these, group all in their groups, rest all untouched."""
        chosen = {self._find(id).id: None for id in ids}
        decisions = self._decisions
        if to == "group":
            groups = {decisions.groups.get(id) for id in chosen} - {None}
            chosen |= {id: None for id in self._entries if decisions.groups.get(id) in groups}
        elif to == "rest":
            touched = {*decisions.corrections} | decisions.agreed
            chosen |= {id: None for id in self._entries if id not in touched}
        elif to != "one":
            raise ParameterError("a correction goes to one, to the group or to the rest")
        return [*chosen]

    def _complete(self, event: Event) -> Event:
        """An event as the journal keeps it: with all photographs it is about, and with the light that was measured."""
        kind = event.get("do")
        if kind in ("group", "rename", "refer", "release", "gray") and not self._has_groups:
            raise ParameterError("the groups are still being found; wait for them")
        if kind in ("adjust", "agree", "reset", "gray", "group"):
            ids = self.targets(event["ids"], event.get("to", "one"))
            known = {key: value for key, value in event.items() if key != "to"} | {"ids": ids}
            if kind == "gray":
                known["light"] = self.measure(known["source"], known["box"]).tolist()
            if kind == "group":
                known = {"do": kind, "groups": dict.fromkeys(ids, event["name"])}
            return known
        if kind in ("undo", "redo") and not getattr(self._decisions, f"can_{kind}"):
            raise ParameterError(f"there is nothing to {kind}")
        if kind == "refer":
            return event | {"light": self.measure(event["id"], event["box"]).tolist()}
        if kind == "release":
            self._find(event["id"])
        if kind == "rename" and event.get("group") not in set(self._decisions.groups.values()):
            raise ParameterError("there is no such group; it may have another name by now")
        return event

    def _check_seen(self, event: Event, seen: int) -> None:
        """Refuse a decision about photographs that another page has decided about since this one looked."""
        ids = [*event.get("ids", ()), *([event["id"]] if "id" in event else ())]
        if event["do"] in ("undo", "redo"):
            ids = [*self._entries]
        if event["do"] == "rename":
            ids = [id for id, name in self._decisions.groups.items() if name == event["group"] and id in self._entries]
        if any(self._find(id).decided > seen for id in ids):
            raise ConflictError("another tab has changed this meanwhile; look again, then decide")

    def _take(self, after: Decisions) -> None:
        """Make decisions count, and touch the photographs that they change."""
        before, self._decisions = self._decisions, after
        different = set(before.agreed ^ after.agreed)
        for name in ("corrections", "groups", "references"):
            old, new = getattr(before, name), getattr(after, name)
            different |= {id for id in {*old, *new} if old.get(id) != new.get(id)}
        self._number += 1
        if self._plan is not None and self._plan.state in ("planning", "ready"):
            self._plan = None  # it is no longer what would be written
        for id in different & self._entries.keys():
            self._entries[id].changed = self._entries[id].decided = self._number
        if before.groups != after.groups or before.references != after.references:
            self._share_lights()

    # Single photographs

    def _find(self, id: str) -> Entry:
        entry = self._entries.get(id)
        if entry is None:
            raise GoneError("there is no such photograph in this shoot")
        return entry

    def _photo(self, entry: Entry) -> Photo:
        """The photograph of an entry, which may be opened now."""
        if entry.own is None:
            raise ParameterError(entry.failure or "its light is still being found")
        self._check_inside(entry)
        return entry.own.photo

    def _check_inside(self, entry: Entry) -> None:
        """Refuse a file that has become a link since it was listed, or lies below one: it may lead anywhere."""
        if os.path.realpath(entry.path) != os.path.join(os.path.realpath(self.folder), entry.name):
            raise ReadError(f"{entry.name}: is a link by now, and is not followed")

    def _start(self, entry: Entry) -> Balance | None:
        """What corrections are relative to: the light with the person's usual look; None until the light is known."""
        with self._lock:
            known, correction = entry.shared or entry.own, self._decisions.corrections.get(entry.id)
            gray = None if correction is None or correction.gray is None else self._carry(correction.gray, entry)
        if known is not None and gray is not None:
            known = replace(known, illuminant=gray, source="reference", uncertainty=None)
        return None if known is None else self.taste.apply(known)

    def _finish(self, entry: Entry) -> Balance | None:
        """The final balance of a photograph: its light with the person's corrections; None until the light is known."""
        start, correction = self._start(entry), self._decisions.corrections.get(entry.id)
        if start is None or correction is None or correction.look is None:
            return start
        look = correction.look
        values = {"strength": look.strength, "warmer": look.warmer, "tint": look.tint}
        wanted = Taste(always=values).apply(replace(start, light=None))
        if wanted.light is None:  # without matrices nothing moves
            return start
        looks = ", then ".join(each for each in (start.look, wanted.look) if each)
        return replace(wanted, source="hand", look=looks, light=wanted.light if start.light is None else start.light)

    def _carry(self, gray: Gray, entry: Entry) -> Float64s | None:
        """The light of a gray patch as the camera of a photograph sees it; None if the matrices do not lead there."""
        source, light = self._entries.get(gray.source), np.array(gray.light)
        if source is None or source.own is None or entry.own is None:
            return None
        if source.own.photo.camera == entry.own.photo.camera:
            return light
        try:
            there = to_common(light, source.own.photo.need_matrices())
            return from_common(there, entry.own.photo.need_matrices())
        except ParameterError:
            return None

    def _touch(self, entry: Entry) -> None:
        with self._lock:
            self._number += 1
            entry.changed = self._number

    # Work in the background

    def look_again(self) -> None:
        """List the folder and do what is not done yet: at the start, and when something failed or is new."""
        with self._lock:
            self._is_due = True
            if not self._is_looking:
                self._is_looking = True
                self._begin("studio-work", self._prepare)

    def _begin(self, name: str, task: Callable[[], None]) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=task, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    @contextmanager
    def _working(self, what: str, total: int) -> Iterator[Work]:
        work = Work(what, total)
        with self._lock:
            self._work[what] = work
        try:
            yield work
        finally:
            with self._lock:
                del self._work[what]

    def _prepare(self) -> None:
        _give_way()
        try:
            while self._take_due():
                self._look()
        except BaseException:
            self._is_looking = False
            raise

    def _take_due(self) -> bool:
        """Whether to look: the first time, and again if that was asked for meanwhile."""
        with self._lock:
            self._is_looking = self._is_due and not self._stopping.is_set()
            self._is_due = False
            return self._is_looking

    def _look(self) -> None:
        self._problem = ""
        try:
            with ExitStack() as stack:
                self._list()
                settings = self._open_settings(stack)
                self._read_embedded()
                self._find_lights(settings)
                self._draw_thumbnails()
        except C5Error as error:
            self._problem = str(error)
        finally:
            self._listed.set()
            close_workers()

    def _list(self) -> None:
        """List the photographs. Decisions about missing ones stay in the journal and count again when they are back."""
        if not self.folder.is_dir():
            self._is_gone = True
            return
        found = list_photographs([self.folder])
        for failure in found.unreadable:
            self._say(failure.message)
        with self._lock:
            for path in found.paths:
                name = os.path.relpath(path, self.folder)
                id = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
                if id not in self._entries:
                    self._entries[id] = Entry(id, path, name)
                    self._touch(self._entries[id])
        self._listed.set()

    def _read_embedded(self) -> None:
        waiting = [entry for entry in self._entries.values() if not entry.content or entry.failure]
        with self._working("previews", len(waiting)) as work, closing(in_parallel(self._embed, waiting)) as results:
            for entry, _ in results:
                work.done += 1
                self._touch(entry)
                if self._stopping.is_set():
                    return

    def _embed(self, entry: Entry) -> None:
        try:
            entry.content = digest_file(os.fsencode(entry.path))[1]
            entry.kinds = self._thumbnails.kinds(entry.content)
            if not entry.kinds:
                picture = read_embedded(entry.path, SIDE)
                if picture is not None:
                    self._thumbnails.keep(entry.content, EMBEDDED, encode_thumbnail(picture))
                    entry.kinds = {EMBEDDED}
        except (C5Error, OSError) as error:
            entry.failure = Failure.of(Path(entry.name), error).message

    def _find_lights(self, settings: Settings) -> None:
        entries = {entry.path: entry for entry in self._entries.values()}
        wanted = [path for path, entry in entries.items() if entry.own is None and not entry.is_export]
        if not wanted:
            return
        catalog = settings.catalog
        known = 0 if catalog is None else sum(catalog.find_camera_and_time(path) is not None for path in wanted)
        # A file that must be read for its light gives its thumbnail too; one in the catalogue need not be opened.
        settings = replace(settings, thumbnails=known < len(wanted) / 2)
        results = balance([*entries], settings, wanted=wanted)
        with self._working("lights", len(wanted)) as work, closing(results):
            for result in results:
                self._take_light(entries[result.path], result)
                work.done += 1
                if self._stopping.is_set():
                    return
        with self._working("groups", 1) as work:
            self._share_lights(work.follow)

    def _take_light(self, entry: Entry, result: Balance | Failure) -> None:
        if isinstance(result, Developed):
            entry.is_export = True
        elif isinstance(result, Failure):
            entry.failure = printable(result.message.replace(f"{self.folder}{os.sep}", ""))
        else:
            photo, thumbnail = result.photo, result.photo.thumbnail
            if thumbnail is not None and entry.content:
                self._keep(entry, thumbnail, photo.orientation)
            entry.own, entry.failure = replace(result, photo=replace(photo, thumbnail=None)), ""
        self._touch(entry)

    def _share_lights(self, follow: Callable[[int, int], object] = lambda done, total: None) -> None:
        """Give every group its light; photographs that are in none yet are grouped first."""
        while True:
            with self._lock:
                decisions = self._decisions
                known = [(entry, entry.own) for entry in self._entries.values() if entry.own is not None]
            # Without the lock: the first time takes many seconds, and pages go on asking.
            sets = self._describe_sets([entry for entry, _ in known], decisions)
            shared, _ = balance_sets([own for _, own in known], sets, Fallback.NONE, self._say, follow)
            with self._lock:
                if (decisions.groups, decisions.references) == (self._decisions.groups, self._decisions.references):
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
                self._touch(entry)
        self._has_groups = True
        found = {entry.id: new.group for entry, new in zip(entries, shared, strict=True)}
        found = {id: name for id, name in found.items() if id not in self._decisions.groups}
        if found:
            self._journal.add({"do": "found", "groups": found})
            self._decisions = decide(self._journal.events)
            for id in found:
                self._touch(self._entries[id])

    def _say(self, note: str) -> None:
        self._said[printable(note)] = None

    def _draw_thumbnails(self) -> None:
        """Develop a thumbnail of each photograph that has none yet; those in view come first."""
        waiting = {e.id: None for e in self._entries.values() if e.own is not None and LINEAR not in e.kinds}
        results = in_parallel(self._draw, self._by_want(waiting))
        with self._working("thumbnails", len(waiting)) as work, closing(results):
            for entry, _ in results:
                work.done += 1
                self._touch(entry)

    def _by_want(self, waiting: dict[str, None]) -> Iterator[Entry]:
        while waiting and not self._stopping.is_set():
            with self._lock:
                wanted = next((id for id in reversed(self._wanted) if id in waiting), None)
            id = wanted or next(iter(waiting))
            del waiting[id]
            yield self._entries[id]

    def _draw(self, entry: Entry) -> None:
        try:
            photo = self._photo(entry)
            image = photo.reading.read(photo.path).image
            self._keep(entry, Thumbnail.of(image), photo.orientation)
        except C5Error as error:
            entry.failure = Failure.of(Path(entry.name), error).message

    def _keep(self, entry: Entry, thumbnail: Thumbnail, orientation: int) -> None:
        self._thumbnails.keep(entry.content, LINEAR, pack_thumbnail(turn_thumbnail(thumbnail, orientation)))
        entry.kinds = {*entry.kinds, LINEAR}

    # Writing

    def plan(self, names: Sequence[str], which: str = "all", *, replace_custom: bool = False) -> None:
        """Find out what would be written, in the background."""
        with self._lock:
            self._check_idle()
            unknown = {*names} - {*self.outputs}
            if unknown or not names:
                raise ParameterError(f"choose what is written: {', '.join(self.outputs)}")
            if which not in ("all", "agreed"):
                raise ParameterError("all photographs are written, or those that were agreed")
            if not self._has_groups:
                raise ParameterError("the lights are still being found; wait for them")
            outputs = {name: self.outputs[name] for name in names}
            plan = self._plan = Plan(outputs, replace_custom, which)
            self._begin("studio-plan", lambda: self._make_plan(plan))

    def write(self, id: str) -> None:
        """Write what a plan says, in the background."""
        with self._lock:
            self._check_idle()
            plan = self._plan
            if plan is None or plan.id != id or plan.state != "ready":
                raise ConflictError("this is no longer the plan; look at it again")
            plan.state = "writing"
            self._begin("studio-plan", lambda: self._carry_out(plan))

    def _check_idle(self) -> None:
        if self._plan is not None and self._plan.state in ("planning", "writing"):
            raise ConflictError(f"{self._plan.state} is under way; wait for its end")

    def _chosen(self, plan: Plan) -> list[Balance]:
        """The photographs that a plan is about, as they are now."""
        agreed = self._decisions.agreed
        ids = [id for id in self._entries if plan.which == "all" or id in agreed]
        return [final for id in ids if (final := self._finish(self._entries[id])) is not None]

    def _make_plan(self, plan: Plan) -> None:
        balances = self._chosen(plan)
        everything = [entry.path for entry in self._entries.values()]
        with ExitStack() as stack, self._working("planning", len(balances) * len(plan.outputs)) as work:
            try:
                catalog = self._open_settings(stack).catalog
                holds = (lambda place: False) if catalog is None else catalog.holds
                places, refused = plan_outputs(everything, plan.outputs, self.out, self.folder, holds)
                plan.make(balances, places, refused, work, self._stopping.is_set)
            except C5Error as error:
                plan.state, plan.message = "stopped", str(error)

    def _carry_out(self, plan: Plan) -> None:
        with self._working("writing", len(plan.due)) as work:
            plan.carry_out(work, self._stopping.is_set)

    def _short(self, text: object) -> str:
        """Text without the folder, which the person knows."""
        return printable(str(text).replace(f"{self.folder}{os.sep}", ""))


def _give_way() -> None:
    """Let the browser come first. On Linux this affects the calling thread and all that it starts."""
    if hasattr(os, "nice"):
        os.nice(19)


def _decode(jpeg: bytes) -> Pixels:
    import io

    from PIL import Image

    with Image.open(io.BytesIO(jpeg), formats=["JPEG"]) as picture:
        return np.asarray(picture.convert("RGB"))
