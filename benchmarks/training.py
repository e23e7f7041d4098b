"""How fast training is: 2,304 images, 9 inputs each in the plain recipe and 7 in the paper's, on this machine's GPU (a
few steps on a CPU). --epochs shortens it; --together trains that many of the paper's networks at a time."""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import torch
from timing import show

from c5.rolls import draw_rolls
from c5.training.config import RealTraining, paper_training
from c5.training.data import TrainingData
from c5.training.loop import Evaluator, Trainer, default_device

IMAGES, CAMERAS = 2304, 10


def train(config: RealTraining, data: TrainingData) -> Trainer:
    trainer = Trainer(config, data)
    for _ in trainer.run():
        pass
    return trainer


def measure(name: str, config: RealTraining, data: TrainingData, together: int = 1) -> tuple[list[str], Trainer]:
    """The row of some networks that are trained at the same time, and one of them."""
    start = time.perf_counter()
    with ThreadPoolExecutor(together) as threads:
        trainer, *_ = threads.map(train, [config] * together, [data] * together)
    taken = time.perf_counter() - start
    trained = together * config.epochs * len(data)
    return [f"{name}: {config.epochs} epochs, set-up included", f"{taken:.1f} s", f"{trained / taken:.0f}"], trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--together", type=int, default=4)
    arguments = parser.parse_args()
    device = default_device()
    gpu = device.type == "cuda"
    count, epochs = (IMAGES, arguments.epochs) if gpu else (128, 1)
    rng = np.random.default_rng(0)
    masses = rng.random((count, 2, 64, 64), dtype=np.float32) ** 30
    stacks = np.sqrt(masses / masses.sum(axis=(2, 3), keepdims=True)).astype(np.float16)
    cameras = np.array([f"camera {index % CAMERAS}" for index in range(count)])
    data = TrainingData(rng.uniform(0.3, 1, (count, 3)), cameras, views=stacks[:, None])
    plain, paper = replace(RealTraining(), epochs=epochs), replace(paper_training(7), epochs=epochs)
    half = replace(paper, bfloat16=True)
    row, trainer = measure("plain", plain, data)
    rolls = draw_rolls(cameras, np.arange(count), 8, rng)
    start = time.perf_counter()
    Evaluator(trainer.network, stacks).estimate(rolls)
    taken = time.perf_counter() - start
    rows = [
        row,
        ["plain: estimates with a roll of 8 that was not seen before", f"{taken:.1f} s", f"{count / taken:.0f}"],
        measure("the paper's network, m = 7", paper, data)[0],
        measure("the same in bfloat16", half, data)[0],
        measure(f"{arguments.together} of them at a time", half, data, arguments.together)[0],
    ]
    name = torch.cuda.get_device_name() if gpu else f"{torch.get_num_threads()} CPU threads"
    show(f"Training on {name}", ["job", "time", "images a second"], rows)


if __name__ == "__main__":
    main()
