"""`c5 archive`: the same rows on any workers, each file once whatever is killed, and one line for whatever is wrong."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import c5
from c5.archive import ranges
from c5.archive.archiving import archive
from c5.archive.places import Folder, StoredFile
from c5.archive.shards import MOST, cut
from c5.archive.stages import Candidate, first_distinct
from c5.color import gains
from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import Layout, encode_dng, write_dng
from c5.errors import C5Error, ReadError, WorkerError, WriteError
from c5.io.versions import digest_file
from c5.photos.balancing import Balance, balance
from c5.photos.files import Failure
from c5.photos.photo import read_photo

parquet = pytest.importorskip("pyarrow.parquet")

FILES = 66
"""In the archive: photographs of two cameras, and two that cannot be read."""


def here(function: Any, items: Any) -> Any:
    """Tasks one after the other, in this process."""
    return ((item, function(item)) for item in items)


def backwards(function: Any, items: Any) -> Any:
    """The same, the last first."""
    tasks = list(items)
    done = [function(task) for task in reversed(tasks)]
    return (pair for pair in zip(tasks, reversed(done), strict=True))


@pytest.fixture(scope="session")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    rng = np.random.default_rng(3)
    for letter in "ab":
        camera = VirtualCamera.random(rng)
        for index, photo in enumerate(render_roll(camera, FILES // 2 - 1, rng, (24, 36))):
            path = folder / f"{letter}{index % 5}" / f"{index:03d}.dng"
            write_dng(path, photo, camera, Layout(time=datetime(2025, 1, 1) + timedelta(minutes=index)))
    whole = next(folder.glob("a0/*.dng")).read_bytes()
    (folder / "a1/damaged.dng").write_bytes(whole[:600])
    (folder / "b1/empty.nef").write_bytes(b"")
    (folder / "b1/preview.jpg").write_bytes(b"\xff\xd8\xff")
    (folder / ".trash").mkdir()
    (folder / ".trash/gone.dng").write_bytes(whole)
    return folder


@pytest.fixture(scope="session")
def result(photographs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive, done once in this process."""
    place = tmp_path_factory.mktemp("result") / "out"
    done = archive(str(photographs), str(place), here)
    assert done[:4] == (FILES, 2, 0, 2)
    return place


def rows(place: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(place).to_pylist()
    return found


def content(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.glob("part-*")}


def test_rows_are_those_of_balance(photographs: Path, result: Path) -> None:
    found = {row["path"]: row for row in rows(result)}
    assert list(found) == sorted(found)
    paths = sorted(path for path in photographs.rglob("*.[dn][ne][gf]") if ".trash" not in path.parts)
    assert [Path(path) for path in found] == paths
    for one in balance(paths):
        row = found[str(one.path)]
        if isinstance(one, Failure):
            assert row["error"] == one.message
            assert row["illuminant_r"] is None
            continue
        assert isinstance(one, Balance)
        temperature = one.photo.temperature(one.illuminant)
        assert temperature is not None
        assert [row[f"illuminant_{letter}"] for letter in "rgb"] == one.illuminant.tolist()
        assert [row[f"gains_{letter}"] for letter in "rgb"] == gains(one.illuminant).tolist()
        assert (row["kelvin"], row["tint"]) == (temperature.kelvin, temperature.tint)
        assert (row["uncertainty_deg"], row["uncertain"]) == (one.uncertainty, one.uncertain)
        assert (row["camera"], row["time"], row["roll"]) == (one.photo.camera, one.photo.time, one.roll.size)
        assert row["histogram_key"] == c5.load_model().grid.key


def test_order_and_workers_change_no_bit(photographs: Path, result: Path, tmp_path: Path) -> None:
    archive(str(photographs), str(tmp_path / "out"), backwards)
    assert content(tmp_path / "out") == content(result)
    done = run_command("archive", photographs, "-o", tmp_path / "two", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert "66 photographs of 2 cameras in 1 part, 2 failed" in done.stdout
    assert content(tmp_path / "two") == content(result)
    assert "nothing has changed" not in done.stdout
    again = run_command("archive", photographs, "-o", tmp_path / "two", "--jobs", "2")
    assert "nothing has changed since the last run" in " ".join(again.stdout.split())


def test_only_what_is_new_is_read_again(photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, place = Path(shutil.copytree(photographs, tmp_path / "source")), str(tmp_path / "out")
    read: list[str] = []
    borrow = Folder.borrow

    def noting(self: Folder, entry: StoredFile) -> Any:
        read.append(entry.path)
        return borrow(self, entry)

    monkeypatch.setattr(Folder, "borrow", noting)
    archive(str(source), place, here)
    assert len(read) == len(set(read)) == FILES
    read.clear()
    archive(str(source), place, here)
    assert not read
    shutil.copy(source / "a0/000.dng", source / "a0/new.dng")
    (source / "b4/004.dng").unlink()
    done = archive(str(source), place, here)
    assert done.files == FILES
    assert len(read) < FILES
    archive(str(source), str(tmp_path / "fresh"), here)
    assert rows(tmp_path / "out") == rows(tmp_path / "fresh")
    assert len(list((tmp_path / "out/_work/counted").iterdir())) == len(
        list((tmp_path / "fresh/_work/counted").iterdir())
    )


def test_shards_stay_when_a_file_comes() -> None:
    entries = [StoredFile(f"{index // 100}/{index:06d}.dng", index, "1") for index in range(5000)]
    before = list(cut(entries, "made"))
    assert [entry for shard in before for entry in shard.entries] == entries
    assert max(len(shard.entries) for shard in before) <= MOST
    after = list(cut([*entries[:2000], StoredFile("20/new.dng", 1, "1"), *entries[2000:]], "made"))
    assert len({shard.name for shard in after} - {shard.name for shard in before}) <= 4


def test_a_roll_is_drawn_the_same_from_any_shards() -> None:
    rng = np.random.default_rng(0)
    candidates = [Candidate(bytes(rng.integers(0, 3, 5)), f"{index:04d}", 0) for index in rng.permutation(500)]
    at_once = first_distinct([], candidates)
    drawn: list[Candidate] = []
    for start in range(0, 500, 7):
        drawn = first_distinct(drawn, reversed(candidates[start : start + 7]))
    assert drawn == at_once
    assert len({candidate.digest for candidate in drawn}) == len(drawn) == 40


class Stop(BaseException):
    """As a kill would end the process, at this moment."""


@pytest.mark.parametrize("fatal", [1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 14])
def test_stopped_at_any_write_the_same_call_goes_on(
    photographs: Path, result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: int
) -> None:
    """The n-th change of the result never happens."""
    place, left = tmp_path / "out", [fatal]

    def stopping(change: Any) -> Any:
        def do(*arguments: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                raise Stop
            return change(*arguments)

        return do

    with monkeypatch.context() as patched:
        for name in ("write", "move", "remove"):
            patched.setattr(Folder, name, stopping(getattr(Folder, name)))
        with pytest.raises(Stop):
            archive(str(photographs), str(place), here)
    assert not list(place.glob("part-*")) or json.loads((place / "_archive.json").read_text())["complete"] is None
    archive(str(photographs), str(place), here)
    assert content(place) == content(result)


def test_killed_commands_go_on(photographs: Path, result: Path, tmp_path: Path) -> None:
    kill_and_finish(photographs, tmp_path / "out", kills=int(os.environ.get("C5_KILLS", "3")))
    assert content(tmp_path / "out") == content(result)


def kill_and_finish(photographs: Path, place: Path, kills: int, *more: str) -> None:
    """kill -9 at moments over the whole run, then let it finish."""
    rng = np.random.default_rng(1)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "c5.cli",
        "archive",
        photographs,
        "-o",
        place,
        *(more or ("--jobs", "2")),
    ]
    for _ in range(kills):
        before = len(list(place.rglob("*.parquet")))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            end = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < end:
                if len(list(place.rglob("*.parquet"))) > before:  # it has got somewhere
                    time.sleep(rng.uniform(0, 0.3))
                    break
                time.sleep(0.02)
            process.kill()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_worker_that_is_killed_is_told_in_a_line(photographs: Path, result: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    command: list[str | Path] = [sys.executable, "-m", "c5.cli", "archive", photographs, "-o", place, "--jobs", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(place.rglob("counted/*.parquet")):
            time.sleep(0.02)
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for worker in workers:
            if b"spawn_main" in Path(f"/proc/{worker}/cmdline").read_bytes():
                os.kill(int(worker), signal.SIGKILL)
        said = process.communicate()[1]
    assert process.returncode == 1
    assert said.splitlines()[-1].startswith("c5: a process that worked for this one was killed")
    archive(str(photographs), str(place), here)
    assert content(place) == content(result)


def run_command(*arguments: Any, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "c5.cli", *map(str, arguments)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


# What is wrong is told in a line.


def test_what_is_somebody_elses_stays(photographs: Path, result: Path, tmp_path: Path) -> None:
    (tmp_path / "part-00000.parquet").write_bytes(b"theirs")
    with pytest.raises(WriteError, match="holds something else"):
        archive(str(photographs), str(tmp_path), here)
    assert (tmp_path / "part-00000.parquet").read_bytes() == b"theirs"
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(WriteError, match="holds the archive of"):
        archive(str(photographs / "a0"), str(result), here)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nowhere", "no such folder"),
        ("s3://key:secret@bucket/x", "credentials do not belong"),
        ("what://bucket/x", "not a storage that fsspec knows"),
    ],
)
def test_a_source_that_cannot_be(tmp_path: Path, source: str, said: str) -> None:
    with pytest.raises(C5Error, match=said) as raised:
        archive(source, str(tmp_path / "out"), here)
    assert "secret" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_an_empty_source(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ReadError, match="no photographs below it"):
        archive(str(tmp_path / "in"), str(tmp_path / "out"), here)
    assert not (tmp_path / "out").exists()


def test_files_that_change_under_way_are_rows_and_are_read_next_time(
    photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(shutil.copytree(photographs, tmp_path / "source"))
    entries = Folder.entries

    def changing(self: Folder) -> Iterator[StoredFile]:
        yield from list(entries(self))
        os.truncate(source / "a0/000.dng", 300)
        (source / "a2/002.dng").unlink()

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "entries", changing)
        done = archive(str(source), str(tmp_path / "out"), here)
    assert (done.files, done.unread) == (FILES, 2)
    bad = [row for row in rows(tmp_path / "out") if row["error"] and "run the same command again" in row["error"]]
    assert [row["path"] for row in bad] == [str(source / "a0/000.dng"), str(source / "a2/002.dng")]
    done = archive(str(source), str(tmp_path / "out"), here)
    assert (done.files, done.failed, done.unread) == (FILES - 1, 3, 0)


def test_a_worker_that_does_not_see_the_result(photographs: Path, tmp_path: Path) -> None:
    def elsewhere(function: Any, items: Any) -> Any:
        for model in (tmp_path / "out/_work").glob("*.c5"):
            model.unlink()
        return here(function, items)

    with pytest.raises(WorkerError, match="a folder that all machines share"):
        archive(str(photographs), str(tmp_path / "out"), elsewhere)


@pytest.mark.parametrize(
    ("library", "command", "said"),
    [
        ("pyarrow", ["in", "-o", "out"], "needs pyarrow: run pip install 'c5-awb[archive]'"),
        ("fsspec", ["s3://bucket", "-o", "out"], "needs fsspec: run pip install 'c5-awb[archive]'"),
        ("ray", ["in", "-o", "out", "--ray", "auto"], "needs Ray: run pip install 'c5-awb[ray]'"),
    ],
)
def test_libraries_that_are_not_installed(tmp_path: Path, library: str, command: list[str], said: str) -> None:
    (tmp_path / "in").mkdir()
    code = f"import sys; sys.modules[{library!r}] = None; from c5.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "archive", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


# Object storage.


def test_a_copy_has_no_bytes_of_previews(tmp_path: Path) -> None:
    """The same photograph from a copy with holes, and fewer bytes than the file has."""
    rng = np.random.default_rng(5)
    camera = VirtualCamera.random(rng)
    (photo,) = render_roll(camera, 1, rng, (256, 384))
    data = add_preview(encode_dng(photo.raw, camera, Layout()), rng.bytes(1_000_000))
    whole, copy = tmp_path / "whole.dng", tmp_path / "copy.dng"
    whole.write_bytes(data)
    fetched = ranges.fetch(copy, len(data), lambda start, end: data[start:end])
    assert fetched < len(data) - 500_000
    model = c5.load_model()
    one, two = read_photo(whole, model.grid), read_photo(copy, model.grid)
    assert not isinstance(one, Failure)
    assert not isinstance(two, Failure)
    assert one.histograms is not None
    assert two.histograms is not None
    assert one.histograms.pack() == two.histograms.pack()
    assert digest_file(os.fsencode(whole))[1] == digest_file(os.fsencode(copy))[1]


def test_an_object_that_shrinks_between_two_requests(tmp_path: Path) -> None:
    data = np.random.default_rng(0).bytes(10 * ranges.BLOCK)
    asked = []

    def read(start: int, end: int) -> bytes:
        asked.append(start)
        return data[start:end][: None if len(asked) == 1 else -1]

    with pytest.raises(ReadError, match="has changed or is gone since it was listed; run the same command again"):
        ranges.fetch(tmp_path / "copy.dng", len(data), read)
    assert len(asked) == 2


def add_preview(dng: bytes, pixels: bytes) -> bytes:
    """A DNG whose first directory is a preview, and its raw picture one below, as most cameras write them."""
    import tifffile

    with tifffile.TiffFile(io.BytesIO(dng)) as file:
        page: Any = file.pages[0]
        raw = page.asarray()
        tags = [
            (tag.code, int(tag.dtype), tag.count, tag.value, True)
            for tag in page.tags
            if tag.code >= 33421 or tag.code in (271, 272)
        ]
    buffer = io.BytesIO()
    with tifffile.TiffWriter(buffer) as out:
        small = np.frombuffer(pixels[: 500 * 600 * 3], np.uint8).reshape(500, 600, 3)
        out.write(small, photometric="rgb", subfiletype=1, subifds=1, extratags=tags, metadata=None, rowsperstrip=500)
        out.write(raw, photometric=32803, subfiletype=0, extratags=tags, metadata=None, rowsperstrip=len(raw))
    return buffer.getvalue()
