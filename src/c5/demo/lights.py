"""The lights of the demo pictures: sun and sky, lamps, tubes and LEDs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from c5.color import Float64s
from c5.colorimetry.spectra import WAVELENGTHS, black_body, daylight, read_spectra, unit_luminance


@dataclass(frozen=True, eq=False)
class Light:
    """A main light, which the ground truth describes, and the weaker light that fills its shadows."""

    name: str
    family: str
    """A key of `LIGHTS`."""
    spectrum: Float64s
    """The main light, luminance 1."""
    fill: Float64s
    """The light in the shadows and of a clear sky, luminance 1."""
    ambient: float
    """How bright a white surface in full shadow is, as a part of a fully lit one."""
    hardness: float
    """0 for light from everywhere, 1 for a point source."""


def _sun(rng: np.random.Generator) -> Light:
    kelvin = rng.uniform(5000, 6000)
    # Rayleigh scattering makes the sky bluer than any CIE daylight.
    sky = unit_luminance(daylight(rng.uniform(9000, 15000)) * (WAVELENGTHS / 550) ** -rng.uniform(0.3, 1.3))
    share = rng.uniform(0.05, 0.2)  # of the light on a sunlit surface that comes from the sky
    main = (1 - share) * daylight(kelvin) + share * sky
    return Light(f"sun {kelvin:.0f} K", "sun", main, sky, rng.uniform(0.2, 0.34), 0.95)


def _low_sun(rng: np.random.Generator) -> Light:
    kelvin = rng.uniform(4000, 4700)
    sky = 0.75 * daylight(rng.uniform(9000, 14000)) + 0.25 * daylight(kelvin)
    return Light(f"low sun {kelvin:.0f} K", "low sun", daylight(kelvin), sky, rng.uniform(0.22, 0.36), 0.9)


def _overcast(rng: np.random.Generator) -> Light:
    kelvin = rng.uniform(6000, 7500)
    fill = daylight(kelvin * 1.06)
    return Light(f"overcast {kelvin:.0f} K", "overcast", daylight(kelvin), fill, rng.uniform(0.4, 0.55), 0.3)


def _shade(rng: np.random.Generator) -> Light:
    kelvin = rng.uniform(7500, 12000)
    fill = 0.6 * daylight(kelvin) + 0.4 * daylight(6000)
    return Light(f"shade {kelvin:.0f} K", "shade", daylight(kelvin), fill, rng.uniform(0.35, 0.5), 0.4)


def _tungsten(rng: np.random.Generator) -> Light:
    kelvin = rng.uniform(2300, 3400)
    return _lamp(f"tungsten {kelvin:.0f} K", "tungsten", black_body(kelvin), rng)


def _fluorescent(rng: np.random.Generator) -> Light:
    name = str(rng.choice(["FL1", "FL2", "FL3", "FL4", "FL7", "FL8", "FL9", "FL10", "FL11", "FL12"]))
    return _lamp(f"fluorescent {name}", "fluorescent", unit_luminance(read_spectra("fluorescent")[name]), rng)


def _led(rng: np.random.Generator) -> Light:
    name = str(rng.choice(list(read_spectra("led"))))
    return _lamp(name, "led", unit_luminance(read_spectra("led")[name]), rng)


def _window(rng: np.random.Generator) -> Light:
    kelvin = rng.uniform(5200, 8000)
    return _lamp(f"window {kelvin:.0f} K", "window", daylight(kelvin), rng)


def _lamp(name: str, family: str, spectrum: Float64s, rng: np.random.Generator) -> Light:
    """Indoors, light from the walls fills the shadows."""
    wall = str(rng.choice(["white plaster", "cream plaster", "pine", "ochre plaster"]))
    fill = unit_luminance(spectrum * (0.3 + read_spectra("surface")[wall]))
    return Light(name, family, spectrum, fill, rng.uniform(0.22, 0.42), rng.uniform(0.6, 0.9))


LIGHTS: dict[str, Callable[[np.random.Generator], Light]] = {
    "sun": _sun,
    "low sun": _low_sun,
    "overcast": _overcast,
    "shade": _shade,
    "window": _window,
    "tungsten": _tungsten,
    "fluorescent": _fluorescent,
    "led": _led,
}
"""Families of lights; each call draws one of the family."""
OUTDOORS = ("sun", "low sun", "overcast", "shade")
INDOORS = ("window", "tungsten", "fluorescent", "led")
