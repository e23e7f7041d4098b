"""Defaults from `c5.toml`: they count where no flag is given, and what is wrong in the file is one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import command
import numpy as np
import pytest
from laws import textured


@pytest.fixture
def image(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", textured(1))
    return tmp_path / "a.npy"


def c5(config: Path | None, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a configuration; without one, it is looked for where the user's is."""
    return command.c5(*arguments, environment={"C5_CONFIG": "" if config is None else str(config), **environment})


def write(folder: Path, text: str) -> Path:
    path = folder / "c5.toml"
    path.write_text(text)
    return path


def estimate(done: subprocess.CompletedProcess[str]) -> list[float]:
    assert done.returncode == 0, done.stderr
    found: list[float] = json.loads(done.stdout)["illuminant"]
    return found


def test_the_file_gives_defaults_and_flags_win(image: Path, tmp_path: Path) -> None:
    config = write(tmp_path, '[estimate]\nmethod = "white-patch"\njson = true\nblack = 0\n')
    by_file = estimate(c5(config, "estimate", image))
    by_flag = estimate(c5(config, "estimate", image, "--method", "gray-world"))
    assert by_file == estimate(c5(Path(os.devnull), "estimate", image, "--json", "--method", "white-patch"))
    assert by_flag == estimate(c5(Path(os.devnull), "estimate", image, "--json", "--method", "gray-world"))
    assert by_file != by_flag


def test_a_flag_can_be_switched_off_in_the_file_and_on_the_command_line(image: Path, tmp_path: Path) -> None:
    on = write(tmp_path, "[estimate]\njson = true\n")
    assert c5(on, "estimate", image).stdout.startswith("{")
    by_flag = c5(on, "estimate", image, "--no-json")
    assert by_flag.returncode == 0
    off = write(tmp_path, "[estimate]\njson = false\n")
    assert c5(off, "estimate", image).stdout == by_flag.stdout
    assert c5(off, "estimate", image, "--json").stdout.startswith("{")


@pytest.mark.parametrize("arguments", ["", "--help", "--version", "estimate -h", "catalog --help"])
def test_help_works_whatever_the_file_says(tmp_path: Path, arguments: str) -> None:
    done = c5(write(tmp_path, "[estimat]\n"), *arguments.split())
    assert "estimat is no command" not in done.stderr
    assert done.stdout


def test_the_file_is_found_in_the_users_config_folder(image: Path, tmp_path: Path) -> None:
    (tmp_path / "c5").mkdir()
    write(tmp_path / "c5", "[estimate]\njson = true\n")
    done = c5(None, "estimate", image, XDG_CONFIG_HOME=str(tmp_path), HOME=str(tmp_path))
    if sys.platform == "linux":
        assert estimate(done)
    # Without a file there are no defaults.
    assert c5(None, "--version", XDG_CONFIG_HOME=str(tmp_path / "none"), HOME=str(tmp_path)).returncode == 0


def test_tables_nest_as_commands_do(tmp_path: Path) -> None:
    config = write(tmp_path, f'[catalog.status]\njson = true\ncatalog = "{tmp_path}/none.db"\n')
    done = c5(config, "catalog", "status")
    assert f"{tmp_path}/none.db: no catalog yet" in done.stderr


def test_a_list_gives_an_option_several_times_and_a_tilde_is_home(tmp_path: Path) -> None:
    config = write(
        tmp_path, '[evaluate]\nprotocol = "split"\nout = "~/out"\nmethod = ["gray-world", "magic"]\nm = [1, 3]\n'
    )
    done = c5(config, "evaluate", tmp_path, "--train", "A", "--test", "B", HOME=str(tmp_path))
    assert done.returncode == 1
    assert "no estimator is called 'magic'" in done.stderr


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[estimat]\n", "estimat is no command; there are balance, "),
        ("[catalog.ad]\n", "catalog.ad is no command; there are add"),
        ("[catalog]\nadd = 3\n", "catalog.add must be a table"),
        ("estimate = 3\n", "estimate must be a table: [estimate]"),
        ("[estimate]\nmetod = 'x'\n", "estimate.metod is no option of c5 estimate; there are roll, profile, model"),
        ("[estimate]\nas_json = true\n", "estimate.as_json is no option of c5 estimate"),
        ("[estimate]\nfiles = ['x']\n", "estimate.files is no option of c5 estimate"),
        ("[estimate]\njson = 'yes'\n", "estimate.json must be true or false, not 'yes'"),
        ("[estimate]\nthreads = true\n", "estimate.threads must be one value, not True"),
        ("[estimate]\nthreads = 'two'\n", "estimate.threads: must be a valid integer"),
        ("[estimate]\nthreads = 0\n", "estimate.threads: "),
        ("[estimate]\nmodel = ['a']\n", "estimate.model must be one value, not ['a']"),
        ("[evaluate]\nmethod = 'gray-world'\n", "evaluate.method must be a list of values, not 'gray-world'"),
        ("[evaluate]\nselection = ['odd']\n", "evaluate.selection: 'odd' is not one of 'random', "),
        ("[data.pack]\nlayout = {a = 1}\n", "data.pack.layout must be one value"),
        ("[estimate\n", "not TOML"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_file_and_key(tmp_path: Path, text: str, answer: str) -> None:
    config = write(tmp_path, text)
    done = c5(config, "methods")
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"c5: {config}: ")
    assert answer in done.stderr


def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    done = c5(tmp_path / "none.toml", "methods")
    assert done.returncode == 1
    assert f"{tmp_path / 'none.toml'}: cannot be read" in done.stderr
