"""`c5 estimate`: the light of images."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from c5.cli import options
from c5.cli.console import complain, print_table, show_progress
from c5.errors import C5Error, ParameterError

if TYPE_CHECKING:
    from c5.ccc import Estimate
    from c5.colorimetry.matrices import CameraMatrices
    from c5.image import LinearImage
    from c5.photos.photo import Reading


HEADINGS = {"file": "file", "illuminant": "illuminant r g b", "gains": "gains r g b", "kelvin": "K (90 %)"}
HEADINGS |= {"tint": "tint (90 %)", "uncertainty_deg": "uncertainty", "bound_deg": "90 % within"}
"""The headings of the table, by the key of each column."""


def estimate(
    files: options.Photographs,
    roll: options.RollFolder = None,
    profile: options.ProfileFile = None,
    model: options.ModelName = None,
    method: options.MethodName = None,
    assume_srgb: options.AssumeSrgb = False,
    black: options.Black = 0,
    white: options.White = None,
    matrices: options.MatricesFile = None,
    as_json: options.AsJson = False,
    threads: options.Threads = 1,
) -> None:
    """Print the light of images and the gains that make it white.

    With --roll or --profile the model knows the camera; otherwise it works from each image alone. Temperature and
    tint are those of Adobe's programs, from matrices in the file or in a table. 90 % of the lights are within the
    bounds.
    """
    from c5.colorimetry.matrices import pick_matrices, read_matrices
    from c5.estimators import is_model
    from c5.model import load_model
    from c5.photos.photo import Reading

    reading = Reading(black, white, assume_srgb)
    if method is not None and model is not None:
        raise ParameterError("--method and --model both choose the estimator: give one of them")
    estimator: Callable[[LinearImage], Estimate]
    known_camera = None
    if method is None or is_model(method):
        loaded = load_model(model or method, threads=threads)
        known_camera = options.find_roll(roll, profile, loaded, reading).profile
        estimator = partial(loaded.estimate, profile=known_camera)
    else:
        estimator = _use_method(method, roll, profile, reading)
    table = {} if matrices is None else read_matrices(matrices)
    failures, rows = [], []
    for path in show_progress(files, "estimating"):
        try:
            photograph = reading.read(path)
            known = pick_matrices(table, photograph.image.camera) or photograph.matrices
            found = _describe(path, estimator(photograph.image), known)
            options.warn_of_profile(path, photograph.image.camera, known_camera)
        except C5Error as error:
            failures.append(error)
            continue
        if as_json:
            print(json.dumps(found), flush=True)
        else:
            rows.append(found)
    if rows:
        # Only models know how sure they are, and only files with matrices have a temperature.
        shown = [key for key in HEADINGS if any(key in row for row in rows)]
        print_table([HEADINGS[key] for key in shown], ([_show(row, key) for key in shown] for row in rows))
    for failure in failures:
        complain(failure)
    if failures:
        raise typer.Exit(1)


def _use_method(
    name: str, roll: Path | None, profile: Path | None, reading: Reading
) -> Callable[[LinearImage], Estimate]:
    from c5.estimators import find_estimator

    estimator = find_estimator(name)
    if profile is not None or (roll is not None and not estimator.takes_roll):
        raise ParameterError(f"{name} learns nothing about the camera: leave out --roll and --profile")
    return partial(estimator, roll=[] if roll is None else _read_images(roll, reading))


def _read_images(folder: Path, reading: Reading) -> list[LinearImage]:
    """The images of a roll; those that cannot be used are named and skipped."""
    from c5.photos.roll_building import read_image_shot, read_shots

    track = partial(show_progress, what="reading the roll")
    shots, failures = read_shots(folder, partial(read_image_shot, reading=reading), track=track)
    for failure in failures:
        complain(f"passed over: {failure.message}")
    return [shot.image for shot in shots]


def _describe(path: Path, found: Estimate, matrices: CameraMatrices | None) -> dict[str, Any]:
    """What is known of an estimate, ready for JSON; unknown values are left out."""
    from c5.colorimetry.temperature import tell_light

    result: dict[str, Any] = {
        "file": str(path),
        "illuminant": [round(float(value), 6) for value in found.illuminant],
        "gains": [round(float(value), 6) for value in found.gains],
    }
    told = tell_light(found.illuminant, matrices, found.bound_covariance)
    result |= {} if told is None else told.as_row()
    if found.uncertainty is not None and found.bound_deg is not None:
        result |= {"uncertainty_deg": round(found.uncertainty, 4), "bound_deg": round(found.bound_deg, 4)}
    return result


def _show(row: dict[str, Any], key: str) -> str:
    """A cell of the table."""
    from c5.colorimetry.temperature import show_told

    if key not in row:
        return ""
    if key == "file":
        return str(row[key])
    if key in ("kelvin", "tint"):
        return show_told(row)[key == "tint"]
    return f"{row[key]:.2f}°" if key.endswith("_deg") else " ".join(f"{value:.4f}" for value in row[key])
