"""Zones are a small image: what a statistics block averages, and what the model makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import c5

from c5 import ImageError, LinearImage, ParameterError, Profile, angular_error, load_model
from c5.datasets import read_samples
from c5.datasets.features import HistogramFeature
from c5.datasets.zoned import zone_sample
from c5.demo import VirtualCamera, render_roll
from c5.evaluation.methods import Rolls
from c5.evaluation.plugin import find_methods
from c5.io.raw import read_photograph
from c5.zones import average_zones, parse_zones, zone_image


@pytest.fixture(scope="module")
def image() -> LinearImage:
    rng = np.random.default_rng(1)
    (photo,) = render_roll(VirtualCamera.random(rng), 1, rng, (96, 144))
    return photo.image


@pytest.mark.parametrize("shape", [(12, 16), (32, 32), (48, 64), (64, 64), (100, 30)])
def test_averaging_keeps_the_mean(shape: tuple[int, int]) -> None:
    rgb = np.random.default_rng(0).uniform(0.1, 0.9, (96, 128, 3)).astype(np.float32)
    zones = average_zones(LinearImage(rgb), *shape)
    assert zones.rgb.shape == (*shape, 3)
    np.testing.assert_allclose(zones.rgb.mean(axis=(0, 1)), rgb.mean(axis=(0, 1)), rtol=1e-3)


def test_clipped_and_masked_pixels_stay_out_of_the_means() -> None:
    rgb = np.full((64, 64, 3), 0.25, np.float32)
    rgb[:, ::4] = 1.0  # a quarter of every zone is clipped
    mask = np.ones((64, 64), np.bool_)
    mask[:8] = False
    zones = average_zones(LinearImage(rgb, mask), 8, 8)
    np.testing.assert_allclose(zones.rgb[1:], 0.25, rtol=1e-5)
    assert not zones.counts[0].any()
    assert zones.counts[1:].all()
    rgb[:, ::2] = rgb[:, 1::4] = 1.0  # three quarters
    assert not average_zones(LinearImage(rgb), 8, 8).counts.any()


def test_zones_count_by_counts_and_flags() -> None:
    means = np.full((12, 16, 3), 0.5, np.float32)
    counts, saturated = np.full((12, 16), 100), np.zeros((12, 16), np.bool_)
    counts[0], counts[1], saturated[2] = 49, 0, True
    means[0], means[1], means[2] = 0.9, np.nan, np.inf  # whatever they are
    zones = zone_image(means, counts, saturated)
    assert not zones.counts[:3].any()
    assert zones.counts[3:].all()
    assert zone_image(np.full((16, 16, 3), 30000, np.uint16)).rgb[0, 0, 0] == pytest.approx(30000 / 65535)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int16, np.float64])
def test_counts_may_be_as_large_as_their_type_holds(kind: type) -> None:
    most = np.finfo(kind).max if kind is np.float64 else np.iinfo(kind).max
    counts: np.ndarray = np.full((12, 16), most, kind)
    counts[0] = most / 3
    zones = zone_image(np.full((12, 16, 3), 0.5), counts)
    assert not zones.counts[0].any()
    assert zones.counts[1:].all()


def test_estimate_zones_is_the_estimate_of_the_small_image(image: LinearImage) -> None:
    model = load_model()
    zones = average_zones(image, 32, 32)
    found = model.estimate_zones(zones.rgb, saturated=zones.clipped)
    np.testing.assert_array_equal(found.illuminant, model.estimate(zones).illuminant)
    assert angular_error(found.illuminant, model.estimate(image).illuminant) < 4
    half = model.estimate_zones(zones.rgb / 2, saturated=zones.clipped)  # exposure does not matter
    assert angular_error(half.illuminant, found.illuminant) < 0.01


@pytest.mark.parametrize(
    ("means", "arguments", "problem"),
    [
        (np.full((32, 32, 3), 0.5), {"saturated": np.ones((32, 32), bool)}, "no usable pixels"),
        (np.ones((32, 32, 3)), {}, "no usable pixels"),
        (np.full((32, 32, 3), 0.5), {"counts": np.zeros((32, 32))}, "no usable pixels"),
        (np.full((32, 32, 3), np.nan), {}, "NaN"),
        (np.full((32, 32, 3), 0.5), {"counts": np.full((32, 32), np.nan)}, "counts of zones"),
        (np.full((32, 32, 3), 0.5), {"counts": np.ones((31, 32))}, "one number for each of the 32x32 zones"),
        (np.full((4, 32, 3), 0.5), {}, "8 to 128"),
        (np.full((32, 32), 0.5), {}, r"\(height, width, 3\)"),
        ([[1, 2], [3]], {}, "lists of different lengths"),
        (np.full((32, 32, 3), 0.5), {"counts": [[1, 2], [3]]}, "lists of different lengths"),
    ],
)
def test_bad_zones_are_one_line(means: np.ndarray, arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises((ImageError, ParameterError), match=problem) as error:
        load_model().estimate_zones(means, **arguments)
    assert "\n" not in str(error.value)


def test_evaluations_take_models_with_zones() -> None:
    rolls = Rolls()
    plain, zoned = find_methods("bundled", rolls) + find_methods("bundled@32x32", rolls)
    assert zoned.name == "bundled@32x32"
    assert plain.settings != zoned.settings
    feature = zoned.features[0]
    assert isinstance(feature, HistogramFeature)
    assert feature.zones == (32, 32)
    assert feature.key != plain.features[0].key
    with pytest.raises(ParameterError, match="takes pixels"):
        find_methods("gray-world@32x32", rolls)
    for wrong in ("2x2", "a", "32"):
        with pytest.raises(ParameterError):
            parse_zones(wrong)


def test_a_photograph_in_zones_is_made_of_that_photograph_alone(tmp_path: Path, image: LinearImage) -> None:
    np.save(tmp_path / "a.npy", image.rgb)
    (tmp_path / "manifest.csv").write_text("path,camera,r,g,b\na.npy,X,0.4,0.8,0.4\n")
    (sample,) = read_samples(tmp_path)
    zoned = zone_sample(sample, (32, 32))
    assert zoned.made
    assert zoned.sources == sample.sources
    assert zoned.read().rgb.shape == (32, 32, 3)
    assert zoned.pixels.digest() != sample.pixels.digest()


def test_a_profile_of_zones_is_made_of_averaged_photographs(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    (tmp_path / "roll").mkdir()
    for number, photo in enumerate(render_roll(VirtualCamera.random(rng), 3, rng, (96, 144))):
        np.save(tmp_path / "roll" / f"{number}.npy", photo.image.rgb)
    done = c5("calibrate", "roll", "-o", "zones.c5profile", "--zones", "32x32", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    images = (read_photograph(path).image for path in (tmp_path / "roll").iterdir())
    expected = load_model().calibrate(average_zones(image, 32, 32) for image in images)
    found = Profile.load(tmp_path / "zones.c5profile")
    for level, wanted in zip(found.features, expected.features, strict=True):
        np.testing.assert_allclose(level, wanted, atol=1e-3)  # threads of BLAS round differently
    refused = c5("calibrate", "roll", "-o", "other.c5profile", "--zones", "2x2", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "other.c5profile").exists()
