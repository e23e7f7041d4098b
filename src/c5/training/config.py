"""What a network and a training run are made of. Plain data, without torch, so that any file can carry it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from c5.errors import ParameterError
from c5.histograms import Geometry, Grid


class RollKind(Enum):
    """How the network takes the additional images."""

    PROFILE = "profile"
    """One encoder for all of them that never sees the query. Their features are computed once per camera."""
    SEPARATE = "separate"
    """An encoder of its own for each slot, pooled with the query after each block: the paper's."""


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a network. Anything but the weights."""

    bins: int = 64
    kind: RollKind = RollKind.PROFILE
    widths: tuple[int, ...] = (8, 16, 32, 32)
    """Channels of the encoder's blocks; each block halves the resolution."""
    gain: bool = False
    """Emit the gain map G as well."""
    one_decoder: bool = False
    """Let one decoder emit all maps, instead of one each."""
    gradient: bool = True
    """Look at the gradient histogram as well as the pixel histogram."""
    coordinates: bool = True
    """Give the network the u and v of each bin as two more channels."""
    n_images: int = 9
    """The paper's m: the query and up to m - 1 additional images in training. `SEPARATE` stays bound to it."""
    geometry: Geometry = Geometry.EXACT
    power: int = 1
    """Of its brightness, that a pixel weighs by in the histogram that the network looks at; see `Grid`."""
    strips: int = 1
    """Of a query, that weigh alike where the light is looked for; see `Grid`. Training does without."""

    def __post_init__(self) -> None:
        grid = self.grid  # validates the bins, the geometry, the power and the strips
        if not 2 <= len(self.widths) <= 5 or min(self.widths) < 1:
            raise ParameterError(f"widths must be two to five positive numbers, not {self.widths}")
        if grid.bins >> len(self.widths) < 2:
            raise ParameterError(f"{self.bins} bins cannot be halved {len(self.widths)} times: give fewer widths")
        if not 2 <= self.n_images <= 64:
            raise ParameterError(f"n_images, query included, must lie between 2 and 64, not {self.n_images}")

    @property
    def grid(self) -> Grid:
        return Grid(self.bins, geometry=self.geometry, powers=(self.power,), strips=self.strips)

    def to_json(self) -> dict[str, Any]:
        own = {"kind": self.kind.value, "geometry": self.geometry.value, "widths": list(self.widths)}
        return asdict(self) | own

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> NetworkConfig:
        kind, geometry = RollKind(data["kind"]), Geometry(data["geometry"])
        return cls(**(data | {"kind": kind, "geometry": geometry, "widths": tuple(data["widths"])}))


@dataclass(frozen=True)
class Virtual:
    """Training on virtual cameras: each step draws some, and takes queries and a roll of a real camera through each.

    A virtual camera is a 3x3 matrix over the raw RGB of a real one. Its gains come from `shift`, the rest of it from
    how the matrices of a thousand cameras differ from each other (`c5.training.virtual`).
    """

    steps: int = 25
    """Of an epoch, however many images there are: what is seen of them never ends."""
    cameras: int = 8
    """Virtual cameras in a step."""
    queries: int = 8
    """Queries of each; they share a roll."""
    shift: float = 0.4
    """Gains: log-chroma moves by up to so many nats along u and v."""
    matrix: float = 0.5
    """How far the colors of virtual cameras are from those of the real ones: 1 as far as real cameras' are."""
    relight: float = 0.3
    """Share of images that get the light of another image of their camera."""
    repaint: float = 0.3
    """How much the weight of a color in a scene changes, in nats: other scenes, made of the same colors."""

    def __post_init__(self) -> None:
        if self.steps < 1 or self.cameras < 1 or self.queries < 1:
            raise ParameterError(
                "an epoch needs a step, a step a virtual camera, and that a query: at least one of each"
            )
        if not 0 <= self.shift <= 1 or not 0 <= self.matrix <= 2 or not 0 <= self.repaint <= 2:
            raise ParameterError("shift must lie between 0 and 1, matrix and repaint between 0 and 2")
        if not 0 <= self.relight <= 1:
            raise ParameterError(f"relight is a share between 0 and 1, not {self.relight}")


@dataclass(frozen=True)
class TrainConfig:
    """One training run; `Recipe` has those with a name."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    others: tuple[NetworkConfig, ...] = ()
    """Networks beside it. Each learns by itself from the same batches; a query gets a single CCC model, the mean of
    those that all of them emit. `PROFILE` only, and without the gain map."""
    epochs: int = 60
    batch_sizes: tuple[int, ...] = (16, 32, 64)
    """Used for equal shares of the epochs, in this order."""
    learning_rate: float = 5e-4
    weight_decay: float = 5e-4
    """L2 on the weights, added to the gradient as in the paper."""
    smooth_filters: float = 0.15
    smooth_bias: float = 0.02
    """Weights of the smoothness of F and of B (and G), Eq. 9."""
    likelihood: float = 0.0
    """Weight of the likelihood of the true illuminant under the heat map, which then tells how sure it is."""
    shift: int = 8
    """All histograms of a sample, and its label, move together by up to so many bins, anew each time: the same scene
    through a camera with other gains. The largest single gain over the paper's recipe."""
    vary_roll: bool = True
    """Draw how many of the additional images differ anew each time, so that rolls of any size work."""
    empty_roll: float = 0.1
    """Share of samples without any additional image, so that a query alone works. `PROFILE` only."""
    crops: int = 4
    """Random crops of each image that training sees in its place half of the time."""
    virtual: Virtual | None = None
    """Train on virtual cameras; `batch_sizes`, `shift`, `vary_roll` and `crops` then do not matter."""
    average: float = 0.0
    """The model is the moving average of the weights, which forgets one part in 1 / (1 - average) a step; 0: the last
    weights."""
    bfloat16: bool = False
    """Compute the network in bfloat16: faster where the hardware has it."""
    seed: int = 0

    def __post_init__(self) -> None:
        _check_team(self.networks)
        if self.epochs < 1 or not self.batch_sizes or min(self.batch_sizes) < 1:
            raise ParameterError("a run needs at least one epoch and positive batch sizes")
        if not 0 <= self.shift < self.network.bins // 4:
            most, bins = self.network.bins // 4 - 1, self.network.bins
            raise ParameterError(f"shift must lie between 0 and {most} on {bins} bins, not {self.shift}")
        if not 0 <= self.crops <= 64:
            raise ParameterError(f"crops must lie between 0 and 64, not {self.crops}")
        if not 0 <= self.empty_roll < 1:
            raise ParameterError(f"empty_roll is a share between 0 and 1, not {self.empty_roll}")
        if not 0 <= self.average < 1:
            raise ParameterError(f"average must lie between 0 and 1, not {self.average}")
        if not 0 <= self.likelihood <= 10:
            raise ParameterError(f"likelihood must lie between 0 and 10, not {self.likelihood}")
        if self.virtual is not None and self.network.geometry is not Geometry.EXACT:
            raise ParameterError("virtual cameras need the exact geometry")

    @property
    def networks(self) -> tuple[NetworkConfig, ...]:
        return (self.network, *self.others)

    @property
    def grid(self) -> Grid:
        """What the histograms are on that its networks look at."""
        return join_grids(self.networks)

    @classmethod
    def on_virtual_cameras(cls) -> TrainConfig:
        """Two networks and cameras drawn anew in each step.

        One looks at the brightest pixels, the other at all by their brightness and at the bins' coordinates.
        """
        bright = NetworkConfig(one_decoder=True, coordinates=False, power=3, strips=4)
        other = replace(bright, power=1, coordinates=True)
        return cls(
            bright, (other,), epochs=160, learning_rate=2e-3, crops=0, likelihood=1, virtual=Virtual(), average=0.998
        )

    @classmethod
    def paper(cls, n_images: int = 9) -> TrainConfig:
        """Section 3.2 of the paper, on its architecture; smoothness is a mean over bins here too (see `roughness`)."""
        network = NetworkConfig(kind=RollKind.SEPARATE, n_images=n_images, geometry=Geometry.PUBLISHED)
        return cls(network, shift=0, vary_roll=False, empty_roll=0, crops=0)

    def to_json(self) -> dict[str, Any]:
        networks = {"network": self.network.to_json(), "others": [other.to_json() for other in self.others]}
        return asdict(self) | networks | {"batch_sizes": list(self.batch_sizes)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TrainConfig:
        network, *others = (NetworkConfig.from_json(each) for each in (data["network"], *data.get("others", ())))
        virtual = None if data.get("virtual") is None else Virtual(**data["virtual"])
        own = {"network": network, "others": tuple(others), "batch_sizes": tuple(data["batch_sizes"])}
        return cls(**(data | own | {"virtual": virtual}))


def join_grids(networks: Sequence[NetworkConfig]) -> Grid:
    """The grid with a pixel histogram for each power that one of the networks looks at."""
    return replace(networks[0].grid, powers=tuple(dict.fromkeys(network.power for network in networks)))


def _check_team(networks: Sequence[NetworkConfig]) -> None:
    first = networks[0]
    for network in networks[1:]:
        if replace(network.grid, powers=first.grid.powers) != first.grid or network.n_images != first.n_images:
            raise ParameterError("networks beside each other need the same bins, geometry, strips and n_images")
        if RollKind.SEPARATE in (first.kind, network.kind) or first.gain or network.gain:
            raise ParameterError(
                "networks beside each other need the kind `profile` and no gain map: maps are averaged"
            )


class Recipe(Enum):
    """Configurations with a name of their own."""

    DEFAULT = "default"
    """Half an hour on a CPU."""
    VIRTUAL = "virtual"
    """Of the bundled model: on cameras drawn anew in each step. Forty minutes on two cores."""
    PAPER = "paper"

    def make(self) -> TrainConfig:
        if self is Recipe.VIRTUAL:
            return TrainConfig.on_virtual_cameras()
        return TrainConfig.paper() if self is Recipe.PAPER else TrainConfig()
