"""A small rendered wedding, opened in a studio."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from c5.demo.shoots import TRUTH, write_shoot
from c5.io.versions import digest_file
from c5.model import load_model
from c5.photos.balancing import Settings
from c5.photos.outputs import BUILT_IN
from c5.studio.session import Session

SIDECARS = {name: output for name, output in BUILT_IN.items() if output.form is not None}
COUNT = 12


def render(folder: Path, count: int = COUNT, size: tuple[int, int] = (96, 144)) -> Path:
    """Photographs of four lights and two cameras, and nothing else."""
    write_shoot(folder, "wedding", count, np.random.default_rng(15), size)
    (folder / TRUTH).unlink()
    return folder


def open_settings(stack: ExitStack) -> Settings:
    return Settings(load_model())


@contextmanager
def studio(folder: Path, home: Path, *, wait: bool = True, **options: Any) -> Iterator[Session]:
    """An open shoot whose lights are known, with a home of its own. No photograph may change."""
    before = digest_all(folder)
    session = Session(folder, open_settings, SIDECARS, journal=home / "journal", cache=home / "cache.db", **options)
    try:
        if wait:
            wait_for(lambda: not session.tell()["work"] and session.tell()["grouped"])
        yield session
    finally:
        session.close()
        if folder.is_dir():
            after = digest_all(folder)
            assert {name: after.get(name) for name in before} == before


def digest_all(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*.dng") if path.is_file() and not path.is_symlink()]
    return {path.name: digest_file(os.fsencode(path))[1] for path in paths}


def wait_for(holds: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def rows(session: Session) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in session.tell()["photos"]}


def copy(shoot: Path, to: Path) -> Path:
    return Path(shutil.copytree(shoot, to))
