"""Several processes that train one network, started by torchrun: each takes a part of every batch.

All of them draw the same random numbers, and each takes its own part. Gradients are summed, each weighted by its part
of the batch; so are the sums that batch normalization takes over a batch. So the steps are those of one process, except
for rounding, whatever the number of processes.
"""

from __future__ import annotations

import atexit
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, BinaryIO, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed, nn

from c5.datasets.growing import map_unpacked, open_unpacked, writing_unpacked
from c5.errors import ParameterError

PATIENCE = timedelta(days=2)
"""How long a process waits for another, which may be preparing a set. torchrun notices one that has died."""

ALIGNMENT = 64

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Group:
    """The processes, and which one this is."""

    rank: int
    size: int

    def take_part(self, draws: Sequence[NDArray[Any]]) -> tuple[list[NDArray[Any]], float]:
        """This process's part of an epoch's draws, (steps, batch, ...) each, and its share of a batch."""
        batch = draws[0].shape[1]
        if batch < self.size:
            raise ParameterError(f"a batch of {batch} cannot be shared by {self.size} processes; start fewer")
        edges = np.linspace(0, batch, self.size + 1).astype(int)
        first, end = int(edges[self.rank]), int(edges[self.rank + 1])
        return [np.ascontiguousarray(array[:, first:end]) for array in draws], (end - first) / batch

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """The sum over all processes, in place, in one message."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        total = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(total)
        parts = torch.split(total, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def add(self, numbers: Tensor) -> None:
        """The sum over all processes, in place."""
        distributed.all_reduce(numbers)

    @contextmanager
    def one_by_one(self) -> Iterator[None]:
        """The first process goes first, so that the others find what it has prepared."""
        if self.rank:
            distributed.barrier()
        yield
        if not self.rank:
            distributed.barrier()

    def share(self, load: Callable[[], Loaded]) -> Loaded:
        """What the first process of each machine loads. All processes there map its arrays from one file."""
        if not os.path.exists("/proc/self/fd"):  # by which they find it
            return load()
        place, first = int(os.environ["LOCAL_RANK"]), None
        if place == 0:
            buffers: list[pickle.PickleBuffer] = []
            value = pickle.dumps(load(), 5, buffer_callback=buffers.append)
            with writing_unpacked():
                file = open_unpacked()
                spans = [_append(file, buffer) for buffer in buffers]
                file.flush()
            first = (f"/proc/{os.getpid()}/fd/{file.fileno()}", value, spans)
            del buffers
        told: list[Any] = [None] * self.size
        distributed.all_gather_object(told, first)
        path, value, spans = told[self.rank - place]
        mapped = map_unpacked(path)
        distributed.barrier()  # until now, the first keeps it open
        loaded: Loaded = pickle.loads(value, buffers=[mapped[start:end] for start, end in spans])
        return loaded


def _append(file: BinaryIO, buffer: pickle.PickleBuffer) -> tuple[int, int]:
    """Where the buffer now is in the file."""
    start = -(-file.tell() // ALIGNMENT) * ALIGNMENT
    file.seek(start)
    file.write(buffer.raw())
    return start, file.tell()


@cache
def find_group() -> Group | None:
    """The processes that torchrun has started; None where this one is alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size < 2 or not distributed.is_available():
        return None
    import torch._dynamo  # before the group exists: its functions would keep the group, and with it its threads

    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE)
    atexit.register(distributed.destroy_process_group)  # threads that outlive the interpreter abort the process
    return Group(distributed.get_rank(), size)


def is_first() -> bool:
    """Whether this process is the one that writes and reports."""
    return os.environ.get("RANK", "0") == "0"


def share_statistics(network: nn.Module) -> None:
    """Let every batch normalization take its statistics over the batches of all processes."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.__class__ = _SharedBatchNorm


class _Sum(torch.autograd.Function):
    """The sum over all processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, numbers: Tensor) -> Tensor:
        total = numbers.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _Sum.forward(ctx, gradient)


class _SharedBatchNorm(nn.BatchNorm2d):
    def forward(self, maps: Tensor) -> Tensor:
        """As torch's, with mean and variance over all processes."""
        if not self.training:
            return super().forward(maps)
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        count = torch.full((1,), maps.numel() / maps.shape[1], device=maps.device)
        distributed.all_reduce(count)
        mean: Tensor = _Sum.apply(maps.sum(dim=(0, 2, 3))) / count  # type: ignore[no-untyped-call]
        centered = maps - mean[:, None, None]
        squares = centered.square().sum(dim=(0, 2, 3))
        variance: Tensor = _Sum.apply(squares) / count  # type: ignore[no-untyped-call]
        with torch.no_grad():
            self.num_batches_tracked += 1
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * count / (count - 1), self.momentum)
        scale: Tensor = self.weight * (variance + self.eps).rsqrt()
        return centered * scale[:, None, None] + self.bias[:, None, None]
