from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import margin, seeds, textured
from numpy.typing import ArrayLike

from c5 import Geometry, Grid, ImageError, LinearImage, ParameterError, ReadError, histograms, read_image
from c5 import histogram as count
from c5.color import Float32s, rgb_to_uv
from c5.fingerprints import probe
from c5.histograms import PROBE_SEEDS, ROWS_SEED, Histograms, erode

BINS = [16, 32, 64, 128]


def histogram(image: ArrayLike | LinearImage, grid: Grid = Grid()) -> Float32s:
    """The stack of an image's histograms."""
    return count(image, grid).stack


def centroid_uv(masses: np.ndarray, grid: Grid) -> np.ndarray:
    """The mean log-chroma of a histogram before its square root."""
    masses = masses / masses.sum()
    return np.array([masses.sum(axis=0) @ grid.u, masses.sum(axis=1) @ grid.v])


@pytest.mark.parametrize("bins", BINS)
@given(u=st.floats(-2.1, 2.1), v=st.floats(-2.1, 2.1))  # two bins from the edge, at 16 bins
def test_a_single_color_decodes_to_itself(bins: int, u: float, v: float) -> None:
    grid = Grid(bins)
    color = np.exp([-u, 0, -v]) / np.exp(2.6)
    counted = histogram(np.full((4, 5, 3), color), grid)[0].astype(np.float64) ** 2
    np.testing.assert_allclose(centroid_uv(counted, grid), [u, v], atol=1e-5)


def patches(seed: int) -> np.ndarray:
    """Patches of one color each, textured in brightness alone, with black between them: no color, and no gradient,
    leaves the histogram when gains move it."""
    rng = np.random.default_rng(seed)
    image = rng.uniform(0.5, 1, (24, 30, 1)) * np.kron(rng.uniform(0.1, 0.3, (4, 5, 3)), np.ones((6, 6, 1)))
    image[::6] = image[:, ::6] = 0
    return image.astype(np.float32)


@pytest.mark.parametrize("bins", BINS)
@given(seed=seeds, right=st.integers(-3, 3), up=st.integers(-3, 3))
def test_gains_of_whole_bins_move_the_histogram(bins: int, seed: int, right: int, up: int) -> None:
    grid = Grid(bins)
    image = patches(seed)
    moved = image * np.exp([-right * grid.step, 0, -up * grid.step]) * 0.3
    expected = np.roll(histogram(image, grid), (up, right), axis=(1, 2))
    np.testing.assert_allclose(histogram(moved, grid), expected, atol=2e-4)


@given(seed=seeds, u=st.floats(-0.5, 0.5), v=st.floats(-0.5, 0.5))
def test_any_gains_move_the_centroid_by_as_much(seed: int, u: float, v: float) -> None:
    grid = Grid()
    image = patches(seed)
    for before, after in zip(histogram(image, grid), histogram(image * np.exp([-u, 0, -v]) * 0.3, grid), strict=True):
        shift = centroid_uv(after.astype(np.float64) ** 2, grid) - centroid_uv(before.astype(np.float64) ** 2, grid)
        np.testing.assert_allclose(shift, [u, v], atol=1e-3)


@given(seed=seeds, gain=st.floats(0.1, 1.9))
def test_exposure_does_not_move_the_histogram(seed: int, gain: float) -> None:
    np.testing.assert_allclose(histogram(textured(seed) * gain), histogram(textured(seed)), atol=1e-4)


@given(seed=seeds, other=seeds)
def test_masked_pixels_do_not_matter(seed: int, other: int) -> None:
    rng = np.random.default_rng(seed)
    image, noise = textured(seed), textured(other)
    mask = np.ones(image.shape[:2], np.bool_)
    mask[4:12, 5 : rng.integers(8, 25)] = False
    changed = np.where(mask[..., None], image, noise)
    for grid in (Grid(), Grid.published()):
        np.testing.assert_array_equal(
            histogram(LinearImage(image, mask), grid), histogram(LinearImage(changed, mask), grid)
        )


def test_black_and_clipped_pixels_do_not_count() -> None:
    image = textured(3)
    for value in (0.0, 1.0):
        changed = image.copy()
        changed[5:9, 5:9] = value
        mask = np.ones(image.shape[:2], np.bool_)
        mask[5:9, 5:9] = False
        np.testing.assert_array_equal(histogram(changed), histogram(LinearImage(image, mask)))
    clipped_in_one = image.copy()
    clipped_in_one[5:9, 5:9, 1] = 1
    np.testing.assert_array_equal(histogram(clipped_in_one), histogram(LinearImage(image, mask)))
    published = Grid.published()
    assert not np.array_equal(histogram(clipped_in_one, published), histogram(LinearImage(image, mask), published))


@given(seed=seeds)
def test_squares_sum_to_one(seed: int) -> None:
    result = histogram(textured(seed))
    assert result.dtype == np.float32
    assert result.shape == (2, 64, 64)
    np.testing.assert_allclose((result.astype(np.float64) ** 2).sum(axis=(1, 2)), 1, atol=1e-5)


@given(seed=seeds)
def test_mirroring_the_image_changes_nothing(seed: int) -> None:
    image = textured(seed)
    np.testing.assert_allclose(histogram(image[::-1, ::-1]), histogram(image), atol=1e-5)
    np.testing.assert_allclose(histogram(image.transpose(1, 0, 2)), histogram(image), atol=1e-5)
    grid = Grid(32, powers=(3, 1), strips=4)  # strips are of rows: these may be mirrored, but not transposed
    image = image[: len(image) // 4 * 4]
    np.testing.assert_allclose(histogram(image[::-1, ::-1], grid), histogram(image, grid), atol=1e-5)


def dense(image: np.ndarray, grid: Grid) -> np.ndarray:
    """Equation 3 term by term, with the shares and the weight of the default geometry."""
    result = []
    blur = sum(weight * np.eye(grid.bins, k=k) for k, weight in ((-1, 0.25), (0, 0.5), (1, 0.25)))
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="symmetric")
    height, width = image.shape[:2]
    gradient = np.zeros_like(image)
    for dy in (0, 1, 2):
        for dx in (0, 1, 2):
            gradient += np.abs(padded[dy : dy + height, dx : dx + width] - image) / 8
    for colors in (image, gradient):
        u, v = np.moveaxis(rgb_to_uv(colors.reshape(-1, 3)), -1, 0)
        weight = np.prod(colors.reshape(-1, 3), axis=1) ** (1 / 3)
        near_u = np.maximum(0, 1 - np.abs(u[:, None] - grid.u) / grid.step) @ blur
        near_v = np.maximum(0, 1 - np.abs(v[:, None] - grid.v) / grid.step) @ blur
        counts = np.einsum("k,ki,kj->ij", weight, near_v, near_u)
        result.append(np.sqrt(counts / counts.sum()))
    return np.stack(result)


@pytest.mark.parametrize("bins", BINS)
def test_agrees_with_the_definition(bins: int) -> None:
    grid = Grid(bins)
    for seed in range(5):
        image = textured(seed, 70, 40).astype(np.float64)
        np.testing.assert_allclose(histogram(image, grid), dense(image, grid), atol=3e-4)


def test_many_blocks_are_one_image() -> None:
    tall = textured(1, 700, 50).astype(np.float64)  # more than one block of rows
    np.testing.assert_allclose(histogram(tall), dense(tall, Grid()), atol=3e-4)


def test_published_geometry_matches_the_golden_histograms(test_data: Path, golden: dict[str, np.ndarray]) -> None:
    for path, expected in zip(golden["paths"], golden["histograms"], strict=True):
        image = read_image(test_data / "data" / "ffcc_sample" / "data" / str(path))
        np.testing.assert_allclose(histogram(image, Grid.published()), expected, atol=1e-4)


def test_large_images_are_averaged_first() -> None:
    image = textured(4, 256, 384)
    large = np.repeat(np.repeat(image, 3, axis=0), 3, axis=1)
    np.testing.assert_allclose(histogram(large), histogram(image), atol=1e-5)


def test_published_geometry_counts_clipped_pixels_at_any_size() -> None:
    small = textured(4, 256, 384)
    small[:100, :200] = [1, 0.5, 0.7]
    large = np.repeat(np.repeat(small, 2, axis=0), 2, axis=1)
    np.testing.assert_allclose(histogram(large, Grid.published()), histogram(small, Grid.published()), atol=1e-4)


def test_errors_name_the_image() -> None:
    with pytest.raises(ImageError, match=r"^night\.png: no usable pixels"):
        histogram(LinearImage(np.zeros((4, 4, 3)), source="night.png"))


def test_a_flat_image_has_no_gradient_histogram() -> None:
    result = histogram(np.full((8, 8, 3), [0.2, 0.4, 0.3]))
    assert result[0].sum() > 0
    assert not result[1].any()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_nothing_to_count_is_an_error(value: float) -> None:
    with pytest.raises(ImageError, match="no usable pixels"):
        histogram(np.full((8, 8, 3), value))


def test_colors_all_out_of_range_are_an_error() -> None:
    with pytest.raises(ImageError, match="outside"):
        histogram(np.full((8, 8, 3), [0.5, 0.0, 0.0]))


@pytest.mark.parametrize("bins", [0, 8, 63, 256])
def test_bad_bins(bins: int) -> None:
    with pytest.raises(ParameterError, match="16, 32, 64 or 128"):
        Grid(bins)


def test_grids_know_their_geometry() -> None:
    assert Grid.published().geometry is Geometry.PUBLISHED
    assert Grid().v[0] < Grid().v[-1]
    assert Grid.published().v[0] > Grid.published().v[-1]
    assert Grid() == Grid(64)


def test_erosion_looks_at_all_neighbors() -> None:
    flags = np.ones((5, 6), np.bool_)
    flags[2, 3] = False
    eroded = erode(flags)
    assert not eroded[1:4, 2:5].any()
    assert eroded.sum() == 30 - 9


@given(seed=seeds, right=st.integers(-2, 2), up=st.integers(-2, 2))
def test_any_power_of_brightness_moves_with_gains(seed: int, right: int, up: int) -> None:
    for power in (0, 3):
        grid = Grid(32, powers=(power, 1))
        image = patches(seed)
        counted = histogram(image, grid)
        np.testing.assert_array_equal(counted[1:], histogram(image, Grid(32)))  # the others are as they were
        gains = np.exp([-right * grid.step, 0, -up * grid.step])
        moved = histogram((image * (gains / gains.max())).astype(np.float32), grid)
        np.testing.assert_allclose(moved, np.roll(counted, (up, right), axis=(1, 2)), atol=2e-3)


def test_several_powers_are_several_histograms() -> None:
    image = patches(3)
    several = histogram(image, Grid(32, powers=(3, 0, 1)))
    assert several.shape == (4, 32, 32)
    for index, power in enumerate((3, 0, 1)):
        alone = histogram(image, Grid(32, powers=tuple(dict.fromkeys([power, 1]))))
        np.testing.assert_array_equal(several[[index, 3]], alone[[0, -1]])


def test_power_3_sees_the_brightest_and_power_0_sees_all() -> None:
    image = np.empty((8, 8, 3), np.float32)
    image[:6] = [0.02, 0.04, 0.02]  # three quarters in the dark
    image[6:] = [0.8, 0.4, 0.4]
    dark = rgb_to_uv([0.02, 0.04, 0.02])
    bright = rgb_to_uv([0.8, 0.4, 0.4])
    for power, expected in ((0, 0.75 * dark + 0.25 * bright), (3, bright)):
        grid = Grid(64, powers=(power, 1))
        np.testing.assert_allclose(
            centroid_uv(histogram(image, grid)[0].astype(np.float64) ** 2, grid), expected, atol=1e-3
        )


@pytest.mark.parametrize("power", [5, -1, 0.5])
def test_bad_power(power: int) -> None:
    with pytest.raises(ParameterError, match="whole numbers from 0 to 4"):
        Grid(powers=(power,))
    with pytest.raises(ParameterError, match="published geometry"):
        Grid(geometry=Geometry.PUBLISHED, powers=(0, 1))
    with pytest.raises(ParameterError, match="contain 1"):
        Grid(powers=(3,))
    for powers in ((), (3, 1, 3)):
        with pytest.raises(ParameterError, match="each once"):
            Grid(powers=powers)


def in_strips(seed: int) -> np.ndarray:
    """Patches in four strips that have black on both sides, so that no gradient crosses them."""
    image = patches(seed)
    image[5::6] = 0
    return image


@pytest.mark.parametrize("powers", [(1,), (3, 0, 1)])
@given(seed=seeds)
def test_strips_weigh_alike(powers: tuple[int, ...], seed: int) -> None:
    """However bright each is; and the first histograms are what they are without strips."""
    grid, image = Grid(32, powers=powers, strips=4), in_strips(seed)
    exposure = 10 ** np.random.default_rng(seed).uniform(-9, 0, 4)
    exposed = (image * np.repeat(exposure, 6)[:, None, None]).astype(np.float32)
    before, after = histogram(image, grid), histogram(exposed, grid)
    assert before.shape == grid.shape == (2 * grid.channels, 32, 32)
    for counted, picture in ((before, image), (after, exposed)):
        np.testing.assert_array_equal(counted[: grid.channels], histogram(picture, grid.without_strips))
    np.testing.assert_allclose(after[grid.channels :], before[grid.channels :], atol=2e-3)
    parts = [histogram(image[top : top + 6], grid.without_strips) for top in range(0, 24, 6)]
    np.testing.assert_allclose(before[grid.channels :] ** 2, np.mean(np.square(parts), axis=0), atol=1e-4)


@given(seed=seeds, right=st.integers(-2, 2), up=st.integers(-2, 2))
def test_strips_move_with_gains(seed: int, right: int, up: int) -> None:
    grid, image = Grid(32, powers=(3, 1), strips=3), patches(seed)
    gains = np.exp([-right * grid.step, 0, -up * grid.step])
    moved = histogram((image * (gains / gains.max())).astype(np.float32), grid)
    np.testing.assert_allclose(moved, np.roll(histogram(image, grid), (up, right), axis=(1, 2)), atol=2e-3)


def test_a_strip_weighs_by_how_many_of_its_pixels_count() -> None:
    image, grid = in_strips(1), Grid(32, strips=4)
    image[:6] = 0  # none
    expected = np.mean([histogram(image[top : top + 6], Grid(32)) ** 2 for top in (6, 12, 18)], axis=0)
    np.testing.assert_allclose(histogram(image, grid)[2:] ** 2, expected, atol=1e-4)
    halves = np.full((8, 8, 3), 0.2, np.float32)
    halves[4:, :, 0] = 0.8
    halves[4:, 2:] = 0  # a quarter of the lower half counts
    dim, bright = rgb_to_uv([0.2, 0.2, 0.2]), rgb_to_uv([0.8, 0.2, 0.2])
    grid = Grid(64, powers=(3, 1), strips=2)
    found = centroid_uv(histogram(halves, grid)[3].astype(np.float64) ** 2, grid)
    np.testing.assert_allclose(found, (4 * dim + bright) / 5, atol=1e-3)


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_fewer_rows_than_strips(rows: int) -> None:
    counted = histogram(textured(0)[:rows], Grid(32, powers=(3, 1), strips=4))
    np.testing.assert_allclose((counted[[0, 1, 3, 4]].astype(np.float64) ** 2).sum(axis=(1, 2)), 1, rtol=1e-5)


@pytest.mark.parametrize("power", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("strips", [1, 4])
def test_darkness_is_not_emptiness(power: int, strips: int) -> None:
    """Floats that were scaled by far too much keep their colors, so long as they are numbers at all."""
    grid = Grid(32, powers=tuple(dict.fromkeys([power, 1])), strips=strips)
    bright, dark = (histogram((in_strips(2) * scale).astype(np.float32), grid) for scale in (1, 1e-8))
    np.testing.assert_allclose(dark, bright, atol=2e-3)


def test_bad_strips() -> None:
    for strips in (0, 17, 2.5):
        with pytest.raises(ParameterError, match="strips must lie between 1 and 16"):
            Grid(strips=strips)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="no strips"):
        Grid(geometry=Geometry.PUBLISHED, strips=4)


@given(seed=seeds)
def test_histograms_have_named_parts(seed: int) -> None:
    image = textured(seed)
    grid = Grid(32, powers=(3, 0, 1), strips=2)
    found = count(image, grid)
    np.testing.assert_array_equal(found.seen, count(image, grid.without_strips).stack)
    np.testing.assert_array_equal(found.without_strips.stack, found.seen)
    assert found.searched.shape == found.seen.shape
    assert not np.array_equal(found.searched, found.seen)
    np.testing.assert_array_equal(found.by_brightness, count(image, Grid(32)).by_brightness)
    plain = count(image, Grid(32))
    np.testing.assert_array_equal(plain.searched, plain.seen)


@given(seed=seeds)
def test_vividness_is_the_same_for_every_model(seed: int) -> None:
    image = textured(seed)
    expected = count(image, Grid()).vividness
    for grid in (Grid(powers=(3, 1), strips=4), Grid(powers=(0, 1)), Grid(powers=(1, 4))):
        assert count(image, grid).vividness == expected


@given(seed=seeds)
def test_packed_histograms_come_back_exactly(seed: int) -> None:
    grid = Grid(32, powers=(3, 1), strips=3)
    found = count(textured(seed), grid)
    again = Histograms.unpack(grid, found.pack())
    assert again.grid == grid
    np.testing.assert_array_equal(again.stack, found.stack)
    for wrong in (Grid(32), Grid(64, powers=(3, 1), strips=3)):
        with pytest.raises(ReadError, match="bytes of histograms"):
            Histograms.unpack(wrong, found.pack())


def test_keys_tell_grids_apart_and_are_the_same_on_every_machine() -> None:
    grids = [
        Grid(),
        Grid(32),
        Grid(limit=3),
        Grid(powers=(3, 1)),
        Grid(powers=(1, 3)),
        Grid(strips=2),
        Grid.published(),
        Grid(geometry=Geometry.TEXT),
    ]
    assert len({grid.key for grid in grids}) == len(grids)
    assert all(Grid.from_json(grid.to_json()) == grid for grid in grids)
    for geometry, seed in PROBE_SEEDS.items():  # no number is so near to a rounding edge that machines could differ
        grid = Grid(powers=(0, 1, 2, 3, 4), strips=3) if geometry is Geometry.EXACT else Grid(geometry=geometry)
        assert margin(count(probe(seed), grid).stack) > 1e-4
    assert margin(count(probe(ROWS_SEED, repeats=20), Grid(strips=3, pixels=4096)).stack) > 1e-3


def test_a_change_of_which_rows_are_left_out_changes_the_key_of_such_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    all_rows, some_rows = Grid().key, Grid(pixels=24576).key
    monkeypatch.setattr("c5.histograms._row_step", lambda counts, most: 3)
    histograms._rows_key.cache_clear()
    changed = histograms._rows_key()
    monkeypatch.undo()
    histograms._rows_key.cache_clear()
    assert not some_rows.endswith(changed)
    assert some_rows.endswith(histograms._rows_key())
    assert Grid().key == all_rows


@pytest.mark.parametrize("part", ["FLOOR", "gradients_of", "erode"])
def test_a_change_of_the_counting_changes_the_key(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Grid().key
    changed = {"FLOOR": np.float32(0.01), "gradients_of": lambda planes, stride: planes, "erode": lambda flags: flags}
    monkeypatch.setattr(f"c5.histograms.{part}", changed[part])
    histograms._counting_key.cache_clear()
    assert Grid().key != before
    monkeypatch.undo()
    histograms._counting_key.cache_clear()
    assert Grid().key == before
