"""All parts in turn, in processes of their own, watched for crashes, hangs and memory."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from torture.batch import Outcome, make_batch
from torture.formats import KINDS
from torture.mishaps import MISHAPS
from torture.report import HANG_SECONDS, MEMORY_LIMIT, Part

START_SECONDS = 300
SILENT_SECONDS = {True: 120, False: 600}
"""For damaged files and for mishaps: without a word for so long, a process hangs, however busy the machine is."""
TURN_CASES, TURN_SECONDS = 1500, 30
"""So long a part goes on before another one has its turn."""
MISHAPS_SHARE = 0.4
"""Of the time."""
KEPT = 2
"""Cases that are kept of each kind of failure."""


class Campaign:
    """Cases of all parts; each goes on where it was when it has its turn again."""

    def __init__(self, seed: int, folder: Path, only: Iterable[str] = ()) -> None:
        self.seed, self.folder, self.findings = seed, folder, folder / "findings"
        self.parts = {name: Part(name) for name in (*KINDS, *MISHAPS) if not only or name in only}
        self.next = dict.fromkeys(self.parts, 0)
        self.waiting = {
            True: [name for name in self.parts if name in KINDS],
            False: [name for name in self.parts if name in MISHAPS],
        }
        self.spent = {True: 1e-9, False: 1e-9}
        self.seen: Counter[str] = Counter()
        self.lock = threading.Lock()

    def run(self, minutes: float, cases: int | None = None, kills: int | None = None, jobs: int = 2) -> list[Part]:
        """Try cases until the time is over, or until there were as many damaged files and kills as are wanted."""
        end = time.monotonic() + 60 * minutes

        def work() -> None:
            while time.monotonic() < end:
                part = self._choose(cases, kills)
                if part is None:
                    return
                began = time.monotonic()
                wanted, done = (cases, KINDS) if part in KINDS else (kills, killing())
                count = TURN_CASES if wanted is None else max(1, min(TURN_CASES, wanted - self.count(done)))
                go_on = self._take_turn(part, count, min(end - began, TURN_SECONDS))
                with self.lock:
                    self.spent[part in KINDS] += time.monotonic() - began
                    if go_on:
                        self.waiting[part in KINDS].append(part)

        with ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(work) for _ in range(jobs)]:
                done.result()
        return list(self.parts.values())

    def count(self, parts: Iterable[str]) -> int:
        return sum(self.parts[name].cases for name in parts if name in self.parts)

    def _choose(self, cases: int | None, kills: int | None) -> str | None:
        """The part whose turn it is."""
        with self.lock:
            wanted = {
                True: bool(self.waiting[True]) and (cases is None or self.count(KINDS) < cases),
                False: bool(self.waiting[False]) and (kills is None or self.count(killing()) < kills),
            }
            if not any(wanted.values()):
                return None
            due = self.spent[False] > MISHAPS_SHARE * sum(self.spent.values())  # for files
            return self.waiting[due if wanted[due] else not due].pop(0)

    def _take_turn(self, part: str, count: int, seconds: float) -> bool:
        """Go on with a part for a while. False if there is nothing to try."""
        first, last, end = self.next[part], self.next[part] + count, time.monotonic() + seconds
        while first < last and time.monotonic() < end:
            before = first
            first, is_something = self._run_batch(part, first, last - first, end - time.monotonic())
            self.next[part] = first
            if not is_something:
                return False
            if first == before:
                break
        return True

    def _run_batch(self, part: str, first: int, count: int, seconds: float) -> tuple[int, bool]:
        """Run one process; the number of the case to go on with, and whether there is something to go on with."""
        place = self.folder / f"turn-{threading.get_ident()}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        arguments = [part, self.seed, first, count, max(1, round(seconds)), self.folder / "whole", place]
        command = [sys.executable, "-m", "torture.batch", *map(str, arguments)]
        with (place / "printed").open("wb") as printed:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=printed, env=environment(self.folder), start_new_session=True
            )
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        assert process.stdout is not None
        threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True).start()
        number = first
        try:
            if self._wait(process.pid, lines, START_SECONDS, START_SECONDS) not in (b'"ready"\n', b'"nothing"\n'):
                raise RuntimeError(f"{part} did not start: {(place / 'printed').read_text(errors='replace')[-2000:]}")
            while True:
                busy = HANG_SECONDS if part in KINDS else 10**6  # commands have a limit of their own
                line = self._wait(process.pid, lines, busy, SILENT_SECONDS[part in KINDS])
                if line is None:
                    self._note(part, Outcome(number, "hang", HANG_SECONDS, 0, ": no end"), place)
                    return number + 1, True
                if not line:
                    break
                self._note(part, Outcome(*json.loads(line)), place)
                number += 1
            code = process.wait()
            if code:
                words = (place / "printed").read_text(errors="replace").strip()[-300:]
                self._note(part, Outcome(number, "crash", 0, 0, f": exit status {code}: {words}"), place)
                return number + 1, True
            return number, number > first
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
            process.stdout.close()

    def _wait(self, pid: int, lines: queue.SimpleQueue[bytes], busy: float, silent: float) -> bytes | None:
        """The next line, b"" at the end; None if the process takes too long over it."""
        began, used = time.monotonic(), _processor_seconds(pid)
        while True:
            try:
                return lines.get(timeout=0.5)
            except queue.Empty:
                if _processor_seconds(pid) - used > busy or time.monotonic() - began > silent:
                    return None

    def _note(self, part: str, outcome: Outcome, place: Path) -> None:
        with self.lock:
            table = self.parts[part]
            if outcome.memory > MEMORY_LIMIT:
                table.add("memory")
            table.add(outcome.result, outcome.seconds, outcome.memory)
            if outcome.seconds > HANG_SECONDS and outcome.result in ("accepted", "refused"):
                table.results[outcome.result] -= 1
                table.add("hang")
                outcome = outcome._replace(result="hang", what=f"{outcome.what}: {outcome.seconds:.0f} s")
            if outcome.memory > MEMORY_LIMIT and outcome.result in ("accepted", "refused"):
                outcome = outcome._replace(result="memory", what=f"{outcome.what}: {outcome.memory / 1e6:.0f} MB")
            if outcome.result in ("accepted", "refused"):
                return
            cause = outcome.what.split(": ")[1] if ": " in outcome.what else ""  # without what the exception says
            failure = f"{part} {outcome.result} {cause if part in KINDS and outcome.result != 'memory' else ''}"
            self.seen[failure] += 1
            if self.seen[failure] > (KEPT if part in KINDS else 20):
                return
            self.findings.mkdir(parents=True, exist_ok=True)
            case = f"{part}/{self.seed}/{outcome.number}"
            line = f"{outcome.result}: {case}: {outcome.what}"
            with (self.findings / "findings.txt").open("a") as log:
                log.write(f"{line}\n    make torture CASE='{case}'\n")
        print(f"! {line}", flush=True)
        if part in KINDS:
            name = KINDS[part].file
            kept = place / f"kept-{outcome.number}"
            with suppress(OSError):
                shutil.copy(kept if kept.exists() else place / name, self.findings / f"{case.replace('/', '-')}-{name}")


def killing() -> list[str]:
    return [name for name in MISHAPS if name.startswith("kill ")]


def environment(folder: Path) -> dict[str, str]:
    """A home of its own, and one thread a process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "C5_CONFIG"))}
    return kept | {
        "HOME": str(folder / "home"),
        "C5_CONFIG": os.devnull,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([str(Path(__file__).parents[1]), *filter(None, sys.path)])),
    }


def _pump(source: Any, lines: queue.SimpleQueue[bytes]) -> None:
    with suppress(ValueError):  # closed
        for line in source:
            lines.put(line)
    lines.put(b"")


def _processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def repeat(case: str, folder: Path) -> None:
    """One case alone, in this process, with what it raises; a damaged file stays in the folder."""
    part, seed, number = case.rsplit("/", 2)
    batch = make_batch(part, int(seed), folder / "whole", folder / "repeated")
    if part in KINDS:
        data, mutation, _ = batch.make(int(number))
        batch.path.write_bytes(data)
        print(f"{batch.path}: {len(data)} bytes by {mutation}", flush=True)
    outcome = batch.run(int(number))
    print(f"{outcome.result}, {outcome.seconds:.2f} s, {outcome.memory / 1e6:.0f} MB: {outcome.what}")
    if part in KINDS and outcome.result == "traceback":
        batch.path.write_bytes(data)
        batch.use(batch.path)
