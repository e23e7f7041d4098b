from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import seeds, textured

from c5 import ImageError, LinearImage
from c5.image import WORKING_PIXELS, resize, shrink


def test_integers_are_scaled_and_negatives_cut() -> None:
    image = LinearImage(np.full((2, 2, 3), 65535, np.uint16))
    assert image.rgb.dtype == np.float32
    assert image.clipped.all()
    assert not image.counts.any()
    assert LinearImage(np.full((2, 2, 3), -0.1)).rgb.max() == 0


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (np.zeros((4, 4)), "shape"),
        (np.zeros((4, 4, 4)), "4 channels"),
        (np.zeros((0, 4, 3)), "no pixels"),
        (np.full((4, 4, 3), np.nan), "NaN"),
        (np.full((4, 4, 3), np.inf), "NaN"),
        (np.full((4, 4, 3), -np.inf), "NaN"),
        (np.full((4, 4, 3), 1.5), "white level"),
        (np.zeros((4, 4, 3), np.int32), "int32"),
    ],
)
def test_bad_pixels_are_named(pixels: np.ndarray, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        LinearImage(pixels)


def test_bad_flags_are_named() -> None:
    with pytest.raises(ImageError, match="mask"):
        LinearImage(np.zeros((4, 4, 3)), np.ones((4, 5), np.bool_))
    with pytest.raises(ImageError, match="clipped"):
        LinearImage(np.zeros((4, 4, 3)), clipped=np.ones((4, 4)))  # type: ignore[arg-type]


def test_working_size_is_left_alone() -> None:
    image = LinearImage(textured(0, 256, 384))
    assert shrink(image) is image


@given(height=st.integers(200, 900), width=st.integers(200, 900))
def test_any_size_comes_out_near_the_working_size(height: int, width: int) -> None:
    small = shrink(np.full((height, width, 3), [0.25, 0.5, 0.125], np.float32)).rgb
    pixels = small.shape[0] * small.shape[1]
    assert pixels <= WORKING_PIXELS * 1.01
    if height * width > WORKING_PIXELS:
        assert pixels > WORKING_PIXELS * 0.98
        assert small.shape[0] / small.shape[1] == pytest.approx(height / width, rel=0.02)
    np.testing.assert_allclose(small, np.broadcast_to([0.25, 0.5, 0.125], small.shape), rtol=1e-5)


@given(seed=seeds)
def test_the_mean_stays(seed: int) -> None:
    image = textured(seed, 512, 768)
    np.testing.assert_allclose(shrink(image).rgb.mean(axis=(0, 1)), image.mean(axis=(0, 1)), rtol=1e-4)


def test_arrays_and_images_shrink_alike() -> None:
    pixels = (textured(5, 700, 900) * 2 * 65535).astype(np.uint16)
    pixels[100:130, 200:260] = 65535
    pixels[::50, ::50, 1] = 65535
    of_array, of_image = shrink(pixels), shrink(LinearImage(pixels))
    np.testing.assert_allclose(of_array.rgb, of_image.rgb, atol=1e-5)
    np.testing.assert_array_equal(of_array.clipped, of_image.clipped)
    assert of_array.clipped.any()


def test_clipped_and_masked_pixels_leave_the_average() -> None:
    pixels = np.full((512, 768, 3), 0.25, np.float32)
    pixels[::4, ::4] = 1  # hot pixels
    np.testing.assert_allclose(shrink(pixels).rgb, 0.25, rtol=1e-5)
    assert shrink(pixels).counts.all()
    mask = np.asarray((pixels < 1).all(axis=-1))
    masked = shrink(LinearImage(np.where(mask[..., None], pixels, 0.75), mask))
    np.testing.assert_allclose(masked.rgb, 0.25, rtol=1e-5)


def test_a_clipped_area_stays_clipped_and_a_masked_one_masked() -> None:
    pixels = np.full((512, 768, 3), 0.25, np.float32)
    pixels[:256] = 1
    small = shrink(pixels)
    assert small.clipped[:128].all()
    assert not small.clipped[128:].any()
    mask = np.ones((512, 768), np.bool_)
    mask[:, :384] = False
    small = shrink(LinearImage(np.full((512, 768, 3), 0.25), mask, camera="a", source="b"))
    assert not small.mask[:, :192].any()
    assert small.mask[:, 192:].all()
    assert not small.clipped.any()
    assert (small.camera, small.source) == ("a", "b")


@pytest.mark.parametrize("shape", [(5, 100_000), (100_000, 3), (1, 200_000), (1001, 1001), (257, 385)])
def test_any_shape_shrinks(shape: tuple[int, int]) -> None:
    small = shrink(np.full((*shape, 3), [0.25, 0.5, 0.125], np.float32))
    assert small.rgb.shape[0] * small.rgb.shape[1] <= WORKING_PIXELS * 1.5  # a strip is at least a pixel wide
    np.testing.assert_allclose(small.rgb, np.broadcast_to([0.25, 0.5, 0.125], small.rgb.shape), rtol=1e-5)


def test_byte_order_and_layout_do_not_matter() -> None:
    pixels = (textured(8, 300, 400) * 65535).astype(np.uint16)
    expected = shrink(pixels).rgb
    for other in (pixels.astype(">u2"), np.asfortranarray(pixels), pixels[::-1][::-1]):
        np.testing.assert_array_equal(shrink(other).rgb, expected)


@pytest.mark.parametrize("shape", [(1_000_000, 1), (1, 1_000_000), (700_000, 2), (150_000, 7)])
def test_strips_are_as_quick_as_other_shapes(shape: tuple[int, int]) -> None:
    pixels = np.full((*shape, 3), 0.25, np.float32)
    pixels.reshape(-1, 3)[::5] = 0.75
    started = time.process_time()
    small = shrink(pixels)
    assert time.process_time() - started < 3
    assert small.rgb.shape[0] * small.rgb.shape[1] <= WORKING_PIXELS * 1.5
    assert small.rgb.mean() == pytest.approx(pixels.mean(), rel=1e-3)


def test_a_strip_shrinks_alike_both_ways() -> None:
    pixels = textured(3, 9000, 40)
    pixels[100:400, 3] = 1
    mask = np.ones(pixels.shape[:2], np.bool_)
    mask[2000:3000] = False
    tall = shrink(LinearImage(pixels, mask, camera="a", source="b"))
    wide = shrink(LinearImage(pixels.swapaxes(0, 1), mask.T))
    np.testing.assert_allclose(tall.rgb, wide.rgb.swapaxes(0, 1), atol=1e-6)
    np.testing.assert_array_equal(tall.mask, wide.mask.T)
    np.testing.assert_array_equal(tall.clipped, wide.clipped.T)
    assert (tall.camera, tall.source) == ("a", "b")


def test_masks_of_numpy_are_not_passed_over() -> None:
    pixels = np.ma.masked_greater(textured(4, 400, 600), 0.4)
    for use in (LinearImage, shrink):
        with pytest.raises(ImageError, match="masked arrays"):
            use(pixels)


def test_negative_pixels_are_cut_before_they_are_averaged() -> None:
    pixels = textured(9, 600, 800) - np.float32(0.1)
    np.testing.assert_allclose(shrink(pixels).rgb, shrink(LinearImage(pixels)).rgb, atol=1e-6)


def test_other_types_are_named_at_any_size() -> None:
    for size in (10, 400):
        with pytest.raises(ImageError, match="int32"):
            shrink(np.zeros((size, size, 3), np.int32))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0])
def test_bad_pixels_in_large_arrays_are_named(value: float) -> None:
    pixels = np.full((600, 800, 3), 0.5, np.float32)
    for place in ((300, 400, 1), (599, 3, 0), (3, 799, 2)):
        bad = pixels.copy()
        bad[place] = value
        with pytest.raises(ImageError, match=r"\[0, 1\]"):
            shrink(bad)


@given(count=st.integers(20, 200), ratio=st.floats(1, 3), shift=st.floats(-0.4, 0.4), slope=st.floats(-1, 1))
def test_a_shift_is_taken_back(count: int, ratio: float, shift: float, slope: float) -> None:
    """A ramp that was seen elsewhere comes out as if it had not been, away from the borders; a constant everywhere."""
    places = np.arange(count, dtype=np.float32)[:, None, None] + np.zeros((1, 1, 20), np.float32)
    size = round(count / ratio), 20
    straight = resize(slope * places, size)
    back = resize(slope * (places + np.float32(shift)), size, (shift, 0.0))
    np.testing.assert_allclose(back[2:-2], straight[2:-2], atol=1e-4)
    across = resize(np.swapaxes(slope * (places + np.float32(shift)), 0, 2), size[::-1], (0.0, shift))
    np.testing.assert_allclose(np.swapaxes(across, 0, 2), back, atol=1e-4)
    np.testing.assert_allclose(resize(np.ones((count, 1, 20), np.float32), size, (shift, -shift)), 1, rtol=1e-5)
