"""Methods under test that learn from each fold: C5 in any configuration, and FFCC."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from c5.augmentation import Augmentation
from c5.choices import Recipe
from c5.color import Float32s
from c5.datasets import Sample
from c5.datasets.features import Feature, HistogramFeature
from c5.datasets.prepared import load_feature, prepare
from c5.datasets.torus import TorusFeature
from c5.errors import DataWarning, ParameterError, ReadError
from c5.evaluation.methods import Estimates, Method, Rolls, Task, digest_name, slug
from c5.evaluation.protocols import check_separation
from c5.io.shapes import check_shape
from c5.training.config import (
    ReadConfig,
    RealTraining,
    RollKind,
    TrainConfig,
    VirtualTraining,
    make_config,
    read_config,
    set_fields,
    split_settings,
)
from c5.training.data import load_stacks, training_feature
from c5.training.ffcc import FfccConfig, train_ffcc
from c5.training.loop import Evaluator, default_device
from c5.training.making import PAPER_MADE, Making, digest_table, find_making, plan_making
from c5.training.network import Network, build_network
from c5.training.run import TrainingPlan, count_epochs, train
from c5.training.tensors import DAMAGED, load_weights, read_checkpoint

ABLATIONS = {
    "bins-16": ("n=16",),
    "bins-32": ("n=32",),
    "bins-128": ("n=128",),
    "smoothness-0": ("smooth_filters=0", "smooth_bias=0"),
    "smoothness-low": ("smooth_filters=0.035", "smooth_bias=0.005"),
    "smoothness-high": ("smooth_filters=0.75", "smooth_bias=0.1"),
    "smoothness-highest": ("smooth_filters=1.85", "smooth_bias=0.25"),
    "constant-batch": ("batch_sizes=[16]",),
    "no-gradient": ("gradient=false",),
    "no-uv": ("uv=false",),
    "gain": ("G=true",),
}
"""What the paper's ablations change in the plain recipe."""


def configurations() -> dict[str, TrainConfig]:
    """The recipes and the ablations by name."""
    recipes = {recipe.value: make_config(recipe) for recipe in Recipe}
    return recipes | {name: set_fields(RealTraining(), settings) for name, settings in ABLATIONS.items()}


@dataclass(frozen=True, eq=False)
class C5:
    """The hypernetwork, trained on a fold's training side, then tested with rolls of other images."""

    name: str
    config: TrainConfig
    rolls: Rolls
    seeds: tuple[int, ...] = (0,)
    """A network is trained with each; their estimates count as repeats."""
    making: Making | None = None
    matrices: str | None = None
    """A CSV with the matrices of cameras that virtual ones are drawn from."""
    learns = True

    @property
    def device(self) -> str:
        name = torch.cuda.get_device_name() if default_device().type == "cuda" else "CPU"
        return f"{name}, torch {torch.__version__}"

    @property
    def settings(self) -> dict[str, Any]:
        return {"config": self.config.to_json(), "seeds": list(self.seeds)} | self._inputs | self.rolls.settings

    @property
    def _inputs(self) -> dict[str, Any]:
        """What a network depends on besides its configuration and its fold."""
        table = {} if self.matrices is None else {"matrices": digest_table(self.matrices)}
        return _making(self.making) | table

    @property
    def features(self) -> Sequence[Feature[Any]]:
        return training_feature(self.config), HistogramFeature(self.config.grid), *self.rolls.features

    @property
    def parts(self) -> list[C5]:
        """The same with one seed each: what can be trained separately."""
        return [replace(self, seeds=(seed,)) for seed in self.seeds]

    def train(self, task: Task) -> list[Network]:
        """A network for each seed, which is kept."""
        return [self._train(task, replace(self.config, seed=seed)) for seed in self.seeds]

    def estimate(self, task: Task) -> dict[str, Estimates]:
        networks = self.train(task)
        drawn = self.rolls.draw(task.cameras, task.vividness, task.queries)
        used = np.unique(np.concatenate([task.queries, *(roll.ravel() for rolls in drawn.values() for roll in rolls)]))
        stacks = load_stacks([task.photographs[index] for index in used], self.config.grid)
        queries = np.searchsorted(used, task.queries)
        evaluators = [Evaluator(network, stacks) for network in networks]
        result = {}
        for variant, rolls in drawn.items():
            found = [
                evaluator.estimate(np.searchsorted(used, roll), queries) for evaluator in evaluators for roll in rolls
            ]
            illuminants, uncertainties = zip(*found, strict=True)
            result[variant] = Estimates(np.stack(illuminants), np.stack(uncertainties))
        return result

    def _train(self, task: Task, config: TrainConfig) -> Network:
        """The network as trained on the fold; a stopped training resumes, a finished one is reused."""
        content = [config.to_json(), self._inputs, task.digest, self._find_hidden(task)]
        place = task.folder / digest_name(self.name, content)
        folder = next((model.parent for model in sorted(place.glob("*/model.c5"))), place / slug(task.fold.name))
        if not (folder / "model.c5").exists():
            plan = TrainingPlan(config, [], [], self.making, self.matrices)
            plan.save(folder)
            unseen = task.fold.unseen
            images = add_made(task, self.making, (training_feature(config),))
            left = range(count_epochs(folder), config.epochs)
            shown = iter(task.track(left, f"{self.name}, seed {config.seed}, {task.fold.name}"))
            next(shown, None)  # the first has begun
            train(plan, images, folder, report=lambda _: next(shown, None), checkpoint_seconds=10, unseen=unseen)
        return load_network(folder, config)

    def _find_hidden(self, task: Task) -> list[str]:
        """What training depends on beside the training side, because some cameras must stay unseen: which may be taken
        from a table. Folds that have both in common share a network."""
        making, unseen = self.making, task.fold.unseen
        if self.matrices is not None or (making is not None and making.method is Augmentation.CATALOG):
            return sorted(unseen)
        return [] if making is None or not making.count else making.find_calibrated(task.training, unseen)


@dataclass(frozen=True, eq=False)
class FfccMethod:
    """One FFCC model for all that a fold trains on, whatever the number of cameras."""

    name: str = "ffcc"
    config: FfccConfig = field(default_factory=FfccConfig)
    making: Making | None = None
    learns = True

    @property
    def device(self) -> str:
        return f"CPU, torch {torch.__version__}"

    @property
    def settings(self) -> dict[str, Any]:
        return {"config": asdict(self.config)} | _making(self.making)

    @property
    def features(self) -> Sequence[Feature[Any]]:
        return (TorusFeature(self.config.torus),)

    def estimate(self, task: Task) -> dict[str, Estimates]:
        training = add_made(task, self.making, self.features)
        illuminants = np.stack([sample.illuminant for sample in training])
        learned = train_ffcc(self._load(training), illuminants, self.config)
        return {"": Estimates(learned.estimate(self._load(task.test))[None])}

    def _load(self, samples: Sequence[Sample]) -> Float32s:
        feature = TorusFeature(self.config.torus)
        return np.stack([load_feature(sample, feature) for sample in samples])


def add_made(task: Task, making: Making | None, features: Sequence[Feature[Any]]) -> list[Sample]:
    """A fold's training side, prepared, with images made from it on the fly, after a last check that nothing leaks."""
    samples = task.training
    if making is not None:
        samples = making.add(samples, lambda: _make(task, making))
    return prepare(samples, features, lambda items: task.track(list(items), "preparing made images"))


def _make(task: Task, making: Making) -> list[Sample]:
    photographs = [sample for sample in task.training if not sample.made]
    lent = [sample for sample in task.photographs if sample.name in task.fold.lent]
    calibrated = making.find_calibrated(photographs, task.fold.unseen)
    if making.unless_given and making.matrices is not None and not calibrated:
        names = ", ".join(sorted({sample.camera for sample in photographs}))
        warnings.warn(f"{task.fold.name}: no images are made of {names}: no matrices of it are known", DataWarning, 2)
        return []
    made = making.make(photographs, task.fold.unseen, lambda items: task.track(items, "making images"), lent)
    check_separation(task.fold, made)
    return made


def _making(making: Making | None) -> dict[str, Any]:
    return {} if making is None else {"making": making.fingerprint}


def load_network(folder: Path, config: TrainConfig) -> Network:
    """The network of a run that is done."""
    path = folder / "checkpoint.pt"
    state = read_checkpoint(path, "cpu")
    network = build_network(*config.networks)
    try:
        check_shape(state, {"network": object, "averaged": object})
        load_weights(network, state["network"] if state["averaged"] is None else state["averaged"])
    except ReadError as error:
        raise ReadError(f"{path}: {DAMAGED}") from error
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
    """The methods that a name stands for: ffcc, c5, c5:CONFIGURATION[,FIELD=VALUE...], c5:ablations, each with
    +AUGMENTATION or without. `c5:paper` makes the paper's images unless it is `c5:paper+none`.

    A network with a fixed m is tested with that m, whatever `rolls` says. `made` is how many images augmentation makes
    for a fold; default: as many as in the paper.
    """
    what, _, augmentation = text.partition("+")
    kind, _, wanted = what.partition(":")
    suffix = f"+{augmentation}" if augmentation else ""
    if what == "ffcc":
        making = find_making(augmentation, made or PAPER_MADE["ffcc"], matrices) if augmentation else None
        return [FfccMethod(f"ffcc{suffix}", making=making)]
    known = {
        name: ReadConfig(config, Recipe.PAPER if name == Recipe.PAPER.value else Recipe.BUNDLED)
        for name, config in configurations().items()
    }
    methods: list[Method] = []
    wanted, *settings = split_settings(wanted)
    for name in ("plain", *ABLATIONS) if wanted == "ablations" else (wanted or "bundled",):
        if name.endswith(".toml"):
            known[name] = read_config(name)
        if kind != "c5" or name not in known:
            raise ParameterError(
                f"no configuration of C5 is called {wanted!r}; there are {', '.join(known)}, ablations, FILE.toml"
            )
        found = known[name]
        config = set_fields(found.config, settings)
        config = replace(config, epochs=epochs or config.epochs, bfloat16=bfloat16 or config.bfloat16)
        network = config.networks[0]
        own = replace(rolls, n_images=(network.n_images,)) if network.kind is RollKind.SEPARATE else rolls
        if isinstance(config, RealTraining) and config.distinct_rolls:
            own = replace(own, distinct=True)
        title = ",".join([Path(name).stem, *settings])
        added = plan_making(found.recipe, augmentation or found.augmentation, matrices, made)
        table = matrices if isinstance(config, VirtualTraining) else None
        methods.append(C5(f"c5:{title}{suffix}", config, own, tuple(seeds), added, table))
    return methods
