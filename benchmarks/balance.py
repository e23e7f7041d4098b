"""Raw files from end to end, against LibRaw's own unpacking and against reading: python benchmarks/balance.py

Every row is a process of its own on all cores, including its start and that of its workers. The processor's time is
that of all of them together, and says more than the clock on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from timing import show

from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import Layout, encode_dng
from c5.io.raw import read_photograph
from c5.parallel import in_parallel

SIZE = (4000, 6000)
SMALL = (200, 300)
"""Size of the files of the second table, whose pixels nobody reads twice."""
RENDERED = 32


class Taken(NamedTuple):
    """What a process took, in seconds."""

    wall: float
    processor: float


def unpack(path: Path) -> None:
    import rawpy

    with rawpy.RawPy() as raw:
        raw.open_file(str(path))
        raw.unpack()


JOBS: dict[str, Callable[[Path], object]] = {"unpack": unpack, "read": read_photograph}


def measure(arguments: Sequence[object], repeats: int = 1) -> Taken:
    """The best of some runs of Python, children included, with modules compiled as in an installation."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs = []
    for _ in range(repeats):
        start = time.perf_counter()
        with open(os.devnull, "wb") as nowhere:
            to_nowhere = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), stream) for stream in (1, 2)]
            command = [sys.executable, *map(str, arguments)]
            child = os.posix_spawn(sys.executable, command, environment, file_actions=to_nowhere)
            _, status, used = os.wait4(child, 0)
        if status:
            raise SystemExit(f"failed: {' '.join(command)}")
        runs.append(Taken(time.perf_counter() - start, used.ru_utime + used.ru_stime))
    return Taken(min(run.wall for run in runs), min(run.processor for run in runs))


def make_files(folder: Path, files: int, size: tuple[int, int]) -> None:
    """DNG files of different scenes, as a roll needs them; beyond `RENDERED` they are nearly copies."""
    rng = np.random.default_rng(1)
    camera = VirtualCamera.random(rng)
    folder.mkdir()
    contents = []
    for photo in render_roll(camera, min(files, RENDERED), rng, (size[0] // 8, size[1] // 8)):
        light = photo.image.rgb.repeat(8, axis=0).repeat(8, axis=1)
        contents.append(encode_dng(camera.expose(light, rng), camera, Layout(lossless_jpeg=True)))
    for index in range(files):
        (folder / f"{index:05d}.dng").write_bytes(contents[index % len(contents)] + index.to_bytes(4, "little"))


def compare(folder: Path, files: int, repeats: int) -> list[list[str]]:
    """All that is done with files, beside LibRaw's unpacking and our reading of the same."""
    photographs, catalog, empty = folder / "photographs", folder / "catalog.db", folder / "empty.db"
    make_files(photographs, files, SIZE)
    out = folder / "out"

    def balance(*options: str, known: bool) -> Taken:
        runs = []
        for _ in range(repeats):
            shutil.rmtree(out, ignore_errors=True)
            place = catalog if known else empty
            runs.append(measure(["-m", "c5.cli", "balance", photographs, *options, "-o", out, "--catalog", place]))
        return Taken(min(run.wall for run in runs), min(run.processor for run in runs))

    for place, files_of in ((catalog, photographs), (empty, folder / "nothing")):
        files_of.mkdir(exist_ok=True)
        measure(["-m", "c5.cli", "catalog", "add", files_of, "--catalog", place])
    sidecars = ("--xmp", "--pp3", "--darktable")
    taken = {
        "LibRaw's own unpacking": measure([__file__, "--job", "unpack", photographs], repeats),
        "reading": measure([__file__, "--job", "read", photographs], repeats),
        f"`c5 balance {' '.join(sidecars)}`, not cataloged": balance(*sidecars, known=False),
        "the same, cataloged": balance(*sidecars, known=True),
        "the same, all written before": measure(
            ["-m", "c5.cli", "balance", photographs, *sidecars, "-o", out, "--catalog", catalog], repeats
        ),
        "`c5 balance --preview`, cataloged": balance("--preview", known=True),
        "`c5 balance --preview`, not cataloged": balance("--preview", known=False),
    }
    floor, reading = taken["LibRaw's own unpacking"], taken["reading"]
    return [
        [
            what,
            *(f"{seconds:.2f}" for seconds in each),
            *(f"{each.processor / other.processor:.2f}" for other in (floor, reading)),
            f"{each.wall / reading.wall:.2f}",
        ]
        for what, each in taken.items()
    ]


def run_again(folder: Path, files: int) -> list[list[str]]:
    """What a second run over cataloged files takes."""
    photographs, catalog = folder / "many", folder / "many.db"
    make_files(photographs, files, SMALL)
    known = ["--catalog", catalog]
    rows = []
    for what, arguments in {
        "c5 catalog add": ["catalog", "add", photographs],
        "c5 balance --csv, one file": ["balance", photographs / "00000.dng", "--csv"],
        "c5 balance --csv": ["balance", photographs, "--csv"],
        "c5 balance --xmp": ["balance", photographs, "--xmp"],
        "c5 balance --xmp, all written before": ["balance", photographs, "--xmp"],
    }.items():
        taken = measure(["-m", "c5.cli", *arguments, *known])
        rate = "" if "one file" in what else f"{files / taken.wall:.0f}"
        rows.append([f"`{what}`", *(f"{seconds:.2f}" for seconds in taken), rate])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=32, help="of 24 megapixels")
    parser.add_argument("--many", type=int, default=2000, help="small ones, for a second run")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        name, folder = options.job
        for _ in in_parallel(JOBS[name], sorted(Path(folder).iterdir())):
            pass
        return
    with tempfile.TemporaryDirectory() as name:
        megapixels = SIZE[0] * SIZE[1] // 1_000_000
        show(
            f"{options.files} DNG files of {megapixels} megapixels, lossless JPEG, {os.cpu_count()} cores",
            ["what", "s", "processor, s", "to unpacking", "to reading", "to reading, by the clock"],
            compare(Path(name), options.files, options.repeats),
        )
        title = f"{options.many} small DNG files: the second run over a catalog"
        show(title, ["what", "s", "processor, s", "files/s"], run_again(Path(name), options.many))


if __name__ == "__main__":
    main()
