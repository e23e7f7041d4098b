"""The rows of the paper's tables can be asked for, are what the paper trained and tested, and are kept as they come."""

from __future__ import annotations

import csv
import importlib.util
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import seeds
from test_datasets import write_ffcc
from test_evaluation import photographs
from test_layouts import write_intel_tau
from typer.testing import CliRunner

from c5 import C5Error, DataError, Geometry, Grid, LinearImage, ParameterError, ReadError, histogram
from c5.ccc import locate
from c5.choices import Recipe, Selection
from c5.cli.app import app
from c5.color import uv_to_rgb
from c5.datasets import ImageFile, Sample, read_samples
from c5.datasets.sample import Capture
from c5.demo import VirtualCamera, render_roll
from c5.evaluation import figures
from c5.evaluation.estimates import ESTIMATES, read_estimates, write_estimates
from c5.evaluation.figures import draw_curves, draw_mean_histograms
from c5.evaluation.methods import Classical, Estimates, Method, Rolls, Task
from c5.evaluation.paper import SETTINGS, count_published, make_rows, select_rows
from c5.evaluation.report import read_published
from c5.evaluation.significance import compare, interval
from c5.evaluation.suite import (
    Measured,
    _describe_settings,
    gather_rows,
    load_rows,
    make_checklist,
    run_rows,
    save_rows,
)
from c5.histograms import Histograms
from c5.io.marks import cut_signature
from c5.metrics import Statistics
from c5.rolls import draw_rolls
from c5.training.config import RollKind, make_config, paper_training, set_fields, split_settings
from c5.training.learners import C5, make_methods
from c5.training.making import Making, find_making, plan_making

DOCS = Path(__file__).parents[1] / "docs"


def test_every_row_that_a_method_of_ours_can_stand_beside_has_one() -> None:
    rows = make_rows()
    assert len({(row.table, row.name) for row in rows}) == len(rows) == 123
    assert sum(count_published().values()) == 169
    ours = Counter(row.table for row in rows)
    assert [ours[table] for table in range(1, 12)] == [30, 11, 6, 27, 10, 11, 4, 4, 2, 2, 16]
    for row in rows:
        (published,) = [
            one
            for one in read_published()
            if (one["tested_on"], one["method"]) == (row.tested_on, row.published)
            and str(row.table) in one["tables"]
            and one["source"] == "C5"
            and one is row.figures
        ]
        setting = SETTINGS[row.setting]
        if setting.protocol == "split" and published["trained_on"].count("mapped") == 0 and row.table < 11:
            assert published["trained_on"] in ("-", ", ".join(sorted(setting.train)))
        if row.method.startswith("c5"):  # it can be made, and is bound to the row's m
            (method,) = make_methods(row.method, Rolls())
            assert isinstance(method, C5)
            assert method.config.networks[0].kind is RollKind.SEPARATE
            assert method.config.n_images == row.m
            assert method.rolls.distinct
            assert method.making is not None
            assert method.making.count == (0 if "+none" in row.method else 5000)


def test_the_recipe_of_the_paper_is_the_paper() -> None:
    config = paper_training()
    stages = [config.batch_sizes[epoch * len(config.batch_sizes) // 60] for epoch in range(60)]
    assert [stages.index(size) + 1 for size in (16, 32, 64)] == [1, 20, 50]
    assert (config.epochs, config.learning_rate, config.weight_decay) == (60, 5e-4, 5e-4)
    assert (config.smooth_filters, config.smooth_bias, config.n_images) == (0.15, 0.02, 9)
    making = plan_making(Recipe.PAPER)
    assert making is not None
    assert (making.method.value, making.count) == ("paper", 5000)
    assert plan_making(Recipe.BUNDLED) is None
    for m in range(1, 14):
        assert set_fields(make_config(Recipe.PAPER), [f"m={m}"]).n_images == m
    for n in (16, 32, 64, 128):
        assert set_fields(make_config(Recipe.PAPER), [f"n={n}"]).grid == Grid.published(n)
    assert split_settings("paper,batch_sizes=[16, 32],m=3") == ["paper", "batch_sizes=[16, 32]", "m=3"]
    with pytest.raises(ParameterError, match="vary_roll or distinct_rolls"):
        replace(config, vary_roll=True)


def test_what_is_trained_on_beside_the_photographs() -> None:
    taken = photographs()[:3]
    given_made = replace(taken[0], name="made", sources=frozenset({taken[1].name}))
    new = [replace(taken[0], name="new", sources=frozenset({taken[2].name}))]

    def names(text: str, samples: list[Sample]) -> list[str]:
        return [sample.name for sample in find_making(text, 5).add(samples, lambda: new)]

    own = [sample.name for sample in taken]
    assert names("paper", [*taken, given_made]) == [*own, "made", "new"]
    assert names("paper:alone", taken) == ["new"]
    assert names("none", [*taken, given_made]) == own
    usual = plan_making(Recipe.PAPER)
    assert usual is not None
    assert [sample.name for sample in usual.add([*taken, given_made], lambda: new)] == [*own, "made"]
    assert [sample.name for sample in usual.add(taken, lambda: new)] == [*own, "new"]
    strange = find_making("paper:without-xyz:alone", 7)
    assert not strange.via_xyz
    assert Making.from_json(strange.to_json()) == strange
    assert Making.from_json(find_making("sampling", 7).to_json()) == find_making("sampling", 7)
    with pytest.raises(ParameterError, match="may follow an augmentation"):
        find_making("paper:backwards", 5)


@given(seed=seeds, count=st.integers(1, 12), images=st.integers(2, 40))
def test_distinct_rolls_have_no_image_twice(seed: int, count: int, images: int) -> None:
    rng = np.random.default_rng(seed)
    cameras = rng.choice(["A", "B"], images)
    queries = rng.integers(0, images, 20)
    rolls = draw_rolls(cameras, queries, count, rng, distinct=True)
    for query, roll in zip(queries, rolls, strict=True):
        others = int(np.count_nonzero(cameras == cameras[query])) - 1
        assert (cameras[roll] == cameras[query]).all()
        assert len(set(roll.tolist())) == min(count, max(1, others))
        assert others == 0 or query not in roll


def render_three_datasets(folder: Path) -> list[Sample]:
    """Eleven photographs of one camera each, under the names of real datasets."""
    rng = np.random.default_rng(0)
    samples = []
    for dataset, camera in (("NUS", "SonyA57"), ("Gehler-Shi", "Canon5D"), ("Cube+", "Canon550D")):
        for index, photo in enumerate(render_roll(VirtualCamera.random(rng), 11, rng, (24, 36))):
            path = folder / f"{camera}-{index}.npy"
            np.save(path, photo.image.rgb.astype(np.float32))
            name = f"{dataset}/{camera}/{index:03d}"
            samples.append(Sample(ImageFile(path), photo.illuminant, camera, dataset, name))
    return samples


def test_rows_are_measured_one_by_one_and_kept(tmp_path: Path) -> None:
    samples = render_three_datasets(tmp_path)
    rows = select_rows([1, 6], ["gray-world", "shades-of-gray"])
    asked: list[str] = []

    def find(text: str, rolls: Rolls) -> list[Method]:
        asked.append(text)
        return [Classical(text)]

    said: list[str] = []
    lines = run_rows(rows, samples, tmp_path / "run", find, say=said.append)
    expected = [row.name for row in rows if row.tested_on in ("Cube+", "Gehler-Shi", "NUS")]
    assert [(line.row, line.images) for line in lines] == [(name, 11) for name in expected]
    assert sum("left out, its data are not given" in line for line in said) == len(rows) - len(expected) > 0
    assert load_rows(tmp_path / "run") == lines
    for line in lines:
        assert line.low < line.figures.mean < line.high
        assert line.networks == 0

    # A method that fails is not mistaken for data that are missing.
    class Broken(Classical):
        def estimate(self, task: Task) -> dict[str, Estimates]:
            raise DataError("no light in it")

    def fail(text: str, rolls: Rolls) -> list[Method]:
        return [Broken(text)]

    said.clear()
    run_rows(select_rows([1], ["Cube+: gray-world"]), samples, tmp_path / "failed", fail, say=said.append)
    assert said == ["gray-world: no light in it", "table 1, Cube+: gray-world: not run, for the reason above"]
    # Others are added, what is there stays: also what has fewer columns, as files of earlier versions.
    with (tmp_path / "run" / "rows.csv").open(newline="") as file:
        old = [{k: v for k, v in row.items() if k not in ("settings", "trained")} for row in csv.DictReader(file)]
    with (tmp_path / "run" / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(old[0]))
        writer.writeheader()
        writer.writerows(old)
    said.clear()
    more = run_rows(select_rows([1], ["Cube+: gray-world"]), samples, tmp_path / "run", find, jobs=2, say=said.append)
    assert "table 1, Cube+: gray-world: replaces a row with other settings (not known)" in said
    assert {line.row for line in more} == {line.row for line in lines}
    with pytest.raises(ParameterError, match="no table 12"):
        select_rows([12], [])
    with pytest.raises(ParameterError, match="has such a name"):
        select_rows([], ["BrightMean"])
    assert [row.name for row in select_rows([4], ["Cube+: C5, m = 1"])] == ["Cube+: C5, m = 1"]
    assert len(select_rows([4], ["Cube+: C5"])) == 7
    gather_rows([tmp_path / "run", tmp_path / "run"], tmp_path / "all")
    assert load_rows(tmp_path / "all") == load_rows(tmp_path / "run")
    with pytest.raises(DataError, match="no such file"):
        gather_rows([tmp_path], tmp_path / "all")
    (tmp_path / "run" / "words.md").write_text("# Words\n\n<!-- tables -->\n")
    page = make_checklist(tmp_path / "run", find)
    assert f"| Cube+: gray-world | 3.52 | {lines[0].figures.mean:.2f} |" in page
    assert page.count("### Table") == 11
    (tmp_path / "run" / "words.md").write_text("# Words\n")
    with pytest.raises(DataError, match="no place for the tables"):
        make_checklist(tmp_path / "run", find)


def usual(text: str, rolls: Rolls) -> list[Method]:
    """Methods with their usual settings, as the command that makes the page finds them."""
    return [Classical(text)] if "c5" not in text and "ffcc" not in text else make_methods(text, rolls)


def test_a_row_with_other_settings_is_marked(tmp_path: Path) -> None:
    (row,) = select_rows([2], ["Cube+: C5, m = 7, n = 16"])

    def measure(found: Method) -> Measured:
        zero = Statistics(*(0.0 for _ in Statistics._fields))
        first = (row.table, row.name, row.setting, row.method, 9, 1, 10, zero, zero, 0.0, 0.0, "CPU", "0.2.0")
        return Measured(*first, *_describe_settings(found.settings))

    def page(line: Measured) -> str:
        save_rows(tmp_path, [line])
        (tmp_path / "words.md").write_text("<!-- tables -->\n")
        return make_checklist(tmp_path, usual)

    (present,) = make_methods(row.method, Rolls((row.m,)), seeds=range(3))
    assert isinstance(present, C5)
    assert present.making is not None
    assert present.config.networks[0].he_normal
    line = measure(present)
    assert line.trained == "60 epochs, 5000 made images"
    assert "| 0.00 |" in page(line)
    half = measure(replace(present, config=replace(present.config, bfloat16=True)))
    assert half.trained == "60 epochs, bfloat16, 5000 made images"
    assert "| 0.00 |" in page(half)  # the precision is no other recipe
    others = [
        replace(present, config=replace(present.config, epochs=2)),
        replace(present, config=set_fields(present.config, ["batch_sizes=[16, 32]"])),
        replace(present, config=set_fields(present.config, ["he_normal=false"])),
        replace(present, making=replace(present.making, count=30)),
    ]
    assert [measure(other).trained for other in others] == [
        "2 epochs, 5000 made images",
        *["60 epochs, 5000 made images"] * 2,
        "60 epochs, 30 made images",
    ]
    for other in (*map(measure, others), line._replace(settings="", trained="")):
        assert "| 0.00† |" in page(other)
    assert _describe_settings(present.settings, given=30) == _describe_settings(others[-1].settings)  # made before


def test_methods_that_learn_nothing_need_no_training_side(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    samples = []
    for index, photo in enumerate(render_roll(VirtualCamera.random(rng), 11, rng, (24, 36))):
        np.save(tmp_path / f"{index}.npy", photo.image.rgb.astype(np.float32))
        path = ImageFile(tmp_path / f"{index}.npy")
        samples.append(Sample(path, photo.illuminant, "SonyA57", "NUS", f"NUS/SonyA57/{index:03d}"))
    rows = select_rows([1], ["NUS: gray-world"])
    said: list[str] = []
    (line,) = run_rows(rows, samples, tmp_path / "run", usual, say=said.append)
    assert run_rows(rows, samples, tmp_path / "run", usual, say=said.append) == [line]
    assert not any("replaces" in each for each in said)
    assert (line.row, line.images) == ("NUS: gray-world", 11)


def test_methods_that_learn_and_that_do_not_are_run_in_one_folder(tmp_path: Path) -> None:
    samples = render_three_datasets(tmp_path)
    rows = select_rows([1], ["Cube+: gray-world", "Cube+: FFCC"])
    for _ in range(2):
        lines = run_rows(rows, samples, tmp_path / "run", usual)
        assert [(line.row, line.images) for line in lines] == [("Cube+: gray-world", 11), ("Cube+: FFCC", 11)]
    # Nothing is trained for a row without images to test, though those it is trained on are given.
    said: list[str] = []
    run_rows(select_rows([1], ["Cube+ challenge: FFCC"]), samples, tmp_path / "none", usual, say=said.append)
    assert said == ["table 1, Cube+ challenge: FFCC: left out, its data are not given"]
    assert not (tmp_path / "none").exists()


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    np.save(tmp_path / "0.npy", np.full((8, 8, 3), 0.5, np.float32))
    (tmp_path / "manifest.csv").write_text("path,camera,r,g,b\n0.npy,A,1,1,1\n")
    wanted = ["--table", "1", "--row", "NUS: gray-world"]
    done = CliRunner().invoke(app, ["paper", "tables", str(tmp_path), "-o", str(tmp_path / "out"), *wanted])
    assert done.exit_code != 0
    assert not (tmp_path / "out" / "rows.csv").exists()
    assert "rows.csv" not in done.output


def test_what_cannot_be_drawn_or_gathered_is_one_line_and_no_file(tmp_path: Path) -> None:
    np.save(tmp_path / "0.npy", np.full((8, 8, 3), 0.5, np.float32))
    (tmp_path / "manifest.csv").write_text("path,camera,r,g,b\n0.npy,A,1,1,1\n")
    data, file, out = str(tmp_path), str(tmp_path / "manifest.csv"), str(tmp_path / "out.png")
    for name in ("garbage", "latin", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "garbage" / "rows.csv").write_text("garbage\n")
    (tmp_path / "latin" / "words.md").write_bytes(b"\xe9 <!-- tables -->")
    garbage, row = str(tmp_path / "garbage"), ["--table", "1", "--row", "NUS: gray-world"]
    for arguments, message in (
        (["histograms", data, "-o", out, "--only", "B"], "no dataset or camera is called 'B'; the data have A"),
        (["histograms", data, "-o", f"{file}/out.png"], "is a file; choose another place"),
        (["curves", str(tmp_path / "run"), "-o", out], "(No such file or directory); give the folder of a run"),
        (["tables", data, "-o", file, *row], "is a file; choose another place"),
        (["tables", data, "-o", garbage, *row], "no rows of the paper's tables (no column mean)"),
        (["tables", data, "-o", out, *row, "--matrices", "no.csv"], "No such file or directory; check the path"),
        (["gather", garbage, "-o", out], "no rows of the paper's tables (no column mean)"),
        (["page", str(tmp_path / "nowhere")], "no such folder"),
        (["page", str(tmp_path / "latin")], "cannot be read as text in UTF-8"),
    ):
        done = CliRunner().invoke(app, ["paper", *arguments])
        assert isinstance(done.exception, C5Error), (arguments, done.exception)
        assert message in str(done.exception)
        assert "Errno" not in str(done.exception)
        assert not (tmp_path / "out.png").exists()


def test_the_page_on_the_paper_is_what_the_command_makes() -> None:
    assert cut_signature((DOCS / "paper.md").read_bytes(), ".md").decode() == make_checklist(DOCS / "paper", usual)


@given(seed=seeds)
def test_an_interval_is_on_the_side_that_the_differences_are_on(seed: int) -> None:
    rng = np.random.default_rng(seed)
    errors = rng.gamma(2, 1, 200)
    worse = compare(errors + 0.3 + rng.normal(0, 0.1, 200), errors)
    assert 0 < worse.low < worse.mean < worse.high
    assert worse.clear
    back = compare(errors, errors + 0.3)
    assert back.mean == pytest.approx(-0.3)
    assert not compare(errors, errors).clear
    low, high = interval(errors)
    assert low < errors.mean() < high
    assert high - low == pytest.approx(4 * errors.std() / np.sqrt(200), rel=0.25)


def test_intervals_hold_as_often_as_they_say() -> None:
    """Of the means of 300 samples, about 95 % of the intervals hold the true one."""
    rng = np.random.default_rng(0)
    held = [low < 2 < high for low, high in (interval(rng.gamma(2, 1, 150)) for _ in range(300))]
    assert 0.9 < np.mean(held) < 0.985


def test_estimates_can_be_written_as_parquet(tmp_path: Path) -> None:
    record = ("NUS/A/1", "NUS", "A", "mine", "0" * 8, 9, "random", "NUS", None, 1, *np.linspace(0.1, 0.9, 9).tolist())
    assert len(record) == len(ESTIMATES)
    text = write_estimates(tmp_path / "all.csv", [record]).read_text()
    (row,) = csv.DictReader(text.splitlines())
    assert (row["image"], row["m"], row["seed"]) == ("NUS/A/1", "9", "")
    if importlib.util.find_spec("pyarrow") is None:
        return
    parquet = importlib.import_module("pyarrow.parquet")
    (found,) = parquet.read_table(write_estimates(tmp_path / "all.parquet", [record])).to_pylist()
    assert tuple(found.values()) == record
    # Both are read back, and one of several selections can be chosen.
    sample = Sample(ImageFile(tmp_path / "1.npy"), np.ones(3), "A", "NUS", "NUS/A/1")
    vivid = (*record[:6], "vivid", *record[7:])
    for name in ("all.csv", "all.parquet"):
        (tmp_path / name).unlink()
        write_estimates(tmp_path / name, [record, vivid])
        with pytest.raises(ParameterError, match="choose one method, m and selection"):
            read_estimates(tmp_path / name, [sample], "mine", 9)
        (one,) = read_estimates(tmp_path / name, [sample], "mine", 9, Selection.VIVID)
        assert one.error == pytest.approx(0.1)


@given(seed=seeds)
def test_the_geometry_of_the_text_moves_with_gains_and_is_read_back_where_it_was(seed: int) -> None:
    """A gain of whole bins moves the histogram by them; a filter of one bin finds a gray image's own color."""
    grid = Grid(32, geometry=Geometry.TEXT)
    rng = np.random.default_rng(seed)
    uv = rng.uniform(-0.9, 0.9, 2)
    flat = LinearImage(np.tile(uv_to_rgb(uv) * 0.5, (8, 8, 1)).astype(np.float32))
    counted = histogram(flat, grid)
    filters = np.zeros((2, 32, 32), np.float32)
    filters[0, 16, 16] = 1000
    found = locate(counted, filters, np.zeros((32, 32), np.float32))
    assert np.abs(found.uv - uv).max() <= 1.01 * grid.step  # two bins an axis, fully in each
    moved = histogram(LinearImage(flat.rgb * uv_to_rgb([grid.step, 0]).astype(np.float32)), grid)
    np.testing.assert_allclose(moved.by_brightness[:, 1:], counted.by_brightness[:, :-1], atol=1e-4)
    assert isinstance(moved, Histograms)


def test_curves_of_a_single_epoch_are_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    def keep(figure: Any, _: str) -> bytes:
        drawn.append(figure)
        return b"kept"

    monkeypatch.setattr(figures, "encode_figure", keep)
    (tmp_path / "one").mkdir()
    text = "epoch,loss,training_error,validation_mean,validation_median\n1,9,4.2,,\n"
    (tmp_path / "one" / "log.csv").write_text(text)
    draw_curves(tmp_path / "curves.png", [tmp_path / "one"])
    (tmp_path / "one" / "log.csv").write_text(text.replace("4.2,,", "4.2,5,4"))
    draw_curves(tmp_path / "both.png", [tmp_path / "one"])
    (training,) = drawn[0].axes  # nothing was held out
    assert [line.get_marker() for line in training.lines] == ["o"]
    assert len(drawn[1].axes) == 2


def test_figures_are_drawn(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    samples = []
    for camera in ("A", "B"):
        for index, photo in enumerate(render_roll(VirtualCamera.random(rng), 2, rng, (24, 36))):
            np.save(tmp_path / f"{camera}{index}.npy", photo.image.rgb.astype(np.float32))
            file = ImageFile(tmp_path / f"{camera}{index}.npy")
            samples.append(Sample(file, photo.illuminant, camera, "Rendered", f"Rendered/{camera}/{index}"))
    for name in ("smooth", "rough"):
        (tmp_path / name).mkdir()
        lines = ["epoch,loss,training_error,validation_mean,validation_median", "1,9,4.2,,", "2,8,3.1,3.9,3.0"]
        (tmp_path / name / "log.csv").write_text("\n".join(lines) + "\n")
    drawn = [
        draw_mean_histograms(tmp_path / "histograms.png", samples),
        draw_curves(tmp_path / "curves.png", [tmp_path / "smooth", tmp_path / "rough"]),
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000 for path in drawn)
    assert draw_curves(tmp_path / "curves.jpg", [tmp_path / "smooth"]).read_bytes().startswith(b"\xff\xd8")
    with pytest.raises(ReadError, match="folder of a run"):
        draw_curves(tmp_path / "no.png", [tmp_path])


def test_folds_of_intel_tau_are_read_where_there_are_lists(tmp_path: Path) -> None:
    """By as much of the path as a list gives, counted from 1 or from 0."""
    write_intel_tau(tmp_path)
    assert {sample.fold for sample in read_samples(tmp_path)} == {None}
    (tmp_path / "folds").mkdir()
    (tmp_path / "folds" / "fold_1.txt").write_text("Canon_5DSR/field_3_cameras/shot_017.tiff\nshot_002.tiff\n")
    (tmp_path / "folds" / "fold_2.txt").write_text("Mobile_SonyIMX135\\field_3_cameras\\shot_017.tiff\n")
    folds = {(sample.camera, sample.path.stem): sample.fold for sample in read_samples(tmp_path)}
    assert folds == {
        ("Canon_5DSR", "shot_017"): 0,
        ("Canon_5DSR", "shot_002"): 0,
        ("Mobile_SonyIMX135", "shot_017"): 1,
        ("Mobile_SonyIMX135", "shot_002"): 0,
    }


def test_how_gehler_shi_was_taken_is_read(tmp_path: Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    write_ffcc(tmp_path / "GehlerShi")
    exif = {"ISO": np.uint16(320), "F_Number": 3.5, "Exposure_Time": 0.0125, "Make": "Canon"}
    scipy_io.savemat(tmp_path / "GehlerShi" / "000001_exif.mat", {"exif": exif})
    scipy_io.savemat(tmp_path / "GehlerShi" / "000002_exif.mat", {"exif": {"Make": "Canon"}})
    first, second = [sample.capture for sample in read_samples(tmp_path)][:2]
    assert first == Capture(320, 3.5, 0.0125)
    assert second is None or second.gain is None


def test_rows_are_listed() -> None:
    done = CliRunner().invoke(app, ["paper", "list", "--table", "10"])
    assert done.exit_code == 0
    assert "ffcc+paper:without-xyz:alone" in done.stdout
