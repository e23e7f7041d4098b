"""The report on a sensor: what stands on it is true of the shots."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import c5
from c5.cli.app import app
from c5.color import angular_error
from c5.datasets import read_samples
from c5.datasets.sample import Sample
from c5.demo import VirtualCamera, render_roll
from c5.demo.dng import write_dng
from c5.errors import DataError
from c5.evaluation.sensor import ALONE, PROFILED, Sensor, advise, examine_sensor
from c5.evaluation.sensor_page import make_report

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


def test_a_report_is_of_one_sensor_with_several_shots(folder: Path, tmp_path: Path) -> None:
    mixed = read_samples(folder) + write_shots(tmp_path, 2, 3)
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="choose one camera"):
        examine_sensor(mixed, c5.load_model(), rng)
    with pytest.raises(DataError, match="no shot is from"):
        examine_sensor(mixed, c5.load_model(), rng, "Prototype")
    with pytest.raises(DataError, match="needs 3"):
        examine_sensor(mixed[:2], c5.load_model(), rng)


def test_the_command_writes_one_page(folder: Path) -> None:
    assert CliRunner().invoke(app, ["sensor", "report", str(folder)]).exit_code == 0
    assert (folder / "sensor.html").is_file()
    assert CliRunner().invoke(app, ["sensor", "report", str(folder)]).exit_code != 0  # it exists already
