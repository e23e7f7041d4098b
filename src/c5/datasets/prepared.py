"""The .c5set file: all that training and evaluation need from images, without the images.

One pass over a dataset makes it; after that, neither decoders nor the images themselves are needed.
docs/file-formats.md specifies it.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from c5.datasets.container import BusyError, Container, Encoded, Format, Record, Report, write_container
from c5.datasets.features import Feature, prepare_image
from c5.datasets.sample import Decoded, Found, Prepared, Sample
from c5.errors import DataError, DataWarning, ReadError
from c5.image import LinearImage
from c5.io.files import cache_folder
from c5.parallel import in_parallel, in_processes

NAME = "set"
DESCRIPTION = "a .c5set prepared set"

FORMAT = Format(b"\x89C5SET\r\n", 1, "prepared set", image={"pixels": str, "lengths": [int]}, more={"features": [str]})

FEW = 16
"""Starting processes does not pay for fewer images."""

WAIT_SECONDS = 0.2
"""How long to wait for another process before looking again."""


class PreparedImage(Record):
    """What a prepared set holds for one image."""

    def read(self) -> LinearImage:
        raise DataError(f"{self.path}: a prepared set holds no pixels; give the images themselves")

    def digest(self) -> str:
        return str(self.entry["image"]["pixels"])

    def has(self, key: str) -> bool:
        return key in self.container.index["features"]

    def find(self, key: str, decode: Callable[[bytes], Decoded]) -> Decoded:
        """The feature of the image that has this key."""
        lengths, place = self.entry["image"]["lengths"], self.container.index["features"].index(key)
        start = sum(lengths[:place])
        with self.open() as payload:
            if len(lengths) <= place or min(lengths) < 0:
                raise ReadError("it does not have every feature")
            return decode(payload[start : start + lengths[place]])


recognizes = FORMAT.recognizes


def read(path: Path) -> Found:
    """The samples of a set, from its index. Each record is checked when it is read."""
    samples = Container.open(path, FORMAT).samples(PreparedImage)
    return Found([replace(sample, prepared=cast(PreparedImage, sample.pixels)) for sample in samples], [])


def write_prepared(
    samples: Iterable[Sample],
    path: str | Path,
    features: Sequence[Feature[Any]],
    track: Callable[[Iterable[Sample]], Iterable[Sample]] = iter,
    overwrite: bool = False,
    jobs: int | None = None,
    *,
    complete: bool = False,
) -> Report:
    """Write features of images with their labels to one file, on all cores; see `write_container`."""
    wanted = tuple(dict.fromkeys(features))
    few = isinstance(samples, Sequence) and len(samples) < FEW
    each = in_parallel if few or jobs == 1 else partial(in_processes, jobs=jobs)
    keys = [feature.key for feature in wanted]
    encode = partial(_encode, wanted, _digest(keys))
    more = {"features": keys}
    how = {"overwrite": overwrite, "complete": complete}
    return write_container(track(samples), path, FORMAT, encode, each, **how, more=more)


def _encode(features: tuple[Feature[Any], ...], keys: str, sample: Sample, earlier: str | None) -> Encoded | str:
    pixels = sample.pixels.digest()
    source = _digest([pixels, keys])
    if source == earlier:
        return source
    parts = prepare_image(sample.read(), features, pixels)
    payload = b"".join(parts)
    content = hashlib.sha256(payload).hexdigest()[:32]
    image = {"pixels": pixels, "source": source, "content": content, "lengths": [len(part) for part in parts]}
    return Encoded(image, payload)


def prepare(
    samples: Sequence[Sample],
    features: Sequence[Feature[Any]],
    track: Callable[[Iterable[Sample]], Iterable[Sample]] = iter,
    folder: Path | None = None,
) -> list[Sample]:
    """The same samples with all of these features prepared.

    Samples that have them stay as they are. The others are prepared into sets in the user's cache folder, once: the
    next call with the same images finds them there, and a simultaneous call in another process waits for them. Each
    dataset has a set of its own, so that evaluations on some of the same datasets share it. An image that cannot be
    used is an error.
    """
    wanted = {feature.key: feature for feature in features}
    missing: dict[tuple[str, bool], list[Sample]] = {}
    for sample in samples:
        if sample.prepared is None or not all(map(sample.prepared.has, wanted)):
            if isinstance(sample.pixels, PreparedImage):
                raise _not_prepared(sample, next(wanted[key] for key in wanted if not sample.pixels.has(key)))
            missing.setdefault((sample.dataset, sample.made), []).append(sample)
    kept: dict[str, Prepared | None] = {}
    for own in missing.values():
        kept |= {sample.name: sample.prepared for sample in _prepare_dataset(own, wanted, track, folder)}
    return [replace(s, prepared=kept[s.name]) if s.name in kept else s for s in samples]


def _prepare_dataset(
    samples: Sequence[Sample],
    wanted: dict[str, Feature[Any]],
    track: Callable[[Iterable[Sample]], Iterable[Sample]],
    folder: Path | None,
) -> list[Sample]:
    """The samples of the set that holds these features of samples, which is made if there is none."""
    contents = [[sample.name, sample.pixels.digest()] for sample in samples]
    path = (folder or cache_folder() / "sets") / f"{_digest([list(wanted), contents])}.c5set"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError:  # without a writable cache, it is only slower
        path = _passing_folder() / path.name
    busy = False
    while not path.exists():
        try:
            write_prepared(samples, path, list(wanted.values()), track, complete=True)
        except BusyError:
            if not busy:
                warnings.warn("another process is preparing the same images: waiting for it", DataWarning, stacklevel=3)
            busy = True
            time.sleep(WAIT_SECONDS)
    return read(path).samples


def _passing_folder() -> Path:
    """A folder that is gone when the program ends."""
    folder = tempfile.mkdtemp(prefix="c5-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def load_feature(sample: Sample, feature: Feature[Decoded]) -> Decoded:
    """A feature of a sample that `prepare` has prepared."""
    if sample.prepared is None or not sample.prepared.has(feature.key):
        raise _not_prepared(sample, feature)
    return sample.prepared.find(feature.key, feature.decode)


def _not_prepared(sample: Sample, feature: Feature[Any]) -> DataError:
    if feature.purpose:
        return DataError(f"{sample.path}: was not prepared for this; prepare it for the recipe {feature.purpose}")
    lacking = f"was not prepared for this (it lacks {feature.key!r})"
    return DataError(f"{sample.path}: {lacking}; prepare it again for every recipe, or give the images themselves")


def _digest(content: Any) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:32]
