"""Errors and times of the classical estimators on a checkout of google/ffcc: python benchmarks/classical.py FOLDER."""

from __future__ import annotations

import sys
import time

import numpy as np
from rich.progress import track
from timing import show

from c5.classical import METHODS
from c5.color import angular_error
from c5.datasets import read_samples
from c5.metrics import summarize


def main(folder: str) -> None:
    samples = read_samples(folder)
    errors = {name: np.zeros(len(samples)) for name in METHODS}
    taken = dict.fromkeys(METHODS, 0.0)
    for index, sample in enumerate(track(samples, "estimating")):
        image = sample.read()
        for name, method in METHODS.items():
            start = time.perf_counter()
            errors[name][index] = angular_error(method(image), sample.illuminant)
            taken[name] += time.perf_counter() - start
    for dataset in sorted({sample.dataset for sample in samples}):
        own = np.array([sample.dataset == dataset for sample in samples])
        rows = []
        for name in METHODS:
            found = summarize(errors[name][own])
            numbers = (found.mean, found.median, found.trimean, found.best_25, found.worst_25)
            rows.append([name, *(f"{value:.2f}" for value in numbers), f"{1e3 * taken[name] / len(samples):.1f}"])
        headings = ["method", "mean", "median", "trimean", "best 25 %", "worst 25 %", "ms"]
        show(f"{dataset}, {own.sum()} images, degrees", headings, rows)


if __name__ == "__main__":
    main(sys.argv[1])
