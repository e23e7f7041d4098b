"""How long everything between pixels and an illuminant takes. `make benchmark` runs it on one thread.

`python benchmarks/speed.py MODEL.c5` measures another model instead of the bundled one.

The yardstick is the published definition of the histograms evaluated as it is written, every pixel against every bin,
in the same run; beside it, the same sum arranged as a product of matrices.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from timing import milliseconds, show

from c5.color import Float64s
from c5.demo import VirtualCamera, render_roll
from c5.histograms import Grid, histogram
from c5.model import load_model


def as_written(weight: Float64s, near_v: Float64s, near_u: Float64s) -> Float64s:
    """Eq. 3: for each bin, the sum over all pixels of weight [|u - u_k| <= e] [|v - v_k| <= e]."""
    return np.asarray(np.einsum("k,ki,kj->ij", weight, near_v, near_u, optimize=False))


def as_product(weight: Float64s, near_v: Float64s, near_u: Float64s) -> Float64s:
    return np.asarray(near_v.T @ (near_u * weight[:, None]))


def dense_histograms(
    pixels: NDArray[np.uint16], total: Callable[[Float64s, Float64s, Float64s], Float64s], bins: int = 64
) -> Float64s:
    """Both histograms in the published geometry, with every pixel compared with every bin."""
    limit = 2.85
    image = pixels / 65535
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="symmetric")
    height, width = image.shape[:2]
    gradient = np.zeros_like(image)
    for dy in range(3):
        for dx in range(3):
            gradient += np.abs(padded[dy : dy + height, dx : dx + width] - image) / 8
    centers, reach = np.linspace(-limit, limit, bins), 2 * limit / (bins - 1)
    result = []
    for colors in (image.reshape(-1, 3), gradient.reshape(-1, 3)):
        colors = colors[colors.sum(axis=1) >= 1e-9]
        logs = np.log(colors + 1e-9)
        near_u = (np.abs((logs[:, 1] - logs[:, 0])[:, None] - centers) <= reach).astype(float)
        near_v = (np.abs((logs[:, 1] - logs[:, 2])[:, None] - centers) <= reach).astype(float)
        counts = total(np.linalg.norm(colors, axis=1), near_v, near_u)
        result.append(np.sqrt(counts / counts.sum())[::-1])
    return np.stack(result)


def main() -> None:
    rng = np.random.default_rng(5)
    photos = render_roll(VirtualCamera.random(rng), 8, rng)
    pixels = np.rint(photos[1].image.rgb * 65535).astype(np.uint16)
    large = np.kron(pixels, np.ones((16, 16, 1), np.uint16))[:4000, :6000]
    difference = np.abs(histogram(pixels, Grid.published()).stack - dense_histograms(pixels, as_product)).max()

    yardstick = milliseconds(lambda: dense_histograms(pixels, as_written), 3)
    model = load_model(sys.argv[1] if sys.argv[1:] else "bundled")
    name = model.name if sys.argv[1:] else "the bundled model"
    rows = [["published definition, as written", f"{yardstick:.1f}", "1"]]
    for grid, job in {
        "published definition, as a product of matrices": lambda: dense_histograms(pixels, as_product),
        "default grid": lambda: histogram(pixels),
        "published grid": lambda: histogram(pixels, Grid.published()),
        f"{name}'s": lambda: histogram(pixels, model.grid),
    }.items():
        taken = milliseconds(job, 9)
        rows.append([grid, f"{taken:.2f}", f"{yardstick / taken:.0f}"])
    taken = milliseconds(lambda: histogram(large), 7)
    rows.append(["24-megapixel uint16 array, averaged first", f"{taken:.1f}", ""])
    show(
        f"Pixel and gradient histogram of a 384x256 image (largest difference to the dense one {difference:.0e})",
        ["histograms", "ms", "times faster"],
        rows,
    )

    histograms = [histogram(photo.image, model.grid) for photo in photos]
    rows = []
    most = model.file.n_images - 1 if model.file.kind == "separate" else 200
    for count in dict.fromkeys(min(count, most) for count in (0, 8, 200)):
        profile = model.calibrate_histograms([histograms[i % 8] for i in range(count)])
        taken = milliseconds(lambda profile=profile: model.estimate(pixels, profile))  # type: ignore[misc]
        rows.append([f"query, pixels to illuminant, profile of {count} images", f"{taken:.2f}"])
    few = histograms[:most]
    profile = model.calibrate_histograms(few)
    rows.append(["the network's half of it", f"{milliseconds(lambda: model.emit(histograms[0], profile)):.2f}"])
    taken = milliseconds(lambda: model.calibrate_histograms(few))
    rows.append([f"calibrating from {len(few)} histograms", f"{taken:.2f}"])
    start = "import time; t = time.perf_counter(); import c5; print(1e3 * (time.perf_counter() - t))"
    imports = [float(subprocess.check_output([sys.executable, "-c", start])) for _ in range(5)]
    rows.append(["import c5", f"{np.median(imports):.0f}"])
    size = sum(len(graph) for graph in model.file.graphs.values()) / 1e6
    show(f"{name[0].upper()}{name[1:]} ({size:.2f} MB of graphs), one thread", ["estimator", "ms"], rows)


if __name__ == "__main__":
    main()
