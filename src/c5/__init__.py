"""White balance for cameras that nobody calibrated: cross-camera convolutional color constancy (C5, ICCV 2021)."""

from c5.ccc import Estimate
from c5.color import angular_error, reproduction_error, white_balance
from c5.errors import C5Error, ImageError, NotLinearError, ParameterError, ReadError, WriteError
from c5.histogram import Geometry, Grid, histogram
from c5.image import LinearImage
from c5.readers import read_image

__all__ = [
    "C5Error",
    "Estimate",
    "Geometry",
    "Grid",
    "ImageError",
    "LinearImage",
    "NotLinearError",
    "ParameterError",
    "ReadError",
    "WriteError",
    "angular_error",
    "histogram",
    "read_image",
    "reproduction_error",
    "white_balance",
]
