from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from c5 import LinearImage, WriteError
from c5.color import camera_to_srgb
from c5.demo import VirtualCamera, render_photo
from c5.demo.lights import LIGHTS
from c5.files import write_file
from c5.picture import Frame, develop, make_sheet, write_picture
from c5.spectra import daylight


def test_a_gray_card_comes_out_gray() -> None:
    light = np.array([0.4, 0.8, 0.5])
    card = np.linspace(0.02, 0.98, 50)[None, :, None] * light
    matrix = camera_to_srgb(VirtualCamera.nikon_d5100().color_matrix(5000), light)
    picture = develop(LinearImage(card), light, matrix).astype(int)
    assert np.ptp(picture, axis=-1).max() <= 1
    assert (np.diff(picture[0, :, 1]) >= 0).all()


def test_blown_highlights_are_white() -> None:
    light = np.array([0.4, 0.8, 0.5])
    pixels = np.minimum(np.linspace(0.1, 3, 60)[None, :, None] * light, 1)
    assert np.ptp(develop(LinearImage(pixels), light)[0, -1].astype(int)) <= 1


def test_the_matrix_takes_white_to_white() -> None:
    camera = VirtualCamera.nikon_d5100()
    matrix = camera_to_srgb(camera.color_matrix(5000), camera.illuminant(daylight(5000)))
    np.testing.assert_allclose(matrix @ np.ones(3), 1)
    assert (np.diag(matrix) > 1).all()  # a camera's primaries overlap more than those of sRGB


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
    assert write_file(path, b"two").read_bytes() == b"two"

    def broken(source: str, target: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("c5.files.os.replace", broken)
    with pytest.raises(WriteError, match="Input/output"):
        write_file(path, b"three")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]
