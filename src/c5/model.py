"""A model that can be used: calibrate it to a camera once, then ask it for the light of each image."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.ccc import Estimate, locate
from c5.color import Float32s
from c5.errors import ModelFileError, ParameterError, ProfileError, ReadError
from c5.graphs import Graph
from c5.histograms import Grid, Histograms, histogram
from c5.image import LinearImage, shrink
from c5.io.archives import parse_levels, parse_part, read_whole, unpack
from c5.io.files import write_file
from c5.io.raw import read_photograph
from c5.io.shapes import check_shape, parse_json
from c5.io.versions import DIGEST_BYTES, digest_content
from c5.model_file import MOST_BYTES, ModelFile, read_model
from c5.rolls import choose_shots
from c5.zones import zone_image

ImageLike: TypeAlias = LinearImage | NDArray[Any] | str | Path
"""A `LinearImage`, an array of linear RGB, or the path of a raw file or a linear image."""

PROFILE_FORMAT = "c5-profile"
PROFILE_VERSION = 1


@dataclass(frozen=True, eq=False)
class Profile:
    """What a model has learned about a camera from a roll of its images. It holds no picture."""

    model: str
    """The identity of the model that made it, the only one that can use it."""
    features: tuple[NDArray[Any], ...] = field(repr=False)
    """Profile models: pooled features at each level, float16. Separate models: the roll's histograms, float32."""
    n_images: int
    camera: str | None = None

    def __post_init__(self) -> None:
        if not all(level.dtype in (np.float16, np.float32) and np.isfinite(level).all() for level in self.features):
            raise ParameterError("the features of a profile must be finite floating-point numbers")
        if type(self.n_images) is not int or not 0 <= self.n_images < 1 << 31:
            raise ParameterError(f"a profile is of a number of images, not of {str(self.n_images)[:40]}")
        if not isinstance(self.model, str) or not isinstance(self.camera, str | None):
            raise ParameterError("the names of a profile's model and camera must be text")

    @cached_property  # an archive's photographs share a few profiles
    def inputs(self) -> dict[str, Float32s]:
        """The features as a profile model's graph takes them, by the names of its inputs."""
        return {f"profile_{i}": level.astype(np.float32) for i, level in enumerate(self.features)}

    def save(self, path: str | Path) -> Path:
        """Write the profile, whole or not at all; it takes tens of kilobytes."""
        return write_file(path, self.encode())

    def encode(self) -> bytes:
        """The bytes of a profile's file."""
        description = {
            "format": PROFILE_FORMAT,
            "version": PROFILE_VERSION,
            "model": self.model,
            "n_images": self.n_images,
            "camera": self.camera,
        }
        buffer = io.BytesIO()
        arrays = {f"level_{level}": features for level, features in enumerate(self.features)}
        np.savez_compressed(buffer, allow_pickle=False, profile=json.dumps(description), **arrays)
        return buffer.getvalue()

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        try:
            return cls.decode(read_whole(path, MOST_BYTES), path)
        except FileNotFoundError:
            raise ProfileError(f"{path}: no such file; make one with Model.calibrate") from None
        except OSError as error:
            raise ProfileError(f"{path}: cannot be read: {error.strerror}; check the path") from None
        except ReadError as error:
            raise _damaged(path) from error

    @classmethod
    def decode(cls, data: bytes, path: str | Path) -> Profile:
        """The profile of a file's bytes; the path is for errors."""
        try:
            parts = unpack(data, MOST_BYTES)
            described = parse_part(parts, "profile", "U")
            facts = parse_json(described.item() if described.size == 1 else "", {"format": str, "version": int})
            if facts["format"] != PROFILE_FORMAT:
                raise ProfileError(f"{path}: not a camera profile")
            if facts["version"] > PROFILE_VERSION:
                raise ProfileError(f"{path}: made by a newer version; run pip install --upgrade c5-awb")
            check_shape(facts, {"model": str, "n_images": int, "camera": str | None})
            return cls(facts["model"], parse_levels(parts), facts["n_images"], facts["camera"])
        except (ParameterError, ReadError) as error:
            raise _damaged(path) from error


def _damaged(path: str | Path) -> ProfileError:
    return ProfileError(f"{path}: damaged or not a camera profile; make it again with Model.calibrate")


class Model:
    """A network ready to run, and nothing else in memory. Made by `load_model`."""

    def __init__(self, file: ModelFile, threads: int = 1) -> None:
        if threads < 1:
            raise ParameterError(f"threads must be at least 1, not {threads}")
        self.file = file
        self.threads = threads

    def __repr__(self) -> str:
        return f"<Model {self.name} {self.identity}>"

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def grid(self) -> Grid:
        return self.file.grid

    @property
    def identity(self) -> str:
        return self.file.identity

    def calibrate(self, images: Iterable[ImageLike], camera: str | None = None) -> Profile:
        """A profile of the camera that took these images: any number, unlabeled, as varied as possible.

        The same files give the same profile as `c5 calibrate` makes of a folder: neither their order nor copies change
        it, and of images that show the same only one counts. A file that cannot be used raises its error.
        """
        found: dict[bytes, _Shot] = {}
        for image in images:
            opened = _open(image)
            content = digest_content(Path(image)) if isinstance(image, str | Path) else _digest(opened)
            if content not in found:
                found[content] = _Shot(opened.camera, histogram(opened, self.grid))
        shots = [found[content] for content in sorted(found)]
        if shots and not self.takes(len(shots)):
            self._check_count(len(shots))
        chosen, of = choose_shots(shots, self.takes(len(shots)), iter, camera=camera)
        return self.calibrate_histograms([shot.histograms for shot in chosen], of)

    def calibrate_histograms(self, histograms: Sequence[Histograms], camera: str | None = None) -> Profile:
        """The same from histograms on the model's grid, with or without its strips, as `c5.histogram` makes them."""
        for one in histograms:
            self._check_histograms(one, self.grid, self.grid.without_strips)
        if self.file.kind == "separate":
            self._check_count(len(histograms))
            features = (np.stack([one.seen for one in histograms]),) if len(histograms) else ()
            return Profile(self.identity, features, len(histograms), camera)
        # Image by image, so that the features of one never depend on its neighbors; rounded before they are kept, so
        # that a saved profile is the same profile.
        pooled: list[Float32s] = [np.full(shape, -np.inf, np.float32) for shape in self._profile_shapes]
        for one in histograms:
            for level, features_of_one in enumerate(
                self._roll.run({"histograms": one.seen[None]}, self._profile_shapes)
            ):
                np.maximum(pooled[level], features_of_one, out=pooled[level])
        if not len(histograms):
            pooled = [np.zeros_like(level) for level in pooled]
        with np.errstate(over="ignore"):
            rounded = tuple(level.astype(np.float16) for level in pooled)
        try:
            return Profile(self.identity, rounded, len(histograms), camera)
        except ParameterError as error:
            raise ModelFileError(f"the model {self.name} cannot be used: {error}") from None

    def pool(self, profiles: Sequence[Profile]) -> Profile:
        """The profile of several rolls together: the same as if their images had been one roll."""
        if not profiles:
            return self._no_roll
        for profile in profiles:
            self.check_profile(profile)
        count = sum(profile.n_images for profile in profiles)
        if self.file.kind == "separate":
            self._check_count(count)
            histograms = [level for profile in profiles for level in profile.features]
            features: tuple[NDArray[Any], ...] = (np.concatenate(histograms),) if histograms else ()
        else:
            used = [profile.features for profile in profiles if profile.n_images] or [self._no_roll.features]
            features = tuple(np.maximum.reduce(level) for level in zip(*used, strict=True))
        cameras = {profile.camera for profile in profiles}
        return Profile(self.identity, features, count, cameras.pop() if len(cameras) == 1 else None)

    def warm_up(self) -> None:
        """Load now what the first estimate would load."""
        _ = self._query, self._no_roll

    def takes(self, count: int) -> int:
        """How many of `count` additional images the model can use: any number, except for a `separate` model."""
        return min(count, self.file.n_images - 1) if self.file.kind == "separate" else count

    def estimate(self, image: ImageLike, profile: Profile | None = None) -> Estimate:
        """The light of one image, with the profile of its camera, or from the image alone."""
        opened = _open(image)
        try:
            return self.estimate_histogram(histogram(opened, self.grid), profile)
        except ModelFileError as error:
            raise ModelFileError(f"{opened.where}{error}") from error

    def estimate_zones(
        self,
        means: ArrayLike,
        counts: ArrayLike | None = None,
        saturated: ArrayLike | None = None,
        profile: Profile | None = None,
    ) -> Estimate:
        """The light of a frame from the statistics of its zones, as `c5.zones.zone_image` takes them."""
        return self.estimate(zone_image(means, counts, saturated), profile)

    def estimate_histogram(self, histograms: Histograms, profile: Profile | None = None) -> Estimate:
        """The same from the histograms of an image."""
        with np.errstate(all="ignore"):
            found = locate(histograms, *self.emit(histograms, profile))
        if not math.isfinite(found.uncertainty or 0):
            raise ModelFileError(f"the model {self.name} gives numbers that are too large; get it again or use another")
        return found

    def emit(
        self, histograms: Histograms, profile: Profile | None = None
    ) -> tuple[Float32s, Float32s, Float32s | None]:
        """The CCC model for one image: filters F (channels, n, n), bias B (n, n), gain G (n, n) or None."""
        self._check_histograms(histograms, self.grid)
        query = histograms.seen[None]
        if profile is None:
            profile = self._no_roll
        else:
            self.check_profile(profile)
        if self.file.kind == "separate":
            # Slots that are left over repeat the roll; without a roll, the image itself.
            roll = profile.features[0] if profile.features else query
            slots = np.arange(self.file.n_images - 1) % len(roll)
            inputs = {"query": query}
            if slots.size:
                inputs["roll"] = roll[slots][None].astype(np.float32, copy=False)
        else:
            inputs = {"query": query} | profile.inputs
        n = self.grid.bins
        maps = [(1, self.grid.channels, n, n), (1, n, n)]
        filters, bias, *gain = self._query.run(inputs, maps, [*maps, maps[1]])
        return filters[0], bias[0], gain[0][0] if gain else None

    def _check_count(self, count: int) -> None:
        if count > self.takes(count):
            most = self.file.n_images - 1
            raise ProfileError(
                f"the model {self.name} takes at most {most} additional images, not {count}; choose some"
            )

    def _check_histograms(self, histograms: Histograms, *grids: Grid) -> None:
        if histograms.grid not in grids or histograms.stack.ndim != 3:
            raise ParameterError(
                f"the model {self.name} needs histograms of one image on its own grid; make them with "
                "c5.histogram(image, model.grid)"
            )

    def check_profile(self, profile: Profile) -> None:
        """Raise a `ProfileError` if the profile does not belong to this model."""
        if profile.model != self.identity:
            raise ProfileError(
                f"the profile belongs to the model {profile.model}, not to {self.name} ({self.identity}); "
                "calibrate again with this model"
            )
        if self.file.kind == "separate":
            maps = (self.grid.channels, self.grid.bins, self.grid.bins)
            fits = [level.shape for level in profile.features] == [(profile.n_images, *maps)] * bool(profile.n_images)
        else:
            fits = [level.shape for level in profile.features] == self._profile_shapes
        if not fits:
            raise ProfileError("the profile is damaged; make it again with Model.calibrate")

    @cached_property
    def _roll(self) -> Graph:
        return self._graph("roll")

    @cached_property
    def _query(self) -> Graph:
        return self._graph("query")

    @cached_property
    def _profile_shapes(self) -> list[tuple[int, ...]]:
        return self._roll.output_shapes

    @cached_property
    def _no_roll(self) -> Profile:
        return self.calibrate_histograms([])

    def _graph(self, name: str) -> Graph:
        graph = Graph(self.file.graphs[name], f"the model {self.name}", self.threads)
        if graph.input_shape != [1, self.grid.channels, self.grid.bins, self.grid.bins]:
            raise ModelFileError(f"the model {self.name} is damaged: its graphs are not for its grid")
        return graph


class _Shot(NamedTuple):
    """An image of a roll."""

    camera: str | None
    histograms: Histograms


def _digest(image: LinearImage) -> bytes:
    """What distinguishes the content of an image that is no file."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in (image.rgb, image.mask, image.clipped):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.digest()


def _open(image: ImageLike) -> LinearImage:
    if isinstance(image, LinearImage):
        return image
    return read_photograph(image).image if isinstance(image, str | Path) else shrink(image)


def model_names() -> list[str]:
    """The models that come with the package."""
    return sorted(Path(entry.name).stem for entry in _bundled().iterdir() if entry.name.endswith(".c5"))


def load_model(name_or_path: str | Path | None = None, *, threads: int = 1) -> Model:
    """The model that comes with the package, another by its name, or one from a file.

    `threads` is how many threads one call may use.
    """
    name = str(name_or_path or "bundled")
    if name in model_names():
        with resources.as_file(_bundled() / f"{name}.c5") as path:
            return Model(read_model(path), threads)
    if name_or_path is None or not (Path(name).suffix or Path(name).exists()):
        raise ModelFileError(f"no model is called {name!r}; give {' or '.join(model_names())}, or a .c5 file")
    return Model(read_model(name), threads)


def _bundled() -> Any:
    return resources.files("c5") / "models"
