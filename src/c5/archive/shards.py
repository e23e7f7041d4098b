"""An archive in shards: a few dozen photographs that are read together, and whose results are kept in a file.

The names of its files decide where a shard ends, so that adding or removing a file changes one shard and not all that
follow. A shard is named by what was listed of its files: the same name means the same content.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from c5.archive.places import StoredFile
from c5.errors import ParameterError, ReadError
from c5.words import first_line

FEWEST, MOST, ODDS = 8, 64, 24
"""Photographs in a shard; between these limits, one name in `ODDS` ends its shard. So they have 30 on average."""


class Shard(NamedTuple):
    name: str
    entries: list[StoredFile]


def cut(entries: Iterable[StoredFile], made: str) -> Iterator[Shard]:
    """The shards of a listing. `made` is what else their content depends on."""
    shard: list[StoredFile] = []
    for entry in entries:
        shard.append(entry)
        last = int(digest(entry.path), 16) % ODDS == 0
        if len(shard) == MOST or (last and len(shard) >= FEWEST):
            yield Shard(digest(made, shard), shard)
            shard = []
    if shard:
        yield Shard(digest(made, shard), shard)


def digest(*parts: Any) -> str:
    """A digest that tells contents apart, as 32 letters."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


class Spool:
    """Shards on this machine's disk, in order: an archive's listing may be larger than memory."""

    def __init__(self, shards: Iterable[Shard]) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115, closed by `close`
        self.names: list[str] = []
        self.sizes: list[int] = []
        for shard in shards:
            self._file.write(json.dumps(shard).encode() + b"\n")
            self.names.append(shard.name)
            self.sizes.append(len(shard.entries))

    @property
    def files(self) -> int:
        return sum(self.sizes)

    def __iter__(self) -> Iterator[Shard]:
        self._file.seek(0)
        for line in self._file:
            name, entries = json.loads(line)
            yield Shard(name, [StoredFile(*entry) for entry in entries])

    def close(self) -> None:
        self._file.close()


def load_parquet() -> Any:
    """pyarrow's Parquet."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ParameterError("this needs pyarrow: run pip install 'c5-awb[archive]'") from None
    return pyarrow.parquet


def encode_table(columns: dict[str, tuple[str, list[Any]]]) -> bytes:
    """A Parquet file of columns, each with the name of its type."""
    load_parquet()
    import pyarrow as pa

    arrays = {name: pa.array(values, pa.type_for_alias(kind)) for name, (kind, values) in columns.items()}
    return write_table(pa.table(arrays))


def write_table(table: Any) -> bytes:
    """A Parquet file of a table."""
    buffer = io.BytesIO()
    load_parquet().write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def read_table(file: BinaryIO, name: str, columns: list[str] | None = None) -> Any:
    """A table of a Parquet file, or some columns of it, in one thread: there is a worker for each core."""
    parquet = load_parquet()
    import pyarrow as pa

    try:
        return parquet.ParquetFile(file).read(columns, use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ReadError(f"{name}: damaged ({first_line(error)}); remove it and run the same command again") from None
