"""Work on several items at once, results in order. Decoding images and computing on arrays release Python's lock."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from c5.errors import WorkerError

Item = TypeVar("Item")
Result = TypeVar("Result")

Spread: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Generator[tuple[Any, Any], None, None]]
"""Takes a function and items, and yields each item with its result, in order: on processes here or on a cluster."""

MOST_JOBS = 4
"""The limit unless more are asked for: each may hold an image of many megapixels."""


def in_parallel(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int | None = None
) -> Generator[tuple[Item, Result], None, None]:
    """Each item with its result, a few of them computed ahead, on one thread per core up to `MOST_JOBS`."""
    jobs = jobs or min(MOST_JOBS, os.cpu_count() or 1)
    pool = ThreadPoolExecutor(jobs)
    try:
        yield from _in_order(pool, jobs, function, items)
    finally:
        pool.shutdown(cancel_futures=True)


def in_processes(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int | None = None
) -> Generator[tuple[Item, Result], None, None]:
    """The same in processes, one per core, for work that holds Python's lock. Function and items must be picklable.

    They end with this process, however it ends. Ctrl-C does not reach them: this process decides.
    """
    with processes(jobs) as spread:
        yield from spread(function, items)


@contextmanager
def processes(jobs: int | None = None) -> Iterator[Spread]:
    """The same processes for several functions, one after the other."""
    jobs = jobs or os.cpu_count() or 1
    pool = _Processes(jobs, multiprocessing.get_context("spawn"), _end_with_parent)
    try:
        yield lambda function, items: _in_order(pool, jobs, function, items)
    except BrokenProcessPool:
        raise WorkerError("a process that worked for this one was killed; is there enough memory?") from None
    finally:
        pool.shutdown(cancel_futures=True)


class _Processes(ProcessPoolExecutor):
    def submit(self, *arguments: Any, **named: Any) -> Future[Any]:
        """Processes start here, with Ctrl-C blocked: interrupted, they would complain. They inherit the block."""
        if not hasattr(signal, "pthread_sigmask"):
            return super().submit(*arguments, **named)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            return super().submit(*arguments, **named)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _in_order(
    pool: Executor, jobs: int, function: Callable[[Item], Result], items: Iterable[Item]
) -> Generator[tuple[Item, Result], None, None]:
    ahead: deque[tuple[Item, Future[Result]]] = deque()
    for item in items:
        ahead.append((item, pool.submit(function, item)))
        if len(ahead) > 2 * jobs:
            first, future = ahead.popleft()
            yield first, future.result()
    while ahead:
        first, future = ahead.popleft()
        yield first, future.result()
