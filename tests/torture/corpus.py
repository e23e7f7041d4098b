"""Files that once did what they must not, made anew each time: a name, the kind of file, and how one is made of a whole
one."""

from __future__ import annotations

import io
import json
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from c5.datasets.container import CHUNK, END, INDEX, RECORD, START
from torture.formats import FOREIGN
from torture.mutations import pack_zip, unpack_zip
from torture.structures import make_chunk

Make = Callable[[bytes], bytes]

DIGITS = "9" * 5000
NESTED = "[" * 100_000 + "]" * 100_000


def npy(shape: str, description: str = "'<u2'") -> Make:
    text = f"{{'descr': {description}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return lambda _: b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + bytes(1000)


def namespaces(whole: bytes) -> bytes:
    opened = "".join(f'<a{i}:b xmlns:a{i}="http://x/{i}">' for i in range(16_000))
    closed = "".join(f"</a{i}:b>" for i in reversed(range(16_000)))
    return whole.replace(b"</rdf:Description>", f"{opened}{closed}</rdf:Description>".encode())


def with_json(*path: str | int, value: Any) -> Make:
    """Another value somewhere in a JSON file."""

    def make(whole: bytes) -> bytes:
        tree = json.loads(whole)
        place = tree
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        return json.dumps(tree).encode()

    return make


def indexed(change: Callable[[dict[str, Any]], object]) -> Make:
    """A pack or a set with another index, and right checksums."""

    def make(whole: bytes) -> bytes:
        offset, magic = END.unpack(whole[-END.size :])
        _, head, payload = CHUNK.unpack_from(whole, offset)
        start = offset + CHUNK.size + head
        index = json.loads(zlib.decompress(whole[start : start + payload]))
        change(index)
        text = json.dumps(index).replace('"NESTED"', NESTED)
        return whole[:offset] + make_chunk(INDEX, b"{}", zlib.compress(text.encode())) + END.pack(offset, magic)

    return make


def without_source(whole: bytes) -> bytes:
    """The first record of a writing that was stopped does not say what it was made of."""
    _, head, payload = CHUNK.unpack_from(whole, START.size)
    begin = START.size + CHUNK.size
    described = json.loads(whole[begin : begin + head])
    del described["image"]["source"]
    content = whole[begin + head : begin + head + payload]
    return whole[: START.size] + make_chunk(RECORD, json.dumps(described).encode(), content)


def with_sql(statement: str) -> Make:
    def make(whole: bytes) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "catalog.db"
            path.write_bytes(whole)
            database = sqlite3.connect(path, isolation_level=None)
            database.execute(statement)
            database.close()
            return path.read_bytes()

    return make


def with_member(ending: str, change: Make) -> Make:
    def make(whole: bytes) -> bytes:
        return pack_zip([(name, change(data) if name.endswith(ending) else data) for name, data in unpack_zip(whole)])

    return make


def described(**changes: Any) -> Make:
    """A profile with another description."""

    def change(data: bytes) -> bytes:
        description = json.loads(str(np.load(io.BytesIO(data)))) | changes
        buffer = io.BytesIO()
        np.save(buffer, np.array(json.dumps(description)))
        return buffer.getvalue()

    return with_member("profile.npy", change)


def filled(value: Any, dtype: Any = np.float16) -> Make:
    """A profile of other numbers."""

    def change(data: bytes) -> bytes:
        buffer = io.BytesIO()
        np.save(buffer, np.full(np.load(io.BytesIO(data)).shape, value, dtype))
        return buffer.getvalue()

    return with_member("level_0.npy", change)


def one_bit(whole: bytes) -> bytes:
    place = len(whole) // 2
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


CORPUS: dict[str, tuple[str, Make]] = {
    "shape of fractions": ("npy", npy("(2.5, 4, 3)")),
    "shape of truths": ("npy", npy("(True, 4, 3)")),
    "shape of nothing": ("npy", npy("(10000, 10000, 1000000000)", "'|V0'")),
    "arrays in an array": ("npy", npy("(True, 4, 3)", "('<u2', 3)")),
    "open bracket": ("npy", npy("(1, (2, 3")),
    "namespaces for Adobe": ("xmp", lambda _: namespaces(FOREIGN["xmp"][0])),
    "namespaces for darktable": ("darktable", lambda _: namespaces(FOREIGN["darktable"][0])),
    "fold of 5,000 digits": ("manifest", lambda whole: whole.replace(b",s0,0", f",s0,{DIGITS}".encode())),
    "epochs of 5,000 digits": ("recipe", lambda whole: whole.replace(b"epochs = 3", f"epochs = {DIGITS}".encode())),
    "cameras held out are none": ("run", with_json("hold_out", value=True)),
    "data are a number": ("run", with_json("data", value=3)),
    "nested plan": ("run", lambda _: NESTED.encode()),
    "results without folds": ("results", with_json("folds", value=[{}])),
    "results of a number of images": ("results", with_json("images", value=5)),
    "results without lights": ("results", with_json("lights", value=[1])),
    "command that is a list": ("results", with_json("rows", 0, "made", 0, "command", value=["c5"])),
    "nested results": ("results", lambda _: NESTED.encode()),
    "nested index": ("pack", indexed(lambda index: index.update(sets="NESTED"))),
    "camera by number": ("pack", indexed(lambda index: index["samples"][0].update(camera=1.5))),
    "camera by list": ("pack", indexed(lambda index: index["samples"][0].update(camera=[]))),
    "image without pixels": ("set", indexed(lambda index: index["samples"][0]["image"].pop("pixels"))),
    "record without source": ("part", without_source),
    "number of 2^62": ("catalog", with_sql("UPDATE photograph SET number = number + 4611686018427387904")),
    "camera that is no text": ("catalog", with_sql("UPDATE photograph SET camera = CAST(x'ff' AS TEXT)")),
    "time that is none": ("catalog", with_sql("UPDATE photograph SET time = 'Inf'")),
    "content by number": ("catalog", with_sql("UPDATE photograph SET digest = 5")),
    "infinitely many images": ("profile", described(n_images=float("inf"))),
    "profile of no numbers": ("profile", filled(np.nan)),
    "profile of words": ("profile", filled("x", "U1")),
    "one bit of a checkpoint": ("checkpoint", one_bit),
}
