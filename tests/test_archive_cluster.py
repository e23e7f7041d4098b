"""`c5 archive` and `c5 evaluate` on a real Ray cluster and with real object storage, both on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from clusters import SOURCES, Cluster, object_storage
from test_archive import FILES, content, here, photographs, result, run_command

from c5.archive import places
from c5.archive.archiving import archive
from c5.archive.places import Storage
from c5.cluster import cluster as connect
from c5.errors import C5Error, ParameterError, WorkerError, check_range

parquet = pytest.importorskip("pyarrow.parquet")

__all__ = ["photographs", "result"]  # fixtures


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("ray")
    made = Cluster()
    try:
        made.add_node()
        yield made
    finally:
        made.close()


def test_rows_are_the_same_on_a_cluster_whose_node_is_killed(
    cluster: Cluster, photographs: Path, result: Path, tmp_path: Path
) -> None:
    place = tmp_path / "out"
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "c5.cli",
        "archive",
        photographs,
        "-o",
        place,
        "--ray",
        cluster.address,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(place.rglob("counted/*.parquet")) and process.poll() is None:
            time.sleep(0.02)
        cluster.kill(cluster.nodes[1])
        out, said = process.communicate()
    assert process.returncode == 0, said
    assert f"{FILES} photographs" in out
    assert content(place) == content(result)
    cluster.add_node()


def test_another_version_on_a_node(cluster: Cluster, photographs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "c5_awb-0.0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: c5-awb\nVersion: 0.0.1\n")
    here_too = {"PYTHONPATH": f"{other.parent}{os.pathsep}{SOURCES}"}
    done = run_command("archive", photographs, "-o", tmp_path / "out", "--ray", cluster.address, **here_too)
    assert done.returncode == 1
    assert "this machine 0.0.1; install that on every node" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_node_without_the_package_says_so(cluster: Cluster) -> None:
    with connect(cluster.address) as spread, pytest.raises(WorkerError, match="lacks no_such_module"):
        list(spread(_Elsewhere(), [1]))


class _Elsewhere:
    """Something that only this machine has."""

    def __call__(self, item: Any) -> Any: ...

    def __reduce__(self) -> Any:
        return __import__, ("no_such_module",)


def test_quick_items_go_in_bundles_and_come_back_in_order(cluster: Cluster) -> None:
    items = [str(number) for number in range(100)]
    with connect(cluster.address) as spread:
        assert list(spread(int, items)) == [(item, int(item)) for item in items]
        done: list[Any] = []
        with pytest.raises(ParameterError, match="steps must lie"):
            done.extend(spread(partial(check_range, "steps", low=1, high=2), [1] * 50 + [3] + [1] * 50))
    assert len(done) == 50  # what comes before an error is not lost


def test_no_core_waits_for_a_slow_item(cluster: Cluster, tmp_path: Path) -> None:
    """The first item ends only after the last one, on the other core."""
    waits = "for _ in $(seq 600); do test -e last && exit 0; sleep 0.1; done; exit 1"
    commands = [waits, *["true"] * 12, "touch last"]
    with connect(cluster.address) as spread:
        done = list(spread(partial(subprocess.call, shell=True, cwd=tmp_path), commands))
    assert done == [(command, 0) for command in commands]


def test_no_cluster_there(photographs: Path, tmp_path: Path) -> None:
    done = run_command("archive", photographs, "-o", tmp_path / "out", "--ray", "127.0.0.1:9")
    assert done.returncode == 1
    assert "127.0.0.1:9: no Ray cluster can be used there" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_an_evaluation_on_a_cluster_gives_the_same_results(cluster: Cluster, photographs: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    rows = ["path,camera,r,g,b"]
    for letter in "ab":
        for path in sorted(photographs.glob(f"{letter}[02]/*.dng"))[:6]:
            shutil.copy(path, data / f"{letter}{path.name}")
            rows.append(f"{letter}{path.name},{letter},0.5,0.7,0.5")
    (data / "manifest.csv").write_text("\n".join(rows) + "\n")
    common = ("evaluate", data, "--protocol", "cross-sensor", "--method", "gray-world", "--method", "shades-of-gray")
    trained = ("--method", "c5:bins-16", "--epochs", "1", "--seeds", "2", "--repeats", "2", "--m", "3")
    results = []
    for name, more in (("here", ()), ("cluster", ("--ray", cluster.address))):
        one_thread = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}  # as Ray's tasks have
        done = run_command(*common, *trained, "-o", tmp_path / name, *more, **one_thread)
        assert done.returncode == 0, done.stderr
        results.append(json.loads((tmp_path / name / "results.json").read_text()))
    for each in results:
        for row in each["rows"]:
            row.pop("made", None)  # the command that made it
    assert results[0] == results[1]


@pytest.fixture(scope="module")
def storage() -> Iterator[dict[str, str]]:
    pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    with object_storage() as environment:
        yield environment


@pytest.fixture
def bucket(storage: dict[str, str], photographs: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket of the photographs, as this process sees it too."""
    import fsspec

    for name, value in storage.items():
        monkeypatch.setenv(name, value)
    places._find_storage.cache_clear()
    files = fsspec.filesystem("s3", skip_instance_cache=True)
    name = f"museum{time.monotonic_ns()}"
    files.mkdir(name)
    for path in photographs.rglob("[!.]*.*"):
        files.pipe_file(f"{name}/raw/{path.relative_to(photographs).as_posix()}", path.read_bytes())
    return name


def read_rows(address: str) -> list[dict[str, Any]]:
    place = Storage(address)
    parts = sorted(name for name in place.names("") if name.startswith("part-"))
    rows: list[dict[str, Any]] = []
    for part in parts:
        with place.open(part) as file:
            rows += parquet.read_table(file).to_pylist()
    return rows


def test_rows_are_the_same_from_object_storage(bucket: str, photographs: Path, result: Path) -> None:
    source, out = f"s3://{bucket}/raw", f"s3://{bucket}/result"
    done = run_command("archive", source, "-o", out, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    text = json.dumps(parquet.read_table(result).to_pylist(), default=str)
    assert json.loads(text.replace(str(photographs), source)) == json.loads(json.dumps(read_rows(out), default=str))
    told = done.stdout + done.stderr + str([Storage(out).read(name) for name in ("_archive.json",)])
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in told
    assert os.environ["AWS_ACCESS_KEY_ID"] not in told


def test_an_object_that_shrinks_while_it_is_read(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Storage(f"s3://{bucket}/raw")
    entries = Storage.entries

    def changing(self: Storage) -> Any:
        yield from list(entries(self))
        self.write("a0/000.dng", self.read("a0/000.dng")[:300])
        self.remove("a2/002.dng")

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "entries", changing)
        done = archive(source.address, str(tmp_path / "out"), here)
    assert (done.files, done.failed, done.unread) == (FILES, 4, 2)
    bad = [row for row in parquet.read_table(tmp_path / "out").to_pylist() if "same command" in (row["error"] or "")]
    assert [row["path"] for row in bad] == [source.join("a0/000.dng"), source.join("a2/002.dng")]
    done = archive(source.address, str(tmp_path / "out"), here)
    assert (done.files, done.failed, done.unread) == (FILES - 1, 3, 0)


def test_a_bucket_that_is_not_there_or_not_ours(bucket: str, tmp_path: Path) -> None:
    for source in (f"s3://{bucket}-not", f"s3://{bucket}/nothing"):
        with pytest.raises(C5Error, match="no such bucket, folder or object; check the address"):
            archive(source, str(tmp_path / "out"), here)
    with pytest.raises(C5Error, match="no such bucket"):
        archive(f"s3://{bucket}/raw", f"s3://{bucket}-not/result", here)
    forbid()
    with pytest.raises(C5Error, match="permission denied; check the credentials in the environment") as raised:
        archive(f"s3://{bucket}/raw", str(tmp_path / "out"), here)
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in str(raised.value)
    assert not (tmp_path / "out").exists()


def forbid() -> None:
    """From now on the server asks whether who comes may do what they do."""
    import urllib.request

    address = f"{os.environ['AWS_ENDPOINT_URL']}/moto-api/reset-auth"
    urllib.request.urlopen(urllib.request.Request(address, b"0", {"Content-Type": "text/plain"}, method="POST")).read()
