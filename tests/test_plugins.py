"""Estimators, dataset layouts and output formats of other packages, found by entry point and used by the command."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
from command import c5
from laws import textured

from c5 import LinearImage, ParameterError, PluginError, plugins
from c5.choices import Selection
from c5.classical import METHODS
from c5.color import angular_error, as_illuminant
from c5.datasets import ImageFile, Sample, examine, read_samples
from c5.datasets.prepared import prepare
from c5.estimators import Estimator, find_estimator, list_estimators
from c5.evaluation.evaluating import evaluate
from c5.evaluation.methods import Rolls, Task
from c5.evaluation.plugin import PluginMethod, find_methods
from c5.evaluation.protocols import PROTOCOLS, Fold

EXAMPLE = Path(__file__).parents[1] / "examples" / "c5-example"


def install(target: Path, name: str, entries: dict[str, dict[str, str]], module: str | None = None) -> None:
    """What pip would leave of a pure Python package: its module and its metadata."""
    info = target / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in of.items()) for group, of in entries.items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups))
    if module is not None:
        (target / f"{name.replace('-', '_')}.py").write_text(module)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to install packages into."""
    target = tmp_path / "packages"
    target.mkdir()
    monkeypatch.syspath_prepend(target)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")]))
    return target


@pytest.fixture
def example(packages: Path) -> Path:
    """The example package, installed."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    install(packages, project["name"], project["entry-points"])
    shutil.copy(EXAMPLE / "c5_example.py", packages)
    return packages


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Photographs of three cameras in the layout of the example."""
    rng = np.random.default_rng(1)
    for camera in ("Alpha", "Beta", "Gamma"):
        folder = tmp_path / "Studio" / camera
        folder.mkdir(parents=True)
        for index in range(4):
            light = as_illuminant(rng.uniform(0.4, 1, 3))
            pixels = np.rint(textured(index, 40, 60) * light * 65535).astype(np.uint16)
            (folder / f"{index}.png").write_bytes(imagecodecs.png_encode(pixels))
            (folder / f"{index}.light").write_text(" ".join(map(str, light)))
    return tmp_path / "Studio"


# ---- the example package, by the command


def test_the_example_is_thirty_lines_of_code() -> None:
    lines = [line for line in (EXAMPLE / "c5_example.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 30


def test_the_example_estimates(example: Path, data: Path) -> None:
    listed = [line for line in c5("methods").stdout.splitlines() if line.startswith("bright-mean")]
    assert listed
    assert "The mean color of the brightest tenth of the pixels. (c5-example 1.0)" in listed[0]
    by_name = c5("estimate", data / "Alpha" / "0.png", "--method", "bright-mean", "--roll", data / "Alpha", "--json")
    assert by_name.returncode == 0, by_name.stderr
    by_path = c5("estimate", data / "Alpha" / "0.png", "--method", "c5_example:bright_mean", "--json")
    assert json.loads(by_name.stdout)["illuminant"] == json.loads(by_path.stdout)["illuminant"]


def test_the_example_is_evaluated_on_its_own_layout(example: Path, data: Path, tmp_path: Path) -> None:
    arguments = ["evaluate", data, "-o", tmp_path / "out", "--protocol", "cross-sensor", "--repeats", 2]
    done = c5(*arguments, "--method", "bright-mean", "--method", "gray-world")
    assert done.returncode == 0, done.stderr
    assert "| bright-mean, m = 9 |" in done.stdout
    assert c5(*arguments, "--method", "bright-mean").stderr.count("(kept)") == 3
    # Changed code is run again.
    with (example / "c5_example.py").open("a") as module:
        module.write("\n")
    assert c5(*arguments, "--method", "bright-mean").stderr.count("(kept)") == 0


def test_the_layout_of_the_example_is_recognized(example: Path, data: Path) -> None:
    done = c5("data", "check", data)
    assert done.returncode == 0, done.stderr
    assert "12 images in the layout light-files" in done.stdout
    assert len(read_samples(data)) == 12
    (data / "Beta" / "2.light").write_text("1 2")
    bad = c5("data", "check", data, "--layout", "light-files")
    assert bad.returncode == 1
    assert "2.light: holds 2 numbers instead of 3" in bad.stderr


def test_the_output_of_the_example_is_written(example: Path, data: Path, tmp_path: Path) -> None:
    done = c5("balance", data / "Alpha", "--gains", "-o", tmp_path / "out", "--catalog", tmp_path / "none.db")
    assert "--gains" in c5("balance", "--help").stdout
    assert "no catalog" in done.stderr
    done = c5("balance", data / "Alpha", "--gains", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert [len(path.read_text().split()) for path in (tmp_path / "out").glob("*.gains.txt")] == [3] * 4


def test_an_output_cannot_take_the_name_of_an_option(packages: Path, data: Path) -> None:
    entries = {plugins.OUTPUTS: dict.fromkeys(("json", "smooth", "out", "warmer"), "c5_none:OUTPUT")}
    install(packages, "c5-names", entries)
    done = c5("balance", data / "Alpha", "--json", "--smooth", "--warmer", 10)
    assert done.returncode == 0, done.stderr
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 4
    assert "json of the package c5-names 1.0 is not used: the name is taken" in done.stderr


def test_a_bundled_model_is_evaluated_by_its_name(example: Path, data: Path, tmp_path: Path) -> None:
    arguments = ["evaluate", data, "-o", tmp_path / "out", "--protocol", "cross-sensor", "--repeats", 1]
    done = c5(*arguments, "--method", "bundled", "--m", 3)
    assert done.returncode == 0, done.stderr
    assert "| bundled, m = 3 |" in done.stdout


def test_a_model_that_knows_tested_cameras_is_left_out_and_names_them_all(
    example: Path, data: Path, tmp_path: Path
) -> None:
    (data / "Alpha").rename(data / "NikonD5200")
    (data / "Beta").rename(data / "SonyA57")
    arguments = ["evaluate", data, "-o", tmp_path / "out", "--protocol", "cross-sensor", "--method", "bundled"]
    done = c5(*arguments, "--method", "gray-world")
    assert done.returncode == 1
    assert "bundled is left out: it was trained on NikonD5200, SonyA57, so" in done.stderr
    assert "| gray-world |" in done.stdout
    assert "| default" not in done.stdout
    alone = c5(*arguments)
    assert alone.returncode == 1
    assert len(alone.stderr.splitlines()) == 1


# ---- finding


def test_nothing_is_imported_before_it_is_used(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "c5_example", raising=False)
    assert "bright-mean" in plugins.find(plugins.ESTIMATORS)
    assert "c5_example" not in sys.modules
    assert find_estimator("bright-mean").origin == "c5-example 1.0"
    assert "c5_example" in sys.modules
    sys.modules.pop("c5_example")


def test_a_broken_plugin_is_one_line_and_no_crash(packages: Path, data: Path) -> None:
    entries = {
        plugins.ESTIMATORS: {"broken": "c5_broken:Nothing", "number": "c5_odd:NUMBER"},
        plugins.DATASETS: {"broken": "c5_broken:Nothing", "rude": "c5_odd:Rude"},
    }
    install(packages, "c5-broken", entries, "import no_such_module\n")
    rude = (
        "class Rude:\n    DESCRIPTION = ''\n    read = None\n    def recognizes(self, folder):\n        return 1 / 0\n"
    )
    (packages / "c5_odd.py").write_text(f"NUMBER = 3\n{rude}")
    done = c5("methods")
    assert done.returncode == 0
    assert "gray-world" in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("c5: warning: ")
        assert "c5-broken 1.0" in line
    assert "No module named 'no_such_module'" in done.stderr
    checked = c5("data", "check", data)
    assert checked.returncode == 1
    assert len(checked.stderr.splitlines()) == 3
    assert (
        "rude of the package c5-broken 1.0 failed: ZeroDivisionError: division by zero (c5_odd.py, line"
        in checked.stderr
    )
    # Asked for by name, it is an error.
    asked = c5("estimate", data / "Alpha" / "0.png", "--method", "broken")
    assert asked.returncode == 1
    assert asked.stderr.startswith("c5: broken of the package c5-broken 1.0 failed: ModuleNotFoundError")
    assert len(asked.stderr.splitlines()) == 1


def test_a_name_that_is_taken_is_refused(packages: Path) -> None:
    for name in ("c5-first", "c5-second"):
        entries = {
            plugins.ESTIMATORS: {"gray-world": f"{name.replace('-', '_')}:estimate", "mine": "c5_first:estimate"}
        }
        install(packages, name, entries, "def estimate(image, roll):\n    'Mine.'\n    return 1, 2, 3\n")
    with pytest.warns(plugins.PluginWarning) as caught:
        found = {estimator.name: estimator for estimator in list_estimators()}
    refused = sorted(str(warning.message).partition(" of the package")[0] for warning in caught)
    assert refused == ["gray-world", "gray-world", "mine"]
    assert all(" 1.0 is not used: the name is taken" in str(warning.message) for warning in caught)
    assert found["gray-world"].origin == "classical"
    assert found["mine"].description == "Mine."
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is looked for where a name is built in
        assert find_estimator("gray-world").origin == "classical"


def test_names_that_nobody_has(data: Path) -> None:
    with pytest.raises(ParameterError, match=r"no estimator is called 'magic'; there are gray-world, .*module:Class"):
        find_estimator("magic")
    with pytest.raises(ParameterError, match="no layout is called 'magic'; there are pack, "):
        examine(data, "magic")


@pytest.mark.parametrize("reference", ["no_such:Thing", "json:no_such", ":Thing", "json:", "json:__name__"])
def test_a_reference_that_leads_nowhere_is_one_line(reference: str) -> None:
    with pytest.raises(PluginError, match=r"module:name|no_such|__name__"):
        find_estimator(reference)


def test_a_module_of_the_current_folder_is_found(tmp_path: Path, data: Path) -> None:
    (tmp_path / "my_own.py").write_text("def half(image, roll):\n    return 2, 1, len(roll) + 1\n")
    before = list(sys.path)
    done = c5(
        "estimate", data / "Beta" / "0.png", "--method", "my_own:half", "--roll", data / "Beta", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout)["gains"], [0.5, 1, 0.2], atol=1e-6)
    assert sys.path == before


# ---- estimators


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ([1, 2, np.nan], r"returned \[1.0, 2.0, nan\]"),
        ([1, 0, 1], r"returned \[1.0, 0.0, 1.0\]"),
        ([1, 2], r"returned an array of shape \(2,\)"),
        (np.ones((3, 1)), r"returned an array of shape \(3, 1\)"),
        ("red", "failed: ValueError"),
        (None, "returned an array of shape"),
    ],
)
def test_results_are_checked(result: Any, answer: str) -> None:
    estimator = Estimator("mine", "my package", lambda image, roll: result)
    with pytest.raises(PluginError, match=rf"a\.png: the estimator mine {answer}"):
        estimator(LinearImage(textured(0), source="a.png"))


def test_results_may_have_any_scale() -> None:
    estimator = Estimator("mine", "my package", lambda image, roll: (200, 400, 400))
    np.testing.assert_allclose(estimator(LinearImage(textured(0))).illuminant, [1 / 3, 2 / 3, 2 / 3])


def test_what_an_estimator_raises_names_it_and_the_place() -> None:
    def estimate(image: LinearImage, roll: Any) -> Any:
        raise KeyError("lamp")

    with pytest.raises(PluginError, match=r"the estimator mine failed: KeyError: 'lamp' \(test_plugins.py, line \d+\)"):
        Estimator("mine", "my package", estimate)(LinearImage(textured(0)))


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("def estimate(\n", r"SyntaxError: '\(' was never closed \(my_module.py, line 1\)"),
        ("\nimport no_such_module\n", r"ModuleNotFoundError: .* \(my_module.py, line 2\)"),
        ("import numpy\n\nestimate = numpy.ones(2) @ numpy.ones(3)\n", r"ValueError: .* \(my_module.py, line 3\)"),
        ("", r"AttributeError: module 'my_module' has no attribute 'estimate'"),
    ],
)
def test_what_goes_wrong_in_a_module_names_its_line_and_none_of_ours(packages: Path, code: str, answer: str) -> None:
    (packages / "my_module.py").write_text(code)
    sys.modules.pop("my_module", None)
    with pytest.raises(PluginError, match=rf"^my_module:estimate failed: {answer}$"):
        find_estimator("my_module:estimate")


def test_a_bug_of_our_own_is_not_blamed_on_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    def estimate(image: LinearImage) -> Any:
        raise KeyError("ours")

    monkeypatch.setitem(METHODS, "gray-world", estimate)
    with pytest.raises(KeyError):
        find_estimator("gray-world")(LinearImage(textured(0)))


# ---- evaluation


@pytest.mark.parametrize("selection", [Selection.RANDOM, Selection.VIVID, Selection.OTHER_CAMERA])
def test_an_evaluation_gives_rolls_of_other_images(data: Path, tmp_path: Path, selection: Selection) -> None:
    samples = [
        Sample(
            ImageFile(path), np.ones(3) / 3**0.5, path.parent.name, "Studio", f"Studio/{path.parent.name}/{path.stem}"
        )
        for path in sorted(data.glob("*/*.png"))
    ]
    seen: list[tuple[str | None, str | None, list[str | None], list[str | None]]] = []

    def look(image: LinearImage, roll: Any) -> tuple[int, int, int]:
        seen.append((image.camera, image.source, [one.camera for one in roll], [one.source for one in roll]))
        return 1, 1, 1

    test = [sample for sample in samples if sample.camera == "Beta"]
    fold = Fold("Beta", frozenset(), frozenset(sample.name for sample in test), frozenset({"Beta"}))
    method = PluginMethod(Estimator("look", "mine", look), Rolls((1, 4), (selection,), repeats=3))
    samples = prepare(samples, method.features, folder=tmp_path)
    task = Task(fold, [], test, samples, tmp_path, "", lambda items, _: items)
    found = method.estimate(task)
    assert [each.illuminants.shape for each in found.values()] == [(1, 4, 3), (3, 4, 3)]
    assert len(seen) == 4 + 12
    for camera, source, cameras, sources in seen[4:]:
        assert camera == "Beta"
        assert len(cameras) == 3
        assert source not in sources
        assert (set(cameras) == {"Beta"}) == (selection is not Selection.OTHER_CAMERA)
    assert all(cameras == [] for _, _, cameras, _ in seen[:4])


def test_an_estimator_that_learns_is_taught_each_fold_and_nothing_else(packages: Path, tmp_path: Path) -> None:
    code = """
class Mine:
    def learn(self, photographs):
        assert not hasattr(self, "cameras"), "has learned before"
        self.cameras = {image.camera for image, _ in photographs}
        self.lights = [light for _, light in photographs[:2]]

    def __call__(self, image, roll):
        assert image.camera not in self.cameras
        return sum(self.lights)
"""
    (packages / "mine_learns.py").write_text(code)
    samples = []
    for camera, light in (("A", (1, 2, 3)), ("B", (3, 2, 1))):
        for index in range(3):
            illuminant = np.asarray(light) / np.linalg.norm(light)
            np.save(tmp_path / f"{camera}{index}.npy", textured(index).astype(np.float32))
            file = ImageFile(tmp_path / f"{camera}{index}.npy")
            samples.append(Sample(file, illuminant, camera, "D", f"D/{camera}/{index}"))
    (method,) = find_methods("mine_learns:Mine", Rolls((1,)))
    assert method.learns
    results = evaluate(PROTOCOLS["cross-sensor"], samples, [method], tmp_path / "run", jobs=2)
    assert results is not None
    expected = angular_error(np.array([1.0, 2, 3]), np.array([3.0, 2, 1]))
    assert results.rows[0].statistics["D"].mean.mean == pytest.approx(float(expected), abs=1e-3)
    # What goes wrong in it is named, with the fold.
    (packages / "mine_fails.py").write_text(code.replace("self.lights =", "self.lights = 1 / 0 or"))
    (broken,) = find_methods("mine_fails:Mine", Rolls((1,)))
    with pytest.raises(PluginError, match=r"^D/A: learn of the estimator mine_fails:Mine failed: ZeroDivisionError"):
        evaluate(PROTOCOLS["cross-sensor"], samples, [broken], tmp_path / "broken")


def test_what_augmentation_is_not_for_is_said(example: Path, data: Path, tmp_path: Path) -> None:
    code = "class Mine:\n    learn = print\n\n    def __call__(self, image, roll):\n        return 1, 1, 1\n"
    (example / "mine_prints.py").write_text(code)
    where = (data, "-o", tmp_path / "run", "--protocol", "cross-sensor", "--method", "gray-world", "--m", 1)
    done = c5("evaluate", *where, "--method", "mine_prints:Mine", "--augmentation", "sampling")
    assert done.returncode == 0, done.stderr
    assert "mine_prints:Mine learns from made images that are in the data" in " ".join(done.stderr.split())
    assert "gray-world learns" not in done.stderr
