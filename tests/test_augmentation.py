"""Laws of made images: gray takes the color of the light, a camera mapped to itself is itself, nothing is hidden."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from command import c5
from hypothesis import given
from hypothesis import strategies as st
from laws import seeds, textured
from numpy.typing import NDArray
from PIL import Image

from c5.augmentation import Augmentation, MappedImage, augment, map_image
from c5.augmentation import draw as drawing
from c5.augmentation.draw import MOST_LOST, Groups, Material, rank_lights
from c5.augmentation.illuminants import CameraLights, chromaticity, cluster, describe, fit_cubic
from c5.augmentation.plot import plot_lights, show_images
from c5.color import Float64s, angular_error, as_illuminant, gains, rgb_to_uv, white_balance
from c5.colorimetry.matrices import COLUMNS, CameraMatrices, read_matrices
from c5.datasets import Capture, Sample, read_samples, write_pack
from c5.demo import LIGHTS, SCENE_LIGHTS, VirtualCamera, render_photo
from c5.errors import DataError, ParameterError
from c5.image import Crop, LinearImage

KELVINS = np.linspace(2600, 7400, 40)
LIGHT = as_illuminant([0.5, 1, 0.7])
OTHER = as_illuminant([0.8, 1, 0.4])


@dataclass(frozen=True, eq=False)
class Array:
    """Pixels in memory."""

    rgb: NDArray[np.float32]
    path: Path = Path("memory.png")

    def read(self) -> LinearImage:
        return LinearImage(self.rgb)

    def digest(self) -> str:
        return hashlib.sha256(self.rgb.tobytes()).hexdigest()


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def calibrate(camera: VirtualCamera) -> CameraMatrices:
    return CameraMatrices(camera.name, camera.color_matrix(2856), camera.color_matrix(6504))


@cache
def catalog() -> dict[str, CameraMatrices]:
    """Three cameras that photographs come from, and some known by their matrices alone."""
    known = {}
    for seed, name in enumerate(["Alpha", "Beta", "Gamma", "Canon-EOS-5D", "Canon-EOS-1D", "Delta"]):
        known[name] = replace(calibrate(VirtualCamera.random(rng(seed))), name=name)
    return known


@cache
def photographs(camera: str, capture: bool = False, ccm: bool = True) -> tuple[Sample, ...]:
    """Gray scenes with colored things in lights of all temperatures, a little off the curve."""
    matrices, scatter = catalog()[camera], rng(7)
    samples = []
    for number, kelvin in enumerate(KELVINS):
        light = as_illuminant(matrices.illuminant(kelvin) * np.exp(scatter.normal(0, 0.01, 3)))
        scene = textured(number)
        samples.append(
            Sample(
                Array((0.5 * scene + 0.2) * light.astype(np.float32)),
                light,
                camera=camera,
                dataset="studio",
                name=f"studio/{camera}/{number:03d}",
                scene=str(number),
                ccm=matrices.ccm(5500) if ccm else None,
                capture=Capture(aperture=2 + number % 4, exposure=1 / (1 + number)) if capture else None,
            )
        )
    return tuple(samples)


@cache
def studio() -> tuple[Sample, ...]:
    return photographs("Alpha") + photographs("Beta") + photographs("Gamma")


METHODS = pytest.mark.parametrize("method", list(Augmentation))


def make(method: Augmentation, count: int = 60, seed: int = 0, **options: object) -> list[Sample]:
    return list(augment(studio(), method, count, rng(seed), matrices=catalog(), **options))  # type: ignore[arg-type]


def draw(
    samples: Sequence[Sample],
    method: Augmentation,
    *,
    targets: Sequence[Sample] | None = None,
    matrices: Mapping[str, CameraMatrices] | None = None,
    exclude: str | None = None,
) -> Iterator[Sample]:
    barred = frozenset() if exclude is None else frozenset({exclude})
    return drawing.draw(Material.gather(samples, targets or samples, matrices or {}, barred), method, rng())


def balanced_angles(image: LinearImage, light: Float64s, truth: LinearImage, true_light: Float64s) -> Float64s:
    """The angles between the white-balanced colors of two images of one scene, where both count."""
    counts = image.counts & truth.counts
    return angular_error(white_balance(image.rgb, light)[counts], white_balance(truth.rgb, true_light)[counts])


# ---- one image


@given(seed=seeds)
def test_a_camera_mapped_to_itself_in_the_same_light_is_itself(seed: int) -> None:
    image = LinearImage(textured(seed))
    same = map_image(image, np.eye(3), LIGHT, LIGHT)
    np.testing.assert_allclose(same.rgb, image.rgb, rtol=1e-5)
    np.testing.assert_array_equal(same.counts, image.counts)


@given(seed=seeds)
def test_there_and_back_again_returns_the_image(seed: int) -> None:
    image = LinearImage(0.3 * textured(seed) + 0.2)
    matrix = np.linalg.solve(catalog()["Beta"].ccm(5000), catalog()["Alpha"].ccm(5000))
    there = map_image(image, matrix, LIGHT, OTHER)
    back = map_image(there, np.linalg.inv(matrix), OTHER, LIGHT)
    assert there.counts.all()
    np.testing.assert_allclose(back.rgb, image.rgb, rtol=2e-3, atol=1e-4)


@given(seed=seeds, level=st.floats(0.01, 0.9))
def test_gray_takes_the_color_of_the_new_light(seed: int, level: float) -> None:
    rgb = textured(seed) * 0.2
    rgb[5, 7] = level * LIGHT
    matrix = np.linalg.solve(catalog()["Beta"].ccm(3000), catalog()["Alpha"].ccm(6000))
    made = map_image(LinearImage(rgb), matrix, LIGHT, OTHER)
    assert angular_error(made.rgb[5, 7], OTHER) < 0.001


@given(seed=seeds, factors=st.tuples(*[st.floats(0.5, 2)] * 3))
def test_gains_of_the_source_change_nothing_but_exposure(seed: int, factors: tuple[float, float, float]) -> None:
    rgb, channel_gains = textured(seed) * 0.4, np.array(factors)
    matrix = np.linalg.solve(catalog()["Beta"].ccm(5000), catalog()["Alpha"].ccm(5000))
    plain = map_image(LinearImage(rgb), matrix, LIGHT, OTHER)
    gained = map_image(LinearImage(rgb * channel_gains), matrix, as_illuminant(LIGHT * channel_gains), OTHER)
    np.testing.assert_allclose(gained.rgb / gained.rgb.max(), plain.rgb / plain.rgb.max(), rtol=1e-3, atol=1e-5)


def test_nothing_is_lost_flags_stay_and_the_exposure_holds() -> None:
    rgb = textured(1)
    rgb[0, 0] = 1, 0.9, 0.2
    mask = np.ones(rgb.shape[:2], np.bool_)
    mask[3, :] = False
    image = LinearImage(rgb, mask)
    made = map_image(image, np.eye(3), LIGHT, OTHER)
    assert made.clipped[0, 0]
    assert made.clipped.sum() == 1
    assert made.rgb[0, 0].max() == 1  # whoever sees no flags sees that it is clipped
    np.testing.assert_array_equal(made.mask, mask)
    assert made.rgb[made.counts].max() == pytest.approx(image.rgb[image.counts].max())
    np.testing.assert_allclose(
        (made.rgb / made.rgb[5, 5])[made.counts] * (image.rgb[5, 5] / image.rgb)[made.counts], 1, rtol=1e-4
    )


def test_colors_out_of_gamut_do_not_count_and_near_gamut_becomes_zero() -> None:
    matrix = np.array([[1.5, -0.5, 0.0], [0, 1, 0], [0, 0, 1]])
    rgb = np.full((4, 4, 3), 0.3, np.float32)
    rgb[0, 0] = 0.02, 0.5, 0.1  # red goes to -0.22
    rgb[0, 1] = 0.165, 0.5, 0.1  # red goes to -0.0025
    white = as_illuminant([1, 1, 1])
    made = map_image(LinearImage(rgb), matrix, white, white)
    assert not made.mask[0, 0]
    assert made.mask.sum() == 15
    assert made.rgb[0, 1, 0] == 0
    assert made.counts[0, 1]


def test_an_image_without_a_counting_pixel_stays_one() -> None:
    made = map_image(LinearImage(np.zeros((4, 4, 3), np.float32)), np.eye(3), LIGHT, OTHER)
    assert not made.counts.any()


def test_crops_are_parts_of_the_image() -> None:
    image = LinearImage(textured(2))
    whole = Crop().cut(image)
    np.testing.assert_array_equal(whole.rgb, image.rgb)
    part = Crop(0.25, 0.5, 0.5, 0.4).cut(image)
    np.testing.assert_array_equal(part.rgb, image.rgb[6:18, 15:27])
    for seed in range(50):
        crop = Crop.random(rng(seed), 0.5)
        height, width = crop.cut(image).rgb.shape[:2]
        assert 12 <= height <= 24
        assert 15 <= width <= 30
    assert Crop.random(rng(), 1) == Crop()
    assert Crop(0.99, 0.99, 0.001, 0.001).cut(image).rgb.shape == (1, 1, 3)


def test_digests_depend_on_the_source_and_on_each_part_of_the_recipe() -> None:
    source = Array(textured(1))
    recipe = MappedImage(source, np.eye(3), LIGHT, OTHER)
    others = [
        replace(recipe, source=Array(textured(2))),
        replace(recipe, matrix=2 * np.eye(3)),
        replace(recipe, before=OTHER),
        replace(recipe, after=LIGHT),
        replace(recipe, crop=Crop(0, 0, 0.5, 1)),
    ]
    digests = {each.digest() for each in (recipe, *others)}
    assert len(digests) == 6
    assert {len(digest) for digest in digests} == {64}
    assert MappedImage(Array(textured(1)), np.eye(3), LIGHT, OTHER).digest() == recipe.digest()
    assert recipe.path == source.path
    with pytest.raises(ParameterError, match="3 by 3"):
        MappedImage(source, np.eye(2), LIGHT, OTHER)
    with pytest.raises(ParameterError, match="illuminant"):
        MappedImage(source, np.eye(3), LIGHT, np.zeros(3))


def test_mapping_brings_an_image_nearer_to_what_the_other_camera_really_sees() -> None:
    """The paper's figure as a test: scenes rendered from spectra with two cameras, one mapped to the other."""
    plain, mapped = [], []
    for seed, scene in enumerate(islice(SCENE_LIGHTS, 6)):
        first, second = (VirtualCamera.random(rng(10 + 2 * seed + i)) for i in (0, 1))
        light = LIGHTS[SCENE_LIGHTS[scene][0]](rng(seed))
        photo, truth = (render_photo(camera, scene, light, rng(seed), (96, 144)) for camera in (first, second))
        a, b = calibrate(first), calibrate(second)
        ccms = [each.ccm(float(each.temperature(p.illuminant))) for each, p in ((a, photo), (b, truth))]
        made = map_image(photo.image, np.linalg.solve(ccms[1], ccms[0]), photo.illuminant, truth.illuminant)
        unmapped = map_image(photo.image, np.eye(3), photo.illuminant, truth.illuminant)
        plain.append(balanced_angles(unmapped, truth.illuminant, truth.image, truth.illuminant).mean())
        mapped.append(balanced_angles(made, truth.illuminant, truth.image, truth.illuminant).mean())
    assert np.mean(mapped) < 0.7 * np.mean(plain)
    assert sum(m < p for m, p in zip(mapped, plain, strict=True)) >= 5


# ---- lights of a camera


def lights_of(camera: str, capture: bool = False) -> CameraLights:
    samples = photographs(camera, capture)
    return CameraLights.fit(samples, describe(samples, KELVINS), np.stack([np.eye(3)] * len(samples)))


@given(kelvin=st.floats(2000, 9000), count=st.integers(1, 40))
def test_weights_of_neighbors_sum_to_one_and_fall_with_distance(kelvin: float, count: int) -> None:
    near = lights_of("Alpha").find_near(np.array([kelvin, np.nan, np.nan, np.nan]), count)
    assert len(near.indices) == len(set(near.indices)) == count
    assert near.weights.sum() == pytest.approx(1)
    assert (np.diff(near.weights) <= 1e-12).all()
    assert near.weights[0] <= np.e * near.weights[-1] * (1 + 1e-9)
    farthest = np.abs(KELVINS[near.indices] - kelvin).max()
    assert (np.abs(np.delete(KELVINS, near.indices) - kelvin) >= farthest - 1e-9).all()


def test_capture_settings_decide_between_like_temperatures_where_both_sides_know_them() -> None:
    known, unknown = lights_of("Alpha", capture=True), lights_of("Alpha")
    sample = photographs("Beta", capture=True)[13]
    feature = describe([sample], np.array([5000.0]))[0]
    assert np.isnan(feature[1])
    near = known.find_near(feature, 4)
    assert {photographs("Alpha", capture=True)[i].capture.aperture for i in near.indices} != {2, 3, 4, 5}  # type: ignore[union-attr]
    by_temperature = set(unknown.find_near(feature, 4).indices)
    assert by_temperature == set(np.argsort(np.abs(KELVINS - 5000))[:4])
    assert set(near.indices) != by_temperature


def test_lights_without_shift_lie_on_the_cubic_and_shifts_are_in_standard_deviations() -> None:
    lights = lights_of("Gamma")
    near = lights.find_near(np.array([4000, np.nan, np.nan, np.nan]), 15)
    still = lights.sample_light(near, np.zeros(2))
    assert still.sum() == pytest.approx(1)
    rg = chromaticity(lights.illuminants[near.indices])
    assert still[0] == pytest.approx(near.weights @ rg[:, 0])
    assert still[1] == pytest.approx(np.polyval(lights.cubic, still[0]))
    assert lights.sample_light(near, np.array([0, 2.0]))[1] - still[1] == pytest.approx(2 * rg[:, 1].std())
    assert lights.sample_light(near, np.array([0.5, 0]))[0] - still[0] == pytest.approx(0.5 * rg[:, 0].std())


def test_a_cubic_is_found_again() -> None:
    r = np.linspace(0.2, 0.5, 30)
    cubic = np.array([2.0, -3.0, 1.5, 0.2])
    g = np.polyval(cubic, r)
    np.testing.assert_allclose(fit_cubic(np.stack([r, g, 1 - r - g], axis=1)), cubic, atol=1e-6)
    same = np.tile(LIGHT, (9, 1))  # one light only: a constant
    assert np.polyval(fit_cubic(same), 0.9) == pytest.approx(chromaticity(LIGHT)[1])


def test_clusters_are_those_that_are_there() -> None:
    centers = np.array([[0, 0], [5, 0], [0, 5.0]])
    points = np.concatenate([center + rng(1).normal(0, 0.1, (n, 2)) for center, n in zip(centers, (5, 50, 20))])  # noqa: B905
    found = sorted(cluster(points, 3, rng()), key=len)
    assert [len(members) for members in found] == [5, 20, 50]
    assert sorted(np.concatenate(found)) == list(range(75))
    assert len(cluster(np.zeros((9, 2)), 4, rng())) == 1


# ---- drawing


def test_groups_of_temperature_are_drawn_uniformly() -> None:
    values = np.array([2600.0] * 90 + [3100.0] * 9 + [7400.0])
    groups = Groups(values, 250)
    source = rng()
    drawn = Counter(values[groups.draw(source)] for _ in range(3000))
    assert set(drawn) == {2600, 3100, 7400}
    assert max(drawn.values()) / min(drawn.values()) < 1.2


def test_sources_of_a_rare_temperature_are_not_rare_in_the_paper_s_method() -> None:
    common, rare = photographs("Alpha")[20], photographs("Alpha")[2]
    many = [replace(common, name=f"studio/Alpha/again {i}") for i in range(50)]
    made = islice(draw([rare, *many], Augmentation.PAPER, targets=photographs("Beta"), matrices=catalog()), 400)
    assert 0.4 < np.mean([rare.name in sample.sources for sample in made]) < 0.6


@METHODS
def test_the_same_seed_makes_the_same_images(method: Augmentation) -> None:
    first, second, other = (make(method, 10, seed) for seed in (3, 3, 4))
    assert [s.pixels.digest() for s in first] == [s.pixels.digest() for s in second]
    assert {s.pixels.digest() for s in first}.isdisjoint(s.pixels.digest() for s in other)
    assert [s.name for s in first] == [f"augmented/{method.value}/{number:06d}" for number in range(10)]
    # How many are asked for does not change the first ones.
    assert [s.pixels.digest() for s in make(method, 4, 3)] == [s.pixels.digest() for s in first[:4]]


@METHODS
def test_the_label_is_the_color_of_gray_in_the_image(method: Augmentation) -> None:
    gray = [
        replace(sample, pixels=Array(np.full((8, 8, 3), 0.4, np.float32) * sample.illuminant.astype(np.float32)))
        for sample in studio()
    ]
    for sample in augment(gray, method, 30, rng(), matrices=catalog()):
        image = sample.read()
        assert image.camera == sample.camera
        assert angular_error(image.rgb[image.counts], sample.illuminant).max() < 0.001
        assert sample.illuminant.shape == (3,)
        assert np.linalg.norm(sample.illuminant) == pytest.approx(1)


@METHODS
def test_everything_that_went_in_is_named(method: Augmentation) -> None:
    names = {sample.name: sample for sample in studio()}
    pixels = {id(sample.pixels): sample for sample in studio()}
    for sample in make(method):
        assert sample.made
        assert isinstance(sample.pixels, MappedImage)
        source = pixels[id(sample.pixels.source)]
        assert {source.name} | (sample.sources & names.keys()) == sample.sources
        assert {names[name].camera for name in sample.sources} <= sample.cameras
        assert sample.scene == f"studio/{source.scene}"
        if method in (Augmentation.SAMPLING, Augmentation.CLUSTERING):
            assert sample.camera == source.camera
            assert any(np.allclose(names[name].illuminant, sample.illuminant) for name in sample.sources)
        if method is Augmentation.CATALOG:
            assert sample.camera in sample.cameras
            assert len(sample.sources) <= 2
            if sample.camera == "Canon-EOS-5D":
                assert "Canon5D" in sample.cameras
        if method is Augmentation.PAPER:  # the cubic is fitted to all of the target's labels
            assert {s.name for s in photographs(sample.camera)} <= sample.sources
            assert sample.cameras == {source.camera, sample.camera}
        if method is Augmentation.VIRTUAL:
            mixed = sample.camera.split()
            assert {mixed[2], mixed[4]} | {source.camera} == sample.cameras
            assert -0.2 <= float(mixed[5]) <= 1.2


def test_samples_of_one_target_share_their_list_of_sources() -> None:
    made = make(Augmentation.PAPER, 200, targets=photographs("Beta"))
    assert len({id(sample.sources) for sample in made if sample.cameras == {"Beta"}}) == 1
    assert len({id(sample.sources) for sample in made}) <= 1 + 2 * 40


def test_sources_and_targets_are_kept_apart() -> None:
    made = list(
        augment(photographs("Alpha"), Augmentation.PAPER, 40, rng(), targets=photographs("Beta"), matrices=catalog())
    )
    assert {sample.camera for sample in made} == {"Beta"}
    assert all(sample.cameras == {"Alpha", "Beta"} for sample in made)
    distances = [angular_error(s.illuminant, [p.illuminant for p in photographs("Beta")]).min() for s in made]
    assert max(distances) < 3
    assert len({tuple(sample.illuminant) for sample in made}) == 40


def test_lights_follow_the_temperature_of_the_source() -> None:
    matrices = catalog()
    for method in (Augmentation.PAPER, Augmentation.CATALOG):
        pairs = []
        pixels = {id(sample.pixels): sample for sample in studio()}
        for sample in make(method, 100):
            assert isinstance(sample.pixels, MappedImage)
            source = pixels[id(sample.pixels.source)]
            pair = ((s.camera, s.illuminant) for s in (source, sample))
            pairs.append([float(matrices[camera].temperature(light)) for camera, light in pair])
        assert np.corrcoef(np.array(pairs).T)[0, 1] > 0.8


@METHODS
def test_an_excluded_camera_never_appears_under_any_name(method: Augmentation) -> None:
    barred = [replace(sample, camera="Canon5D", cameras=frozenset({"Canon5D"})) for sample in photographs("Gamma")]
    samples = [*photographs("Alpha"), *photographs("Beta"), *barred]
    for exclude in ("Canon5D", "Canon-EOS-5D"):
        drawn = draw(samples, method, matrices=catalog(), exclude=exclude)
        for sample in islice(drawn, 300):
            assert sample.cameras.isdisjoint({"Canon5D", "Canon-EOS-5D"})
            assert not any("Gamma" in name for name in sample.sources)
    if method is Augmentation.CATALOG:
        seen = {sample.camera for sample in islice(draw(samples, method, matrices=catalog()), 300)}
        assert seen == set(catalog())


def test_a_twin_with_the_matrices_of_an_excluded_camera_is_excluded_too() -> None:
    known = catalog()
    twins = known | {"Twin": replace(known["Gamma"], name="Twin")}
    samples = [*photographs("Alpha"), *photographs("Beta")]
    drawn = draw(samples, Augmentation.CATALOG, matrices=twins, exclude="Gamma")
    seen = {sample.camera for sample in islice(drawn, 300)}
    assert seen == set(known) - {"Gamma"}


def test_virtual_and_catalog_cameras_make_rolls() -> None:
    for method in (Augmentation.VIRTUAL, Augmentation.CATALOG):
        made = make(method, 60)
        assert min(Counter(sample.camera for sample in made).values()) >= 10


def test_a_virtual_camera_at_the_end_of_its_line_is_that_camera(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BEYOND": 0.0, "SPREAD": (0, 0), "IMAGES_PER_CAMERA": 1}.items():
        monkeypatch.setattr(drawing, name, value)
    ccms = {name: catalog()[name].ccm(5500) for name in ("Alpha", "Beta")}
    samples = [*photographs("Alpha"), *photographs("Beta")]
    for sample in islice(draw(samples, Augmentation.VIRTUAL, matrices=catalog()), 600):
        assert sample.ccm is not None
        first, second, t = (sample.camera.split()[i] for i in (2, 4, 5))
        expected = np.linalg.inv((1 - float(t)) * np.linalg.inv(ccms[first]) + float(t) * np.linalg.inv(ccms[second]))
        np.testing.assert_allclose(sample.ccm, expected, atol=1e-6)


def test_virtual_cameras_need_no_catalog() -> None:
    made = list(augment(studio(), Augmentation.VIRTUAL, 20, rng()))
    assert len(made) == 20
    ranks = rank_lights(studio())
    assert ranks.min() == pytest.approx(0.5 / 40)
    for camera in range(3):  # KELVINS ascend, and warm comes first
        assert np.corrcoef(ranks[40 * camera : 40 * camera + 40], KELVINS)[0, 1] > 0.99


def test_without_xyz_the_light_alone_changes() -> None:
    mapped = make(Augmentation.PAPER, 10)
    unmapped = make(Augmentation.PAPER, 10, via_xyz=False)
    for one, other in zip(mapped, unmapped, strict=True):
        assert isinstance(one.pixels, MappedImage)
        assert isinstance(other.pixels, MappedImage)
        np.testing.assert_array_equal(one.illuminant, other.illuminant)
        np.testing.assert_array_equal(other.pixels.matrix, np.eye(3))
        assert one.pixels.crop == other.pixels.crop


def test_ccms_are_the_photographs_own_or_else_the_catalog_s() -> None:
    own, bare = photographs("Alpha"), photographs("Alpha", ccm=False)
    with_own = Material.gather(own, own, catalog())
    np.testing.assert_array_equal(with_own.find_ccm(own[0]), catalog()["Alpha"].ccm(5500))
    without = Material.gather(own, bare, catalog())  # both ends from the same kind
    kelvin = float(catalog()["Alpha"].temperature(own[0].illuminant))
    for sample in (own[0], bare[0]):
        np.testing.assert_allclose(without.find_ccm(sample), catalog()["Alpha"].ccm(kelvin))


def test_bad_images_are_rejected_and_drawn_again() -> None:
    dark = Array(np.zeros((16, 16, 3), np.float32))
    some = [replace(s, pixels=dark) if i % 2 else s for i, s in enumerate(photographs("Alpha"))]
    made = list(augment(some, Augmentation.SAMPLING, 100, rng()))
    assert len(made) == 100
    for sample in made:
        assert isinstance(sample.pixels, MappedImage)
        assert sample.pixels.source is not dark
    with pytest.raises(DataError, match="in a row"):
        next(augment([replace(s, pixels=dark) for s in some], Augmentation.SAMPLING, 1, rng()))


def test_images_out_of_the_target_s_gamut_are_rejected() -> None:
    sources = []
    for number, sample in enumerate(photographs("Alpha")):
        rgb = np.full((20, 20, 3), 0.3, np.float32)
        if number % 2:
            rgb[:] = 0.001, 0.001, 0.5  # a blue that no other camera sees so pure
        sources.append(replace(sample, pixels=Array(rgb * sample.illuminant.astype(np.float32))))
    targets = [replace(s, ccm=np.array([[1.4, -0.3, -0.1], [-0.2, 1.6, -0.4], [0, -0.4, 1.4]])) for s in sources]
    sources = [replace(s, ccm=np.eye(3) * 1.8 - 0.8 / 3) for s in sources]
    made = list(augment(sources, Augmentation.PAPER, 30, rng(), targets=targets, matrices=catalog()))
    for sample in made:
        assert sample.read().counts.mean() >= 1 - MOST_LOST


def test_what_is_missing_is_said_with_its_remedy() -> None:
    alpha = photographs("Alpha")
    stranger = [replace(s, camera="Box 1", cameras=frozenset({"Box 1"})) for s in alpha]
    with pytest.raises(DataError, match=r"Box 1: no matrices .*matrices=read_matrices"):
        next(draw(stranger, Augmentation.PAPER, matrices=catalog()))
    with pytest.raises(DataError, match=r"Alpha: no matrices .*matrices=read_matrices"):
        next(draw(alpha, Augmentation.PAPER))
    with pytest.raises(ParameterError, match="matrices=read_matrices"):
        next(draw(alpha, Augmentation.CATALOG))
    bare = [replace(s, camera="Box 1", ccm=None) for s in alpha]
    with pytest.raises(DataError, match="Box 1: no matrices"):
        next(draw([*bare, *alpha], Augmentation.VIRTUAL))
    with pytest.raises(DataError, match="Alpha: the only target camera"):
        next(draw(alpha, Augmentation.VIRTUAL))
    with pytest.raises(DataError, match="Alpha: 5 photographs; 8 are needed"):
        next(draw(alpha[:5], Augmentation.PAPER, matrices=catalog()))
    with pytest.raises(DataError, match="Alpha: no labels of this camera among the targets"):
        next(draw(alpha, Augmentation.CLUSTERING, targets=photographs("Beta")))
    with pytest.raises(DataError, match="Alpha: no other photograph"):
        next(draw(alpha[:1], Augmentation.SAMPLING))
    with pytest.raises(ParameterError, match="exclude fewer"):
        next(draw(alpha, Augmentation.SAMPLING, exclude="Alpha"))
    with pytest.raises(ParameterError, match="at least 1"):
        next(augment(alpha, Augmentation.SAMPLING, 0, rng()))


def test_balanced_colors_of_a_made_image_are_the_source_s_in_srgb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "SMALLEST_CROP", 1)
    for sample in make(Augmentation.PAPER, 5):
        assert isinstance(sample.pixels, MappedImage)
        assert sample.ccm is not None
        source = sample.pixels.source.read()
        before = source.rgb * gains(sample.pixels.before) @ (sample.ccm @ sample.pixels.matrix).T
        after = sample.read()
        there = after.rgb * gains(sample.illuminant) @ sample.ccm.T
        inside = after.counts & (after.rgb > 0).all(axis=-1)
        assert inside.mean() > 0.8
        assert angular_error(before[inside], there[inside]).max() < 0.05


# ---- the command


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pack of photographs, and the catalog of their cameras."""
    folder = tmp_path_factory.mktemp("shelf")
    write_pack(studio(), folder / "studio.c5data")
    rows = [["camera", *COLUMNS]]
    for name, known in catalog().items():
        rows.append([name, *(f"{value:.17g}" for value in (*known.matrix_a.ravel(), *known.matrix_d65.ravel()))])
    (folder / "cameras.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    return folder


def test_the_command_writes_a_pack_and_pictures(shelf: Path, tmp_path: Path) -> None:
    out, plots = tmp_path / "made.c5data", tmp_path / "plots"
    arguments = [shelf / "studio.c5data", "-o", out, "--matrices", shelf / "cameras.csv", "--made", 12]
    done = c5("augment", *arguments, "--target", "Beta", "--exclude", "Gamma", "--plots", plots)
    assert done.returncode == 0, done.stderr
    assert f"{out}: 12 images" in done.stdout
    samples = read_samples(out)
    assert [sample.name for sample in samples] == [f"made/paper/{number:06d}" for number in range(12)]
    assert all(sample.camera == "Beta" and sample.made and sample.cameras <= {"Alpha", "Beta"} for sample in samples)
    assert {path.name for path in plots.iterdir()} == {"illuminants.png", "pictures.png"}
    again = c5("augment", *arguments)
    assert again.returncode == 1
    assert "--overwrite" in again.stderr
    options = ("-o", tmp_path / "light.c5data", "--made", 2, "--augmentation", "paper:without-xyz")
    refused = c5("augment", *arguments, *options, "--plots", plots)
    assert "illuminants.png: exists already; choose another name or give --overwrite" in refused.stderr
    assert not (tmp_path / "light.c5data").exists()
    assert c5("augment", *arguments, *options).returncode == 0


def test_the_command_says_what_is_wrong_in_one_line_and_begins_no_file(shelf: Path, tmp_path: Path) -> None:
    data, out = shelf / "studio.c5data", tmp_path / "made.c5data"
    for arguments, message in [
        ([], "Alpha: no matrices of this camera are known; give --matrices FILE"),
        (["--augmentation", "magic"], "there are paper, sampling, clustering, virtual, catalog"),
        (["--target", "Bet"], "no camera is called 'Bet'; the data have Alpha, Beta, Gamma"),
        (["--exclude", "Alph"], "--exclude Alph: neither in the data nor among the matrices"),
    ]:
        done = c5("augment", data, "-o", out, *arguments)
        assert done.returncode == 1
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


# ---- pictures and real data


def test_plots_show_something(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for method in (Augmentation.PAPER, Augmentation.VIRTUAL):
        made = make(method, 30)
        lights = np.asarray(Image.open(plot_lights(tmp_path / "lights.png", made, studio())).convert("L"))
        assert lights.shape[0] > 200
        assert lights.std() > 10
        sheet = np.asarray(Image.open(show_images(tmp_path / "images.png", made, studio(), "Made", count=1)))
        assert sheet.std() > 10
    with pytest.raises(ParameterError, match="just made"):
        show_images(tmp_path / "images.png", studio(), studio(), "Made")


def test_real_photographs_become_others(test_data: Path) -> None:
    samples = read_samples(test_data / "data" / "ffcc_sample")
    known = read_matrices(test_data / "data" / "camera_matrices.csv")
    for method in Augmentation:
        for sample in augment(samples, method, 12, rng(), matrices=known, exclude=frozenset({"SonyA57"})):
            image = sample.read()
            assert image.counts.mean() > 0.1
            assert image.rgb.max() <= 1
            assert np.abs(rgb_to_uv(sample.illuminant)).max() < 2
            assert sample.cameras.isdisjoint({"SonyA57", "Sony-SLT-A57"})
