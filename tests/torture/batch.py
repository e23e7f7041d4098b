"""A process that tries damaged files of one kind, one after the other, and says of each what became of it.

It may crash, hang or grow: whoever started it knows which case it was at, and starts another behind that one.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import sys
import time
import traceback
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from c5.errors import C5Error
from torture.formats import KINDS, damage
from torture.report import HANG_SECONDS, MEMORY_LIMIT

ADDRESS_SPACE = 5 * 2**30
"""What a case may map beyond what the process has when it starts: a runaway must not take the machine with it."""
MUCH = 300_000_000


class Outcome(NamedTuple):
    number: int
    result: str
    """accepted, refused, changed, traceback; and crash or hang, which the parent says."""
    seconds: float
    """Of the processor's time."""
    memory: int
    """Bytes, of this process and those that it started, at most."""
    what: str = ""
    """The mutation, and what was raised where."""


def case_rng(kind: str, seed: int, number: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), number])


def make_whole(kind: str, folder: Path) -> list[bytes]:
    """Whole files of a kind; made in a folder, once."""
    place = folder / kind
    if not (place / "made").exists():
        place.mkdir(parents=True, exist_ok=True)
        for index, data in enumerate(KINDS[kind].make(place)):
            (place / f"whole-{index}").write_bytes(data)
        (place / "made").touch()
    paths = sorted(place.glob("whole-*"), key=lambda path: int(path.name.partition("-")[2]))
    return [path.read_bytes() for path in paths]


class Batch:
    """Cases of one kind in this process."""

    def __init__(self, kind: str, seed: int, folder: Path, place: Path) -> None:
        """`folder` is shared with other batches, `place` is this one's own."""
        self.name, self.kind, self.seed = kind, KINDS[kind], seed
        self.whole = make_whole(kind, folder)
        self.use = self.kind.start(folder / kind)
        place.mkdir(parents=True, exist_ok=True)
        self.path = place / self.kind.file
        self.known: set[bytes] = set()
        self.memory = _peaks()
        if self.kind.sealed:
            for data in self.whole:
                self.path.write_bytes(data)
                self.known.add(self.use(self.path))

    def make(self, number: int) -> tuple[bytes, str, bool]:
        return damage(self.kind, self.whole, case_rng(self.name, self.seed, number))

    def run(self, number: int) -> Outcome:
        return self.attempt(number, *self.make(number))

    def attempt(self, number: int, data: bytes, mutation: str, is_blind: bool) -> Outcome:
        """What becomes of a damaged file."""
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(data)
        _reset_peaks()
        started = _processor_seconds()
        try:
            meaning = self.use(self.path)
            result, what = "accepted", ""
            if is_blind and self.known and meaning not in self.known:
                result, what = "changed", "accepted with another meaning"
        except C5Error:
            result, what = "refused", ""
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            result, what = "traceback", _place(error)
        seconds, memory = max(_processor_seconds() - started, 0.0), _peaks()
        if result not in ("accepted", "refused") or memory > MEMORY_LIMIT or seconds > HANG_SECONDS:
            self.path.with_name(f"kept-{number}").write_bytes(data)
        if memory > self.memory + MUCH:
            gc.collect()  # what is left of this case must not count for the next
            ctypes.CDLL(None).malloc_trim(0)
        return Outcome(number, result, seconds, memory, f"{mutation}: {what}" if what else mutation)


def _place(error: BaseException) -> str:
    """An exception, and the innermost line of the package that it went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if f"{os.sep}c5{os.sep}" in frame.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} {frames[-1].name}" if frames else "?"
    text = (str(error).splitlines() or [""])[0][:120]
    return f"{type(error).__name__} in {where}: {text}"


def _processes() -> list[int]:
    """This process and its children."""
    found = [os.getpid()]
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            found += [int(pid) for pid in task.read_text().split()]
        except OSError:
            continue
    return found


def _processor_seconds() -> float:
    """What this process and its children have used: on a busy machine, time alone says little."""
    total = 0.0
    for pid in _processes():
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _reset_peaks() -> None:
    for pid in _processes():
        try:
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        except OSError:
            continue


def _peaks() -> int:
    """The most memory that this process and its children have had since it was reset, in bytes."""
    total = 0
    for pid in _processes():
        try:
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            continue
    return total


def make_batch(part: str, seed: int, folder: Path, place: Path) -> Any:
    """Cases of a part: something with `whole`, which is empty if there is nothing to try, and `run(number)`."""
    from torture.mishaps import Trial

    return Batch(part, seed, folder, place) if part in KINDS else Trial(part, seed, folder)


def main(arguments: list[str]) -> None:
    """`KIND SEED FIRST COUNT SECONDS FOLDER PLACE`: a line of JSON for each case on standard output."""
    kind, (seed, first, count, seconds), (folder, place) = (
        arguments[0],
        map(int, arguments[1:5]),
        map(Path, arguments[5:]),
    )
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no result
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def say(value: Any) -> None:
        output.write(json.dumps(value) + "\n")
        output.flush()

    batch = make_batch(kind, seed, folder, place)
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    if kind in KINDS:
        resource.setrlimit(resource.RLIMIT_AS, (mapped + ADDRESS_SPACE, resource.RLIM_INFINITY))
    say("ready" if batch.whole else "nothing")
    end = time.monotonic() + seconds
    for number in range(first, first + count if batch.whole else first):
        say(batch.run(number))
        if time.monotonic() > end:
            break


if __name__ == "__main__":
    main(sys.argv[1:])
