"""What a dataset is made of, and what only shows when every image is read."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

import numpy as np

from c5.datasets.sample import ImageFile, Problem, Sample
from c5.errors import C5Error, DataWarning
from c5.image import require_counts
from c5.io.raw import RAW_SUFFIXES
from c5.parallel import in_parallel

Size = tuple[int, int]
"""Width and height."""


DIM, MANY, MOSTLY = 0.1, 0.02, 0.3
"""Levels look wrong if nothing is brighter than this, if this share of the pixels is at the brightest value of
a channel without being clipped, or if this share is clipped."""
FEW = 4
"""Images per camera in a quick look."""


class Look(NamedTuple):
    """What one image is like."""

    size: Size
    peak: float  # its largest value, as a part of the range
    piled: float  # the share of pixels at the largest value of a channel, if they are not clipped
    clipped: float


@dataclass
class Group:
    """The samples of one camera in one dataset."""

    dataset: str
    camera: str
    samples: list[Sample] = field(default_factory=list)
    looks: dict[str, Look] = field(default_factory=dict)
    """By the name of the sample, where its image was read."""

    @property
    def sizes(self) -> dict[str, Size]:
        return {name: look.size for name, look in self.looks.items()}

    @property
    def usual_size(self) -> Size | None:
        """The size of more than half of the images, landscape or portrait; None if there is no such size."""
        ranked = Counter(map(_upright, self.sizes.values())).most_common(1)
        return ranked[0][0] if ranked and 2 * ranked[0][1] > len(self.sizes) else None


def group_samples(samples: Iterable[Sample]) -> list[Group]:
    """Samples by dataset and camera."""
    groups: dict[tuple[str, str], Group] = {}
    for sample in samples:
        key = (sample.dataset, sample.camera)
        groups.setdefault(key, Group(*key)).samples.append(sample)
    return [groups[key] for key in sorted(groups)]


def inspect_images(
    groups: Sequence[Group], track: Callable[[Sequence[Sample]], Iterable[Sample]] = iter
) -> list[Problem]:
    """Read every image, note its size in its group, and say which cannot be used. `track` may show progress."""
    owner = {id(sample): group for group in groups for sample in group.samples}
    problems = []
    samples = [sample for group in groups for sample in group.samples]
    for sample, found in in_parallel(_look, track(samples)):
        if isinstance(found, C5Error):
            problems.append(Problem(sample.path, str(found)))
        else:
            owner[id(sample)].looks[sample.name] = found
    return problems + [problem for group in groups for problem in _odd_sizes(group)]


def find_duplicates(samples: Iterable[Sample]) -> list[Problem]:
    """Samples with the name of an earlier one."""
    seen: set[str] = set()
    problems = []
    for sample in samples:
        if sample.name in seen:
            message = f"{sample.path}: {sample.name} appears twice; give each photograph once"
            problems.append(Problem(sample.path, message))
        seen.add(sample.name)
    return problems


def make_notes(groups: Sequence[Group]) -> list[str]:
    """What is in order, but good to know."""
    cameras = sorted({group.camera for group in groups})
    notes = [
        f"{short} is inside the name {long}: they are two cameras here, names are compared whole"
        for short, long in permutations(cameras, 2)
        if short in long
    ]
    for group in groups:
        if group.sizes and group.usual_size is None:
            notes.append(f"{group.dataset} {group.camera}: the images have many sizes")
    return notes


def find_odd_levels(groups: Iterable[Group]) -> list[str]:
    """Signs of wrong levels, camera by camera: a range that is hardly used, or values that pile up."""
    notes = []
    for group in groups:
        if not group.looks:
            continue
        peak, piled, clipped = np.array([look[1:] for look in group.looks.values()]).T
        found = []
        if peak.max() < DIM:
            found.append(f"no image goes above {100 * peak.max():.1f} % ({round(65535 * peak.max())} of 65535)")
        if piled.mean() > MANY:
            found.append(
                f"{100 * piled.mean():.0f} % of the pixels share the largest value of a channel, as if cut off"
            )
        if clipped.mean() > MOSTLY:
            found.append(f"{100 * clipped.mean():.0f} % of the pixels are clipped")
        if found:
            notes.append(f"{group.dataset} {group.camera}: {', and '.join(found)}; check the white level")
    return notes


def warn_of_levels(samples: Iterable[Sample]) -> None:
    """Warn of what `find_odd_levels` finds in a few images of each camera; raw files know their levels."""
    files = [s for s in samples if isinstance(s.pixels, ImageFile) and s.path.suffix.lower() not in RAW_SUFFIXES]
    groups = group_samples(files)
    for group in groups:
        group.samples = group.samples[:: -(-len(group.samples) // FEW)]
    inspect_images(groups)
    for note in find_odd_levels(groups):
        warnings.warn(note, DataWarning, stacklevel=2)


def _look(sample: Sample) -> Look | C5Error:
    try:
        image = sample.read()
        height, width = require_counts(image).shape
    except C5Error as error:
        return error
    peaks = image.rgb.max(axis=(0, 1))
    piled = ((image.rgb == peaks) & (peaks > 0)).any(axis=-1) & ~image.clipped
    return Look((width, height), float(peaks.max()), float(piled.mean()), float(image.clipped.mean()))


def _odd_sizes(group: Group) -> list[Problem]:
    usual = group.usual_size
    if usual is None:
        return []
    paths = {sample.name: sample.path for sample in group.samples}
    return [
        Problem(
            paths[name],
            f"{paths[name]}: {size[0]}x{size[1]}, but the images of {group.camera} are {usual[0]}x{usual[1]}; "
            "export it again or remove it",
        )
        for name, size in group.sizes.items()
        if _upright(size) != usual
    ]


def _upright(size: Size) -> Size:
    """The size of an image lying on its longer side."""
    return max(size), min(size)
