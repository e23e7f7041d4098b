"""Labelled photographs, one module a layout on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from c5.datasets import cube, ffcc, folder, gehler_shi, intel_tau, manifest, nus, pack, prepared, thumbnails
from c5.datasets.container import Report
from c5.datasets.pack import PackedImage, write_pack
from c5.datasets.sample import Capture, Dataset, Found, ImageFile, Pixels, Problem, Sample
from c5.errors import DataError, ParameterError

__all__ = [
    "LAYOUTS",
    "Capture",
    "Dataset",
    "Found",
    "ImageFile",
    "PackedImage",
    "Pixels",
    "Problem",
    "Report",
    "Sample",
    "examine",
    "find_layout",
    "read_samples",
    "write_pack",
]

LAYOUTS: tuple[Dataset, ...] = (pack, prepared, manifest, folder, ffcc, nus, gehler_shi, cube, thumbnails, intel_tau)
"""In the order in which a folder is compared with them."""


def find_layout(path: Path, name: str | None = None) -> Dataset:
    """The layout of that name, or the first that a folder or file looks like."""
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; give a dataset")
    if name is not None:
        for layout in LAYOUTS:
            if name == layout.NAME:
                return layout
        raise ParameterError(f"no layout is called {name!r}; there are {', '.join(each.NAME for each in LAYOUTS)}")
    for layout in LAYOUTS:
        if layout.recognises(path):
            return layout
    known = ", ".join(each.NAME for each in LAYOUTS)
    raise DataError(f"{path}: no labelled images in a layout that is known ({known}); see docs/datasets.md")


def examine(path: str | Path, layout: str | None = None) -> Found:
    """What a dataset holds: its samples, and the files that do not fit with what to do about each."""
    path = Path(path)
    found = find_layout(path, layout).read(path)
    if not found.samples and not found.problems:
        raise DataError(f"{path}: no images in it; give the folder of a dataset")
    return found


def read_samples(paths: Sequence[str | Path] | str | Path, layout: str | None = None) -> list[Sample]:
    """The samples of datasets that are in order. A problem is an error here: nothing is left out silently."""
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    samples: list[Sample] = []
    for path in several:
        found = examine(path, layout)
        if found.problems:
            more = f" (and {len(found.problems) - 1} more: c5 data check {path})" if len(found.problems) > 1 else ""
            raise DataError(f"{found.problems[0].message}{more}")
        samples += found.samples
    names = set()
    for sample in samples:
        if sample.name in names:
            raise DataError(f"{sample.path}: {sample.name} is there twice; give each photograph once")
        names.add(sample.name)
    return samples
