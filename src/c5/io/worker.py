"""Raw files are decoded in processes of their own, which may crash, hang or run out of memory without harm.

LibRaw is a million lines of C++ that read what anybody may have sent. So it never runs in the caller's process.
Each thread that reads a raw file borrows a *worker*, a Python process that does nothing else; one is started when all
are busy, in a quarter of a second, and they are kept until the program ends. A task goes to its standard input as a
line of JSON. The answer comes back on its standard output: a line of JSON and the bytes of its arrays, never a pickle,
so that even a worker that a file has taken over can send nothing but numbers.

- A worker that takes too long is killed, one that crashes is noticed, and both cost that one file.
- Its memory is limited by the system, to what the picture needs and a reserve.
- Whatever LibRaw prints is caught and becomes part of the error.
- A worker sees the end of its standard input when its parent ends, however that happens, and ends at once. Ctrl-C in a
  terminal does not reach it: its parent decides.

Where Python cannot be started again, as in a frozen program, files are decoded in the calling process.
"""

from __future__ import annotations

import atexit
import builtins
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from c5 import errors
from c5.color import Bools
from c5.errors import ReadError
from c5.io.mosaic import AGAIN, Averaged, Task, average, keep_memory

START_SECONDS = 60.0
LIMIT_SECONDS = 15.0
BYTES_PER_SECOND = 1_000_000
"""A file may take `LIMIT_SECONDS`, and a second more per this many bytes: a slow disk is no reason to give up."""

SPARE_MEMORY = 1_200_000_000
PIXEL_MEMORY = 16
"""Memory that decoding may take, in bytes: a fixed part, and a part for each photosite."""

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""There are as many workers as readers, each with a thread of its own."""

START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from c5.io.worker import serve; serve()"

PIPE_BYTES = 1 << 20
"""The size of the pipe between a worker and its parent, if the system allows it: preview pixels take fewer turns."""

if sys.platform != "win32":
    import fcntl
    import resource


def average_apart(task: Task) -> Averaged:
    """`average` in a worker. The path of the task must be absolute."""
    if sys.platform == "win32" or getattr(sys, "frozen", False) or not sys.executable:
        return _average_here(task)
    worker = _borrow()
    try:
        answer = worker.ask(task)
    except BaseException:  # it died, or an interruption left its answer half read
        worker.close()
        raise
    with _lock:
        _idle.append(worker)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _average_here(task: Task) -> Averaged:
    """`average` in this process, with what LibRaw prints kept from the terminal."""
    with _lock, tempfile.TemporaryFile() as words:  # there is one standard error for all threads
        terminal = os.dup(2)
        os.dup2(words.fileno(), 2)
        try:
            return average(task)
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def close_workers() -> None:
    """End the workers that are idle. The next raw file starts one again."""
    while _idle:
        with suppress(IndexError):
            _idle.pop().close()


def _borrow() -> _Worker:
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.owner == os.getpid() and worker.process.poll() is None:  # neither from before a fork, nor dead
                return worker
    return _Worker()


class _Worker:
    """The parent's end of a worker."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.errors, target = os.pipe()
        for end in (self.errors, target):
            os.set_blocking(end, False)  # a worker that prints too much loses words, not time
        path = [*sys.path, str(Path(errors.__file__).parents[1])]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", START, json.dumps(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=target,
            env={**os.environ, **ENVIRONMENT},
            cwd=os.sep,  # so that it keeps no disk busy
            process_group=0,
        )
        os.close(target)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout
        with suppress(AttributeError, OSError):  # not every system can
            fcntl.fcntl(self.output, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        atexit.unregister(close_workers)
        atexit.register(close_workers)
        with self._limited(START_SECONDS):
            ready = self.output.readline()
        if not ready:
            self.process.wait()
            words = self._words(lines=20)
            self.close()
            raise RuntimeError(f"the process that reads raw files did not start: {words}")

    def ask(self, task: Task) -> Averaged | Exception:
        """The answer, or what the worker raised. If it dies, that is a ReadError."""
        size = os.stat(task.path).st_size if os.path.exists(task.path) else 0  # else the worker says so
        seconds = LIMIT_SECONDS + size / BYTES_PER_SECOND
        self._words()  # of what came before
        with self._limited(seconds) as started:
            try:
                self.input.write(json.dumps(task._asdict()).encode() + b"\n")
                self.input.flush()
                fields = json.loads(self.output.readline() or b"null")
                if fields is not None and "raised" not in fields:
                    fields["rgb"], fields["clipped"] = self._read_average(fields["rgb"], np.dtype(np.float32))
                    fields["larger"] = fields["larger"] and self._read_average(fields["larger"], np.dtype(np.uint16))
            except (BrokenPipeError, EOFError):
                fields = None
        words = self._words()
        said = f" (LibRaw: {words})" if words else ""
        if fields is None:
            code = self.process.wait()
            if time.monotonic() - started >= seconds:
                raise ReadError(f"LibRaw was stopped after {seconds:.0f} seconds{said}; {AGAIN}")
            raise ReadError(f"LibRaw crashed on it (exit status {code}){said}; {AGAIN}")
        if "raised" in fields:
            return _rebuild(fields["raised"], fields["message"], fields["traceback"], said)
        return Averaged(**fields | {"size": tuple(fields["size"])})

    def close(self) -> None:
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()
        for pipe in (self.input, self.output):
            with suppress(OSError):
                pipe.close()
        os.close(self.errors)

    def _read_average(self, shape: list[int], dtype: np.dtype[Any]) -> tuple[NDArray[Any], Bools]:
        height, width, _ = shape
        return self._read((height, width, 3), dtype), self._read((height, width), np.dtype(np.bool_))

    def _read(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        array = np.empty(shape, dtype)
        if self.output.readinto(array.data.cast("B")) < array.nbytes:  # type: ignore[attr-defined]
            raise EOFError
        return array

    def _words(self, lines: int = 1) -> str:
        """What LibRaw printed, without the name that it knows the file by."""
        try:
            printed = os.read(self.errors, 1 << 16).decode("utf-8", "replace")
        except BlockingIOError:
            return ""
        said = [re.sub(r"^(/dev/fd/\d+|unknown file): ", "", line)[:200] for line in printed.splitlines()[:lines]]
        return "".join(each if each.isprintable() else " " for each in " ".join(said)).strip()

    @contextmanager
    def _limited(self, seconds: float) -> Iterator[float]:
        """Kill the worker if what is inside takes longer. Yields when it began."""
        timer = threading.Timer(seconds, self.process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield time.monotonic()
        finally:
            timer.cancel()


_idle: list[_Worker] = []
_lock = threading.Lock()


def _rebuild(name: str, message: str, trace: str, said: str) -> Exception:
    """What a worker raised: an error of the library, or a bug of ours, which shows where it happened."""
    ours: type[Exception] | None = getattr(errors, name, None)
    if ours is not None:
        return ours(message + said) if ours is ReadError else ours(message)
    try:
        bug: Exception = getattr(builtins, name, RuntimeError)(message)
    except TypeError:  # it wants more arguments
        bug = RuntimeError(f"{name}: {message}")
    bug.add_note(f"In the process that reads raw files:\n{trace}")
    return bug


def serve() -> NoReturn:
    """Be a worker: answer tasks until the parent is gone."""
    import rawpy  # noqa: F401, so that the first file does not wait for it

    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is not an answer
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    own = _mapped_bytes()
    keep_memory()
    output.write(b"ready\n")
    output.flush()
    while True:
        task = Task(**json.loads(tasks.get()))
        _limit_memory(own + SPARE_MEMORY)
        fields, arrays = _answer(task, lambda photosites: _limit_memory(own + SPARE_MEMORY + PIXEL_MEMORY * photosites))
        output.write(json.dumps(fields).encode() + b"\n")
        for array in arrays:
            output.write(array.data.cast("B"))
        output.flush()


def _listen(tasks: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        tasks.put(line)
    os._exit(0)  # the parent is gone, even if LibRaw is at work


def _answer(task: Task, expect: Callable[[int], None]) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    try:
        result = average(task, expect)
    except MemoryError:
        error: Exception = ReadError(f"it needs more memory than a photograph does; {AGAIN}")
    except Exception as raised:  # to be raised again in the parent
        error = raised
    else:
        arrays = [np.ascontiguousarray(array) for array in (result.rgb, result.clipped, *(result.larger or ()))]
        larger = None if result.larger is None else result.larger[0].shape
        return result._asdict() | {"rgb": result.rgb.shape, "clipped": None, "larger": larger}, arrays
    message = str(error.args[0]) if error.args else ""
    trace = "".join(traceback.format_exception(error))
    return {"raised": type(error).__name__, "message": message, "traceback": trace}, []


def _limit_memory(size: int) -> None:
    with suppress(OSError, ValueError):  # not every system can
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size if hard == resource.RLIM_INFINITY else min(size, hard), hard))


def _mapped_bytes() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0
