from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from c5 import LinearImage, WriteError, load_model
from c5.color import camera_to_srgb
from c5.colorimetry.spectra import daylight
from c5.demo import VirtualCamera, render_photo
from c5.demo.lights import LIGHTS
from c5.io.files import write_file
from c5.io.raw import Photograph
from c5.photos.explain import THUMBNAIL, draw_explanation
from c5.photos.photo import Photo
from c5.photos.picture import MARGIN, Frame, develop, make_sheet, render, write_picture
from c5.photos.roll_building import Origin, Roll


def test_a_gray_card_comes_out_gray() -> None:
    light = np.array([0.4, 0.8, 0.5])
    card = np.linspace(0.02, 0.98, 50)[None, :, None] * light
    matrix = camera_to_srgb(VirtualCamera.nikon_d5100().color_matrix(5000), light)
    picture = develop(LinearImage(card), light, matrix).astype(int)
    assert np.ptp(picture, axis=-1).max() <= 1
    assert (np.diff(picture[0, :, 1]) >= 0).all()


@pytest.mark.parametrize("color", [(1, 1, 1), (0.7, 0.9, 1.2), (1.2, 0.9, 0.7)])
def test_highlights_fade_to_white_without_an_edge(color: tuple[float, ...]) -> None:
    light = np.array([0.4, 0.8, 0.5])
    pixels = np.minimum(np.linspace(0.1, 3, 600)[None, :, None] * light * color, 1)
    picture = develop(LinearImage(pixels), light)[0].astype(int)
    steps = np.diff(picture, axis=0)
    assert steps.min() >= 0
    assert steps.max() <= 4
    assert picture[-1].min() == 255


def test_what_is_clipped_is_neutral_unless_it_has_a_color() -> None:
    light = np.array([0.4, 0.8, 0.5])
    pixels = np.full((1, 40, 3), 0.3) * light
    pixels[0, 10:20] = (0.4, 1, 0.55)  # green is clipped, and the rest of a white cloud not quite
    pixels[0, 20:30] = 1
    pixels[0, 30:] = (1, 0.1, 0.05)  # a red lamp
    picture = develop(LinearImage(pixels), light).astype(int)[0]
    assert np.ptp(picture[0]) <= 1
    assert np.ptp(picture[10:30], axis=-1).max() <= 1
    assert picture[10:30].min() == 255
    assert picture[35, 0] - picture[35, 1:].max() > 100
    plain = develop(LinearImage(pixels)).astype(int)[0]
    assert np.ptp(plain[5]) > 30  # without an illuminant, the camera's own colors


def test_the_matrix_takes_white_to_white() -> None:
    camera = VirtualCamera.nikon_d5100()
    matrix = camera_to_srgb(camera.color_matrix(5000), camera.illuminant(daylight(5000)))
    np.testing.assert_allclose(matrix @ np.ones(3), 1)
    assert (np.diag(matrix) > 1).all()  # a camera's primaries overlap more than those of sRGB


def test_a_table_of_tones_gives_what_the_formulas_say() -> None:
    rng = np.random.default_rng(4)
    light, matrix = np.array([0.4, 0.8, 0.5]), np.array([[1.6, -0.4, -0.2], [-0.2, 1.5, -0.3], [0.0, -0.5, 1.5]])
    pixels = (rng.uniform(0, 1, (401, 523, 3)) ** 3).astype(np.float32)  # more than at working size, in no whole blocks
    clipped = pixels.max(axis=-1) > 0.97
    picture = render(pixels, np.ones_like(clipped), light, matrix, clipped)

    balanced = pixels * (light.max() / light)
    near = np.where(clipped, 1, np.clip((pixels.max(axis=-1) - 0.8) / 0.2, 0, 1) ** 2)
    white = near * np.clip((balanced.min(axis=-1) - 0.3) / 0.4, 0, 1)
    exposure = 0.9 / np.percentile(np.minimum(balanced, 1).max(axis=-1), 97)
    exposed = np.clip(balanced * exposure @ matrix.T, 0, 1 / 0.95)
    exposed += (1 / 0.95 - exposed) * white[..., None]
    toned = exposed * 1.2 / (1 + 0.25 * exposed)
    encoded = np.where(toned <= 0.0031308, 12.92 * toned, 1.055 * toned ** (1 / 2.4) - 0.055) * 255
    off = np.abs(picture - encoded)
    assert white.any()
    assert off.mean() < 0.3  # rounding alone is 0.25
    assert off.max() < 1.5


def test_black_images_can_be_developed() -> None:
    assert develop(LinearImage(np.zeros((4, 4, 3)))).max() == 0


def test_sheets_take_pictures_of_any_shape(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    photo = render_photo(VirtualCamera.random(rng), "hills", LIGHTS["sun"](rng), rng, (64, 96))
    wide = develop(photo.image, photo.illuminant)
    frames = [Frame((wide, wide), "wide"), Frame((wide.transpose(1, 0, 2),) * 2, "upright"), Frame((wide, wide), "")]
    sheet = make_sheet("title", ["a", "b"], frames)
    for name in ("s.png", "s.jpg"):
        assert Image.open(write_picture(tmp_path / name, sheet)).size == (sheet.shape[1], sheet.shape[0])


def test_files_are_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_file(tmp_path / "new folder" / "a", b"one")
    assert write_file(path, b"two", merged=b"one").read_bytes() == b"two"

    def broken(source: str, target: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("c5.io.files.os.replace", broken)
    with pytest.raises(WriteError, match="Input/output"):
        write_file(path, b"three", merged=b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_files_can_be_read_by_whom_the_user_allows(tmp_path: Path) -> None:
    """Also if several threads write at a time, and if the name is as long as names can be."""
    before = os.umask(0o027)
    try:
        paths = [tmp_path / f"{index}{'x' * 250}" for index in range(40)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda path: write_file(path, b"data"), paths))
        assert {path.stat().st_mode & 0o777 for path in paths} == {0o640}
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    with pytest.raises(WriteError, match="cannot be written"):
        write_file(tmp_path / ("x" * 300), b"data")
    assert len(list(tmp_path.iterdir())) == 40


def test_the_explanation_is_wide_enough_for_its_roll() -> None:
    model, image = load_model(), LinearImage(np.random.default_rng(0).uniform(0.1, 0.9, (40, 60, 3)).astype(np.float32))
    photo = Photo.of(Path("x"), Photograph(image, (40, 60)), thumbnail=True)
    roll = Roll(None, Origin.FOLDER, model.calibrate([image]), photos=(photo,) * 12)
    assert draw_explanation(model, image, roll).shape[1] >= 2 * MARGIN + 10 * (THUMBNAIL + 8) - 8
