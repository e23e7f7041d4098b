"""Errors of models and of the classical methods on rendered cameras. --zones 32x32 gives all of them zones."""

from __future__ import annotations

import argparse

import numpy as np
from timing import show

from c5.classical import METHODS
from c5.color import angular_error
from c5.demo import VirtualCamera, render_roll
from c5.metrics import summarize
from c5.model import load_model
from c5.zones import average_zones, parse_zones

CAMERAS, PHOTOS = 12, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["bundled"], metavar="MODEL")
    parser.add_argument("--zones", type=parse_zones, metavar="ROWSxCOLUMNS")
    arguments = parser.parse_args()
    models = [load_model(name) for name in arguments.models]
    rolls = ["pixels"] if arguments.zones is None else ["pixels", "zones"]
    known = [*(f"roll of {PHOTOS} in {roll}" for roll in rolls), "query alone"]
    rng = np.random.default_rng(123)
    errors: dict[str, list[float]] = {f"{model.name}, {each}": [] for model in models for each in known}
    errors |= {method: [] for method in METHODS}
    for _ in range(CAMERAS):
        photos = render_roll(VirtualCamera.random(rng), PHOTOS, rng, (128, 192))
        images = [photo.image for photo in photos]
        seen = images if arguments.zones is None else [average_zones(image, *arguments.zones) for image in images]
        taught = [images] if arguments.zones is None else [images, seen]
        profiles = [[*(model.calibrate(roll) for roll in taught), None] for model in models]
        for photo, image in zip(photos, seen, strict=True):
            found = [
                model.estimate(image, profile).illuminant
                for model, own in zip(models, profiles, strict=True)
                for profile in own
            ]
            found += [method(image) for method in METHODS.values()]
            for values, illuminant in zip(errors.values(), found, strict=True):
                values.append(float(angular_error(illuminant, photo.illuminant)))
    rows = []
    for estimator, values in errors.items():
        result = summarize(values)
        rows.append([estimator, *(f"{value:.2f}" for value in (result.mean, result.median, result.worst_25))])
    given = "" if arguments.zones is None else ", given in {}x{} zones".format(*arguments.zones)
    title = f"{CAMERAS} rendered cameras, {PHOTOS} photographs each{given}, degrees"
    show(title, ["estimator", "mean", "median", "worst 25 %"], rows)


if __name__ == "__main__":
    main()
