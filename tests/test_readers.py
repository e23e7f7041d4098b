from __future__ import annotations

import struct
import zlib
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import tifffile
from laws import textured
from PIL import Image

from c5 import ImageError, NotLinearError, ReadError, read_image
from c5.io.readers import MAX_PIXELS

PIXELS = (textured(7, 20, 31) * 65535).astype(np.uint16)


def write(path: Path, pixels: np.ndarray) -> Path:
    if path.suffix == ".npy":
        np.save(path, pixels)
    elif path.suffix == ".png":
        path.write_bytes(imagecodecs.png_encode(pixels))
    elif path.suffix == ".tif":
        tifffile.imwrite(path, pixels, photometric="rgb")
    else:
        Image.fromarray(pixels).save(path)
    return path


@pytest.mark.parametrize("suffix", [".npy", ".png", ".tif"])
def test_sixteen_bits_come_back_exactly(tmp_path: Path, suffix: str) -> None:
    image = read_image(write(tmp_path / f"a{suffix}", PIXELS), camera="Some Camera")
    np.testing.assert_array_equal(np.rint(image.rgb * 65535).astype(np.uint16), PIXELS)
    assert image.camera == "Some Camera"
    assert image.source == str(tmp_path / f"a{suffix}")


@pytest.mark.parametrize("options", [{"compression": "zlib"}, {"compression": "lzw"}, {"planarconfig": "separate"}])
def test_tiff_variants(tmp_path: Path, options: dict[str, str]) -> None:
    pixels = PIXELS if "compression" in options else np.ascontiguousarray(np.moveaxis(PIXELS, -1, 0))
    tifffile.imwrite(tmp_path / "a.tif", pixels, photometric="rgb", **options)
    np.testing.assert_array_equal(np.rint(read_image(tmp_path / "a.tif").rgb * 65535).astype(np.uint16), PIXELS)


def test_float_tiff_and_float_npy(tmp_path: Path) -> None:
    pixels = PIXELS.astype(np.float32) / 65535
    for suffix in (".npy", ".tif"):
        np.testing.assert_array_equal(read_image(write(tmp_path / f"f{suffix}", pixels)).rgb, pixels)


def test_levels(tmp_path: Path) -> None:
    twelve_bits = np.array([[[256, 2048, 4095], [100, 4200, 1024]]], np.uint16)
    image = read_image(write(tmp_path / "a.png", twelve_bits), black=256, white=4095)
    np.testing.assert_allclose(image.rgb[0, 0], [0, (2048 - 256) / 3839, 1], rtol=1e-6)
    np.testing.assert_allclose(image.rgb[0, 1], [0, 1, (1024 - 256) / 3839], rtol=1e-6)
    assert image.clipped.all()
    with pytest.raises(ImageError, match=r"a\.png: the black level"):
        read_image(tmp_path / "a.png", black=5000, white=4095)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.tif"])
def test_eight_bits_need_a_word(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, np.full((8, 8, 3), 188, np.uint8))
    with pytest.raises(NotLinearError, match=r"--assume-srgb"):
        read_image(path)
    # sRGB 188 is half the light of white (IEC 61966-2-1).
    np.testing.assert_allclose(read_image(path, assume_srgb=True).rgb, 0.5, atol=0.01)
    with pytest.raises(NotLinearError, match="8-bit"):
        read_image(write(tmp_path / "b.png", PIXELS), assume_srgb=True)


def test_eight_bits_hide_behind_no_name(tmp_path: Path) -> None:
    png = write(tmp_path / "a.png", np.full((8, 8, 3), 188, np.uint8)).rename(tmp_path / "a.npy")
    with pytest.raises(NotLinearError):
        read_image(png)
    array = write(tmp_path / "b.npy", np.full((8, 8, 3), 51, np.uint8)).rename(tmp_path / "b.dat")
    np.testing.assert_allclose(read_image(array).rgb, 0.2, rtol=1e-6)


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path / "a.png", PIXELS)
    renamed = path.rename(tmp_path / "a.tif")
    np.testing.assert_array_equal(np.rint(read_image(renamed).rgb * 65535).astype(np.uint16), PIXELS)


def test_missing_empty_folder_and_foreign(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no such file"):
        read_image(tmp_path / "none.png")
    with pytest.raises(ReadError, match="folder"):
        read_image(tmp_path)
    (tmp_path / "empty.png").touch()
    with pytest.raises(ReadError, match="empty"):
        read_image(tmp_path / "empty.png")
    (tmp_path / "text.png").write_text("hello")
    with pytest.raises(ReadError, match="not an image"):
        read_image(tmp_path / "text.png")


@pytest.mark.parametrize("suffix", [".npy", ".png", ".tif", ".jpg"])
def test_a_file_cut_anywhere_is_an_error_of_ours(tmp_path: Path, suffix: str) -> None:
    pixels = PIXELS if suffix != ".jpg" else (PIXELS >> 8).astype(np.uint8)
    data = write(tmp_path / f"whole{suffix}", pixels).read_bytes()
    cut = tmp_path / f"cut{suffix}"
    for keep in np.linspace(1, len(data) * 0.9, 25).astype(int):
        cut.write_bytes(data[:keep])
        with pytest.raises((ReadError, ImageError)):
            read_image(cut)


@pytest.mark.parametrize("suffix", [".npy", ".png", ".tif"])
def test_damaged_bytes_never_crash(tmp_path: Path, suffix: str) -> None:
    data = write(tmp_path / f"whole{suffix}", PIXELS).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        bad = bytearray(data)
        for place in rng.integers(0, min(len(data), 300), 3):
            bad[place] = rng.integers(256)
        (tmp_path / f"bad{suffix}").write_bytes(bad)
        try:
            image = read_image(tmp_path / f"bad{suffix}")
        except (ReadError, ImageError) as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:
            assert np.isfinite(image.rgb).all()


def test_other_channel_counts(tmp_path: Path) -> None:
    for shape in ((8, 8), (8, 8, 4)):
        with pytest.raises(ImageError, match=r"a\.png: an image needs"):
            read_image(write(tmp_path / "a.png", np.zeros(shape, np.uint16)))


def test_a_huge_header_is_refused_before_decoding(tmp_path: Path) -> None:
    header = struct.pack(">IIBBBBB", 60000, 60000, 16, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    (tmp_path / "huge.png").write_bytes(png)
    with pytest.raises(ReadError, match=f"{MAX_PIXELS // 1_000_000} megapixels"):
        read_image(tmp_path / "huge.png")


def test_no_code_is_run_from_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ReadError):
        read_image(tmp_path / "a.npy")
