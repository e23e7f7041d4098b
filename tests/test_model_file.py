from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from c5 import Grid, Histograms, ModelFileError, ParameterError, load_model
from c5.model import Model
from c5.model_file import VERSION, ModelFile, read_model, write_model

A_MODEL = ModelFile(
    name="a model",
    kind="profile",
    grid=Grid.published(32),
    n_images=9,
    graphs={"roll": b"roll graph", "query": b"query graph" * 100},
    training={"cameras": ["a", "b"]},
    errors={"protocol": {"mean": 2.0}},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_model(tmp_path / "m.c5", A_MODEL)


def rewrite(path: Path, **changes: object) -> None:
    """The same file with a changed description."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["model.json"] = json.dumps(json.loads(parts["model.json"]) | changes).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def test_round_trip(path: Path, tmp_path: Path) -> None:
    again = read_model(path)
    for field in dataclasses.fields(ModelFile):
        assert getattr(again, field.name) == getattr(A_MODEL, field.name)
    assert again.identity == A_MODEL.identity
    write_model(tmp_path / "n.c5", again)
    assert (tmp_path / "n.c5").read_bytes() == path.read_bytes()


def test_identity_tells_networks_apart() -> None:
    other = dataclasses.replace(A_MODEL, graphs={"roll": b"roll graph", "query": b"other"})
    assert other.identity != A_MODEL.identity
    assert dataclasses.replace(A_MODEL, name="renamed").identity == A_MODEL.identity


def test_cut_anywhere(path: Path) -> None:
    data = path.read_bytes()
    for keep in range(0, len(data) - 1, max(1, len(data) // 60)):
        path.write_bytes(data[:keep])
        with pytest.raises(ModelFileError):
            read_model(path)


def test_any_flipped_byte_is_noticed_or_harmless(path: Path) -> None:
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(data), 150):
        bad = bytearray(data)
        bad[place] ^= 1 << rng.integers(8)
        path.write_bytes(bad)
        try:
            assert read_model(path).graphs == A_MODEL.graphs
        except ModelFileError as error:
            assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "grid",
    [
        Grid(32),
        Grid.published(),
        Grid(powers=(3, 0, 1)),
        Grid(strips=4),
        Grid(powers=(3, 1), strips=2),
    ],
)
def test_any_grid_comes_back(grid: Grid, tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.c5", dataclasses.replace(A_MODEL, grid=grid))
    assert read_model(path).grid == grid


def test_the_grid_is_part_of_the_identity() -> None:
    others = [dataclasses.replace(A_MODEL, grid=grid) for grid in (Grid(), Grid(limit=3), Grid(strips=4))]
    assert len({model.identity for model in (A_MODEL, *others)}) == 4


def test_foreign_and_newer_files(path: Path, tmp_path: Path) -> None:
    (tmp_path / "text.c5").write_text("hello")
    with pytest.raises(ModelFileError, match="not a C5 model"):
        read_model(tmp_path / "text.c5")
    with zipfile.ZipFile(tmp_path / "zip.c5", "w") as archive:
        archive.writestr("model.json", "{}")
    with pytest.raises(ModelFileError, match="not a C5 model"):
        read_model(tmp_path / "zip.c5")
    with pytest.raises(ModelFileError, match="no such file"):
        read_model(tmp_path / "none.c5")
    rewrite(path, version=VERSION + 1)
    with pytest.raises(ModelFileError, match="pip install --upgrade"):
        read_model(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"grid": {}},
        {"grid": {"bins": 64.0, "limit": 2.85, "geometry": "exact"}},
        {"grid": {"bins": 64, "limit": 2.85, "geometry": "exact", "strips": "4"}},
        {"kind": "other"},
        {"graphs": {"roll": "0"}},
        {"graphs": ["roll", "query"]},
        {"n_images": "x"},
        {"version": "1"},
    ],
)
def test_incomplete_descriptions(path: Path, changes: dict[str, object]) -> None:
    rewrite(path, **changes)
    with pytest.raises(ModelFileError, match="damaged"):
        read_model(path)


def test_swapped_graph_is_noticed(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["roll.onnx"] = b"another"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(ModelFileError, match="not the one described"):
        read_model(path)


def test_graphs_for_another_grid_are_noticed() -> None:
    wrong = dataclasses.replace(load_model().file, grid=Grid(32))
    with pytest.raises(ModelFileError, match="not for its grid"):
        Model(wrong).calibrate_histograms([Histograms(Grid(32), np.zeros((2, 32, 32), np.float32))])


def test_a_graph_that_cannot_run_is_named() -> None:
    with pytest.raises(ModelFileError, match="cannot be run"):
        Model(A_MODEL).calibrate_histograms([Histograms(Grid.published(32), np.zeros((2, 32, 32), np.float32))])


def test_graphs_must_fit_the_kind() -> None:
    with pytest.raises(ParameterError, match="separate"):
        dataclasses.replace(A_MODEL, kind="separate")


def test_unknown_names_list_those_that_exist() -> None:
    with pytest.raises(ModelFileError, match="give bundled, or a "):
        load_model("nothing")
    with pytest.raises(ParameterError, match="threads"):
        load_model(threads=0)
