"""How well 90 % bounds hold along temperature and tint: python benchmarks/bounds.py NETWORKS MATRICES.csv SET.c5set...

NETWORKS has DATASET/model.c5, trained without that dataset. Cameras without matrices are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from timing import show

from c5.color import angular_error
from c5.colorimetry.matrices import read_matrices
from c5.colorimetry.temperature import bound_temperature, dng_temperature
from c5.datasets import Sample, read_samples
from c5.datasets.facts import match_name
from c5.datasets.features import HistogramFeature
from c5.datasets.prepared import load_feature
from c5.histograms import Grid, Histograms
from c5.model import load_model

IMAGES, ADDITIONAL = 500, 8


def load(sample: Sample, grid: Grid) -> Histograms:
    return Histograms(grid, load_feature(sample, HistogramFeature(grid)).stack[0])


def main(networks: str, table: str, *sets: str) -> None:
    matrices = read_matrices(table)
    rng = np.random.default_rng(0)
    known = [sample for sample in read_samples([Path(each) for each in sets]) if match_name(sample.camera, matrices)]
    rows = []
    for dataset in sorted({sample.dataset for sample in known}):
        model = load_model(Path(networks) / dataset / "model.c5")
        own = [sample for sample in known if sample.dataset == dataset]
        held: list[list[float]] = []
        for sample in [own[index] for index in rng.permutation(len(own))[:IMAGES]]:
            others = [other for other in own if other.camera == sample.camera and other is not sample]
            chosen = rng.choice(len(others), ADDITIONAL, replace=False)
            profile = model.calibrate_histograms([load(others[index], model.grid) for index in chosen])
            found = model.estimate_histogram(load(sample, model.grid), profile)
            assert found.bound_deg is not None
            assert found.bound_covariance is not None
            camera = matrices[match_name(sample.camera, matrices) or ""]
            estimated, true = (dng_temperature(light, camera) for light in (found.illuminant, sample.illuminant))
            bounds = bound_temperature(found.illuminant, found.bound_covariance, camera)
            mireds = (1e6 / bounds.lowest - 1e6 / bounds.highest) / 2
            near = float(angular_error(found.illuminant, sample.illuminant)) < found.bound_deg
            warm = bounds.lowest < true.kelvin < bounds.highest
            held.append([near, warm, abs(true.tint - estimated.tint) < bounds.tint, mireds, bounds.tint])
        shares = 100 * np.mean(held, axis=0)[:3]
        widths = np.median(held, axis=0)[3:]
        rows.append([dataset, str(len(held)), *(f"{share:.0f} %" for share in shares), *(f"{w:.0f}" for w in widths)])
    headings = ["dataset", "images", "in degrees", "in temperature", "in tint", "± mireds", "± tint"]
    show(f"Lights within their 90 % bounds, {ADDITIONAL} additional images; medians of the bounds", headings, rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
