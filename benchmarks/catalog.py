"""How large a catalogue of 100,000 photographs is, and how long what one does with it takes."""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from c5.photos.catalog.photographs import GRID, Content, Version, pack
from timing import milliseconds, show

from c5.demo import VirtualCamera, render_roll
from c5.histograms import histogram
from c5.model import load_model
from c5.photos.catalog import Catalog, Order
from c5.photos.catalog.adding import insert
from c5.photos.catalog.database import connect, transaction

SHARES = {"Canon EOS R5": 0.6, "NIKON Z 8": 0.25, "SONY ILCE-7M4": 0.1, "FUJIFILM X-T5": 0.05}
REPEATS = 30


def fill(path: Path, entries: int, packed: list[bytes], rng: np.random.Generator) -> None:
    """Entries as photographs would make them, without the photographs."""
    cameras = rng.choice(list(SHARES), entries, p=list(SHARES.values()))
    days, vivid = rng.integers(0, 3650, entries), rng.uniform(0.1, 0.8, entries)
    connection = connect(path)
    with transaction(connection):
        for i in range(entries):
            name = f"/home/someone/Pictures/{2015 + days[i] // 365}/{days[i] % 365:03}/IMG_{i:06}.CR3".encode()
            time = str(np.datetime64("2015-01-01T12:00:00.000000") + np.timedelta64(int(days[i]), "D")).replace(
                "T", " "
            )
            content = Content(str(cameras[i]), time, float(vivid[i]), packed[i % len(packed)])
            digest = hashlib.blake2b(name, digest_size=16).digest()
            insert(connection, name, Version(30_000_000 + i, 1_700_000_000_000_000_000 + i), digest, content)
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    entries = parser.parse_args().entries
    rng = np.random.default_rng(5)
    photos = render_roll(VirtualCamera.random(rng), 16, rng)
    packed = [pack(histogram(photo.image, GRID)) for photo in photos]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.db"
        fill(path, entries, packed, rng)
        size = path.stat().st_size / entries
        pixels = np.rint(photos[0].image.rgb * 65535).astype(np.uint16)
        files = []
        for i in range(REPEATS + 2):
            files.append(Path(folder) / f"{i}.npy")
            np.save(files[-1], np.roll(pixels, i, axis=1))

        camera = next(iter(SHARES))
        model = load_model()
        with Catalog.open(path) as catalog:
            waiting = iter(files)
            jobs: dict[str, Callable[[], object]] = {
                "open": lambda: Catalog.open(path).close(),
                "add one file of 384x256 pixels": lambda: catalog.add([next(waiting)], camera=camera),
                "add one file that has not changed": lambda: catalog.add([files[0]]),
            }
            for order in Order:
                jobs[f"roll of 8, {order.value}"] = lambda order=order: catalog.roll(camera, 8, order, rng=rng)  # type: ignore[misc]
            jobs["profile of the 20 most vivid, kept"] = lambda: catalog.profile(model, camera)
            jobs["profile of 20 random ones, made"] = lambda: catalog.profile(model, camera, 20, Order.RANDOM, rng=rng)
            jobs["status"] = catalog.status

            rows = [[name, f"{milliseconds(job, REPEATS):.2f}"] for name, job in jobs.items()]
    show(
        f"A catalogue of {entries:,} photographs: {size:.0f} bytes an entry, of which the histograms take "
        f"{np.mean([len(one) for one in packed]):.0f}",
        ["catalogue", "ms"],
        rows,
    )


if __name__ == "__main__":
    main()
