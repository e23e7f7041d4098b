"""The worst images of an evaluation, as a page to look at: how they look, and what they have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from c5.color import Bools, Float64s, rgb_to_uv
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.temperature import dng_temperature, show_kelvin
from c5.datasets.facts import match_name
from c5.evaluation.by_light import LIGHTS, kinds, warmth
from c5.evaluation.estimates import Outcome
from c5.image import LinearImage, shrink
from c5.io.files import write_file
from c5.metrics import bound_errors
from c5.parallel import in_parallel
from c5.photos.picture import Frame, develop, encode_picture, make_sheet

PIXELS = 64 * 64
"""Images are looked at in this many pixels."""
NEAR_GRAY = 0.1  # nats
"""Colors this close to a light are gray in it: about 3 degrees."""
ONE_HUE, LITTLE_GRAY, ABSENT = 0.9, 0.05, 0.1
"""Above the first an image is of one hue, below the second it has little gray, above the third much of it is lost."""


class Looks(NamedTuple):
    """What can be measured in an image whose light is known."""

    absent: float
    """The share of its pixels that do not count: clipped, black, or masked."""
    one_hue: float
    """From 0, colors of all hues, to 1, all colors on one side of gray: the length of their mean over their mean
    length, in log-chroma, relative to the light."""
    gray: float
    """The share of its pixels that count within `NEAR_GRAY` of the light."""
    gray_estimated: float
    """The same for the estimate."""


def measure_looks(image: LinearImage, illuminant: Float64s, estimate: Float64s) -> Looks:
    """How an image looks in its true light, and in an estimate of it."""
    small = shrink(image, PIXELS)
    counted = small.counts & (small.rgb > 0).all(axis=-1)
    absent = 1 - float(counted.mean())
    if not counted.any():
        return Looks(absent, 0.0, 0.0, 0.0)
    colors = rgb_to_uv(small.rgb[counted])
    away = colors - rgb_to_uv(illuminant)
    lengths = np.linalg.norm(away, axis=-1)
    one_hue = float(np.linalg.norm(away.mean(axis=0)) / max(lengths.mean(), NEAR_GRAY))
    estimated = np.linalg.norm(colors - rgb_to_uv(estimate), axis=-1) < NEAR_GRAY
    return Looks(absent, one_hue, float((lengths < NEAR_GRAY).mean()), float(estimated.mean()))


Facts = dict[str, Bools]
"""What is true of which images."""


def find_facts(tested: Sequence[Outcome], looks: Sequence[Looks]) -> Facts:
    """What may be true of the images of one dataset."""
    lights = np.array([rgb_to_uv(one.sample.illuminant) for one in tested])
    estimates = np.array([rgb_to_uv(one.estimate) for one in tested])
    cameras = np.array([one.sample.camera for one in tested])
    kind = np.empty(len(tested), dtype="<U9")
    for camera in set(cameras.tolist()):
        own = cameras == camera
        kind[own] = kinds(warmth(lights[own]))
    warmer = np.array([-1, 1]) @ (estimates - lights).T  # ln(r / b) of the estimate over that of the light
    greener = np.abs(np.array([1, 1]) @ (estimates - lights).T)
    absent, one_hue, gray, gray_estimated = np.array(looks).T
    facts = {f"light: {name}": kind == name for name in LIGHTS}
    facts |= {
        "estimated colder than it is": warmer < 0,
        "further off in green or magenta than in warmth": greener > np.abs(warmer),
        f"more than {ABSENT:.0%} of the pixels clipped, black or masked": absent > ABSENT,
        "colors of one hue": one_hue > ONE_HUE,
        f"less than {LITTLE_GRAY:.0%} of the pixels gray": gray < LITTLE_GRAY,
        "more pixels gray under the estimate than under the truth": gray_estimated > gray,
    }
    if all(one.uncertainty is not None for one in tested):
        unsure = np.array([one.uncertainty for one in tested], dtype=np.float64)
        errors = np.array([one.error for one in tested])
        facts["among the most uncertain tenth"] = unsure > np.quantile(unsure, 0.9)
        facts["beyond the 90 % bound"] = errors > bound_errors(unsure)
    return facts


def write_page(
    tested: Sequence[Outcome],
    folder: Path,
    *,
    count: int = 20,
    matrices: Mapping[str, CameraMatrices] | None = None,
    track: Callable[[Iterable[Outcome]], Iterable[Outcome]] = iter,
) -> Path:
    """Write worst.md, with a sheet of the worst images of each dataset beside it, and what they have in common.

    All images are read, since what is common among the worst may be common among all.
    """
    looks = {one.sample.name: seen for one, seen in in_parallel(_look, track(tested))}
    parts = ["# The worst images\n"]
    for dataset in sorted({one.sample.dataset for one in tested}):
        own = sorted((one for one in tested if one.sample.dataset == dataset), key=lambda one: -one.error)
        worst = own[:count]
        facts = find_facts(own, [looks[one.sample.name] for one in own])
        light = [next(name for name, true in facts.items() if true[index]) for index in range(len(worst))]
        frames = [
            _draw(one, name.removeprefix("light: "), matrices or {}) for one, name in zip(worst, light, strict=True)
        ]
        title = f"{dataset}: the {len(worst)} worst of {len(own)} images"
        name = re.sub(r"\W+", "-", dataset.lower()).strip("-") + "-worst.jpg"
        sheet = make_sheet(title, ["as the model sees it", "balanced by the estimate", "by the truth"], frames)
        write_file(folder / name, encode_picture(sheet, name))
        shares = [f"| {fact} | {true[:count].mean():.0%} | {true.mean():.0%} |" for fact, true in facts.items()]
        heads = [f"| | of the {len(worst)} worst | of all {len(own)} |", "|---|---|---|"]
        parts.append("\n".join([f"## {dataset}\n", *heads, *shares, "", f"![{title}]({name})\n"]))
    return write_file(folder / "worst.md", "\n".join(parts).encode())


def _look(one: Outcome) -> Looks:
    return measure_looks(one.sample.read(), one.sample.illuminant, one.estimate)


def _draw(one: Outcome, light: str, matrices: Mapping[str, CameraMatrices]) -> Frame:
    image, truth = one.sample.read(), one.sample.illuminant
    name = match_name(one.sample.camera, matrices)
    kelvin = "" if name is None else f" {show_kelvin(dng_temperature(truth, matrices[name]).kelvin)} K"
    bound = "" if one.uncertainty is None else f"   bound {bound_errors(one.uncertainty):.1f}°"
    caption = f"{one.error:.1f}°{bound}   {light}{kelvin}   {one.sample.name.partition('/')[2]}"
    return Frame([develop(image), develop(image, one.estimate), develop(image, truth)], caption)
