"""The plugin for darktable: installed and removed without a trace, and tried in the program itself."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from shots import LIGHTS, take
from typer.testing import CliRunner

from c5.cli.app import app
from c5.errors import C5Error
from c5.photos.sidecars import darktable

SECONDS = 300
"""What darktable may take to start and to end, on a machine that has other things to do."""

DRIVER = """
local dt = require "darktable"
local folder = os.getenv("C5_FOLDER") .. "/"
local answers = assert(io.open(folder .. "answers.part", "w"))
answers:setvbuf("no")
local ok, problem = pcall(function()
  local c5 = require "c5"
  local images = {}
  for _, name in ipairs({ "new.dng", "it's edited.dng", "damaged.dng" }) do
    table.insert(images, dt.database.import(folder .. name))
  end
  answers:write(c5.balance({ images[1], images[2] }), "\\n")
  answers:write(c5.balance({ images[3] }), "\\n")
  answers:write(c5.balance({}), "\\n")
  local script = io.open(dt.configuration.config_dir .. "/lua/c5.lua"):read("a")
  dt.gui.libs.image.destroy_action("c5_balance")
  local gone = load(script:gsub('local COMMAND = "[^\\n]*"', 'local COMMAND = "/nowhere/c5"'))()
  answers:write(gone.balance({ images[1] }), "\\n")
end)
answers:write(ok and "done" or tostring(problem), "\\n")
answers:close()
os.rename(folder .. "answers.part", folder .. "answers")
"""


def plugin(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["plugin", "darktable", *map(str, arguments)])
    if isinstance(done.exception, C5Error):
        return 1, str(done.exception)
    return done.exit_code, done.stdout


@pytest.mark.parametrize("luarc", [None, b'require "tools/script_manager"\n', b"-- no end", b"\r\nx = 1\r\n"])
def test_what_is_installed_is_removed_without_a_trace(tmp_path: Path, luarc: bytes | None) -> None:
    if luarc is not None:
        (tmp_path / "luarc").write_bytes(luarc)
    for _ in range(2):  # the second finds all as it should be
        assert plugin("--configdir", tmp_path)[0] == 0
    written = (tmp_path / "luarc").read_bytes()
    assert written.startswith(luarc or b"")
    assert written.count(b'require "c5"') == 1
    assert sys.executable in (tmp_path / "lua" / "c5.lua").read_text()
    assert plugin("--configdir", tmp_path, "--undo")[0] == 0
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == ({"luarc"} if luarc else set())
    assert luarc is None or (tmp_path / "luarc").read_bytes() == luarc
    assert "nothing to undo" in plugin("--configdir", tmp_path, "--undo")[1]


def test_scripts_of_others_stay(tmp_path: Path) -> None:
    script = tmp_path / "lua" / "c5.lua"
    script.parent.mkdir()
    script.write_text("-- mine\n")
    assert "was not written by c5" in plugin("--configdir", tmp_path)[1]
    assert not (tmp_path / "luarc").exists()
    assert "changed since" in plugin("--configdir", tmp_path, "--undo")[1]
    assert script.read_text() == "-- mine\n"
    code, said = plugin("--configdir", tmp_path / "none")
    assert code == 1
    assert "no such folder; start darktable once" in said


@pytest.mark.skipif(not (shutil.which("darktable") and shutil.which("Xvfb")), reason="darktable or Xvfb is missing")
def test_darktable_itself(tmp_path: Path) -> None:
    """A balance is one more step of the history, of what is in the library alone and of what has a sidecar."""
    config = tmp_path / "config"
    config.mkdir()
    assert plugin("--configdir", config)[0] == 0
    for name, light in (("new.dng", "lamp"), ("it's edited.dng", "shade")):
        take(tmp_path, 7, LIGHTS[light]()).path.rename(tmp_path / name)
    (tmp_path / "damaged.dng").write_bytes((tmp_path / "new.dng").read_bytes()[:20_000])
    (tmp_path / "it's edited.dng.xmp").write_bytes(darktable.set_multipliers(None, np.array([3.0, 1.0, 2.0])))
    (tmp_path / "driver.lua").write_text(DRIVER)
    ask_darktable(tmp_path)
    answers = (tmp_path / "answers").read_text().splitlines()
    assert answers[-1] == "done"
    assert re.fullmatch(r"c5: 2 of 2 balanced(, [12] uncertain)?", answers[0])
    assert answers[1].startswith("c5: 0 of 1 balanced; ")
    assert "damaged.dng: " in answers[1]
    assert answers[2] == "c5: no image is selected"
    assert answers[3].startswith("c5: 0 of 1 balanced; c5 cannot be run (exit status ")

    out = tmp_path / "out"  # what the command finds
    files = [tmp_path / "new.dng", tmp_path / "it's edited.dng"]
    found = CliRunner().invoke(app, ["balance", *map(str, files), "--darktable", "--replace-custom", "-o", str(out)])
    assert found.exit_code == 0, found.stderr
    steps = read_history(config / "library.db")
    for file in files:
        balance = bytes.fromhex(darktable.read_balance((out / f"{file.name}.xmp").read_bytes())["temperature"])
        *before, last = [params for operation, enabled, params in steps[file.name] if operation == "temperature"]
        assert last[:12] == balance
        assert [enabled for operation, enabled, _ in steps[file.name] if operation == "channelmixerrgb"][-1] == 0
        assert {"demosaic", "colorin"} <= {operation for operation, *_ in steps[file.name]}
        if file.name == "new.dng":
            assert before  # what darktable had put there is still in the history
        else:
            assert struct.pack("<3f", 3, 1, 2) in [params[:12] for params in before]
    with sqlite3.connect(config / "data.db") as styles:
        assert styles.execute("SELECT COUNT(*) FROM styles").fetchone() == (0,)


def ask_darktable(folder: Path) -> None:
    """Run the driver in a darktable with a library of its own, on a screen of its own."""
    reading, writing = os.pipe()
    screen = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1280x1024x24", "-nolisten", "tcp"],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as number:
            display = f":{number.readline().strip()}"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
        environment |= {"DISPLAY": display, "GDK_BACKEND": "x11", "HOME": str(folder), "C5_FOLDER": str(folder)}
        own = ["--configdir", str(folder / "config"), "--cachedir", str(folder / "cache")]
        own += ["--library", str(folder / "config" / "library.db"), "--disable-opencl"]
        command = f"dofile({str(folder / 'driver.lua')!r})"
        with (folder / "log").open("wb") as log:
            program = subprocess.Popen(
                ["darktable", *own, "--conf", "write_sidecar_files=never", "--luacmd", command],
                env=environment,
                stdout=log,
                stderr=log,
            )
        try:
            deadline = time.monotonic() + SECONDS
            while not (folder / "answers").exists():
                assert program.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, [path.read_text() for path in folder.glob("[al]*[tg]")]
                time.sleep(0.2)
        finally:
            program.terminate()
            try:
                program.wait(20)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
    finally:
        screen.terminate()
        screen.wait()


def read_history(library: Path) -> dict[str, list[tuple[str, int, bytes]]]:
    """The steps of each image: operation, whether it is on, parameters."""
    steps: dict[str, list[tuple[str, int, bytes]]] = {}
    query = "SELECT filename, operation, enabled, op_params FROM history JOIN images ON imgid = id ORDER BY imgid, num"
    with sqlite3.connect(library) as connection:
        for name, *step in connection.execute(query):
            steps.setdefault(name, []).append((step[0], step[1], step[2]))
    return steps
