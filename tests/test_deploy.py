"""The files for a deployment do what they are there for."""

from __future__ import annotations

import os
import re
import site
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import write_dng

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


def test_ray_takes_the_cluster_file() -> None:
    yaml = pytest.importorskip("yaml")
    util: Any = pytest.importorskip("ray.autoscaler._private.util")
    described = yaml.safe_load((DEPLOY / "cluster.yaml").read_text())
    util.validate_config(util.prepare_config(described))  # raises on what it does not know
    assert described["available_node_types"]["worker"]["max_workers"] == described["max_workers"]


def test_no_credentials_are_kept() -> None:
    for path in DEPLOY.iterdir():
        assert not re.search(r"(?i)secret|password|token|access_key|AKIA", path.read_text()), path


def test_the_steps_of_the_containerfile_lead_to_a_command_that_works(tmp_path: Path) -> None:
    """With the packages of this environment at hand, so that little is fetched."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the container has Python 3.11")
    rng = np.random.default_rng(0)
    camera = VirtualCamera.random(rng)
    for index, photo in enumerate(render_roll(camera, 3, rng, (32, 48))):
        write_dng(tmp_path / f"in/{index}.dng", photo, camera)
    program: list[str | Path] = [
        sys.executable,
        ROOT / "tools/follow_containerfile.py",
        DEPLOY / "Containerfile",
        tmp_path / "box",
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(site.getsitepackages())}
    command = [*program, "--", "archive", tmp_path / "in", "-o", tmp_path / "out", "--jobs", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
        pytest.skip("packages cannot be fetched here")
    assert done.returncode == 0, done.stderr
    assert "3 photographs of 1 camera in 1 part, none failed" in done.stdout
    assert (tmp_path / "box/python/bin/c5").exists()
