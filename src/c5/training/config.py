"""What a network and a training run are made of. Plain data, without torch, so that any file can carry it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from c5.choices import Recipe
from c5.errors import ParameterError, check_range
from c5.histograms import Geometry, Grid
from c5.io.files import read_toml
from c5.io.shapes import check_shape


class RollKind(Enum):
    """How the network takes the additional images."""

    PROFILE = "profile"
    """One encoder for all of them that never sees the query. Their features are computed once per camera."""
    SEPARATE = "separate"
    """A separate encoder for each slot, pooled with the query after each block: the paper's."""


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a network: everything but the weights."""

    grid: Grid = field(default_factory=Grid)
    """The histograms it is given. Training ignores the grid's strips; the light of a query is searched for in them."""
    power: int = 1
    """The network looks at the pixel histogram of this power, one of `grid.powers`."""
    kind: RollKind = RollKind.PROFILE
    widths: tuple[int, ...] = (8, 16, 32, 32)
    """Channels of the encoder's blocks; each block halves the resolution."""
    gain: bool = False
    """Emit the gain map G as well."""
    one_decoder: bool = False
    """One decoder emits all maps, instead of one decoder each."""
    gradient: bool = True
    """Look at the gradient histogram as well as the pixel histogram."""
    coordinates: bool = True
    """Give the network the u and v of each bin as two more channels."""
    n_images: int = 9
    """The paper's m: the query and up to m - 1 additional images in training. `SEPARATE` is fixed to that number, and
    may have m = 1: a network for the cameras that it was trained on."""
    he_normal: bool = False
    """Training starts from weights drawn as by He et al. and biases of zero, as in the published code, instead of what
    torch draws."""
    architecture: str = ""
    """A network of your own: the name of an entry point in `c5.networks`, or `module:Class`. Empty: the C5 network."""

    def __post_init__(self) -> None:
        if self.power not in self.grid.powers:
            raise ParameterError(f"power must be one of the grid's powers {self.grid.powers}, not {self.power}")
        if not 2 <= len(self.widths) <= 5 or min(self.widths) < 1:
            raise ParameterError(f"widths must be two to five positive numbers, not {self.widths}")
        if self.grid.bins >> len(self.widths) < 1:
            raise ParameterError(f"{self.grid.bins} bins cannot be halved {len(self.widths)} times: give fewer widths")
        check_range("n_images", self.n_images, 1 if self.kind is RollKind.SEPARATE else 2, 64)

    def to_json(self) -> dict[str, Any]:
        own = asdict(self) | {"grid": self.grid.to_json(), "kind": self.kind.value, "widths": list(self.widths)}
        if not self.he_normal:  # other networks keep the digest under which their results are kept
            del own["he_normal"]
        return own

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NetworkConfig:
        read: NetworkConfig = _changed(cls(), data, "a network")
        return read


RANGES: dict[str, tuple[float, float]] = {
    "epochs": (1, inf),
    "learning_rate": (1e-12, inf),
    "weight_decay": (0, inf),
    "smooth_filters": (0, inf),
    "smooth_bias": (0, inf),
    "seed": (0, inf),
    "likelihood": (0, 10),
    "empty_roll_share": (0, 1),
    "average_decay": (0, 1),
    "crops": (0, 64),
    "steps_per_epoch": (1, inf),
    "cameras_per_step": (1, inf),
    "queries_per_camera": (1, inf),
    "shift_nats": (0, 1),
    "matrix_spread": (0, 2),
    "relight_share": (0, 1),
    "repaint_nats": (0, 2),
    "table_share": (0, 1),
    "exchange_share": (0, 1),
}
"""The ranges of the fields of a training configuration."""


@dataclass(frozen=True, kw_only=True)
class _Training:
    """What both ways of training have in common."""

    networks: tuple[NetworkConfig, ...]
    """Several networks form a team: each learns by itself from the same batches, and a query gets a single CCC model,
    the mean of those that all of them emit. A team needs the kind `PROFILE` and no gain map."""
    epochs: int
    learning_rate: float
    weight_decay: float = 5e-4
    """L2 on the weights, added to the gradient as in the paper."""
    smooth_filters: float = 0.15
    """Weight of the smoothness of F in the loss, Eq. 9."""
    smooth_bias: float = 0.02
    """Weight of the smoothness of B, and of G, Eq. 9."""
    likelihood: float = 0.0
    """Weight of the likelihood of the true illuminant under the heat map, which teaches the map how sure it is."""
    empty_roll_share: float = 0.1
    """Share of queries without any additional image, so that a query alone works. `PROFILE` only."""
    average_decay: float = 0.0
    """The model is the moving average of the weights, with this decay per step. 0: the last weights."""
    bfloat16: bool = False
    """Compute the network in bfloat16: faster where the hardware has it."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.networks:
            raise ParameterError("a training needs at least one network")
        _check_team(self.networks)
        for each in fields(self):
            if each.name in RANGES:
                check_range(each.name, getattr(self, each.name), *RANGES[each.name])

    @property
    def grid(self) -> Grid:
        """The histograms that all the networks are given."""
        return self.networks[0].grid

    @property
    def n_images(self) -> int:
        return self.networks[0].n_images

    def to_json(self) -> dict[str, Any]:
        data = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {"cameras": _KINDS[type(self)], **data, "networks": [network.to_json() for network in self.networks]}


@dataclass(frozen=True, kw_only=True)
class RealTraining(_Training):
    """Training on the histograms of real cameras, which move by whole bins. The paper's way, and the plain recipe."""

    networks: tuple[NetworkConfig, ...] = (NetworkConfig(),)
    epochs: int = 60
    learning_rate: float = 5e-4
    batch_sizes: tuple[int, ...] = (16, 32, 64)
    """Used for equal shares of the epochs, in this order."""
    shift_bins: int = 8
    """All histograms of a sample, and its label, move together by up to this many bins, anew each time: the same scene
    through a camera with other gains. The largest single gain over the paper's recipe."""
    vary_roll: bool = True
    """Draw anew each time how many of the additional images differ, so that rolls of any size work."""
    distinct_rolls: bool = False
    """Draw additional images without replacement, so that none occurs twice in a roll. Needs `vary_roll` off."""
    crops: int = 4
    """Random crops of each image, which replace it half of the time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.batch_sizes or min(self.batch_sizes) < 1:
            raise ParameterError(f"batch_sizes must be positive numbers, not {self.batch_sizes}")
        check_range("shift_bins", self.shift_bins, 0, self.grid.bins // 4 - 1)
        if self.distinct_rolls and self.vary_roll:
            raise ParameterError("rolls that vary repeat their images: switch off vary_roll or distinct_rolls")


BUNDLED_GRID = Grid(strips=4, pixels=192 * 128)
"""The histograms that the bundled model is given."""


@dataclass(frozen=True, kw_only=True)
class VirtualTraining(_Training):
    """Training on virtual cameras, drawn anew in each step, as for the bundled model.

    A virtual camera is a 3x3 matrix over the raw RGB of a real one. Each gets some queries and a roll of that camera.
    Its gains come from `shift_nats`, the rest from how the matrices of a thousand cameras differ from each other
    (`c5.training.virtual`).
    """

    networks: tuple[NetworkConfig, ...] = (
        NetworkConfig(BUNDLED_GRID, one_decoder=True, coordinates=False),
        NetworkConfig(BUNDLED_GRID, one_decoder=True),
    )
    epochs: int = 160
    learning_rate: float = 2e-3
    likelihood: float = 1.0
    average_decay: float = 0.998
    steps_per_epoch: int = 25
    """An epoch is this long, however many images there are: virtual cameras never run out."""
    cameras_per_step: int = 8
    queries_per_camera: int = 8
    """The queries of a virtual camera share a roll."""
    shift_nats: float = 0.4
    """Gains: log-chroma moves by up to this much along u and v."""
    matrix_spread: float = 0.5
    """How far the colors of virtual cameras are from those of real ones: 1 is as far as real cameras are apart."""
    relight_share: float = 0.3
    """Share of images that get the light of another image of their camera."""
    repaint_nats: float = 0.3
    """How much the weight of a color in a scene changes: other scenes, made of the same colors."""
    table_share: float = 0.4
    """Share of virtual cameras that are real ones from the table of matrices, if one is given."""
    exchange_share: float = 0.3
    """Share of virtual cameras that are other cameras of the data, in lights that those have seen; the matrices of both
    must be in the table."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("table_share + exchange_share", self.table_share + self.exchange_share, 0, 1)
        if self.grid.geometry is not Geometry.EXACT:
            raise ParameterError("virtual cameras need the exact geometry")


TrainConfig: TypeAlias = RealTraining | VirtualTraining

DELETED = ("mixed_queries", "balance")
"""Fields that runs begun earlier have, always 0."""

_KINDS: dict[type[Any], str] = {RealTraining: "real", VirtualTraining: "virtual"}


def train_config_from_json(data: Mapping[str, Any]) -> TrainConfig:
    """The training configuration that `to_json` has written; a C5Error if it is damaged."""
    check_shape(data, {"cameras": str, "networks": [dict]}, "the configuration")
    kind = {name: kind for kind, name in _KINDS.items()}.get(data["cameras"])
    if kind is None:
        raise ParameterError(f"the configuration is for cameras that are {data['cameras']!r:.40}")
    own: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    for name in DELETED:
        own.pop(name, None)
    own["networks"] = tuple(NetworkConfig.from_json(network) for network in data["networks"])
    del own["cameras"]
    made: TrainConfig = _changed(kind(), own, "the configuration")
    return made


def _check_team(networks: Sequence[NetworkConfig]) -> None:
    first = networks[0]
    for network in networks[1:]:
        if network.grid != first.grid or network.n_images != first.n_images:
            raise ParameterError("the networks of a team need the same grid and n_images")
        if RollKind.SEPARATE in (first.kind, network.kind) or first.gain or network.gain:
            raise ParameterError("the networks of a team need the kind `profile` and no gain map: maps are averaged")


def make_config(recipe: Recipe) -> TrainConfig:
    """The configuration that a recipe stands for."""
    if recipe is Recipe.BUNDLED:
        return VirtualTraining()
    return RealTraining() if recipe is Recipe.PLAIN else paper_training()


def paper_training(n_images: int = 9) -> RealTraining:
    """Section 3.2 of the paper for m images, with what its text leaves open as in the authors' code: smoothness is a
    mean over bins, and batches of 16 double from the 20th and from the 50th of 60 epochs. docs/paper.md lists where the
    two differ."""
    network = NetworkConfig(Grid.published(), kind=RollKind.SEPARATE, n_images=n_images, he_normal=True)
    return RealTraining(
        networks=(network,),
        batch_sizes=(16,) * 19 + (32,) * 30 + (64,) * 11,
        shift_bins=0,
        vary_roll=False,
        distinct_rolls=True,
        empty_roll_share=0,
        crops=0,
    )


class ReadConfig(NamedTuple):
    """What a TOML file says of a training."""

    config: TrainConfig
    recipe: Recipe = Recipe.BUNDLED
    augmentation: str | None = None
    """How images are made; None: as the recipe makes them, if it does."""


def read_config(path: str | Path) -> ReadConfig:
    """The configuration in a TOML file: its `recipe` (default: bundled), with the fields that the file sets, and the
    `augmentation`, if it names one."""
    path = Path(path)
    table = read_toml(path)
    recipe, augmentation = table.pop("recipe", Recipe.BUNDLED.value), table.pop("augmentation", None)
    if not isinstance(augmentation, str | None):
        raise ParameterError(f"{path}: augmentation must be the name of one, not {augmentation!r}")
    if recipe not in [known.value for known in Recipe]:
        names = ", ".join(known.value for known in Recipe)
        raise ParameterError(f"{path}: no recipe is called {recipe!r}; there are {names}")
    try:
        return ReadConfig(configure(make_config(Recipe(recipe)), table), Recipe(recipe), augmentation)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


def configure(config: TrainConfig, table: Mapping[str, Any]) -> TrainConfig:
    """A configuration with some of its fields replaced, as a TOML file gives them.

    `[[networks]]` replaces the team, one table per network; `[network]` changes a field in every network, and
    `[network.grid]` or `[networks.grid]` in the grid.
    """
    changes = {name: value for name, value in table.items() if name not in ("network", "networks")}
    networks = config.networks
    if "networks" in table:
        base = replace(networks[0], power=1, grid=replace(networks[0].grid, powers=_all_powers(table["networks"])))
        networks = tuple(_changed(base, each, "networks") for each in _tables(table["networks"]))
    if "network" in table:
        networks = tuple(_changed(network, table["network"], "network") for network in networks)
    changed: TrainConfig = _changed(config, changes | {"networks": networks}, "the configuration")
    return changed


SHORT = {"n": "bins", "m": "n_images", "G": "gain", "uv": "coordinates"}
"""The paper's names of fields."""


def set_fields(config: TrainConfig, settings: Sequence[str]) -> TrainConfig:
    """A configuration with fields set by `FIELD=VALUE`: its own, those of every network, and those of their grid."""
    table: dict[str, Any] = {"network": {"grid": {}}}
    for setting in settings:
        given, _, text = setting.partition("=")
        name = SHORT.get(given.strip(), given.strip())
        if name in {each.name for each in fields(config)} - {"networks"}:
            place = table
        elif name in {each.name for each in fields(NetworkConfig)} - {"grid"}:
            place = table["network"]
        elif name in {each.name for each in fields(Grid)}:
            place = table["network"]["grid"]
        else:
            known = {each.name for kind in (config, NetworkConfig, Grid) for each in fields(kind)} | set(SHORT)
            names = ", ".join(sorted(known - {"networks", "grid"}))
            raise ParameterError(f"no field is called {given!r}; there are {names}")
        if not text.strip():
            raise ParameterError(f"{setting!r} gives no value; write {given.strip()}=VALUE")
        try:
            place[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            place[name] = text.strip()
    if isinstance(bins := table["network"]["grid"].get("bins"), int):
        if isinstance(config, RealTraining):
            table.setdefault("shift_bins", config.shift_bins * bins // config.grid.bins)  # as far as before
        network = config.networks[0]  # few bins can be halved less often; the paper's network halves them down to one
        levels = bins.bit_length() - (1 if network.kind is RollKind.SEPARATE else 2)
        table["network"].setdefault("widths", list(network.widths[: max(2, levels)]))
    return configure(config, table)


def split_settings(text: str) -> list[str]:
    """`NAME,FIELD=VALUE,FIELD=[1, 2]` at its commas, but not at those inside brackets."""
    return re.split(r",(?![^\[]*\])", text)


def _tables(value: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
        raise ParameterError("networks must be tables: write [[networks]] above each")
    return value


def _all_powers(networks: Any) -> tuple[int, ...]:
    """Every power that one of the networks looks at, and 1."""
    return tuple(dict.fromkeys([*(each.get("power", 1) for each in _tables(networks)), 1]))


CONVERT: dict[str, Any] = {
    "kind": RollKind,
    "geometry": Geometry,
    "widths": tuple,
    "powers": tuple,
    "batch_sizes": tuple,
}


def _changed(thing: Any, changes: Mapping[str, Any], where: str) -> Any:
    """A dataclass with fields replaced; unknown fields and values of the wrong type are refused."""
    known = {each.name for each in fields(thing)}
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in known:
            raise ParameterError(f"{where} has no field {name!r}; there are {', '.join(sorted(known))}")
        old = getattr(thing, name)
        if name == "grid" and isinstance(value, Mapping):
            value = _changed(old, value, f"{where}.grid")
        elif name in CONVERT and isinstance(value, str | list):
            try:
                value = CONVERT[name](value)
            except ValueError:
                names = ", ".join(each.value for each in CONVERT[name])
                raise ParameterError(f"{where}: {name} must be one of {names}, not {value!r}") from None
        if isinstance(value, int) and abs(value) > 2**53:
            raise ParameterError(f"{where}: {name} is far too large")
        if isinstance(old, float) and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not type(old) or (type(value) is tuple and {*map(type, value)} - {*map(type, old)}):
            raise ParameterError(f"{where}: {name} must be {type(old).__name__}, not {value!r}")
        values[name] = value
    return replace(thing, **values)
