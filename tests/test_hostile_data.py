"""Packs, prepared sets and manifests whose checksums are right and whose content is not."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
from test_pack import make_samples, read_all

from c5 import DataError, Grid, ReadError
from c5.colorimetry.matrices import read_matrices
from c5.datasets import ImageFile, read_samples, write_pack
from c5.datasets.container import CHUNK, CRC, END, INDEX, RECORD, START, open_chunk
from c5.datasets.features import HistogramFeature, VividnessFeature
from c5.datasets.labels import read_numbers, read_word
from c5.datasets.mat import read_mat
from c5.datasets.pack import FORMAT
from c5.datasets.prepared import load_feature, write_prepared
from c5.datasets.torus import Torus, TorusFeature
from c5.io.files import read_toml

Change = Callable[[dict[str, Any]], object]


def chunk(kind: bytes, head: bytes, payload: bytes) -> bytes:
    data = CHUNK.pack(kind, len(head), len(payload)) + head + payload
    return data + CRC.pack(zlib.crc32(data))


def with_index(data: bytes, index: bytes) -> bytes:
    """A file with another index, its checksums right."""
    (offset, magic) = END.unpack(data[-END.size :])
    return data[:offset] + chunk(INDEX, b"{}", index) + END.pack(offset, magic)


def index_of(data: bytes) -> dict[str, Any]:
    offset, _ = END.unpack(data[-END.size :])
    found: dict[str, Any] = json.loads(zlib.decompress(open_chunk(data[offset : -END.size], INDEX)[1]))
    return found


def first(**changes: Any) -> Change:
    return lambda index: index["samples"][0].update(changes)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("pack") / "x.c5data"
    write_pack(make_samples(3), path)
    return path.read_bytes()


CHANGES: dict[str, Change] = {
    "float offset": first(offset=12.0),
    "huge offset": first(offset=10**30),
    "negative length": first(length=-5),
    "infinite length": first(length=math.inf),
    "NaN": first(illuminant=[math.nan, 1, 1]),
    "infinite light": first(illuminant=[math.inf, 1, 1]),
    "light of text": first(illuminant="abc"),
    "NaN matrix": first(ccm=[math.nan] * 9),
    "infinite aperture": first(capture=[1, math.inf, None]),
    "long capture": first(capture=[1, 2, 3, 4]),
    "camera of a list": first(camera=[]),
    "no camera": first(camera=None),
    "dataset of a number": first(dataset=3),
    "name of a table": first(name={}),
    "scene of a list": first(scene=[3]),
    "fold of text": first(fold="3"),
    "infinite fold": first(fold=math.inf),
    "unknown set": first(sources=10**6),
    "set of text": first(sources="a"),
    "names of numbers": lambda index: index.update(names=[1, 2, 3, 4, 5]),
    "no names": lambda index: index.pop("names"),
    "sets of text": lambda index: index.update(sets=["abc"]),
    "samples of numbers": lambda index: index.update(samples=[1, 2]),
    "samples of text": lambda index: index.update(samples="abc"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_index_that_cannot_be_is_one_line(pack: bytes, tmp_path: Path, name: str) -> None:
    path, index = tmp_path / "x.c5data", index_of(pack)
    CHANGES[name](index)
    path.write_bytes(with_index(pack, zlib.compress(json.dumps(index).encode())))
    with pytest.raises(DataError) as caught:
        read_samples(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


BOMBS = {
    "nested": b"[" * 10**6,
    "lists": b'{"samples": [' + b"[]," * 8 * 10**7 + b"0]}",
    "zeros": b'{"samples": [' + b"0," * 10**8 + b"0]}",
    "digits": b'{"samples": [' + b"1" * 10**7 + b"]}",
}

PROBE = """
import sys, c5
from c5.datasets import read_samples
for path in sys.argv[1:]:
    try:
        print(read_samples(path))
    except c5.DataError as error:
        print(error)
print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024)
"""


def test_no_index_costs_more_than_a_line(pack: bytes, tmp_path: Path) -> None:
    paths = []
    for name, index in BOMBS.items():
        paths.append(tmp_path / f"{name}.c5data")
        paths[-1].write_bytes(with_index(pack, zlib.compress(index, 1)))
    done = subprocess.run([sys.executable, "-c", PROBE, *paths], capture_output=True, text=True, timeout=60)
    *lines, megabytes = done.stdout.splitlines()
    assert done.stderr == ""
    assert ["cut short or damaged" in line for line in lines] == [True] * len(BOMBS)
    assert int(megabytes) < 400


def record(pack: bytes, coded: bytes, **changes: Any) -> bytes:
    """A pack of one record with these pixels."""
    entry = index_of(pack)["samples"][0]
    head = {**entry, "image": entry["image"] | {"pixels": len(coded)} | changes, "names": [], "sets": []}
    head |= {"cameras": None, "sources": None}
    made = chunk(RECORD, json.dumps(head).encode(), coded)
    place = {"offset": START.size, "length": len(made)}
    index = {"names": [], "sets": [], "samples": [{**head, **place}]}
    start = START.pack(FORMAT.magic, FORMAT.version) + made
    return start + chunk(INDEX, b"{}", zlib.compress(json.dumps(index).encode())) + END.pack(len(start), FORMAT.magic)


def test_pixels_that_are_not_what_the_record_says(pack: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.c5data"

    def coded(shape: tuple[int, ...], dtype: type = np.uint16) -> bytes:
        return bytes(imagecodecs.jpegxl_encode(np.ones(shape, dtype), lossless=True, effort=1))

    path.write_bytes(record(pack, coded((6, 9, 3))))
    read_all(path)
    wrong: list[tuple[bytes, dict[str, Any]]] = [
        (coded((3000, 3000, 3)), {}),
        (coded((3000, 3000, 3)), {"height": 3000, "width": 3000}),
        (coded((6, 9, 3), np.uint8), {}),
        (coded((6, 9)), {}),
        (coded((6, 9, 4)), {}),
        (coded((6, 9, 3)), {"height": 1 << 40}),
        (coded((6, 9, 3)), {"height": "6"}),
        (coded((6, 9, 3)), {"height": math.inf}),
        (coded((6, 9, 3)), {"height": -6, "width": -9}),
        (coded((6, 9, 3)), {"pixels": 1.5}),
        (coded((6, 9, 3)), {"codec": []}),
        (b"", {}),
    ]
    for pixels, changes in wrong:
        path.write_bytes(record(pack, pixels, **changes))
        with pytest.raises(DataError, match=r"record 1|its index") as caught:
            read_all(path)
        assert "\n" not in str(caught.value)


def test_features_that_are_not_finite_are_damaged(tmp_path: Path) -> None:
    features = (VividnessFeature(), TorusFeature(Torus(16)), HistogramFeature(Grid(16)))
    path = tmp_path / "x.c5set"
    write_prepared(make_samples(1), path, features)
    data = path.read_bytes()
    (sample,) = read_samples(path)
    for feature in features:
        load_feature(sample, feature)
    entry = index_of(data)["samples"][0]
    head, _ = open_chunk(data[entry["offset"] : entry["offset"] + entry["length"]], RECORD)
    bad = [np.array(np.nan).tobytes(), zlib.compress(np.full((2, 16, 16), np.inf, "<f2").tobytes()), b""]
    image = entry["image"] | {"lengths": [len(part) for part in bad]}
    made = chunk(RECORD, json.dumps({**head, "image": image}).encode(), b"".join(bad))
    index = index_of(data) | {"samples": [{**entry, "image": image, "length": len(made)}]}
    start = data[: START.size] + made
    packed = chunk(INDEX, b"{}", zlib.compress(json.dumps(index).encode()))
    path.write_bytes(start + packed + END.pack(len(start), data[-8:]))
    (sample,) = read_samples(path)
    for feature in features:
        with pytest.raises(DataError, match="record 1"):
            load_feature(sample, feature)


def test_pipes_are_no_data(tmp_path: Path) -> None:
    for name in ("x.c5data", "x.c5set", "x.png"):
        os.mkfifo(tmp_path / name)
    for name, layout in (("x.c5data", "pack"), ("x.c5set", "set")):
        with pytest.raises(DataError, match="a pipe"):
            read_samples(tmp_path / name, layout)
        with pytest.raises(DataError):
            read_samples(tmp_path / name)
    with pytest.raises(ReadError, match="a pipe"):
        ImageFile(tmp_path / "x.png").digest()


def test_a_stopped_writing_of_somebody_else_is_begun_anew(pack: bytes, tmp_path: Path) -> None:
    start = START.pack(FORMAT.magic, FORMAT.version)
    for head in (b"{}", b'{"name": 3}', b'{"name": "a", "image": {"source": "b"}}', b"[" * 10**5, b"[]"):
        (tmp_path / "x.c5data.part").write_bytes(start + chunk(RECORD, head, b""))
        write_pack(make_samples(3), tmp_path / "x.c5data", overwrite=True)
        assert (tmp_path / "x.c5data").read_bytes() == pack


def test_pipes_are_no_labels_tables_or_settings(tmp_path: Path) -> None:
    """Nobody writes into them, so that reading would wait without end."""
    pipe = tmp_path / "manifest.csv"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="a pipe"):
        read_samples(tmp_path, "manifest")
    with pytest.raises(DataError, match="a pipe"):
        read_matrices(pipe)
    with pytest.raises(DataError, match="missing or not numbers"):
        read_numbers(pipe, 3)
    with pytest.raises(DataError, match="missing or empty"):
        read_word(pipe, "write it")
    with pytest.raises(DataError, match="a pipe"):
        read_mat(pipe)
    with pytest.raises(ReadError, match="a pipe"):
        read_toml(pipe)
    with pytest.raises(ReadError, match="a pipe"):
        read_toml(Path(os.devnull))
