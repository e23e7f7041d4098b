"""What is decided for a set of photographs, and what is written for other programs."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import command
import imagecodecs
import numpy as np
import pytest
from dng_files import camera as make_camera
from dng_files import numbers
from hypothesis import given
from hypothesis import strategies as st
from laws import seeds, textured
from PIL import Image, ImageOps
from typer.testing import CliRunner

from c5 import C5Error, LinearImage, ParameterError, angular_error
from c5.choices import Fallback, Selection
from c5.classical import gray_world
from c5.cli.app import app
from c5.color import Float64s, as_illuminant, gains, rgb_to_uv, uv_to_rgb
from c5.colorimetry.matrices import CameraMatrices
from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import Layout, encode_dng, write_dng
from c5.histograms import Grid, Histograms
from c5.image import WORKING_PIXELS
from c5.io.raw import Photograph, read_photograph
from c5.model import Model, load_model
from c5.model_file import ModelFile
from c5.photos.balancing import UNCERTAIN_DEG, Balance, Settings, apply_fallback, balance
from c5.photos.catalog import Catalog
from c5.photos.files import Failure
from c5.photos.outputs import BUILT_IN, load_output
from c5.photos.photo import Photo, Reading, Thumbnail, read_photo
from c5.photos.picture import turn
from c5.photos.roll_building import Origin, Roll, build_roll, order_by_content, read_roll
from c5.photos.smoothing import Moment, smooth, smooth_in_turn
from c5.photos.summary import describe, show_pair
from c5.photos.writing import plan_outputs, write_output

NOON = datetime(2026, 6, 1, 12)
Shoot = tuple[Path, dict[str, Float64s]]


@pytest.fixture(autouse=True)
def _no_catalog_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c5.photos.catalog.default_path", lambda: tmp_path / "no catalog")


def make_balance(
    light: Float64s, second: float | None = None, uncertainty: float = 2.0, camera: str = "A", name: str = "x"
) -> Balance:
    time = None if second is None else NOON + timedelta(seconds=second)
    photograph = Photograph(LinearImage(textured(1), camera=camera), (24, 30), time, as_illuminant([1, 2, 1]))
    return Balance(Photo.of(Path(name), photograph), as_illuminant(light), uncertainty, "model", Roll())


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
    order = rng.permutation(count)
    mixed = smooth([balances[i] for i in order])
    np.testing.assert_allclose(lights(mixed), steady[order], atol=1e-12)
    assert all(balance.source == "smoothed" for balance in mixed)


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
    later = [make_balance(night, 20.0 + i, name=f"b{i}") for i in range(5)]  # long for a burst
    found = lights(smooth([*burst, *later]))
    np.testing.assert_allclose(found, lights([*burst, *later]), atol=1e-9)
    other = [make_balance(night, i + 0.5, camera="B", name=f"c{i}") for i in range(5)]
    np.testing.assert_allclose(lights(smooth([*burst, *other])), lights([*burst, *other]), atol=1e-9)
    timeless = make_balance(night)
    assert smooth([*burst, timeless])[-1] is timeless


def test_scenes_of_a_shoot_are_no_sequence_and_one_photograph_is_none() -> None:
    rng = np.random.default_rng(0)
    scenes = [make_balance(uv_to_rgb(rng.uniform(-0.5, 0.5, 2)), 420.0 * i, name=str(i)) for i in range(6)]
    assert all(found is scene for found, scene in zip(smooth(scenes), scenes, strict=True))
    lapse = [make_balance(scene.illuminant, 60.0 * i, name=str(i)) for i, scene in enumerate(scenes)]
    assert {balance.source for balance in smooth(lapse)} == {"smoothed"}
    assert smooth(lapse[:1])[0] is lapse[0]


def test_what_is_used_when_the_model_is_uncertain() -> None:
    sure, unsure = (make_balance(as_illuminant([1, 1, 1]), 0, u) for u in (UNCERTAIN_DEG - 0.1, UNCERTAIN_DEG + 0.1))
    for fallback in Fallback:
        assert apply_fallback(sure, fallback) is sure
    assert not sure.uncertain
    assert unsure.uncertain
    assert apply_fallback(unsure, Fallback.NONE) is unsure
    camera = apply_fallback(unsure, Fallback.CAMERA)
    np.testing.assert_array_equal(camera.illuminant, as_illuminant([1, 2, 1]))
    assert camera.source == "camera"
    gray = apply_fallback(unsure, Fallback.GRAY_WORLD)
    np.testing.assert_array_equal(gray.illuminant, gray_world(LinearImage(textured(1))))
    # The estimate itself, and the mark, stay to be seen.
    assert gray.uncertain
    assert describe(gray)["uncertain"]
    unknown = replace(unsure, photo=replace(unsure.photo, as_shot=None))
    assert apply_fallback(unknown, Fallback.CAMERA) is unknown


def test_little_is_kept_of_a_photograph() -> None:
    side = round(WORKING_PIXELS**0.5)
    photograph = Photograph(LinearImage(textured(1, side, side)), (side, side))
    photo = Photo.of(Path("x"), photograph)
    assert not any(isinstance(value, LinearImage | Photograph) for value in vars(photo).values())
    small = Photo.of(Path("x"), photograph, thumbnail=True).thumbnail
    assert small is not None
    assert sum(part.nbytes for part in small) < 600_000
    with pytest.raises(ParameterError, match="no thumbnail"):
        show_pair(photo, as_illuminant([1, 1, 1]))


def test_a_light_that_no_temperature_has(tmp_path: Path) -> None:
    """What has matrices but no temperature can still be shown and described, and written as well as that can be."""
    camera = VirtualCamera.nikon_d5100()
    matrices = CameraMatrices("A", camera.color_matrix(2856), camera.color_matrix(6504))
    odd = make_balance(as_illuminant([1e-3, 1e-3, 1]))
    thumbnail = Thumbnail.of(LinearImage(textured(1)))
    odd = replace(odd, photo=replace(odd.photo, matrices=matrices, thumbnail=thumbnail))
    assert describe(odd)["kelvin"] is describe(odd)["tint"] is None
    assert all(picture.shape == (24, 30, 3) for picture in show_pair(odd.photo, odd.illuminant))
    written = write_output(odd, BUILT_IN["xmp"], tmp_path / "x.xmp")
    assert written is not None
    assert written.stat().st_size
    assert "° off" in describe(odd, [BUILT_IN["xmp"]])["note"]


names = st.lists(
    st.builds(
        "/".join,
        st.tuples(
            st.sampled_from(["p", "q", "p/r"]),
            st.sampled_from(
                ["a.dng", "a.DNG", "A.dng", "a.nef", "a.png", "a.png.c5.png", "a.dng.c5.jpg", "a.tif", "a"]
            ),
        ),
    ),
    min_size=1,
    max_size=8,
    unique=True,
)


@given(names=names, kinds=st.sets(st.sampled_from(sorted(BUILT_IN))), out=st.sampled_from([None, "out", "p", "q/../p"]))
def test_no_plan_loses_a_file(names: list[str], kinds: set[str], out: str | None) -> None:
    paths = [Path(name) for name in names]
    outputs = {kind: BUILT_IN[kind] for kind in kinds}
    places, refused = plan_outputs(paths, outputs, None if out is None else Path(out))
    assert len(places) + len(refused) == len(paths) * len(kinds)
    for failure in refused:
        assert failure.path in paths
        assert failure.message.startswith(f"{failure.path}: ")

    def spelled(path: Path) -> tuple[Path, str]:
        return path.parent.resolve(), path.name.lower()

    taken = [spelled(path) for path in places.values()]
    assert len(set(taken)) == len(taken)
    assert not set(taken) & set(map(spelled, paths))


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
def bundled() -> Model:
    return load_model()


@pytest.fixture(scope="module")
def shoot(tmp_path_factory: pytest.TempPathFactory) -> Shoot:
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
    """The command's exit code, and what it prints on both ends; an error that would end it is its last line."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(done.exception, C5Error):
        return 1, done.stdout, f"{done.stderr}c5: {done.exception}\n"
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def as_shot(path: Path) -> Float64s:
    found = read_photograph(path).as_shot
    assert found is not None
    return found


def files_of(folder: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")) if path.is_file()}


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Every file that is there stays as it is; others may come."""
    before = files_of(folder)
    yield
    after = files_of(folder)
    assert {path: after.get(path) for path in before} == before


def save(path: Path, seed: int = 1) -> Path:
    """A small linear photograph of any kind that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = textured(seed, 40, 60)
    if path.suffix == ".npy":
        np.save(path, pixels)
    elif path.suffix == ".jpg":
        Image.fromarray((255 * pixels).astype(np.uint8)).save(path)
    elif path.suffix == ".png":
        path.write_bytes(imagecodecs.png_encode((65535 * pixels).astype(np.uint16)))
    else:
        path.write_bytes(encode_dng(numbers(seed, 40, 60), make_camera(), Layout()))
    return path


def test_the_whole_way(shoot: Shoot, tmp_path: Path) -> None:
    folder, truth = shoot
    catalog, out = tmp_path / "catalog.db", tmp_path / "out"
    before = files_of(folder)
    assert run("catalog", "add", folder, "--catalog", catalog)[0] == 0
    kinds = ("--preview", "--png", "--xmp", "--pp3", "--darktable", "--dng", "--sheet", "--json", "--csv")
    code, stdout, stderr = run("balance", folder, "--catalog", catalog, "--out", out, *kinds)
    assert code == 0, stderr
    (said,) = (line for line in stderr.splitlines() if "roll of 6 random photographs: " in line)
    assert set(said.split("photographs: ")[1].split(", ")) == set(truth)
    assert all(name in stdout for name in truth)
    rows = [json.loads(line) for line in (out / "balance.jsonl").read_text().splitlines()]
    table = list(csv.DictReader((out / "balance.csv").read_text().splitlines()))
    assert [row["file"] for row in table] == [row["file"] for row in rows] == [str(folder / name) for name in truth]
    for row, cells in zip(rows, table, strict=True):
        name, stem = Path(row["file"]).name, Path(row["file"]).stem
        np.testing.assert_allclose(gains(row["illuminant"]), row["gains"], rtol=1e-4)
        assert float(cells["gains_r"]) == row["gains"][0]
        assert (row["roll"], row["by"]) == (6, "model")
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
        for picture in (out / f"{name}.c5.png", out / f"{name}.c5.jpg"):
            with Image.open(picture) as opened:
                assert (opened.width > opened.height) == (original.orientation == 1)
        for suffix in (".xmp", ".dng.pp3", ".dng.xmp"):
            assert (out / f"{stem}{suffix}").stat().st_size > 100
    # The model beats the setting of a camera that believes in daylight.
    errors = np.array([angular_error(row["illuminant"], truth[Path(row["file"]).name]) for row in rows])
    assert np.mean(errors) < np.mean([angular_error(as_shot(folder / name), light) for name, light in truth.items()])
    with Image.open(out / "sheet.jpg") as sheet:
        assert sheet.width > 900
    assert files_of(folder) == before  # nothing new beside the photographs either
    # What exists stays; with --overwrite a sidecar keeps what else it holds.
    sidecar = out / f"{next(iter(truth))}.pp3"
    sidecar.write_text("[Exposure]\nCompensation=0.7\n" + sidecar.read_text())
    with untouched(out):
        code, _, stderr = run("balance", folder / next(iter(truth)), "--catalog", catalog, "--out", out, "--pp3")
    assert code == 0
    assert "0 written, 1 already there, 0 uncertain, 0 failed; --overwrite" in stderr
    code, _, _ = run("balance", folder / next(iter(truth)), "--catalog", catalog, "--out", out, "--pp3", "--overwrite")
    assert code == 0
    assert "Compensation=0.7" in sidecar.read_text()


# The pipeline ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recording(Reading):
    """Reading that remembers what it has read, and may take its time."""

    opened: list[Path] = field(default_factory=list)
    seconds: float = 0

    def read(self, path: Path, pixels: int = WORKING_PIXELS, more_pixels: int | None = None) -> Photograph:
        self.opened.append(path)
        time.sleep(self.seconds)
        return super().read(path, pixels, more_pixels)


def bits(results: Iterable[Balance | Failure]) -> list[tuple[Any, ...]]:
    """All that is known of each result, to the last bit."""
    found: list[tuple[Any, ...]] = []
    for result in results:
        assert isinstance(result, Balance)
        row = {key: str(value) for key, value in describe(result).items()}
        found.append((result.illuminant.tobytes(), result.uncertainty, result.photo.gray_world.tobytes(), row))
    return found


def test_results_come_while_files_are_still_read(tmp_path: Path, bundled: Model) -> None:
    paths = [save(tmp_path / f"{i:02d}.npy", i) for i in range(40)]
    reading = Recording()
    profile = bundled.calibrate([textured(1)])
    results = balance(paths, Settings(bundled, profile, reading=reading, jobs=1))
    assert next(results).path == paths[0]
    assert len(reading.opened) < 6
    # A camera that nobody knows needs its roll first, and no file twice.
    reading = Recording()
    results = balance(paths, Settings(bundled, roll_size=8, reading=reading, jobs=1))
    first = next(results)
    assert isinstance(first, Balance)
    assert first.roll.origin is Origin.SET
    assert first.roll.paths == tuple(sorted(order_by_content(paths)[:8]))
    assert len(reading.opened) < 8 + 6
    assert [result.path for result in results] == paths[1:]
    assert sorted(reading.opened) == paths


def test_outputs_are_written_while_files_are_still_read(
    tmp_path: Path, bundled: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [save(tmp_path / f"{i:02d}.dng", i) for i in range(40)]
    profile = bundled.calibrate([textured(1)]).save(tmp_path / "profile")
    seen: dict[Path, bool] = {}

    def read(path: Path, **levels: Any) -> Photograph:
        seen[path] = (tmp_path / "00.dng.pp3").exists()
        return read_photograph(path, **levels)

    monkeypatch.setattr("c5.io.raw.read_photograph", read)
    assert run("balance", *paths, "--pp3", "--profile", profile)[0] == 0
    assert not seen[paths[0]]
    assert seen[paths[-1]]


def test_what_the_catalog_holds_is_not_opened(shoot: Shoot, tmp_path: Path) -> None:
    photos, catalog = tmp_path / "photos", tmp_path / "catalog.db"
    shutil.copytree(shoot[0], photos)
    assert run("catalog", "add", photos, "--catalog", catalog)[0] == 0
    commands = ("--json", "--xmp", "--pp3", "--darktable", "--overwrite")
    expected = run("balance", photos, "--catalog", catalog, *commands)
    before = {path: path.read_bytes() for path in photos.iterdir() if path.suffix != ".dng"}
    for path in photos.glob("*.dng"):  # as unreadable as can be, and no one could tell without opening it
        status = path.stat()
        path.write_bytes(b"\0" * status.st_size)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = run("balance", photos, "--catalog", catalog, *commands)
    assert again[:2] == expected[:2]
    assert again[2].splitlines()[-1].startswith("0 written, 18 already there, ")  # nothing that would not change
    assert expected[0] == 0
    assert len(before) == 18
    assert {path: path.read_bytes() for path in before} == before
    assert run("balance", photos, "--catalog", catalog, "--json", "--black", "1")[0] == 1  # read in another way
    assert run("balance", photos, "--catalog", catalog, "--sheet", "--out", tmp_path)[0] == 1  # pixels are needed


def test_a_preview_comes_from_the_reading_that_gave_the_light(
    shoot: Shoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, opened, kept = tmp_path / "catalog.db", [], []

    def read(path: Path, **options: Any) -> Photograph:
        opened.append(path)
        return read_photograph(path, **options)

    def keep(result: Balance, *_: Any) -> None:
        kept.append(result.photo)

    monkeypatch.setattr("c5.io.raw.read_photograph", read)
    assert run("balance", shoot[0], "--preview", "--png", "--out", tmp_path / "alone")[0] == 0
    assert sorted(opened) == sorted(shoot[0].iterdir())
    assert run("catalog", "add", shoot[0], "--catalog", catalog)[0] == 0
    assert run("balance", shoot[0], "--preview", "--png", "--out", tmp_path / "held", "--catalog", catalog)[0] == 0
    alone, held = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("alone", "held"))
    assert len(alone) == 12
    assert alone == held
    # However many wait for their roll, few wait with their pixels.
    monkeypatch.setattr("c5.photos.balancing.MOST_PREVIEWS", 2)
    results = list(balance(sorted(shoot[0].iterdir()), Settings(previews=True, jobs=1)))
    assert [result.photo.preview is None for result in results if isinstance(result, Balance)].count(False) <= 3
    monkeypatch.setattr("c5.cli.balance.Run.take", lambda _, *taken: keep(*taken))
    assert run("balance", shoot[0], "--preview", "--out", tmp_path / "more")[0] == 0
    assert [photo.preview for photo in kept] == [None] * 6


def test_the_catalog_changes_no_bit(shoot: Shoot, tmp_path: Path, bundled: Model) -> None:
    """Neither whether it holds a photograph, nor whether a roll of the same photographs comes from it."""
    paths = sorted(shoot[0].iterdir())
    alone = bits(balance(paths, Settings(bundled)))
    profile = bundled.calibrate(paths[:3])
    given = bits(balance(paths, Settings(bundled, profile)))
    with Catalog.open(tmp_path / "all.db") as held, Catalog.open(tmp_path / "some.db") as some:
        held.add([shoot[0]])
        some.add(paths[:2])
        assert bits(balance(paths, Settings(bundled, catalog=held))) == alone
        assert bits(balance(paths, Settings(bundled, profile, held))) == given
        assert bits(balance(paths, Settings(bundled, profile, some))) == given
        assert bits(balance(paths, Settings(bundled, profile, held, thumbnails=True))) == given
        assert bits(balance(paths, Settings(bundled, profile, held, smooth=True))) == bits(
            balance(paths, Settings(bundled, profile, smooth=True))
        )


def test_failures_are_values_in_their_turn(shoot: Shoot, tmp_path: Path, bundled: Model) -> None:
    good = sorted(shoot[0].iterdir())[:3]
    cut, missing = tmp_path / "cut.dng", tmp_path / "missing.dng"
    cut.write_bytes(good[0].read_bytes()[:5000])  # its header still tells the camera
    paths = [cut, good[0], missing, *good[1:]]
    for smooth_it in (False, True):
        results = list(balance(paths, Settings(bundled, smooth=smooth_it)))
        assert [result.path for result in results] == paths
        for result in results:
            assert isinstance(result, Failure) == (result.path in (cut, missing))
            if isinstance(result, Failure):
                assert result.message.startswith(f"{result.path}: ")
                assert "\n" not in result.message
            else:
                assert result.roll.paths == tuple(good)


def test_every_roll_builder_makes_the_same_profile(shoot: Shoot, tmp_path: Path, bundled: Model) -> None:
    folder = tmp_path / "photos"
    shutil.copytree(shoot[0], folder)
    paths = sorted(folder.iterdir())
    shutil.copy(paths[0], folder / "copy.dng")
    (folder / "broken.dng").write_bytes(b"II*\0")
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        catalog.add([folder])
        camera = catalog.status()[0].camera
        assert camera is not None
        kept = catalog.roll(bundled, camera)
    own = next(iter(balance(sorted(folder.iterdir()), Settings(bundled), wanted=paths[:1])))
    assert isinstance(own, Balance)
    rolls = [read_roll(folder, bundled), kept, own.roll]
    for roll, origin in zip(rolls, (Origin.FOLDER, Origin.CATALOG, Origin.SET), strict=True):
        assert roll is not None
        assert roll.profile is not None
        assert (roll.camera, roll.origin, roll.size) == (camera, origin, 6)
        assert len({path.read_bytes() for path in roll.paths}) == 6  # the copy is no seventh
        assert roll.profile.encode() == bundled.calibrate([folder / "copy.dng", *reversed(paths)]).encode()
    assert [failure.path.name for failure in rolls[0].failures] == ["broken.dng"]  # type: ignore[union-attr]


def test_a_roll_is_of_the_first_and_what_fails_or_repeats_is_replaced() -> None:
    model = Model(ModelFile("few", "separate", Grid(), 4, {"query": b"never run"}))
    paths = [Path(f"{i}") for i in range(9)]
    asked: list[Path] = []

    def load(some: Sequence[Path]) -> Iterator[Photo | Failure]:
        for path in some:
            asked.append(path)
            if path.name in "36":
                yield Failure(path, f"{path}: is broken")
            else:
                photo = make_balance(as_illuminant([1, 1, 1])).photo
                stack = np.full(Grid().shape, 0.01, np.float32)
                stack[0, 0 if path.name in "01" else int(path.name)] = 1 + 0.1 * int(path.name)
                yield replace(photo, path=path, histograms=Histograms(Grid(), stack))

    roll = build_roll(model, paths, load, origin=Origin.SET, size=20)
    assert roll.size == 3  # as many as the model takes
    assert asked == paths[:5]  # 1 shows what 0 shows
    assert roll.paths == (paths[0], paths[2], paths[4])
    assert [failure.path for failure in roll.failures] == [paths[3]]
    assert build_roll(model, paths[3:4], load, origin=Origin.SET).profile is None
    asked.clear()
    assert build_roll(model, [*paths[:2]] * 50, load, origin=Origin.FOLDER).size == 1
    assert len(asked) <= 6  # copies of one photograph are not all read


@pytest.mark.parametrize("seed", range(2))
def test_no_copy_no_name_and_no_order_changes_a_roll(shoot: Shoot, tmp_path: Path, bundled: Model, seed: int) -> None:
    """However the rolls are made, of four of six photographs."""
    rng = np.random.default_rng(seed)
    plain, mixed = tmp_path / "plain", tmp_path / "mixed"
    shutil.copytree(shoot[0], plain)
    mixed.mkdir()
    for path in sorted(plain.iterdir()):
        for name in rng.integers(10**9, size=rng.integers(1, 4)):
            shutil.copy(path, mixed / f"{name}.dng")
    few = replace(bundled.file, kind="separate", n_images=5, graphs={"query": b"never run"})  # takes four
    for model in (bundled, Model(few)):
        made = []
        for folder in (plain, mixed):
            paths = [Path(name) for name in rng.permutation([str(path) for path in folder.iterdir()])]
            with Catalog.open(tmp_path / f"{folder.name} {model.identity}.db") as catalog:
                for path in paths:
                    catalog.add([path])
                camera = str(catalog.status()[0].camera)
                rolls = [catalog.roll(model, camera, 4, selection) for selection in (Selection.RANDOM, Selection.VIVID)]
            own = order_by_content(paths)
            load = partial(map, partial(read_photo, grid=model.grid))
            rolls += [build_roll(model, own, load, origin=Origin.SET, size=4), read_roll(folder, model)]
            assert [roll and roll.size for roll in rolls[:3]] == [4, 4, 4]
            assert rolls[-1] is not None
            assert rolls[-1].profile is not None
            assert model.calibrate(paths).encode() == rolls[-1].profile.encode()
            made.append(
                [[level.tobytes() for level in roll.profile.features] for roll in rolls if roll and roll.profile]
            )
        assert made[0] == made[1]


@given(seed=seeds, count=st.integers(1, 12))
def test_smoothing_one_by_one_is_smoothing_all(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    balances = []
    for index in range(count):
        second = None if rng.uniform() < 0.2 else float(rng.choice([0, 10, 20, 1000, 1010, 5000]) + index)
        light = uv_to_rgb(rng.uniform(-0.5, 0.5, 2))
        balances.append(make_balance(light, second, camera=rng.choice(["A", "B"]), name=str(index)))
    moments = {each.path: Moment(each.photo.camera, each.photo.time) for each in balances}
    unsure = {path: moment._replace(time=None, certain=False) for path, moment in moments.items()}
    expected = [rgb_to_uv(each.illuminant).tolist() for each in smooth(balances)]
    for known in (moments, unsure):
        results = smooth_in_turn(iter(balances), known)
        assert [rgb_to_uv(each.illuminant).tolist() for each in results if isinstance(each, Balance)] == expected


def test_only_a_sequence_is_held_back() -> None:
    day, taken = as_illuminant([1, 2, 1]), []

    def results() -> Iterator[Balance]:
        for index, second in enumerate([0, 5, 10, 1000, 1005, 2000]):
            taken.append(index)
            yield make_balance(day, float(second), name=str(index))

    moments = {each.path: Moment("A", each.photo.time) for each in results()}
    taken.clear()
    smoothed = smooth_in_turn(results(), moments)
    assert [(next(smoothed).path.name, len(taken)) for _ in range(6)] == [
        ("0", 3), ("1", 3), ("2", 3), ("3", 5), ("4", 5), ("5", 6)
    ]  # fmt: skip


def test_only_what_is_wanted_is_read(shoot: Shoot, bundled: Model) -> None:
    paths = sorted(shoot[0].iterdir())
    every = bits(balance(paths, Settings(bundled, roll_size=2)))
    reading = Recording()
    some = bits(balance(paths, Settings(bundled, roll_size=2, reading=reading), wanted=paths[4:5]))
    assert some == every[4:5]  # the roll is that of the whole set
    assert set(reading.opened) == {*order_by_content(paths)[:2], paths[4]}


# From end to end ------------------------------------------------------------------------------------------------------


def test_a_second_run_is_quiet_and_goes_on(shoot: Shoot, tmp_path: Path) -> None:
    folder, truth = shoot
    out = tmp_path / "out"
    first = run("balance", folder, "--out", out, "--pp3", "--darktable", "--json")
    assert first[0] == 0
    assert first[2].splitlines()[-1].startswith("13 written, 0 already there, ")
    (out / f"{next(iter(truth))}.pp3").unlink()
    (out / "balance.jsonl").unlink()
    before = files_of(out)
    code, stdout, stderr = run("balance", folder, "--out", out, "--pp3", "--darktable")
    assert code == 0
    assert stderr.splitlines()[-1].startswith("1 written, 11 already there, ")
    assert sum(name in stdout for name in truth) == 1  # the others are done
    assert {path: found for path, found in files_of(out).items() if path in before} == before
    code, stdout, stderr = run("balance", folder, "--out", out, "--pp3", "--darktable")
    assert (code, stdout) == (0, "")
    assert stderr == "0 written, 12 already there, 0 uncertain, 0 failed; --overwrite replaces what is there\n"


INTERRUPTED = """
import sys, time
import c5.io.raw
from c5.cli import main

read_photograph = c5.io.raw.read_photograph

def read(path, **levels):
    time.sleep(0.2)
    return read_photograph(path, **levels)

c5.io.raw.read_photograph = read
main()
"""


def test_interrupted_it_leaves_what_is_written_and_says_how_to_go_on(tmp_path: Path) -> None:
    photos = [save(tmp_path / "photos" / f"{i:02d}.dng", i) for i in range(40)]
    command = ["balance", str(tmp_path / "photos"), "--pp3", "--roll-size", "4", "--out", str(tmp_path / "out")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "XDG_DATA_HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *command], stdout=-1, stderr=-1, text=True, env=environment
    )
    while not list(tmp_path.glob("out/*.pp3")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, complained = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in complained
    assert "c5: stopped; what is written stays, and the same command continues from there" in complained
    left = files_of(tmp_path / "out")
    assert 0 < len(left) < len(photos)
    assert run(*command)[0] == 0
    assert run(*command[:-1], tmp_path / "whole")[0] == 0
    made = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert made == {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert {path: files_of(tmp_path / "out")[path] for path in left} == left


PLUGIN = """
from c5.photos.outputs import Output

def make(balance, existing):
    return " ".join(f"{value:.4f}" for value in balance.illuminant).encode()

gains = Output("The light in plain text.", lambda path: f"{path.stem}.txt", make)
broken = Output("Never works.", lambda path: f"{path.stem}.none", lambda balance, existing: balance.nothing)
"""


def test_an_output_of_another_package_is_a_flag_like_any_other(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "lights-1.0.dist-info").mkdir(parents=True)
    (site / "lights.py").write_text(PLUGIN)
    (site / "lights-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: lights\nVersion: 1.0\n")
    (site / "lights-1.0.dist-info" / "entry_points.txt").write_text(
        "[c5.outputs]\nplain-text = lights:gains\nbroken = lights:broken\n"
    )
    path = save(tmp_path / "photos" / "a.npy")
    environment = {"PYTHONPATH": os.pathsep.join([str(site), *sys.path]), "XDG_DATA_HOME": str(tmp_path)}
    c5 = partial(command.c5, "balance", environment=environment)
    assert "--plain-text" in c5("--help").stdout
    done = c5(str(path), "--plain-text")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "photos" / "a.txt").read_text().split()) == 3
    failed = c5(str(path), "--broken")
    assert failed.returncode == 1
    assert f"c5: {path}: broken of the package lights 1.0 failed: AttributeError" in failed.stderr


def test_an_unknown_output_is_named() -> None:
    with pytest.raises(ParameterError, match="no output is called 'nothing'; there are preview, png, xmp"):
        load_output("nothing")


def test_the_fallback_goes_into_smoothing(shoot: Shoot, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, truth = shoot

    def used(path: Path, *options: str) -> list[dict[str, Any]]:
        code, stdout, stderr = run("balance", path, "--json", "--smooth", *options)
        assert code == 0, stderr
        return [json.loads(line) for line in stdout.splitlines()]

    monkeypatch.setattr("c5.photos.balancing.UNCERTAIN_DEG", 1e3)
    without = used(folder)
    assert used(folder, "--fallback", "camera") == without
    monkeypatch.setattr("c5.photos.balancing.UNCERTAIN_DEG", 0.1)
    rows = used(folder, "--fallback", "camera")  # every photograph is uncertain now, and the camera is trusted
    assert {row["by"] for row in rows} == {"smoothed"}
    angles = [sum(row["camera_angle_deg"] for row in each) for each in (rows, without)]
    assert angles[0] < angles[1]
    alone = folder / next(iter(truth))
    assert [row["by"] for row in (*used(alone), *used(alone, "--fallback", "camera"))] == ["model", "camera"]


@pytest.mark.parametrize("pattern", ["RGGB", ""])
def test_a_gray_patch_of_a_raw_file_is_gray_in_its_picture(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "c5.photos.balancing.UNCERTAIN_DEG", -1.0
    )  # so that the camera's own setting is used, here the truth
    camera, light = make_camera(), np.array([0.45, 1.0, 0.7])
    raw = numbers(3, 120, 180)
    for column, level in ((40, 0.2), (100, 0.6)):
        raw[40:80, column : column + 40] = np.rint(camera.black_level + 15359 * level * light)
    raw[:20, 100:] = camera.white_level  # blown out
    path = tmp_path / "card.dng"
    path.write_bytes(encode_dng(raw, camera, Layout(pattern), neutral=light))
    assert run("balance", path, "--preview", "--fallback", "camera")[0] == 0
    with Image.open(tmp_path / "card.dng.c5.jpg") as opened:
        picture = np.asarray(opened).astype(int)
    scale = picture.shape[0] / 120
    for rows, columns in (
        (slice(48, 72), slice(48, 72)),
        (slice(48, 72), slice(108, 132)),
        (slice(2, 12), slice(120, 170)),
    ):
        part = (slice(*(round(edge * scale) for edge in (side.start, side.stop))) for side in (rows, columns))
        patch = picture[tuple(part)].mean(axis=(0, 1))
        assert np.ptp(patch) < 2
    assert patch.min() > 235


# Originals ------------------------------------------------------------------------------------------------------------


def test_no_photograph_is_ever_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "photos"
    png, jpg, raw = save(folder / "a.png"), save(folder / "b.jpg"), save(folder / "IMG_1.dng")
    save(folder / "IMG_1.jpg")  # the camera's own
    with untouched(folder):
        assert run("balance", png, "--png", "--overwrite")[0] == 0
        assert run("balance", jpg, "--assume-srgb", "--preview", "--overwrite")[0] == 0
        assert run("balance", raw, "--preview", "--overwrite")[0] == 0
    own = [folder / "a.png.c5.png", folder / "IMG_1.dng.c5.jpg"]
    with untouched(folder):
        code, _, stderr = run("balance", raw, "--dng", "--overwrite")
        assert code == 1
        assert "give --out DIR" in stderr
        (tmp_path / "link").symlink_to(folder)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "IMG_1.dng").symlink_to(raw)
        for place in (folder, tmp_path / "link", tmp_path / "other"):
            code, _, stderr = run("balance", raw, "--dng", "--overwrite", "--out", place)
            assert code == 1
            assert f"c5: {raw}: {place / raw.name} is a photograph of this set" in stderr
            assert "--out DIR" in stderr
        # Pictures of our own are photographs only if they are named.
        code, _, stderr = run("balance", png, own[0], "--png", "--overwrite")
        assert code == 1
        assert "is a photograph of this set" in stderr
    monkeypatch.chdir(folder)
    save(folder / "sheet.jpg")
    with untouched(folder):
        code, _, stderr = run("balance", "sheet.jpg", "--assume-srgb", "--sheet", "--overwrite")
        assert code == 1
        assert "sheet.jpg: is a photograph of this set" in stderr
    assert run("balance", folder, "--json")[1].count("\n") == 2  # a.png and IMG_1.dng


def test_a_folder_of_outputs_is_ordered_as_the_photographs_are(tmp_path: Path) -> None:
    for name in ("p/IMG_1.DNG", "p/r/IMG_1.dng", "q/IMG_1.dng"):
        save(tmp_path / name)
    out = tmp_path / "out"

    def made(*folders: str) -> set[str]:
        shutil.rmtree(out, ignore_errors=True)
        asked = [tmp_path / folder for folder in folders]
        assert run("balance", *asked, "--dng", "--pp3", "--json", "--out", out)[0] == 0
        return {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()} - {"balance.jsonl"}

    assert made("p") == {"IMG_1.DNG", "IMG_1.DNG.pp3", "r/IMG_1.dng", "r/IMG_1.dng.pp3"}
    names = ("p/IMG_1.DNG", "p/r/IMG_1.dng", "q/IMG_1.dng")
    assert made("p", "q") == {f"{name}{ending}" for name in names for ending in ("", ".pp3")}
    assert made("p/r/IMG_1.dng") == {"IMG_1.dng", "IMG_1.dng.pp3"}


def test_two_that_want_one_place_get_none(tmp_path: Path) -> None:
    twins = [save(tmp_path / "p" / "IMG_1.dng"), save(tmp_path / "p" / "IMG_1.nef", 4)]
    code, _, stderr = run("balance", tmp_path / "p", "--xmp", "--pp3")
    assert code == 1
    for twin, rival in (twins, twins[::-1]):
        assert f"c5: {twin}: {tmp_path / 'p' / 'IMG_1.xmp'} is wanted for {rival} too" in stderr
    made = {path.name for path in (tmp_path / "p").iterdir()}
    assert made == {"IMG_1.dng", "IMG_1.nef", "IMG_1.dng.pp3", "IMG_1.nef.pp3"}
    twins.append(save(tmp_path / "q" / "IMG_1.dng", 2))
    # However a photograph is spelled, it is one.
    assert run("balance", twins[2], tmp_path / "p" / ".." / "q" / "IMG_1.dng", "--xmp")[0] == 0


# What fails -----------------------------------------------------------------------------------------------------------


def test_one_bad_file_does_not_stop_the_set(shoot: Shoot, tmp_path: Path) -> None:
    folder, truth = shoot
    good = [folder / name for name in list(truth)[:2]]
    cut = tmp_path / "cut.dng"
    cut.write_bytes(good[0].read_bytes()[:5000])
    black = tmp_path / "black.npy"
    np.save(black, np.zeros((9, 9, 3), np.uint16))
    missing, long = tmp_path / "missing.dng", tmp_path / f"{'x' * 300}.dng"
    bad = [cut, black, missing, long]
    code, stdout, stderr = run("balance", good[0], *bad, good[1], "--json")
    assert code == 1
    assert [json.loads(line)["file"] for line in stdout.splitlines()] == [str(path) for path in good]
    for path in bad:
        assert f"c5: {path}: " in stderr
    assert f"the roll is 2 of these photographs: {good[0].name}, {good[1].name}\n" in stderr


def test_what_cannot_be_written_does_not_stop_the_set(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    long, *others = (save(photos / name, i) for i, name in enumerate(["x" * 250 + ".npy", "a.dng", "b.dng", "c.dng"]))
    (photos / "a.dng.pp3").mkdir()  # cannot be read
    (photos / "b.dng.pp3").write_bytes(b"[broken\n=\n\0")
    with untouched(photos):
        code, _, stderr = run("balance", photos, "--pp3", "--preview", "--overwrite")
    assert code == 1
    assert f"{long}.c5.jpg: cannot be written" in stderr
    assert f"c5: {long}: this needs the camera's matrices, and none are known (--pp3)" in stderr
    assert f"c5: {photos / 'a.dng.pp3'}: " in stderr
    assert f"c5: {photos / 'b.dng.pp3'}: " in stderr
    for path in others:
        assert path.with_name(f"{path.name}.c5.jpg").is_file()
    assert (photos / "c.dng.pp3").is_file()


def test_a_sidecar_beside_the_photograph_is_taken_over_but_nobodys_is_lost(tmp_path: Path) -> None:
    raw, out = save(tmp_path / "a.dng"), tmp_path / "out"
    (tmp_path / "a.dng.pp3").write_text("[Exposure]\nCompensation=0.7\n")
    out.mkdir()
    (out / "a.dng.pp3").write_text("[Exposure]\nCompensation=0.1\n")
    assert run("balance", raw, "--pp3", "--out", out, "--overwrite")[0] == 0
    assert "Compensation=0.1" in (out / "a.dng.pp3").read_text()
    (out / "a.dng.pp3").unlink()
    for options in ([], ["--overwrite"]):
        assert run("balance", raw, "--pp3", "--out", out, *options)[0] == 0
        assert "Compensation=0.7" in (out / "a.dng.pp3").read_text()
    assert run("balance", raw, "--undo", "--out", out)[0] == 0
    assert not list(out.iterdir())
    assert (tmp_path / "a.dng.pp3").read_text() == "[Exposure]\nCompensation=0.7\n"
    (tmp_path / "a.dng.pp3").write_bytes(b"[broken\n=\n\0")
    code, _, stderr = run("balance", raw, "--pp3", "--out", out, "--overwrite")
    assert code == 1
    assert f"c5: {tmp_path / 'a.dng.pp3'}: " in stderr


def test_outputs_of_the_set_are_looked_at_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = [save(tmp_path / f"{i}.npy", i) for i in range(3)]
    out = tmp_path / "out"
    (out / "balance.csv").mkdir(parents=True)
    # What fails there is one failure among others.
    missing = tmp_path / "missing.npy"
    code, _, stderr = run("balance", *photos, missing, "--csv", "--sheet", "--json", "--out", out, "--overwrite")
    assert code == 1
    assert f"c5: {out / 'balance.csv'}: is not a file" in stderr
    assert f"c5: {missing}: " in stderr
    assert len((out / "balance.jsonl").read_text().splitlines()) == 3
    # What exists stays, and nothing is read for it.
    monkeypatch.setattr("c5.io.raw.read_photograph", lambda *_, **__: pytest.fail("was read"))
    with untouched(out):
        code, stdout, stderr = run("balance", *photos, "--sheet", "--json", "--out", out)
    assert (code, stdout) == (0, "")
    assert stderr == "0 written, 2 already there, 0 uncertain, 0 failed; --overwrite replaces what is there\n"


def test_many_photographs_make_several_sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c5.cli.balance.PAGE", 2)
    for i in range(5):
        save(tmp_path / "photos" / f"{i}.npy", i)
    assert run("balance", tmp_path / "photos", "--sheet", "--out", tmp_path)[0] == 0
    sizes = [Image.open(tmp_path / name).size for name in ("sheet.jpg", "sheet-2.jpg", "sheet-3.jpg")]
    assert sizes[0] == sizes[1]
    assert not (tmp_path / "sheet-4.jpg").exists()


# Options --------------------------------------------------------------------------------------------------------------


def test_folders_are_searched_as_the_catalog_does(tmp_path: Path) -> None:
    wanted = [save(tmp_path / name) for name in ("a.npy", "deep/er/b.npy")]
    for name in (".hidden.npy", ".trash/c.npy", "a.npy.c5.png", "notes.jpg"):
        save(tmp_path / name)
    code, stdout, _ = run("balance", tmp_path, "--json")
    assert code == 0
    assert [json.loads(line)["file"] for line in stdout.splitlines()] == [str(path) for path in wanted]
    (tmp_path / "empty").mkdir()
    assert "no photographs in it" in run("balance", tmp_path / "empty")[2]


def test_a_camera_can_be_named(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog.db"
    photos = [save(tmp_path / "roll" / f"{i}.npy", i) for i in range(3)]
    assert run("catalog", "add", tmp_path / "roll", "--catalog", catalog, "--camera", "Holga")[0] == 0
    code, stdout, stderr = run("balance", photos[0], "--catalog", catalog, "--camera", "Holga", "--json")
    assert code == 0
    assert "Holga: roll of 3 random photographs: " in stderr
    assert (json.loads(stdout)["camera"], json.loads(stdout)["roll"]) == ("Holga", 3)
    raw = save(tmp_path / "x.dng")
    told = json.loads(run("balance", raw, "--camera", "Holga", "--json")[1])["camera"]
    assert told == read_photograph(raw).image.camera


def test_more_photographs_would_help(tmp_path: Path) -> None:
    path, catalog = save(tmp_path / "a.npy"), tmp_path / "catalog.db"
    assert "from the file alone; more would help" in run("balance", path)[2]
    assert run("catalog", "add", path, "--catalog", catalog, "--camera", "Holga")[0] == 0
    said = run("balance", path, "--catalog", catalog, "--camera", "Holga")[2]
    assert "roll of 1 random photograph: a.npy; more would help" in said
    assert "no catalog there; make one" in run("balance", path, "--catalog", tmp_path / "none.db")[2]


def test_what_is_printed_is_one_thing(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npy")
    assert "ask for one" in run("balance", path, "--json", "--csv")[2]
    code, stdout, _ = run("balance", tmp_path / "none.npy", "--csv")
    assert (code, stdout) == (1, "")
    code, stdout, _ = run("balance", path, "--csv")
    assert (code, len(stdout.splitlines())) == (0, 2)


def test_a_linear_file_without_matrices(tmp_path: Path) -> None:
    path = save(tmp_path / "linear.npy", 3)
    code, stdout, stderr = run("balance", path, "--json")
    assert code == 0, stderr
    assert json.loads(stdout)["kelvin"] is None
    code, _, stderr = run("balance", path, "--xmp", "--preview")
    assert code == 1
    assert "needs the camera's matrices" in stderr
    assert (tmp_path / "linear.npy.c5.jpg").exists()
