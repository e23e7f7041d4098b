"""Damage behind valid checksums, to files of this package: models, packs, sets, catalogs, checkpoints, weights."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from c5.datasets.container import CHUNK, CRC, END, INDEX, RECORD, START
from torture.mutations import (
    BYTES,
    NUMBERS,
    Mutation,
    Rng,
    change_json,
    change_npy,
    change_value,
    change_zip,
    hostile_value,
    in_member,
    pack_zip,
    pick,
    to_json,
    unpack_zip,
)

# Models and profiles --------------------------------------------------------------------------------------------------


def change_model(mutation: Mutation) -> Mutation:
    """A mutation of a graph, with the digest in the description made again."""

    def change(data: bytes, rng: Rng) -> bytes:
        members = dict(unpack_zip(data))
        name = pick(rng, [name for name in members if name.endswith(".onnx")])
        members[name] = mutation(members[name], rng)
        description = json.loads(members["model.json"])
        description["graphs"][name.removesuffix(".onnx")] = hashlib.sha256(members[name]).hexdigest()
        members["model.json"] = json.dumps(description).encode()
        return pack_zip(list(members.items()))

    return change


def change_graph(data: bytes, rng: Rng) -> bytes:
    """An ONNX graph with other nodes, numbers, shapes or outputs."""
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load_from_string(data)
    graph = model.graph
    kind = rng.integers(10)
    if kind <= 1 and graph.initializer:
        tensor = pick(rng, graph.initializer)
        array = onnx.numpy_helper.to_array(tensor).copy()
        if array.dtype.kind == "f":
            array.ravel()[rng.integers(0, max(array.size, 1), 1 if rng.random() < 0.5 else array.size)] = pick(
                rng, (np.nan, np.inf, -np.inf, 6e4, -6e4)
            )
        else:
            array = (array * 0 + pick(rng, NUMBERS[:-2])).astype(array.dtype)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    elif kind == 2 and graph.initializer:
        tensor = pick(rng, graph.initializer)
        tensor.dims[:] = [pick(rng, NUMBERS[:17]) for _ in range(int(rng.integers(0, 4)))]
    elif kind == 3:
        pick(rng, graph.node).op_type = pick(
            rng, ("Relu", "Add", "Shape", "Identity", "Sqrt", "Log", "Nothing", "Concat", "Size")
        )
    elif kind == 4:
        graph.node.remove(pick(rng, graph.node))
    elif kind == 5:
        output = pick(rng, graph.output)
        made = pick(rng, ("scalar", "huge", "missing", "text", "loop", "nan", "other"))
        if made == "missing":
            graph.output.remove(output)
        elif made == "other":
            output.name = pick(rng, graph.node).output[0]
        else:
            _replace_output(graph, output, made, helper, TensorProto)
    elif kind == 6:
        shape = pick(rng, [*graph.input, *graph.output]).type.tensor_type.shape
        if shape.dim:
            pick(rng, shape.dim).dim_value = pick(rng, (0, 1, 2, 3, 2**20, 2**40, -1))
    elif kind == 7:
        node = pick(rng, graph.node)
        if node.attribute:
            attribute = pick(rng, node.attribute)
            for i in range(len(attribute.ints)):
                attribute.ints[i] = pick(rng, (0, -1, 1, 2, 1000, 2**31, 2**62))
            attribute.i, attribute.f = pick(rng, (0, -1, 2**62)), float("nan")
    elif kind == 8:
        model.opset_import[0].version = pick(rng, (0, 1, 5, 25, 999, 2**60))
    else:
        tensor = pick(rng, graph.initializer)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", pick(rng, ("/etc/passwd", "../x", "/dev/zero", "model.json"))
    return bytes(model.SerializeToString())


def _replace_output(graph: Any, output: Any, made: str, helper: Any, types: Any) -> None:
    """Another node in the place of the one that makes an output."""
    old = output.name
    for node in graph.node:
        for i, name in enumerate(node.output):
            if name == old:
                node.output[i] = f"{old}_unused"
    if made in ("scalar", "nan", "text"):
        kind = types.STRING if made == "text" else types.FLOAT
        shape = [1, 2, 3] if made == "nan" else []
        values = {"scalar": [1.0], "nan": [float("nan")] * 6, "text": [b"x"]}[made]
        graph.node.append(helper.make_node("Constant", [], [old], value=helper.make_tensor("v", kind, shape, values)))
    elif made == "huge":
        graph.initializer.append(helper.make_tensor("huge_shape", types.INT64, [3], [1, 30000, 30000]))
        graph.node.append(helper.make_node("ConstantOfShape", ["huge_shape"], [old]))
    else:
        body = helper.make_graph(
            [
                helper.make_node("Identity", ["go"], ["go_on"]),
                helper.make_node("Add", ["value", "value"], ["next"]),
            ],
            "body",
            [
                helper.make_tensor_value_info("trip", types.INT64, []),
                helper.make_tensor_value_info("go", types.BOOL, []),
                helper.make_tensor_value_info("value", types.FLOAT, []),
            ],
            [
                helper.make_tensor_value_info("go_on", types.BOOL, []),
                helper.make_tensor_value_info("next", types.FLOAT, []),
            ],
        )
        graph.initializer.append(helper.make_tensor("trips", types.INT64, [], [2**62]))
        graph.initializer.append(helper.make_tensor("start", types.FLOAT, [], [0.0]))
        graph.initializer.append(helper.make_tensor("yes", types.BOOL, [], [True]))
        graph.node.append(helper.make_node("Loop", ["trips", "yes", "start"], [old], body=body))


def change_profile(data: bytes, rng: Rng) -> bytes:
    """Arrays of another type, shape or content in an archive that is whole, or another description."""
    with np.load(io.BytesIO(data)) as file:
        arrays: dict[str, Any] = dict(file)
    name = pick(rng, list(arrays))
    if name == "profile":
        arrays[name] = np.array(change_json(str(arrays[name]).encode(), rng).decode("utf-8", "replace"))
    else:
        shape = arrays[name].shape
        arrays[name] = pick(
            rng,
            (
                np.full(shape, np.nan, np.float16),
                np.full(shape, np.inf, np.float16),
                np.full(shape, 1e300),
                np.full(shape, "x"),
                np.full(shape, 1j),
                np.zeros(shape, [("a", "<f4"), ("b", "<i2")]),
                np.zeros(shape, "datetime64[s]"),
                np.zeros((*shape, 2), np.float16),
                np.zeros(0, np.float16),
                np.float16(1),
                np.zeros((1, 1, 4000, 4000), np.float16),
                np.full(shape, -(2**62)),
                np.full(shape, True),
            ),
        )
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


MODEL: tuple[Mutation, ...] = (
    in_member(change_json, ".json"), change_model(change_graph), change_model(change_graph), change_zip,
    change_model(lambda data, rng: pick(rng, BYTES)(data, rng)),
)  # fmt: skip
PROFILE: tuple[Mutation, ...] = (change_profile, change_profile, in_member(change_npy), change_zip)

# Packs and prepared sets ----------------------------------------------------------------------------------------------


def make_chunk(kind: bytes, head: bytes, payload: bytes) -> bytes:
    chunk = CHUNK.pack(kind, len(head), len(payload)) + head + payload
    return chunk + CRC.pack(zlib.crc32(chunk))


def change_index(data: bytes, rng: Rng) -> bytes:
    """What the index says, with a right checksum."""
    offset, magic = END.unpack(data[-END.size :])
    _, head, payload = CHUNK.unpack_from(data, offset)
    start = offset + CHUNK.size + head
    index = json.loads(zlib.decompress(data[start : start + payload]))
    kind = rng.random()
    if kind < 0.75:
        for _ in range(int(rng.integers(1, 4))):
            _change_entry(pick(rng, index["samples"]), rng)
        if rng.random() < 0.4:
            index = change_value(index, rng)
        packed = zlib.compress(to_json(index))
    elif kind < 0.85:
        packed = zlib.compress(bytes(int(2 ** rng.integers(10, 27))), 9)
    elif kind < 0.95:
        index["samples"] = index["samples"] * int(2 ** rng.integers(1, 9))
        packed = zlib.compress(to_json(index))
    else:
        packed = zlib.compress(b"[" * 200_000)
    return data[:offset] + make_chunk(INDEX, b"{}", packed) + END.pack(offset, magic)


def _change_entry(entry: Any, rng: Rng) -> None:
    if rng.random() < 0.5 and entry:
        entry[pick(rng, list(entry))] = hostile_value(rng)
    elif isinstance(entry.get("image"), dict) and entry["image"]:
        change_value(entry["image"], rng)
    else:
        change_value(entry, rng)


def change_record(data: bytes, rng: Rng) -> bytes:
    """What a record says or holds, with right checksums in it and in the index."""
    offset, magic = END.unpack(data[-END.size :])
    _, head, payload = CHUNK.unpack_from(data, offset)
    start = offset + CHUNK.size + head
    index = json.loads(zlib.decompress(data[start : start + payload]))
    number = int(rng.integers(len(index["samples"])))
    records, place = [], START.size
    for i, entry in enumerate(index["samples"]):
        chunk = data[entry["offset"] : entry["offset"] + entry["length"]]
        if i == number:
            _, head, payload = CHUNK.unpack_from(chunk)
            described = json.loads(chunk[CHUNK.size : CHUNK.size + head])
            content = chunk[CHUNK.size + head : -CRC.size]
            if rng.random() < 0.5:
                content = pick(rng, BYTES)(content, rng)
                written = json.dumps(described).encode()
            else:
                _change_entry(described, rng)
                written = to_json(described)
                if rng.random() < 0.5 and isinstance(described.get("image"), dict):
                    entry["image"] = described["image"]
            chunk = make_chunk(RECORD, written, content)
        entry["offset"], entry["length"] = place, len(chunk)
        records.append(chunk)
        place += len(chunk)
    tail = make_chunk(INDEX, b"{}", zlib.compress(to_json(index))) + END.pack(place, magic)
    return data[: START.size] + b"".join(records) + tail


def then_cut(mutation: Mutation) -> Mutation:
    """The same as far as a writing came that was stopped."""

    def change(data: bytes, rng: Rng) -> bytes:
        made = mutation(data, rng)
        return made if rng.random() < 0.2 else made[: int(rng.integers(len(made)))]

    return change


CONTAINER: tuple[Mutation, ...] = (change_index, change_index, change_record)

# Catalogs -----------------------------------------------------------------------------------------------------------

SQL = (
    "DROP TABLE details",
    "DROP TABLE profile",
    "DROP INDEX by_number",
    "DROP TRIGGER forget",
    "PRAGMA user_version = 99",
    "PRAGMA user_version = -1",
    "PRAGMA application_id = 1",
    "ALTER TABLE photograph ADD COLUMN x",
    "DELETE FROM details",
    "ALTER TABLE photograph RENAME COLUMN camera TO cam",
    "CREATE TRIGGER t AFTER INSERT ON photograph BEGIN DELETE FROM photograph; END",
    "UPDATE photograph SET number = number + 4611686018427387904",
    "UPDATE photograph SET camera = CAST(x'ff' AS TEXT)",
    "INSERT INTO details SELECT photograph + 1000, facts, packed FROM details",
    "UPDATE photograph SET digest = x''",
    "CREATE TRIGGER u BEFORE DELETE ON photograph BEGIN SELECT RAISE(ABORT, 'no'); END",
    "UPDATE photograph SET number = -number",
    "CREATE TRIGGER v AFTER DELETE ON photograph BEGIN INSERT INTO details SELECT * FROM details; END",
    "DELETE FROM photograph",
    "UPDATE photograph SET error = 'x'",
    "UPDATE photograph SET time = '9999-99-99'",
    "UPDATE profile SET features = zeroblob(100000)",
)


def change_rows(data: bytes, rng: Rng) -> bytes:
    """Values of any type in a catalog that SQLite finds whole."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.db"
        path.write_bytes(data)
        database = sqlite3.connect(path, isolation_level=None)
        try:
            for _ in range(int(rng.integers(1, 4))):
                _change_row(database, rng)
        except sqlite3.Error:
            pass  # it has defended itself
        database.close()
        return path.read_bytes()


def _change_row(database: sqlite3.Connection, rng: Rng) -> None:
    if rng.random() < 0.2:
        database.execute(pick(rng, SQL))
        return
    table = pick(rng, ("photograph", "photograph", "details", "profile"))
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    column = pick(rng, columns)
    rows = [row[0] for row in database.execute(f"SELECT rowid FROM {table}")]
    if column == "facts" and rng.random() < 0.8:
        (facts,) = database.execute("SELECT facts FROM details WHERE rowid = ?", (pick(rng, rows),)).fetchone()
        value: Any = change_json(facts.encode(), rng).decode("utf-8", "replace")
    elif column in ("packed", "features") and rng.random() < 0.8:
        (blob,) = database.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchone()
        value = pick(rng, (*BYTES, _repack, _repack))(blob if isinstance(blob, bytes) else b"", rng)
    else:
        value = pick(
            rng,
            (
                None,
                0,
                -1,
                2**62,
                -(2**63),
                1.5,
                float("inf"),
                "",
                "x",
                "x" * 50000,
                b"",
                b"\xff\xfe",
                "\0",
                b"x" * 50000,
                "9999-01-01 00:00:00",
            ),
        )
    where = "" if rng.random() < 0.3 else f" WHERE rowid = {int(pick(rng, rows))}"
    if isinstance(value, bytes) and rng.random() < 0.4 and column not in ("packed", "features"):
        database.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT){where}", (value,))
    else:
        database.execute(f"UPDATE {table} SET {column} = ?{where}", (value,))


def _repack(blob: bytes, rng: Rng) -> bytes:
    """Compressed bytes with other content."""
    try:
        content = zlib.decompress(blob)
    except zlib.error:
        content = b""
    return zlib.compress(
        pick(rng, (bytes(int(2 ** rng.integers(1, 26))), pick(rng, BYTES)(content, rng), content * 2)), 9
    )


# Checkpoints and weights ----------------------------------------------------------------------------------------------


def change_state(data: bytes, rng: Rng) -> bytes:
    """A state of torch with other tensors or texts, saved as it should be."""
    import torch

    state: Any = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    for _ in range(int(rng.integers(1, 3))):
        place: Any = state
        while True:
            key = pick(rng, list(place)) if isinstance(place, dict) else int(rng.integers(len(place)))
            if not (isinstance(place[key], dict | list) and place[key] and rng.random() < 0.9):
                break
            place = place[key]
        old = place[key]
        if isinstance(old, str) and old[:1] in "{[" and rng.random() < 0.7:
            place[key] = change_json(old.encode(), rng).decode("utf-8", "replace")
        elif rng.random() < 0.25 and not isinstance(place, list):
            del place[key]
        elif isinstance(old, torch.Tensor):
            shape = list(old.shape)
            place[key] = pick(
                rng,
                (
                    torch.full(shape, float("nan")),
                    torch.zeros([*shape, 2]),
                    torch.zeros(0),
                    torch.tensor(3),
                    torch.zeros(shape, dtype=torch.complex64),
                    torch.zeros(shape, dtype=torch.bool),
                    torch.full(shape, float("inf")),
                    torch.zeros(1).expand(4000, 4000),
                    torch.zeros(shape, dtype=torch.bfloat16),
                    "x",
                    None,
                    2**70,
                ),
            )
        else:
            place[key] = pick(
                rng, (None, "x", -1, 2**62, 2**70, 1.5, float("nan"), [], {}, torch.zeros(3), True, 0, [1, 2])
            )
        if not isinstance(state, dict) or not state:
            break
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def lie_in_pickle(data: bytes, rng: Rng) -> bytes:
    """Other bytes in the pickle of a state, in an archive that is whole."""
    return in_member(lambda content, rng: pick(rng, BYTES)(content, rng), "data.pkl")(data, rng)


def in_seal(mutation: Mutation) -> Mutation:
    """The same of an archive with its SHA-256 before it, which is made again."""

    def change(data: bytes, rng: Rng) -> bytes:
        place = data.find(b"PK\x03\x04")
        rest = mutation(data[place:], rng)
        return data[: max(place - 32, 0)] + (hashlib.sha256(rest).digest() if place else b"") + rest

    return change


STATE: tuple[Mutation, ...] = tuple(map(in_seal, (change_state, change_state, lie_in_pickle, change_zip)))


def pack_numbers(data: bytes, rng: Rng) -> bytes:
    """The size of a JPEG in its frame header."""
    for marker in (b"\xff\xc0", b"\xff\xc2"):
        place = data.find(marker)
        if place >= 0 and place + 9 < len(data):
            size = struct.pack(">HH", pick(rng, NUMBERS) % 65536, pick(rng, NUMBERS) % 65536)
            return data[: place + 5] + size + data[place + 9 :]
    return data
