"""`c5 watch` as a process of its own, while files are copied into its folder."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from typer.testing import CliRunner

from c5.cli.app import app
from c5.cli.balance import OUTPUT_FLAGS, balance, make_settings
from c5.cli.watch import watch
from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import Layout, write_dng

EVERY = 0.4


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("card")
    rng = np.random.default_rng(0)
    camera = VirtualCamera.random(rng)
    photos = render_roll(camera, 5, rng, (64, 96))
    return [write_dng(folder / f"{index}.dng", photo, camera, Layout()) for index, photo in enumerate(photos)]


class Watching:
    """A running command and what it has said."""

    def __init__(self, folder: Path, home: Path, *options: str) -> None:
        self.log = home / "log"
        self.folder = folder
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "c5.cli", "watch", str(folder), "--xmp", "--every", str(EVERY), *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | {"HOME": str(home), "XDG_DATA_HOME": str(home), "XDG_CONFIG_HOME": str(home)},
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    def wait(self, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not is_done():
            assert time.monotonic() < deadline, self.said
            assert self.process.poll() is None, self.said
            time.sleep(0.05)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(20)


@contextmanager
def watching(folder: Path, home: Path, *options: str) -> Iterator[Watching]:
    home.mkdir(exist_ok=True)
    watch = Watching(folder, home, *options)
    try:
        watch.wait(lambda: "watching" in watch.said)
        yield watch
    finally:
        watch.process.kill()
        watch.process.wait()


def test_what_is_copied_slowly_is_balanced_once_and_a_restart_goes_on(card: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "import"
    folder.mkdir()
    shutil.copy(card[0], folder)
    with watching(folder, tmp_path / "home", "--strength", "0.5") as watch:
        content = card[1].read_bytes()
        with (folder / "1.dng").open("wb") as file:
            for start in range(0, len(content), len(content) // 5):
                file.write(content[start : start + len(content) // 5])
                file.flush()
                time.sleep(0.1)
        (folder / "sub").mkdir()
        shutil.copy(card[2], folder / "sub")
        (folder / "bad.dng").write_bytes(content[:2000])
        wanted = [folder / "0.xmp", folder / "1.xmp", folder / "sub" / "2.xmp"]
        watch.wait(lambda: all(path.exists() for path in wanted) and "bad.dng" in watch.said)
        time.sleep(3 * EVERY)
        assert watch.stop() == 1  # for the bad one
    for path in wanted:
        assert watch.said.count(f"{path}\n") == 1
    assert watch.said.count("bad.dng") == 1  # incomplete files were not tried meanwhile
    assert "1.dng: damaged" not in watch.said
    assert re.search(r"3 written, 0 already there, \d uncertain, 1 failed", watch.said)
    assert "strength 0.5" in watch.said
    assert "Traceback" not in watch.said
    (folder / "bad.dng").unlink()
    times = {path: path.stat().st_mtime_ns for path in wanted}
    with watching(folder, tmp_path / "home") as watch:
        shutil.copy(card[3], folder)
        watch.wait(lambda: (folder / "3.xmp").exists())
        assert watch.stop() == 0
    assert re.search(r"1 written, 3 already there, \d uncertain, 0 failed", watch.said)
    assert {path: path.stat().st_mtime_ns for path in wanted} == times


def test_a_folder_that_vanishes_is_one_line_and_is_watched_again_when_it_is_back(
    card: list[Path], tmp_path: Path
) -> None:
    folder, out = tmp_path / "import", tmp_path / "out"
    folder.mkdir()
    with watching(folder, tmp_path / "home", "--out", str(out)) as watch:
        folder.rename(tmp_path / "away")
        watch.wait(lambda: "is gone" in watch.said)
        time.sleep(3 * EVERY)
        (tmp_path / "away").rename(folder)
        (folder / "day").mkdir()
        shutil.copy(card[4], folder / "day")
        watch.wait((out / "day" / "4.xmp").exists)
        assert watch.stop() == 0
    assert watch.said.count("is gone") == 1
    assert "is back" in watch.said


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["import"], "say what is to be written: --preview, --png, --xmp"),
        (["none", "--xmp"], "none: no such folder"),
        (["import", "--dng"], "--dng makes copies: give --out DIR"),
        (["import", "--dng", "--out", "import/copies"], "import/copies: is in a folder that is watched"),
        (["import", "--xmp", "--learned"], "no look is learned yet"),
        (["import", "--xmp", "--sets"], "--sets"),
        (["import", "--xmp", "--groups", "groups.csv"], "--groups"),
    ],
)
def test_what_cannot_be_watched_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], answer: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("c5.photos.learning.config_folder", lambda: tmp_path)
    (tmp_path / "import").mkdir()
    ran = CliRunner().invoke(app, ["watch", *arguments])
    assert ran.exit_code != 0
    assert answer in str(ran.exception) + ran.output


def test_whatever_watch_offers_of_balance_is_honored() -> None:
    """By the settings, the looks, the outputs or the catalog: nothing else of `c5 balance` is offered."""
    offered = inspect.signature(watch).parameters.keys() & inspect.signature(balance).parameters.keys()
    seen: set[str] = set()

    class Options(dict[str, object]):
        def __getitem__(self, name: str) -> object:
            seen.add(name)
            return super().__getitem__(name)

    defaults = {name: each.default for name, each in inspect.signature(balance).parameters.items()}
    context = Mock(params=Options(defaults))
    context.get_parameter_source.side_effect = lambda name: seen.add(name)
    make_settings(context, None, {})
    assert {"smooth", "strength", "fallback", "camera"} <= seen
    assert offered - seen - OUTPUT_FLAGS.keys() == {"out", "catalog", "ctx"}
