"""The studio with a large shoot, in a real Chromium: python benchmarks/studio.py

Files of 24 megapixels with embedded previews are made and cataloged, then the studio is started. It is ready when
every photograph has a picture, a light and a group. The slider is dragged in the large view, and the time is that from
the event to the drawn picture. Frames are counted while thumbnails are scrolled through. Memory is that of the server's
process, alone and with the workers that decode raw files.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from timing import show

from c5.demo import LIGHTS, VirtualCamera, render_photo
from c5.demo.raw_files import Layout, encode_dng
from c5.io.versions import digest_file
from c5.photos.catalog import Catalog
from c5.photos.catalog.database import connect, transaction
from c5.photos.catalog.entries import insert, stored_grid
from c5.photos.photo import Photo, read_photo
from c5.photos.picture import develop

SIZE = (4000, 6000)
SCALE = 16
"""This many photosites each way are equal, in all colors, so that two thousand files fit on a disk."""
RENDERED = 8
START = datetime(2026, 6, 20, 9)
TIME = b"2026:06:20 09:00:00"
SLIDES, SCREENS = 200, 60


def embed(data: bytes, jpeg: bytes) -> bytes:
    """A TIFF file with a JPEG in a second directory, where cameras put their previews."""
    (first,) = struct.unpack("<I", data[4:8])
    (count,) = struct.unpack("<H", data[first : first + 2])
    link = first + 2 + 12 * count
    data += b"\0" * (len(data) % 2)
    place = len(data) + 2 + 2 * 12 + 4
    tags = struct.pack("<HHIIHHII", 513, 4, 1, place, 514, 4, 1, len(jpeg))
    directory = struct.pack("<H", 2) + tags + struct.pack("<I", 0)
    return data[:link] + struct.pack("<I", len(data)) + data[link + 4 :] + directory + jpeg


def make_shoot(folder: Path, files: int, catalog: Path) -> None:
    """Photographs of two cameras in a few lights, a quarter of a minute apart, all of them in a catalog."""
    from PIL import Image

    rng = np.random.default_rng(1)
    cameras = [VirtualCamera.random(rng) for _ in range(2)]
    lights = [LIGHTS[family](rng) for family in ("window", "tungsten", "sun", "led")]
    folder.mkdir()
    rendered, known = [], []
    for index in range(RENDERED):
        camera, light = cameras[index % 2], lights[index * len(lights) // RENDERED]
        photo = render_photo(camera, "portrait", light, rng, (SIZE[0] // SCALE, SIZE[1] // SCALE))
        layout = Layout(lossless_jpeg=True, time=START, exposure=9.0)
        small = folder / "small.dng"
        small.write_bytes(encode_dng(photo.raw, camera, layout))
        found = read_photo(small, stored_grid())
        assert isinstance(found, Photo)
        known.append(found)
        small.unlink()
        gray = photo.raw[..., 1:2].repeat(SCALE, axis=0).repeat(SCALE, axis=1).repeat(3, axis=2)
        buffer = io.BytesIO()
        picture = Image.fromarray(develop(photo.image, photo.illuminant)).resize((1620, 1080))
        picture.save(buffer, "JPEG", quality=88)
        rendered.append(embed(encode_dng(gray, camera, layout), buffer.getvalue()))
    Catalog.open(catalog).close()
    connection = connect(catalog)
    with transaction(connection):
        for index in range(files):
            kind = index * len(lights) // files * (RENDERED // len(lights)) + index % (RENDERED // len(lights))
            taken = START + timedelta(seconds=15 * index)
            path = folder / f"IMG_{index:05d}.dng"
            stamp = taken.strftime("%Y:%m:%d %H:%M:%S").encode()
            path.write_bytes(rendered[kind].replace(TIME, stamp, 1) + index.to_bytes(4, "little"))
            version, digest = digest_file(os.fsencode(path))
            insert(connection, os.fsencode(os.path.realpath(path)), version, digest, replace(known[kind], time=taken))
    connection.close()


class Server:
    """The program, with its own home folder."""

    def __init__(self, folder: Path, catalog: Path, home: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "c5.cli", "studio", folder, "--catalog", catalog, "--no-browser"],
            stdout=subprocess.PIPE, text=True, env=kept | {"HOME": str(home), "C5_CONFIG": os.devnull},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.rows: dict[str, dict[str, Any]] = {}
        self.number = 0

    def tell(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.address}shoot?since={self.number}") as answer:
            told: dict[str, Any] = json.loads(answer.read())
        self.number = told["number"]
        self.rows |= {row["id"]: row for row in told["photos"]}
        return told

    def wait(self, what: str) -> float:
        """Seconds from the start of the program until every photograph has it."""
        while True:
            told = self.tell()
            has = sum(bool(row.get(what)) for row in self.rows.values())
            if told["total"] and has == told["total"]:
                return time.monotonic() - self.started
            time.sleep(0.2)

    def memory(self) -> tuple[float, float]:
        """MB of the server at its largest, and of it and its workers now."""
        pids = [self.process.pid]
        for place in Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(place.read_text().rsplit(")", 1)[1].split()[1]) == self.process.pid:
                    pids.append(int(place.parent.name))
            except OSError:
                continue
        return self._read(self.process.pid, "VmHWM"), sum(self._read(pid, "VmRSS") for pid in pids)

    @staticmethod
    def _read(pid: int, key: str) -> float:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{key}:"))


SCROLL = """
const done = arguments[arguments.length - 1];
const grid = document.getElementById("grid");
const frames = [];
let last = 0;
const step = (now) => {
  if (last) frames.push(now - last);
  last = now;
  grid.scrollTop += grid.clientHeight / 12;
  const isAtEnd = grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 1;
  if (frames.length < 12 * arguments[0] && !isAtEnd) requestAnimationFrame(step);
  else done(frames);
};
grid.scrollTop = 0;
requestAnimationFrame(step);
"""

SLIDE = """
const done = arguments[arguments.length - 1];
const slider = document.getElementById("warmer");
performance.clearMeasures();
let count = 0;
const step = () => {
  slider.value = Math.round(100 * Math.sin(count / 9));
  slider.dispatchEvent(new Event("input"));
  count += 1;
  if (count < arguments[0]) requestAnimationFrame(() => requestAnimationFrame(step));
  else setTimeout(() => done(performance.getEntriesByName("slider").map((each) => each.duration)), 200);
};
step();
"""


def browse(address: str, profile: Path) -> tuple[list[float], list[float]]:
    """Milliseconds of slider moves and of frames while scrolling."""
    from selenium import webdriver
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--window-size=1280,800", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver") or ""))
    browser.set_script_timeout(300)
    try:
        browser.get(address)
        time.sleep(6)
        frames = browser.execute_async_script(SCROLL, SCREENS)
        ActionChains(browser).send_keys(Keys.HOME, Keys.ENTER).perform()
        ready = "return document.getElementById('after').dataset.drawn && !document.getElementById('warmer').disabled"
        while not browser.execute_script(ready):
            time.sleep(0.2)
        time.sleep(3)
        slides = browser.execute_async_script(SLIDE, SLIDES)
        return slides, frames
    finally:
        browser.quit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--keep", type=Path, help="a folder in which the files are made, or lie already")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the server ends with this
    with tempfile.TemporaryDirectory() as name:
        base = options.keep or Path(name)
        folder, catalog = base / "shoot", base / "catalog.db"
        if not folder.exists():
            base.mkdir(exist_ok=True)
            make_shoot(folder, options.files, catalog)
        server = Server(folder, catalog, Path(name) / "home")
        try:
            times = {what: server.wait(what) for what in ("thumbnail", "kelvin", "group")}
            slides, frames = browse(server.address, Path(name) / "profile")
            largest, together = server.memory()
        finally:
            server.process.terminate()
            server.process.wait()
    rows = [
        ["every photograph has a picture, s", f"{times['thumbnail']:.1f}"],
        ["its light is known, s", f"{times['kelvin']:.1f}"],
        ["ready: groups are found, s", f"{times['group']:.1f}"],
        ["slider to picture, 95th percentile, ms", f"{np.percentile(slides, 95):.0f}"],
        ["a frame while scrolling, 95th percentile, ms", f"{np.percentile(frames, 95):.0f}"],
        ["memory of the server, at most, MB", f"{largest:.0f}"],
        ["with its workers, while thumbnails are developed, MB", f"{together:.0f}"],
    ]
    show(f"Studio of {len(server.rows)} files of 24 megapixels, two cores", ["what", "measured"], rows)


if __name__ == "__main__":
    main()
