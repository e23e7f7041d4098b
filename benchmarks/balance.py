"""Raw files from end to end, files per second: python benchmarks/balance.py"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import show

from c5.demo import LIGHTS, VirtualCamera, render_photo
from c5.demo.dng import Layout, encode_dng

SIZE, FILES = (4000, 6000), 12


def main() -> None:
    rng = np.random.default_rng(1)
    camera = VirtualCamera.random(rng)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder, catalog = Path(name) / "photographs", Path(name) / "catalog.db"
        folder.mkdir()
        for index in range(FILES):  # a few differ, so that a roll is a roll
            if index % 4 == 0:
                photo = render_photo(camera, "street", LIGHTS["sun"](rng), rng, (SIZE[0] // 8, SIZE[1] // 8))
                light = photo.image.rgb.repeat(8, axis=0).repeat(8, axis=1)
                content = encode_dng(camera.expose(light, rng), camera, Layout(lossless_jpeg=True))
            (folder / f"{index:03d}.dng").write_bytes(content + bytes([index]))
        for what, arguments in {
            "c5 catalog add": ["catalog", "add", folder],
            "c5 catalog add, nothing new": ["catalog", "add", folder],
            "c5 balance, numbers only": ["balance", folder, "--csv"],
            "c5 balance --xmp --pp3 --darktable": ["balance", folder, "--xmp", "--pp3", "--darktable"],
            "c5 balance --preview": ["balance", folder, "--preview"],
        }.items():
            command = [sys.executable, "-m", "c5.cli", *map(str, arguments), "--catalog", str(catalog)]
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            taken = time.perf_counter() - start
            rows.append([what, f"{taken:.2f}", f"{FILES / taken:.1f}"])
    megapixels = SIZE[0] * SIZE[1] // 1_000_000
    title = f"{FILES} DNG files of {megapixels} megapixels, lossless JPEG, the start of the command included"
    show(title, ["command", "s", "files/s"], rows)


if __name__ == "__main__":
    main()
