"""What is decided for a set of photographs, and what is written for other programs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import seeds, textured
from PIL import Image, ImageOps
from typer.testing import CliRunner

from c5 import Estimate, LinearImage, angular_error
from c5.balance import UNCERTAIN_DEG, Balance, Fallback, apply_fallback, describe, smooth
from c5.classical import gray_world
from c5.cli import app
from c5.color import Float64s, as_illuminant, gains, rgb_to_uv, uv_to_rgb
from c5.demo import VirtualCamera, render_roll
from c5.demo.dng import Layout, write_dng
from c5.picture import turn
from c5.raw import Photograph, read_photograph

NOON = datetime(2026, 6, 1, 12)


@pytest.fixture(autouse=True)
def _no_catalog_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c5.catalog.default_path", lambda: tmp_path / "no catalog")


def make_balance(
    light: Float64s, second: float | None = None, uncertainty: float = 2.0, camera: str = "A", name: str = "x"
) -> Balance:
    time = None if second is None else NOON + timedelta(seconds=second)
    photograph = Photograph(LinearImage(textured(1), camera=camera), (24, 30), time, as_illuminant([1, 2, 1]))
    estimate = Estimate(as_illuminant(light), None, uncertainty)
    return Balance(Path(name), photograph, estimate, estimate.illuminant, "model", 0, lambda **_: photograph)


def lights(balances: list[Balance]) -> Float64s:
    return np.stack([rgb_to_uv(balance.illuminant) for balance in balances])


@given(seed=seeds, count=st.integers(2, 12))
def test_smoothing_steadies_and_does_not_depend_on_the_order_of_files(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.uniform(-0.5, 0.5, 2)
    seen = true + rng.normal(0, 0.05, (count, 2))
    balances = [make_balance(uv_to_rgb(uv), 10.0 * i, name=f"{i:03d}") for i, uv in enumerate(seen)]
    steady = lights(smooth(balances))
    assert np.ptp(steady, axis=0).max() <= np.ptp(seen, axis=0).max() + 1e-9
    assert np.abs(np.diff(steady, axis=0)).max() <= np.abs(np.diff(seen, axis=0)).max() + 1e-9
    order = rng.permutation(count)
    mixed = smooth([balances[i] for i in order])
    np.testing.assert_allclose(lights(mixed), steady[order], atol=1e-12)
    assert all(balance.by == "smoothed" for balance in mixed)


def test_smoothing_leaves_a_steady_light_alone_and_trusts_the_certain() -> None:
    same = [make_balance(as_illuminant([1, 2, 1.5]), 5.0 * i, name=str(i)) for i in range(6)]
    np.testing.assert_allclose(lights(smooth(same)), lights(same), atol=1e-12)
    sure, unsure = uv_to_rgb([0.2, 0.2]), uv_to_rgb([0.5, -0.2])
    mixed = [make_balance(sure, float(i), 1.0, name=str(i)) for i in range(5)]
    mixed[2] = make_balance(unsure, 2.0, 20.0, name="2")
    found = lights(smooth(mixed))
    assert np.abs(found - [0.2, 0.2]).max() < 0.02
    mixed[2] = make_balance(unsure, 2.0, 0.1, name="2")
    assert np.abs(lights(smooth(mixed))[2] - [0.5, -0.2]).max() < 0.05


def test_a_pause_or_another_camera_is_another_light() -> None:
    day, night = uv_to_rgb([0.5, 0.1]), uv_to_rgb([0.0, 0.6])
    burst = [make_balance(day, float(i), name=f"a{i}") for i in range(5)]
    later = [make_balance(night, 7200.0 + i, name=f"b{i}") for i in range(5)]
    found = lights(smooth([*burst, *later]))
    np.testing.assert_allclose(found[:5], lights(burst), atol=0.02)
    np.testing.assert_allclose(found[5:], lights(later), atol=0.02)
    other = [make_balance(night, i + 0.5, camera="B", name=f"c{i}") for i in range(5)]
    np.testing.assert_allclose(lights(smooth([*burst, *other])), lights([*burst, *other]), atol=1e-9)
    timeless = make_balance(night)
    assert smooth([*burst, timeless])[-1] is timeless


def test_what_is_used_when_the_model_is_uncertain() -> None:
    sure, unsure = (make_balance(as_illuminant([1, 1, 1]), 0, u) for u in (UNCERTAIN_DEG - 0.1, UNCERTAIN_DEG + 0.1))
    for fallback in Fallback:
        assert apply_fallback(sure, fallback) is sure
    assert not sure.uncertain
    assert unsure.uncertain
    assert apply_fallback(unsure, Fallback.NONE) is unsure
    camera = apply_fallback(unsure, Fallback.CAMERA)
    np.testing.assert_array_equal(camera.illuminant, as_illuminant([1, 2, 1]))
    assert camera.by == "camera"
    gray = apply_fallback(unsure, Fallback.GRAY_WORLD)
    np.testing.assert_array_equal(gray.illuminant, gray_world(unsure.photograph.image))
    # The estimate itself, and the mark, stay to be seen.
    assert gray.uncertain
    assert describe(gray)["uncertain"]
    unknown = replace(unsure, photograph=replace(unsure.photograph, as_shot=None))
    assert apply_fallback(unknown, Fallback.CAMERA) is unknown


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_as_exif_says(orientation: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (5, 7, 3), dtype=np.uint8)
    picture = Image.fromarray(pixels)
    picture.getexif()[0x0112] = orientation
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", exif=picture.getexif())
    expected = np.asarray(ImageOps.exif_transpose(Image.open(buffer)))
    np.testing.assert_array_equal(turn(pixels, orientation), expected)


@pytest.fixture(scope="module")
def roll(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Float64s]]:
    """Six DNG files of one rendered camera, and their true lights."""
    folder = tmp_path_factory.mktemp("photographs")
    rng = np.random.default_rng(15)
    camera = VirtualCamera.random(rng)
    truth = {}
    for index, photo in enumerate(render_roll(camera, 6, rng, (160, 240))):
        layout = Layout(time=NOON + timedelta(minutes=index), orientation=6 if index == 1 else 1)
        path = write_dng(folder / f"{photo.image.source}.dng", photo, camera, layout)
        truth[path.name] = photo.illuminant
    return folder, truth


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_the_whole_way(roll: tuple[Path, dict[str, Float64s]], tmp_path: Path) -> None:
    folder, truth = roll
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    catalog, out = tmp_path / "catalog.db", tmp_path / "out"
    assert run("catalog", "add", folder, "--catalog", catalog)[0] == 0
    kinds = ("--preview", "--png", "--xmp", "--pp3", "--darktable", "--dng", "--sheet", "--json", "--csv")
    code, stdout, stderr = run("balance", folder, "--catalog", catalog, "--out", out, *kinds)
    assert code == 0, stderr
    assert "roll of 6 vivid photographs" in stderr
    assert all(name in stderr + stdout for name in truth)
    rows = [json.loads(line) for line in (out / "balance.jsonl").read_text().splitlines()]
    table = list(csv.DictReader((out / "balance.csv").read_text().splitlines()))
    assert [row["file"] for row in table] == [row["file"] for row in rows] == [str(folder / name) for name in truth]
    for row, cells in zip(rows, table, strict=True):
        name, stem = Path(row["file"]).name, Path(row["file"]).stem
        np.testing.assert_allclose(gains(row["illuminant"]), row["gains"], rtol=1e-4)
        assert float(cells["gains_r"]) == row["gains"][0]
        assert row["roll"] == 6
        assert 1500 < row["kelvin"] < 50000
        # The copy differs from the original in the tag alone, and a reader finds our light in it.
        copy = read_photograph(out / name)
        original = read_photograph(folder / name)
        assert copy.as_shot is not None
        assert original.as_shot is not None
        assert angular_error(copy.as_shot, row["illuminant"]) < 0.01
        np.testing.assert_array_equal(copy.image.rgb, original.image.rgb)
        assert row["camera_angle_deg"] == pytest.approx(
            float(angular_error(original.as_shot, row["illuminant"])), abs=0.01
        )
        with Image.open(out / f"{stem}.png") as picture:
            wide = picture.width > picture.height
        assert wide == (original.orientation == 1)
        for suffix in (".xmp", ".dng.pp3", ".dng.xmp"):
            assert (out / f"{stem}{suffix}").stat().st_size > 100
    assert np.mean([angular_error(row["illuminant"], truth[Path(row["file"]).name]) for row in rows]) < 8
    with Image.open(out / "sheet.jpg") as sheet:
        assert sheet.width > 900
    # Nothing beside the photographs, and they themselves are as they were.
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before
    # What exists stays; with --overwrite a sidecar keeps what else it holds.
    sidecar = out / f"{next(iter(truth))}.pp3"
    sidecar.write_text("[Exposure]\nCompensation=0.7\n" + sidecar.read_text())
    code, _, stderr = run("balance", folder / next(iter(truth)), "--catalog", catalog, "--out", out, "--pp3")
    assert code == 1
    assert "exists already; give --overwrite" in stderr
    code, _, _ = run("balance", folder / next(iter(truth)), "--catalog", catalog, "--out", out, "--pp3", "--overwrite")
    assert code == 0
    assert "Compensation=0.7" in sidecar.read_text()


def test_one_bad_file_does_not_stop_the_set(roll: tuple[Path, dict[str, Float64s]], tmp_path: Path) -> None:
    folder, truth = roll
    bad = tmp_path / "bad.dng"
    bad.write_bytes((folder / next(iter(truth))).read_bytes()[:5000])
    nothing = tmp_path / "none.db"
    files = [folder / name for name in list(truth)[:2]]
    code, stdout, stderr = run("balance", files[0], bad, files[1], "--json")
    assert code == 1
    assert [json.loads(line)["file"] for line in stdout.splitlines()] == [str(path) for path in files]
    assert "bad.dng" in stderr
    assert "not in the catalogue; the roll is 2 of these photographs" in stderr
    code, stdout, stderr = run("balance", files[0], "--csv")
    assert code == 0
    assert "from the file alone; more would help" in stderr
    done = CliRunner().invoke(app, ["balance", str(files[0]), "--catalog", str(nothing)])
    assert "no catalogue there; make one" in str(done.exception)


def test_originals_are_never_touched(roll: tuple[Path, dict[str, Float64s]], tmp_path: Path) -> None:
    folder, truth = roll
    own = tmp_path / "own.dng"
    own.write_bytes((folder / next(iter(truth))).read_bytes())
    content = own.read_bytes()
    code, _, stderr = run("balance", own, "--dng", "--overwrite")
    assert code == 1
    assert "originals are not touched" in stderr
    assert own.read_bytes() == content
    assert run("balance", own, "--xmp")[0] == 0
    assert (tmp_path / "own.xmp").exists()


def test_a_linear_file_without_matrices(tmp_path: Path) -> None:
    path = tmp_path / "linear.npy"
    np.save(path, textured(3, 60, 90))
    code, stdout, stderr = run("balance", path, "--json")
    assert code == 0, stderr
    assert json.loads(stdout)["kelvin"] is None
    code, _, stderr = run("balance", path, "--xmp", "--preview")
    assert code == 1
    assert "needs the camera's matrices" in stderr
    assert (tmp_path / "linear.jpg").exists()
