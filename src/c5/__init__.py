"""White balance for cameras that nobody calibrated: cross-camera convolutional color constancy (C5, ICCV 2021)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from c5.ccc import Estimate
    from c5.color import angular_error, reproduction_error, white_balance
    from c5.errors import (
        C5Error,
        DataError,
        ImageError,
        ModelFileError,
        NotLinearError,
        ParameterError,
        PluginError,
        ProfileError,
        ReadError,
        WriteError,
    )
    from c5.histograms import Geometry, Grid, Histograms, histogram
    from c5.image import LinearImage
    from c5.io.raw import Photograph, read_photograph
    from c5.io.readers import read_image
    from c5.model import Model, Profile, load_model

__all__ = [
    "C5Error",
    "DataError",
    "Estimate",
    "Geometry",
    "Grid",
    "Histograms",
    "ImageError",
    "LinearImage",
    "Model",
    "ModelFileError",
    "NotLinearError",
    "ParameterError",
    "Photograph",
    "PluginError",
    "Profile",
    "ProfileError",
    "ReadError",
    "WriteError",
    "angular_error",
    "histogram",
    "load_model",
    "read_image",
    "read_photograph",
    "reproduction_error",
    "white_balance",
]

_MODULES = ("errors", "color", "image", "histograms", "ccc", "io.readers", "io.raw", "model")
"""Where the public names are defined, lowest layer first."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the command must set the number of threads before NumPy loads."""
    for module in _MODULES if name in __all__ else ():
        found = getattr(importlib.import_module(f"{__name__}.{module}"), name, None)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
