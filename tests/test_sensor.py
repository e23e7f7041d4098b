"""The report on a sensor: what stands on it is true of the shots."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from shots import write_matrices
from typer.testing import CliRunner

import c5
from c5.cli.app import app
from c5.color import Float64s, angular_error
from c5.colorimetry.matrices import CameraMatrices
from c5.datasets import read_samples
from c5.datasets.sample import ImageFile, Pixels, Sample
from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import Layout, write_dng
from c5.errors import DataError
from c5.evaluation import sensor_page
from c5.evaluation.sensor import ALONE, PROFILED, Effect, Sensor, advise, examine_sensor
from c5.evaluation.sensor_page import make_report
from c5.image import LinearImage
from c5.photos.picture import turn

pytest.importorskip("matplotlib")


def write_shots(folder: Path, seed: int, count: int) -> list[Sample]:
    rng = np.random.default_rng(seed)
    camera = VirtualCamera.random(rng)
    rows = ["path,camera,r,g,b"]
    for index, photo in enumerate(render_roll(camera, count, rng, (64, 96))):
        write_dng(folder / f"{seed}-{index}.dng", photo, camera)
        rows.append(f"{seed}-{index}.dng,{camera.name},{','.join(f'{x:.6f}' for x in photo.illuminant)}")
    (folder / "manifest.csv").write_text("\n".join(rows))
    return read_samples(folder)


@dataclass(frozen=True, eq=False)
class Plain:
    """Pixels without what their file says, as in a PNG."""

    pixels: Pixels

    @property
    def path(self) -> Path:
        return self.pixels.path

    def read(self) -> LinearImage:
        return self.pixels.read()

    def digest(self) -> str:
        return self.pixels.digest()


def rotate(light: Float64s, degrees: float) -> Float64s:
    """A light that is some degrees from another."""
    across = np.cross(light, [0, 0, 1.0])
    turned = light * np.cos(np.radians(degrees)) + across / np.linalg.norm(across) * np.sin(np.radians(degrees))
    return np.asarray(turned)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shots")
    write_shots(place, 1, 6)
    return place


@pytest.fixture(scope="module")
def sensor(folder: Path) -> Sensor:
    return examine_sensor(read_samples(folder), c5.load_model(), np.random.default_rng(0))


def test_no_shot_is_in_the_profile_that_it_is_tested_with(folder: Path, sensor: Sensor) -> None:
    model = c5.load_model()
    others = model.calibrate([sample.read() for sample in read_samples(folder)[1:]])
    known = model.estimate(read_samples(folder)[0].read(), others)
    assert angular_error(known.illuminant, sensor.shots[0].found[PROFILED]) < 1e-6
    alone = model.estimate(read_samples(folder)[0].read())
    assert angular_error(alone.illuminant, sensor.shots[0].found[ALONE]) < 1e-6


def test_every_shot_is_in_one_kind_of_light(sensor: Sensor) -> None:
    places = np.concatenate(list(sensor.bands().values()))
    assert sorted(places.tolist()) == list(range(len(sensor.shots)))
    assert [effect.count for effect in sensor.effects] == [1, 4]
    assert sensor.influence.max() > 0


def test_lights_that_are_missing_are_asked_for(sensor: Sensor) -> None:
    kelvins = sensor.kelvins()
    assert kelvins is not None
    warm = np.argsort(kelvins)[:3]
    few = Sensor(sensor.camera, sensor.model, [sensor.shots[i] for i in warm], sensor.matrices, [], np.zeros(3))
    words = " ".join(advise(few))
    assert ("colder" in words) == (kelvins[warm].max() < 7500)
    assert ("warmer" in words) == (kelvins[warm].min() > 2700)
    assert "17 more shots" in words


def test_the_page_holds_all_that_it_shows(sensor: Sensor) -> None:
    page = make_report(sensor).decode()
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert page.count("<img") == 3 + 3 * 6
    for method in sensor.methods:
        assert page.count(f"<td>{method}</td>") == 2
    assert f"{sensor.errors(PROFILED).mean():.2f}°" in page


def test_a_pack_gives_the_report_of_its_folder(folder: Path, sensor: Sensor, tmp_path: Path) -> None:
    pack = tmp_path / "s.c5data"
    runner = CliRunner()
    assert runner.invoke(app, ["data", "pack", str(folder), "-o", str(pack)]).exit_code == 0
    done = runner.invoke(app, ["sensor", "report", str(pack)])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "sensor.html").read_text()
    assert all(f"</b> {shot.name}" in page for shot in sensor.shots)
    found = examine_sensor(read_samples(pack), c5.load_model(), np.random.default_rng(0))
    assert found.matrices is None  # a pack does not hold them
    assert abs(found.errors(ALONE).mean() - sensor.errors(ALONE).mean()) < 0.05


def test_matrices_from_a_table_give_temperatures(sensor: Sensor, tmp_path: Path) -> None:
    samples = [replace(shot.sample, pixels=Plain(shot.sample.pixels)) for shot in sensor.shots]
    rng, model = np.random.default_rng(0), c5.load_model()
    assert examine_sensor(samples, model, rng).kelvins() is None
    assert sensor.matrices is not None
    known = examine_sensor(samples, model, rng, matrices={sensor.camera: sensor.matrices})
    assert known.matrices is sensor.matrices
    assert known.kelvins() is not None


def test_the_command_takes_matrices_from_a_table(folder: Path, sensor: Sensor, tmp_path: Path) -> None:
    """Those of another camera give other temperatures than those in the files."""
    write_matrices(tmp_path / "matrices.csv", [CameraMatrices("Any", np.eye(3), np.eye(3))])
    pages = []
    for name, more in (("a.html", []), ("b.html", ["--matrices", str(tmp_path / "matrices.csv")])):
        command = ["sensor", "report", str(folder), "--only", sensor.camera, "-o", str(tmp_path / name), *more]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        pages.append(re.findall(r"The lights go from .* K\.", (tmp_path / name).read_text()))
    assert pages[0] != pages[1]


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_the_worst_shots_are_turned_for_the_viewer(sensor: Sensor, orientation: int, tmp_path: Path) -> None:
    """Their long side lies along the page's width at 3, and upright at 6 and 8."""
    rng = np.random.default_rng(1)
    camera = VirtualCamera.random(rng)
    (photo,) = render_roll(camera, 1, rng, (64, 96))
    pictures = []
    for name, turned in (("a.dng", 1), ("b.dng", orientation)):
        write_dng(tmp_path / name, photo, camera, Layout(orientation=turned))
        sample = replace(sensor.shots[0].sample, pixels=ImageFile(tmp_path / name))
        shot = examine_sensor([sample] * 3, c5.load_model(), rng).shots[0]
        assert shot.orientation == turned
        picture = sensor_page._picture(replace(sensor, matrices=None), shot, None)
        pictures.append(np.asarray(Image.open(io.BytesIO(picture)), dtype=np.float64))
    expected = turn(pictures[0], orientation)
    assert pictures[1].shape == expected.shape
    assert abs(pictures[1] - expected).mean() < 6  # JPEG


def test_the_page_says_when_a_profile_does_not_help(sensor: Sensor) -> None:
    def with_errors(known: list[float]) -> Sensor:
        """Shots that the model alone misses by 3 degrees, and with a profile by these."""
        shots = []
        for shot, error in zip(sensor.shots, known, strict=True):
            found = shot.found | {ALONE: rotate(shot.light, 3.0), PROFILED: rotate(shot.light, error)}
            shots.append(replace(shot, found=found))
        return replace(sensor, shots=shots)

    for known, words in (
        ([1.0] * 6, ""),
        ([5.0] * 6, "the profile makes estimates worse: it raises the mean error by 2.00°"),
        ([1.0, 6.0] * 3, "the profile is of no clear use: it raises the mean error by 0.50°. On other"),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 9.0], "the profile is of no clear use: it lowers the mean error by 0.67°"),
    ):
        page = make_report(with_errors(known)).decode()
        assert ("On these shots, the profile" in page) == bool(words)
        assert words in page


def test_bars_of_the_plot_are_not_cut_off(sensor: Sensor) -> None:
    wide = Effect(1, np.tile([0.0, 20.0], (len(sensor.shots), 1)))
    (axes,) = sensor_page._draw_effects(replace(sensor, effects=[wide])).axes
    assert axes.get_ylim()[1] > wide.errors.mean() + wide.errors.mean(axis=0).std()


def test_a_report_is_of_one_sensor_with_several_shots(folder: Path, tmp_path: Path) -> None:
    mixed = read_samples(folder) + write_shots(tmp_path, 2, 3)
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="choose one of them"):
        examine_sensor(mixed, c5.load_model(), rng)
    with pytest.raises(DataError, match=r"no shot is from .*; they are from Virtual"):
        examine_sensor(mixed, c5.load_model(), rng, "Prototype")
    with pytest.raises(DataError, match="needs 3"):
        examine_sensor(mixed[:2], c5.load_model(), rng)


def test_the_command_writes_one_page(folder: Path) -> None:
    assert CliRunner().invoke(app, ["sensor", "report", str(folder)]).exit_code == 0
    assert (folder / "sensor.html").is_file()
    assert CliRunner().invoke(app, ["sensor", "report", str(folder)]).exit_code != 0  # it exists already
