"""Estimators, dataset layouts, output formats and networks of other packages, found by their entry points."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

import c5
from c5.errors import C5Error, PluginError

Result = TypeVar("Result")

ESTIMATORS, DATASETS, OUTPUTS, NETWORKS = "c5.estimators", "c5.datasets", "c5.outputs", "c5.networks"
"""The entry point groups in which plugins are looked for."""

OWN_FOLDERS = tuple(os.path.dirname(str(module.__file__)) + os.sep for module in (c5, importlib))
"""Code here is not that of a plugin."""


class PluginWarning(UserWarning):
    """A plugin was skipped, and why."""


@dataclass(frozen=True)
class Plugin:
    """Something that another package offers. It is not imported before it is loaded."""

    name: str
    package: str
    """The name and version of the package."""
    entry: EntryPoint

    def load(self) -> Any:
        """What the entry point names: a function, a module, a class."""
        with guard(str(self)):
            return self.entry.load()

    def make(self) -> Any:
        """The same, but a class is instantiated, without arguments."""
        with guard(str(self)):
            return make(self.entry.load())

    def __str__(self) -> str:
        return f"{self.name} of the package {self.package}"


def find(group: str, taken: Container[str] = ()) -> dict[str, Plugin]:
    """The plugins of a group by name. Those whose name is `taken` already are skipped with a warning."""
    found: dict[str, Plugin] = {}
    for entry in entry_points(group=group):
        package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
        plugin = Plugin(entry.name, package, entry)
        if entry.name in taken or entry.name in found:
            _warn(f"{plugin} is not used: the name is taken; ask its authors to rename it")
        else:
            found[entry.name] = plugin
    return found


def use_all(group: str, taken: Container[str], use: Callable[[Plugin], Result]) -> dict[str, Result]:
    """The result of `use` for each plugin of a group; plugins for which it fails are skipped with a warning."""
    results = {}
    for name, plugin in find(group, taken).items():
        try:
            results[name] = use(plugin)
        except C5Error as error:
            _warn(f"{error}; update or uninstall the package")
    return results


def load(reference: str) -> Any:
    """What `module:name` stands for. Modules in the current folder are found too."""
    module, _, name = reference.partition(":")
    if not (module and name):
        raise PluginError(f"{reference!r} should read module:name, such as my_package.estimators:GrayWorld")
    folder = os.getcwd()
    sys.path.append(folder)  # after everything else
    try:
        with guard(reference):
            return getattr(importlib.import_module(module), name)
    except PluginError as error:
        missing = error.__cause__
        if isinstance(missing, ModuleNotFoundError) and missing.name == module.split(".")[0]:
            raise PluginError(f"{reference}: no such module; install its package, or run c5 in its folder") from None
        raise
    finally:
        sys.path.remove(folder)


def make(found: Any) -> Any:
    """An instance of a class; anything else as it is."""
    return found() if isinstance(found, type) else found


@contextmanager
def guard(what: str) -> Iterator[None]:
    """Wraps plugin code: whatever it raises becomes one line that names the plugin and the place."""
    try:
        yield
    except C5Error:
        raise
    except Exception as error:  # somebody else's code may raise anything
        raise PluginError(f"{what} failed: {type(error).__name__}: {error}{_place(error)}") from error


def _place(error: Exception) -> str:
    """The file and line of the plugin that an error comes from; empty where nothing of the plugin has run."""
    frames = traceback.extract_tb(error.__traceback__)
    foreign = [frame for frame in frames if not frame.filename.startswith(("<frozen", *OWN_FOLDERS))]
    if not foreign:
        return ""
    last = [frame for frame in foreign if frame.filename == foreign[0].filename][-1]
    return f" ({os.path.basename(last.filename)}, line {last.lineno})"


def _warn(message: str) -> None:
    warnings.warn(message, PluginWarning, stacklevel=3)
