"""The .c5 model file: a zip of a description in JSON and graphs in ONNX. docs/model-file.md specifies it."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from c5.errors import ModelFileError, ParameterError, ReadError
from c5.histograms import Grid
from c5.io.archives import read_whole, unpack
from c5.io.files import write_file
from c5.io.shapes import check_shape, parse_json

FORMAT = "c5-model"
VERSION = 4
"""Version 2 added `powers` to the grid, version 3 `strips`, version 4 `pixels`."""
MOST_BYTES = 64 * 2**20
"""No model file is larger, packed or unpacked."""
MOST_DESCRIPTION = 4 * 2**20

SHAPE = {
    "name": str,
    "kind": str,
    "grid": {"bins": int, "limit": float, "geometry": str, "powers?": [int], "strips?": int, "pixels?": int},
    "n_images": int,
    "graphs": {str: str},
    "training": dict,
    "errors": dict,
    "licence": str,
}
"""The description in a model file."""

GRAPHS = {"profile": ("roll", "query"), "separate": ("query",)}
"""The graphs each kind of model has."""


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds."""

    name: str
    kind: str
    """`profile` or `separate`: how the model takes the roll."""
    grid: Grid
    n_images: int
    """The paper's m in training, query included; a `separate` model takes exactly this many."""
    graphs: Mapping[str, bytes]
    """ONNX: `roll` (an image's histograms to its features) and `query` (histograms and features to F, B and G)."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Data, cameras, configuration, seed: what made the model."""
    errors: Mapping[str, Any] = field(default_factory=dict)
    """Measured errors in degrees, by protocol."""
    licence: str = "Apache-2.0"

    def __post_init__(self) -> None:
        if self.kind not in GRAPHS or set(self.graphs) != set(GRAPHS[self.kind]):
            raise ParameterError(f"a model of kind {self.kind!r} cannot have the graphs {sorted(self.graphs)}")
        fewest = 1 if self.kind == "separate" else 2
        if type(self.n_images) is not int or not fewest <= self.n_images <= 64:
            given = str(self.n_images)[:40]
            raise ParameterError(f"n_images, query included, must lie between {fewest} and 64, not {given}")

    @cached_property  # every estimate asks for it, and it reads every byte of the graphs
    def identity(self) -> str:
        """Sixteen hexadecimal digits that identify this model; profiles carry them."""
        digest = hashlib.sha256(self.grid.key.encode() + b"\0")
        for name in sorted(self.graphs):
            digest.update(name.encode() + b"\0" + self.graphs[name])
        return digest.hexdigest()[:16]


def write_model(path: str | Path, model: ModelFile) -> Path:
    """Write a model file, whole or not at all."""
    return write_file(path, encode_model(model))


def encode_model(model: ModelFile) -> bytes:
    """The bytes of a model file."""
    description = {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "kind": model.kind,
        "grid": model.grid.to_json(),
        "n_images": model.n_images,
        "graphs": {name: hashlib.sha256(data).hexdigest() for name, data in model.graphs.items()},
        "training": model.training,
        "errors": model.errors,
        "licence": model.licence,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        # A fixed date, so that equal models are equal files.
        parts = {"model.json": json.dumps(description, indent=1).encode()}
        parts |= {f"{name}.onnx": data for name, data in model.graphs.items()}
        for name, data in parts.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return buffer.getvalue()


def read_model(path: str | Path) -> ModelFile:
    """Read a model file and check every byte of it."""
    path = Path(path)
    try:
        data = read_whole(path, MOST_BYTES)
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
    except ReadError as error:
        raise ModelFileError(f"{path}: {error}") from None
    return decode_model(data, path)


def decode_model(data: bytes, path: str | Path) -> ModelFile:
    """The same from its bytes; the path is for errors."""
    if not data.startswith(b"PK"):
        raise ModelFileError(f"{path}: not a C5 model file; published .pth weights must be converted first")
    try:
        parts = unpack(data, MOST_BYTES)
        if len(parts.get("model.json", b"")) > MOST_DESCRIPTION:
            raise ReadError("its description is too long")
        description = parse_json(parts.get("model.json", b""), object, "its description")
    except ReadError as error:
        raise ModelFileError(f"{path}: damaged, cut short, or not a C5 model file ({error}); get it again") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ModelFileError(f"{path}: a zip file, but not a C5 model file")
    if not isinstance(description.get("version"), int):
        raise ModelFileError(f"{path}: damaged: it has no version; get it again")
    if description["version"] > VERSION:
        raise ModelFileError(
            f"{path}: made for a newer version of c5-awb (format {description['version']}, this one reads up to "
            f"{VERSION}); run pip install --upgrade c5-awb"
        )
    try:
        check_shape(description, SHAPE, "model.json")
        graphs = {name: parts.get(f"{name}.onnx", b"") for name in description["graphs"]}
        for name, digest in description["graphs"].items():
            if hashlib.sha256(graphs[name]).hexdigest() != digest:
                raise ModelFileError(f"{path}: damaged: the graph {name!r} is not the one described; get it again")
        return ModelFile(
            name=description["name"],
            kind=description["kind"],
            grid=Grid.from_json(description["grid"]),
            n_images=description["n_images"],
            graphs=graphs,
            training=description["training"],
            errors=description["errors"],
            licence=description["licence"],
        )
    except (ParameterError, ReadError) as error:
        raise ModelFileError(f"{path}: damaged: its description is incomplete ({error}); get it again") from error
