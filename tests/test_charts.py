"""Color charts: what is labeled is right, and what is none is not labeled."""

from __future__ import annotations

import csv
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from chart_cases import CASES, Shot, render_shot
from charts import label_case
from PIL import Image
from typer.testing import CliRunner

from c5.charts import finding, labeling
from c5.charts.chart import Measured, Reading, Refusal, read_chart
from c5.charts.finding import Chart, agree, find_charts, read_corners
from c5.charts.grid import Lattice
from c5.charts.label_page import PAGE, write_labels
from c5.charts.labeling import CORRECTIONS, MANIFEST, Label, label_folder, read_card, read_corrections, write_manifest
from c5.cli.app import app
from c5.color import Float64s, angular_error
from c5.colorimetry.spectra import chart_surfaces
from c5.datasets import read_samples
from c5.demo import LIGHTS, VirtualCamera
from c5.demo.raw_files import Layout, write_dng
from c5.errors import DataError, WriteError
from c5.image import LinearImage
from c5.photos import photo

pytest.importorskip("cv2")

LEVELS = photo.Reading()


def image_of(shot: Shot) -> LinearImage:
    return LinearImage(shot.photo.image.rgb, clipped=shot.photo.image.clipped)


def shoot(case: str, seed: int, scene: str = "still life", light: str = "window") -> Shot:
    rng = np.random.default_rng(seed)
    return render_shot(VirtualCamera.random(rng), scene, LIGHTS[light](rng), case, rng, (320, 480))


@pytest.fixture(scope="module")
def plain() -> Shot:
    return shoot("plain", 4)


@pytest.fixture
def folder(plain: Shot, tmp_path: Path) -> Path:
    """A chart, the same turned by a quarter, and a photograph without one."""
    camera = VirtualCamera.random(np.random.default_rng(4))
    write_dng(tmp_path / "a.dng", plain.photo, camera)
    write_dng(tmp_path / "turned.dng", plain.photo, camera, Layout(orientation=6))
    write_dng(tmp_path / "none.dng", shoot("none", 4).photo, camera)
    return tmp_path


def measure(seed: int = 0, surfaces: Float64s | None = None) -> tuple[Measured, Float64s]:
    """The patches of a chart as a random camera sees them in a random light, and that light."""
    rng = np.random.default_rng([seed, 7])
    camera, light = VirtualCamera.random(rng), LIGHTS[list(LIGHTS)[seed % len(LIGHTS)]](rng)
    rgb = camera.respond((chart_surfaces() if surfaces is None else surfaces) * light.spectrum)
    return Measured(rgb, 0.002 * rgb, np.ones(24, np.bool_)), camera.illuminant(light.spectrum)


def test_the_law_holds_on_rendered_photographs_of_every_case() -> None:
    outcomes = [label_case(index, seed=2) for index in range(2 * len(CASES))]
    assert not [outcome for outcome in outcomes if outcome.wrong]
    sure = [outcome for outcome in outcomes if outcome.case in ("plain", "tilted")]
    assert sum(outcome.error is not None for outcome in sure) >= len(sure) - 1


@pytest.mark.parametrize("seed", range(16))
def test_any_sensor_in_any_light_gives_the_light(seed: int) -> None:
    measured, light = measure(seed=seed)
    found = read_chart(measured)
    assert isinstance(found, Reading)
    assert angular_error(found.illuminant, light) < 0.5


@pytest.mark.parametrize("seed", range(8))
def test_patches_in_another_order_are_no_chart(seed: int) -> None:
    order = np.random.default_rng(seed).permutation(18)
    for surfaces in (
        chart_surfaces()[np.append(order, np.arange(18, 24))],
        chart_surfaces().reshape(4, 6, -1)[:, ::-1].reshape(24, -1),
    ):
        assert isinstance(read_chart(measure(seed=seed, surfaces=surfaces)[0]), Refusal)


def test_a_tone_curve_makes_a_chart_a_print() -> None:
    measured, _ = measure()
    curved = (measured.rgb / measured.rgb.max()) ** 1.2
    found = read_chart(Measured(curved, measured.error, measured.good))
    assert isinstance(found, Refusal)


def test_glare_and_a_shadow_of_one_color_are_no_reason_to_refuse() -> None:
    measured, light = measure(seed=2)
    shaded = measured.rgb.copy()
    shaded[[index for index in range(24) if index % 6 < 3]] *= 0.4
    glare = measured.rgb + 0.01 * measured.rgb[18]
    for rgb in (shaded, glare):
        found = read_chart(Measured(rgb, measured.error, measured.good))
        assert isinstance(found, Reading), found
        assert angular_error(found.illuminant, light) < 0.5


@pytest.mark.parametrize(("index", "seed"), [(1043, 20), (3132, 30)])
def test_scenes_that_once_had_wrong_labels_have_none(index: int, seed: int) -> None:
    """Two lights a degree apart; and a print whose colors and tone nearly fit, on paper that is not white."""
    assert not label_case(index, seed=seed).wrong


def test_two_lights_on_a_chart_are_refused() -> None:
    measured, _ = measure()
    rgb = measured.rgb.copy()
    rgb[[index for index in range(24) if index % 6 < 3]] *= [1.0, 0.95, 0.85]
    found = read_chart(Measured(rgb, measured.error, measured.good))
    assert isinstance(found, Refusal)
    assert "two lights" in found.reason


def test_clipped_patches_are_left_out() -> None:
    measured, light = measure(seed=5)
    rgb, good = np.minimum(measured.rgb, 0.5 * measured.rgb.max()), measured.rgb.max(axis=1) < 0.5 * measured.rgb.max()
    found = read_chart(Measured(rgb, measured.error, good))
    assert isinstance(found, Reading)
    assert found.grays < 5
    assert angular_error(found.illuminant, light) < 0.5
    assert isinstance(read_chart(Measured(rgb, measured.error, np.zeros(24, np.bool_))), Refusal)


@pytest.mark.parametrize("turn", range(4))
def test_a_chart_in_any_quarter_gives_the_same_light(plain: Shot, turn: int) -> None:
    image = image_of(plain)
    found = find_charts(LinearImage(np.rot90(image.rgb, turn).copy(), clipped=np.rot90(image.clipped, turn).copy()))
    result = agree(found)
    assert isinstance(result, Reading)
    assert angular_error(result.illuminant, plain.lights[0]) < 0.5


def test_a_mirrored_chart_is_none(plain: Shot) -> None:
    found = find_charts(LinearImage(image_of(plain).rgb[:, ::-1].copy()))
    assert not any(isinstance(chart.result, Reading) for chart in found)


def test_charts_must_agree(plain: Shot) -> None:
    chart = next(chart for chart in find_charts(image_of(plain)) if isinstance(chart.result, Reading))
    assert isinstance(chart.result, Reading)
    other = Reading(np.array([0.5, 0.7, 0.51]), 1, 1, 0, 0.1, 5)
    assert isinstance(agree([chart, chart]), Reading)
    refused = agree([chart, Chart(chart.corners, other)])
    assert isinstance(refused, Refusal)
    assert "2 charts" in refused.reason


def test_corners_may_be_given_from_any_corner(plain: Shot) -> None:
    image = image_of(plain)
    chart = next(chart for chart in find_charts(image) if isinstance(chart.result, Reading))
    for corners in (np.roll(chart.corners, 1, axis=0), chart.corners[::-1]):
        again = read_corners(image, corners)
        assert isinstance(again.result, Reading)
        np.testing.assert_allclose(again.corners, chart.corners)


@pytest.mark.parametrize(
    "corners",
    [
        [(10, 10), (470, 10), (470, 11), (10, 11)],
        [(10, 10), (40, 10), (40, 30), (10, 30)],
        [(0, 0), (480, 0), (242, 2), (240, 1)],
        [(10, 10), (470, 10), (10.001, 10.001), (10, 300)],
        [(1, 1), (9e5, 1), (9e5, 3), (1, 9e5)],
    ],
)
@pytest.mark.filterwarnings("error")
def test_corners_that_miss_the_chart_are_named_as_the_reason(plain: Shot, corners: list[tuple[float, float]]) -> None:
    found = read_corners(image_of(plain), np.array(corners, dtype=np.float64))
    assert isinstance(found.result, Refusal)
    assert "corners are wrong" in found.result.reason


@pytest.mark.filterwarnings("error")
def test_a_plane_that_is_seen_edge_on_has_no_chart(plain: Shot) -> None:
    """Some place of the chart, or all of them, are on the horizon of the lattice that was found."""
    image = image_of(plain)
    for column in (1.0, 5.5, -0.5):
        lattice = Lattice(np.array([[50.0, 0, 60], [0, 50, 60], [-1 / column, 0, 1]]), (0, 0), (0, 0), 6)
        assert all(finding._read(image, lattice, order) is None for order in [np.eye(3)])
    assert finding._read(image, Lattice(np.zeros((3, 3)), (0, 0), (0, 0), 6), np.eye(3)) is None


def test_a_card_is_measured_where_it_is_pointed_out() -> None:
    rgb = np.full((60, 90, 3), 0.05, np.float32)
    rgb[10:40, 20:60] = [0.2, 0.5, 0.3]
    corners = np.array([[20, 10], [60, 10], [60, 40], [20, 40]], dtype=np.float64)
    found = read_card(LinearImage(rgb), corners)
    assert isinstance(found, Reading)
    assert angular_error(found.illuminant, [0.2, 0.5, 0.3]) < 1e-4
    half = rgb.copy()
    half[10:40, 20:40] = [0.3, 0.5, 0.2]
    clipped = np.ones_like(rgb)
    for image, reason in ((half, "one color"), (clipped, "clipped")):
        refused = read_card(LinearImage(image), corners)
        assert isinstance(refused, Refusal)
        assert reason in refused.reason
    assert isinstance(read_card(LinearImage(rgb), corners + 500), Refusal)


# Folders


def by_name(labels: list[Label]) -> dict[str, Label]:
    return {label.path.name: label for label in labels}


def test_a_folder_becomes_a_dataset_with_the_chart_masked(folder: Path, plain: Shot) -> None:
    labels = label_folder(folder, LEVELS)
    write_manifest(folder, labels, LEVELS)
    samples = {sample.path.name: sample for sample in read_samples(folder)}
    assert sorted(samples) == ["a.dng", "turned.dng"]
    for sample in samples.values():
        assert angular_error(sample.illuminant, plain.lights[0]) < 0.5
        masked = ~sample.read().mask
        chart = ~plain.photo.image.mask[::2, ::2]
        assert masked[chart].mean() > 0.98
        assert masked.sum() < 1.4 * chart.sum()


def test_a_second_chart_is_masked_even_if_it_is_refused(plain: Shot, tmp_path: Path) -> None:
    rgb = image_of(plain).rgb
    (chart,) = find_charts(image_of(plain))
    other = rgb.copy()
    other[:, : int(chart.corners[:, 0].mean())] *= np.array([0.75, 0.9, 1], np.float32)  # in two lights
    np.save(tmp_path / "two.npy", np.concatenate([rgb, other], axis=1))
    (label,) = label_folder(tmp_path, LEVELS, "X")
    assert label.illuminant is not None
    assert angular_error(label.illuminant, plain.lights[0]) < 0.5
    first, second = sorted(label.outlines, key=lambda outline: float(outline[:, 0].min()))
    np.testing.assert_allclose(second - first, [[rgb.shape[1], 0]] * 4, atol=8)


def test_corrections_are_obeyed(folder: Path) -> None:
    found = by_name(label_folder(folder, LEVELS))["a.dng"]
    height, width = found.size
    left, right, top, bottom = 0.02 * width, 0.1 * width, 0.02 * height, 0.1 * height
    wall = f"{left} {top} {right} {top} {right} {bottom} {left} {bottom}"
    (folder / CORRECTIONS).write_text(f"path,kind,corners\n*.dng,none,\nturned.dng,card,{wall}\n")
    labels = by_name(label_folder(folder, LEVELS))
    assert labels["a.dng"].illuminant is None
    assert labels["turned.dng"].kind == "card"
    assert labels["turned.dng"].corrected


def test_names_with_brackets_are_corrected_as_they_are(folder: Path) -> None:
    (folder / "a.dng").rename(folder / "a[1]?.dng")
    (folder / CORRECTIONS).write_text("path,kind,corners\na[1]?.dng,none,\n")
    labels = by_name(label_folder(folder, LEVELS))
    assert [name for name, label in labels.items() if label.corrected] == ["a[1]?.dng"]
    (folder / CORRECTIONS).write_text("path,kind,corners\nturne[d].dng,none,\n")
    with pytest.raises(DataError, match="no photograph is called"):
        label_folder(folder, LEVELS)


def test_corrections_that_cannot_be_read_are_not_passed_over(folder: Path) -> None:
    (folder / CORRECTIONS).symlink_to(folder / "nowhere.csv")
    with pytest.raises(DataError, match=r"corrections\.csv: cannot be read: No such file"):
        label_folder(folder, LEVELS)
    (folder / CORRECTIONS).unlink()
    (folder / CORRECTIONS).mkdir()
    with pytest.raises(DataError, match=r"corrections\.csv: cannot be read: Is a directory"):
        label_folder(folder, LEVELS)


def test_a_developed_picture_is_refused_with_what_to_give_instead(folder: Path) -> None:
    Image.new("RGB", (90, 60)).save(folder / "developed.png")
    (label,) = [label for label in label_folder(folder, LEVELS) if label.path.name == "developed.png"]
    assert label.reason.endswith("not linear; use the raw file or a 16-bit linear export")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a.dng,chart,1 2 3", "four points"),
        ("a.dng,chart,0 0 9 9 9 0 0 9", "four points"),
        ("a.dng,wall,0 0 9 0 9 9 0 9", "chart or card or none"),
        ("b.dng,none,", "no photograph is called b.dng"),
        ("a.dng,chart,nan nan 9 0 9 9 0 9", "four points"),
        ("a.dng,chart,inf 0 9 0 9 9 0 9", "four points"),
        ("a.dng,chart,1e6 0 9 0 9 9 0 9", "four points"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_wrong_correction_is_named_before_any_work(folder: Path, text: str, says: str) -> None:
    (folder / CORRECTIONS).write_text(f"path,kind,corners\n{text}\n")
    with pytest.raises(DataError, match=re.escape(says)):
        label_folder(folder, LEVELS)


def test_an_unreadable_file_costs_its_own_label(folder: Path) -> None:
    (folder / "bad.dng").write_bytes(b"II*\0" + b"\0" * 100)
    labels = by_name(label_folder(folder, LEVELS))
    assert labels["a.dng"].illuminant is not None
    assert labels["bad.dng"].illuminant is None
    page = write_labels(folder, list(labels.values())).read_text()
    assert page.count("<article") == 4
    assert not re.search(r"(src|href)=\"(?!data:)", page)


@pytest.mark.skipif(sys.platform == "darwin", reason="names there are UTF-8")
def test_a_name_that_no_manifest_can_hold_costs_its_own_label(folder: Path) -> None:
    for name in (b"caf\xe9.dng", b" a.dng"):
        shutil.copy(folder / "a.dng", folder / os.fsdecode(name))
    done = CliRunner().invoke(app, ["data", "label", str(folder)])
    assert done.output.count("manifest.csv cannot hold its name; rename it") == 2
    assert sorted(sample.path.name for sample in read_samples(folder)) == ["a.dng", "turned.dng"]
    assert (folder / PAGE).read_text().count("<article") == 5


def test_the_command_writes_labels_and_a_page(folder: Path) -> None:
    assert CliRunner().invoke(app, ["data", "label", str(folder)]).exit_code == 0
    with (folder / MANIFEST).open() as file:
        assert [row["path"] for row in csv.DictReader(file)] == ["a.dng", "turned.dng"]
    assert (folder / PAGE).is_file()
    assert not read_corrections(folder)


@pytest.mark.parametrize("name", [MANIFEST, PAGE])
def test_what_exists_is_refused_before_any_work(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CliRunner().invoke(app, ["data", "label", str(folder)]).exit_code == 0
    manifest, page = folder / MANIFEST, folder / PAGE
    before = {path: path.read_bytes() for path in (manifest, page)}
    (page if name == MANIFEST else manifest).unlink()
    monkeypatch.setattr(labeling, "label_folder", None)
    done = CliRunner().invoke(app, ["data", "label", str(folder)])
    assert isinstance(done.exception, WriteError)
    (folder / name).write_bytes(before[folder / name] + b"a word of mine, added\n")
    done = CliRunner().invoke(app, ["data", "label", str(folder), "--overwrite"])
    assert isinstance(done.exception, WriteError)
    assert "write to another folder" not in str(done.exception)
    assert len(list(folder.glob("*.[ch][st][vm]*"))) == 1


def test_labels_that_are_no_longer_found_leave_the_manifest(folder: Path) -> None:
    command = ["data", "label", str(folder), "--overwrite"]
    assert CliRunner().invoke(app, command).exit_code == 0
    (folder / CORRECTIONS).write_text("path,kind,corners\n*,none,\n")
    assert CliRunner().invoke(app, command).exit_code == 1
    with (folder / MANIFEST).open() as file:
        assert list(csv.DictReader(file)) == []
    (folder / CORRECTIONS).unlink()
    assert CliRunner().invoke(app, command).exit_code == 0


@pytest.mark.parametrize("polygon", ["1 2 3 4", "1 2 3 4 5", "a b c d e f", "nan 1 2 3 4 5"])
def test_a_polygon_that_is_none_is_named(folder: Path, polygon: str) -> None:
    (folder / MANIFEST).write_text(f"path,camera,r,g,b,masked\na.dng,Prototype,1,1,1,{polygon}\n")
    with pytest.raises(DataError, match=r"masked of .*a\.dng is not x and y"):
        read_samples(folder)
