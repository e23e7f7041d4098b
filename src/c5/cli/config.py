"""The user's `c5.toml`: a table of defaults for each command, with keys named like the long options, and looks for
cameras and folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from c5.cli.options import LOOKS
from c5.errors import ParameterError
from c5.io.files import config_folder, read_toml

if TYPE_CHECKING:
    from c5.photos.taste import Rule, Taste

FILE = "c5.toml"
VARIABLE = "C5_CONFIG"
LOOK = "look"


def read_defaults(command: Any) -> dict[str, Any]:
    """The file's content as click's `default_map` for the command; empty if there is no file."""
    path = find_config()
    if path is None:
        return {}
    content = read_toml(path)
    content.pop(LOOK, None)
    return _read_table(path, content, command, "")


def find_taste(context: typer.Context) -> Taste:
    """The looks for a run of a command: its flags, which always win, those in `c5.toml`, and its defaults there."""
    from c5.photos.taste import Rule, Taste

    given: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name in LOOKS:
        source = context.get_parameter_source(name)
        if source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP"):
            (given if source.name == "COMMANDLINE" else defaults)[name] = context.params[name]
    return Taste((Rule(_load(defaults)), *read_looks()), _load(given))


def read_looks() -> list[Rule]:
    """The file's looks for cameras and folders."""
    path = find_config()
    entries = [] if path is None else read_toml(path).get(LOOK, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ParameterError(f"{path}: {LOOK} must be tables: [[{LOOK}]], then a line for each value")
    return [_read_look(f"{path}: {LOOK} {number}", entry) for number, entry in enumerate(entries, 1)]


def _read_look(where: str, entry: dict[str, Any]) -> Rule:
    from c5.photos.taste import Rule

    kinds: dict[str, tuple[type, ...]] = {"camera": (str,), "folder": (str,)}
    for name, (_, default) in LOOKS.items():
        kinds[name.replace("_", "-")] = (bool,) if isinstance(default, bool) else (int, float)
    for key, value in entry.items():
        if key not in kinds:
            raise ParameterError(f"{where}: {key} is not a key of a look; there are {', '.join(kinds)}")
        if type(value) not in kinds[key]:
            wanted = {str: "text", bool: "true or false"}.get(kinds[key][0], "a number")
            raise ParameterError(f"{where}: {key} must be {wanted}, not {value!r}")
    values = {key.replace("-", "_"): value for key, value in entry.items()}
    camera, folder = values.pop("camera", None), values.pop("folder", None)
    place = None if folder is None else Path(os.path.expanduser(folder))
    if place is not None and (not place.is_absolute() or "\0" in folder):
        raise ParameterError(f"{where}: folder must begin with / or ~, not be {folder!r}")
    try:
        return Rule(_load(values), camera, place)
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}") from None


def _load(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a look, with the learned look in place of the flag that asks for it."""
    if "learned" not in values:
        return values
    from c5.photos.learning import load_look

    return values | {"learned": load_look() if values["learned"] else None}


def find_config() -> Path | None:
    """The file that C5_CONFIG names, or `c5.toml` in the user's config folder if it is there.

    The null device means no file.
    """
    if named := os.environ.get(VARIABLE):
        return None if named == os.devnull else Path(named)
    path = config_folder() / FILE
    return path if path.is_file() else None


def _read_table(path: Path, table: dict[str, Any], command: Any, where: str) -> dict[str, Any]:
    """The defaults of a command, or of each command in a group."""
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
    """The value as it would be on the command line, if the option accepts it."""
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
        if error.param is option:  # given options are checked first; what else is missing does not matter here
            raise ParameterError(f"{path}: {key}: {error.message}") from None
    return texts if option.multiple else texts[0]
