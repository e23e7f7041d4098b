"""How fast files of 24 megapixels are labeled: python benchmarks/label.py"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from chart_cases import render_shot
from timing import milliseconds, show

from c5.charts.finding import LOOKED_AT, find_charts
from c5.charts.labeling import label_folder
from c5.demo import LIGHTS, VirtualCamera
from c5.demo.raw_files import Layout, encode_dng
from c5.io.raw import read_photograph
from c5.photos.photo import Reading

SIZE = (4000, 6000)
SCALE = 4
FILES = 12


def main() -> None:
    rng = np.random.default_rng(1)
    camera = VirtualCamera.random(rng)
    rows = []
    for name, layout in (("uncompressed", Layout()), ("lossless JPEG", Layout(lossless_jpeg=True))):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for index, (scene, light) in enumerate((("street", "sun"), ("foliage", "shade"), ("still life", "led"))):
                size = (SIZE[0] // SCALE, SIZE[1] // SCALE)
                shot = render_shot(camera, scene, LIGHTS[light](rng), "plain", rng, size)
                raw = shot.photo.raw.repeat(SCALE, axis=0).repeat(SCALE, axis=1)
                content = encode_dng(raw, camera, layout)
                for copy in range(FILES // 3):
                    (folder / f"{index}-{copy}.dng").write_bytes(content)
            label_folder(folder, Reading())  # starts the workers
            started = time.perf_counter()
            labels = label_folder(folder, Reading())
            seconds = time.perf_counter() - started
            labeled = sum(label.illuminant is not None for label in labels)
            path = folder / "0-0.dng"
            image = read_photograph(path, pixels=LOOKED_AT).image
            reading = milliseconds(lambda path=path: read_photograph(path, pixels=LOOKED_AT), 5)  # type: ignore[misc]
            finding = milliseconds(lambda image=image: find_charts(image), 5)  # type: ignore[misc]
            rate = f"{len(labels) / seconds:.1f}"
            rows.append([name, f"{labeled} of {len(labels)}", rate, f"{reading:.0f}", f"{finding:.0f}"])
    show(
        f"Labeling {SIZE[0] * SIZE[1] // 1_000_000}-megapixel DNG files on {os.cpu_count()} cores",
        ["file", "labeled", "files a second", "reading one, ms", "finding its chart, ms"],
        rows,
    )


if __name__ == "__main__":
    main()
