"""Methods under test that learn from each fold: C5 in any configuration, and FFCC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from c5.color import Float32s, Float64s
from c5.datasets import Sample
from c5.errors import ParameterError
from c5.evaluation.methods import Method, Rolls, Task, digest_name, slug
from c5.evaluation.rolls import vividness
from c5.training.config import NetworkConfig, RollKind, TrainConfig
from c5.training.data import load_samples
from c5.training.loop import default_device, estimate
from c5.training.network import Network, build_network
from c5.training.run import Plan, train
from c5.training.samples import Samples


def configurations() -> dict[str, TrainConfig]:
    """The package's recipe, the paper's, and what the paper's ablations take away from it, by name."""
    base = TrainConfig()

    def bins(count: int, widths: tuple[int, ...] = base.network.widths) -> TrainConfig:
        network = replace(base.network, bins=count, widths=widths)
        return replace(base, network=network, shift=base.shift * count // base.network.bins)

    return {
        "default": base,
        "paper": TrainConfig.paper(),
        "bins-16": bins(16, (8, 16, 32)),
        "bins-32": bins(32),
        "bins-128": bins(128),
        "smoothness-0": replace(base, smooth_filters=0, smooth_bias=0),
        "smoothness-low": replace(base, smooth_filters=0.035, smooth_bias=0.005),
        "smoothness-high": replace(base, smooth_filters=0.75, smooth_bias=0.1),
        "smoothness-highest": replace(base, smooth_filters=1.85, smooth_bias=0.25),
        "constant-batch": replace(base, batch_sizes=(16,)),
        "no-gradient": replace(base, network=replace(base.network, gradient=False)),
        "no-uv": replace(base, network=replace(base.network, coordinates=False)),
        "gain": replace(base, network=replace(base.network, gain=True)),
    }


ABLATIONS = tuple(name for name in configurations() if name not in ("default", "paper"))


@dataclass(frozen=True, eq=False)
class C5:
    """The hypernetwork, trained on a fold's training side, then tested with rolls of other images."""

    name: str
    config: TrainConfig
    rolls: Rolls
    seeds: tuple[int, ...] = (0,)
    """A network is trained with each; their estimates count as repeats."""
    learns: bool = True
    _views: dict[str, Float32s] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = self.config.network.n_images
        if self.config.network.kind is RollKind.SEPARATE and set(self.rolls.n_images) != {count}:
            raise ParameterError(f"{self.name} is bound to m = {count}: give --m {count}")

    @property
    def settings(self) -> dict[str, Any]:
        return {"config": self.config.to_json(), "seeds": list(self.seeds)} | self.rolls.settings

    def estimate(self, task: Task) -> dict[str, Float64s]:
        networks = [self._train(task, replace(self.config, seed=seed)) for seed in self.seeds]
        samples = self._load(task.photographs, 0, task)
        place = {sample.name: index for index, sample in enumerate(task.photographs)}
        queries = np.array([place[sample.name] for sample in task.test])
        vivid = vividness(samples.histograms, self.config.network.grid)
        return {
            variant: np.stack([estimate(net, samples, roll, queries) for net in networks for roll in repeats])
            for variant, repeats in self.rolls.draw(samples.cameras, vivid, queries).items()
        }

    def _train(self, task: Task, config: TrainConfig) -> Network:
        """The network as trained on the fold; a training that was stopped goes on, one that is done is kept."""
        names = sorted(sample.name for sample in task.training)
        content = [config.to_json(), names]
        folder = task.folder / digest_name(self.name, content) / slug(task.fold.name)
        if not (folder / "model.c5").exists():
            plan = Plan(config, [], [])
            plan.save(folder)
            samples = self._load(task.training, config.crops, task)
            steps = train(plan, samples, folder)
            for _ in task.track(range(config.epochs), f"{self.name}, seed {config.seed}, {task.fold.name}"):
                if next(steps, None) is None:
                    break
            for _ in steps:
                pass
        return load_network(folder, config.network)

    def _load(self, samples: list[Sample], crops: int, task: Task) -> Samples:
        """Their histograms, each read once in a run."""
        wanted = [
            sample for sample in samples if (sample.name not in self._views) or len(self._views[sample.name]) <= crops
        ]
        if wanted:
            loaded = load_samples(
                wanted, self.config.network.grid, self.config.crops, lambda items: task.track(items, "histograms")
            )
            self._views.update(zip((sample.name for sample in wanted), loaded.views, strict=True))
        views = np.stack([self._views[sample.name][: 1 + crops] for sample in samples])
        illuminants = np.stack([sample.illuminant for sample in samples])
        return Samples(views, illuminants, np.array([sample.camera for sample in samples]))


def load_network(folder: Path, config: NetworkConfig) -> Network:
    """The network of a run that is done."""
    state = torch.load(folder / "checkpoint.pt", map_location="cpu", weights_only=True)
    network = build_network(config)
    network.load_state_dict(state["network"])
    return network.to(default_device()).eval()


def make_methods(
    text: str, rolls: Rolls, seeds: Sequence[int], epochs: int | None = None, bfloat16: bool = False
) -> list[Method]:
    """The methods that a name stands for: ffcc, c5, c5:CONFIGURATION, c5:ablations."""
    kind, _, wanted = text.partition(":")
    known = configurations()
    names = ("default", *ABLATIONS) if wanted == "ablations" else (wanted or "default",)
    methods: list[Method] = []
    for name in names:
        if kind != "c5" or name not in known:
            raise ParameterError(f"no configuration of C5 is called {text!r}; there are {', '.join(known)}, ablations")
        config = known[name]
        config = replace(config, epochs=epochs or config.epochs, bfloat16=bfloat16)
        methods.append(C5("c5" if name == "default" else f"c5:{name}", config, rolls, tuple(seeds)))
    return methods
