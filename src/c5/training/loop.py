"""The training loop: the data on the device, the step captured as a CUDA graph where there is one, checkpoints."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from c5.errors import C5Error, ParameterError, ReadError
from c5.evaluation.methods import Estimates
from c5.io.readers import decoding
from c5.io.shapes import check_shape
from c5.training.batches import Batches, StoredBatches
from c5.training.ccc import Locator
from c5.training.config import RealTraining, TrainConfig
from c5.training.data import TrainingData
from c5.training.losses import angular_error, log_likelihood, smoothness
from c5.training.network import Emitted, Network, SeparateNetwork, build_network
from c5.training.tensors import load_weights
from c5.training.together import Group, share_statistics
from c5.training.virtual import VirtualBatches


class TrainingError(C5Error):
    """Training cannot go on; the last checkpoint is good."""


STATE = {
    "epoch": int,
    "steps_done": int,
    "network": object,
    "averaged": object,
    "optimizer": {"state": dict, "param_groups": [dict]},
}
"""What a checkpoint keeps of a trainer."""


@dataclass(frozen=True)
class Epoch:
    """The result of one pass over the data."""

    number: int  # from 1
    loss: float
    error: float  # mean angular error on the training images, degrees, with the weights as they moved


def default_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


_ALONE = threading.Lock()
"""Held while using what torch has only once per process: its random state, cuDNN's flags."""


class Trainer:
    """One run: the network, its optimizer, and the data on the device. Several may run at once, a thread each."""

    def __init__(
        self, config: TrainConfig, data: TrainingData, device: torch.device | None = None, group: Group | None = None
    ) -> None:
        self.config = config
        self.device = device or default_device()
        self.group = group
        self.weight = 1.0  # of this process's part of a batch
        self.epoch = 0
        self.history: list[Epoch] = []
        with _ALONE, torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            network = build_network(*config.networks)
        # Channels last is the layout of the fast convolutions; any other is converted back and forth.
        self.network: Network = network.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        if group is not None:
            share_statistics(self.network)
        self.locator = Locator(config.grid).to(self.device)
        cuda = self.device.type == "cuda"
        self.stream = torch.cuda.Stream(self.device) if cuda else None  # type: ignore[no-untyped-call]
        self.optimizer = torch.optim.Adam(
            self.network.parameters(),
            lr=torch.tensor(config.learning_rate, device=self.device) if cuda else config.learning_rate,
            weight_decay=config.weight_decay,
            capturable=cuda,
            fused=cuda,  # one kernel instead of hundreds
        )
        self.batches: Batches
        if isinstance(config, RealTraining):
            self.batches = StoredBatches(data, config, self.device)
        else:
            self.batches = VirtualBatches(data, config, self.device)
        self.averaged = copy.deepcopy(self.network) if config.average_decay else None
        self.steps_done = 0
        self.share = torch.ones((), device=self.device)  # of the current weights in their average, per step
        self.totals = torch.zeros(2, device=self.device)  # loss, angular error
        self.steps: dict[int, Callable[..., None]] = {}
        self.amid_epoch = False
        """Whether an epoch has begun and not ended; `state` is good for resuming only if not."""

    @property
    def model(self) -> Network:
        """The network that counts: the average of the weights, if there is one."""
        return self.network if self.averaged is None else self.averaged

    def run(self) -> Iterator[Epoch]:
        """Train to the end; yields each epoch when it is done."""
        while self.epoch < self.config.epochs:
            yield self.run_epoch()

    def run_epoch(self) -> Epoch:
        if self.stream is None:
            return self._run_epoch()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            epoch = self._run_epoch()
        torch.cuda.current_stream().wait_stream(self.stream)
        return epoch

    def _run_epoch(self) -> Epoch:
        config = self.config
        # Everything random in an epoch comes from the seed and its number, so that a resumed run is the same run.
        draws = self.batches.draw(self.epoch, np.random.default_rng([config.seed, self.epoch]))
        if self.group is not None:
            draws, self.weight = self.group.take_part(draws)
        self._set_learning_rate(config.learning_rate * 0.5 * (1 + math.cos(math.pi * self.epoch / config.epochs)))
        # The average begins over few steps and covers more as there are more.
        self.share.fill_(max(1 - config.average_decay, 10 / (10 + self.steps_done)))
        self.network.train()
        self.totals.zero_()
        on_device = [torch.as_tensor(array).to(self.device) for array in draws]
        count, batch = on_device[0].shape[:2]
        if batch not in self.steps:
            self.steps[batch] = self._make_step([array[0].clone() for array in on_device])
        step = self.steps[batch]
        self.amid_epoch = True
        for index in range(count):
            step(*(array[index] for array in on_device))
        self.steps_done += count
        if self.group is not None:
            self.group.add(self.totals)
        loss, error = (self.totals / count).tolist()
        if not math.isfinite(loss):
            self._fail(f"the loss became {loss}")
        if not bool(torch.stack([weights.isfinite().all() for weights in self.network.parameters()]).all()):
            self._fail("weights became infinite")
        self.epoch += 1
        self.history.append(Epoch(self.epoch, loss, error))
        self.amid_epoch = False
        return self.history[-1]

    def _fail(self, what: str) -> None:
        raise TrainingError(
            f"{what} in epoch {self.epoch + 1}; the last checkpoint is good, but the run would do the same again: "
            "check the labels, or start anew with another seed or a lower learning rate"
        )

    def state(self) -> dict[str, Any]:
        """All that a checkpoint must keep."""
        return {
            "epoch": self.epoch,
            "steps_done": self.steps_done,
            "network": self.network.state_dict(),
            "averaged": None if self.averaged is None else self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state(self, state: Mapping[str, Any], history: list[Epoch]) -> None:
        """Continue from a checkpoint; a ReadError if it does not fit."""
        check_shape(state, STATE)
        optimizer, parameters = state["optimizer"], list(self.network.parameters())
        if not all(isinstance(kept, dict) for kept in optimizer["state"].values()):
            raise ReadError("no moments")
        moments = [(number, tensor) for number, kept in optimizer["state"].items() for tensor in kept.values()]
        for number, tensor in moments:
            if number not in range(len(parameters)) or not isinstance(tensor, Tensor) or tensor.dtype != torch.float32:
                raise ReadError("moments of other weights")
            if tensor.ndim and tensor.shape != parameters[number].shape:
                raise ReadError("moments of other weights")
        if state["epoch"] != len(history):
            raise ReadError("another number of epochs")
        load_weights(self.network, state["network"])
        if self.averaged is not None:
            load_weights(self.averaged, state["averaged"])
        weights = [*self.network.state_dict().values(), *self.model.state_dict().values()]
        if not all(tensor.isfinite().all() for tensor in (*weights, *(tensor for _, tensor in moments))):
            raise ReadError("weights that are not finite")
        groups = self.optimizer.param_groups
        if len(optimizer["param_groups"]) != len(groups):
            raise ReadError("another optimizer")
        for group, own in zip(optimizer["param_groups"], groups, strict=True):
            group |= {key: own[key] for key in ("lr", "capturable", "fused")}  # of this device, not of that one
        with decoding():
            self.optimizer.load_state_dict(optimizer)
        self.epoch, self.steps_done, self.history = state["epoch"], state["steps_done"], history

    def _set_learning_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def _step(self, *row: Tensor) -> None:
        config = self.config
        batch = self.batches.make(*row)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=config.bfloat16):
            lessons = self.network.lessons(batch.query, batch.roll, batch.present)
        # Each member of a team learns by itself: they share only the batch.
        loss, error = torch.zeros((), device=self.device), torch.zeros((), device=self.device)
        for emitted, histograms in lessons:
            maps = Emitted(*(None if part is None else part.float() for part in emitted))  # type: ignore[arg-type]
            located = self.locator(maps, histograms)
            off = angular_error(located.illuminant, batch.illuminants).mean()
            loss = loss + off + smoothness(maps, config.smooth_filters, config.smooth_bias)
            if config.likelihood:
                loss = loss - config.likelihood * log_likelihood(located, batch.illuminants, self.locator).mean()
            error = error + off.detach()
        self.optimizer.zero_grad()
        if self.group is not None:
            loss, error = self.weight * loss, self.weight * error
        loss.backward()  # type: ignore[no-untyped-call]
        if self.group is not None:
            self.group.add_gradients(self.network.parameters())
        self.optimizer.step()
        self.totals += torch.stack([loss.detach(), error]) / len(lessons)
        if self.averaged is not None:
            self._average()

    @torch.no_grad()
    def _average(self) -> None:
        assert self.averaged is not None
        now, mean = _floats(self.network), _floats(self.averaged)
        change = torch._foreach_sub(now, mean)
        torch._foreach_mul_(change, self.share)
        torch._foreach_add_(mean, change)

    def _make_step(self, inputs: list[Tensor]) -> Callable[..., None]:
        """A function that does a step with arrays like these."""
        if self.device.type != "cuda" or self.group is not None:  # what is sent between processes is not captured
            return self._step
        with _ALONE, torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
            return self._capture(inputs)

    def _capture(self, inputs: list[Tensor]) -> Callable[..., None]:
        # Warming up moves the weights, so they are put back; capture itself runs nothing.
        networks = [self.network, *([] if self.averaged is None else [self.averaged])]
        states = [copy.deepcopy(network.state_dict()) for network in networks]
        moments = copy.deepcopy(self.optimizer.state_dict())
        for _ in range(3):
            self._step(*inputs)
        torch.cuda.current_stream().synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            self._step(*inputs)
        with torch.no_grad():
            for network, state in zip(networks, states, strict=True):
                network.load_state_dict(state)  # in place, where the graph looks for them
            _restore(self.optimizer, moments)
        self.totals.zero_()

        def replay(*arrays: Tensor) -> None:
            for static, array in zip(inputs, arrays, strict=True):
                static.copy_(array)
            graph.replay()

        return replay


class Evaluator:
    """A trained network and images to test it on. What does not depend on the rolls is computed once."""

    def __init__(self, network: Network, stacks: NDArray[np.float16]) -> None:
        """`stacks` (images, *grid.shape) are the histograms of the images, on the network's grid."""
        if stacks.shape[1:] != network.grid.shape:
            raise ParameterError(f"the network needs histograms of shape {network.grid.shape}, not {stacks.shape[1:]}")
        self.network = network.eval()
        self.device = next(network.parameters()).device
        self.locator = Locator(network.grid).to(self.device)
        self.stacks = torch.as_tensor(stacks).to(self.device)

    @torch.no_grad()
    def estimate(self, rolls: NDArray[np.int64], queries: NDArray[np.int64] | None = None) -> Estimates:
        """The illuminants (queries, 3) and uncertainties (queries,) of images, each with the images at `rolls`
        (queries, additional) as its roll.

        Queries are indices; default: every image is one. With no additional images each query stands alone.
        """
        chosen = torch.as_tensor(np.arange(len(self.stacks)) if queries is None else queries).to(self.device)
        slots = torch.as_tensor(rolls).to(self.device)
        network, grid = self.network, self.network.grid
        if isinstance(network, SeparateNetwork) and slots.shape[1] != network.config.n_images - 1:
            raise ParameterError(f"this network takes {network.config.n_images - 1} additional images")
        illuminants, uncertainties = [], []
        for query, roll in zip(torch.split(chosen, 128), torch.split(slots, 128), strict=True):
            stacks = self.stacks[query].float()
            if isinstance(network, SeparateNetwork):
                emitted = network(stacks[:, grid.seen], self.stacks[roll][:, :, grid.seen].float())
            elif roll.shape[1] == 0:
                emitted = network.emit(
                    stacks[:, grid.seen], [torch.zeros_like(level[:1]).float() for level in self._features]
                )
            else:
                emitted = network.emit(stacks[:, grid.seen], [pool(level, roll).float() for level in self._features])
            located = self.locator(emitted, stacks[:, grid.searched])
            illuminants.append(located.illuminant.double().cpu().numpy())
            uncertainties.append(self.locator.uncertainty(located).double().cpu().numpy())
        return Estimates(np.concatenate(illuminants), np.concatenate(uncertainties))

    @cached_property
    def _features(self) -> list[Tensor]:
        """The features of every image, which do not depend on where it is used; in half precision, as in profiles."""
        assert not isinstance(self.network, SeparateNetwork)
        parts = [
            [level.half() for level in self.network.encode(part[:, self.network.grid.seen].float())]
            for part in torch.split(self.stacks, 256)
        ]
        return [torch.cat(level) for level in zip(*parts, strict=True)]


def pool(features: Tensor, roll: Tensor) -> Tensor:
    """The maximum of features (images, c, h, w) over each roll (batch, k), one slot at a time to save memory."""
    pooled = features[roll[:, 0]]
    for slot in range(1, roll.shape[1]):
        pooled = torch.maximum(pooled, features[roll[:, slot]])
    return pooled


def _floats(network: Network) -> list[Tensor]:
    """Weights and statistics, but no counters."""
    return [tensor for tensor in network.state_dict().values() if tensor.is_floating_point()]


def _restore(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Put moments back in place, where a captured graph looks for them; a fresh optimizer's are zero."""
    saved = state["state"]
    for index, parameter in enumerate(p for group in optimizer.param_groups for p in group["params"]):
        for name, tensor in optimizer.state[parameter].items():
            tensor.copy_(saved[index][name]) if index in saved else tensor.zero_()
