"""What a dataset is made of, and what only shows when every image is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from c5.datasets.sample import Problem, Sample
from c5.errors import C5Error
from c5.image import require_counts
from c5.parallel import in_parallel

Size = tuple[int, int]
"""Width and height."""


@dataclass
class Group:
    """The samples of one camera in one dataset."""

    dataset: str
    camera: str
    samples: list[Sample] = field(default_factory=list)
    sizes: dict[str, Size] = field(default_factory=dict)
    """By the name of the sample, where its image was read."""

    @property
    def usual_size(self) -> Size | None:
        """The size of more than half of the images, on whichever side they lie; None where there is no such size."""
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
            owner[id(sample)].sizes[sample.name] = found
    return problems + [problem for group in groups for problem in _odd_sizes(group)]


def find_duplicates(samples: Iterable[Sample]) -> list[Problem]:
    """Samples with the name of an earlier one."""
    seen: set[str] = set()
    problems = []
    for sample in samples:
        if sample.name in seen:
            message = f"{sample.path}: {sample.name} is there twice; give each photograph once"
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


def _look(sample: Sample) -> Size | C5Error:
    try:
        height, width = require_counts(sample.read()).shape
    except C5Error as error:
        return error
    return width, height


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
