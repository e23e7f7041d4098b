"""Work on a Ray cluster, results in order, as `c5.parallel` has it for processes.

Each item is a task of Ray, which runs it again elsewhere if its worker or its node is lost. Nothing is asked of a node
but the same version of this package: every task looks at that before it begins.
"""

from __future__ import annotations

import gc
import logging
import pickle
import socket
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from c5.errors import C5Error, ParameterError, WorkerError
from c5.parallel import Spread

RETRIES = 20
"""So often a task is run again when its worker or its node is lost."""

CONNECT_SECONDS = 10

AHEAD = 2
"""So many tasks wait or run for each core of the cluster."""


@contextmanager
def cluster(address: str) -> Iterator[Spread]:
    """The cluster at an address, as Ray writes it: HOST:PORT, ray://HOST:PORT, or auto for the one of this machine."""
    try:
        import ray
    except ImportError:
        raise ParameterError("a cluster needs Ray: run pip install 'c5-awb[ray]' here and on its nodes") from None
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise WorkerError(f"{address}: no Ray cluster can be used there ({reason}); see that it runs") from None
    try:
        yield partial(_spread, ray)
    finally:
        ray.shutdown()


def _spread(ray: Any, function: Callable[[Any], Any], items: Iterable[Any]) -> Generator[tuple[Any, Any], None, None]:
    # By value, so that a node without this package can say so.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    work = ray.remote(num_cpus=1, max_retries=RETRIES)(_work)
    expected = _find_version()
    ahead: deque[tuple[Any, Any]] = deque()
    for item in items:
        ahead.append((item, work.remote(expected, pickle.dumps((function, item)))))
        if len(ahead) > AHEAD * ray.cluster_resources().get("CPU", 1):  # nodes may come and go
            yield _take(ray, *ahead.popleft())
    while ahead:
        yield _take(ray, *ahead.popleft())


def _take(ray: Any, item: Any, reference: Any) -> tuple[Any, Any]:
    try:
        refusal, result = ray.get(reference)
    except ray.exceptions.RayTaskError:
        raise  # a bug of ours shows as what it is
    except ray.exceptions.RayError as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise WorkerError(f"the cluster has lost a task again and again ({reason}); see that its nodes run") from None
    if refusal is not None:
        raise WorkerError(refusal)
    if isinstance(result, C5Error):
        raise result
    return item, result


def _find_version() -> str | None:
    try:
        return version("c5-awb")
    except PackageNotFoundError:
        return None


def _work(expected: str | None, task: bytes) -> tuple[str | None, Any]:
    """One task, on a node: why the node cannot do it, and its result or what a user can mend."""
    import platform

    found = _find_version()
    if found != expected:
        has = "no c5-awb" if found is None else f"c5-awb {found}"
        return f"the node {platform.node()} has {has}, this machine {expected}; install that on every node", None
    try:
        from c5.errors import C5Error  # here, since this function is sent by value

        function, item = pickle.loads(task)
    except ModuleNotFoundError as error:
        return f"the node {platform.node()} lacks {error.name}; install there what is installed here", None
    if not gc.get_freeze_count():
        gc.freeze()  # what Ray holds: looking through all of it again and again takes a tenth of the time
    try:
        return None, function(item)
    except C5Error as error:
        return None, error
