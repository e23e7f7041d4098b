"""How large a catalog of 100,000 photographs is, and how long working with it takes."""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
from timing import milliseconds, show

from c5.choices import SELECTIONS
from c5.demo import VirtualCamera, render_roll
from c5.histograms import Histograms, histogram
from c5.io.raw import Photograph
from c5.io.versions import Version
from c5.model import load_model
from c5.photos.catalog import Catalog
from c5.photos.catalog.database import connect, transaction
from c5.photos.catalog.entries import insert, stored_grid
from c5.photos.photo import Photo

SHARES = {"Canon EOS R5": 0.6, "NIKON Z 8": 0.25, "SONY ILCE-7M4": 0.1, "FUJIFILM X-T5": 0.05}
REPEATS = 30


@dataclass(frozen=True, eq=False)
class PackedHistograms(Histograms):
    """Histograms that are packed once, however many entries they fill."""

    def pack(self) -> bytes:
        return pack_once(self)


@cache
def pack_once(histograms: Histograms) -> bytes:
    return Histograms.pack(histograms)


def fill(path: Path, entries: int, photos: list[Photo], rng: np.random.Generator) -> None:
    """Entries as photographs would make them, without the photographs."""
    cameras = rng.choice(list(SHARES), entries, p=list(SHARES.values()))
    days = rng.integers(0, 3650, entries)
    connection = connect(path)
    with transaction(connection):
        for i in range(entries):
            name = f"/home/someone/Pictures/{2015 + days[i] // 365}/{days[i] % 365:03}/IMG_{i:06}.CR3".encode()
            time = datetime(2015, 1, 1, 12) + timedelta(days=int(days[i]))
            photo = replace(photos[i % len(photos)], camera=str(cameras[i]), time=time)
            digest = hashlib.blake2b(name, digest_size=16).digest()
            insert(connection, name, Version(30_000_000 + i, 1_700_000_000_000_000_000 + i), digest, photo)
        connection.execute("UPDATE photograph SET vividness = 0.1 + (random() & 65535) / 1e5")  # many are alike
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    entries = parser.parse_args().entries
    rng = np.random.default_rng(5)
    camera, grid = VirtualCamera.random(rng), stored_grid()
    rendered = [made.image for made in render_roll(camera, 16, rng)]
    stacks = [PackedHistograms(grid, histogram(image, grid).stack) for image in rendered]
    photos = [
        replace(Photo.of(Path("x"), Photograph(image, (0, 0))), histograms=counted)
        for image, counted in zip(rendered, stacks, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.db"
        fill(path, entries, photos, rng)
        size = path.stat().st_size / entries
        pixels = np.rint(rendered[0].rgb * 65535).astype(np.uint16)
        files = []
        for i in range(REPEATS + 2):
            files.append(Path(folder) / f"{i}.npy")
            np.save(files[-1], np.roll(pixels, i, axis=1))

        name = next(iter(SHARES))
        model = load_model()
        with Catalog.open(path) as catalog:
            waiting = iter(files)
            jobs: dict[str, Callable[[], object]] = {
                "open": lambda: Catalog.open(path).close(),
                "add one file of 384x256 pixels": lambda: catalog.add([next(waiting)], camera=name),
                "add one file that has not changed": lambda: catalog.add([files[0]]),
            }
            sizes = count(20)  # a roll of another size is made anew
            for each in SELECTIONS:
                jobs[f"roll of 20, {each.value}, made"] = lambda each=each: catalog.roll(model, name, next(sizes), each)  # type: ignore[misc]
            jobs["roll of 20, random, kept"] = lambda: catalog.roll(model, name)
            jobs["find one photograph"] = lambda: catalog.find(files[0], grid)
            jobs["status"] = catalog.status

            rows = [[name, f"{milliseconds(job, REPEATS):.2f}"] for name, job in jobs.items()]
    show(
        f"A catalog of {entries:,} photographs: {size:.0f} bytes an entry, of which the histograms take "
        f"{np.mean([len(counted.pack()) for counted in stacks]):.0f}",
        ["catalog", "ms"],
        rows,
    )


if __name__ == "__main__":
    main()
