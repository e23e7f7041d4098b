"""The table of spectra behind lights, cameras and rendered scenes, and the two families of lights with a formula.

A spectrum is a float64 array over `WAVELENGTHS`. The header of spectra.csv says which were measured and which are drawn
curves.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import ArrayLike

from c5.color import Float64s
from c5.errors import ParameterError

WAVELENGTHS: Float64s = np.arange(380.0, 731.0, 10.0)
"""In nanometers."""


@cache
def read_spectra(kind: str) -> dict[str, Float64s]:
    """The spectra of one kind by name: observer, daylight, fluorescent, led, sensitivity, chart, tcs or surface."""
    text = resources.files(__package__).joinpath("spectra.csv").read_text(encoding="ascii")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {row[1]: np.array(row[2:], dtype=np.float64) for row in csv.reader(lines) if row[0] == kind}


def chart_surfaces() -> Float64s:
    """(24, wavelengths) the reflectances of the patches of a color chart."""
    return np.stack(list(read_spectra("chart").values()))


def xyz(spectrum: ArrayLike) -> Float64s:
    """CIE 1931 XYZ of spectra on the last axis, in the units of the spectrum (no normalization)."""
    observer = np.stack([read_spectra("observer")[axis] for axis in "xyz"])
    return np.asarray(np.asarray(spectrum, dtype=np.float64) @ observer.T)


def black_body(kelvin: float) -> Float64s:
    """Planck's law, luminance 1: candles at 1900 K, lamps at 2300 to 3400 K."""
    if not 1000 <= kelvin <= 50000:
        raise ParameterError(f"a black body here has 1000 to 50000 K, not {kelvin:g}")
    # Second radiation constant 1.4388e-2 m K; the first one falls out with the normalization.
    return unit_luminance(WAVELENGTHS**-5.0 / np.expm1(1.4388e7 / (WAVELENGTHS * kelvin)))


def daylight(kelvin: float) -> Float64s:
    """CIE daylight of 4000 to 25000 K, luminance 1 (CIE 015:2018, Eqs. 4.7 to 4.11)."""
    if not 4000 <= kelvin <= 25000:
        raise ParameterError(f"CIE daylight is defined from 4000 to 25000 K, not {kelvin:g}")
    t = 1000 / kelvin
    if kelvin <= 7000:
        x = 0.244063 + 0.09911 * t + 2.9678 * t**2 - 4.6070 * t**3
    else:
        x = 0.237040 + 0.24748 * t + 1.9018 * t**2 - 2.0064 * t**3
    y = -3.000 * x**2 + 2.870 * x - 0.275
    scale = 0.0241 + 0.2562 * x - 0.7341 * y
    m1 = (-1.3515 - 1.7703 * x + 5.9114 * y) / scale
    m2 = (0.0300 - 31.4424 * x + 30.0717 * y) / scale
    basis = read_spectra("daylight")
    return unit_luminance(basis["S0"] + m1 * basis["S1"] + m2 * basis["S2"])


def unit_luminance(spectrum: Float64s) -> Float64s:
    """The spectrum scaled so that a perfect white in its light has Y = 1."""
    return np.asarray(spectrum / xyz(spectrum)[1])
