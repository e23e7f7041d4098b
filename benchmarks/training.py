"""How fast training is: 60 epochs of 2,304 images with 9 inputs each, on this machine's GPU (a few steps on a CPU)."""

from __future__ import annotations

import time

import numpy as np
import torch
from timing import show

from c5.rolls import draw_rolls
from c5.training.config import RealTraining
from c5.training.data import TrainingData
from c5.training.loop import Evaluator, Trainer, default_device

IMAGES, CAMERAS = 2304, 10


def main() -> None:
    device = default_device()
    rng = np.random.default_rng(0)
    count = IMAGES if device.type == "cuda" else 128
    masses = rng.random((count, 2, 64, 64), dtype=np.float32) ** 30
    stacks = np.sqrt(masses / masses.sum(axis=(2, 3), keepdims=True)).astype(np.float16)
    cameras = np.array([f"camera {index % CAMERAS}" for index in range(count)])
    data = TrainingData(rng.uniform(0.3, 1, (count, 3)), cameras, views=stacks[:, None])
    config = RealTraining() if device.type == "cuda" else RealTraining(epochs=1, batch_sizes=(32,))
    start = time.perf_counter()
    trainer = Trainer(config, data)
    for _ in trainer.run():
        pass
    taken = time.perf_counter() - start
    rows = [
        [f"training, {config.epochs} epochs of {count} images, set-up and capture included", f"{taken:.1f} s"],
        ["training", f"{config.epochs * count / taken:.0f} queries/s"],
    ]
    rolls = draw_rolls(cameras, np.arange(count), 8, rng)
    start = time.perf_counter()
    Evaluator(trainer.network, stacks).estimate(rolls)
    rows.append(
        ["estimating in batches of 256, roll of 8 included", f"{count / (time.perf_counter() - start):.0f} images/s"]
    )
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    show(f"Training on {name}", ["job", "result"], rows)


if __name__ == "__main__":
    main()
