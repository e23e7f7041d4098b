"""From an estimate to a decision, and from that to files that other programs read.

Everything here is about one set of photographs: what is used as the light of each, and how it is handed on.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from c5.classical import gray_world
from c5.color import Bools, Float64s, angular_error, camera_to_srgb, gains, rgb_to_uv, uv_to_rgb
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.temperature import TemperatureTint, dng_temperature, rawtherapee_temperature
from c5.errors import C5Error, ParameterError, ReadError, WriteError
from c5.image import LinearImage, shrink
from c5.io.files import write_file
from c5.io.raw import Photograph
from c5.photos.catalog.photographs import OWN_PREVIEWS, printable
from c5.photos.picture import PICTURE_WIDTH, Pixels, render, turn, write_picture
from c5.photos.sidecars import adobe, darktable, dng, rawtherapee

Result = TypeVar("Result")

UNCERTAIN_DEG = 2.5
"""An estimate with a higher uncertainty is marked: about a tenth of the photographs of a camera new to the model, which
err twice as much as the others."""

PREVIEW_PIXELS = 1_500_000

STEADINESS = 0.01
"""How much the light of a sequence is thought to change from one photograph to the next, in nats."""

LONGEST_PAUSE = 120.0
"""Seconds without a photograph that end a sequence, whatever its usual pause."""
UNUSUAL_PAUSE = 10.0
"""So many times the usual pause end it too."""


class Fallback(Enum):
    """What is used instead of an uncertain estimate."""

    CAMERA = "camera"
    """The camera's own white balance, where the file has one."""
    GRAY_WORLD = "gray-world"
    NONE = "none"
    """The estimate all the same."""


class Thumbnail(NamedTuple):
    """Linear pixels as few as a contact sheet shows."""

    rgb: NDArray[np.float16]  # (height, width, 3)
    mask: Bools
    clipped: Bools


@dataclass(frozen=True, eq=False)
class Shot:
    """What is kept of a photograph while its set is worked on: thousands of them fit into memory."""

    path: Path
    camera: str | None
    time: datetime | None
    as_shot: Float64s | None
    """The illuminant of the camera's own white balance."""
    gray_world: Float64s
    matrices: CameraMatrices | None
    orientation: int
    thumbnail: Thumbnail | None = None

    @classmethod
    def of(cls, path: Path, photograph: Photograph) -> Shot:
        return cls(
            path,
            photograph.image.camera,
            photograph.time,
            photograph.as_shot,
            gray_world(photograph.image),
            photograph.matrices,
            photograph.orientation,
        )

    def with_thumbnail(self, image: LinearImage) -> Shot:
        height, width = image.rgb.shape[:2]
        small = shrink(image, round(height * width * (PICTURE_WIDTH / max(height, width)) ** 2))
        return replace(self, thumbnail=Thumbnail(small.rgb.astype(np.float16), small.mask, small.clipped))


@dataclass(frozen=True, eq=False)
class Balance:
    """One photograph and the light that is taken out of it."""

    shot: Shot
    illuminant: Float64s
    """(3,) what is used."""
    uncertainty: float | None
    """Degrees, of the model's estimate, whatever is used."""
    by: str
    """What the illuminant comes from: model, smoothed, camera, gray-world."""
    roll: int
    """How many images of the camera the model knew."""
    read: Callable[..., Photograph]
    """The photograph again; `pixels` says at how many."""

    @property
    def path(self) -> Path:
        return self.shot.path

    @property
    def uncertain(self) -> bool:
        return (self.uncertainty or 0) > UNCERTAIN_DEG


def apply_fallback(balance: Balance, fallback: Fallback) -> Balance:
    """What to use for a photograph whose estimate is uncertain; any other stays."""
    if not balance.uncertain or fallback is Fallback.NONE:
        return balance
    if fallback is Fallback.GRAY_WORLD:
        return replace(balance, illuminant=balance.shot.gray_world, by="gray-world")
    as_shot = balance.shot.as_shot
    return balance if as_shot is None else replace(balance, illuminant=as_shot, by="camera")


def smooth(balances: Sequence[Balance], steadiness: float = STEADINESS) -> list[Balance]:
    """Steady the lights of sequences: photographs of one camera, at most two minutes from one to the next.

    The log-chroma of the light is a random walk, seen through estimates with their uncertainties; this is its smoothed
    mean (Kalman, then Rauch, Tung and Striebel). A pause that is long for the sequence allows a larger change, and one
    that is very long ends it. Photographs without a time, or alone, stay as they are.
    """
    result = list(balances)
    for order, seconds in _sequences(balances):
        pauses = np.diff(seconds)
        walk = steadiness**2 * np.maximum(pauses / _usual(pauses), 1)
        noise = np.array([np.radians(balances[index].uncertainty or 1) ** 2 for index in order])
        seen = np.stack([rgb_to_uv(balances[index].illuminant) for index in order])
        for index, uv in zip(order, _smooth_walk(seen, noise, walk), strict=True):
            result[index] = replace(balances[index], illuminant=uv_to_rgb(uv), by="smoothed")
    return result


def _sequences(balances: Sequence[Balance]) -> Iterator[tuple[list[int], Float64s]]:
    """The places of the photographs of each sequence of two and more, in the order of their times, and these."""
    cameras: dict[str | None, list[tuple[float, str, int]]] = {}
    for index, balance in enumerate(balances):
        time = balance.shot.time
        if time is not None:  # local time, without the jumps of any place
            moment = (time.replace(tzinfo=UTC).timestamp(), str(balance.path), index)
            cameras.setdefault(balance.shot.camera, []).append(moment)
    for moments in cameras.values():
        moments.sort()
        seconds = np.array([second for second, *_ in moments])
        for first, last in _split(seconds, LONGEST_PAUSE):
            usual = _usual(np.diff(seconds[first:last]))
            for start, stop in _split(seconds[first:last], UNUSUAL_PAUSE * usual):
                if stop - start > 1:
                    order = [index for *_, index in moments[first + start : first + stop]]
                    yield order, seconds[first + start : first + stop]


def _split(seconds: Float64s, longest: float) -> list[tuple[int, int]]:
    """Where runs without a longer pause begin and end."""
    edges = [0, *(np.flatnonzero(np.diff(seconds) > longest) + 1).tolist(), len(seconds)]
    return list(itertools.pairwise(edges))


def _usual(pauses: Float64s) -> float:
    """The median pause; cameras count whole seconds, so none is shorter."""
    return max(float(np.median(pauses)), 1.0) if pauses.size else 1.0


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


def find_temperature(shot: Shot, illuminant: Float64s) -> TemperatureTint | None:
    """What Adobe's programs show for a light; None if the camera's matrices are not known, or fit no such light."""
    try:
        return None if shot.matrices is None else dng_temperature(illuminant, shot.matrices)
    except ParameterError:
        return None


def describe(balance: Balance) -> dict[str, Any]:
    """One line of `--json` and `--csv`. Keys that are not known are None."""
    shot = balance.shot
    temperature = find_temperature(shot, balance.illuminant)
    angle = None if shot.as_shot is None else float(angular_error(balance.illuminant, shot.as_shot))
    return {
        "file": printable(str(shot.path)),
        "camera": shot.camera,
        "time": None if shot.time is None else shot.time.isoformat(sep=" "),
        "illuminant": _rounded(balance.illuminant),
        "gains": _rounded(gains(balance.illuminant)),
        "kelvin": None if temperature is None else round(temperature.kelvin),
        "tint": None if temperature is None else round(temperature.tint),
        "uncertainty_deg": _rounded(balance.uncertainty),
        "uncertain": balance.uncertain,
        "by": balance.by,
        "roll": balance.roll,
        "camera_gains": None if shot.as_shot is None else _rounded(gains(shot.as_shot)),
        "camera_angle_deg": _rounded(angle),
    }


def _rounded(value: Float64s | float | None) -> Any:
    if value is None:
        return None
    return [round(float(each), 6) for each in value] if isinstance(value, np.ndarray) else round(value, 4)


def srgb_matrix(shot: Shot, illuminant: Float64s) -> Float64s | None:
    """From white-balanced camera RGB to linear sRGB in this light; None where its temperature is not known."""
    temperature = find_temperature(shot, illuminant)
    if temperature is None or shot.matrices is None:
        return None
    return camera_to_srgb(shot.matrices.matrix(temperature.kelvin), illuminant)


def show_pair(shot: Shot, illuminant: Float64s) -> tuple[Pixels, Pixels]:
    """A photograph with a thumbnail, before and after, as a viewer would hold it: for a contact sheet."""
    if shot.thumbnail is None:
        raise ParameterError(f"{shot.path}: has no thumbnail; make one with Shot.with_thumbnail")
    rgb, mask, clipped = shot.thumbnail
    matrix = srgb_matrix(shot, illuminant)
    before, after = (
        render(rgb.astype(np.float32), mask, light, matrix, clipped) for light in (shot.as_shot, illuminant)
    )
    return turn(before, shot.orientation), turn(after, shot.orientation)


# What is written for one photograph -----------------------------------------------------------------------------------


def write_preview(balance: Balance, place: Path) -> Path:
    """A rendered picture of up to one and a half megapixels."""
    image = balance.read(pixels=PREVIEW_PIXELS).image
    matrix = srgb_matrix(balance.shot, balance.illuminant)
    picture = render(image.rgb, image.mask, balance.illuminant, matrix, image.clipped)
    return write_picture(place, turn(picture, balance.shot.orientation))


def write_adobe(balance: Balance, place: Path) -> Path:
    found = _named(balance.path, dng_temperature, balance.illuminant, _matrices(balance, "--xmp"))
    kelvin, tint = (
        round(min(max(value, low), high))
        for value, (low, high) in zip(found, (adobe.KELVINS, adobe.TINTS), strict=True)
    )
    source, existing = _existing(place, adobe.path_beside(balance.path))
    return write_file(place, _named(source, adobe.set_white_balance, existing, kelvin, tint))


def write_rawtherapee(balance: Balance, place: Path) -> Path:
    found = _named(balance.path, rawtherapee_temperature, balance.illuminant, _matrices(balance, "--pp3"))
    source, existing = _existing(place, rawtherapee.path_beside(balance.path))
    return write_file(place, _named(source, rawtherapee.set_white_balance, existing, found.kelvin, found.green))


def write_darktable(balance: Balance, place: Path) -> Path:
    source, existing = _existing(place, darktable.path_beside(balance.path))
    return write_file(place, _named(source, darktable.set_multipliers, existing, gains(balance.illuminant)))


def write_dng(balance: Balance, place: Path) -> Path:
    return write_file(place, _named(balance.path, dng.replace_neutral, _read(balance.path), balance.illuminant))


@dataclass(frozen=True)
class Output:
    """One kind of file that is written for a photograph."""

    name: Callable[[Path], str]
    write: Callable[[Balance, Path], Path]


OUTPUTS = {
    # No camera names its files so, and no later run takes them for photographs.
    "preview": Output(lambda path: f"{path.name}{OWN_PREVIEWS[0]}", write_preview),
    "png": Output(lambda path: f"{path.name}{OWN_PREVIEWS[1]}", write_preview),
    "xmp": Output(lambda path: adobe.path_beside(path).name, write_adobe),
    "pp3": Output(lambda path: rawtherapee.path_beside(path).name, write_rawtherapee),
    "darktable": Output(lambda path: darktable.path_beside(path).name, write_darktable),
    "dng": Output(lambda path: f"{path.stem}.dng", write_dng),
}


class Plan(NamedTuple):
    """Where everything goes, before anything is written."""

    places: dict[tuple[Path, str], Path]
    """By photograph and kind of file."""
    refused: list[str]
    """What will not be written, and why."""


def plan_outputs(paths: Sequence[Path], kinds: Iterable[str], out: Path | None) -> Plan:
    """The places of all outputs, in a folder or beside each photograph.

    No output takes the place of a photograph of the set, and none that of another: both would be lost.
    """
    originals = {_identity(path) for path in paths}
    wanted: dict[tuple[object, str], list[tuple[Path, str, Path]]] = {}
    for kind in kinds:
        for path in paths:
            place = (out or path.parent) / OUTPUTS[kind].name(path)
            wanted.setdefault(_identity(place), []).append((path, kind, place))
    plan = Plan({}, [])
    for identity, claims in wanted.items():
        for path, kind, place in claims:
            if identity in originals:
                plan.refused.append(
                    f"{path}: {place} is a photograph of this set, not to be touched; give another --out DIR"
                )
            elif len(claims) > 1:
                others = ", ".join(str(other) for other, what, _ in claims if (other, what) != (path, kind))
                plan.refused.append(
                    f"{path}: {place} is wanted for {others} too; do them one by one, each with its --out DIR"
                )
            else:
                plan.places[path, kind] = place
    return plan


def check_places(places: Iterable[Path], photographs: Iterable[Path], overwrite: bool) -> None:
    """Raise a `WriteError` unless all these files, for the whole set, may be written."""
    originals = {_identity(path) for path in photographs}
    for place in places:
        if _identity(place) in originals:
            raise WriteError(f"{place}: is a photograph of this set, not to be touched; give another --out DIR")
        check_free(place, overwrite)


def check_free(place: Path, overwrite: bool) -> Path:
    if os.path.exists(place) and not overwrite:
        raise WriteError(f"{place}: exists already; give --overwrite, or --out DIR for another place")
    return place


def write_output(balance: Balance, kind: str, place: Path, overwrite: bool) -> Path:
    """Write one kind of file for a photograph; what exists stays unless told otherwise."""
    try:
        return OUTPUTS[kind].write(balance, check_free(place, overwrite))
    except OSError as error:
        raise WriteError(f"{place}: cannot be written: {error.strerror or error}") from error


def _identity(path: Path) -> tuple[object, str]:
    """What two paths have in common that would be one file, on a disk where case does not count too."""
    folder, name = os.path.split(os.path.realpath(path))
    try:
        status = os.stat(folder)
    except OSError:  # it is still to be made
        return folder, name.casefold()
    return (status.st_dev, status.st_ino), name.casefold()


def _matrices(balance: Balance, option: str) -> CameraMatrices:
    if balance.shot.matrices is None:
        raise ParameterError(f"{balance.path}: {option} needs the camera's matrices, and none are known; use --json")
    return balance.shot.matrices


def _named(path: Path, function: Callable[..., Result], *arguments: Any) -> Result:
    """What a function makes; where it cannot, the error names the file."""
    try:
        return function(*arguments)
    except C5Error as error:
        raise type(error)(f"{path}: {error}") from None


def _existing(place: Path, beside: Path) -> tuple[Path, bytes | None]:
    """What a sidecar holds already: the one beside the photograph, where its programs look, else the one replaced."""
    for path in (beside, place):
        if os.path.exists(path):
            return path, _read(path)
    return place, None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror or error}") from error
