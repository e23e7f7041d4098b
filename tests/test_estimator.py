"""The bundled model and its profiles."""

from __future__ import annotations

from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from hypothesis import given
from laws import seeds, textured

import c5
from c5 import Grid, ImageError, LinearImage, ParameterError, Profile, ProfileError, angular_error, histogram
from c5.classical import gray_world
from c5.datasets import read_samples
from c5.demo import Photo, VirtualCamera, render_roll
from c5.model import Model
from c5.model_file import write_model


@pytest.fixture(scope="module")
def model() -> Model:
    return c5.load_model()


@pytest.fixture(scope="module")
def roll() -> list[Photo]:
    rng = np.random.default_rng(21)
    return render_roll(VirtualCamera.random(rng), 6, rng, (96, 144))


def test_the_bundled_model_is_small_and_says_where_it_comes_from(model: Model, tmp_path: Path) -> None:
    assert write_model(tmp_path / "m.c5", model.file).stat().st_size <= 800_000
    assert model.file.licence == "Apache-2.0"
    assert len(model.file.training["cameras"]) == 14


def test_arrays_paths_and_images_are_one(model: Model, roll: list[Photo], tmp_path: Path) -> None:
    pixels = np.rint(np.where(roll[0].image.mask[..., None], roll[0].image.rgb, 0) * 65535).astype(np.uint16)
    path = tmp_path / "a.png"
    path.write_bytes(imagecodecs.png_encode(pixels))
    profile = model.calibrate(photo.image for photo in roll)
    found = [model.estimate(image, profile) for image in (pixels, str(path), path, LinearImage(pixels))]
    for other in found[1:]:
        np.testing.assert_array_equal(other.illuminant, found[0].illuminant)


def test_profiles_survive_their_file(model: Model, roll: list[Photo], tmp_path: Path) -> None:
    profile = model.calibrate(photo.image for photo in roll)
    path = profile.save(tmp_path / "camera.c5profile")
    again = Profile.load(path)
    assert path.stat().st_size <= 100_000
    assert (again.model, again.n_images, again.camera) == (model.identity, 6, roll[0].image.camera)
    np.testing.assert_array_equal(
        model.estimate(roll[0].image, again).illuminant, model.estimate(roll[0].image, profile).illuminant
    )


def test_a_profile_prints_in_a_line(model: Model, roll: list[Photo]) -> None:
    assert repr(model.calibrate([roll[0].image])).count("\n") == 0


def test_profiles_of_other_models_are_refused(model: Model, roll: list[Photo]) -> None:
    profile = model.calibrate([roll[0].image])
    with pytest.raises(ProfileError, match="calibrate again"):
        model.estimate(roll[0].image, Profile("0123456789abcdef", profile.features, 1))


def test_damaged_profiles(model: Model, roll: list[Photo], tmp_path: Path) -> None:
    path = model.calibrate([roll[0].image]).save(tmp_path / "p.c5profile")
    data = path.read_bytes()
    for keep in range(0, len(data), len(data) // 20):
        path.write_bytes(data[:keep])
        with pytest.raises(ProfileError, match=r"Model\.calibrate"):
            Profile.load(path)
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(ProfileError, match="not a camera profile"):
        Profile.load(tmp_path / "other.npz")
    with pytest.raises(ProfileError, match="no such file"):
        Profile.load(tmp_path / "none")


def test_profiles_with_missing_levels_are_refused(model: Model, roll: list[Photo]) -> None:
    profile = model.calibrate([roll[0].image])
    for features in (profile.features[:-1], (), tuple(level[:, 1:] for level in profile.features)):
        with pytest.raises(ProfileError, match="damaged"):
            model.estimate(roll[0].image, Profile(profile.model, features, 1))


def test_flipped_bytes_in_a_profile_never_crash(model: Model, roll: list[Photo], tmp_path: Path) -> None:
    path = model.calibrate([roll[0].image]).save(tmp_path / "p.c5profile")
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(data), 300):
        bad = bytearray(data)
        bad[place] ^= 1 << rng.integers(8)
        path.write_bytes(bad)
        try:
            model.check_profile(Profile.load(path))
        except ProfileError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_a_roll_of_two_cameras_is_refused(model: Model, roll: list[Photo]) -> None:
    other = LinearImage(roll[1].image.rgb, camera="Another")
    with pytest.raises(ProfileError, match="one camera's alone"):
        model.calibrate([roll[0].image, other])


def test_no_roll_and_an_empty_roll_are_one(model: Model, roll: list[Photo]) -> None:
    alone, empty = model.estimate(roll[0].image), model.estimate(roll[0].image, model.calibrate([]))
    np.testing.assert_array_equal(alone.illuminant, empty.illuminant)


@given(seed=seeds)
def test_exposure_and_masked_pixels_do_not_matter(model: Model, seed: int) -> None:
    image = textured(seed)
    base = model.estimate(image).illuminant
    assert angular_error(model.estimate(image * np.float32(0.5)).illuminant, base) < 0.02
    mask = np.ones(image.shape[:2], np.bool_)
    mask[:5, :7] = False
    changed = np.where(mask[..., None], image, 1 - image)
    np.testing.assert_array_equal(
        model.estimate(LinearImage(image, mask)).illuminant, model.estimate(LinearImage(changed, mask)).illuminant
    )


def test_unusable_images_are_errors(model: Model) -> None:
    for bad in (np.zeros((20, 30, 3)), np.ones((20, 30, 3)), np.full((20, 30, 3), np.nan), np.zeros((20, 30))):
        with pytest.raises(ImageError):
            model.estimate(bad)
    with pytest.raises(ParameterError):
        model.estimate_histogram(histogram(np.full((9, 9, 3), 0.5), Grid()))


def test_threads_do_not_change_the_answer(roll: list[Photo]) -> None:
    one, two = (c5.load_model(threads=n).estimate(roll[2].image).illuminant for n in (1, 2))
    assert angular_error(one, two) < 1e-3


def test_a_roll_helps_on_cameras_nobody_trained_on(model: Model) -> None:
    """Rendered cameras and scenes are foreign to the bundled model in every way; the roll must still help."""
    rng = np.random.default_rng(77)
    alone, with_roll, gray, inside = [], [], [], []
    for _ in range(8):
        photos = render_roll(VirtualCamera.random(rng), 10, rng, (96, 144))
        profile = model.calibrate(photo.image for photo in photos)
        for photo in photos:
            alone.append(float(angular_error(model.estimate(photo.image).illuminant, photo.illuminant)))
            found = model.estimate(photo.image, profile)
            with_roll.append(float(angular_error(found.illuminant, photo.illuminant)))
            inside.append(with_roll[-1] < (found.bound_deg or 0))
            gray.append(float(angular_error(gray_world(photo.image), photo.illuminant)))
    assert np.mean(with_roll) < np.mean(alone)
    assert np.mean(with_roll) < 0.9 * np.mean(gray)
    assert np.mean(inside) > 0.65  # nothing is promised of scenes that are not real


def test_real_images(model: Model, test_data: Path) -> None:
    """The bundled model has seen these images, so this checks the chain, not the method."""
    samples = read_samples(test_data / "data" / "ffcc_sample")
    errors, bounds = [], []
    for camera in sorted({sample.camera for sample in samples}):
        own = [sample for sample in samples if sample.camera == camera]
        profile = model.calibrate(sample.read() for sample in own)
        for sample in own:
            found = model.estimate(sample.read(), profile)
            errors.append(float(angular_error(found.illuminant, sample.illuminant)))
            bounds.append(found.bound_deg or 0)
    assert len(errors) == 100
    assert np.mean(errors) < 2.0
    assert np.mean(np.array(errors) < np.array(bounds)) >= 0.85


def test_pooled_profiles_are_the_profile_of_all_their_images(model: Model, roll: list[Photo]) -> None:
    images = [photo.image for photo in roll]
    whole = model.calibrate(images)
    parts = model.pool([model.calibrate(images[:2]), model.calibrate([]), model.calibrate(images[2:])])
    assert parts.n_images == whole.n_images == len(images)
    for one, other in zip(whole.features, parts.features, strict=True):
        np.testing.assert_array_equal(one, other)
    nothing = model.pool([])
    assert nothing.n_images == 0
    np.testing.assert_array_equal(model.estimate(images[0], nothing).illuminant, model.estimate(images[0]).illuminant)
