"""Processes that work for this one end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CODE = """
import os, time
from c5.parallel import in_processes

def work(_):
    os.write(1, b"%d\\n" % os.getpid())  # in one piece
    time.sleep(60)

if __name__ == "__main__":
    list(in_processes(work, range(4), 2))
"""


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_their_parent(tmp_path: Path, sign: signal.Signals) -> None:
    (tmp_path / "parent.py").write_text(CODE)
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert parent.stdout is not None
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    if sign == signal.SIGINT:  # as a terminal sends it, to all of them
        for worker in workers:
            os.kill(worker, sign)
        parent.send_signal(signal.SIGKILL)
    else:
        parent.send_signal(sign)
    _, said = parent.communicate(timeout=30)
    end = time.monotonic() + 20
    while any(map(is_alive, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(is_alive, workers))
    assert b"KeyboardInterrupt" not in said


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
