"""Defaults for options from the user's `c5.toml`: a table for each command, keys named like the long options."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from c5.errors import ParameterError
from c5.io.files import config_folder, read_toml

FILE = "c5.toml"
VARIABLE = "C5_CONFIG"


def read_defaults(command: Any) -> dict[str, Any]:
    """The file's content as click's `default_map` for the command; nothing where there is no file."""
    path = find_config()
    return {} if path is None else _read_table(path, read_toml(path), command, "")


def find_config() -> Path | None:
    """The file that C5_CONFIG names, or `c5.toml` in the user's config folder if it is there.

    The null device stands for no file.
    """
    if named := os.environ.get(VARIABLE):
        return None if named == os.devnull else Path(named)
    path = config_folder() / FILE
    return path if path.is_file() else None


def _read_table(path: Path, table: dict[str, Any], command: Any, where: str) -> dict[str, Any]:
    """The defaults of a command, or those of each command of a group."""
    commands = getattr(command, "commands", None)
    known = _options(command) if commands is None else commands
    defaults = {}
    for key, value in table.items():
        if key not in known:
            what = f"no option of c5 {where.replace('.', ' ').strip()}" if commands is None else "no command"
            raise ParameterError(f"{path}: {where}{key} is {what}; there are {', '.join(known)}")
        if commands is None:
            defaults[known[key].name] = _convert(path, command, known[key], f"{where}{key}", value)
        elif isinstance(value, dict):
            defaults[key] = _read_table(path, value, commands[key], f"{where}{key}.")
        else:
            raise ParameterError(f"{path}: {where}{key} must be a table: [{where}{key}], then a line for each option")
    return defaults


def _options(command: Any) -> dict[str, Any]:
    """The options of a command by their long names."""
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    return {name.removeprefix("--"): option for option in options for name in option.opts if name.startswith("--")}


def _convert(path: Path, command: Any, option: Any, key: str, value: Any) -> Any:
    """The value as it would stand on the command line, where the option takes it."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise ParameterError(f"{path}: {key} must be true or false, not {value!r}")
        return value
    values = value if isinstance(value, list) else [value]
    if isinstance(value, list) != bool(option.multiple) or any(isinstance(item, bool | dict | list) for item in values):
        wanted = "a list of values" if option.multiple else "one value"
        raise ParameterError(f"{path}: {key} must be {wanted}, not {value!r}")
    texts = [os.path.expanduser(item) if isinstance(item, str) else str(item) for item in values]
    try:
        command.make_context(key, [part for text in texts for part in (option.opts[0], text)])
    except typer.BadParameter as error:
        if error.param is option:  # options that are given come first; what else is missing does not matter here
            raise ParameterError(f"{path}: {key}: {error.message}") from None
    return texts if option.multiple else texts[0]
