"""Originals with links, hard links and twins among and around them, and commands with any options."""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
from pathlib import Path

import numpy as np

from torture.commands import run
from torture.formats import FOREIGN, PIXELS
from torture.mutations import pick

FLAGS = ("--xmp", "--pp3", "--darktable", "--preview", "--png", "--dng", "--sheet", "--csv", "--json", "--smooth")
ENDINGS = (".c5.jpg", ".c5.png", ".pp3", ".xmp")
NAMES = (
    "IMG_1.DNG",
    "img_1.dng",
    "IMG_2.dng",
    "new\nline.dng",
    "\x1b[31mred.dng",
    os.fsdecode(b"\xff\xfe.dng"),
    "IMG_3.tif",
    "a b 'c'.dng",
)
FOLDERS = ("day1", "day2", "out", "again", "day1/../out", "new", "OUT", ".")


def make_tree(place: Path, rng: np.random.Generator) -> None:
    """Photographs in two folders, and other files and links to originals where results would go."""
    from dng_files import camera, numbers

    from c5.demo.raw_files import Layout, encode_dng

    shutil.rmtree(place, ignore_errors=True)
    for folder in ("day1", "day2", "out"):
        (place / folder).mkdir(parents=True)
    originals: list[Path] = []
    for index in range(int(rng.integers(2, 6))):
        path = place / pick(rng, ("day1", "day2")) / pick(rng, NAMES)
        if not path.exists():
            path.write_bytes(encode_dng(numbers(index, *PIXELS), camera(), Layout()))
            path.chmod(pick(rng, (0o644, 0o600, 0o444)))
            originals.append(path)
    os.symlink("day1", place / "again")
    for _ in range(int(rng.integers(0, 8))):
        original, owner = pick(rng, originals), pick(rng, originals)
        folder = pick(rng, (place / "out", owner.parent, place, place / "day1"))
        beside = [*(owner.name + ending for ending in ENDINGS), owner.stem + ".xmp", owner.stem + ".dng", owner.name]
        name = pick(rng, (*beside, "sheet.jpg", "balance.csv", "balance.jsonl", "link.dng"))
        target = folder / name
        if os.path.lexists(target):
            continue
        kind = rng.integers(5)
        if kind == 0:
            os.symlink(os.path.relpath(original, folder), target)
        elif kind == 1:
            os.link(original, target)
        elif kind == 2:
            target.write_bytes(b"of somebody else: %d\n" % rng.integers(10**9))
        elif kind == 3:
            target.write_bytes(FOREIGN["pp3" if name.endswith(".pp3") else "xmp"][0])
        else:
            os.symlink("nowhere", target)


def look(place: Path) -> dict[str, tuple[object, ...]]:
    """All files and links, with what must stay of each: content or target, mode and time."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(place):
        for name in (*files, *folders):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[os.path.relpath(path, place)] = ("link", os.readlink(path))
            elif os.path.isfile(path):
                status = os.stat(path)
                content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
                found[os.path.relpath(path, place)] = (content, status.st_mode, status.st_mtime_ns)
    return found


def random_command(place: Path, rng: np.random.Generator) -> list[str]:
    from c5.cli.balance import balance

    everything = [name for name in look(place) if name.lower().endswith((".dng", ".tif"))]
    inputs = [pick(rng, ("day1", "day2", "again", ".", *everything)) for _ in range(int(rng.integers(1, 3)))]
    if rng.random() < 0.15:
        return ["catalog", "add", *inputs, "--catalog", pick(rng, ("catalog.db", "out/catalog.db"))]
    flags = [flag for flag in FLAGS if rng.random() < 0.35]
    if rng.random() < 0.6 or "--dng" in flags:
        flags += ["--out", pick(rng, FOLDERS)]
    flags += ["--overwrite"] if rng.random() < 0.6 else []
    more = [
        f"--{name.replace('_', '-')}" for name in ("undo", "dry_run") if name in inspect.signature(balance).parameters
    ]
    flags += [pick(rng, more)] if more and rng.random() < 0.2 else []
    return ["balance", *inputs, *flags]


def check_tree(place: Path, rng: np.random.Generator) -> tuple[str, str]:
    """Run one to three commands in a random tree. What is wrong, if something is, and what was done."""
    from torture.mishaps import check

    home = place.with_name(f"{place.name}-home")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    make_tree(place, rng)
    before = look(place)
    done = []
    for _ in range(int(rng.integers(1, 4))):
        words = random_command(place, rng)
        done.append(" ".join(map(ascii, words)))
        check(run(words, place), "; ".join(done))
        after = look(place)
        for name, state in before.items():
            is_sidecar = name.lower().endswith((".xmp", ".pp3")) and state[0] != "link"
            if (is_sidecar and _digest(FOREIGN["xmp"][0]) == state[0]) or _digest(FOREIGN["pp3"][0]) == state[0]:
                continue  # a sidecar that may be added to
            if after.get(name) != state:
                what = "is gone" if name not in after else "was changed"
                return f"{name!a} {what}", "; ".join(done)
    return "", "; ".join(done)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
