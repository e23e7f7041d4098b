"""Training on several processes that torchrun starts: the steps of one process, whatever their number."""

from __future__ import annotations

import csv
import json
import mmap
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.multiprocessing
from test_training import config, render_samples
from torch import distributed

import c5
from c5.datasets import growing
from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import write_dng
from c5.training.data import load_training_data
from c5.training.loop import Trainer
from c5.training.tensors import read_checkpoint
from c5.training.together import Group

SETTINGS = {
    "plain": ("crops=0", "batch_sizes=[7]", "empty_roll_share=0.2"),
    "bundled": ("steps_per_epoch=1", "cameras_per_step=3", "queries_per_camera=2"),
}
STEPS = 50


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(2)
    rows = [["path", "camera", "r", "g", "b"]]
    for camera in [VirtualCamera.random(rng) for _ in range(2)]:
        for photo in render_roll(camera, 4, rng, (48, 72))[: 4 - len(rows) // 5]:
            name = f"{len(rows)}.dng"
            write_dng(folder / name, photo, camera)
            rows.append([name, camera.name, *map(str, photo.illuminant)])
    with (folder / "manifest.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert len(rows) == 8  # seven images: no two processes have the same number
    return folder


def start(processes: int, *arguments: Any, program: Sequence[Any] = ("-m", "c5")) -> subprocess.Popen[str]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    command = [sys.executable]
    if processes > 1:
        command += ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", f"--master-port={port}"]
    environment = os.environ | {"PYTHONPATH": str(Path(c5.__file__).parents[1]), "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(
        [*command, *map(str, (*program, "train", *arguments))],
        env=environment | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said


def losses(run: Path) -> list[float]:
    return [epoch["loss"] for epoch in json.loads(read_checkpoint(run / "checkpoint.pt", "cpu")["history"])]


def options(recipe: str, epochs: int) -> list[Any]:
    """Of a small network, an epoch of which has one step."""
    small = ("n=16", "widths=[4, 8]", "m=4", *SETTINGS[recipe])
    return ["--recipe", recipe, "--epochs", epochs, *(part for field in small for part in ("--set", field))]


@pytest.mark.parametrize("recipe", list(SETTINGS))
def test_two_processes_take_the_steps_of_one(data: Path, tmp_path: Path, recipe: str) -> None:
    """At the recipe's own learning rate, in float64: in float32, each step makes more of what rounding began with."""
    exact = partial(start, program=[Path(__file__).with_name("exact_training.py")])
    alone = exact(1, data, "-o", tmp_path / "one", *options(recipe, STEPS))
    while alone.poll() is None and not (tmp_path / "one/checkpoint.pt").exists():
        time.sleep(0.05)
    shutil.copytree(tmp_path / "one", tmp_path / "half")
    finish(alone)
    one = losses(tmp_path / "one")
    assert len(one) == STEPS
    finish(exact(2, data, "-o", tmp_path / "two", *options(recipe, STEPS)))
    np.testing.assert_allclose(losses(tmp_path / "two"), one, rtol=1e-9)
    if recipe == "plain":  # begun by one, finished by two
        assert len(losses(tmp_path / "half")) < STEPS
        finish(exact(2, "--resume", tmp_path / "half"))
        np.testing.assert_allclose(losses(tmp_path / "half"), one, rtol=1e-9)


def test_two_processes_write_one_model(data: Path, tmp_path: Path) -> None:
    for processes, name in ((1, "one"), (2, "two")):
        finish(start(processes, data, "-o", tmp_path / name, *options("plain", 3)))
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), rtol=1e-5)
    assert c5.load_model(tmp_path / "two/model.c5").name == "two"


def test_a_set_that_is_larger_than_memory_trains_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    samples, _ = render_samples(2, 4, config(), seed=1)
    kept = load_training_data(samples, config())
    monkeypatch.setattr(growing, "MOST_BYTES", 1_000)
    monkeypatch.setattr(growing, "cache_folder", lambda: tmp_path)
    mapped = load_training_data(samples, config())
    assert kept.views is not None
    assert mapped.views is not None
    assert (is_mapped(mapped.views), is_mapped(kept.views)) == (True, False)
    np.testing.assert_array_equal(mapped.views, kept.views)
    one, two = (list(Trainer(config(), data, torch.device("cpu")).run()) for data in (kept, mapped))
    assert one == two
    assert not list((tmp_path / "unpacked").iterdir())


def is_mapped(array: Any) -> bool:
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return isinstance(array, mmap.mmap)


def test_processes_of_a_machine_load_a_set_once(tmp_path: Path) -> None:
    """What one of them changes the other one sees."""
    context = torch.multiprocessing.get_context("spawn")
    told = context.SimpleQueue()
    processes = [context.Process(target=load_together, args=(rank, tmp_path, told)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert sorted(told.get() for _ in processes) == [(0, [7, 1, 2], ["a", "b"]), (1, [7, 1, 2], ["a", "b"])]
    assert len(list(tmp_path.glob("loaded-*"))) == 1
    assert not list((tmp_path / "unpacked").iterdir())


LEAVING = """
from pathlib import Path
import torch
from c5.training.together import find_group

assert find_group().size == 2
torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # which imports much of torch
torch.distributed.destroy_process_group()
names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
raise SystemExit(any("gloo" in name for name in names))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no list of threads here")
def test_no_thread_of_the_group_outlives_it(tmp_path: Path) -> None:
    """A thread that needs the interpreter when it is gone aborts the process, though its work is done."""
    (tmp_path / "leaving.py").write_text(LEAVING)
    finish(start(2, program=[tmp_path / "leaving.py"]))


def load_together(rank: int, folder: Path, told: Any) -> None:
    distributed.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=2)
    os.environ["LOCAL_RANK"] = str(rank)
    vars(growing)["cache_folder"] = lambda: folder

    def load() -> tuple[Any, Any]:
        (folder / f"loaded-{rank}").touch()
        return np.arange(3), np.array(["a", "b"])

    numbers, names = Group(rank, 2).share(load)
    if rank == 0:
        numbers[0] = 7
    distributed.barrier()
    told.put((rank, numbers.tolist(), names.tolist()))
    distributed.destroy_process_group()
