"""The long commands on small data, run in forks of this process so that they start at once, and what they leave."""

from __future__ import annotations

import atexit
import csv
import hashlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torture.formats import FOREIGN, PIXELS

LIMIT_SECONDS = 90
"""A command that takes longer on such data hangs."""
WRITES = (
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.truncate",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.utime",
    "shutil.copyfile",
)

RECIPE = """\
recipe = "plain"
epochs = 3
batch_sizes = [4]
shift_bins = 1
crops = 0
[[networks]]
widths = [2, 4]
n_images = 3
[networks.grid]
bins = 16
"""

OUTPUTS = ("--xmp", "--pp3", "--darktable", "--preview")

COMMANDS: dict[str, list[str]] = {
    "balance": ["balance", "photographs", *OUTPUTS],
    "balance --out": [
        "balance",
        "photographs",
        "--dng",
        "--png",
        "--xmp",
        "--sheet",
        "--csv",
        "--json",
        "--out",
        "out",
    ],
    "balance --catalog": ["balance", "photographs", *OUTPUTS, "--overwrite", "--catalog", "known.db"],
    "catalog add": ["catalog", "add", "photographs", "--catalog", "catalog.db"],
    "data pack": ["data", "pack", "data", "--out", "out.c5data"],
    "data prepare": ["data", "prepare", "more", "--out", "out.c5set", "--for", "plain", "--jobs", "2"],
    "evaluate": ["evaluate", "data", "--protocol", "camera-specific", "--method", "classical", "--out", "results"],
    "train": ["train", "data", "--config", "recipe.toml", "--out", "run"],
}
"""Each is run again with the same words, but for training, which is resumed once it has a checkpoint."""


def words(name: str, place: Path) -> list[str]:
    """What to type now."""
    if name == "train" and (place / "run" / "checkpoint.pt").exists():
        return ["train", "--resume", "run"]
    return COMMANDS[name]


class Mishap(NamedTuple):
    """What happens to a command."""

    signal: int = 0
    seconds: float | None = None
    """When the signal comes; or"""
    write: int = 0
    """before which change of the disk, counted from 1."""
    largest_file: int | None = None
    """In bytes: the system refuses to write more to one file."""


NOTHING = Mishap()


class Ended(NamedTuple):
    code: int
    printed: str
    seconds: float
    left: list[int]
    """Processes of it that are still there."""

    @property
    def has_traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.printed


def load(part: str) -> None:
    """Import what the commands of a part do, before any fork. None of it starts a thread."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    names = ["onnxruntime", "imagecodecs", "PIL.Image", "c5.cli.app", "c5.datasets", "c5.photos.picture"]
    if part in ("kill train", "disk", "writers"):
        names += ["torch", "onnx", "c5.training.command"]
    for name in names:
        import_module(name)


def start(arguments: Sequence[str], place: Path, mishap: Mishap = NOTHING) -> int:
    """Run a command in a fork, in a folder, with a home of its own there; its process."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        _become(place, mishap)
        sys.argv = ["c5", *arguments]
        from c5.cli import main

        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
            atexit._run_exitfuncs()
            (_home(place) / "writes").write_text(str(_writes))
        finally:
            os._exit(code)


def _home(place: Path) -> Path:
    return place.with_name(f"{place.name}-home")


def _become(place: Path, mishap: Mishap) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(place)
    home = _home(place)
    for name in list(os.environ):
        if name.startswith("XDG_"):
            del os.environ[name]
    os.environ["HOME"] = str(home)
    printed = os.open(home / f"printed-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="backslashreplace")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")
    if mishap.largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (mishap.largest_file, resource.RLIM_INFINITY))
    _watch_writes(mishap)


_writes = 0
"""How often this process has changed the disk."""


def _watch_writes(mishap: Mishap) -> None:
    """Send the signal to this process before it changes the disk for the n-th time."""

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        global _writes
        writes = event in WRITES
        if event == "open":
            mode, flags = arguments[1], arguments[2]
            writes = any(letter in str(mode or "") for letter in "wax+") or bool(
                isinstance(flags, int) and flags & os.O_WRONLY
            )
        if writes:
            _writes += 1
            if _writes == mishap.write:
                os.kill(os.getpid(), mishap.signal)

    sys.addaudithook(watch)


def wait(pid: int, place: Path, mishap: Mishap = NOTHING) -> Ended:
    """Wait for the end of a command, with what happens to it meanwhile."""
    began = time.monotonic()
    sent = mishap.seconds is None
    code: int | None = None
    while code is None:
        done, status = os.waitpid(pid, os.WNOHANG)
        passed = time.monotonic() - began
        if done:
            code = os.waitstatus_to_exitcode(status)
        elif not sent and passed >= (mishap.seconds or 0):
            os.kill(pid, mishap.signal)
            sent = True
        elif passed > LIMIT_SECONDS:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            code = -signal.SIGALRM
        else:
            time.sleep(0.002 if not sent else 0.01)
    seconds = time.monotonic() - began
    home = _home(place)
    printed = (home / f"printed-{pid}").read_text(errors="replace") if (home / f"printed-{pid}").exists() else ""
    left = _left_of(pid)
    for _ in range(60):  # they notice that they are alone
        if not left:
            break
        time.sleep(0.05)
        left = _left_of(pid)
    for each in left:
        os.kill(each, signal.SIGKILL)
    return Ended(code, printed, seconds, left)


def run(arguments: Sequence[str], place: Path, mishap: Mishap = NOTHING) -> Ended:
    return wait(start(arguments, place, mishap), place, mishap)


def _left_of(session: int) -> list[int]:
    """Processes of a session that have not ended."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(f"/proc/{entry.name}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


# Data and results -----------------------------------------------------------------------------------------------------


def make_stage(folder: Path) -> Path:
    """Photographs with and without sidecars, two small datasets, a recipe and a catalog. Made once."""
    place = folder / "stage"
    if (folder / "staged").exists():
        return place
    from dng_files import camera, numbers

    from c5.demo.raw_files import Layout, encode_dng

    shutil.rmtree(place, ignore_errors=True)
    (place / "photographs" / "second").mkdir(parents=True)
    for i in range(6):
        path = place / "photographs" / ("second" if i > 3 else "") / f"IMG_{i}.dng"
        path.write_bytes(encode_dng(numbers(i, *PIXELS), camera(), Layout()))
    (place / "photographs" / "broken.dng").write_bytes(b"II*\0nothing")
    (place / "photographs" / "IMG_0.xmp").write_bytes(
        FOREIGN["xmp"][0].replace(b'crs:WhiteBalance="Custom"', b'crs:WhiteBalance="As Shot"')
    )
    for name, count in (("data", 10), ("more", 17)):
        (place / name).mkdir()
        rng = np.random.default_rng(count)
        with (place / name / "manifest.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["path", "camera", "r", "g", "b", "dataset", "scene", "fold"])
            for i in range(count):
                np.save(place / name / f"{i}.npy", numbers(i, 24, 32))
                writer.writerow(
                    [f"{i}.npy", f"Camera {i % 2}", *rng.uniform(0.3, 1, 3).round(3), "set", f"s{i}", i // 2 % 3]
                )
    (place / "recipe.toml").write_text(RECIPE)
    for path in place.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    (folder / "staged").touch()
    return place


def set_up(stage: Path, place: Path) -> None:
    """A fresh copy of the stage in a place, and an empty home beside it."""
    home = _home(place)
    for folder in (place, home):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(stage, place, symlinks=True, dirs_exist_ok=True)
    home.mkdir(parents=True)


def tree(place: Path) -> dict[str, str]:
    """Digests of all files below a folder by name: of a catalog, those of its rows."""
    found = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        elif path.name.endswith((".db", ".db-wal", ".db-shm")):
            if path.suffix == ".db":
                found[name] = _digest_catalog(path)
        elif path.name == "checkpoint.pt":  # the same state may be pickled in more than one way; the model tells
            found[name] = "a checkpoint"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _digest_catalog(path: Path) -> str:
    """Of the rows, whatever their order; numbers must have no gap."""
    with closing(sqlite3.connect(path)) as database:
        whole = database.execute("PRAGMA integrity_check").fetchone()[0]
        if not database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            return f"{whole}, but there was no room for its tables"
        rows = database.execute(
            "SELECT path, size, modified, hex(digest), camera, time, vividness, grid, reading, error, facts, "
            "hex(packed) FROM photograph LEFT JOIN details ON photograph = id ORDER BY path"
        ).fetchall()
        numbers = database.execute("SELECT camera, number FROM photograph ORDER BY camera, number").fetchall()
        (lonely,) = database.execute(
            "SELECT COUNT(*) FROM details WHERE photograph NOT IN (SELECT id FROM photograph)"
        ).fetchone()
    return hashlib.sha256(repr((whole, rows, numbers, lonely)).encode()).hexdigest()


def differences(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """Names that are missing, too many, or of another content."""
    listed = [f"missing: {name}" for name in wanted.keys() - found.keys()]
    listed += [f"too many: {name}" for name in found.keys() - wanted.keys()]
    return sorted(listed + [f"another: {name}" for name in wanted.keys() & found.keys() if wanted[name] != found[name]])


class Reference(NamedTuple):
    """What a command does when nothing happens to it."""

    code: int
    seconds: float
    writes: int
    before: dict[str, str]
    after: dict[str, str]


def make_reference(name: str, place: Path, fresh: Callable[[], None]) -> Reference:
    """Run a command twice undisturbed, to the same end."""
    cache = place.with_name(f"reference-{name.replace(' ', '-')}.json")
    if cache.exists():
        return Reference(*json.loads(cache.read_text()))
    fresh()
    before = tree(place)
    first = run(words(name, place), place)
    after = tree(place)
    writes = int((_home(place) / "writes").read_text())
    if first.has_traceback or first.code not in (0, 1):
        raise RuntimeError(f"c5 {name} fails undisturbed: {first.printed[-2000:]}")
    fresh()
    ended = run(words(name, place), place)
    if differences(tree(place), after):
        raise RuntimeError(f"c5 {name} does not come to the same twice: {differences(tree(place), after)[:5]}")
    made = Reference(first.code, ended.seconds, writes, before, after)
    cache.write_text(json.dumps(made))
    return made
