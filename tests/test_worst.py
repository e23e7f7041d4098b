"""The page of the worst images: the right ones, in order, with what is true of them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from laws import textured
from PIL import Image
from typer.testing import CliRunner

from c5.cli.app import app
from c5.color import Float32s, angular_error, as_illuminant, uv_to_rgb
from c5.datasets import read_samples
from c5.errors import DataError, ParameterError, ReadError
from c5.evaluation import estimates
from c5.evaluation.estimates import ESTIMATES, Outcome, read_estimates
from c5.evaluation.worst import Looks, find_facts, measure_looks
from c5.image import LinearImage

LIGHT = as_illuminant([0.5, 1.0, 0.7])
COLUMNS = "image,dataset,camera,method,m,selection,fold,draw,error_deg,uncertainty_deg,r,g,b,true_r,true_g,true_b"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two datasets of eight photographs with a manifest."""
    lines = ["path,r,g,b,camera,dataset"]
    for index in range(16):
        np.save(tmp_path / f"{index:02d}.npy", textured(index))
        lines.append(f"{index:02d}.npy,0.5,1,0.7,A,{'One' if index < 8 else 'Two'}")
    (tmp_path / "manifest.csv").write_text("\n".join(lines))
    return tmp_path


def write_estimates(data: Path, path: Path, methods: tuple[str, ...] = ("c5",)) -> Path:
    """Image 0 errs least and 15 most; two draws on either side of that."""
    lines = [COLUMNS]
    for sample in read_samples([data]):
        index = int(sample.path.stem)
        for method in methods:
            for draw in (1, 2):
                light = uv_to_rgb([np.log(2) + 0.01 * index + 0.001 * draw, -np.log(0.7)])
                error = angular_error(light, sample.illuminant)
                numbers = ",".join(map(str, (error, 1 + index % 3, *light, *sample.illuminant)))
                lines.append(f"{sample.name},{sample.dataset},A,{method},9,random,f,{draw},{numbers}")
    path.write_text("\n".join(lines))
    return path


def test_the_worst_are_shown_and_counted(data: Path, tmp_path: Path) -> None:
    estimates = write_estimates(data, tmp_path / "estimates.csv")
    out = tmp_path / "page"
    command = ["worst", str(data), "--estimates", str(estimates), "-o", str(out), "--count", "3"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    page = (out / "worst.md").read_text()
    assert "| | of the 3 worst | of all 8 |" in page
    assert "| estimated colder than it is | 100% | 100% |" in page
    assert page.count("-worst.jpg)") == 2
    assert "\n" + page.rpartition("\n<!--")[0].strip() in "\n" + done.output
    assert Image.open(out / "two-worst.jpg").width > 1500
    assert CliRunner().invoke(app, command).exit_code == 1  # it is there
    assert CliRunner().invoke(app, [*command, "--overwrite"]).exit_code == 0
    (out / "worst.md").unlink()
    refused = CliRunner().invoke(app, command)
    assert "-worst.jpg: exists already" in str(refused.exception)
    assert not (out / "worst.md").exists()


def test_parquet_says_the_same_as_csv(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    text = write_estimates(data, tmp_path / "e.csv")
    rows = list(csv.DictReader(text.open()))
    kinds = {"m": int, "draw": int} | dict.fromkeys(("error_deg", "uncertainty_deg", "r", "g", "b"), float)
    records = [tuple(kinds.get(name, str)(row[name]) if row.get(name) else None for name in ESTIMATES) for row in rows]
    estimates.write_estimates(tmp_path / "e.parquet", records)
    samples = read_samples([data])
    for one, other in zip(read_estimates(text, samples), read_estimates(tmp_path / "e.parquet", samples), strict=True):
        assert (one.sample.name, one.error, one.uncertainty) == (other.sample.name, other.error, other.uncertainty)
        np.testing.assert_array_equal(one.estimate, other.estimate)
    (tmp_path / "e.parquet").write_bytes(b"no table")
    with pytest.raises(ReadError, match="not a file of estimates"):
        read_estimates(tmp_path / "e.parquet", samples)


def test_draws_are_averaged(data: Path, tmp_path: Path) -> None:
    tested = read_estimates(write_estimates(data, tmp_path / "e.csv"), read_samples([data]))
    assert len(tested) == 16
    errors = {int(one.sample.path.stem): one.error for one in tested}
    assert [errors[index] for index in range(16)] == sorted(errors.values())
    for one in tested:
        assert angular_error(one.estimate, one.sample.illuminant) == pytest.approx(one.error, rel=0.01)


def test_what_cannot_be_shown_is_an_error_of_one_line(data: Path, tmp_path: Path) -> None:
    samples = read_samples([data])
    both = write_estimates(data, tmp_path / "e.csv", ("c5", "other"))
    with pytest.raises(ParameterError, match="c5, m = 9, random; other, m = 9, random"):
        read_estimates(both, samples)
    assert len(read_estimates(both, samples, "other", 9)) == 16
    with pytest.raises(ParameterError, match="none of those"):
        read_estimates(both, samples, "third")
    with pytest.raises(DataError, match="not among the images"):
        read_estimates(both, samples[1:], "c5")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    for bad, message in ((tmp_path / "bad.csv", "not a file of estimates"), (tmp_path / "none.csv", "cannot be read")):
        with pytest.raises(ReadError, match=message):
            read_estimates(bad, samples)


def paint(uv: list[list[float]]) -> Float32s:
    """A column of each color, given relative to the light."""
    colors = uv_to_rgb(np.array(uv) + np.array([np.log(2), -np.log(0.7)]))
    return np.repeat(colors[None] * 0.5, 40, axis=0).astype(np.float32)


def test_looks_are_those_of_the_scene_and_not_of_its_light() -> None:
    gray = measure_looks(LinearImage(paint([[0, 0]] * 40)), LIGHT, LIGHT)
    assert gray == pytest.approx((0, 0, 1, 1), abs=1e-3)
    red = measure_looks(LinearImage(paint([[-0.5, 0]] * 40)), LIGHT, uv_to_rgb([np.log(2) - 0.5, -np.log(0.7)]))
    assert red == pytest.approx((0, 1, 0, 1), abs=1e-3)
    both = measure_looks(LinearImage(paint([[-0.5, 0], [0.5, 0]] * 20)), LIGHT, LIGHT)
    assert both.one_hue < 0.01
    lost = np.array(paint([[0, 0]] * 40))
    lost[:10] = 0
    assert measure_looks(LinearImage(lost), LIGHT, LIGHT).absent == pytest.approx(0.25)


def test_facts_are_of_each_image(data: Path) -> None:
    samples = [sample for sample in read_samples([data]) if sample.dataset == "One"]
    warm, green = uv_to_rgb([np.log(2) - 0.1, -np.log(0.7) + 0.1]), uv_to_rgb([np.log(2) + 0.1, -np.log(0.7) + 0.1])
    tested = [Outcome(samples[0], warm, 9.0, 1.0), *(Outcome(one, green, 0.1, 0.5) for one in samples[1:])]
    facts = find_facts(tested, [Looks(0.5, 0, 1, 1), *([Looks(0, 1, 0, 0.5)] * 7)])
    first = {fact for fact, true in facts.items() if true[0]}
    rest = {fact for fact, true in facts.items() if true[1:].all()}
    assert first == {
        "light: day",
        "more than 10% of the pixels clipped, black or masked",
        "among the most uncertain tenth",
        "beyond the 90 % bound",
    }
    assert rest == {
        "light: day",
        "further off in green or magenta than in warmth",
        "colors of one hue",
        "less than 5% of the pixels gray",
        "more pixels gray under the estimate than under the truth",
    }
