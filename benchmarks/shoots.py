"""What sets do for shoots whose lights are known: python benchmarks/shoots.py [MODEL.c5 FFCC MATRICES.csv].

Rendered shoots, and rolls in which every photograph has a light of its own, seven minutes after the last. With a
checkout of google/ffcc, the scenes of NUS that several cameras took are used instead. --tune tunes constants on other
shoots than the reported ones.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from timing import show

from c5.choices import Fallback
from c5.color import Bools, Float64s, angular_error, as_illuminant
from c5.colorimetry.matrices import CameraMatrices, read_matrices
from c5.datasets import read_samples
from c5.demo import LIGHTS, SCENE_LIGHTS, SCENES, VirtualCamera, render_photo
from c5.demo.shoots import BRIGHTNESS, SHOOTS, Frame, render_shoot
from c5.histograms import histogram
from c5.image import LinearImage
from c5.metrics import bound_errors
from c5.model import Model, load_model
from c5.photos.balancing import Balance
from c5.photos.groups import Sets, balance_sets
from c5.photos.photo import Photo
from c5.photos.roll_building import Roll
from c5.photos.shared_lights import from_common, to_common

SIZE, PHOTOGRAPHS = (128, 192), 120
SEEDS, TUNING = range(20), range(1000, 1010)
"""Seeds of the reported shoots, and of those on which the constants of `c5.photos.shared_lights` are chosen."""
ROLL_LENGTH = 24
NUS_SCENES, ROLL, FAR_DEG = 20, 20, 3.0
ALIKE = 0.85
"""Least likeness of photographs of one scene by two cameras."""

SINGLE = "single photographs"
KINDS = [*SHOOTS, SINGLE]

NUS_CAMERAS = {
    "Canon1DsMkIII": "Canon-EOS-1Ds-Mark-III", "Canon600D": "Canon-EOS-600D", "FujifilmXM1": "Fujifilm-X-M1",
    "NikonD5200": "Nikon-D5200", "OlympusEPL6": "Olympus-E-PL6", "PanasonicGX1": "Panasonic-DMC-GX1",
    "SamsungNX2000": "Samsung-NX2000", "SonyA57": "Sony-SLT-A57",
}  # fmt: skip


class Shot(NamedTuple):
    """A photograph, its light and its truth."""

    photo: Photo
    light: str
    truth: Float64s


class Shoot(NamedTuple):
    """The photographs of a shoot, and how each camera sees each of its lights."""

    shots: list[Shot]
    truths: dict[tuple[str, str], Float64s]


class Result(NamedTuple):
    """Results of one shoot, without sets and with them: angles in degrees of each photograph, and its groups."""

    errors: Float64s  # (2, photographs)
    spreads: Float64s  # (2, photographs)
    whites: Float64s  # (2, photographs)
    inside: Bools  # (2, photographs), whether the error is below its bound
    groups: int
    wide: int
    """Groups with lights that are further apart than 3 degrees."""
    alone: int


def estimate(model: Model, shots: list[Shot], rng: np.random.Generator) -> list[Balance]:
    """The balance of each photograph alone; the roll of a camera is some of its photographs."""
    profiles = {}
    for camera in sorted({str(shot.photo.camera) for shot in shots}):
        own = [shot.photo.histograms for shot in shots if shot.photo.camera == camera and shot.photo.histograms]
        profiles[camera] = model.calibrate_histograms([own[index] for index in rng.permutation(len(own))[:ROLL]])
    balances = []
    for shot in shots:
        assert shot.photo.histograms is not None
        found = model.estimate_histogram(shot.photo.histograms, profiles[str(shot.photo.camera)])
        photo = replace(shot.photo, histograms=None)
        balances.append(Balance(photo, found.illuminant, found.uncertainty, "model", Roll(), spread=found.covariance))
    return balances


def measure(shoot: Shoot, balances: list[Balance]) -> Result:
    """What grouping does to the estimates of a shoot."""
    grouped, _ = balance_sets(balances, Sets(), Fallback.NONE, str)
    truth = np.array([shot.truth for shot in shoot.shots])
    errors = [angular_error(np.array([each.illuminant for each in lights]), truth) for lights in (balances, grouped)]
    spreads = [spread_within(shoot, lights) for lights in (balances, grouped)]
    whites = [spread_of_white(shoot, lights) for lights in (balances, grouped)]
    bounds = [bound_errors([each.uncertainty or 0 for each in lights]) for lights in (balances, grouped)]
    inside = np.array(errors) < bounds
    lights: dict[str, set[str]] = {}
    for shot, each in zip(shoot.shots, grouped, strict=True):
        lights.setdefault(str(each.group), set()).add(shot.light)
    wide = sum(widest(shoot, found) > FAR_DEG for found in lights.values())
    sizes = [sum(each.group == name for each in grouped) for name in lights]
    return Result(np.array(errors), np.array(spreads), np.array(whites), inside, len(lights), wide, sizes.count(1))


def spread_within(shoot: Shoot, balances: list[Balance]) -> Float64s:
    """How far each light is from the mean of all photographs in the same light, as the matrices show it."""
    eyes = balances[0].photo.need_matrices()
    return _spread(
        shoot, [from_common(to_common(each.illuminant, each.photo.need_matrices()), eyes) for each in balances]
    )


def spread_of_white(shoot: Shoot, balances: list[Balance]) -> Float64s:
    """The same for the balanced color of white: whether pictures look alike, however good the matrices are."""
    return _spread(
        shoot,
        [as_illuminant(shot.truth / each.illuminant) for shot, each in zip(shoot.shots, balances, strict=True)],
    )


def _spread(shoot: Shoot, colors: list[Float64s]) -> Float64s:
    seen = np.array(colors)
    spread = np.empty(len(seen))
    names = np.array([shot.light for shot in shoot.shots])
    for name in set(names.tolist()):
        spread[names == name] = angular_error(seen[names == name], seen[names == name].mean(axis=0))
    return spread


def widest(shoot: Shoot, lights: set[str]) -> float:
    """The largest angle between two lights, averaged over the cameras that saw both."""
    widest = 0.0
    cameras = {camera for _, camera in shoot.truths}
    for one in lights:
        for two in lights:
            angles = [
                angular_error(shoot.truths[one, camera], shoot.truths[two, camera])
                for camera in cameras
                if (one, camera) in shoot.truths and (two, camera) in shoot.truths
            ]
            widest = max(widest, float(np.mean(angles)))
    return widest


def rendered(model: Model, name: str, seed: int) -> tuple[Shoot, list[Balance]]:
    rng = np.random.default_rng([18, seed, KINDS.index(name)])
    shots = []
    truths: dict[tuple[str, str], Float64s] = {}
    matrices: dict[str, CameraMatrices] = {}
    frames = list(render_singles(rng) if name == SINGLE else render_shoot(name, PHOTOGRAPHS, rng, SIZE))
    cameras = {frame.camera.name: frame.camera for frame in frames}
    for each in cameras.values():
        matrices[each.name] = CameraMatrices(each.name, each.color_matrix(2856), each.color_matrix(6504))
    for index, frame in enumerate(frames):
        camera, light = frame.camera.name, f"{frame.light.name} {id(frame.light)}"
        truths |= {(light, other.name): other.illuminant(frame.light.spectrum) for other in cameras.values()}
        photo = Photo(
            Path(f"{index:04d}"), camera, frame.time, None, frame.photo.illuminant, matrices[camera], 1,
            histograms=histogram(frame.photo.image, model.grid), exposure=frame.exposure,
        )  # fmt: skip
        shots.append(Shot(photo, light, frame.photo.illuminant))
    return Shoot(shots, truths), estimate(model, shots, rng)


def render_singles(rng: np.random.Generator) -> Iterator[Frame]:
    camera = VirtualCamera.random(rng)
    for index in range(ROLL_LENGTH):
        scene = str(rng.choice(list(SCENES)))
        light = LIGHTS[str(rng.choice(SCENE_LIGHTS[scene]))](rng)
        exposure = round(BRIGHTNESS[light.family] + float(rng.uniform(-1, 1)), 1)
        time = datetime(2026, 6, 20, 10) + timedelta(minutes=7 * index)
        yield Frame(render_photo(camera, scene, light, rng, SIZE), light, camera, time, exposure)


def nus(model: Model, folder: Path, tables: Path) -> list[tuple[Shoot, list[Balance]]]:
    """Shoots of twenty scenes each. The times are made up: an hour from scene to scene."""
    matrices = read_matrices(tables)
    samples = [sample for sample in read_samples(folder) if sample.dataset == "NUS"]
    shots, pictures = [], []
    for sample in samples:
        image = sample.read()
        pictures.append(draw(image, sample.illuminant))
        photo = Photo(
            Path(sample.name), sample.camera, None, None, sample.illuminant, matrices[NUS_CAMERAS[sample.camera]], 1,
            histograms=histogram(image, model.grid),
        )  # fmt: skip
        shots.append(Shot(photo, "", sample.illuminant))
    scenes = match(np.array(pictures), np.array([sample.camera for sample in samples]))
    rng = np.random.default_rng(0)
    order = [scenes[index] for index in rng.permutation(len(scenes))]
    shoots = []
    for start in range(0, len(order) - NUS_SCENES + 1, NUS_SCENES):
        chosen = []
        for stop, scene in enumerate(order[start : start + NUS_SCENES]):
            for place, index in enumerate(scene):
                time = datetime(2026, 6, 20, 8) + timedelta(hours=stop, seconds=30 * place)
                photo = replace(shots[index].photo, time=time)
                chosen.append(Shot(photo, str(stop), shots[index].truth))
        truths = {(shot.light, str(shot.photo.camera)): shot.truth for shot in chosen}
        shoots.append((Shoot(chosen, truths), estimate(model, chosen, rng)))
    return shoots


def draw(image: LinearImage, illuminant: Float64s) -> Float64s:
    """(2, 32, 48) the brightness and the redness of a picture, to recognize a scene by."""
    rgb, mask = image.rgb / illuminant, image.mask & (image.rgb.sum(axis=-1) > 0)
    if rgb.shape[0] > rgb.shape[1]:
        rgb, mask = np.rot90(rgb), np.rot90(mask)
    light = rgb[:256, :384] + 1e-3 * np.percentile(rgb, 99)
    mask = mask[:256, :384]
    logs = np.stack([np.log(light.mean(axis=-1)), np.log(light[..., 0] / light[..., 1])])
    cells = (logs * mask).reshape(2, 32, 8, 48, 8).sum(axis=(2, 4))
    share = mask.reshape(32, 8, 48, 8).sum(axis=(1, 3))
    mean = cells.sum(axis=(1, 2), keepdims=True) / share.sum()
    return np.asarray(np.where(share > 20, cells / np.maximum(share, 1), mean))


def match(pictures: Float64s, cameras: NDArray[np.str_]) -> list[list[int]]:
    """The scenes that at least four cameras took. The numbers that FFCC gives to scenes are those of the files."""

    def unit(part: Float64s) -> Float64s:
        flat = part.reshape(len(part), 2, -1)
        flat = flat - flat.mean(axis=-1, keepdims=True)
        flat = (flat / np.linalg.norm(flat, axis=-1, keepdims=True).clip(1e-6) * [[1], [0.7]]).reshape(len(part), -1)
        return np.asarray(flat / np.linalg.norm(flat, axis=1, keepdims=True))

    likeness = np.full((len(pictures), len(pictures)), -1.0)
    middle = unit(pictures[:, :, 4:28, 8:40])
    for down, across in itertools.product(range(-4, 5, 2), range(-8, 9, 2)):
        moved = unit(pictures[:, :, 4 + down : 28 + down, 8 + across : 40 + across])
        np.maximum(likeness, middle @ moved.T, out=likeness)
    likeness = np.maximum(likeness, likeness.T)
    pairs = []
    for one, two in itertools.combinations(sorted(set(cameras.tolist())), 2):
        rows, columns = np.flatnonzero(cameras == one), np.flatnonzero(cameras == two)
        table = likeness[np.ix_(rows, columns)]
        for row, column in enumerate(table.argmax(axis=1).tolist()):
            if table[:, column].argmax() == row and table[row, column] > ALIKE:
                pairs.append((float(table[row, column]), int(rows[row]), int(columns[column])))
    scenes = {index: [index] for index in range(len(pictures))}
    for _, first, second in sorted(pairs, reverse=True):  # the most alike first, and one photograph of each camera
        one_scene, other = scenes[first], scenes[second]
        if not {*cameras[one_scene].tolist()} & {*cameras[other].tolist()}:
            one_scene += other
            scenes |= dict.fromkeys(other, one_scene)
    return [scene for index, scene in scenes.items() if scene[0] == index and len(scene) >= 4]


def know_lights(shoot: Shoot, balances: list[Balance]) -> list[Balance]:
    """The balances of a model that is right to a tenth of a degree: what sets cannot do better than."""
    return [
        replace(each, illuminant=shot.truth, uncertainty=0.1, spread=np.eye(2) * np.deg2rad(0.1) ** 2)
        for shot, each in zip(shoot.shots, balances, strict=True)
    ]


def row(name: str, results: list[Result]) -> list[str]:
    errors, spreads, whites, inside = (
        np.concatenate(parts, axis=1) for parts in zip(*(each[:4] for each in results), strict=True)
    )
    groups, wide, alone = (sum(counts) for counts in zip(*(each[4:] for each in results), strict=True))
    before, after = spreads.mean(axis=1)
    cells = [name, str(len(results)), str(errors.shape[1]), *(f"{value:.2f}" for value in errors.mean(axis=1))]
    cells += [f"{before:.2f}", f"{after:.2f}", f"{before / max(after, 1e-9):.1f}"]
    cells += [f"{value:.2f}" for value in whites.mean(axis=1)]
    cells += [f"{value:.0%}" for value in inside.mean(axis=1)]
    return [*cells, str(groups - alone), str(alone), str(wide)]


HEADINGS = [
    "shoot", "shoots", "photographs", "mean error", "with sets", "spread", "with sets", "falls by", "of white",
    "with sets", "below bound", "with sets", "groups", "alone", "wide",
]  # fmt: skip


def main(name: str | None = None, images: str | None = None, matrices: str | None = None) -> None:
    seeds = TUNING if name == "--tune" else SEEDS
    model = load_model(None if name == "--tune" else name)
    rows = []
    if images is None or matrices is None:
        for kind in KINDS:
            rows.append(row(kind, [measure(*rendered(model, kind, seed)) for seed in seeds]))
        show(f"Rendered shoots of {PHOTOGRAPHS} photographs, by {model.name}, degrees", HEADINGS, rows)
        return
    shoots = nus(model, Path(images), Path(matrices))
    rows.append(row("NUS", [measure(*shoot) for shoot in shoots]))
    rows.append(row("NUS, given the true lights", [measure(shoot, know_lights(shoot, each)) for shoot, each in shoots]))
    for _, balances in shoots:
        balances[:] = [replace(each, photo=replace(each.photo, time=None)) for each in balances]
    rows.append(row("NUS, without times", [measure(*shoot) for shoot in shoots]))
    show(f"Shoots of {NUS_SCENES} scenes of NUS, four to eight cameras a scene, degrees", HEADINGS, rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
