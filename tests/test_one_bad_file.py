"""One bad file never stops the others, whatever it is and whatever is done with them."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from command import c5
from dng_files import camera, numbers
from laws import textured
from test_readers import chunk, png, zeros

from c5.demo.raw_files import Layout, encode_dng
from c5.errors import ReadError
from c5.io.raw import read_photograph
from c5.io.versions import digest_file
from c5.photos.catalog import Catalog


def npy(header: str) -> bytes:
    packed = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(packed)) + packed


DNG = encode_dng(numbers(1, 60, 80), camera(), Layout())
EXCESS = png(4, 4, zeros(4 * 25 + 500))  # libpng has something to say about it
BAD: dict[str, bytes] = {
    "cut.dng": DNG[:-4000],
    "cut.nef": DNG[:300],
    "empty.dng": b"",
    "foreign.cr3": b"\0\0\0\x18ftypcrx " + bytes(100),
    "token.npy": npy("{'descr': '<f4', 'shape': (1, 2"),
    "syntax.npy": npy("{'descr': '<f4', 'shape': (1, 2)) 3"),
    "void.npy": npy("{'descr': '|V0', 'fortran_order': False, 'shape': (10000, 10000, 1000000000)}"),
    "true.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (True, 2, 3)}") + bytes(24),
    "nan.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 3)}") + b"\0\0\xc0\x7f" * 3,
    "large.tif": b"II*\0\x08\0\0\0\xff\xff" + bytes(100),
    "excess.png": EXCESS,
    "text.png": b"hello",
    "bad\nname\x1b[31m.png": png(4, 4, b"", chunk(b"IDAT", b"x")),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two photographs, files that are none, and a pipe."""
    folder = tmp_path_factory.mktemp("photographs")
    pixels = np.rint(textured(1, 40, 60) * 60000).astype(np.uint16)
    (folder / "good a.png").write_bytes(imagecodecs.png_encode(pixels))
    (folder / "z good.dng").write_bytes(DNG)
    for name, data in BAD.items():
        (folder / name).write_bytes(data)
    os.mkfifo(folder / "pipe.dng")
    names = [f"{name},A,0.5,0.7,0.4" for name in (*BAD, "good a.png", "pipe.dng", "z good.dng") if "\n" not in name]
    (folder / "manifest.csv").write_text("\n".join(["path,camera,r,g,b", *names]) + "\n")
    return folder


@pytest.mark.parametrize("command", ["estimate", "balance", "catalog", "check", "pack"])
def test_one_bad_file_stops_no_command(folder: Path, tmp_path: Path, command: str) -> None:
    files = sorted(path for path in folder.iterdir() if path.name != "manifest.csv")
    arguments: dict[str, list[object]] = {
        "estimate": ["estimate", "--json", *files],
        "balance": ["balance", *files],
        "catalog": ["catalog", "add", folder, "--catalog", tmp_path / "c.db"],
        "check": ["data", "check", folder],
        "pack": ["data", "pack", folder, "-o", tmp_path / "x.c5data"],
    }
    home = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"), str(tmp_path))
    done = c5(*arguments[command], environment=home)
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert done.returncode in (0, 1), said
    ours = re.sub(r"\(LibRaw: [^)]*\)|unknown to LibRaw [\d.]+", "", said)
    assert not re.search("LibRaw|libpng|PNG warning|Input/output|Unexpected end of file$", ours), said
    if command == "estimate":
        assert [("good" in line, "illuminant" in line) for line in done.stdout.splitlines()] == [(True, True)] * 2
    if command == "balance":
        assert sum("good" in line and "damaged" not in line for line in done.stdout.splitlines()) == 2, said
    if command == "catalog":
        with Catalog.open(tmp_path / "c.db") as catalog:
            assert sum(status.images for status in catalog.status()) == 2
            assert len(catalog.failures()) == len(BAD)
    if command == "pack":
        assert (tmp_path / "x.c5data").exists(), said


def test_words_of_libraw_are_kept_in_a_process_without_workers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.dng").write_bytes(DNG[:-4000])
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(ReadError, match="damaged or incomplete"):
        read_photograph(tmp_path / "a.dng")
    assert capfd.readouterr() == ("", "")


def test_words_of_libpng_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(EXCESS)
    code = "import sys, c5; print(c5.read_image(sys.argv[1]).rgb.shape)"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.png"], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("(4, 4, 3)\n", "")


def test_a_pipe_has_no_digest(folder: Path) -> None:
    with pytest.raises(OSError, match="a pipe"):
        digest_file(os.fsencode(folder / "pipe.dng"))


def test_an_error_of_the_system_in_our_own_code_is_no_damaged_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from c5.histograms import Grid
    from c5.photos.photo import read_photo

    def broken(*_: object) -> None:
        raise FileNotFoundError("a file of ours")

    monkeypatch.setattr("c5.photos.photo.histogram", broken)
    with pytest.raises(FileNotFoundError):
        read_photo(folder / "good a.png", Grid())
