"""Virtual cameras: a sensor's spectral sensitivities, its number range and its noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from c5.color import Float64s, as_illuminant
from c5.colorimetry.spectra import WAVELENGTHS, black_body, daylight, read_spectra, unit_luminance, xyz
from c5.errors import ParameterError


@dataclass(frozen=True, eq=False)
class VirtualCamera:
    """A sensor that turns spectra into numbers."""

    name: str
    sensitivities: Float64s
    """(3, wavelengths): red, green, blue; a white in daylight gives about 1 in green."""
    black_level: int = 512
    white_level: int = 15871
    shot_noise: float = 8e-5
    """Variance of the photon noise at the white level, with the white level at 1: 1 / electrons at saturation."""
    read_noise: float = 6e-4
    """Standard deviation of the noise without light, with the white level at 1."""

    def __post_init__(self) -> None:
        if self.sensitivities.shape != (3, WAVELENGTHS.size) or (self.sensitivities < 0).any():
            raise ParameterError(f"sensitivities must be non-negative, of shape (3, {WAVELENGTHS.size})")
        if not 0 <= self.black_level < self.white_level <= 65535:
            raise ParameterError("levels must keep the order 0 <= black_level < white_level <= 65535")
        if self.shot_noise < 0 or self.read_noise < 0:
            raise ParameterError("noise must be 0 or more")

    @classmethod
    def nikon_d5100(cls) -> VirtualCamera:
        """The sensitivities measured on a real camera; levels and noise are typical ones."""
        return cls("Nikon D5100", _exposed(_measured("Nikon D5100")))

    @classmethod
    def random(cls, rng: np.random.Generator) -> VirtualCamera:
        """A camera nobody has built, about as different from the real one as real ones are from each other."""
        curves = _measured("Nikon D5100")
        foveon = rng.uniform(0, 0.12)  # a part of the broad curves of the one sensor that has no color filters
        curves = (1 - foveon) * curves + foveon * _measured("Sigma SD Merrill")
        moved = [_stretch(c, rng.normal(0, 5), rng.uniform(0.9, 1.15)) for c in curves]
        crosstalk = np.eye(3) + rng.uniform(0, 0.06, (3, 3))
        cut = 1 / (1 + np.exp((WAVELENGTHS - rng.uniform(655, 695)) / rng.uniform(5, 10)))  # the infrared filter
        curves = crosstalk @ np.stack(moved) * cut
        # Daylight lands at r/g 0.35 to 0.8 and b/g 0.5 to 1 on real cameras.
        white = curves @ daylight(5500)
        target = np.array([np.exp(rng.uniform(np.log(0.38), np.log(0.75))), 1.0, np.exp(rng.uniform(np.log(0.52), 0))])
        black = int(rng.choice([0, 64, 128, 256, 512, 600, 1024, 2048]))
        return cls(
            name=f"Virtual {rng.integers(1000, 10000)}",
            sensitivities=_exposed(curves * (target / white)[:, None]),
            black_level=black,
            white_level=black + int(rng.integers(12000, 14336)),
            shot_noise=float(np.exp(rng.uniform(np.log(2e-5), np.log(4e-4)))),
            read_noise=float(np.exp(rng.uniform(np.log(2e-4), np.log(1.5e-3)))),
        )

    def respond(self, spectrum: ArrayLike) -> Float64s:
        """Noise-free RGB of light spectra on the last axis."""
        return np.asarray(np.asarray(spectrum, dtype=np.float64) @ self.sensitivities.T)

    def illuminant(self, light: Float64s) -> Float64s:
        """The unit RGB of a perfect white in a light."""
        return as_illuminant(self.respond(light))

    def color_matrix(self, temperature_kelvin: float) -> Float64s:
        """XYZ to camera RGB, (3, 3), for a light of that temperature: a black body below 4000 K, else daylight.

        Made as the ColorMatrix of a DNG file is: a least-squares fit over known surfaces that keeps white exact, scaled
        so that the white of D50 gives 1 in its largest channel.
        """
        light = black_body(temperature_kelvin) if temperature_kelvin < 4000 else daylight(temperature_kelvin)
        known = [*read_spectra("chart").values(), *read_spectra("tcs").values(), *read_spectra("surface").values()]
        seen = np.stack(known) * light
        white_xyz, white_rgb = xyz(light), self.respond(light)
        # Any matrix is one that takes white to white plus one that takes white to zero: fit only the second.
        exact = np.outer(white_rgb, white_xyz) / (white_xyz @ white_xyz)
        away = np.linalg.svd(white_xyz[None])[2][1:]  # (2, 3), the directions across white
        rest, *_ = np.linalg.lstsq(xyz(seen) @ away.T, self.respond(seen) - xyz(seen) @ exact.T, rcond=None)
        matrix = exact + rest.T @ away
        return np.asarray(matrix / (matrix @ D50_WHITE).max())

    def expose(self, rgb: NDArray[np.floating], rng: np.random.Generator) -> NDArray[np.uint16]:
        """Sensor numbers, black level included, for light with the white level at 1: noise, rounding, clipping."""
        light = np.maximum(rgb, 0).astype(np.float32)
        sigma = np.sqrt(np.float32(self.shot_noise) * light + np.float32(self.read_noise**2))
        noisy = light + sigma * rng.standard_normal(light.shape, dtype=np.float32)
        numbers = np.rint(noisy * np.float32(self.white_level - self.black_level) + np.float32(self.black_level))
        return np.asarray(np.clip(numbers, 0, self.white_level), dtype=np.uint16)


D50_WHITE: Float64s = np.array([0.9642, 1.0, 0.8251])
"""XYZ of the DNG profile connection space's white."""


def _measured(camera: str) -> Float64s:
    return np.stack([read_spectra("sensitivity")[f"{camera} {channel}"] for channel in "rgb"])


def _stretch(curve: Float64s, shift: float, width: float) -> Float64s:
    """A sensitivity moved by `shift` nm and widened about its peak."""
    peak = WAVELENGTHS[curve.argmax()]
    return np.asarray(np.interp((WAVELENGTHS - peak - shift) / width + peak, WAVELENGTHS, curve, left=0, right=0))


def _exposed(curves: Float64s) -> Float64s:
    """Sensitivities scaled so that a white in average daylight gives 1 in green."""
    return np.asarray(curves / (curves[1] @ unit_luminance(daylight(5500))))
