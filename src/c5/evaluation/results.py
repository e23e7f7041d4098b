"""The results of an evaluation as one JSON file: an error for each image, statistics of each dataset and camera.

    {"format": "c5-results", "version": 1, "protocol": "...", "description": "...", "data": "...",
     "images": {"NUS/Canon600D": ["000001", ...], ...},
     "photographs": {"NUS/Canon600D": 200, ...},
     "lights": {"NUS/Canon600D": [[612, 401], ...], ...},
     "folds": [{"name": "...", "trained_on": ["NUS"], "training_images": 1736, "tested_on": ["Gehler-Shi"], ...}],
     "rows": [{"method": "c5", "variant": "m = 9", "apart": "", "draws": 10, "settings": {...}, "made": [{...}],
               "statistics": {"NUS": {"mean": [...], "deviation": [...]}, "NUS/Canon600D": ...},
               "worst_found": {"NUS": [...]}, "bound_factors": {"NUS": [...]},
               "errors": [{"NUS/Canon600D": [123, ...], ...}]}]}

Errors are hundredths of a degree, the mean over the repeats, in the order of `images`; where a protocol tests an image
more than once, `errors` has an entry for each time. `lights` are the true illuminants, u and v in thousandths of a nat.
`photographs` counts what rolls of each camera are drawn from. `apart` distinguishes a row from others of its method.
Statistics are those of `c5.metrics.Statistics`, computed for each repeat from unrounded errors; their mean and standard
deviation over the repeats are kept. `worst_found` is that of `c5.metrics`, the mean over the repeats, and
`bound_factors` that of all repeats, for methods that have an uncertainty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from c5.choices import Selection
from c5.color import Float64s
from c5.datasets import Sample
from c5.errors import DataError, ReadError
from c5.io.files import read_bytes, write_file
from c5.io.shapes import check_shape, parse_json
from c5.metrics import RepeatedStatistics, Statistics, bound_factors, summarize_repeats, worst_found
from c5.rolls import MOST_VIVID

FORMAT, VERSION = "c5-results", 1


class ImageErrors(NamedTuple):
    """One image in one fold."""

    name: str  # dataset/camera/file
    errors: Float64s  # (repeats,), degrees
    uncertainties: Float64s | None = None  # the same


@dataclass(frozen=True, eq=False)
class Row:
    """One method, in one variant, over all folds."""

    method: str
    variant: str
    statistics: dict[str, RepeatedStatistics]
    """By dataset (`NUS`) and by camera (`NUS/Canon600D`)."""
    errors: list[dict[str, list[float | None]]]
    """Degrees with two decimals, by camera."""
    settings: dict[str, Any] = field(default_factory=dict)
    made: list[dict[str, Any]] = field(default_factory=list)
    """Command, version, commit, device; several if its folds were run at different times."""
    worst_found: dict[str, list[float]] = field(default_factory=dict)
    """By dataset: how much of the worst quarter is among the most uncertain images (see `c5.metrics.worst_found`)."""
    bound_factors: dict[str, list[float]] = field(default_factory=dict)
    """By dataset: the factors at which bounds hold for 1, 2, ... 100 % of errors (see `c5.metrics.bound_factors`)."""
    draws: int = 0
    """Repeats with other additional images or networks; 0 if that was not recorded."""
    apart: str = ""
    """What distinguishes it from other rows of its method, such as `epochs 3`."""

    @property
    def name(self) -> str:
        return ", ".join(part for part in (self.method, self.variant, self.apart) if part)

    @property
    def m(self) -> int | None:
        """How many images were given, the query included; None for methods that take only one."""
        found = re.match(r"m = (\d+)", self.variant)
        return int(found[1]) if found else None

    @property
    def selection(self) -> str:
        """How the others were chosen; empty if there are none."""
        return "" if self.m in (None, 1) else self.variant.partition(", ")[2] or Selection.RANDOM.value

    @property
    def recipe(self) -> dict[str, str]:
        """All settings except the rolls that were tried, as text."""
        rolls = ("n_images", "selections", "repeats")
        stored = json.loads(json.dumps(self.settings))  # as it is after being saved: tuples are lists
        return _flatten({key: value for key, value in stored.items() if key not in rolls})

    @property
    def identity(self) -> tuple[Any, ...]:
        """Rows with the same identity are the same measurement."""
        return self.method, self.variant, self.draws, *sorted(self.recipe.items())


@dataclass(frozen=True, eq=False)
class Results:
    protocol: str
    description: str
    data: str
    """A digest of all images and labels."""
    images: dict[str, list[str]]
    folds: list[dict[str, Any]]
    rows: list[Row]
    lights: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """u and v of the true illuminants, in the order of `images`; empty in results that do not have them."""
    photographs: dict[str, int] = field(default_factory=dict)
    """How many images the rolls of each camera are drawn from; empty likewise."""

    def save(self, path: str | Path) -> Path:
        head = {
            "format": FORMAT,
            "version": VERSION,
            "protocol": self.protocol,
            "description": self.description,
            "data": self.data,
            "images": self.images,
            "folds": self.folds,
            **({"lights": _scale(self.lights, 1000)} if self.lights else {}),
            **({"photographs": self.photographs} if self.photographs else {}),
        }
        text = json.dumps(head, separators=(",", ":"))[:-1] + ',\n"rows":[\n'
        text += ",\n".join(json.dumps(_to_json(row), separators=(",", ":")) for row in self.rows) + "\n]}\n"
        return write_file(path, text.encode())

    @classmethod
    def load(cls, path: str | Path) -> Results:
        data = read_bytes(path)
        try:
            content = parse_json(data, {"format": str, "version": int}, "its content")
            if content["format"] == FORMAT and content["version"] <= VERSION:
                check_shape(content, SHAPE, "its content")
                counts = {group: len(files) for group, files in content["images"].items()}
                if {group: len(lights) for group, lights in content.get("lights", {}).items()} not in ({}, counts):
                    raise ReadError("its lights are not those of its images")
        except ReadError as error:
            raise ReadError(f"{path}: damaged, or not the results of an evaluation ({error}); make it again") from error
        if content["format"] != FORMAT:
            raise ReadError(f"{path}: not the results of an evaluation")
        if content["version"] > VERSION:
            raise ReadError(f"{path}: made by a newer version; run pip install --upgrade c5-awb")
        rows = [_from_json(row) for row in content["rows"]]
        head = {name: content[name] for name in ("protocol", "description", "data", "images", "folds")}
        lights = _scale(content.get("lights", {}), 0.001)
        return cls(**head, rows=rows, lights=lights, photographs=content.get("photographs", {}))

    @property
    def datasets(self) -> list[str]:
        return sorted({group.split("/")[0] for group in self.images})

    def rows_of(self, dataset: str) -> list[Row]:
        """The rows that tested a dataset."""
        return [row for row in self.rows if dataset in row.statistics]

    def count(self, dataset: str) -> int:
        """How many images of a dataset were tested."""
        return sum(len(self.images[camera]) for camera in self.cameras(dataset))

    def real_m(self, row: Row, camera: str) -> int | None:
        """The most images that a row's rolls of a camera can hold, the query included, up to its m."""
        pool = self.photographs.get(camera)
        if row.m is None or pool is None or row.selection == Selection.OTHER_CAMERA.value:
            return row.m
        narrow = row.selection in (Selection.VIVID.value, Selection.DULL.value)
        return min(row.m, pool, MOST_VIVID + 1) if narrow else min(row.m, pool)

    def cameras(self, dataset: str) -> list[str]:
        return [group for group in self.images if group.split("/")[0] == dataset]


def group_images(names: Sequence[str]) -> dict[str, list[str]]:
    """Names dataset/camera/file by dataset/camera."""
    groups: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        group, _, file = name.rpartition("/")
        groups.setdefault(group, []).append(file)
    return groups


def group_lights(samples: Iterable[Sample], images: dict[str, list[str]]) -> dict[str, list[tuple[float, float]]]:
    """u and v of the true illuminants of images, with three decimals."""
    lights = {sample.name: sample.illuminant for sample in samples}
    found: dict[str, list[tuple[float, float]]] = {}
    for group, files in images.items():
        rgb = np.stack([lights[f"{group}/{file}"] for file in files])
        uv = np.log(rgb[:, 1:2] / rgb[:, ::2]).round(3)
        found[group] = [(u, v) for u, v in uv.tolist()]
    return found


def make_row(
    method: str,
    variant: str,
    folds: Sequence[Sequence[ImageErrors]],
    images: dict[str, list[str]],
    settings: dict[str, Any],
    made: list[dict[str, Any]],
) -> Row:
    """The statistics and the per-image errors of a method, from those of its folds."""
    groups: dict[str, list[ImageErrors]] = {}
    passes: list[dict[str, list[float | None]]] = []
    place = {f"{group}/{file}": (group, index) for group, files in images.items() for index, file in enumerate(files)}
    for fold in folds:
        places = [place[one.name] for one in fold]
        for errors in passes:  # the first that has room for the whole fold
            if all(group not in errors or errors[group][index] is None for group, index in places):
                break
        else:
            errors = {}
            passes.append(errors)
        for one, (group, index) in zip(fold, places, strict=True):
            for name in (group.split("/")[0], group):
                groups.setdefault(name, []).append(one)
            errors.setdefault(group, [None] * len(images[group]))[index] = round(float(one.errors.mean()), 2)
    stacked = {name: np.stack([one.errors for one in group], axis=1) for name, group in sorted(groups.items())}
    statistics = {name: summarize_repeats(each) for name, each in stacked.items()}
    unsure = {
        name: np.stack([one.uncertainties for one in group if one.uncertainties is not None], axis=1)
        for name, group in sorted(groups.items())
        if "/" not in name and all(one.uncertainties is not None for one in group)
    }
    curves = {name: [worst_found(*pair) for pair in zip(stacked[name], unsure[name], strict=True)] for name in unsure}
    found = {name: np.mean(each, axis=0).round(4).tolist() for name, each in curves.items()}
    factors = {name: bound_factors(stacked[name], unsure[name]).round(4).tolist() for name in unsure}
    draws = next(iter(stacked.values())).shape[0]
    return Row(method, variant, statistics, passes, settings, made, found, factors, draws)


def merge(parts: Sequence[Results]) -> Results:
    """Results of one protocol on the same data, as one.

    Of rows with the same method, variant and settings, the last one stays. Rows of a method with different settings
    stand side by side and say what differs.
    """
    first = parts[0]
    rows: dict[tuple[Any, ...], Row] = {}
    for part in parts:
        if (part.protocol, part.data, part.images) != (first.protocol, first.data, first.images):
            raise DataError(f"{part.protocol} and {first.protocol} were not run on the same data; report them apart")
        new = {row.identity: row for row in part.rows}
        again = {(row.method, row.variant) for row in part.rows}  # replaced if their draws were not counted
        rows = {key: row for key, row in rows.items() if row.draws or (row.method, row.variant) not in again} | new
    return replace(parts[-1], rows=_tell_apart(list(rows.values())))


def _tell_apart(rows: list[Row]) -> list[Row]:
    """The rows, each with what differs from the settings of others of its method, or from their number of draws."""
    told = []
    for row in rows:
        others = [other for other in rows if other.method == row.method]
        recipes = [other.recipe for other in others]
        names = {name for recipe in recipes for name in recipe if len({each.get(name) for each in recipes}) > 1}
        parts = [f"{name.split('.')[-1]} {row.recipe[name]}" for name in sorted(names) if name in row.recipe]
        parts += [f"no {name.split('.')[-1]}" for name in sorted(names) if name not in row.recipe]
        alike = [other for other in others if (other.variant, other.recipe) == (row.variant, row.recipe)]
        if len(alike) > 1:
            parts.append(f"{row.draws} draws")
        told.append(replace(row, apart=", ".join(parts)))
    return told


def _flatten(settings: Any, name: str = "") -> dict[str, str]:
    """Nested settings as text by dotted names; fingerprints shortened to what tells them apart."""
    if isinstance(settings, dict):
        return {k: v for key, each in settings.items() for k, v in _flatten(each, f"{name}.{key}".strip(".")).items()}
    if isinstance(settings, list) and any(isinstance(each, dict) for each in settings):
        return _flatten({f"{number}": each for number, each in enumerate(settings, 1)}, name)
    text = " ".join(map(str, settings)) if isinstance(settings, list) else str(settings)
    return {name: re.sub(r"^([0-9a-f]{8})[0-9a-f]{8,}$", r"\1", text)}


def _scale(lights: dict[str, list[tuple[float, float]]], factor: float) -> dict[str, Any]:
    """With as many decimals as are kept: none in the file, three in memory."""
    digits = None if factor > 1 else 3
    return {group: [[round(c * factor, digits) for c in uv] for uv in each] for group, each in lights.items()}


_NUMBERS = [float]
_STATISTICS = (float,) * len(Statistics._fields)
SHAPE: dict[Any, Any] = {
    "protocol": str,
    "description": str,
    "data": str,
    "images": {str: [str]},
    "photographs?": {str: int},
    "lights?": {str: [(float, float)]},
    "folds": [{"name?": str, "trained_on": [str], "tested_on": [str]}],
    "rows": [
        {
            "method": str,
            "variant": str,
            "apart?": str,
            "draws?": int,
            "settings": {str: object},
            "made": [{"command?": str, str: object}],
            "statistics": {str: {"mean": _STATISTICS, "deviation": _STATISTICS}},
            "worst_found?": {str: _NUMBERS},
            "bound_factors?": {str: _NUMBERS},
            "errors": [{str: [float | None]}],
        }
    ],
}
"""The JSON of a file."""


def _to_json(row: Row) -> dict[str, Any]:
    return {
        "method": row.method,
        "variant": row.variant,
        "apart": row.apart,
        "draws": row.draws,
        "settings": row.settings,
        "made": row.made,
        # To the last bit: a report of them is the table that was printed.
        "statistics": {name: both._asdict() for name, both in row.statistics.items()},
        **({"worst_found": row.worst_found} if row.worst_found else {}),
        **({"bound_factors": row.bound_factors} if row.bound_factors else {}),
        "errors": _convert(row.errors, lambda degrees: round(100 * degrees)),
    }


def _from_json(data: dict[str, Any]) -> Row:
    statistics = {
        name: RepeatedStatistics(Statistics(*both["mean"]), Statistics(*both["deviation"]))
        for name, both in data["statistics"].items()
    }
    errors = _convert(data["errors"], lambda hundredths: hundredths / 100)
    late = {name: data[name] for name in ("worst_found", "bound_factors", "draws", "apart") if name in data}
    return Row(data["method"], data["variant"], statistics, errors, data["settings"], data["made"], **late)


def _convert(
    errors: list[dict[str, list[float | None]]], change: Callable[[float], float]
) -> list[dict[str, list[float | None]]]:
    return [
        {group: [None if value is None else change(value) for value in values] for group, values in each.items()}
        for each in errors
    ]
