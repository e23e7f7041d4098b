"""White balance for cameras that nobody calibrated: cross-camera convolutional color constancy (C5, ICCV 2021)."""

from c5.ccc import Estimate
from c5.color import angular_error, reproduction_error, white_balance
from c5.errors import (
    C5Error,
    DataError,
    ImageError,
    ModelFileError,
    NotLinearError,
    ParameterError,
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
