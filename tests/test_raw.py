"""Raw files: DNGs written here and unpacked by LibRaw come back as the light that went in."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import dng_files
import imagecodecs
import numpy as np
import pytest
import tifffile
from dng_files import after_preview, average_units, camera, expected_image, numbers, set_number, tagged_dng, with_exif
from laws import textured
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from c5.color import Float64s, angular_error
from c5.colorimetry.spectra import daylight
from c5.demo import LIGHTS, VirtualCamera, render_photo
from c5.demo.raw_files import (
    ASCII,
    BYTE,
    LONG,
    RATIONAL,
    SHORT,
    SRATIONAL,
    XTRANS,
    Layout,
    encode_dng,
    mosaic,
    write_dng,
)
from c5.errors import ImageError, NotLinearError, ParameterError, ReadError
from c5.image import StoredImage, shrink
from c5.io.mosaic import _Sites, _sum_cells, _take_units
from c5.io.raw import RAW_SUFFIXES, Header, Photograph, read_header, read_photograph

BAYER = ["RGGB", "BGGR", "GRBG", "GBRG"]


def read(path: Path, data: bytes, **options: Any) -> Photograph:
    path.write_bytes(data)
    return read_photograph(path, **options)


@pytest.mark.parametrize("pattern", [*BAYER, XTRANS, ""], ids=[*BAYER, "X-Trans", "linear"])
@pytest.mark.parametrize("size", [(60, 96), (61, 97), (1024, 1536), (1300, 1701)])
def test_a_file_comes_back_as_the_mean_of_its_photosites(tmp_path: Path, pattern: str, size: tuple[int, int]) -> None:
    raw = numbers(1, *size)
    photograph = read(tmp_path / "a.dng", encode_dng(raw, camera(), Layout(pattern)))
    expected = expected_image(raw, pattern).rgb
    assert photograph.size == size
    assert photograph.image.rgb.shape == expected.shape
    assert not photograph.image.clipped.any()
    np.testing.assert_allclose(photograph.image.rgb, expected, atol=0.06)  # less than the texture
    if size != (1300, 1701) or pattern not in BAYER:  # 2.4 units a pixel, where shares of units are a choice
        np.testing.assert_allclose(photograph.image.rgb[1:-1, 1:-1], expected[1:-1, 1:-1], atol=2e-6)
    np.testing.assert_allclose(photograph.image.rgb.mean(axis=(0, 1)), expected.mean(axis=(0, 1)), atol=1e-4)


@pytest.mark.parametrize("name", ["a.dng", "a.png"])
def test_one_look_at_a_file_gives_two_sizes_and_no_other_pixels(tmp_path: Path, name: str) -> None:
    raw = numbers(1, 601, 842)
    raw[:99] = 65535  # some of it clipped
    data = encode_dng(raw, camera(), Layout("RGGB"))
    if name == "a.png":
        data = bytes(imagecodecs.png_encode(raw.astype(np.uint16)))
    both = read(tmp_path / name, data, pixels=4000, more_pixels=50_000)
    assert both.larger is not None
    small, large = (read_photograph(tmp_path / name, pixels=size) for size in (4000, 50_000))
    assert large.larger is None
    assert large.image.clipped.any()
    for image, alone in ((both.image, small.image), (both.larger, StoredImage.of(large.image))):
        for part in ("rgb", "mask", "clipped"):
            np.testing.assert_array_equal(getattr(image, part), getattr(alone, part))


@pytest.mark.parametrize("pattern", BAYER)
def test_lossless_compression_changes_nothing(tmp_path: Path, pattern: str) -> None:
    raw = numbers(2, 301, 420)
    plain, small = (
        read(tmp_path / "a.dng", encode_dng(raw, camera(), Layout(pattern, lossless_jpeg=each)))
        for each in (False, True)
    )
    np.testing.assert_array_equal(plain.image.rgb, small.image.rgb)


def gray_dng(light: NDArray[np.floating], pattern: str) -> bytes:
    """A gray scene: at each photosite, whatever its color, the light there, in [0, 1)."""
    raw = np.rint(light * 65536).astype(np.uint16)
    return encode_dng(np.broadcast_to(raw[..., None], (*raw.shape, 3)), camera(0, 65535), Layout(pattern))


SHOWN = (64, 96)
"""Height and width of the working images of gray scenes."""


def sensor(units: float, pattern: str) -> tuple[Float64s, Float64s]:
    """The rows and columns of photosites for so many units a working pixel, their centers in working pixels."""
    sites = units * len(pattern) ** 0.5
    y, x = ((np.arange(round(count * sites)) + 0.5) / sites for count in SHOWN)
    return y[:, None], x[None]


def read_gray(path: Path, light: Float64s, pattern: str) -> Float64s:
    image = read(path, gray_dng(light, pattern), pixels=SHOWN[0] * SHOWN[1]).image
    assert image.rgb.shape[:2] == SHOWN
    return image.rgb.astype(np.float64)


def fringe(rgb: NDArray[np.floating]) -> float:
    """How much red and blue differ from green, root mean square away from borders."""
    inside = rgb[2:-2, 2:-2].astype(np.float64)
    return float(np.sqrt(((inside[..., ::2] - inside[..., 1:2]) ** 2).mean()))


@pytest.mark.parametrize("pattern", [*BAYER, XTRANS], ids=[*BAYER, "X-Trans"])
@pytest.mark.parametrize("units", [1, 2, 2.5, 4.5, 8])
def test_a_gray_ramp_has_no_color(tmp_path: Path, pattern: str, units: float) -> None:
    y, x = sensor(units, pattern)
    rgb = read_gray(tmp_path / "a.dng", 0.1 + y / 160 + x / 240, pattern)
    inside = rgb[2:-2, 2:-2]
    np.testing.assert_allclose(inside, inside[..., 1:2].repeat(3, axis=-1), atol=1e-5)  # of rounded numbers
    assert np.abs(rgb - rgb[..., 1:2]).max() < 0.004  # at the borders, half of a pixel's step


@pytest.mark.parametrize("pattern", ["RGGB", "GRBG"])
@pytest.mark.parametrize(("units", "less", "net"), [(1, 0.6, 0.4), (2, 0.5, 0.3), (4.5, 0.6, 0.35), (8, 0.85, 0.45)])
def test_gray_edges_have_less_color_than_their_units(
    tmp_path: Path, pattern: str, units: float, less: float, net: float
) -> None:
    """Sharp edges in all directions: fringes are weaker, and next to each other they nearly cancel."""
    y, x = sensor(units, pattern)
    light = 0.4 + 0.6 * np.clip((np.hypot(x - 48.3, y - 32.1) - 21.7) * units * 2, -0.5, 0.5)
    seen = read_gray(tmp_path / "a.dng", light, pattern)
    raw = np.rint(light * 65536).astype(np.uint16)[..., None].repeat(3, axis=-1)
    without = shrink(average_units(raw, pattern, 0, 65535), SHOWN[0] * SHOWN[1]).rgb
    assert fringe(seen) < less * fringe(without)
    around, around_without = (sliding_window_view(rgb, (3, 3), (0, 1)).mean(axis=(-2, -1)) for rgb in (seen, without))
    assert fringe(around) < net * fringe(around_without)


@pytest.mark.parametrize("units", [1, 2, 4.5, 8])
def test_a_smooth_scene_is_the_same_in_every_phase(tmp_path: Path, units: float) -> None:
    y, x = sensor(units, "RGGB")
    light = 0.4 + 0.3 * np.sin(y / 3) * np.cos(x / 4)
    images = [read_gray(tmp_path / "a.dng", light, pattern)[1:-1, 1:-1] for pattern in BAYER]
    for image in images:
        np.testing.assert_allclose(image, images[0], atol=0.004)


@pytest.mark.parametrize("pattern", [*BAYER, XTRANS, ""], ids=[*BAYER, "X-Trans", "linear"])
@pytest.mark.parametrize("border", [(2, 4, 6, 2), (7, 3, 5, 9)])
def test_masked_borders_are_no_part_of_the_picture(
    tmp_path: Path, pattern: str, border: tuple[int, int, int, int]
) -> None:
    raw = numbers(4, 96, 120)
    photograph = read(tmp_path / "a.dng", encode_dng(raw, camera(), Layout(pattern, border=border)))
    down, right = np.subtract((96, 120), photograph.size)  # LibRaw starts a Bayer mosaic at an even place
    assert 0 <= min(down, right) <= max(down, right) <= 1
    side = int(len(pattern) ** 0.5)
    letters = np.array(list(pattern)).reshape(side, side)
    moved = "".join(np.roll(letters, (-down, -right), (0, 1)).ravel())
    expected = expected_image(raw[down:, right:], moved)
    np.testing.assert_allclose(photograph.image.rgb, expected.rgb, atol=2e-6)


@pytest.mark.parametrize("pattern", ["RGGB", XTRANS, ""], ids=["Bayer", "X-Trans", "linear"])
def test_a_rendered_photograph_keeps_its_colors_and_its_light(tmp_path: Path, pattern: str) -> None:
    rng = np.random.default_rng(5)
    clean = replace(VirtualCamera.random(rng), shot_noise=0.0, read_noise=0.0)
    photo = render_photo(clean, "street", LIGHTS["sun"](rng), rng, (768, 1152), chart=True)
    photograph = read_photograph(write_dng(tmp_path / "a.dng", photo, clean, Layout(pattern)))
    seen, truth = photograph.image, shrink(photo.image)
    assert abs(seen.rgb.shape[1] / seen.rgb.shape[0] - 1.5) < 0.02
    neutral = seen.rgb[seen.counts & (seen.rgb.min(axis=-1) > 0.05)].astype(np.float64)
    assert (angular_error(neutral, photo.illuminant) < 1).mean() > 0.002  # the gray patches of the chart
    assert angular_error(seen.rgb[seen.counts].mean(axis=0), truth.rgb[truth.counts].mean(axis=0)) < 1.5
    if pattern != XTRANS:  # at the same size, pixel by pixel
        both = seen.counts & truth.counts
        assert np.median(angular_error(seen.rgb[both].astype(np.float64), truth.rgb[both])) < 0.5


@pytest.mark.parametrize("pattern", ["RGGB", XTRANS, ""], ids=["Bayer", "X-Trans", "linear"])
@pytest.mark.parametrize("full", [0, 0.3, 0.5, 0.6, 1])
def test_clipped_units_do_not_count_and_too_many_are_flagged(tmp_path: Path, pattern: str, full: float) -> None:
    rng = np.random.default_rng(6)
    side = max(1, int(len(pattern) ** 0.5))
    height, width = 256 * 4, 384 * 4  # units, four each way in a working pixel
    raw = np.full((height, width, 3), [3000, 6000, 4500], np.uint16)
    clipped = rng.permuted(np.tile(np.arange(16) < full * 16, (256 * 384, 1)), axis=1)
    where = clipped.reshape(256, 384, 4, 4).swapaxes(1, 2).reshape(height, width)
    raw[where] = [9000, 15871, 12000]
    raw = raw.repeat(side, axis=0).repeat(side, axis=1)
    image = read(tmp_path / "a.dng", encode_dng(raw, camera(), Layout(pattern))).image
    assert image.rgb.shape == (256, 384, 3)
    if full <= 0.5:
        assert not image.clipped.any()
        expected = (np.array([3000, 6000, 4500]) - 512) / (15871 - 512)
        np.testing.assert_allclose(image.rgb, np.broadcast_to(expected, image.rgb.shape), atol=1e-6)
    else:
        assert image.clipped.all()
        assert not image.counts.any()


@pytest.mark.parametrize("pattern", [*BAYER, XTRANS], ids=[*BAYER, "X-Trans"])
@pytest.mark.parametrize("units", [1, 1.5, 2, 4.5])
def test_clipping_adds_no_color_to_edges(tmp_path: Path, pattern: str, units: float) -> None:
    """Where things meet a clipped sky, a gray scene has the fringes that it has without clipping, and no others."""
    y, x = sensor(units, pattern)
    light = 0.45 + 0.7 * np.clip((np.hypot(x - 48.3, y - 32.1) - 21.7) * units * 2, -0.5, 0.5)
    raw = np.rint(light * 65535).astype(np.uint16)[..., None].repeat(3, axis=-1)
    sky, free = (
        read(tmp_path / "a.dng", encode_dng(raw, camera(0, white), Layout(pattern)), pixels=SHOWN[0] * SHOWN[1]).image
        for white in (round(0.79 * 65535), 65535)
    )
    assert sky.clipped.any()
    assert not free.clipped.any()
    with_clipping, without = (np.abs(image.rgb[..., ::2] / image.rgb[..., 1:2] - 1) for image in (sky, free))
    assert with_clipping[sky.clipped].max() < 1.2 * without.max()


@pytest.mark.parametrize("side", [2, 6])
def test_cells_of_one_unit_are_units(side: int) -> None:
    rng = np.random.default_rng(side)
    color = np.array(["RGB".index(letter) for letter in ("RGGB" if side == 2 else XTRANS)]).reshape(side, side)
    clip = rng.integers(3900, 4000, color.shape).astype(np.uint16)
    sites = _Sites(color, np.zeros(color.shape), clip, 4000.0)
    for brightest in (3800, 4000):  # without and with clipped numbers
        numbers = rng.integers(0, brightest, (70 * side + 1, 41 * side + 1)).astype(np.uint16)
        quick, general = _take_units(numbers, sites), _sum_cells(numbers, sites, 1)
        np.testing.assert_allclose(quick[0], general[0], rtol=1e-5)
        assert quick[1] == general[1] == (brightest == 4000)


def test_clipping_agrees_with_shrink_where_cells_are_fractions(tmp_path: Path) -> None:
    raw = numbers(7, 2600, 3402)
    raw[600:1401, 1000:1801, 1] = 16000  # beyond the white level
    seen = read(tmp_path / "a.dng", encode_dng(raw, camera(), Layout())).image
    expected = shrink(average_units(raw, "RGGB", 512, 15871))
    np.testing.assert_array_equal(seen.clipped, expected.clipped)
    np.testing.assert_allclose(seen.rgb[seen.counts, 1], expected.rgb[seen.counts, 1], atol=1e-4)  # at the same places
    np.testing.assert_allclose(seen.rgb[seen.counts], expected.rgb[seen.counts], atol=0.03)
    assert 0.05 < seen.clipped.mean() < 0.1


@pytest.mark.parametrize(("black", "white"), [(0, 4095), (64, 1023), (2047, 65535), (0, 65535)])
def test_levels_of_any_sensor(tmp_path: Path, black: int, white: int) -> None:
    raw = numbers(8, 2048, 3072, black=black, white=white)
    image = read(tmp_path / "a.dng", encode_dng(raw, camera(black, white), Layout())).image
    expected = shrink(average_units(raw, "RGGB", black, white))
    np.testing.assert_allclose(image.rgb[..., 1], expected.rgb[..., 1], atol=2e-6)
    np.testing.assert_allclose(image.rgb.mean(axis=(0, 1)), expected.rgb.mean(axis=(0, 1)), atol=1e-4)


def test_each_place_of_the_mosaic_has_its_black_level(tmp_path: Path) -> None:
    levels = np.array([[500, 520], [540, 560]])
    pixels = np.tile(levels, (32, 32)) + np.tile([[1000, 2000], [2000, 3000]], (32, 32))
    tags = {50713: (SHORT, (2, 2)), 50714: (LONG, tuple(levels.ravel().tolist()))}
    image = read(tmp_path / "a.dng", tagged_dng(pixels.astype(np.uint16), tags)).image
    scaled = np.array([1000, 2000, 3000]) / (15871 - 560)
    np.testing.assert_allclose(image.rgb, np.broadcast_to(scaled, image.rgb.shape), atol=1e-6)


def test_a_second_green_without_a_black_level_has_that_of_the_first(tmp_path: Path) -> None:
    pixels = np.tile([[1512, 2512], [2512, 3512]], (32, 32)).astype(np.uint16)
    tags = {50713: (SHORT, (2, 2)), 50714: (LONG, (512, 512, 0, 512))}
    image = read(tmp_path / "a.dng", tagged_dng(pixels, tags)).image
    np.testing.assert_allclose(image.rgb[0, 0], np.array([1000, 2000, 3000]) / (15871 - 512), atol=1e-6)


def test_levels_that_are_given_replace_those_of_the_file(tmp_path: Path) -> None:
    raw = numbers(9, 60, 80)
    image = read(tmp_path / "a.dng", encode_dng(raw, camera(), Layout()), black=600, white=15000).image
    np.testing.assert_allclose(image.rgb, expected_image(raw, black=600, white=15000).rgb, atol=2e-6)
    with pytest.raises(ImageError, match=r"a\.dng: the black level 16000 must lie below"):
        read_photograph(tmp_path / "a.dng", black=16000)


def test_a_linearization_table_is_applied(tmp_path: Path) -> None:
    table = np.minimum(np.arange(256) ** 2 // 4, 15871)
    codes = np.random.default_rng(1).integers(60, 200, (40, 60)).astype(np.uint16)
    tags = {50712: (SHORT, tuple(table.tolist()))}
    image = read(tmp_path / "a.dng", tagged_dng(codes, tags)).image
    values = (table[codes] - 512) / (15871 - 512)
    np.testing.assert_allclose(image.rgb[..., 1], (values[::2, 1::2] + values[1::2, ::2]) / 2, atol=1e-6)


def test_what_the_camera_wrote(tmp_path: Path) -> None:
    shot = replace(VirtualCamera.random(np.random.default_rng(2)), name="Virtual 1234")
    layout = Layout(time=datetime(2023, 3, 26, 2, 30, 15))  # a time that clocks of Europe skipped
    photograph = read(tmp_path / "a.dng", encode_dng(numbers(1, 60, 80), shot, layout))
    assert photograph.image.camera == "Virtual 1234"
    assert photograph.image.source == str(tmp_path / "a.dng")
    assert photograph.time == layout.time
    assert photograph.orientation == 1
    assert photograph.as_shot is not None
    assert angular_error(photograph.as_shot, shot.illuminant(daylight(5500))) < 0.01
    assert np.linalg.norm(photograph.as_shot) == pytest.approx(1)
    assert photograph.matrices is not None
    assert photograph.matrices.name == "Virtual 1234"
    assert (photograph.matrices.kelvin_a, photograph.matrices.kelvin_d65) == (2856, 6504)
    np.testing.assert_allclose(photograph.matrices.matrix_a, shot.color_matrix(2856), atol=1e-6)
    np.testing.assert_allclose(photograph.matrices.matrix_d65, shot.color_matrix(6504), atol=1e-6)


def test_a_header_tells_what_the_photograph_does(tmp_path: Path) -> None:
    layout = Layout(time=datetime(2023, 3, 26, 2, 30, 15))
    path = tmp_path / "a.dng"
    photograph = read(path, encode_dng(numbers(1, 60, 80), camera(), layout))
    assert read_header(path) == Header(photograph.image.camera, photograph.time, is_raw=True)
    path.write_bytes(path.read_bytes()[:-5000])  # the pixels are not asked for
    assert read_header(path) == Header("Test Camera", layout.time, is_raw=True)
    np.save(tmp_path / "a.npy", np.zeros((4, 4, 3)))
    for other in (tmp_path / "a.npy", tmp_path / "none.dng", tmp_path):
        assert read_header(other) == Header(None, None, is_raw=False)


def test_one_matrix_is_both(tmp_path: Path) -> None:
    matrices = read(tmp_path / "a.dng", encode_dng(numbers(1, 60, 80), camera(), Layout(matrices=1))).matrices
    assert matrices is not None
    np.testing.assert_allclose(matrices.matrix_a, camera().color_matrix(6504), atol=1e-6)
    np.testing.assert_array_equal(matrices.matrix_a, matrices.matrix_d65)


def test_the_matrices_of_a_file_come_before_those_that_libraw_knows(tmp_path: Path) -> None:
    known = VirtualCamera.nikon_d5100()
    matrices = read(tmp_path / "a.dng", encode_dng(numbers(1, 60, 80), known, Layout())).matrices
    assert matrices is not None
    np.testing.assert_allclose(matrices.matrix_d65, known.color_matrix(6504), atol=1e-6)
    names = {271: (ASCII, ("NIKON CORPORATION",)), 272: (ASCII, ("NIKON D5100",))}
    table = read(tmp_path / "a.dng", tagged_dng(numbers(1, 60, 80)[..., 0], names)).matrices
    assert table is not None
    assert table.name == "Nikon D5100"
    assert table.matrix_d65[0, 0] == pytest.approx(0.8198)
    np.testing.assert_array_equal(table.matrix_a, table.matrix_d65)


def matrix_tags(warm: int, cold: int) -> dict[int, tuple[int, tuple[int, ...]]]:
    """The cold matrix first, as some files have it; all red doubled by the balance of the analog gains."""
    first, second = (np.rint(camera().color_matrix(kelvin) * 10000).astype(int).ravel() for kelvin in (6504, 2856))
    return {
        50721: (SRATIONAL, tuple(int(part) for value in first for part in (value, 10000))),
        50722: (SRATIONAL, tuple(int(part) for value in second for part in (value, 10000))),
        50778: (SHORT, (cold,)),
        50779: (SHORT, (warm,)),
        50727: (RATIONAL, (2, 1, 1, 1, 1, 1)),
    }


def test_matrices_are_ordered_by_their_lights_and_scaled_by_the_analog_balance(tmp_path: Path) -> None:
    data = tagged_dng(numbers(1, 60, 80)[..., 0], matrix_tags(warm=24, cold=23))
    matrices = read(tmp_path / "a.dng", data).matrices
    assert matrices is not None
    assert (matrices.kelvin_a, matrices.kelvin_d65) == (3200, 5000)
    np.testing.assert_allclose(matrices.matrix_a / camera().color_matrix(2856), [[2] * 3, [1] * 3, [1] * 3], rtol=0.01)


def test_a_white_balance_given_as_a_chromaticity(tmp_path: Path) -> None:
    tags = matrix_tags(17, 21) | {50727: (RATIONAL, ()), 50729: (RATIONAL, (31271, 100000, 32902, 100000))}
    as_shot = read(tmp_path / "a.dng", tagged_dng(numbers(1, 60, 80)[..., 0], tags)).as_shot
    assert as_shot is not None
    assert angular_error(as_shot, camera().illuminant(daylight(6504))) < 1


def test_a_file_that_says_nothing(tmp_path: Path) -> None:
    photograph = read(tmp_path / "a.dng", tagged_dng(numbers(1, 60, 80)[..., 0]))
    assert photograph.image.camera is None
    assert photograph.time is None
    assert photograph.as_shot is None
    assert photograph.matrices is None
    assert photograph.orientation == 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_told_and_not_applied(tmp_path: Path, orientation: int) -> None:
    raw = numbers(1, 60, 80)
    photograph = read(tmp_path / "a.dng", encode_dng(raw, camera(), Layout(orientation=orientation)))
    assert photograph.orientation == orientation
    assert photograph.size == (60, 80)
    np.testing.assert_allclose(photograph.image.rgb, expected_image(raw).rgb, atol=2e-6)


def test_the_time_of_the_exif_directory_comes_first(tmp_path: Path) -> None:
    tags = {34666: (LONG, (0,)), 36867: (ASCII, ("2001:01:01 00:00:00",))}
    data = tagged_dng(numbers(1, 60, 80)[..., 0], tags)
    photograph = read(tmp_path / "a.dng", with_exif(data, "2019:08:07 06:05:04", placeholder=34666))
    assert photograph.time == datetime(2019, 8, 7, 6, 5, 4)


@pytest.mark.parametrize(
    ("make", "model", "name"),
    [
        ("NIKON CORPORATION", "NIKON D5200", "Nikon D5200"),
        ("Canon", "Canon EOS 5D", "Canon EOS 5D"),
        ("SONY", "SLT-A57", "Sony SLT-A57"),
        ("OLYMPUS IMAGING CORP.  ", "E-PL6            ", "Olympus E-PL6"),
        ("LEICA CAMERA AG", "LEICA M (Typ 240)", "Leica M (Typ 240)"),
        ("samsung", "NX2000", "Samsung NX2000"),
        ("LG Electronics", "LG-H815", "LG-H815"),
        ("DJI", "FC6310", "DJI FC6310"),
        ("Lab", "Lab", "Lab"),
    ],
)
def test_a_camera_is_called_by_its_make_once(tmp_path: Path, make: str, model: str, name: str) -> None:
    data = tagged_dng(numbers(1, 60, 80)[..., 0], {271: (ASCII, (make,)), 272: (ASCII, (model,))})
    assert read(tmp_path / "a.dng", data).image.camera == name


@pytest.mark.parametrize("byteorder", ["<", ">"])
@pytest.mark.parametrize("name", ["a.dng", "a.tif"])
def test_a_preview_is_passed_over(tmp_path: Path, byteorder: str, name: str) -> None:
    raw = numbers(1, 60, 80)
    photograph = read(tmp_path / name, after_preview(mosaic(raw, "RGGB"), byteorder))
    np.testing.assert_allclose(photograph.image.rgb, expected_image(raw).rgb, atol=2e-6)
    assert photograph.image.camera == "Test Camera"
    assert photograph.as_shot is not None
    np.testing.assert_allclose(photograph.as_shot / photograph.as_shot[1], [0.5, 1, 0.75], atol=1e-6)


def test_content_decides_what_is_raw(tmp_path: Path) -> None:
    raw = numbers(1, 60, 80)
    half = expected_image(raw).rgb
    for name in ("a.tif", "a.NEF", "a"):
        np.testing.assert_allclose(
            read(tmp_path / name, encode_dng(raw, camera(), Layout())).image.rgb, half, atol=2e-6
        )


@pytest.mark.parametrize("name", ["a.tif", "a.dng", "a.nef"])
def test_a_linear_tiff_is_read_as_one_whatever_its_name(tmp_path: Path, name: str) -> None:
    pixels = (textured(1, 40, 60) * 65535).astype(np.uint16)
    tifffile.imwrite(tmp_path / name, pixels, photometric="rgb")
    photograph = read_photograph(tmp_path / name)
    np.testing.assert_array_equal(np.rint(photograph.image.rgb * 65535).astype(np.uint16), pixels)
    assert photograph.size == (40, 60)
    assert photograph.matrices is None
    assert photograph.as_shot is None
    assert photograph.time is None


def test_other_images_are_read_as_ever(tmp_path: Path) -> None:
    pixels = (textured(1, 400, 600) * 65535).astype(np.uint16)
    np.save(tmp_path / "a.npy", pixels)
    (tmp_path / "a.dng").write_bytes(imagecodecs.png_encode(pixels))
    for name in ("a.npy", "a.dng"):
        photograph = read_photograph(tmp_path / name, black=100, white=60000)
        assert photograph.size == (400, 600)
        expected = shrink(np.clip((pixels.astype(np.float32) - 100) / 59900, 0, 1))
        np.testing.assert_allclose(photograph.image.rgb, expected.rgb, atol=1e-6)
    (tmp_path / "b.png").write_bytes(imagecodecs.png_encode(np.full((8, 8, 3), 188, np.uint8)))
    with pytest.raises(NotLinearError):
        read_photograph(tmp_path / "b.png")
    np.testing.assert_allclose(read_photograph(tmp_path / "b.png", assume_srgb=True).image.rgb, 0.5, atol=0.01)
    with pytest.raises(NotLinearError, match="raw"):
        read(tmp_path / "c.dng", encode_dng(numbers(1, 60, 80), camera(), Layout()), assume_srgb=True)


def test_sensors_without_three_colors_are_refused_with_the_reason(tmp_path: Path) -> None:
    pixels = numbers(1, 60, 80)[..., 0]
    gray = tagged_dng(pixels, {33421: (SHORT, ()), 33422: (BYTE, ())}, photometric=1)
    with pytest.raises(ImageError, match=r"a\.dng: a monochrome sensor"):
        read(tmp_path / "a.dng", set_number(gray, 262, 34892))
    complementary = tagged_dng(pixels, {33422: (BYTE, (3, 4, 1, 5)), 50710: (BYTE, (3, 4, 1, 5))})
    with pytest.raises((ImageError, ReadError), match=r"a\.dng: "):
        read(tmp_path / "a.dng", complementary)
    with pytest.raises(ReadError, match="Foveon"):
        read(tmp_path / "a.x3f", b"FOVb" + bytes(5000))


@pytest.mark.parametrize("suffix", sorted(RAW_SUFFIXES))
def test_foreign_bytes_under_the_name_of_a_raw_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    rng = np.random.default_rng(0)
    starts = [b"", b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08", b"IIRO\x08\0\0\0", b"IIU\0\x18\0\0\0", b"FUJIFILMCCD-RAW "]
    for start in [*starts, b"\0\0\0\x18ftypcrx ", b"II*\0\x10\0\0\0CR\x02\0"]:
        with pytest.raises((ReadError, ImageError), match=f"a{suffix}: "):
            read(path, start + rng.bytes(20000))
    with pytest.raises(ReadError, match="empty"):
        read(path, b"")
    with pytest.raises(ReadError, match="damaged, or not a raw file"):
        read(path, b"hello, I am no photograph")


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no such file"):
        read_photograph(tmp_path / "none.dng")
    (tmp_path / "a.dng").mkdir()
    with pytest.raises(ReadError, match="folder"):
        read_photograph(tmp_path / "a.dng")


@pytest.mark.parametrize(
    "layout", [Layout(), Layout(lossless_jpeg=True), Layout("")], ids=["plain", "lossless", "linear"]
)
def test_a_file_cut_anywhere_is_an_error_of_ours(tmp_path: Path, layout: Layout) -> None:
    data = encode_dng(numbers(1, 120, 160), camera(), layout)
    for keep in np.linspace(1, len(data) - 8, 40).astype(int):
        with pytest.raises((ReadError, ImageError), match=r"a\.dng: "):
            read(tmp_path / "a.dng", data[:keep])


@pytest.mark.parametrize("name", ["a.nef", "a.NEF", "a.tif", "a.dng"])
@pytest.mark.parametrize("is_dng", [True, False])
def test_a_file_cut_after_its_preview_is_damaged(tmp_path: Path, name: str, is_dng: bool) -> None:
    """The preview is never taken for the picture."""
    data = after_preview(numbers(1, 120, 160)[..., 0], is_dng=is_dng)
    end = data.index(bytes([99]) * 3600) + 3600
    for keep in (*range(end - 30, end + 200, 10), *range(end + 200, len(data), 2000)):
        with pytest.raises(ReadError, match=rf"{name}: .*damaged"):
            read(tmp_path / name, data[:keep])


def test_a_size_that_cannot_be_is_refused_before_unpacking(tmp_path: Path) -> None:
    data = encode_dng(numbers(1, 60, 80), camera(), Layout())
    with pytest.raises(ReadError, match=r"a\.dng: damaged or incomplete: claims 6000x6000 pixels"):
        read(tmp_path / "a.dng", set_number(set_number(data, 256, 6000), 257, 6000))


def test_a_picture_smaller_than_the_pattern(tmp_path: Path) -> None:
    with pytest.raises((ReadError, ImageError), match=r"a\.dng: "):
        read(tmp_path / "a.dng", tagged_dng(numbers(1, 1, 1)[..., 0]))


def test_layouts_that_cannot_be_are_refused() -> None:
    for wrong in (
        {"pattern": "RGB"},
        {"pattern": "RRRR"},
        {"matrices": 3},
        {"orientation": 9},
        {"border": (-1, 0, 0, 0)},
    ):
        with pytest.raises(ParameterError):
            Layout(**wrong)
    with pytest.raises(ParameterError, match="mosaics"):
        Layout("", lossless_jpeg=True)


def test_thousands_of_damaged_files_are_errors_of_ours_or_pictures() -> None:
    """In a process of its own: a crash or a hang of the decoder is found, and named by the seed."""
    script = Path(dng_files.__file__)
    done = subprocess.run([sys.executable, str(script), "0", "4000"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "of 4000 were read" in done.stdout
