"""The command sets threads and telemetry before NumPy loads; the library leaves the environment alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from c5.cli.environment import SETTINGS, THREADS

RUN = """
import os, sys
before = dict(os.environ)
import c5
assert dict(os.environ) == before and "numpy" not in sys.modules
from c5.cli import main
sys.argv = ["c5", "methods"]
try:
    main()
except SystemExit as done:
    assert not done.code
import numpy as np
np.ones((600, 600)) @ np.ones((600, 600))
print({name: os.environ.get(name) for name in sys.stdin.read().split()}, file=sys.stderr)
if os.path.isdir("/proc/self/task"):
    print("tasks", len(os.listdir("/proc/self/task")), file=sys.stderr)
"""


def run(code: str, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in (*THREADS, *SETTINGS)}
    names = " ".join((*THREADS, *SETTINGS))
    done = subprocess.run(
        [sys.executable, "-c", code], input=names, capture_output=True, text=True, env=clean | environment, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_numpy_starts_no_threads_of_its_own() -> None:
    said = run(RUN)
    assert str({**dict.fromkeys(THREADS, "1"), **SETTINGS}) in said
    if Path("/proc/self/task").is_dir():
        assert "tasks 1" in said.splitlines()


def test_what_the_user_has_set_stays() -> None:
    said = run(RUN, OMP_NUM_THREADS="2", ORT_DISABLE_TELEMETRY="0")
    left = {**dict.fromkeys(THREADS, None), "OMP_NUM_THREADS": "2", **SETTINGS, "ORT_DISABLE_TELEMETRY": "0"}
    assert str(left) in said
    assert "'OPENBLAS_NUM_THREADS': '3'" in run(RUN, OPENBLAS_NUM_THREADS="3")


def test_torch_gets_all_cores() -> None:
    pytest.importorskip("torch")
    code = """
import os
from c5.cli.environment import prepare_environment
prepare_environment()
from c5.cli.console import start_torch
start_torch()
import torch
torch.ones(300, 300) @ torch.ones(300, 300)
assert torch.get_num_threads() > 1 or os.cpu_count() == 1
assert os.environ["OMP_NUM_THREADS"] == "1"  # for worker processes
"""
    run(code)
