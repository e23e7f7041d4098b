"""What c5 puts into the configuration of other programs, and takes out of it again."""

from __future__ import annotations

import json
import os
import shlex
import sys
from importlib import resources
from pathlib import Path

from c5.errors import ReadError, WriteError
from c5.io.files import read_bytes, remove_file, write_file
from c5.io.marks import is_signed

LINE = b'require "c5"  -- written by c5 plugin darktable'


def find_darktable() -> Path:
    """The folder in which darktable keeps its configuration, if it has been started once."""
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    places = [config / "darktable", home / ".var/app/org.darktable.Darktable/config/darktable"]
    if os.name == "nt":
        places.insert(0, Path(os.environ.get("LOCALAPPDATA", home)) / "darktable")
    for place in places:
        if place.is_dir():
            return place
    raise ReadError(f"{places[0]}: no such folder; start darktable once, or name its configuration folder")


def install_darktable(folder: Path) -> list[Path]:
    """Write the script for darktable, and a line into its `luarc` that loads it. Returns what was written."""
    if not folder.is_dir():
        raise ReadError(f"{folder}: no such folder; start darktable once, or name its configuration folder")
    written = [write_file(folder / "lua" / "c5.lua", _make_script())]
    existing = _read(folder / "luarc")
    if LINE not in existing.splitlines():
        # The line ends show whether the file ended with one before.
        added = existing + (LINE + b"\n" if existing.endswith(b"\n") or not existing else b"\n" + LINE)
        written.append(write_file(folder / "luarc", added, merged=existing if existing else None))
    return written


def remove_darktable(folder: Path) -> list[Path]:
    """Remove what `install_darktable` has written, and nothing else. Returns what was removed or restored."""
    removed = []
    script, luarc = folder / "lua" / "c5.lua", folder / "luarc"
    existing = _read(luarc)
    former = existing.replace(LINE + b"\n", b"").removesuffix(b"\n" + LINE)
    if former != existing:
        if former:
            write_file(luarc, former, merged=existing)
        else:
            remove_file(luarc)
        removed.append(luarc)
    data = _read(script)
    if data and not is_signed(data, script.suffix):
        raise WriteError(f"{script}: has been changed since c5 wrote it; remove it yourself")
    if data:
        remove_file(script)
        removed.append(script)
    return removed


def _make_script() -> bytes:
    """The script, with the command that runs this installation: a desktop program may have another PATH."""
    words = [sys.executable, "-m", "c5.cli"]
    command = " ".join(f'"{word}"' for word in words) if os.name == "nt" else shlex.join(words)
    text = (resources.files("c5") / "photos" / "darktable.lua").read_text("utf-8")
    return text.replace("@COMMAND@", json.dumps(command, ensure_ascii=False)).encode()


def _read(path: Path) -> bytes:
    return read_bytes(path) if os.path.lexists(path) else b""
