"""Methods under test that learn from each fold: C5 in any configuration, and FFCC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from c5.color import Float32s
from c5.datasets import Sample
from c5.errors import ParameterError
from c5.evaluation.methods import Estimates, Kept, Method, Rolls, Task, digest_name, slug
from c5.evaluation.protocols import check_separation
from c5.histograms import vividness
from c5.training.config import Recipe, RollKind, TrainConfig
from c5.training.data import load_palettes, load_samples, remember
from c5.training.extra import Extra, make_extra
from c5.training.ffcc import FfccConfig, train_ffcc, wrapped_histograms
from c5.training.loop import default_device, estimate
from c5.training.network import Network, build_network
from c5.training.run import Plan, train
from c5.training.samples import Samples


def configurations() -> dict[str, TrainConfig]:
    """The recipes, and what the paper's ablations take away from the default, by name."""
    base = Recipe.DEFAULT.make()

    def bins(count: int, widths: tuple[int, ...] = base.network.widths) -> TrainConfig:
        network = replace(base.network, bins=count, widths=widths)
        return replace(base, network=network, shift=base.shift * count // base.network.bins)

    return {
        **{recipe.value: recipe.make() for recipe in Recipe},
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


PAPER_MADE = {"c5": 5000, "ffcc": 500}
"""How many augmented images the paper adds."""

ABLATIONS = tuple(name for name in configurations() if name not in {recipe.value for recipe in Recipe})


@dataclass(frozen=True, eq=False)
class C5:
    """The hypernetwork, trained on a fold's training side, then tested with rolls of other images."""

    name: str
    config: TrainConfig
    rolls: Rolls
    seeds: tuple[int, ...] = (0,)
    """A network is trained with each; their estimates count as repeats."""
    extra: Extra | None = None
    learns: bool = True
    _kept: Kept = field(default_factory=Kept)
    _palettes: Kept = field(default_factory=Kept)

    def __post_init__(self) -> None:
        count = self.config.network.n_images
        if self.config.network.kind is RollKind.SEPARATE and set(self.rolls.n_images) != {count}:
            raise ParameterError(f"{self.name} is bound to m = {count}: give --m {count}")

    @property
    def device(self) -> str:
        return device_name()

    @property
    def settings(self) -> dict[str, Any]:
        return {"config": self.config.to_json(), "seeds": list(self.seeds)} | _extra(self.extra) | self.rolls.settings

    def estimate(self, task: Task) -> dict[str, Estimates]:
        networks = [self._train(task, replace(self.config, seed=seed)) for seed in self.seeds]
        samples = self._load(task.photographs, task, training=False)
        vivid = vividness(samples.histograms, self.config.grid)
        result = {}
        for variant, repeats in self.rolls.draw(task.cameras, vivid, task.queries).items():
            found = [estimate(network, samples, roll, task.queries) for network in networks for roll in repeats]
            illuminants, uncertainties = zip(*found, strict=True)
            result[variant] = Estimates(np.stack(illuminants), np.stack(uncertainties))
        return result

    def _train(self, task: Task, config: TrainConfig) -> Network:
        """The network as trained on the fold; a training that was stopped goes on, one that is done is kept."""
        content = [config.to_json(), _extra(self.extra), task.digest]
        folder = task.folder / digest_name(self.name, content) / slug(task.fold.name)
        if not (folder / "model.c5").exists():
            plan = Plan(config, [], [], self.extra)
            plan.save(folder)
            images = add_extra(task, self.extra)
            met = frozenset(camera for sample in images for camera in sample.cameras)
            steps = train(plan, self._load(images, task, training=True), folder, met=met)
            for _ in task.track(range(config.epochs), f"{self.name}, seed {config.seed}, {task.fold.name}"):
                if next(steps, None) is None:
                    break
            for _ in steps:
                pass
        return load_network(folder, config)

    def _load(self, samples: list[Sample], task: Task, *, training: bool) -> Samples:
        """Their histograms, and for training what else it needs."""
        grid, crops, virtual = self.config.grid, self.config.crops, self.config.virtual is not None

        def track(items: Sequence[Sample]) -> Iterable[Sample]:
            return task.track(items, "histograms")

        views = self._kept.load(samples, lambda wanted: load_samples(wanted, grid, crops, track).views)
        palettes = None
        if training and virtual:
            palettes = self._palettes.load(samples, lambda wanted: load_palettes(wanted, grid, track))
        return Samples(
            views if training else views[:, :1],
            np.stack([sample.illuminant for sample in samples]),
            np.array([sample.camera for sample in samples]),
            palettes,
        )


@dataclass(frozen=True, eq=False)
class FfccMethod:
    """One FFCC model for all that a fold trains on, whatever the number of cameras."""

    name: str = "ffcc"
    config: FfccConfig = field(default_factory=FfccConfig)
    extra: Extra | None = None
    learns: bool = True
    _kept: Kept = field(default_factory=Kept)

    @property
    def device(self) -> str:
        return f"CPU, torch {torch.__version__}"

    @property
    def settings(self) -> dict[str, Any]:
        return {"config": asdict(self.config)} | _extra(self.extra)

    def estimate(self, task: Task) -> dict[str, Estimates]:
        training = add_extra(task, self.extra)
        illuminants = np.stack([sample.illuminant for sample in training])
        learnt = train_ffcc(self._load(training, task), illuminants, self.config)
        return {"": Estimates(learnt.estimate(self._load(task.test, task))[None])}

    def _load(self, samples: list[Sample], task: Task) -> Float32s:
        config = self.config
        what, shape = f"ffcc {config.bins} {config.step} {config.weight_power}", (2, config.bins, config.bins)
        return self._kept.load(
            samples,
            lambda wanted: [
                remember(sample, what, shape, lambda image, _: wrapped_histograms(image, config))
                for sample in task.track(wanted, "histograms")
            ],
        )


def add_extra(task: Task, extra: Extra | None) -> list[Sample]:
    """A fold's training side with what is made of it on the fly, after a last look that nothing leaks."""
    if extra is None:
        return task.training
    photographs = [sample for sample in task.training if not sample.made]
    made = extra.make(photographs, task.fold.unseen, lambda items: task.track(items, "augmenting"))
    check_separation(task.fold, made)
    return [*task.training, *made]


def _extra(extra: Extra | None) -> dict[str, Any]:
    return {} if extra is None else {"extra": extra.fingerprint}


def device_name() -> str:
    """Where networks are trained, and with what."""
    device = default_device()
    return f"{torch.cuda.get_device_name() if device.type == 'cuda' else 'CPU'}, torch {torch.__version__}"


def load_network(folder: Path, config: TrainConfig) -> Network:
    """The network of a run that is done."""
    state = torch.load(folder / "checkpoint.pt", map_location="cpu", weights_only=True)
    network = build_network(*config.networks)
    network.load_state_dict(state["network"] if state["averaged"] is None else state["averaged"])
    return network.to(default_device()).eval()


def make_methods(
    text: str,
    rolls: Rolls,
    *,
    seeds: Sequence[int] = (0,),
    epochs: int | None = None,
    bfloat16: bool = False,
    made: int | None = None,
    matrices: str | None = None,
) -> list[Method]:
    """The methods that a name stands for: ffcc, c5, c5:CONFIGURATION, c5:ablations, each with +AUGMENTATION or without.

    `made` is how many images augmentation makes for a fold; default: as many as in the paper.
    """
    what, _, augmentation = text.partition("+")
    kind, _, wanted = what.partition(":")
    extra = make_extra(augmentation, made or PAPER_MADE.get(kind, 0), matrices) if augmentation else None
    suffix = f"+{augmentation}" if augmentation else ""
    if what == "ffcc":
        return [FfccMethod(f"ffcc{suffix}", extra=extra)]
    known = configurations()
    methods: list[Method] = []
    for name in ("default", *ABLATIONS) if wanted == "ablations" else (wanted or "default",):
        if kind != "c5" or name not in known:
            raise ParameterError(
                f"no configuration of C5 is called {wanted!r}; there are {', '.join(known)}, ablations"
            )
        config = replace(known[name], epochs=epochs or known[name].epochs, bfloat16=bfloat16)
        full = f"c5{'' if name == 'default' else ':' + name}{suffix}"
        methods.append(C5(full, config, rolls, tuple(seeds), extra))
    return methods
