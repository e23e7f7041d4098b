"""Model files and profiles of which nothing is true but their checksums: one line each, little memory, no waiting."""

from __future__ import annotations

import bz2
import dataclasses
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
from laws import textured
from onnx import NodeProto, TensorProto, helper, load_model_from_string, numpy_helper

import c5
from c5 import Histograms, ModelFileError, ProfileError, ReadError, histogram, load_model
from c5.graphs import OPERATORS, check_graph
from c5.model import Model, Profile
from c5.model_file import ModelFile, write_model
from c5.photos.balancing import Settings, balance
from c5.photos.files import Failure

DEFAULT = load_model().file
SHAPE = (1, DEFAULT.grid.channels, DEFAULT.grid.bins, DEFAULT.grid.bins)
MAPS = {"filters": SHAPE, "bias": (1, *SHAPE[2:])}


def integers(name: str, *values: int) -> TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def numbers(name: str, value: float, shape: tuple[int, ...]) -> TensorProto:
    return numpy_helper.from_array(np.full(shape, value, np.float32), name)


def make_query(
    nodes: Iterable[NodeProto] = (),
    constants: Iterable[TensorProto] = (),
    outputs: dict[str, tuple[int, ...]] | None = None,
) -> bytes:
    """A query graph of a `profile` model; maps that no node gives are zeros."""
    nodes, constants, outputs = list(nodes), list(constants), MAPS if outputs is None else outputs
    given = {name for node in nodes for name in node.output} | {constant.name for constant in constants}
    constants += [numbers(f"{name}_0", 0, shape) for name, shape in outputs.items() if name not in given]
    nodes += [helper.make_node("Identity", [f"{name}_0"], [name]) for name in outputs if name not in given]
    like = load_model_from_string(DEFAULT.graphs["query"]).graph.input
    described = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
    graph = helper.make_graph(nodes, "query", list(like), described, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())


def with_query(query: bytes) -> ModelFile:
    return dataclasses.replace(DEFAULT, name="hostile", graphs={**DEFAULT.graphs, "query": query})


def loop(trips: int) -> bytes:
    maps = [helper.make_tensor_value_info(name, TensorProto.FLOAT, MAPS["bias"]) for name in ("before", "after")]
    body = helper.make_graph(
        [helper.make_node("Identity", ["condition"], ["again"]), helper.make_node("Identity", ["before"], ["after"])],
        "body",
        [
            helper.make_tensor_value_info("number", TensorProto.INT64, []),
            helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
            maps[0],
        ],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []), maps[1]],
    )
    constants = [integers("trips", trips), numpy_helper.from_array(np.array(True), "yes")]
    constants.append(numbers("start", 0, MAPS["bias"]))
    return make_query([helper.make_node("Loop", ["trips", "yes", "start"], ["bias"], body=body)], constants)


def chain(*steps: tuple[str, list[str], dict[str, Any]]) -> list[NodeProto]:
    """Nodes one after the other, from the query to the bias."""
    nodes = [
        helper.make_node(operator, [f"x{index}" if name == "x" else name for name in inputs], [f"x{index + 1}"], **more)
        for index, (operator, inputs, more) in enumerate(steps)
    ]
    first = helper.make_node("Identity", ["query"], ["x0"])
    return [first, *nodes, helper.make_node("Expand", [f"x{len(steps)}", "map"], ["bias"])]


MAP = integers("map", *MAPS["bias"])
SUM: tuple[str, list[str], dict[str, Any]] = ("ReduceSum", ["x"], {"keepdims": 0})
NAN = numbers("bias", np.nan, MAPS["bias"])

GRAPHS: dict[str, Callable[[], bytes]] = {
    "a loop": lambda: loop(2**62),
    "no graph": lambda: b"nonsense",
    "cut short": lambda: DEFAULT.graphs["query"][:-1000],
    "not finite": lambda: make_query(constants=[NAN]),
    "too large": lambda: make_query(constants=[numbers("bias", 3e38, MAPS["bias"]), numbers("filters", 3e38, SHAPE)]),
    "a scalar": lambda: make_query(outputs=MAPS | {"bias": ()}),
    "a missing output": lambda: make_query(outputs={"filters": SHAPE}),
    "an output too many": lambda: make_query(outputs=MAPS | {"gain": MAPS["bias"], "more": (1,)}),
    "a huge output": lambda: make_query(
        [helper.make_node("ConstantOfShape", ["size"], ["bias"])], [integers("size", 1, 1 << 16, 1 << 16)]
    ),
    "a huge array inside": lambda: make_query(
        chain(("Expand", ["x", "size"], {}), SUM),
        [integers("size", 1 << 16, *SHAPE[1:]), MAP],
    ),
    "a huge product": lambda: make_query(
        [
            helper.make_node("Reshape", ["query", "wide"], ["row"]),
            *chain(("Reshape", ["x", "tall"], {}), ("Mul", ["x", "row"], {}), ("Concat", ["x"] * 8, {"axis": 0}), SUM),
        ],
        [integers("tall", -1, 1), integers("wide", 1, -1), MAP],
    ),
    "a huge window": lambda: make_query(
        chain(("MaxPool", ["x"], {"kernel_shape": [8191, 8191], "pads": [8190] * 4}), SUM), [MAP]
    ),
    "an array that lies": lambda: make_query(constants=[TensorProto(name="bias", dims=[1 << 40], data_type=1)]),
    "another file": lambda: make_query(
        constants=[TensorProto(name="bias", dims=MAPS["bias"], data_type=1, data_location=TensorProto.EXTERNAL)]
    ),
    "a foreign operator": lambda: make_query(
        [helper.make_node("MatMul", ["query", "query"], ["other"], domain="com.microsoft")]
    ),
    "chance": lambda: make_query([helper.make_node("RandomNormal", [], ["bias"], shape=MAPS["bias"])]),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("graphs")
    for name, make in GRAPHS.items():
        write_model(folder / f"{name}.c5", with_query(make()))
    for name, packed in ARCHIVES.items():
        (folder / f"{name}.c5").write_bytes(packed())
    return sorted(folder.iterdir())


def repack(parts: dict[str, bytes], more: Callable[[zipfile.ZipFile], None] = lambda archive: None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
        more(archive)
    return buffer.getvalue()


def parts_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def bundled() -> dict[str, bytes]:
    return parts_of(Path(c5.__file__).parent / "models" / "bundled.c5")


def lying_bzip2() -> bytes:
    """A part of fifty megabytes that claims to have a thousand bytes."""
    packed = bz2.compress(bytes(5 * 10**7))
    data = bytearray(repack(bundled(), lambda archive: archive.writestr("spare", packed, zipfile.ZIP_STORED)))
    for magic, method, size in ((b"PK\3\4", 8, 22), (b"PK\1\2", 10, 24)):
        place = data.rindex(magic)
        struct.pack_into("<H", data, place + method, zipfile.ZIP_BZIP2)
        struct.pack_into("<I", data, place + size, 1000)
    return bytes(data)


def spare_parts(archive: zipfile.ZipFile) -> None:
    for number in range(60):
        archive.writestr(f"spare {number}", bytes(2**21 - 2**19), compresslevel=1)


def describe(**changes: object) -> bytes:
    parts = bundled()
    return repack(parts | {"model.json": json.dumps(json.loads(parts["model.json"]) | changes).encode()})


ARCHIVES: dict[str, Callable[[], bytes]] = {
    "lying bzip2": lying_bzip2,
    "spare parts": lambda: repack(bundled(), spare_parts),
    "many parts": lambda: repack(bundled() | {str(number): b"" for number in range(999)}),
    "nested description": lambda: repack(bundled() | {"model.json": b"[" * 10**5}),
    "long description": lambda: repack(bundled() | {"model.json": b"[" + b"[]," * 10**7 + b"0]"}),
    "infinite": lambda: describe(n_images=float("inf")),
    "wide grid": lambda: describe(grid={"bins": 2**40, "limit": 2.85, "geometry": "exact"}),
    "list": lambda: describe(training=[1], grid=[]),
}

PROBE = """
import os, sys, time, numpy as np, c5
image = np.random.default_rng(0).uniform(0.1, 0.4, (20, 30, 3)).astype(np.float32)
for path in sys.argv[1:]:
    started = time.monotonic()
    try:
        print("taken:", c5.load_model(path).estimate(image))
    except c5.ModelFileError as error:
        print(error)
    assert time.monotonic() < started + 15, path
print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024)
"""


def test_no_model_file_costs_more_than_a_line(files: list[Path]) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE, *map(str, files)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    *lines, megabytes = done.stdout.splitlines()
    assert len(lines) == len(files), done.stdout
    for path, line in zip(files, lines, strict=True):
        assert not line.startswith("taken"), path
        assert str(path) in line or "hostile" in line, line
    assert int(megabytes) < 1000


def test_what_our_networks_are_made_of_is_allowed() -> None:
    for graph in DEFAULT.graphs.values():
        check_graph(graph)
        assert {node.op_type.encode() for node in load_model_from_string(graph).graph.node} <= OPERATORS
    made = load_model_from_string(make_query())
    assert not Model(with_query(made.SerializeToString())).emit(histogram(textured(1), DEFAULT.grid))[1].any()


def test_a_model_that_fails_names_the_photograph_and_the_run_goes_on(tmp_path: Path) -> None:
    """Finite for all photographs but one, whose upper left bins hold something."""
    rgb = [textured(seed, 40, 60) for seed in range(3)]
    paths = [tmp_path / f"{index}.png" for index in range(3)]
    for path, pixels in zip(paths, rgb, strict=True):
        path.write_bytes(imagecodecs.png_encode(np.rint(pixels * 60000).astype(np.uint16)))
    stacks = [histogram(c5.read_image(path), DEFAULT.grid).seen for path in paths]
    place = np.argwhere((stacks[1] > 0) & (stacks[0] == 0) & (stacks[2] == 0))[0]
    weights = np.zeros(SHAPE, np.float32)
    weights[0, *place] = 1e38
    nodes = chain(("Mul", ["x", "weights"], {}), SUM, ("Mul", ["x", "large"], {}))
    constants = [numpy_helper.from_array(weights, "weights"), numbers("large", 1e38, ()), MAP]
    model = Model(with_query(make_query(nodes, constants)))
    results = list(balance(paths, Settings(model, jobs=1)))
    assert [isinstance(result, Failure) for result in results] == [False, True, False]
    assert isinstance(results[1], Failure)
    assert str(paths[1]) in results[1].message
    assert "the model hostile gives numbers that are not finite" in results[1].message
    with pytest.raises(ModelFileError, match=r"1\.png: the model hostile"):
        model.estimate(paths[1])


def test_numbers_of_a_roll_that_are_not_finite_are_noticed() -> None:
    graph = load_model_from_string(DEFAULT.graphs["roll"])
    for weights in graph.graph.initializer:
        if weights.data_type == TensorProto.FLOAT16:
            broken = np.full(list(weights.dims), np.nan, np.float16)
            weights.CopyFrom(numpy_helper.from_array(broken, weights.name))
    graphs = {**DEFAULT.graphs, "roll": graph.SerializeToString()}
    model = Model(dataclasses.replace(DEFAULT, name="hostile", graphs=graphs))
    with pytest.raises(ModelFileError, match="the model hostile gives numbers that are not finite"):
        model.calibrate([textured(1)])


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "p.c5profile"
    return load_model().calibrate([textured(1)]).save(path)


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def header(text: str) -> bytes:
    packed = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(packed)) + packed


def changed(profile: Path, **changes: object) -> bytes:
    facts = json.loads(str(np.load(profile)["profile"])) | changes
    return npy(json.dumps(facts))


LEVELS: dict[str, bytes] = {
    "not a number": npy(np.full((1, 16, 32, 32), np.nan, np.float16)),
    "infinite": npy(np.full((1, 16, 32, 32), np.inf, np.float16)),
    "text": npy(np.full((1, 16, 32, 32), "a")),
    "objects": npy(np.array([{}], dtype=object)),
    "records": npy(np.zeros(3, [("a", "f4"), ("b", "U3")])),
    "nothing a number": header("{'descr': '|V0', 'fortran_order': False, 'shape': (10000, 10000, 1000000000)}"),
    "huge": header("{'descr': '<f2', 'fortran_order': False, 'shape': (1099511627776, 1048576)}"),
    "cut": header("{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2"),
    "negative": header("{'descr': '<f2', 'fortran_order': False, 'shape': (-1, 2)}"),
    "deep": header("(" * 110),
}


@pytest.mark.parametrize("name", LEVELS)
def test_arrays_of_a_profile_that_cannot_be(profile: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "p").write_bytes(repack(parts_of(profile) | {"level_0.npy": LEVELS[name]}))
    with pytest.raises(ProfileError, match="damaged") as caught:
        Profile.load(tmp_path / "p")
    assert str(tmp_path / "p") in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_images": float("inf")},
        {"n_images": "3"},
        {"n_images": -1},
        {"n_images": 10**30},
        {"version": "1"},
        {"version": None},
        {"model": 7},
        {"camera": []},
    ],
)
def test_facts_of_a_profile_that_cannot_be(profile: Path, tmp_path: Path, changes: dict[str, object]) -> None:
    (tmp_path / "p").write_bytes(repack(parts_of(profile) | {"profile.npy": changed(profile, **changes)}))
    with pytest.raises(ProfileError, match="damaged"):
        Profile.load(tmp_path / "p")


def test_pipes_are_neither_models_nor_profiles(tmp_path: Path) -> None:
    for name in ("m.c5", "p.c5profile"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(ModelFileError, match="a pipe"):
        load_model(tmp_path / "m.c5")
    with pytest.raises(ProfileError, match="a pipe"):
        Profile.load(tmp_path / "p.c5profile")


def test_histograms_that_are_not_finite_are_refused() -> None:
    stack = np.zeros(DEFAULT.grid.shape, np.float32)
    packed = Histograms(DEFAULT.grid, stack).pack()
    assert not Histograms.unpack(DEFAULT.grid, packed).stack.any()
    stack[0, 3, 3] = np.nan
    with pytest.raises(ReadError, match="finite"):
        Histograms.unpack(DEFAULT.grid, Histograms(DEFAULT.grid, stack).pack())
