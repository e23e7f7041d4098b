"""From a prepared set, training and evaluation need neither decoders nor the images."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import command
import pytest
from test_evaluation import write_manifest

from c5 import load_model
from c5.evaluation.results import Results

FORBIDDEN = ("rawpy", "tifffile", "imagecodecs", "PIL", "platformdirs", "matplotlib", "scipy", "tensorboard")

BLOCK = f"""
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {FORBIDDEN}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""

CONFIG = """
recipe = "bundled"
epochs = 2
steps_per_epoch = 2
cameras_per_step = 2
queries_per_camera = 2

[network]
widths = [4, 8]
n_images = 3
"""


def c5(*arguments: object, without: Path | None = None) -> str:
    """Run the command; `without` is a folder whose modules hide the decoders."""
    paths = [*([] if without is None else [str(without)]), os.environ.get("PYTHONPATH", "")]
    done = command.c5(*arguments, environment={"PYTHONPATH": os.pathsep.join(filter(None, paths))})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared set, a configuration, and no decoders."""
    folder = tmp_path_factory.mktemp("prepared")
    write_manifest(folder / "data")
    (folder / "small.toml").write_text(CONFIG)
    (folder / "without").mkdir()
    (folder / "without" / "sitecustomize.py").write_text(BLOCK)
    c5("data", "prepare", folder / "data", "-o", folder / "set.c5set", "--for", "bundled", "--for", "ffcc")
    return folder


def test_the_decoders_are_really_hidden(folder: Path) -> None:
    code = (
        "import importlib\nfor name in %r:\n try: importlib.import_module(name); print(name)\n except ImportError: pass"
    )
    done = subprocess.run(
        [sys.executable, "-c", code % (FORBIDDEN,)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(folder / "without")},
    )
    assert done.stdout == ""


def test_training_from_a_set(folder: Path) -> None:
    arguments = ("train", folder / "set.c5set", "--config", folder / "small.toml", "--hold-out", "Beta")
    c5(*arguments, "-o", folder / "run", without=folder / "without")
    file = load_model(folder / "run" / "model.c5").file
    assert file.training["cameras"] == ["Alpha", "Alphabet"]
    assert file.errors["held out: Beta"]["mean"] > 0


def test_zones_alone_are_validated_on_and_beside_photographs_they_are_not(folder: Path) -> None:
    c5("data", "prepare", folder / "data", "-o", folder / "zones.c5set", "--zones", "8x8", "--for", "bundled")
    options = ("--config", folder / "small.toml", "--hold-out", "Beta")
    for sets in (["zones"], ["set", "zones"]):
        run = folder / "-".join(["run", *sets])
        said = command.c5("train", *(folder / f"{name}.c5set" for name in sets), "-o", run, *options).stderr
        file = load_model(run / "model.c5").file
        assert file.training["cameras"] == ["Alpha", "Alphabet"]
        assert file.errors["held out: Beta"]["mean"] > 0
        assert ("left out" in said) == (len(sets) == 2)


def test_evaluation_from_a_set_is_that_of_the_images(folder: Path) -> None:
    arguments = ["--protocol", "cross-sensor", "--m", "3", "--repeats", "2"]
    for method in ("gray-world", "pca", "ffcc", "bundled", f"c5:{folder / 'small.toml'}"):
        arguments += ["--method", method]
    for name, data, without in (("set", folder / "set.c5set", folder / "without"), ("images", folder / "data", None)):
        c5("evaluate", data, "-o", folder / name, *arguments, without=without)
    first, second = (Results.load(folder / name / "results.json") for name in ("set", "images"))
    assert first.data == second.data
    assert [row.statistics for row in first.rows] == [row.statistics for row in second.rows]
    assert [row.method for row in first.rows] == ["gray-world", "pca", "ffcc", "bundled", "c5:small"]
