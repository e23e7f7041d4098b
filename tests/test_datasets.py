from __future__ import annotations

import shutil
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from laws import textured

from c5 import DataError, Grid, LinearImage, histogram
from c5.datasets import read_samples
from c5.training.data import load_samples, make_views


def write_ffcc(folder: Path, count: int = 3, camera: str = "Canon5D") -> Path:
    """A miniature in the layout of google/ffcc."""
    folder.mkdir(parents=True)
    for index in range(1, count + 1):
        stem = folder / f"{index:06d}"
        stem.with_suffix(".png").write_bytes(imagecodecs.png_encode((textured(index) * 65535).astype(np.uint16)))
        stem.with_suffix(".txt").write_text("   5.0e-01\n   8.0e-01\n   3.0e-01\n")
        Path(f"{stem}_camera.txt").write_text(camera)
        Path(f"{stem}_ccm.txt").write_text("1 0 0\n0 1 0\n0 0 1\n")
        Path(f"{stem}_scene.txt").write_text(str(index))
    return folder


def test_layout(tmp_path: Path) -> None:
    write_ffcc(tmp_path / "data/cheng/preprocessed/Cheng/Canon600D", camera="Canon600D")
    write_ffcc(tmp_path / "data/shi_gehler/preprocessed/GehlerShi")
    write_ffcc(tmp_path / "data/cheng/preprocessed/ChengThumb/Canon600D", camera="Canon600D")
    samples = read_samples(tmp_path)
    assert len(samples) == 6
    assert {(sample.dataset, sample.camera) for sample in samples} == {("NUS", "Canon600D"), ("Gehler-Shi", "Canon5D")}
    assert np.linalg.norm(samples[0].illuminant) == pytest.approx(1)
    assert samples[0].ccm is not None
    assert samples[0].ccm.shape == (3, 3)
    assert samples[0].scene == "1"
    assert samples[0].read().camera == "Canon600D"
    # A folder of thumbnails is read where it is the one that is asked for.
    assert len(read_samples(tmp_path / "data/cheng/preprocessed/ChengThumb")) == 3


def test_real_sample(test_data: Path) -> None:
    samples = read_samples(test_data / "data" / "ffcc_sample")
    assert len(samples) == 100
    assert len({sample.camera for sample in samples}) == 10
    assert {sample.dataset for sample in samples} == {"NUS", "Gehler-Shi"}


def test_problems_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        read_samples(tmp_path / "none")
    with pytest.raises(DataError, match="no images"):
        read_samples(tmp_path)
    folder = write_ffcc(tmp_path / "set")
    label = folder / "000002.txt"
    for text, message in (
        ("1 2", "2 numbers"),
        ("a b c", "not numbers"),
        ("0 0 0", "above zero"),
        ("nan 1 1", "finite"),
    ):
        label.write_text(text)
        with pytest.raises(DataError, match=message) as caught:
            read_samples(folder)
        assert "000002.txt" in str(caught.value)
    label.unlink()
    with pytest.raises(DataError, match=r"000002\.txt: missing"):
        read_samples(folder)
    label.write_text("1 1 1")
    (folder / "000003_camera.txt").write_text("")
    with pytest.raises(DataError, match=r"000003_camera\.txt"):
        read_samples(folder)


def test_histograms_are_cached_by_content(tmp_path: Path) -> None:
    folder, cache = write_ffcc(tmp_path / "set"), tmp_path / "cache"
    first = load_samples(read_samples(folder), Grid(32), cache=cache)
    np.testing.assert_array_equal(first.histograms[1], histogram(read_samples(folder)[1].read(), Grid(32)))
    assert first.views.shape == (3, 1, 2, 32, 32)
    entries = sorted(cache.rglob("*.npz"))
    assert len(entries) == 3
    # Moved files are known again; damaged entries are made anew; another grid is another entry.
    stamps = [entry.stat().st_mtime_ns for entry in entries]
    shutil.move(folder, tmp_path / "moved")
    entries[0].write_bytes(b"damaged")
    again = load_samples(read_samples(tmp_path / "moved"), Grid(32), cache=cache)
    np.testing.assert_array_equal(again.histograms, first.histograms)
    assert [entry.stat().st_mtime_ns for entry in entries[1:]] == stamps[1:]
    load_samples(read_samples(tmp_path / "moved"), Grid(16), cache=cache)
    assert len(list(cache.rglob("*.npz"))) == 6


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    samples = read_samples(write_ffcc(tmp_path / "set"))
    (tmp_path / "file").touch()
    assert len(load_samples(samples, Grid(32), cache=tmp_path / "file" / "cache")) == 3


def test_crops_are_parts_of_the_image() -> None:
    image = LinearImage(textured(3, 60, 90))
    views = make_views(image, Grid(32), 5, np.random.default_rng(0))
    assert views.shape == (6, 2, 32, 32)
    np.testing.assert_array_equal(views[0], histogram(image, Grid(32)))
    assert len({view.tobytes() for view in views}) == 6
    # No color can be in a part that is not in the whole.
    assert not (views[1:, 0] > 0)[:, views[0, 0] == 0].any()
    # Where a part is all black, the whole stands in.
    half = textured(3, 60, 90)
    half[:, 5:] = 0
    assert np.isfinite(make_views(LinearImage(half), Grid(32), 8, np.random.default_rng(1))).all()
