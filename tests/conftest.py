"""Fixtures: the shared reference data, where C5_TEST_DATA names it, and images to try laws on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import hypothesis
import numpy as np
import pytest

# A process that is started in the background ignores Ctrl-C, and so would the commands that tests interrupt.
# Nor does the configuration of whoever runs the tests count. Threads of tests side by side must not spin as they wait.
os.environ["C5_CONFIG"] = os.devnull
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

signal.signal(signal.SIGINT, signal.default_int_handler)

# Laws are tried on the same examples every time, so that a run is repeatable.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=30)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of reference data; tests that need it are skipped without it."""
    folder = os.environ.get("C5_TEST_DATA")
    if not folder:
        pytest.skip("C5_TEST_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def golden(test_data: Path) -> dict[str, np.ndarray]:
    """Outputs of the published models and their histograms on 100 images."""
    with np.load(test_data / "reference" / "golden.npz") as file:
        return dict(file)
