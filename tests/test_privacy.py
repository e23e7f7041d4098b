"""Our own bugs are no damaged files, and nothing leaves the machine or is left on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from laws import textured

from c5.photos.catalog import Catalog

NO_SOCKETS = """
import os, sys

def watch(event, arguments):
    if event.startswith("socket."):
        os.write(2, f"{event}: a socket was opened".encode())
        os._exit(99)

sys.addaudithook(watch)
"""


def write_photograph(path: Path) -> Path:
    path.write_bytes(imagecodecs.png_encode(np.rint(textured(1, 40, 60) * 60000).astype(np.uint16)))
    return path


def test_an_estimate_opens_no_socket_and_leaves_no_file(tmp_path: Path) -> None:
    home, photograph = tmp_path / "home", write_photograph(tmp_path / "photograph.png")
    home.mkdir()
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text(NO_SOCKETS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    paths = [str(tmp_path / "hooks"), os.environ.get("PYTHONPATH", "")]
    environment = kept | {"HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    library = "import sys, c5; print(c5.load_model().estimate(sys.argv[1]).gains)"
    for program in (["-m", "c5.cli", "estimate"], ["-c", library]):
        done = subprocess.run(
            [sys.executable, *program, str(photograph)], env=environment, capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    assert [str(path) for path in home.rglob("*")] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "hooks", "photograph.png"]


def test_a_bug_of_ours_is_raised_and_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "photographs").mkdir()
    write_photograph(tmp_path / "photographs" / "a.png")

    def broken(*arguments: object) -> None:
        raise KeyError("a bug")

    with Catalog.open(tmp_path / "catalog.db") as catalog:
        monkeypatch.setattr("c5.photos.photo.histogram", broken)
        with pytest.raises(KeyError, match="a bug"):
            catalog.add([tmp_path / "photographs"])
        assert catalog.failures() == []
        monkeypatch.undo()
        assert catalog.add([tmp_path / "photographs"]).new == 1
