"""From an estimate to a decision, and from that to files that other programs read.

Everything here is about one set of photographs: what is used as the light of each, and how it is handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from c5.ccc import Estimate
from c5.classical import gray_world
from c5.color import Float64s, angular_error, camera_to_srgb, gains, rgb_to_uv, uv_to_rgb
from c5.errors import ParameterError, ReadError, WriteError
from c5.files import write_file
from c5.picture import Pixels, develop, render, turn, write_picture
from c5.raw import Photograph
from c5.sidecars import adobe, darktable, dng, rawtherapee
from c5.temperature import dng_temperature, rawtherapee_temperature

UNCERTAIN_DEG = 5.0
"""An estimate with a higher uncertainty is marked: about a tenth of the photographs of a camera new to the model."""

PREVIEW_PIXELS = 2_000_000

STEADINESS = 0.01
"""How much the light of a sequence is thought to change from one photograph to the next, in nats."""


class Fallback(Enum):
    """What is used instead of an uncertain estimate."""

    CAMERA = "camera"
    """The camera's own white balance, where the file has one."""
    GRAY_WORLD = "gray-world"
    NONE = "none"
    """The estimate all the same."""


@dataclass(frozen=True, eq=False)
class Balance:
    """One photograph and the light that is taken out of it."""

    path: Path
    photograph: Photograph
    estimate: Estimate
    illuminant: Float64s
    """(3,) what is used."""
    by: str
    """What it comes from: model, smoothed, camera, gray-world."""
    roll: int
    """How many images of the camera the model knew."""
    read: Callable[..., Photograph]
    """The photograph again; `pixels` says at how many."""

    @property
    def uncertain(self) -> bool:
        return (self.estimate.uncertainty or 0) > UNCERTAIN_DEG

    @property
    def camera(self) -> str | None:
        return self.photograph.image.camera


def apply_fallback(balance: Balance, fallback: Fallback) -> Balance:
    """What to use for a photograph whose estimate is uncertain; any other stays."""
    if not balance.uncertain or fallback is Fallback.NONE:
        return balance
    if fallback is Fallback.GRAY_WORLD:
        return replace(balance, illuminant=gray_world(balance.photograph.image), by="gray-world")
    as_shot = balance.photograph.as_shot
    return balance if as_shot is None else replace(balance, illuminant=as_shot, by="camera")


def smooth(balances: Sequence[Balance], steadiness: float = STEADINESS) -> list[Balance]:
    """Steady the lights of sequences: photographs of one camera in the order of their times.

    The log-chroma of the light is a random walk, seen through estimates with their uncertainties; this is its smoothed
    mean (Kalman, then Rauch, Tung and Striebel). A pause that is long for the sequence allows a large change.
    Photographs without a time stay as they are.
    """
    result = list(balances)
    cameras: dict[str | None, list[tuple[float, str, int]]] = {}
    for index, balance in enumerate(balances):
        if balance.photograph.time is not None:
            moment = (balance.photograph.time.timestamp(), str(balance.path), index)
            cameras.setdefault(balance.camera, []).append(moment)
    for moments in cameras.values():
        order = [index for *_, index in sorted(moments)]
        pauses = np.diff(sorted(second for second, *_ in moments))
        usual = max(float(np.median(pauses)), 1.0) if pauses.size else 1.0
        walk = steadiness**2 * np.maximum(pauses / usual, 1)
        noise = np.array([np.radians(balances[index].estimate.uncertainty or 1) ** 2 for index in order])
        seen = np.stack([rgb_to_uv(balances[index].illuminant) for index in order])
        for index, uv in zip(order, _smooth_walk(seen, noise, walk), strict=True):
            result[index] = replace(balances[index], illuminant=uv_to_rgb(uv), by="smoothed")
    return result


def _smooth_walk(seen: Float64s, noise: Float64s, walk: Float64s) -> Float64s:
    """The smoothed mean (n, k) of a random walk seen with noise; `walk` is the variance of each of its n - 1 steps."""
    mean, variance = seen.copy(), noise.copy()
    for i in range(1, len(seen)):  # forwards
        expected = variance[i - 1] + walk[i - 1]
        trust = expected / (expected + noise[i])
        mean[i] = mean[i - 1] + trust * (seen[i] - mean[i - 1])
        variance[i] = (1 - trust) * expected
    for i in range(len(seen) - 2, -1, -1):  # backwards
        mean[i] += variance[i] / (variance[i] + walk[i]) * (mean[i + 1] - mean[i])
    return mean


def describe(balance: Balance) -> dict[str, Any]:
    """One line of `--json` and `--csv`. Keys that are not known are None."""
    photograph = balance.photograph
    as_shot, calibration = photograph.as_shot, photograph.calibration
    temperature = None if calibration is None else dng_temperature(balance.illuminant, calibration)
    return {
        "file": str(balance.path),
        "camera": balance.camera,
        "time": None if photograph.time is None else photograph.time.isoformat(sep=" "),
        "illuminant": _rounded(balance.illuminant),
        "gains": _rounded(gains(balance.illuminant)),
        "kelvin": None if temperature is None else round(temperature.kelvin),
        "tint": None if temperature is None else round(temperature.tint),
        "uncertainty_deg": _rounded(balance.estimate.uncertainty),
        "uncertain": balance.uncertain,
        "by": balance.by,
        "roll": balance.roll,
        "camera_gains": None if as_shot is None else _rounded(gains(as_shot)),
        "camera_angle_deg": None if as_shot is None else _rounded(float(angular_error(balance.illuminant, as_shot))),
    }


def _rounded(value: Float64s | float | None) -> Any:
    if value is None:
        return None
    return [round(float(each), 6) for each in value] if isinstance(value, np.ndarray) else round(value, 4)


def srgb_matrix(balance: Balance) -> Float64s | None:
    """From white-balanced camera RGB to linear sRGB in this light; None if the camera's matrices are not known."""
    calibration = balance.photograph.calibration
    if calibration is None:
        return None
    kelvin = dng_temperature(balance.illuminant, calibration).kelvin
    return camera_to_srgb(calibration.matrix(kelvin), balance.illuminant)


def show_pair(balance: Balance) -> tuple[Pixels, Pixels]:
    """A photograph before and after, as a viewer would hold it: for a contact sheet."""
    photograph = balance.photograph
    matrix = srgb_matrix(balance)
    pictures = (
        develop(photograph.image, photograph.as_shot, matrix),
        develop(photograph.image, balance.illuminant, matrix),
    )
    return turn(pictures[0], photograph.orientation), turn(pictures[1], photograph.orientation)


# What is written for one photograph -----------------------------------------------------------------------------------


def write_preview(balance: Balance, place: Path) -> Path:
    """A rendered picture of up to two megapixels."""
    image = balance.read(pixels=PREVIEW_PIXELS).image
    picture = render(image.rgb, image.mask, balance.illuminant, srgb_matrix(balance))
    return write_picture(place, turn(picture, balance.photograph.orientation))


def write_adobe(balance: Balance, place: Path) -> Path:
    found = dng_temperature(balance.illuminant, _calibration(balance, "--xmp"))
    kelvin, tint = (
        round(min(max(value, low), high))
        for value, (low, high) in zip(found, (adobe.KELVINS, adobe.TINTS), strict=True)
    )
    existing = _existing(place, adobe.path_beside(balance.path))
    return write_file(place, _named(place, adobe.set_white_balance, existing, kelvin, tint))


def write_rawtherapee(balance: Balance, place: Path) -> Path:
    found = rawtherapee_temperature(balance.illuminant, _calibration(balance, "--pp3"))
    existing = _existing(place, rawtherapee.path_beside(balance.path))
    return write_file(place, _named(place, rawtherapee.set_white_balance, existing, found.kelvin, found.green))


def write_darktable(balance: Balance, place: Path) -> Path:
    existing = _existing(place, darktable.path_beside(balance.path))
    return write_file(place, _named(place, darktable.set_multipliers, existing, gains(balance.illuminant)))


def write_dng(balance: Balance, place: Path) -> Path:
    if place.resolve() == balance.path.resolve():
        raise WriteError(f"{balance.path}: originals are not touched; give --out DIR for the copy")
    try:
        data = balance.path.read_bytes()
    except OSError as error:
        raise ReadError(f"{balance.path}: cannot be read: {error.strerror}") from None
    return write_file(place, _named(balance.path, dng.replace_neutral, data, balance.illuminant))


@dataclass(frozen=True)
class Output:
    """One kind of file that is written for a photograph."""

    name: Callable[[Path], str]
    write: Callable[[Balance, Path], Path]


OUTPUTS = {
    "preview": Output(lambda path: f"{path.stem}.jpg", write_preview),
    "png": Output(lambda path: f"{path.stem}.png", write_preview),
    "xmp": Output(lambda path: adobe.path_beside(path).name, write_adobe),
    "pp3": Output(lambda path: rawtherapee.path_beside(path).name, write_rawtherapee),
    "darktable": Output(lambda path: darktable.path_beside(path).name, write_darktable),
    "dng": Output(lambda path: f"{path.stem}.dng", write_dng),
}


def write_output(balance: Balance, kind: str, out: Path | None, overwrite: bool) -> Path:
    """Write one kind of file for a photograph, into a folder or beside it; what exists stays unless told otherwise."""
    output = OUTPUTS[kind]
    place = (out or balance.path.parent) / output.name(balance.path)
    if place.exists() and not overwrite and place.resolve() != balance.path.resolve():
        raise WriteError(f"{place}: exists already; give --overwrite, or --out DIR for another place")
    return output.write(balance, place)


def _calibration(balance: Balance, option: str) -> Any:
    if balance.photograph.calibration is None:
        raise ParameterError(f"{balance.path}: {option} needs the camera's matrices, and none are known; use --json")
    return balance.photograph.calibration


def _named(path: Path, change: Callable[..., bytes], *arguments: Any) -> bytes:
    """What a writer makes; where it cannot read what is there, the error names the file."""
    try:
        return change(*arguments)
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from None


def _existing(place: Path, beside: Path) -> bytes | None:
    """What a sidecar holds already: the one that is replaced, else the one beside the photograph."""
    for path in (place, beside):
        if path.is_file():
            return path.read_bytes()
    return None
