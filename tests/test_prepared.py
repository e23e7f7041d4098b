"""A prepared set holds what training and evaluation need of images, and says so where it does not."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from laws import margin, seeds, textured
from memory import make_sample
from test_datasets import write_ffcc

from c5 import DataError, Grid, LinearImage, angular_error, histogram, load_model
from c5.choices import Recipe
from c5.classical import METHODS
from c5.datasets import Sample, examine, read_samples, write_pack
from c5.datasets.features import (
    CLASSICAL_SEED,
    EstimateFeature,
    Feature,
    HistogramFeature,
    PaletteFeature,
    decode_sparse,
    encode_sparse,
)
from c5.datasets.prepared import load_feature, prepare, write_prepared
from c5.fingerprints import probe
from c5.training.config import make_config
from c5.training.data import training_feature

GRID = load_model().grid
FEATURES = (PaletteFeature(GRID.powers), HistogramFeature(GRID), EstimateFeature("gray-world"))


@given(seed=seeds)
def test_sparse_rows_come_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = (rng.random((6, 64)) * (rng.random((6, 64)) < 0.2)).astype(np.float32)
    rows[3:] = rows[:3] * rng.uniform(0.5, 1, (3, 64)).astype(np.float32)
    again = decode_sparse(encode_sparse(rows, 3), rows.shape, 3)
    np.testing.assert_allclose(again, rows, rtol=1.1e-3, atol=1e-7)
    np.testing.assert_array_equal(again == 0, rows < 1e-7)


def test_a_set_gives_what_the_images_give(tmp_path: Path) -> None:
    samples = read_samples(write_ffcc(tmp_path / "set"))
    report = write_prepared(samples, tmp_path / "x.c5set", FEATURES)
    assert report == (3, [])
    found = read_samples(tmp_path / "x.c5set")
    model = load_model()
    for prepared, original in zip(found, samples, strict=True):
        for name in ("camera", "dataset", "name", "scene", "fold", "cameras", "sources"):
            assert getattr(prepared, name) == getattr(original, name)
        assert prepared.pixels.digest() == original.pixels.digest()
        image = original.read()
        stored = load_feature(prepared, FEATURES[1])
        exact = histogram(image, GRID)
        np.testing.assert_allclose(stored.stack[0], exact.stack, rtol=1.1e-3, atol=1e-6)
        estimates = [
            model.estimate_histogram(each).illuminant for each in (exact, replace(stored, stack=stored.stack[0]))
        ]
        assert angular_error(*estimates) < 0.02
        np.testing.assert_array_equal(load_feature(prepared, FEATURES[2]), METHODS["gray-world"](image))
        with pytest.raises(DataError, match="holds no pixels"):
            prepared.read()
        with pytest.raises(DataError, match="was not prepared for this"):
            load_feature(prepared, HistogramFeature(Grid(32)))
    with pytest.raises(DataError, match="was not prepared for this"):
        prepare(found, [HistogramFeature(Grid(32))])
    for recipe in (Recipe.PLAIN, Recipe.PAPER):
        with pytest.raises(DataError, match=f"prepare it for the recipe {recipe.value}$"):
            prepare(found, [training_feature(make_config(recipe))])
    assert prepare(found, FEATURES) == found


def test_processes_and_threads_write_the_same_bytes(tmp_path: Path) -> None:
    samples = read_samples(write_ffcc(tmp_path / "set", 20))
    write_prepared(samples, tmp_path / "processes.c5set", FEATURES, jobs=2)
    write_prepared(samples, tmp_path / "threads.c5set", FEATURES, jobs=1)
    write_pack(samples, tmp_path / "x.c5data")
    write_prepared(iter(samples), tmp_path / "iterator.c5set", FEATURES)
    files = [(tmp_path / f"{name}.c5set").read_bytes() for name in ("processes", "threads", "iterator")]
    assert files[0] == files[1] == files[2]
    packed = read_samples(tmp_path / "x.c5data")
    write_prepared(packed, tmp_path / "packed.c5set", FEATURES)
    for one, other in zip(
        read_samples(tmp_path / "packed.c5set"), read_samples(tmp_path / "threads.c5set"), strict=True
    ):
        np.testing.assert_array_equal(load_feature(one, FEATURES[1]).stack, load_feature(other, FEATURES[1]).stack)


def test_a_stopped_preparing_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    samples = read_samples(write_ffcc(tmp_path / "set", 5))
    write_prepared(samples, tmp_path / "whole.c5set", FEATURES)

    def stop(items: object) -> object:
        for number, sample in enumerate(items):  # type: ignore[arg-type, var-annotated]
            if number == 3:
                raise KeyboardInterrupt
            yield sample

    with pytest.raises(KeyboardInterrupt):
        write_prepared(samples, tmp_path / "parts.c5set", FEATURES, track=stop)  # type: ignore[arg-type]
    write_prepared(samples, tmp_path / "parts.c5set", FEATURES)
    assert (tmp_path / "parts.c5set").read_bytes() == (tmp_path / "whole.c5set").read_bytes()
    # What was prepared for something else is not taken over.
    (tmp_path / "parts.c5set").rename(tmp_path / "other.c5set.part")
    write_prepared(samples, tmp_path / "other.c5set", FEATURES[:1])
    write_prepared(samples, tmp_path / "fresh.c5set", FEATURES[:1])
    assert (tmp_path / "other.c5set").read_bytes() == (tmp_path / "fresh.c5set").read_bytes()


def test_images_are_prepared_once(tmp_path: Path) -> None:
    samples = read_samples(write_ffcc(tmp_path / "set"))
    first = prepare(samples, FEATURES, folder=tmp_path / "cache")
    (kept,) = (tmp_path / "cache").iterdir()
    stamp = kept.stat().st_mtime_ns
    again = prepare(samples, FEATURES, folder=tmp_path / "cache")
    assert kept.stat().st_mtime_ns == stamp
    for one, other, sample in zip(first, again, samples, strict=True):
        np.testing.assert_array_equal(load_feature(one, FEATURES[2]), load_feature(other, FEATURES[2]))
        assert one.read().rgb.shape == sample.read().rgb.shape  # the pixels are still there
    # Only what is missing is prepared.
    mixed = prepare([*first[:1], *samples[1:]], FEATURES, folder=tmp_path / "cache")
    assert mixed[0] is not samples[0]
    assert len(list((tmp_path / "cache").iterdir())) == 2
    # A cache that cannot be written is no obstacle.
    (tmp_path / "file").touch()
    assert len(prepare(samples, FEATURES, folder=tmp_path / "file" / "cache")) == 3


def test_evaluations_on_some_of_the_same_datasets_share_what_was_prepared(tmp_path: Path) -> None:
    one = read_samples(write_ffcc(tmp_path / "one"))
    other, made = ([replace(s, dataset="B", name=f"{name}/{s.name}") for s in one] for name in ("other", "made"))
    made = [replace(sample, sources=frozenset({"elsewhere"})) for sample in made]
    cache = tmp_path / "cache"
    prepare([*one, *other], FEATURES, folder=cache)
    kept = {path.name for path in cache.iterdir()}
    assert len(kept) == 2
    found = prepare([*reversed(made), *other], FEATURES, folder=cache)
    assert len({path.name for path in cache.iterdir()} - kept) == 1
    assert [sample.name for sample in found] == [sample.name for sample in (*reversed(made), *other)]
    assert all(sample.prepared is not None for sample in found)


def test_an_image_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    black = make_sample(LinearImage(np.zeros((8, 8, 3), np.float32)), np.ones(3), "A", "black")
    with pytest.raises(DataError, match="no usable pixels"):
        prepare([black], FEATURES, folder=tmp_path)
    assert not list(tmp_path.glob("*.c5set"))


def read_all(path: Path) -> None:
    for sample in read_samples(path):
        for feature in FEATURES:
            load_feature(sample, feature)


def test_damage_is_found(tmp_path: Path) -> None:
    samples = read_samples(write_ffcc(tmp_path / "set"))
    path = tmp_path / "x.c5set"
    write_prepared(samples, path, FEATURES)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(good)
        damaged[rng.integers(len(good))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with pytest.raises(DataError):
            read_all(path)
    for length in (0, 5, 12, 100, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:length])
        with pytest.raises(DataError):
            examine(path)


def test_crops_are_parts_of_the_image() -> None:
    feature = HistogramFeature(Grid(32), 5)
    image = LinearImage(textured(3, 60, 90))
    views = feature.decode(feature.encode(image, np.random.default_rng(0))).stack
    assert views.shape == (6, 2, 32, 32)
    np.testing.assert_allclose(views[0], histogram(image, Grid(32)).stack, rtol=1.1e-3, atol=1e-6)
    assert len({view.tobytes() for view in views}) == 6
    # No color can be in a part that is not in the whole.
    assert not (views[1:, 0] > 0)[:, views[0, 0] == 0].any()
    # Where a part is all black, the whole stands in.
    half = textured(3, 60, 90)
    half[:, 5:] = 0
    assert np.isfinite(feature.decode(feature.encode(LinearImage(half), np.random.default_rng(1))).stack).all()


def test_records_are_small(tmp_path: Path, test_data: Path) -> None:
    """At most 30 KB for a photograph of 384x256 and 12 KB for a thumbnail, with all classical estimates."""
    photographs = read_samples(test_data / "data" / "ffcc_sample" / "data")[::4]
    wanted: tuple[Feature[Any], ...] = (*FEATURES, *(EstimateFeature(name) for name in METHODS))
    write_prepared(photographs, tmp_path / "large.c5set", wanted)
    assert (tmp_path / "large.c5set").stat().st_size / len(photographs) < 30_000
    thumbnails = [
        make_sample(_thumbnail(sample), sample.illuminant, sample.camera, str(number))
        for number, sample in enumerate(photographs)
    ]
    write_prepared(thumbnails, tmp_path / "small.c5set", wanted)
    assert (tmp_path / "small.c5set").stat().st_size / len(thumbnails) < 12_000


def _thumbnail(sample: Sample) -> LinearImage:
    rgb = sample.read().rgb
    rows, columns = (np.arange(64) * side // 64 for side in rgb.shape[:2])
    return LinearImage(rgb[np.ix_(rows, columns)])


def test_keys_change_with_the_methods_and_not_with_the_machine() -> None:
    assert margin(np.stack([method(probe(CLASSICAL_SEED)) for method in METHODS.values()])) > 1e-3
    assert len({EstimateFeature(name).key for name in METHODS}) == len(METHODS)
    assert len({f.key for f in (*FEATURES, HistogramFeature(GRID, 2), PaletteFeature((3, 1)))}) == 5


TWO = """
import sys
from pathlib import Path
from c5.datasets import read_samples
from c5.datasets.features import VividnessFeature
from c5.datasets.prepared import load_feature, prepare

def slowly(samples):
    for sample in samples:
        print("began", flush=True)
        sys.stdin.readline()
        yield sample

prepared = prepare(read_samples(Path(sys.argv[1])), [VividnessFeature()], slowly, Path(sys.argv[2]))
print([load_feature(sample, VividnessFeature()) for sample in prepared])
"""


@pytest.mark.parametrize("killed", [False, True])
def test_two_processes_prepare_the_same_once(killed: bool, tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    command = [sys.executable, "-c", TWO, str(write_ffcc(tmp_path / "set")), str(tmp_path / "cache")]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    start = partial(subprocess.Popen, command, **pipes, text=True)
    with start() as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "began\n"
        with start() as second:
            assert second.stderr is not None
            assert "another process is preparing the same images: waiting for it" in second.stderr.readline()
            if killed:
                first.kill()
            lines = None if killed else "\n" * 9
            (ours, _), (theirs, errors) = first.communicate(lines, 60), second.communicate("\n" * 9, 60)
    assert second.returncode == 0, errors
    assert ("began" in theirs) == killed
    assert killed or ours.splitlines()[-1] == theirs.splitlines()[-1]
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".c5set"]
