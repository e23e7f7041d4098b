"""What to make from which photograph: ways to draw a source, a camera and a light.

Only what is passed in is used, and every made sample names all that went into it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache, cached_property
from itertools import count as count_up
from itertools import islice
from typing import NamedTuple, cast

import numpy as np

from c5.augmentation.illuminants import CameraLights, chromaticity, cluster, describe
from c5.augmentation.mapping import MappedImage
from c5.color import Float64s, angular_error, as_illuminant, rgb_to_uv, uv_to_rgb
from c5.colorimetry.matrices import COOLEST, HOTTEST, CameraMatrices
from c5.datasets import Sample
from c5.datasets.facts import all_names, full_name, leave_out, match_name
from c5.errors import DataError, DataWarning, ParameterError
from c5.image import Crop, LinearImage, shrink

GROUP_KELVIN = 250.0
"""Sources are drawn uniformly over groups of temperature this wide."""

FARTHEST_DEG = 5.0
"""A light farther than this from every known light is rejected."""

FEWEST_COUNTING = 0.1
"""An image is rejected when a smaller part of its pixels counts."""

MOST_LOST = 0.1
"""An image is rejected when a larger part of its pixels falls out of the target camera's gamut."""

PATIENCE = 1000
"""Rejections in a row after which something must be wrong with the data."""

THUMBNAIL_PIXELS = 1500

NEIGHBORS = 15
"""K. The paper does not give its own."""

SPREAD = (0.7, 1.0)
"""lambda_r and lambda_g: how far a light may move along the curve and off it, in standard deviations of the
neighbors."""

SMALLEST_CROP = 0.5
"""The sides of a random crop are at least this part of the image."""

CLUSTERS = 10
"""Clusters of the lights of a camera, for `CLUSTERING`."""

BEYOND = 0.2
"""How far a virtual camera may lie beyond one of its two cameras, as a part of their distance."""

JITTER_MIRED = 15.0
"""Standard deviation of the light's temperature about the source's, for `CATALOG`."""

IMAGES_PER_CAMERA = 20
"""Images made for one camera of `VIRTUAL` or `CATALOG` before the next is drawn: a roll needs several."""


class Augmentation(Enum):
    """How new images are made from photographs."""

    PAPER = "paper"
    """Into another camera's colors, lit from a cubic through its lights, near the source's temperature."""
    SAMPLING = "sampling"
    """Lit by the light of another photograph of the same camera (Fourure et al.)."""
    CLUSTERING = "clustering"
    """The same, with clusters of lights equally likely (Lou et al.)."""
    VIRTUAL = "virtual"
    """Into a camera between two cameras, or a little beyond one of them."""
    CATALOG = "catalog"
    """Into any camera with known matrices."""


def augment(
    samples: Sequence[Sample],
    method: Augmentation,
    count: int,
    rng: np.random.Generator,
    *,
    targets: Sequence[Sample] | None = None,
    matrices: Mapping[str, CameraMatrices] | None = None,
    exclude: frozenset[str] = frozenset(),
    via_xyz: bool = True,
    dataset: str = "augmented",
) -> Iterator[Sample]:
    """`count` made images.

    `samples` are the photographs to make images from, `targets` those whose cameras and lights are used (default: the
    same ones). Nothing from a camera of `exclude`, under any of its names, is used. Without `via_xyz` the source
    camera's colors stay as they are and only the light changes: the paper's ablation.
    """
    if count < 1:
        raise ParameterError(f"at least 1 image must be asked for, not {count}")
    material = Material.gather(samples, samples if targets is None else targets, matrices or {}, exclude)
    if method is Augmentation.PAPER:
        material = material.calibrated()
    drawn = draw(material, method, rng, via_xyz=via_xyz)
    for number, sample in enumerate(islice(_reject_images(drawn), count)):
        yield replace(sample, name=f"{dataset}/{method.value}/{number:06d}", dataset=dataset)


def draw(
    material: Material, method: Augmentation, rng: np.random.Generator, *, via_xyz: bool = True
) -> Iterator[Sample]:
    """An endless stream of made samples; no pixel is read. Proposals with an impossible light are rejected."""
    rejected = 0
    for number, made in enumerate(PROPOSERS[method](material, rng)):
        source = made.source
        crop = Crop.random(rng, SMALLEST_CROP)
        if not (made.light > 0).all() or made.distance_deg > FARTHEST_DEG:
            rejected += 1
            if rejected >= PATIENCE:
                raise DataError(f"{PATIENCE} lights in a row lie far from all that are known; check the labels")
            continue
        rejected = 0
        illuminant = as_illuminant(made.light)
        matrix, ccm = (made.matrix, made.ccm) if via_xyz else (np.eye(3), source.ccm)
        yield Sample(
            MappedImage(source.pixels, matrix, source.illuminant, illuminant, crop),
            illuminant,
            camera=made.camera,
            dataset="augmented",
            name=f"augmented/{method.value}/draw {number}",
            scene=f"{source.dataset}/{source.scene}" if source.scene else None,
            ccm=ccm,
            cameras=made.cameras,
            sources=made.sources,
        )


def _reject_images(drawn: Iterable[Sample]) -> Iterator[Sample]:
    """The images in which enough can be seen, judged by a small copy of each source, which is kept."""
    thumbnails: dict[int, LinearImage] = {}
    rejected = 0
    for sample in drawn:
        pixels = cast(MappedImage, sample.pixels)
        source = pixels.source
        if id(source) not in thumbnails:
            thumbnails[id(source)] = _make_thumbnail(source.read())
        thumbnail = thumbnails[id(source)]
        before, after = pixels.crop.cut(thumbnail).counts, pixels.apply(thumbnail).counts
        if before.mean() < FEWEST_COUNTING or after.sum() < (1 - MOST_LOST) * before.sum():
            rejected += 1
            if rejected >= PATIENCE:
                raise DataError(f"{PATIENCE} images in a row are too dark, clipped or out of gamut; check the matrices")
            continue
        rejected = 0
        yield sample


def _make_thumbnail(image: LinearImage) -> LinearImage:
    """An image reduced to every n-th pixel."""
    small = shrink(image)
    step = max(1, round((small.mask.size / THUMBNAIL_PIXELS) ** 0.5))
    every = (slice(step // 2, None, step), slice(step // 2, None, step))
    return LinearImage(small.rgb[every].copy(), small.mask[every].copy(), small.clipped[every].copy())


class Proposal(NamedTuple):
    """What a method proposes to make."""

    source: Sample
    camera: str
    light: Float64s
    """(3,) RGB of any length; rejected unless positive."""
    matrix: Float64s
    """(3, 3) the source's balanced RGB to the camera's."""
    ccm: Float64s | None
    """(3, 3) the camera's balanced RGB to linear sRGB."""
    cameras: frozenset[str]
    sources: frozenset[str]
    distance_deg: float = 0.0
    """Distance from known lights."""


@dataclass(frozen=True, eq=False)
class Material:
    """What a method may use."""

    sources: list[Sample]
    targets: list[Sample]
    matrices: Mapping[str, CameraMatrices]
    temperatures: dict[str, float] = field(default_factory=dict)

    @classmethod
    def gather(
        cls,
        sources: Sequence[Sample],
        targets: Sequence[Sample],
        matrices: Mapping[str, CameraMatrices],
        exclude: frozenset[str] = frozenset(),
    ) -> Material:
        """All but excluded cameras and those with their matrices: makers sell one sensor under several names."""
        barred = {full_name(camera) for camera in exclude}

        def allowed(samples: Sequence[Sample]) -> list[Sample]:
            kept = [sample for sample in samples if barred.isdisjoint(map(full_name, sample.cameras))]
            if not kept:
                raise ParameterError("no photograph is left to augment; give others, or exclude fewer cameras")
            return kept

        return cls(allowed(sources), allowed(targets), leave_out(matrices, exclude))

    def calibrated(self) -> Material:
        """Only photographs of cameras with matrices, unless no camera has any: that raises an error later."""
        sources, targets = ([s for s in each if self.is_calibrated(s)] for each in (self.sources, self.targets))
        if not sources or not targets:
            return self
        lost = {s.camera for s in (*self.sources, *self.targets)} - {s.camera for s in (*sources, *targets)}
        if lost:
            names = ", ".join(sorted(lost))
            warnings.warn(f"nothing is made of {names}: no matrices of it are known", DataWarning, stacklevel=3)
        return Material(sources, targets, self.matrices)

    def is_calibrated(self, sample: Sample) -> bool:
        return match_name(sample.camera, self.matrices) is not None

    def find_calibration(self, sample: Sample) -> CameraMatrices:
        name = match_name(sample.camera, self.matrices)
        if name is None:
            raise DataError(f"{sample.camera}: no matrices of this camera are known; give matrices=read_matrices(FILE)")
        return self.matrices[name]

    def measure_temperatures(self, samples: Sequence[Sample]) -> Float64s:
        """(n,) in kelvin."""
        unknown = [sample for sample in samples if sample.name not in self.temperatures]
        for group in split_by_camera(unknown):
            found = self.find_calibration(group[0]).temperature(np.stack([sample.illuminant for sample in group]))
            self.temperatures.update(zip((s.name for s in group), found.tolist(), strict=True))
        return np.array([self.temperatures[sample.name] for sample in samples])

    @cached_property
    def has_own_ccms(self) -> bool:
        return all(sample.ccm is not None for sample in (*self.sources, *self.targets))

    def find_ccm(self, sample: Sample) -> Float64s:
        """White-balanced camera RGB to linear sRGB: the photograph's own matrix if all have one.

        Otherwise that of the camera's matrices at the photograph's temperature, so that both ends of a mapping come
        from the same kind of matrix wherever that is possible.
        """
        if sample.ccm is not None and (self.has_own_ccms or not self.is_calibrated(sample)):
            return sample.ccm
        return self.find_calibration(sample).ccm(float(self.measure_temperatures([sample])[0]))

    def fit_lights(self, positions: Callable[[Sequence[Sample]], Float64s]) -> list[CameraLights]:
        """The lights of each target camera; `positions` says where on their curve photographs lie."""
        return [
            CameraLights.fit(group, describe(group, positions(group)), np.stack([self.find_ccm(s) for s in group]))
            for group in split_by_camera(self.targets)
        ]


def split_by_camera(samples: Sequence[Sample]) -> list[list[Sample]]:
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.camera, []).append(sample)
    return list(groups.values())


class Groups:
    """Indices drawn uniformly over groups of similar values, then uniformly within a group."""

    def __init__(self, values: Float64s, step: float) -> None:
        places = np.floor(values / step).astype(int)
        self.members = [np.flatnonzero(places == place) for place in np.unique(places)]

    def draw(self, rng: np.random.Generator) -> int:
        return int(rng.choice(self.members[rng.integers(len(self.members))]))


def _propose_paper(material: Material, rng: np.random.Generator) -> Iterator[Proposal]:
    """Scene sampling, raw-to-raw mapping and illuminant sampling of the paper's appendix."""
    cameras = material.fit_lights(material.measure_temperatures)
    temperatures = material.measure_temperatures(material.sources)
    features = describe(material.sources, temperatures)
    groups = Groups(temperatures, GROUP_KELVIN)
    join = _joiner()
    while True:
        index = groups.draw(rng)
        source, target = material.sources[index], cameras[rng.integers(len(cameras))]
        near = target.find_near(features[index], NEIGHBORS)
        light = target.sample_light(near, rng.standard_normal(2) * SPREAD)
        ccm = target.mix_ccms(near)
        matrix = _map_balanced(material.find_ccm(source), ccm)
        used = join(target.cameras, source.cameras), join(target.sources, source.sources)
        yield Proposal(source, target.camera, light, matrix, ccm, *used, target.measure_distance(light))


def _propose_sampling(material: Material, rng: np.random.Generator) -> Iterator[Proposal]:
    """The light of another photograph of the same camera."""
    labels = _same_camera(material)
    while True:
        source = material.sources[rng.integers(len(material.sources))]
        others = [sample for sample in labels[source.camera] if sample.name != source.name]
        if not others:
            raise DataError(f"{source.camera}: no other photograph of this camera; at least two are needed")
        yield _relight(source, others[rng.integers(len(others))])


def _propose_clustering(material: Material, rng: np.random.Generator) -> Iterator[Proposal]:
    """A cluster of the camera's lights, then a light in it; clusters depend on all its labels, so all are named."""
    labels = _same_camera(material)
    clusters, names = {}, {}
    for camera, group in labels.items():
        lights = chromaticity(np.stack([sample.illuminant for sample in group]))
        clusters[camera] = cluster(lights, CLUSTERS, rng)
        names[camera] = frozenset[str]().union(*(sample.sources for sample in group))
    join = _joiner()
    while True:
        source = material.sources[rng.integers(len(material.sources))]
        members = clusters[source.camera][rng.integers(len(clusters[source.camera]))]
        other = labels[source.camera][rng.choice(members)]
        yield _relight(source, other)._replace(sources=join(names[source.camera], source.sources))


def _relight(source: Sample, other: Sample) -> Proposal:
    used = source.cameras | other.cameras, source.sources | other.sources
    return Proposal(source, source.camera, other.illuminant, np.eye(3), source.ccm, *used)


def _same_camera(material: Material) -> dict[str, list[Sample]]:
    labels = {group[0].camera: group for group in split_by_camera(material.targets)}
    for sample in material.sources:
        if sample.camera not in labels:
            raise DataError(
                f"{sample.camera}: no labels of this camera among the targets; it can only be lit by its own"
            )
    return labels


def _propose_virtual(material: Material, rng: np.random.Generator) -> Iterator[Proposal]:
    """Cameras on the line through two cameras.

    Sensors whose sensitivities are a mixture have balanced RGB that is the same mixture: the inverses of the ccms mix.
    The two lights are drawn at the same place with the same shifts, and mix in log-chroma, where they stay positive.
    """
    if all(map(material.is_calibrated, (*material.sources, *material.targets))):
        positions, step = material.measure_temperatures, GROUP_KELVIN
    else:
        positions, step = rank_lights, 0.05
    cameras = material.fit_lights(positions)
    if len(cameras) < 2:
        raise DataError(f"{cameras[0].camera}: the only target camera; a virtual one needs two")
    places = positions(material.sources)
    features = describe(material.sources, places)
    groups = Groups(places, step)
    join = _joiner()
    for number in count_up():
        if number % IMAGES_PER_CAMERA == 0:
            pair = [cameras[i] for i in rng.choice(len(cameras), 2, replace=False)]
            t = round(rng.uniform(-BEYOND, 1 + BEYOND), 2)
        index = groups.draw(rng)
        source = material.sources[index]
        shift = rng.standard_normal(2) * SPREAD
        near = [camera.find_near(features[index], NEIGHBORS) for camera in pair]
        lights = np.stack([camera.sample_light(n, shift) for camera, n in zip(pair, near, strict=True)])
        inverse = [np.linalg.inv(camera.mix_ccms(n)) for camera, n in zip(pair, near, strict=True)]
        mixed = (1 - t) * inverse[0] + t * inverse[1]
        light = uv_to_rgb(np.array([1 - t, t]) @ rgb_to_uv(lights)) if (lights > 0).all() else lights.min(axis=0)
        yield Proposal(
            source,
            f"mix of {pair[0].camera} and {pair[1].camera} {t:.2f}",
            light,
            mixed @ material.find_ccm(source),
            np.asarray(np.linalg.inv(mixed), dtype=np.float64),
            join(join(pair[0].cameras, pair[1].cameras), source.cameras),
            join(join(pair[0].sources, pair[1].sources), source.sources),
            max(camera.measure_distance(one) for camera, one in zip(pair, lights, strict=True)),
        )


def rank_lights(samples: Sequence[Sample]) -> Float64s:
    """(n,) from 0 for the warmest light of its camera to 1 for the coldest: used when temperatures are unknown."""
    ranks: dict[str, float] = {}
    for group in split_by_camera(samples):
        group.sort(key=lambda sample: float(sample.illuminant[2] / sample.illuminant[0]))
        ranks.update({sample.name: (place + 0.5) / len(group) for place, sample in enumerate(group)})
    return np.array([ranks[sample.name] for sample in samples])


def _propose_catalog(material: Material, rng: np.random.Generator) -> Iterator[Proposal]:
    """Cameras known by their matrices alone: lights along their own curves, and off them as far as real ones are.

    How far a real light lies off its camera's curve, in log-chroma, is taken from a photograph among `NEIGHBORS` of
    about the same temperature.
    """
    names = list(material.matrices)
    if not names:
        raise ParameterError("no matrices of cameras to draw from; give matrices=read_matrices(FILE)")
    temperatures = material.measure_temperatures(material.sources)
    groups = Groups(temperatures, GROUP_KELVIN)
    near_in_temperature = np.argsort(temperatures, kind="stable")
    ordered = temperatures[near_in_temperature]

    @cache
    def find_offset(index: int) -> Float64s:
        donor = material.sources[index]
        return rgb_to_uv(donor.illuminant) - rgb_to_uv(material.find_calibration(donor).illuminant(temperatures[index]))

    @cache
    def find_ccm(index: int) -> Float64s:
        return material.find_calibration(material.sources[index]).ccm(temperatures[index])

    for number in count_up():
        if number % IMAGES_PER_CAMERA == 0:
            matrices = material.matrices[names[rng.integers(len(names))]]
        index = groups.draw(rng)
        source = material.sources[index]
        kelvin = 1e6 / (1e6 / temperatures[index] + JITTER_MIRED * rng.standard_normal())
        kelvin = float(np.clip(kelvin, COOLEST, HOTTEST))
        start = int(np.searchsorted(ordered, kelvin)) - NEIGHBORS // 2
        start = max(0, min(start, len(ordered) - NEIGHBORS))
        donor_index = int(rng.choice(near_in_temperature[start : start + NEIGHBORS]))
        donor = material.sources[donor_index]
        on_curve = matrices.illuminant(kelvin)
        light = uv_to_rgb(rgb_to_uv(on_curve) + find_offset(donor_index))
        ccm = matrices.ccm(temperatures[index])
        yield Proposal(
            source,
            matrices.name,
            light,
            _map_balanced(find_ccm(index), ccm),
            ccm,
            source.cameras | donor.cameras | all_names(matrices.name),
            source.sources | donor.sources,
            float(angular_error(light, on_curve)),
        )


PROPOSERS: dict[Augmentation, Callable[[Material, np.random.Generator], Iterator[Proposal]]] = {
    Augmentation.PAPER: _propose_paper,
    Augmentation.SAMPLING: _propose_sampling,
    Augmentation.CLUSTERING: _propose_clustering,
    Augmentation.VIRTUAL: _propose_virtual,
    Augmentation.CATALOG: _propose_catalog,
}


def _map_balanced(source_ccm: Float64s, target_ccm: Float64s) -> Float64s:
    """White-balanced RGB of one camera to that of another, through linear sRGB, which stands for XYZ."""
    return np.asarray(np.linalg.solve(target_ccm, source_ccm), dtype=np.float64)


def _joiner() -> Callable[[frozenset[str], frozenset[str]], frozenset[str]]:
    """A union of sets that returns one object for the same two sets: thousands of samples share long lists."""

    @cache
    def join(a: frozenset[str], b: frozenset[str]) -> frozenset[str]:
        return a if b <= a else a | b

    return join
