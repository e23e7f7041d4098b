"""What a network and a training run are made of. Plain data, without torch, so that any file can carry it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from c5.errors import ParameterError
from c5.histogram import Geometry, Grid


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
    gradient: bool = True
    """Look at the gradient histogram as well as the pixel histogram."""
    coordinates: bool = True
    """Give the network the u and v of each bin as two more channels."""
    n_images: int = 9
    """The paper's m: the query and up to m - 1 additional images in training. `SEPARATE` stays bound to it."""
    geometry: Geometry = Geometry.EXACT

    def __post_init__(self) -> None:
        grid = self.grid  # validates the bins
        if not 2 <= len(self.widths) <= 5 or min(self.widths) < 1:
            raise ParameterError(f"widths must be two to five positive numbers, not {self.widths}")
        if grid.bins >> len(self.widths) < 2:
            raise ParameterError(f"{self.bins} bins cannot be halved {len(self.widths)} times: give fewer widths")
        if not 2 <= self.n_images <= 64:
            raise ParameterError(f"n_images, query included, must lie between 2 and 64, not {self.n_images}")

    @property
    def grid(self) -> Grid:
        return Grid(self.bins, geometry=self.geometry)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"kind": self.kind.value, "geometry": self.geometry.value, "widths": list(self.widths)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> NetworkConfig:
        kind, geometry, widths = RollKind(data["kind"]), Geometry(data["geometry"]), tuple(data["widths"])
        return cls(**(data | {"kind": kind, "geometry": geometry, "widths": widths}))


@dataclass(frozen=True)
class TrainConfig:
    """One training run. The defaults are the package's recipe; `TrainConfig.paper()` is the paper's."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    epochs: int = 60
    batch_sizes: tuple[int, ...] = (16, 32, 64)
    """Used for equal shares of the epochs, in this order."""
    learning_rate: float = 5e-4
    weight_decay: float = 5e-4
    """L2 on the weights, added to the gradient as in the paper."""
    smooth_filters: float = 0.15
    smooth_bias: float = 0.02
    """Weights of the smoothness of F and of B (and G), Eq. 9."""
    shift: int = 8
    """All histograms of a sample, and its label, move together by up to so many bins, anew each time: the same scene
    through a camera with other gains. The largest single gain over the paper's recipe."""
    vary_roll: bool = True
    """Draw how many of the additional images differ anew each time, so that rolls of any size work."""
    empty_roll: float = 0.1
    """Share of samples without any additional image, so that a query alone works. `PROFILE` only."""
    crops: int = 4
    """Random crops of each image that training sees in its place half of the time."""
    bfloat16: bool = False
    """Compute the network in bfloat16: faster where the hardware has it."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or not self.batch_sizes or min(self.batch_sizes) < 1:
            raise ParameterError("a run needs at least one epoch and positive batch sizes")
        if not 0 <= self.shift < self.network.bins // 4:
            most, bins = self.network.bins // 4 - 1, self.network.bins
            raise ParameterError(f"shift must lie between 0 and {most} on {bins} bins, not {self.shift}")
        if not 0 <= self.crops <= 64:
            raise ParameterError(f"crops must lie between 0 and 64, not {self.crops}")
        if not 0 <= self.empty_roll < 1:
            raise ParameterError(f"empty_roll is a share between 0 and 1, not {self.empty_roll}")

    @classmethod
    def paper(cls, n_images: int = 9) -> TrainConfig:
        """Section 3.2 of the paper, on its architecture; smoothness is a mean over bins here too (see `roughness`)."""
        network = NetworkConfig(kind=RollKind.SEPARATE, n_images=n_images, geometry=Geometry.PUBLISHED)
        return cls(network, shift=0, vary_roll=False, empty_roll=0, crops=0)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"network": self.network.to_json(), "batch_sizes": list(self.batch_sizes)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TrainConfig:
        network, batch_sizes = NetworkConfig.from_json(data["network"]), tuple(data["batch_sizes"])
        return cls(**(data | {"network": network, "batch_sizes": batch_sizes}))
