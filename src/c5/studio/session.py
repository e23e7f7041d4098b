"""An open shoot: the work that is under way in it, and what its page is told and asks for.

Threads of the server ask and decide; one thread lists, balances and draws, and another writes. Closing a session ends
its work; what was decided is on disk already.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from c5.errors import C5Error, ParameterError
from c5.io.files import cache_folder, check_folder, printable
from c5.io.worker import close_workers
from c5.parallel import in_parallel
from c5.photos.balancing import Balance, Settings, balance
from c5.photos.files import Developed, Failure, list_photographs
from c5.photos.outputs import Output
from c5.photos.taste import Taste
from c5.photos.writing import plan_outputs
from c5.studio.journal import Event, Journal, journal_path
from c5.studio.pictures import Pictures
from c5.studio.planning import Plan
from c5.studio.shoot import ConflictError, Entry, Shoot
from c5.studio.work import Work
from c5.words import plural


class Session:
    """A shoot, its pictures, and the threads that work on both."""

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
        self.start = secrets.token_hex(8)
        """New each time, so that a page sees that the program was started again."""
        self._open_settings = open_settings
        self._journal = Journal(journal or journal_path(self.folder), self.folder)
        self.shoot = Shoot(self.folder, self._journal, taste or Taste())
        self.pictures = Pictures(self.shoot, open_settings, cache or cache_folder() / "studio" / "thumbnails.db")
        self._work: dict[str, Work] = {}
        self._problem = ""
        self._plan: Plan | None = None
        self._stopping = threading.Event()
        self._is_gone = self._is_due = self._is_looking = False
        self._listed = threading.Event()
        self._threads: list[threading.Thread] = []
        self.look_again()

    def close(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(10)  # what takes longer is abandoned: it changes nothing that is kept
        self._journal.close()
        self.pictures.close()

    # What a page receives, and decides

    def tell(self, since: int = 0) -> dict[str, Any]:
        """All that is newer than a number, and what is under way."""
        self._watch_folder()
        with self.shoot.lock:
            decisions = self.shoot.decisions
            return {
                "start": self.start,
                "number": self.shoot.number,
                "folder": printable(self.folder.name or self.folder),
                "total": sum(not entry.is_export for entry in self.shoot.entries.values()),
                "photos": self.shoot.tell(since),
                "work": [work.tell() for work in self._work.values()],
                "problems": self._problems(),
                "notes": [*self.shoot.notes],
                "grouped": self.shoot.has_groups,
                "undo": decisions.can_undo,
                "redo": decisions.can_redo,
                "outputs": {name: output.help for name, output in self.outputs.items()},
                "plan": None if self._plan is None else self._plan.tell(self._short),
            }

    def act(self, event: Event, seen: int) -> None:
        """Apply a decision by a person who has seen everything up to a number."""
        with self.shoot.lock:
            self.shoot.act(event, seen)
            if self._plan is not None and self._plan.state in ("planning", "ready"):
                self._plan = None  # it is no longer what would be written

    def _problems(self) -> list[str]:
        found = [self._problem] if self._problem else []
        if self._is_gone:
            found.append(f"{self.folder}: is gone; connect its disk. What you decided is kept, and work continues then")
        elif self._listed.is_set() and not self.shoot.entries:
            found.append(f"{self.folder}: no photographs in it; open a folder of raw files")
        else:
            try:
                check_folder(self.out or self.folder)
            except C5Error as error:
                found.append(f"{error}: look at everything, then write to another folder")
        failed = sum(bool(entry.failure) for entry in self.shoot.entries.values())
        if failed:
            found.append(f"{plural(failed, 'photograph')} cannot be read; the others are here")
        return [printable(problem) for problem in found]

    def _watch_folder(self) -> None:
        """See whether the folder is gone, and look again when it is back."""
        is_gone = not self.folder.is_dir()
        was_gone, self._is_gone = self._is_gone, is_gone
        if was_gone and not is_gone:
            self.look_again()

    # Work in the background

    def look_again(self) -> None:
        """List the folder and do what is not done yet: at the start, and when something failed or is new."""
        with self.shoot.lock:
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
        with self.shoot.lock:
            self._work[what] = work
        try:
            yield work
        finally:
            with self.shoot.lock:
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
        with self.shoot.lock:
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
        if not self.folder.is_dir():
            self._is_gone = True
            return
        found = list_photographs([self.folder])
        for failure in found.unreadable:
            self.shoot.say(failure.message)
        self.shoot.add(found.paths)
        self._listed.set()

    def _read_embedded(self) -> None:
        waiting = [entry for entry in self.shoot.entries.values() if not entry.content or entry.failure]
        with (
            self._working("previews", len(waiting)) as work,
            closing(in_parallel(self.pictures.embed, waiting)) as results,
        ):
            for entry, _ in results:
                work.done += 1
                self.shoot.touch(entry)
                if self._stopping.is_set():
                    return

    def _find_lights(self, settings: Settings) -> None:
        entries = {entry.path: entry for entry in self.shoot.entries.values()}
        wanted = [path for path, entry in entries.items() if entry.own is None and not entry.is_export]
        if not wanted:
            return
        catalog = settings.catalog
        known = 0 if catalog is None else sum(catalog.find_camera_and_time(path) is not None for path in wanted)
        # A file that must be read for its light gives its thumbnail too; one in the catalog need not be opened.
        settings = replace(settings, thumbnails=known < len(wanted) / 2)
        results = balance([*entries], settings, wanted=wanted)
        with self._working("lights", len(wanted)) as work, closing(results):
            for result in results:
                self._take_light(entries[result.path], result)
                work.done += 1
                if self._stopping.is_set():
                    return
        with self._working("groups", 1) as work:
            self.shoot.share_lights(work.follow)

    def _take_light(self, entry: Entry, result: Balance | Failure) -> None:
        if isinstance(result, Developed):
            entry.is_export = True
        elif isinstance(result, Failure):
            entry.failure = self._short(result.message)
        else:
            photo, thumbnail = result.photo, result.photo.thumbnail
            if thumbnail is not None and entry.content:
                self.pictures.keep(entry, thumbnail, photo.orientation)
            entry.own, entry.failure = replace(result, photo=replace(photo, thumbnail=None)), ""
        self.shoot.touch(entry)

    def _draw_thumbnails(self) -> None:
        """Develop a thumbnail of each photograph that has none yet; those in view come first."""
        waiting = self.pictures.missing()
        due = takewhile(lambda _: not self._stopping.is_set(), self.pictures.wanted_first(waiting))
        results = in_parallel(self.pictures.draw, due)
        with self._working("thumbnails", len(waiting)) as work, closing(results):
            for entry, _ in results:
                work.done += 1
                self.shoot.touch(entry)

    # Writing

    def plan(self, names: Sequence[str], which: str = "all", *, replace_custom: bool = False) -> None:
        """Find out what would be written, in the background."""
        with self.shoot.lock:
            self._check_idle()
            unknown = {*names} - {*self.outputs}
            if unknown or not names:
                raise ParameterError(f"choose what is written: {', '.join(self.outputs)}")
            if which not in ("all", "agreed"):
                raise ParameterError("all photographs are written, or those that were agreed")
            if not self.shoot.has_groups:
                raise ParameterError("the lights are still being found; wait for them")
            outputs = {name: self.outputs[name] for name in names}
            plan = self._plan = Plan(outputs, replace_custom, which)
            self._begin("studio-plan", lambda: self._make_plan(plan))

    def write(self, id: str) -> None:
        """Write what a plan says, in the background."""
        with self.shoot.lock:
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
        agreed = self.shoot.decisions.agreed
        ids = [id for id in self.shoot.entries if plan.which == "all" or id in agreed]
        return [final for id in ids if (final := self.shoot.final(self.shoot.entries[id])) is not None]

    def _make_plan(self, plan: Plan) -> None:
        balances = self._chosen(plan)
        everything = [entry.path for entry in self.shoot.entries.values()]
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
