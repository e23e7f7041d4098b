"""Estimators by name: the classical ones, those of plugins, and any `module:name`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from c5 import plugins
from c5.ccc import Estimate
from c5.classical import METHODS
from c5.color import as_illuminant
from c5.errors import ParameterError, PluginError
from c5.image import LinearImage, shrink
from c5.model import model_names

CLASSICAL = "classical"


@dataclass(frozen=True)
class Estimator:
    """A function with a name, whose results are checked."""

    name: str
    origin: str
    """The package that it comes from; `CLASSICAL` for this package's own."""
    function: Callable[..., ArrayLike]
    """Takes an image at working size, and others of its camera unless it is classical; returns the RGB of the light."""

    def __post_init__(self) -> None:
        if not callable(self.function):
            message = f"{self.name} of {self.origin} cannot be called"
            raise PluginError(f"{message}; an estimator is a function of an image and a roll")

    @property
    def description(self) -> str:
        """The first line of its documentation."""
        documented = self.function if hasattr(self.function, "__name__") else type(self.function)
        return (documented.__doc__ or "").strip().partition("\n")[0]

    @property
    def takes_roll(self) -> bool:
        """Whether other images of the camera can make a difference."""
        return self.origin != CLASSICAL

    def __call__(self, image: LinearImage, roll: Sequence[LinearImage] = ()) -> Estimate:
        image = shrink(image)
        if not self.takes_roll:
            return Estimate(np.asarray(self.function(image)))
        with plugins.guard(f"{image.where}the estimator {self.name}"):
            rgb = np.asarray(self.function(image, [shrink(other) for other in roll]), dtype=np.float64)
        if rgb.shape != (3,) or not np.isfinite(rgb).all() or rgb.min() <= 0:
            given = rgb.tolist() if rgb.shape == (3,) else f"an array of shape {rgb.shape}"
            raise PluginError(
                f"{image.where}the estimator {self.name} returned {given}; it must return three numbers above zero"
            )
        return Estimate(as_illuminant(rgb))


def find_estimator(name: str) -> Estimator:
    """A classical estimator or a plugin by its name, or what `module:name` stands for."""
    if name in METHODS:
        return Estimator(name, CLASSICAL, METHODS[name])
    if ":" in name:
        with plugins.guard(name):
            return Estimator(name, name.partition(":")[0], plugins.make(plugins.load(name)))
    found = plugins.find(plugins.ESTIMATORS, _taken())
    if name not in found:
        names = ", ".join([*METHODS, *found])
        raise ParameterError(f"no estimator is called {name!r}; there are {names}, or give module:Class or a model")
    return _of_plugin(found[name])


def list_estimators() -> list[Estimator]:
    """All estimators with a name: the classical ones, then plugins. Broken plugins are skipped with a warning."""
    of_plugins = plugins.use_all(plugins.ESTIMATORS, _taken(), _of_plugin)
    return [*(Estimator(name, CLASSICAL, method) for name, method in METHODS.items()), *of_plugins.values()]


def is_model(name: str) -> bool:
    """Whether the name is that of a bundled model or of a model file."""
    return name in model_names() or name.endswith(".c5")


def _taken() -> list[str]:
    """Names that no plugin can have."""
    return [*METHODS, *model_names(), CLASSICAL, "c5", "ffcc"]


def _of_plugin(plugin: plugins.Plugin) -> Estimator:
    return Estimator(plugin.name, plugin.package, plugin.make())
