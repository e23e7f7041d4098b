"""A Ray cluster of two nodes on this machine, and an S3 server on its loopback address, for tests."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import c5

SOURCES = str(Path(c5.__file__).parents[1])


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


class Cluster:
    """Nodes of one core each. Each stands in a group of processes of its own, and ends with the test."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="ray")  # a short name: sockets are in it
        self.address = f"127.0.0.1:{free_port()}"
        self.nodes = [self._start("--head", f"--port={self.address.split(':')[1]}", f"--temp-dir={self.folder}")]

    def add_node(self, path: str = SOURCES) -> subprocess.Popen[bytes]:
        self.nodes.append(self._start(f"--address={self.address}", path=path))
        return self.nodes[-1]

    def _start(self, *options: str, path: str = SOURCES) -> subprocess.Popen[bytes]:
        program = Path(sys.executable).with_name("ray")
        small = ("--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats", "--block")
        dashboard = ("--include-dashboard=false",) if "--head" in options else ()
        environment = os.environ | {"PYTHONPATH": path, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}
        log = Path(self.folder, f"node-{time.monotonic_ns()}.log")
        with log.open("wb") as said:
            node = subprocess.Popen(
                [str(program), "start", *options, *small, *dashboard],
                env=environment,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        end = time.monotonic() + 180
        while b"Ray runtime started" not in log.read_bytes():
            if node.poll() is not None or time.monotonic() > end:
                raise RuntimeError(log.read_text())
            time.sleep(0.1)
        return node

    def kill(self, node: subprocess.Popen[bytes]) -> None:
        """kill -9 of all processes of a node, as a power cut would."""
        for process in self._processes(node):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        node.wait()

    def _processes(self, node: subprocess.Popen[bytes]) -> list[int]:
        """A node's processes: its children and theirs."""
        parents: dict[int, list[int]] = {}
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(status.parent.name))
        found = [node.pid]
        for process in found:
            found += parents.get(process, [])
        return found

    def close(self) -> None:
        for node in reversed(self.nodes):
            if node.poll() is None:
                self.kill(node)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def object_storage() -> Iterator[dict[str, str]]:
    """An S3 server, and the environment that leads to it."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLEEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secretsecretsecret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.stop()
