"""What importing the package does: as little as possible."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import c5

FORBID = """
import sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {forbidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Forbidden())
"""

IMPORT_ALL = """
import importlib, pkgutil, c5
for package in {packages!r}:
    found = importlib.import_module(package)
    for module in pkgutil.walk_packages(getattr(found, "__path__", []), package + "."):
        importlib.import_module(module.name)
"""

STATE = """
import logging, os, sys, warnings
import numpy, onnxruntime, torch

def state():
    loggers = {name: (each.level, each.disabled, each.propagate, each.handlers[:], each.filters[:])
               for name, each in logging.root.manager.loggerDict.items() if isinstance(each, logging.Logger)}
    flags = {f"{module}.{name}": getattr(getattr(torch.backends, module), name)
             for module, names in {"cudnn": ("benchmark", "deterministic", "enabled", "allow_tf32"),
                                   "mkldnn": ("enabled",)}.items() for name in names}
    return {
        "loggers": loggers,
        "root": (logging.root.level, logging.root.handlers[:], logging.root.manager.disable),
        "numpy": numpy.geterr(),
        "environment": dict(os.environ),
        "warnings": warnings.filters[:],
        "torch": (flags, torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled(),
                  torch.are_deterministic_algorithms_enabled(), torch.initial_seed()),
        "numpy random": numpy.random.get_state()[1].tolist(),
        "recursion": sys.getrecursionlimit(),
        "folder": os.getcwd(),
        "threads": __import__("threading").active_count(),
    }
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not done.stdout + done.stderr
    return done.stdout


def test_training_and_evaluation_import_without_the_libraries_for_images() -> None:
    forbidden = {"rawpy", "tifffile", "imagecodecs", "PIL", "platformdirs"}
    packages = ["c5", "c5.training", "c5.evaluation", "c5.datasets", "c5.augmentation", "c5.io"]
    run(FORBID.format(forbidden=forbidden) + IMPORT_ALL.format(packages=packages[1:]))


def test_importing_changes_nothing_outside_the_package() -> None:
    """Loggers, warnings, NumPy's and torch's settings, the environment and random numbers stay as they were."""
    others = "import matplotlib, onnx, PIL.Image, imagecodecs, rawpy, tifffile, typer, rich"
    names = [f"c5.{module.name}" for module in pkgutil.iter_modules(c5.__path__)]
    check = """
before = state()
{imports}
after = state()
for name, value in before.items():
    if name == "loggers":
        new = {{logger for logger in after[name] if logger not in value}}
        assert not any(not logger.startswith(("c5", "concurrent", "asyncio")) for logger in new), new
        after[name] = {{logger: after[name][logger] for logger in value}}
    assert after[name] == value, (name, value, after[name])
"""
    run(f"{others}\n{STATE}\n{check.format(imports=IMPORT_ALL.format(packages=names))}")
