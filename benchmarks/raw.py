"""How fast raw files are read, against LibRaw's own unpacking: python benchmarks/raw.py"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import rawpy
from numpy.typing import NDArray
from timing import milliseconds, show

from c5.demo import LIGHTS, VirtualCamera, render_photo
from c5.demo.raw_files import XTRANS, Layout, encode_dng
from c5.io.raw import read_photograph

SIZE = (4000, 6000)
REPEATS = 15


def main() -> None:
    rng = np.random.default_rng(1)
    camera = VirtualCamera.random(rng)
    scene = render_photo(camera, "street", LIGHTS["sun"](rng), rng, (SIZE[0] // 8, SIZE[1] // 8)).image.rgb
    light = scene.repeat(8, axis=0).repeat(8, axis=1)
    normal, bright = camera.expose(light, rng), camera.expose(light * np.float32(3), rng)
    files: dict[str, tuple[NDArray[np.uint16], Layout]] = {
        "Bayer, lossless JPEG": (normal, Layout(lossless_jpeg=True)),
        "Bayer, uncompressed": (normal, Layout()),
        "Bayer, uncompressed, overexposed": (bright, Layout()),
        "X-Trans, uncompressed": (normal, Layout(XTRANS)),
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (raw, layout) in files.items():
            path = Path(folder) / "photograph.dng"
            path.write_bytes(encode_dng(raw, camera, layout))
            clipped = read_photograph(path).image.clipped.mean()
            alone = milliseconds(lambda path=path: unpack(path), REPEATS)  # type: ignore[misc]
            whole = milliseconds(lambda path=path: read_photograph(path), REPEATS)  # type: ignore[misc]
            size = path.stat().st_size / 1e6
            rows.append([name, f"{size:.0f}", f"{clipped:.0%}", f"{alone:.0f}", f"{whole:.0f}", f"{whole / alone:.2f}"])
    show(
        f"A {SIZE[0] * SIZE[1] // 1_000_000}-megapixel DNG to a photograph at working size",
        ["file", "MB", "clipped", "LibRaw's open and unpack, ms", "read_photograph, ms", "ratio"],
        rows,
    )
    mosaic = np.ascontiguousarray(normal[..., 0])
    memory = milliseconds(mosaic.max, REPEATS)
    print(f"\nReading the {mosaic.nbytes / 1e6:.0f} MB of a mosaic once takes {memory:.1f} ms.")


def unpack(path: Path) -> None:
    with rawpy.RawPy() as raw:
        raw.open_file(str(path))
        raw.unpack()


if __name__ == "__main__":
    main()
