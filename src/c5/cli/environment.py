"""What the command sets in its own environment. The library leaves the environment alone."""

from __future__ import annotations

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""How many threads OpenMP and the usual BLAS libraries start. All of them are read when the library loads."""

_limited: list[str] = []


def prepare_environment() -> None:
    """One thread for each worker, as there is a worker a core already; no telemetry. What the user has set stays."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    if THREADS[0] not in os.environ:  # every BLAS obeys it too, so whoever has set it has decided
        for name in THREADS:
            if name not in os.environ:
                os.environ[name] = "1"
                _limited.append(name)


def lift_thread_limit() -> None:
    """Let libraries that are loaded from now on, such as torch, use all cores."""
    while _limited:
        os.environ.pop(_limited.pop(), None)
