"""Raw files are decoded in processes of their own: whatever happens there costs one file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dng_files import camera, damage, numbers

from c5.demo.raw_files import Layout, encode_dng
from c5.errors import ReadError
from c5.io import worker
from c5.io.mosaic import Task
from c5.io.raw import read_photograph
from c5.parallel import in_parallel

DNG = encode_dng(numbers(1, 60, 80), camera(), Layout())

UNRULY = '''
"""A LibRaw that does what the last word of a file says."""
import os, time

libraw_version = (0, 0, 0)

class LibRawFileUnsupportedError(Exception):
    pass

class RawPy:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def open_file(self, path):
        with open(path, "rb") as file:
            word = file.read().rsplit(b" ", 1)[-1]
        if word == b"crash":
            os.write(2, b"free(): invalid pointer\\n")
            os.abort()
        if word == b"hang":
            while True:
                time.sleep(1)
        if word == b"grow":
            self.memory = [bytes(1 << 28) + b"." for _ in range(100)]
        if word == b"talk":
            for _ in range(1000):
                os.write(2, b"unknown file: data corrupted at 77 \\x1b[31m\\n" * 1000)
            os.write(1, b"this is no answer")
        raise RuntimeError("LibRaw did not like it")
'''


@pytest.fixture
def unruly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder; workers that start from now on have another LibRaw."""
    (tmp_path / "libraries").mkdir()
    (tmp_path / "libraries" / "rawpy.py").write_text(UNRULY)
    worker.close_workers()
    monkeypatch.syspath_prepend(tmp_path / "libraries")
    yield tmp_path
    worker.close_workers()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for_end(pid: int, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_alive(pid)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("crash", r"a\.dng: LibRaw crashed on it \(exit status -6\) \(LibRaw: free\(\): invalid pointer\); copy it"),
        ("hang", r"a\.dng: LibRaw was stopped after 1 seconds; copy it again"),
        ("grow", r"a\.dng: it needs more memory than a photograph does"),
        ("talk", r"a\.dng: damaged or incomplete: .*LibRaw: data corrupted at 77"),
    ],
)
def test_an_unruly_library_costs_one_file(
    unruly: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], word: str, message: str
) -> None:
    if word == "hang":
        monkeypatch.setattr(worker, "LIMIT_SECONDS", 1.0)
    path = unruly / "a.dng"
    for _ in range(2):
        path.write_bytes(DNG + b" " + word.encode())
        with pytest.raises(ReadError, match=message) as error:
            read_photograph(path)
        assert str(error.value).isprintable()
        path.write_bytes(DNG + b" nothing")
        with pytest.raises(ReadError, match="did not like it"):  # the next file gets an answer of its own
            read_photograph(path)
    assert capfd.readouterr() == ("", "")


def test_one_bad_file_does_not_disturb_its_neighbors(unruly: Path) -> None:
    words = ["crash", "nothing", "talk", "crash", "nothing", "nothing"] * 3
    paths = [unruly / f"{index}.dng" for index in range(len(words))]
    for path, word in zip(paths, words, strict=True):
        path.write_bytes(DNG + b" " + word.encode())

    def read(path: Path) -> str:
        with pytest.raises(ReadError) as error:
            read_photograph(path)
        return str(error.value)

    for (path, message), word in zip(in_parallel(read, paths, jobs=3), words, strict=True):
        assert message.startswith(f"{path}: ")
        assert ("crashed" in message) == (word == "crash")


def test_the_words_of_libraw_are_part_of_the_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = encode_dng(numbers(1, 120, 160), camera(), Layout())
    (tmp_path / "a.dng").write_bytes(data[:-9000])
    with pytest.raises(ReadError, match=r"a\.dng: damaged or incomplete: .*LibRaw: Unexpected end of file"):
        read_photograph(tmp_path / "a.dng")
    assert capfd.readouterr() == ("", "")


def test_workers_are_kept_and_no_more_than_there_are_readers(tmp_path: Path) -> None:
    (tmp_path / "a.dng").write_bytes(DNG)
    worker.close_workers()
    read_photograph(tmp_path / "a.dng")
    first = [one.process.pid for one in worker._idle]
    read_photograph(tmp_path / "a.dng")
    assert [one.process.pid for one in worker._idle] == first
    assert len(list(in_parallel(read_photograph, [tmp_path / "a.dng"] * 40, jobs=3))) == 40
    assert 1 <= len(worker._idle) <= 3
    assert "unlimited" not in Path(f"/proc/{first[0]}/limits").read_text().split("Max address space")[1][:30]
    pids = [one.process.pid for one in worker._idle]
    worker.close_workers()
    assert not any(is_alive(pid) for pid in pids)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("busy", [True, False])
def test_workers_end_with_their_parent(unruly: Path, end: signal.Signals, busy: bool) -> None:
    (unruly / "a.dng").write_bytes(DNG + (b" hang" if busy else b" nothing"))
    code = """
import sys, threading, time, c5
from c5.io import worker
sys.path.insert(0, sys.argv[1])
started = []
start = worker._Worker.__init__
def note(self):
    start(self)
    print(self.process.pid, flush=True)
worker._Worker.__init__ = note
try:
    c5.read_photograph(sys.argv[2])
except c5.C5Error:
    pass
time.sleep(100)
"""
    command = [sys.executable, "-c", code, str(unruly / "libraries"), str(unruly / "a.dng")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        time.sleep(0.3)
        assert is_alive(pid)
        parent.send_signal(end)
        parent.wait(10)
    assert wait_for_end(pid)


def test_a_fork_has_workers_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.dng").write_bytes(DNG)
    code = """
import os, sys, c5
expected = c5.read_photograph(sys.argv[1]).image.rgb
child = os.fork()
for _ in range(20):
    assert (c5.read_photograph(sys.argv[1]).image.rgb == expected).all()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.dng")], check=True, timeout=60)


def test_a_damaged_file_gives_the_same_picture_every_time(tmp_path: Path) -> None:
    """LibRaw leaves unset what a damaged file does not fill."""
    whole = encode_dng(numbers(1, 240, 362), camera(), Layout(lossless_jpeg=True))
    other = tmp_path / "other.dng"
    other.write_bytes(encode_dng(numbers(2, 240, 362), camera(), Layout()))
    rng = np.random.default_rng(5)
    pictures = 0
    for index in range(100):
        path = tmp_path / f"{index}.dng"
        path.write_bytes(damage(whole, rng))
        try:
            first = read_photograph(path).image.rgb
        except ReadError:
            continue
        except ValueError:
            continue
        pictures += 1
        read_photograph(other)  # leaves its numbers in memory that is used again
        for _ in range(2):
            np.testing.assert_array_equal(read_photograph(path).image.rgb, first)
    assert pictures > 20


@pytest.mark.parametrize("name", [b"caf\xe9.dng", b"new\nline.dng", b"\x1b[31mred.dng", b"-dash.dng"])
def test_any_name_that_the_system_allows(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(DNG)
    assert read_photograph(path).image.source == str(path)


def test_a_relative_path_is_that_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.dng").write_bytes(DNG)
    (tmp_path / "folder").mkdir()
    read_photograph(tmp_path / "a.dng")  # starts a worker somewhere else
    monkeypatch.chdir(tmp_path / "folder")
    assert read_photograph("../a.dng").size == (60, 80)


def test_bugs_of_ours_are_raised_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.dng"
    path.write_bytes(DNG)
    planted = dict[str, int]()
    for function in ("_camera_name", "_matrices", "_as_shot", "_read_tags"):
        with monkeypatch.context() as patch:
            patch.setattr(f"c5.io.raw.{function}", lambda *_: planted["bug"])
            with pytest.raises(KeyError, match="bug"):
                read_photograph(path)
    for function in ("_find_mosaic", "_average", "_time"):
        with monkeypatch.context() as patch:
            patch.setattr(f"c5.io.mosaic.{function}", lambda *_: planted["bug"])
            # As in a worker, which would not see the patch; then as in its parent.
            fields, _ = worker._answer(Task(str(path), True, False, 0, None, 1000), lambda photosites: None)
            error = worker._rebuild(fields["raised"], fields["message"], fields["traceback"], "")
            assert isinstance(error, KeyError)
            assert "lambda" in error.__notes__[0]  # where it happened
