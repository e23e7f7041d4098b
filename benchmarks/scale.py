"""How `c5 archive` scales: what a file costs, what workers and a cluster bring, and millions of made-up rows.

python benchmarks/scale.py costs                       what each stage takes of a core, and keeps in bytes
python benchmarks/scale.py files --count 20000         one process, two, and a Ray cluster of two nodes of one core
python benchmarks/scale.py rows --draw 10000000 --estimate 1000000
python benchmarks/scale.py sets --count 200000          what training reads from a mapped prepared set
"""

from __future__ import annotations

import argparse
import math
import mmap
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from timing import show

from c5.archive import archiving as running
from c5.archive import stages
from c5.archive.places import Folder
from c5.archive.shards import MOST, Spool, cut, encode_table
from c5.archive.stages import COUNTED, ESTIMATED, PARTS, Job
from c5.datasets import growing
from c5.datasets.palettes import join, make_palettes
from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import Layout, encode_dng
from c5.histograms import histogram
from c5.image import LinearImage
from c5.io.raw import Photograph
from c5.io.worker import close_workers
from c5.model import load_model
from c5.model_file import encode_model
from c5.parallel import processes
from c5.photos.catalog.entries import describe
from c5.photos.photo import Photo

CAMERAS, SCENES = 8, 12
SIZE = (64, 96)
SETTLING_SECONDS = 20  # a cluster that has just started is busy with its own services


def render(folder: Path, count: int) -> None:
    """Small DNGs, all different: a few scenes of a few cameras, each exposed anew many times."""
    rng = np.random.default_rng(20)
    cameras = [VirtualCamera.random(rng) for _ in range(CAMERAS)]
    rolls = [render_roll(camera, SCENES, rng, SIZE) for camera in cameras]
    for number in range(count):
        path = folder / f"{number // 500:03d}" / f"{number:06d}.dng"
        if path.exists():
            continue
        camera, photo = cameras[number % CAMERAS], rolls[number % CAMERAS][number // CAMERAS % SCENES]
        light = np.maximum(photo.raw.astype(np.float32) - camera.black_level, 0)
        raw = light * rng.uniform(0.5, 1, 3) + rng.normal(0, 4, photo.raw.shape) + camera.black_level
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_dng(raw.clip(0, camera.white_level).astype(np.uint16), camera, Layout()))


@contextmanager
def timed(into: dict[str, tuple[float, float]], name: str) -> Iterator[None]:
    """Seconds on the clock, and seconds of all cores together, for this process and those that end meanwhile."""
    before, began = spent(), time.perf_counter()
    yield
    into[name] = (time.perf_counter() - began, spent() - before)


def spent() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure_files(folder: Path, count: int) -> None:
    """The better of two turns each: the speed of a machine in a cloud changes by a tenth from minute to minute."""
    source = folder / f"dng-{count}"
    render(source, count)
    times: dict[str, float] = {}
    with ray_cluster() as address:
        ways = {
            "one process": ("--jobs", "1"),
            "two processes": ("--jobs", "2"),
            "Ray, two nodes of one core": ("--ray", address),
        }
        for name, options in [*ways.items()] * 2:
            began = time.perf_counter()
            archive(source, folder / f"out {name}", *options)
            times[name] = min(times.get(name, math.inf), time.perf_counter() - began)
    parts = [sorted(folder.glob(f"out {name}/part-*")) for name in ways]
    assert [path.read_bytes() for path in parts[0]] == [path.read_bytes() for path in parts[1]]
    assert [path.read_bytes() for path in parts[0]] == [path.read_bytes() for path in parts[2]]
    one, two = times["one process"], times["two processes"]
    rows = [
        [name, f"{seconds:.0f}", f"{count / seconds:.0f}", f"{one / seconds:.2f}", f"{seconds / two:.2f}"]
        for name, seconds in times.items()
    ]
    headings = ["workers", "seconds", "files a second", "times one process", "time of two processes"]
    show(f"{count} DNGs of {SIZE[1]} x {SIZE[0]} pixels; the same bytes from all three", headings, rows)
    sizes = [
        ["read: the file", f"{sum(path.stat().st_size for path in source.rglob('*.dng')) / count:.0f}"],
        ["kept: histograms and facts", f"{size(folder / 'out one process/_work/counted') / count:.0f}"],
        ["kept: estimated rows", f"{size(folder / 'out one process/_work/estimated') / count:.0f}"],
        ["the result", f"{sum(path.stat().st_size for path in parts[0]) / count:.0f}"],
    ]
    show("Bytes a file", ["what", "bytes"], sizes)
    for name in ways:
        shutil.rmtree(folder / f"out {name}", ignore_errors=True)


def measure_costs(folder: Path, count: int = 240) -> None:
    """Seconds of a core for each stage, LibRaw's process included, and bytes, over a few hundred small files."""
    source, model = folder / "dng", load_model()
    render(source, count)
    place = Folder(str(folder / "out"))
    job = Job(str(source), place.address, f"_work/model-{model.identity}.c5")
    place.write(job.model, encode_model(model.file))
    shards = list(cut(Folder(str(source)).entries(), ""))
    stages.count(job, shards[0])  # loads all that has to be loaded
    spent: dict[str, float] = {}
    with core_seconds(spent, "read and count"):
        files = [stages.count(job, shard) for shard in shards]
    with core_seconds(spent, "draw"):
        drawn = stages.draw(job, files)
    profiles = {camera: f"{number}.c5p" for number, camera in enumerate(drawn.candidates)}
    for camera, name in profiles.items():
        stages.calibrate(job, (camera, drawn.candidates[camera], name))
    own = [{camera: profiles[camera] for camera in cameras} for cameras in drawn.cameras]
    with core_seconds(spent, "estimate"):
        estimated = [
            stages.estimate(job, (file, known, f"{number:032d}"))
            for number, (file, known) in enumerate(zip(files, own, strict=True))
        ]
    with core_seconds(spent, "gather"):
        stages.gather(job, (estimated, "part.parquet"))
    kept = {"read and count": COUNTED, "estimate": ESTIMATED, "gather": PARTS}
    rows = []
    for name, seconds in spent.items():
        stored = f"{size(Path(place.address, kept[name])) / count:.0f}" if name in kept else ""
        rows.append([name, f"{1e3 * seconds / count:.2f}", stored])
    show(f"A file of {SIZE[1]} x {SIZE[0]} pixels", ["stage", "ms of a core", "bytes written"], rows)


@contextmanager
def core_seconds(into: dict[str, float], name: str) -> Iterator[None]:
    times: dict[str, tuple[float, float]] = {}
    close_workers()  # whose time counts once they have ended
    with timed(times, name):
        yield
        close_workers()
    into[name] = times[name][1]


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def archive(source: Path, out: Path, *options: str) -> None:
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "c5.cli", "archive", source, "-o", out, *options], check=True)


@contextmanager
def ray_cluster() -> Iterator[str]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from clusters import Cluster

    cluster = Cluster()
    try:
        cluster.add_node()
        time.sleep(SETTLING_SECONDS)
        yield cluster.address
    finally:
        cluster.close()


def measure_rows(folder: Path, drawn: int, estimated: int) -> None:
    """Stage two over `drawn` rows, and stage three over `estimated` of them, with made-up histograms."""
    place = Folder(str(folder / "rows"))
    model = load_model()
    job = Job(str(folder), place.address, f"_work/model-{model.identity}.c5")
    place.write(job.model, encode_model(model.file))
    counted = Path(place.address, COUNTED)
    counted.mkdir(parents=True)
    photos, shards = make_up_photos(), -(-drawn // MOST)
    sizes = [min(MOST, drawn - MOST * number) for number in range(shards)]
    files: list[str] = []
    times: dict[str, tuple[float, float]] = {}
    tell = Teller()
    with timed(times, f"made up: {drawn} rows"), processes(2) as spread:
        for _, name in spread(partial(make_up, counted, photos), enumerate(sizes)):
            files.append(name)
            tell("making up shards", len(files), shards)
    with timed(times, f"two: {drawn} rows"), processes(2) as spread:
        run = running._Run(job, place, spread, tell, {})
        cameras, rolls = run._draw(files)
        profiles = run._calibrate(rolls, model)
    spool = Spool([])
    spool.sizes = sizes[: -(-estimated // MOST)]
    wanted = len(spool.sizes)
    with timed(times, f"three: {spool.files} rows"), processes(2) as spread:
        run = running._Run(job, place, spread, tell, {})
        run._estimate(spool, files[:wanted], cameras[:wanted], profiles, model)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    rows = [[name, f"{seconds / 60:.1f}", f"{cores / 60:.1f}"] for name, (seconds, cores) in times.items()]
    show(f"Two processes, {len(profiles)} cameras", ["stage", "minutes", "minutes of a core"], rows)
    print(f"\nmemory at most: {own / 1e6:.2f} GB, and {child / 1e6:.2f} GB for each of two workers")
    shutil.rmtree(place.address)


class Teller:
    """Prints what is done and how long the rest will take, now and then."""

    def __init__(self) -> None:
        self._what, self._began, self._said = "", 0.0, 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._said = what, now, now
        if done and now >= self._said + 30:
            left = (now - self._began) / done * (total - done)
            print(f"{what}: {done} of {total}, {left / 60:.1f} minutes left", file=sys.stderr, flush=True)
            self._said = now


def make_up_photos() -> list[tuple[str, bytes]]:
    """Facts and packed histograms of a few photographs."""
    rng, grid = np.random.default_rng(1), load_model().grid
    photos = []
    for photo in render_roll(VirtualCamera.random(rng), SCENES, rng, SIZE):
        image = LinearImage(photo.image.rgb)
        photos.append((describe(Photo.of(Path("x"), Photograph(image, SIZE))), histogram(image, grid).pack()))
    return photos


def make_up(folder: Path, photos: list[tuple[str, bytes]], task: tuple[int, int]) -> str:
    """A counted shard of photographs that nobody took, of a few hundred cameras; some have many, most have few."""
    number, count = task
    rng = np.random.default_rng(number)
    facts, packed = photos[number % SCENES]
    shares = 1 / np.arange(1, 301)
    owners = rng.choice(300, count, p=shares / shares.sum())
    digests = rng.bytes(16 * count)
    columns: dict[str, tuple[str, list[Any]]] = {
        "path": ("string", [f"{number // 1500}/{MOST * number + row}.dng" for row in range(count)]),
        "camera": ("string", [f"Camera {owner}" for owner in owners]),
        "digest": ("binary", [digests[16 * row : 16 * row + 16] for row in range(count)]),
        "time": ("string", ["2025-06-01 12:00:00"] * count),
        "facts": ("string", [facts] * count),
        "packed": ("binary", [packed] * count),
        "error": ("string", [None] * count),
    }
    name = f"{number:032d}-0.parquet"
    (folder / name).write_bytes(encode_table(columns))
    return name


def measure_sets(count: int) -> None:
    """Palettes in random order from a mapped file that is not in memory yet."""
    import torch

    from c5.training.virtual import MappedColors

    rng = np.random.default_rng(0)
    camera = VirtualCamera.random(rng)
    some = [make_palettes(photo.image, (1,), rng) for photo in render_roll(camera, SCENES, rng, SIZE)]
    growing.MOST_BYTES = 0
    opened: list[BinaryIO] = []

    def note(open_file: Callable[[], BinaryIO] = growing.open_unpacked) -> BinaryIO:
        opened.append(open_file())
        return opened[-1]

    growing.open_unpacked = note
    palettes = join(some[number % SCENES] for number in range(count))
    size = palettes.cells.nbytes + palettes.codes.nbytes
    colors = MappedColors(palettes)
    order, views = torch.from_numpy(rng.permutation(count)), torch.zeros(256, dtype=torch.int64)
    arrays: list[NDArray[Any]] = [palettes.cells, palettes.codes]
    for file, array in zip(opened, arrays, strict=True):
        drop_from_memory(file, array)
    rows = []
    for name in ("from disk", "once more"):
        began = time.perf_counter()
        for batch in torch.split(order, 256):
            colors.look_up(batch, views[: len(batch)])
        rows.append([name, f"{count / (time.perf_counter() - began):.0f}"])
    show(f"A prepared set of {count} images, {size / 1e9:.1f} GB, mapped", ["epoch", "samples a second"], rows)


def drop_from_memory(file: BinaryIO, array: NDArray[Any]) -> None:
    """Write everything to disk, and keep nothing of it in memory."""
    mapped: Any = array
    while not isinstance(mapped, mmap.mmap):
        mapped = mapped.obj if isinstance(mapped, memoryview) else mapped.base
    mapped.madvise(mmap.MADV_DONTNEED)
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["costs", "files", "rows", "sets"])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--draw", type=int, default=1_000_000)
    parser.add_argument("--estimate", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where files are kept for the next time")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="c5-scale-"))
    try:
        if options.what == "costs":
            measure_costs(folder)
        elif options.what == "files":
            measure_files(folder, options.count)
        elif options.what == "sets":
            measure_sets(options.count)
        else:
            measure_rows(folder, options.draw, options.estimate)
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    main()
