"""Labeled photographs, one module per layout on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from c5 import plugins
from c5.datasets import cube, folder, gehler_shi, google_ffcc, intel_tau, manifest, nus, pack, prepared, thumbnails
from c5.datasets.container import Report
from c5.datasets.inspection import find_duplicates
from c5.datasets.pack import PackedImage, write_pack
from c5.datasets.sample import Capture, Dataset, Found, ImageFile, Pixels, Problem, Sample
from c5.errors import DataError, ParameterError, PluginError
from c5.words import plural

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

LAYOUTS: tuple[Dataset, ...] = (
    pack,
    prepared,
    manifest,
    folder,
    google_ffcc,
    nus,
    gehler_shi,
    cube,
    thumbnails,
    intel_tau,
)
"""The layouts of this package, in the order in which a folder is compared with them; plugins come after them."""


def find_layout(path: Path, name: str | None = None) -> Dataset:
    """The layout of that name, or the first that a folder or file looks like."""
    if not os.path.exists(path):  # unlike Path.exists it also takes names that are too long
        raise DataError(f"{path}: no such file or folder; give a dataset")
    own = {layout.NAME: layout for layout in LAYOUTS}
    if name in own:
        return own[name]
    if name is not None:
        found = plugins.find(plugins.DATASETS, own)
        if name not in found:
            raise ParameterError(f"no layout is called {name!r}; there are {', '.join([*own, *found])}")
        return _PluginLayout(found[name])
    for layout in LAYOUTS:
        if layout.recognizes(path):
            return layout

    def look(plugin: plugins.Plugin) -> Dataset | None:
        layout = _PluginLayout(plugin)
        return layout if layout.recognizes(path) else None

    others = plugins.use_all(plugins.DATASETS, own, look)
    for other in others.values():
        if other is not None:
            return other
    known = ", ".join([*own, *others])
    raise DataError(f"{path}: no labeled images in a layout that is known ({known}); arrange them in one")


class _PluginLayout:
    """A layout of another package. Its errors become one line that names the package."""

    def __init__(self, plugin: plugins.Plugin) -> None:
        self._plugin, self._layout = plugin, plugin.make()
        missing = [part for part in ("DESCRIPTION", "recognizes", "read") if not hasattr(self._layout, part)]
        if missing:
            raise PluginError(f"{plugin} is not a dataset layout: it has no {', '.join(missing)}")
        self.NAME, self.DESCRIPTION = plugin.name, str(self._layout.DESCRIPTION)

    def recognizes(self, folder: Path) -> bool:
        with plugins.guard(str(self._plugin)):
            return bool(self._layout.recognizes(folder))

    def read(self, folder: Path) -> Found:
        with plugins.guard(str(self._plugin)):
            return Found(*self._layout.read(folder))


def examine(path: str | Path, layout: str | None = None) -> Found:
    """What a dataset holds: its samples, and the files that do not fit, with what to do about each."""
    path = Path(path)
    found = find_layout(path, layout).read(path)
    if not found.samples and not found.problems:
        raise DataError(f"{path}: no images in it; give the folder of a dataset")
    return found


def read_samples(paths: Sequence[str | Path] | str | Path, layout: str | None = None) -> list[Sample]:
    """The samples of datasets without problems. A problem is an error here: nothing is left out silently."""
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    samples: list[Sample] = []
    for path in several:
        found = examine(path, layout)
        if found.problems:
            others = len(found.problems) - 1
            more = f" (and {plural(others, 'more problem')}; check the dataset)" if others else ""
            raise DataError(f"{found.problems[0].message}{more}")
        samples += found.samples
    for duplicate in find_duplicates(samples):
        raise DataError(duplicate.message)
    return samples
