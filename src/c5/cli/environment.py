"""What the command sets in its own environment. The library leaves the environment alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""How many threads OpenMP and the usual BLAS libraries start. Each library reads its variable when it loads."""

SETTINGS = {"ORT_DISABLE_TELEMETRY": "1", "GOMP_SPINCOUNT": "5000"}
"""No telemetry; and threads of OpenMP that wait for each other soon sleep. As long as they spin by default, training
beside another program takes several times as long; if they never spin, training alone takes a sixth longer."""

_limited: list[str] = []


def prepare_environment() -> None:
    """One thread per worker, since every core has a worker already, and `SETTINGS`. What the user has set stays."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if THREADS[0] not in os.environ:  # every BLAS obeys it too, so whoever has set it has decided
        for name in THREADS:
            if name not in os.environ:
                os.environ[name] = "1"
                _limited.append(name)


@contextmanager
def threads_unlimited() -> Iterator[None]:
    """Let a library that is loaded inside use all cores. Worker processes that start later are limited again."""
    limits = {name: os.environ.pop(name) for name in _limited}
    try:
        yield
    finally:
        os.environ.update(limits)
