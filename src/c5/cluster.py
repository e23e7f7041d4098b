"""Work on a Ray cluster, with results in order, as `c5.parallel` does with processes.

Items go to Ray in bundles. Each bundle is a task, which Ray runs again elsewhere if its worker or its node is lost. A
node needs only the same version of this package: every task checks that before it begins.
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
from itertools import islice
from typing import Any

from c5.errors import C5Error, ParameterError, WorkerError
from c5.parallel import Spread
from c5.words import first_line

RETRIES = 20
"""How often a task is run again when its worker or its node is lost."""

CONNECT_SECONDS = 10

CANCEL_SECONDS = 5

AHEAD, HELD = 3, 12
"""How many tasks wait or run for each core of the cluster, and how many with those that are done before their turn."""

BUNDLE_SECONDS = 0.5
"""Quicker items are sent in bundles that take about this long: between two tasks Ray waits some milliseconds."""


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
        raise WorkerError(
            f"{address}: no Ray cluster can be used there ({first_line(error)}); check that it runs"
        ) from None
    unfinished: set[Any] = set()
    try:
        yield partial(_spread, ray, unfinished)
    finally:
        _cancel(ray, unfinished)
        ray.shutdown()


def _cancel(ray: Any, unfinished: set[Any]) -> None:
    """Stop what still runs after an error: Ray prints lines of its own about tasks that are lost when it shuts down."""
    for reference in unfinished:
        ray.cancel(reference)
    if unfinished:
        ray.wait(list(unfinished), num_returns=len(unfinished), timeout=CANCEL_SECONDS)


def _spread(
    ray: Any, unfinished: set[Any], function: Callable[[Any], Any], items: Iterable[Any]
) -> Generator[tuple[Any, Any], None, None]:
    # By value, so that a node without this package can say so.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    work = ray.remote(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")(_work)
    expected = _find_version()
    ahead: deque[tuple[list[Any], Any]] = deque()
    left, size, more = iter(items), 1, True
    while True:
        cores = max(1, ray.cluster_resources().get("CPU", 1)) if more else 0  # nodes may come and go
        while more and len(unfinished) < AHEAD * cores and len(ahead) < HELD * cores:
            bundle = list(islice(left, size))
            if bundle:
                ahead.append((bundle, work.remote(expected, pickle.dumps((function, bundle)))))
                unfinished.add(ahead[-1][1])
            more = bool(bundle)
        if not ahead:
            return
        if ahead[0][1] in unfinished:
            done, _ = ray.wait(list(unfinished))  # whichever is first, so that no core waits for a slow one
            unfinished.difference_update(done)
            continue
        sent, reference = ahead.popleft()
        results, seconds = _take(ray, reference)
        size = max(1, int(BUNDLE_SECONDS * len(sent) / max(seconds, 1e-3)))
        for item, result in zip(sent, results, strict=False):  # after an error there are no more
            if isinstance(result, C5Error):
                raise result
            yield item, result


def _take(ray: Any, reference: Any) -> tuple[list[Any], float]:
    """The results of a bundle, the last of which may be an error, and the seconds that it took."""
    try:
        refusal, results, seconds = ray.get(reference)
    except ray.exceptions.RayTaskError:
        raise  # a bug of ours shows as what it is
    except ray.exceptions.RayError as error:
        raise WorkerError(f"the cluster has lost a task repeatedly ({first_line(error)}); check its nodes") from None
    if refusal is not None:
        raise WorkerError(refusal)
    return results, seconds


def _find_version() -> str | None:
    try:
        return version("c5-awb")
    except PackageNotFoundError:
        return None


def _work(expected: str | None, task: bytes) -> tuple[str | None, list[Any], float]:
    """One task, on a node: why it cannot run there, its results up to an error that a user can fix, and the seconds."""
    import platform
    import time

    found = _find_version()
    if found != expected:
        has = "no c5-awb" if found is None else f"c5-awb {found}"
        return f"the node {platform.node()} has {has}, this machine {expected}; install that on every node", [], 0
    try:
        from c5.errors import C5Error  # here, since this function is sent by value

        function, bundle = pickle.loads(task)
    except ModuleNotFoundError as error:
        return f"the node {platform.node()} lacks {error.name}; install on it what is installed here", [], 0
    if not gc.get_freeze_count():
        gc.freeze()  # what Ray holds: looking through all of it again and again takes a tenth of the time
    results: list[Any] = []
    began = time.monotonic()
    for item in bundle:
        try:
            results.append(function(item))
        except C5Error as error:
            results.append(error)
            break
    return None, results, time.monotonic() - began
