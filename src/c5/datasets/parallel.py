"""Work on several items at once, results in order. Decoding images and computing on arrays release Python's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, a few of them computed ahead."""
    workers = min(4, os.cpu_count() or 1)  # each may hold an image of many megapixels
    pool = ThreadPoolExecutor(workers)
    ahead: deque[tuple[Item, Future[Result]]] = deque()
    try:
        for item in items:
            ahead.append((item, pool.submit(function, item)))
            if len(ahead) > 2 * workers:
                first, future = ahead.popleft()
                yield first, future.result()
        while ahead:
            first, future = ahead.popleft()
            yield first, future.result()
    finally:
        pool.shutdown(cancel_futures=True)
