"""Errors of a model and of the classical methods on rendered cameras: python benchmarks/rendered.py [MODEL.c5]."""

from __future__ import annotations

import sys

import numpy as np
from timing import show

from c5.classical import METHODS
from c5.color import angular_error
from c5.demo import VirtualCamera, render_roll
from c5.metrics import summarize
from c5.model import load_model

CAMERAS, PHOTOS = 12, 10


def main(name: str | None = None) -> None:
    model = load_model(name)
    rng = np.random.default_rng(123)
    errors: dict[str, list[float]] = {f"{model.name}, roll of {PHOTOS}": [], f"{model.name}, query alone": []}
    errors |= {method: [] for method in METHODS}
    for _ in range(CAMERAS):
        photos = render_roll(VirtualCamera.random(rng), PHOTOS, rng, (128, 192))
        profile = model.calibrate(photo.image for photo in photos)
        for photo in photos:
            found = [model.estimate(photo.image, known).illuminant for known in (profile, None)]
            found += [method(photo.image) for method in METHODS.values()]
            for values, illuminant in zip(errors.values(), found, strict=True):
                values.append(float(angular_error(illuminant, photo.illuminant)))
    rows = []
    for estimator, values in errors.items():
        result = summarize(values)
        rows.append([estimator, *(f"{value:.2f}" for value in (result.mean, result.median, result.worst_25))])
    title = f"{CAMERAS} rendered cameras, {PHOTOS} photographs each, degrees"
    show(title, ["estimator", "mean", "median", "worst 25 %"], rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
