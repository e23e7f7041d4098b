"""Our own bugs are no damaged files, and nothing leaves the machine or is left on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from laws import textured
from test_layers import PACKAGE
from test_pack import make_samples

from c5.datasets import read_samples, write_pack
from c5.datasets.features import VividnessFeature
from c5.datasets.prepared import load_feature, write_prepared
from c5.evaluation.results import Results, Row
from c5.export.layers import fold
from c5.graphs import Graph
from c5.model import Profile, load_model
from c5.model_file import read_model
from c5.photos.catalog import Catalog
from c5.photos.catalog.entries import stored_grid
from c5.studio.decisions import decide
from c5.training.config import RealTraining
from c5.training.run import TrainingPlan

NO_SOCKETS = """
import os, sys

def watch(event, arguments):
    if event.startswith("socket."):
        os.write(2, f"{event}: a socket was opened".encode())
        os._exit(99)

sys.addaudithook(watch)
"""


def write_photograph(path: Path) -> Path:
    path.write_bytes(imagecodecs.png_encode(np.rint(textured(1, 40, 60) * 60000).astype(np.uint16)))
    return path


def test_an_estimate_opens_no_socket_and_leaves_no_file(tmp_path: Path) -> None:
    home, photograph = tmp_path / "home", write_photograph(tmp_path / "photograph.png")
    home.mkdir()
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text(NO_SOCKETS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    paths = [str(tmp_path / "hooks"), os.environ.get("PYTHONPATH", "")]
    environment = kept | {"HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    library = "import sys, c5; print(c5.load_model().estimate(sys.argv[1]).gains)"
    for program in (["-m", "c5.cli", "estimate"], ["-c", library]):
        done = subprocess.run(
            [sys.executable, *program, str(photograph)], env=environment, capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    assert [str(path) for path in home.rglob("*")] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "hooks", "photograph.png"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each kind, all of them intact."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "photographs").mkdir()
    write_photograph(folder / "photographs" / "a.png")
    with Catalog.open(folder / "catalog.db") as catalog:
        catalog.add([folder / "photographs"], camera="A camera")
    write_pack(make_samples(1), folder / "a.c5data")
    write_prepared(make_samples(1), folder / "a.c5set", [VividnessFeature()])
    load_model().calibrate([]).save(folder / "a.c5profile")
    Results("protocol", "", "", {}, [], [Row("c5", "", {}, [])]).save(folder / "results.json")
    TrainingPlan(RealTraining(), [], []).save(folder)
    return folder


def find(folder: Path) -> object:
    with Catalog.open(folder / "catalog.db") as catalog:
        return catalog.find(folder / "photographs" / "a.png", stored_grid())


def find_roll(folder: Path) -> object:
    with Catalog.open(folder / "catalog.db") as catalog:
        catalog._connection.execute("DELETE FROM profile")
        return catalog.roll(load_model(), "A camera")


RENAME = {"do": "rename", "group": "1", "name": "church"}
BUNDLED = PACKAGE / "models" / "bundled.c5"
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a catalog": ("c5.photos.catalog.entries.Histograms.unpack", find),
    "a catalog's roll": ("c5.photos.catalog.entries.Histograms.unpack", find_roll),
    "an index": ("c5.datasets.container._as_sample", lambda folder: read_samples(folder / "a.c5data")),
    "a pack": ("c5.datasets.pack._decode", lambda folder: read_samples(folder / "a.c5data")[0].read()),
    "a set": (
        "c5.datasets.features.VividnessFeature.decode",
        lambda folder: load_feature(read_samples(folder / "a.c5set")[0], VividnessFeature()),
    ),
    "a profile": ("c5.model.parse_levels", lambda folder: Profile.load(folder / "a.c5profile")),
    "a model": ("c5.model_file.Grid.from_json", lambda folder: read_model(BUNDLED)),
    "a graph": ("c5.graphs._check_node", lambda folder: Graph(read_model(BUNDLED).graphs["query"], "it", 1)),
    "layers": ("c5.export.layers._Reader._one", lambda folder: fold(load_model())),
    "results": ("c5.evaluation.results._from_json", lambda folder: Results.load(folder / "results.json")),
    "a plan": ("c5.training.config._changed", TrainingPlan.load),
    "decisions": ("c5.studio.decisions.check_name", lambda folder: decide([RENAME])),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", [AttributeError, IndexError, KeyError, TypeError, ValueError])
def test_bugs_of_ours_are_raised_as_they_are(
    files: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: type[Exception]
) -> None:
    function, read = READERS[name]
    read(files)

    def broken(*arguments: object, **more: object) -> None:
        raise kind("a bug")

    monkeypatch.setattr(function, broken)
    with pytest.raises(kind, match="a bug") as raised:
        read(files)
    assert type(raised.value) is kind


def test_a_bug_of_ours_is_raised_and_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "photographs").mkdir()
    write_photograph(tmp_path / "photographs" / "a.png")

    def broken(*arguments: object) -> None:
        raise KeyError("a bug")

    with Catalog.open(tmp_path / "catalog.db") as catalog:
        monkeypatch.setattr("c5.photos.photo.histogram", broken)
        with pytest.raises(KeyError, match="a bug"):
            catalog.add([tmp_path / "photographs"])
        assert catalog.failures() == []
        monkeypatch.undo()
        assert catalog.add([tmp_path / "photographs"]).new == 1
