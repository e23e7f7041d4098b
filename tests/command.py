"""The command, run as a user runs it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def c5(
    *arguments: object, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with these variables in its environment."""
    variables = {**os.environ, **(environment or {})}
    return subprocess.run(
        [sys.executable, "-m", "c5.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=variables,
        timeout=300,
    )
