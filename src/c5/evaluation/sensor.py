"""How well methods know one sensor, from its labeled shots: by light, by what the profile is made of, shot by shot."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from c5.classical import METHODS
from c5.color import Float64s, angular_error, rgb_to_uv
from c5.colorimetry.adaptation import locate_light
from c5.colorimetry.matrices import CameraMatrices, pick_matrices
from c5.datasets import Sample
from c5.datasets.sample import ImageFile
from c5.errors import DataError, ParameterError
from c5.evaluation.worst import Looks, measure_looks
from c5.histograms import Histograms, histogram
from c5.image import LinearImage, shrink
from c5.model import Model, Profile
from c5.parallel import in_parallel
from c5.words import plural

FEWEST = 3
"""Shots that a report needs."""
COUNTS = (1, 4, 8, 20)
"""Numbers of images that profiles are made of."""
DRAWS, MOST_ESTIMATES = 8, 1500
"""How often those are drawn for each shot, unless that takes more estimates in all than this."""
BANDS = (0.0, 3000.0, 3800.0, 4800.0, 6500.0, np.inf)
"""Temperatures that separate kinds of light."""
PROBES = 12
"""Shots used to measure how far others move the estimates."""

ALONE = "model, image alone"
PROFILED = "model, profile of the other shots"


@dataclass(frozen=True, eq=False)
class Shot:
    """A labeled photograph, and what every method finds in it."""

    sample: Sample
    small: LinearImage
    histograms: Histograms
    profile: Profile
    """Of this shot alone."""
    found: dict[str, Float64s]
    """Illuminants by method."""
    matrices: CameraMatrices | None = None
    """Those in its file."""
    orientation: int = 1
    """How to turn it for a viewer, as in Exif."""

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.sample.name.rpartition("/")[2]

    @property
    def light(self) -> Float64s:
        return self.sample.illuminant

    def error(self, method: str) -> float:
        return float(angular_error(self.found[method], self.light))

    def looks(self, method: str) -> Looks:
        return measure_looks(self.small, self.light, self.found[method])


@dataclass(frozen=True, eq=False)
class Effect:
    """Errors with profiles of `count` images."""

    count: int
    errors: Float64s
    """(shots, draws), degrees."""


@dataclass(frozen=True, eq=False)
class Sensor:
    """What the shots of one camera show."""

    camera: str
    model: str
    shots: list[Shot]
    matrices: CameraMatrices | None
    effects: list[Effect]
    influence: Float64s
    """(shots,) degrees by which estimates move on average if a shot is left out of the profile."""

    @property
    def methods(self) -> list[str]:
        """The best first."""
        return sorted(self.shots[0].found, key=lambda method: float(self.errors(method).mean()))

    @property
    def gain(self) -> tuple[float, float, float]:
        """Degrees by which the profile lowers the mean error, and between which bounds: 95 % over shots."""
        gains = self.errors(ALONE) - self.errors(PROFILED)
        picked = np.random.default_rng(0).integers(len(gains), size=(2000, len(gains)))
        low, high = np.quantile(gains[picked].mean(axis=1), [0.025, 0.975])
        return float(gains.mean()), float(low), float(high)

    def errors(self, method: str) -> Float64s:
        return np.array([shot.error(method) for shot in self.shots])

    def kelvins(self) -> Float64s | None:
        """(shots,) the temperatures of the lights; None without matrices."""
        if self.matrices is None:
            return None
        try:
            return np.array([1e6 / locate_light(shot.light, self.matrices).mired for shot in self.shots])
        except ParameterError:
            return None

    def bands(self) -> dict[str, np.ndarray[tuple[int], np.dtype[np.intp]]]:
        """The shots in each kind of light: by temperature, or without matrices by thirds of warmth."""
        kelvins = self.kelvins()
        if kelvins is None:
            u, v = rgb_to_uv(np.array([shot.light for shot in self.shots])).T
            place = np.argsort(np.argsort(u - v)) * 3 // len(self.shots)
            return {name: np.flatnonzero(place == index) for index, name in enumerate(("warm", "between", "cold"))}
        found = {}
        for low, high in itertools.pairwise(BANDS):
            name = f"{low:.0f} to {high:.0f} K" if low else f"below {high:.0f} K"
            name = f"above {low:.0f} K" if high == np.inf else name
            found[name] = np.flatnonzero((kelvins >= low) & (kelvins < high))
        return found


def examine_sensor(
    samples: Sequence[Sample],
    model: Model,
    rng: np.random.Generator,
    camera: str | None = None,
    matrices: Mapping[str, CameraMatrices] | None = None,
    track: Callable[[Sequence[Sample]], Iterable[Sample]] = iter,
) -> Sensor:
    """Run every method on the shots of one camera, the model with profiles of the other shots.

    `matrices` by camera take precedence over those in the files.
    """
    own = _of_one_camera(samples, camera)
    shots = [shot for _, shot in in_parallel(lambda sample: _take(sample, model), track(own))]
    profiles = [shot.profile for shot in shots]
    for index, shot in enumerate(shots):
        others = model.pool([profile for other, profile in enumerate(profiles) if other != index][: _most(model)])
        shot.found[PROFILED] = model.estimate_histogram(shot.histograms, others).illuminant
    known = pick_matrices(matrices or {}, own[0].camera) or shots[0].matrices
    effects = [
        _measure_effect(shots, model, count, rng) for count in COUNTS if count < min(len(shots), _most(model) + 1)
    ]
    return Sensor(own[0].camera, model.name, shots, known, effects, _measure_influence(shots, model, rng))


def _of_one_camera(samples: Sequence[Sample], camera: str | None) -> list[Sample]:
    cameras = sorted({sample.camera for sample in samples})
    if camera is not None and camera not in cameras:
        raise DataError(f"no shot is from {camera}; they are from {', '.join(cameras)}")
    if camera is None and len(cameras) > 1:
        raise DataError(f"a report is of one sensor, and these are {', '.join(cameras)}; choose one of them")
    own = [sample for sample in samples if camera in (None, sample.camera)]
    if len(own) < FEWEST:
        raise DataError(f"{plural(len(own), 'labeled shot')}; a report needs {FEWEST}")
    return own


def _take(sample: Sample, model: Model) -> Shot:
    photograph = sample.pixels.read_photograph() if isinstance(sample.pixels, ImageFile) else None
    image = sample.read() if photograph is None else photograph.image
    small = shrink(image)
    counted = histogram(image, model.grid)
    found = {name: np.asarray(method(small)) for name, method in METHODS.items()}
    found[ALONE] = model.estimate_histogram(counted).illuminant
    told = () if photograph is None else (photograph.matrices, photograph.orientation)
    return Shot(sample, small, counted, model.calibrate_histograms([counted]), found, *told)


def _most(model: Model) -> int:
    return model.takes(10**6)


def _measure_effect(shots: list[Shot], model: Model, count: int, rng: np.random.Generator) -> Effect:
    draws = max(1, min(DRAWS, MOST_ESTIMATES // (len(shots) * len(COUNTS))))
    errors = np.empty((len(shots), draws))
    for index, shot in enumerate(shots):
        others = np.delete(np.arange(len(shots)), index)
        for draw in range(draws):
            chosen = rng.choice(others, count, replace=False)
            profile = model.pool([shots[one].profile for one in chosen])
            errors[index, draw] = angular_error(
                model.estimate_histogram(shot.histograms, profile).illuminant, shot.light
            )
    return Effect(count, errors)


def _measure_influence(shots: list[Shot], model: Model, rng: np.random.Generator) -> Float64s:
    """How far the estimates of a few shots move if one other is left out of the profile."""
    profiles = [shot.profile for shot in shots]
    if len(profiles) > _most(model):
        return np.zeros(len(shots))
    whole = model.pool(profiles)
    probes = [shots[index] for index in rng.permutation(len(shots))[:PROBES]]
    before = [model.estimate_histogram(probe.histograms, whole).illuminant for probe in probes]
    moved = np.zeros(len(shots))
    for index in range(len(shots)):
        rest = model.pool([profile for other, profile in enumerate(profiles) if other != index])
        if all(np.array_equal(one, other) for one, other in zip(rest.features, whole.features, strict=True)):
            continue
        after = [model.estimate_histogram(probe.histograms, rest).illuminant for probe in probes]
        moved[index] = float(np.mean([angular_error(a, b) for a, b in zip(after, before, strict=True)]))
    return moved


MOST_GAP, ENOUGH, TARGET = 55.0, 2, 20
"""The largest gap between lights in mireds, the shots that a kind of light needs, and shots in all."""
WARMEST, COLDEST = 2700.0, 7500.0
GREEN = 12.0
"""From this tint on, a light is off the curve."""
SOURCES = {
    2600: "candles and dimmed bulbs",
    3400: "light bulbs and warm LEDs",
    4300: "tubes, LEDs and the last hour of sun",
    5600: "sunlight",
    6900: "an overcast sky",
    100000: "open shade under a blue sky",
}
"""Sources of light below these temperatures, in kelvin."""


def advise(sensor: Sensor) -> list[str]:
    """What to photograph next, the most useful first."""
    kelvins, words = sensor.kelvins(), []
    if kelvins is not None:
        ordered = np.sort(np.clip(kelvins, 1500, 25000))
        mireds = 1e6 / ordered
        for index in np.argsort(-np.abs(np.diff(mireds)))[:2]:
            if abs(mireds[index] - mireds[index + 1]) > MOST_GAP:
                middle = 2e6 / (mireds[index] + mireds[index + 1])
                words.append(
                    f"No light between {ordered[index]:.0f} and {ordered[index + 1]:.0f} K: add {_name_light(middle)}."
                )
        if ordered[0] > WARMEST:
            words.append(f"Nothing is warmer than {ordered[0]:.0f} K: add {_name_light(2400)}.")
        if ordered[-1] < COLDEST:
            words.append(f"Nothing is colder than {ordered[-1]:.0f} K: add {_name_light(9000)}.")
        if sensor.matrices is not None:
            places = [locate_light(shot.light, sensor.matrices) for shot in sensor.shots]
            if max(abs(place.tint) for place in places) < GREEN:
                words.append("Every light is near the curve of daylight and bulbs: add greenish tubes and cheap LEDs.")
    bands = sensor.bands()
    thin = [name for name, own in bands.items() if own.size < ENOUGH]
    if thin and kelvins is not None:
        words.append(f"Fewer than {ENOUGH} shots in some lights ({', '.join(thin)}): errors there are not known yet.")
    errors = sensor.errors(PROFILED)
    worst = max((own for own in bands.values() if own.size >= ENOUGH), key=lambda own: errors[own].mean(), default=None)
    if worst is not None and errors[worst].mean() > 1.4 * errors.mean():
        name = next(name for name, own in bands.items() if own is worst)
        words.append(f"Errors are largest at {name}, {errors[worst].mean():.1f}° on average: add scenes there.")
    if len(sensor.shots) < TARGET:
        more = TARGET - len(sensor.shots)
        words.append(f"{plural(more, 'more shot')} would make {TARGET}; beyond that, a profile hardly changes.")
    one_hue = [shot for shot in sensor.shots if shot.looks(PROFILED).one_hue > 0.9]
    if len(one_hue) > len(sensor.shots) / 3:
        words.append("Many shots show one color only: photograph scenes with colors of all hues.")
    return words or ["The lights are covered well. Photograph what your users will."]


def _name_light(kelvin: float) -> str:
    return next(name for limit, name in SOURCES.items() if kelvin < limit)
