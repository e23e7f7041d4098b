"""Commands that are killed, that run out of disk, that run twice at once; and originals that no option may touch."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from torture import commands
from torture.batch import Outcome, case_rng
from torture.commands import (
    COMMANDS,
    Ended,
    Mishap,
    Reference,
    differences,
    make_reference,
    make_stage,
    run,
    set_up,
    start,
    tree,
    wait,
    words,
)
from torture.originals import check_tree

Rng = np.random.Generator


class FindingError(Exception):
    """What must not happen: `lost`, `traceback`, `hang`."""


class Trial:
    """Cases of one mishap in this process."""

    def __init__(self, name: str, seed: int, folder: Path) -> None:
        self.name, self.seed = name, seed
        self.whole = [b""]  # there is something to do
        commands.load(name)
        self.stage = self.plain = make_stage(folder / "commands")
        self.home = folder / "commands" / name.replace(" ", "-")
        self.home.mkdir(parents=True, exist_ok=True)
        self.place = self.home / "place"
        self.case = MISHAPS[name]

    def fresh(self) -> None:
        set_up(self.stage, self.place)

    def reference(self, command: str) -> Reference:
        self.stage = self._stage_with_catalog() if command == "balance --catalog" else self.plain
        return make_reference(command, self.place, self.fresh)

    def _stage_with_catalog(self) -> Path:
        made = self.home / "stage"
        if not made.exists():
            self.stage = self.plain
            self.fresh()
            run(["catalog", "add", "photographs", "--catalog", "known.db"], self.place)
            shutil.copytree(self.place, made, symlinks=True)
        return made

    def run(self, number: int) -> Outcome:
        rng = case_rng(self.name, self.seed, number)
        try:
            return Outcome(number, "accepted", 0, 0, self.case(self, rng))
        except FindingError as finding:
            result, what = finding.args
            return Outcome(number, result, 0, 0, what)

    def finish(self, command: str, reference: Reference, what: str) -> None:
        """Run a command to its end, and compare that with the end of an undisturbed run."""
        for _ in range(3):
            typed = words(command, self.place)
            ended = run(typed, self.place)
            check(ended, f"{what}, then again")
            if ended.code == reference.code or typed != words(command, self.place):
                break
        compare(self.place, reference, what)


def check(ended: Ended, what: str) -> None:
    if ended.code == -signal.SIGALRM:
        raise FindingError("hang", f"{what}: no end")
    if ended.has_traceback:
        raise FindingError("traceback", f"{what}: {' / '.join(ended.printed.splitlines()[-3:])[-300:]}")
    if ended.left:
        raise FindingError("lost", f"{what}: {len(ended.left)} processes stay behind")


def compare(place: Path, reference: Reference, what: str) -> None:
    found = differences(tree(place), reference.after)
    if found:
        raise FindingError("lost", f"{what}: {'; '.join(found[:4])}{' ...' if len(found) > 4 else ''}")


def check_originals(place: Path, reference: Reference, what: str) -> None:
    """What was there before and is not changed by an undisturbed run must not be changed by a disturbed one."""
    now = tree(place)
    for name, digest in reference.before.items():
        if reference.after.get(name) == digest and now.get(name) != digest:
            raise FindingError("lost", f"{what}: {name} was changed")


def kill(command: str) -> Callable[[Trial, Rng], str]:
    def case(trial: Trial, rng: Rng) -> str:
        reference = trial.reference(command)
        trial.fresh()
        done = []
        for _ in range(1 if rng.random() < 0.7 else 2):
            sign = signal.SIGKILL if rng.random() < 0.6 else signal.SIGINT
            if rng.random() < 0.5:
                mishap = Mishap(sign, seconds=float(rng.uniform(0, reference.seconds)))
                done.append(f"{sign.name} after {mishap.seconds:.2f} s")
            else:
                mishap = Mishap(sign, write=int(rng.integers(1, reference.writes + 1)))
                done.append(f"{sign.name} at write {mishap.write}")
            ended = run(words(command, trial.place), trial.place, mishap)
            what = f"c5 {command}: {', '.join(done)}"
            check(ended, what)
            check_originals(trial.place, reference, what)
        trial.finish(command, reference, what)
        return what

    return case


def fill_disk(trial: Trial, rng: Rng) -> str:
    """No room: a small file system where one can be mounted, else a limit on the size of each file."""
    command = list(COMMANDS)[int(rng.integers(len(COMMANDS)))]
    reference = trial.reference(command)
    trial.fresh()
    total, largest = _sizes(trial, command)
    share = float(rng.uniform(0, 1))
    if rng.random() < 0.5 and can_mount():
        what = f"c5 {command}: a disk with room for {share:.0%}"
        with Mounted(trial.place, share * total) as disk:
            ended = run(words(command, trial.place), trial.place)
            check(ended, what)
            _check_partial(trial.place, reference, what)
            disk.enlarge()
            trial.finish(command, reference, what)
    else:
        limit = int(rng.integers(0, largest + 1))
        what = f"c5 {command}: files of at most {limit} bytes"
        ended = run(words(command, trial.place), trial.place, Mishap(largest_file=limit))
        check(ended, what)
        _check_partial(trial.place, reference, what)
        trial.finish(command, reference, what)
    return what


def _sizes(trial: Trial, command: str) -> tuple[int, int]:
    """How much a command writes in all, and into its largest file."""
    cache = trial.home / f"sizes-{command.replace(' ', '-')}"
    if not cache.exists():
        trial.fresh()
        before = {path: path.stat().st_mtime_ns for path in trial.place.rglob("*") if path.is_file()}
        run(words(command, trial.place), trial.place)
        made = [
            path.stat().st_size
            for path in trial.place.rglob("*")
            if path.is_file() and before.get(path) != path.stat().st_mtime_ns
        ]
        cache.write_text(f"{sum(made)} {max(made, default=0)}")
        trial.fresh()
    total, largest = map(int, cache.read_text().split())
    return total, largest


def _check_partial(place: Path, reference: Reference, what: str) -> None:
    """What is there is whole: no half of a result has the name of a result."""
    check_originals(place, reference, what)
    for name, digest in tree(place).items():
        is_final = not name.endswith((".part", ".db", "log.csv", "checkpoint.pt")) and name in reference.after
        if is_final and digest not in (reference.after[name], reference.before.get(name)):
            raise FindingError("lost", f"{what}: {name} is not whole")


def can_mount() -> bool:
    return os.name == "posix" and os.geteuid() == 0 and shutil.which("mount") is not None


class Mounted:
    """A small file system in the place of a folder, with its content and so much room besides."""

    def __init__(self, place: Path, room: float) -> None:
        self.place, self.content = place, place.with_name("content")
        shutil.rmtree(self.content, ignore_errors=True)
        place.rename(self.content)
        place.mkdir()
        used = sum(-(-path.stat().st_size // 4096) * 4096 + 4096 for path in self.content.rglob("*"))
        self.size = used + int(room) + 8192

    def __enter__(self) -> Mounted:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "c5-torture", self.place], check=True)
        shutil.copytree(self.content, self.place, symlinks=True, dirs_exist_ok=True)
        subprocess.run(["mount", "-o", f"remount,size={self.size}", self.place], check=True)
        return self

    def enlarge(self) -> None:
        subprocess.run(["mount", "-o", "remount,size=256m", self.place], check=True)

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", self.place], check=True)
        shutil.rmtree(self.content, ignore_errors=True)


def two_writers(trial: Trial, rng: Rng) -> str:
    """The same command twice at once, the second a little later."""
    command = list(COMMANDS)[int(rng.integers(len(COMMANDS)))]
    reference = trial.reference(command)
    trial.fresh()
    later = float(rng.uniform(0, 0.5 * reference.seconds))
    what = f"c5 {command} twice, {later:.2f} s apart"
    first = start(words(command, trial.place), trial.place)
    time.sleep(later)
    second = start(words(command, trial.place), trial.place)
    for pid in (first, second):
        check(wait(pid, trial.place), what)
    trial.finish(command, reference, what)
    return what


def any_options(trial: Trial, rng: Rng) -> str:
    """Originals, links and files of others stay as they are, whatever the options."""
    wrong, done = check_tree(trial.place, rng)
    if wrong:
        raise FindingError("lost", f"{done}: {wrong}")
    return done


MISHAPS: dict[str, Callable[[Trial, Rng], str]] = {f"kill {command}": kill(command) for command in COMMANDS}
MISHAPS |= {"disk": fill_disk, "writers": two_writers, "originals": any_options}
