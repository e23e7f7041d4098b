"""What exported code and the tracker cost, and how close exported code is to Python.

    python benchmarks/export.py [DATA]

DATA is a dataset whose images the C code is compared on, in pixels and in zones of 32x32; without it, rendered images
are used.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from timing import show

from c5.color import Float64s, angular_error
from c5.datasets import read_samples
from c5.demo import VirtualCamera, render_roll
from c5.demo.video import Shot, render_video
from c5.export.c_code import export_c
from c5.image import LinearImage, shrink
from c5.io.files import write_files
from c5.live import Light, Tracker
from c5.model import Model, Profile, load_model
from c5.zones import average_zones

MOST_IMAGES = 300
REPEATS = 300


def read_images(data: Path | None) -> list[LinearImage]:
    """Images of one camera after the other, equally many of each."""
    if data is None:
        rng = np.random.default_rng(5)
        return [photo.image for photo in render_roll(VirtualCamera.random(rng), 20, rng)]
    samples = read_samples([data])
    chosen = samples[:: -(-len(samples) // MOST_IMAGES)]
    return [shrink(sample.read()) for sample in chosen]


def run_code(folder: Path, frames: Sequence[LinearImage], repeats: int = 1) -> tuple[Float64s, float]:
    """(frames, 3) illuminants, and the milliseconds of the fastest frame."""
    with open(folder / "frames.bin", "wb") as file:
        for frame in frames:
            file.write(np.array(frame.rgb.shape[:2], "<i4").tobytes() + frame.rgb.astype("<f4").tobytes())
            file.write((~frame.mask | frame.clipped).astype(np.uint8).tobytes())
    command = [str(folder / "c5_test"), str(folder / "frames.bin"), str(repeats)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lights = np.array([[float(number) for number in line.split()[1:4]] for line in done.stdout.splitlines()])
    (taken,) = re.findall(r"fastest in ([\d.]+) ms", done.stderr)
    return lights, float(taken)


def compare(model: Model, profile: Profile, images: Sequence[LinearImage]) -> None:
    rows = []
    kinds = {"pixels": list(images), "zones of 32x32": [average_zones(image, 32, 32) for image in images]}
    python = {kind: [model.estimate(frame, profile).illuminant for frame in frames] for kind, frames in kinds.items()}
    for int8 in (False, True):
        for compiler in ("gcc", "clang"):
            with tempfile.TemporaryDirectory() as place:
                files, budgets = export_c(model, profile, Path(place), int8=int8)
                write_files(files)
                (budget,) = budgets.values()
                subprocess.run(["make", "-s", f"CC={compiler}", "c5_test"], cwd=place, check=True)
                for kind, frames in kinds.items():
                    found, _ = run_code(Path(place), frames)
                    _, taken = run_code(Path(place), frames[:1], REPEATS)
                    apart = angular_error(found, python[kind])
                    name = f"{'int8' if int8 else 'float'}, {compiler}, {kind}"
                    rows.append([name, f"{apart.mean():.4f}", f"{apart.max():.4f}", f"{taken:.2f}", *budget.cells[:3]])
    headings = ["C code", "mean degrees from Python", "largest", "ms", "weights", "code", "memory"]
    show(f"Exported C code, {len(images)} images", headings, rows)


def count_instructions(model: Model, profile: Profile) -> None:
    rows = []
    for int8 in (False, True):
        with tempfile.TemporaryDirectory() as place:
            write_files(export_c(model, profile, Path(place), int8=int8).files)
            done = subprocess.run(["make", "-s", "cortex-m"], cwd=place, check=True, capture_output=True, text=True)
            (counted,) = re.findall(r"([\d.]+) million instructions", done.stdout)
            code, weights, program = (line.split()[0] for line in done.stdout.splitlines()[1:4])
            rows.append(["int8" if int8 else "float", counted, code, weights, program])
    headings = ["weights", "million instructions", "bytes of code", "of weights", "of the test program"]
    show("On a Cortex-M4 in QEMU, 24x32 zones", headings, rows)


def time_tracker(model: Model) -> None:
    rng = np.random.default_rng(0)
    shots = [Shot("street", "tungsten", 60), Shot("street", "overcast", 60)]
    frames = [frame.rgb for frame in render_video(VirtualCamera.random(rng), shots, rng)]
    zones = [average_zones(LinearImage(frame), 32, 32) for frame in frames]
    rows = []

    def follow(name: str, update: Callable[[int], Light]) -> None:
        times = []
        for index in range(len(frames)):
            start = time.process_time()
            update(index)
            times.append(1e3 * (time.process_time() - start))
        rows.append([name, *(f"{value:.2f}" for value in (np.mean(times[5:]), np.median(times[5:]), max(times[5:])))])

    first, second = Tracker(model), Tracker(model)
    follow("frames of 384x256", lambda index: first.update(frames[index]))
    follow("zones of 32x32", lambda index: second.update_zones(zones[index].rgb, saturated=zones[index].clipped))
    show("Tracker, 120 frames with a switched lamp, processor time", ["a frame", "mean ms", "median", "slowest"], rows)


def main(data: Path | None) -> None:
    model = load_model()
    images = read_images(data)
    profile = model.calibrate([LinearImage(image.rgb, image.mask, image.clipped) for image in images[:8]])
    time_tracker(model)
    compare(model, profile, images)
    count_instructions(model, profile)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
