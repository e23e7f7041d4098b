"""The shape of the package: imports point one way, and inference is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import c5

PACKAGE = Path(c5.__file__).parent

LAYERS = [
    {"errors"},
    {"choices", "color", "parallel", "plotting", "plugins", "regular", "words"},
    {"cluster", "colorimetry"},
    {"image"},
    {"fingerprints", "classical", "metrics", "zones"},
    {"histograms"},
    {"io"},
    {"rolls"},
    {"ccc", "graphs", "model_file", "demo", "datasets"},
    {"model"},
    {"estimators", "export", "live"},
    {"photos"},
    {"archive", "augmentation", "charts", "studio"},
    {"evaluation"},
    {"training"},
    {"cli"},
    {"__main__"},
]
"""A module may import what stands above it, and what is in its own subpackage."""


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, functions included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found |= {name.split(".")[1] for name in names if name.startswith("c5.")}
    return found


def test_imports_point_one_way() -> None:
    rank = {name: index for index, layer in enumerate(LAYERS) for name in layer}
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py" or path.parent != PACKAGE]
    assert files
    for path in files:
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for other in imports(path) - {own}:
            assert rank[other] < rank[own], f"{path.relative_to(PACKAGE)} imports {other}"


def test_only_training_imports_torch() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if "training" not in path.relative_to(PACKAGE).parts:
            assert "import torch" not in text
            assert "from torch" not in text


def test_inference_loads_neither_torch_nor_matplotlib() -> None:
    code = """
import sys, numpy as np, c5
assert "onnxruntime" not in sys.modules, "import c5 must stay light"
model = c5.load_model()
image = np.random.default_rng(0).uniform(0.1, 0.9, (64, 96, 3))
model.estimate(image, model.calibrate([image]))
heavy = {"torch", "matplotlib", "scipy", "onnx"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_loads_no_numpy() -> None:
    code = "import sys, c5.cli.app; assert 'numpy' not in sys.modules, 'c5 --help must be quick'"
    subprocess.run([sys.executable, "-c", code], check=True)


OPENERS = {"open", "read_text", "read_bytes", "load", "loadtxt", "genfromtxt", "memmap", "loadmat"}


def reads_directly(node: ast.Call) -> bool:
    """Whether a call opens a file by itself: `open(path)`, `path.read_text()`, `np.load(path)` ..."""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    owner = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
    given = ast.unparse(node.args[0]) if node.args else ""
    if name not in OPENERS or "BytesIO" in given or "resources." in owner:
        return False
    if name == "open":  # classes of ours and of Pillow have methods of that name
        return owner == "" or owner.lower().endswith(("path", "part", "manifest", "file", "os"))
    if name == "load":
        return owner in ("np", "numpy", "torch", "onnx", "pickle")
    return owner != ""  # without, it is a function of ours


def test_only_regular_files_are_read() -> None:
    """Any other way to open what a user names would wait for a pipe, or read from a device."""
    allowed = {
        "regular.py": 1,
        "io/files.py": 1,  # writing
        "io/worker.py": 1,  # /proc
        "datasets/container.py": 2,  # writing
        "datasets/growing.py": 1,  # what another process of the same training wrote
        "evaluation/plugin.py": 1,  # the source of a module that is imported
    }
    found: dict[str, int] = {}
    for path in PACKAGE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        if count := sum(map(reads_directly, calls)):
            found[path.relative_to(PACKAGE).as_posix()] = count
    assert found == allowed
