"""What a camera sees of every light of the plane of mired and tint, as a table.

With it a page can follow its sliders without asking the server: it looks up illuminant and colors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from c5.color import Float64s, as_illuminant
from c5.colorimetry.adaptation import adapt_to_srgb
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.temperature import temperature_to_uv, uv_to_xyz

MIREDS: Float64s = np.arange(20.0, 601.0, 10.0)
TINTS: Float64s = np.arange(-150.0, 151.0, 15.0)


@dataclass(frozen=True, eq=False)
class Plane:
    """At each place, for a camera: the logarithm of the illuminant's red and blue over green, and a matrix to sRGB."""

    chroma: Float64s  # (mireds, tints, 2)
    matrix: Float64s  # (mireds, tints, 3, 3)

    def encode(self) -> bytes:
        """All numbers as little-endian float32, eleven per place, tint by tint, then mired by mired."""
        places = self.chroma.shape[:2]
        return np.concatenate([self.chroma, self.matrix.reshape(*places, 9)], axis=-1).astype("<f4").tobytes()


def tabulate_plane(matrices: CameraMatrices) -> Plane:
    """The table of a camera. A light that it cannot see counts as the nearest visible one towards the middle."""
    chroma, matrix = np.empty((len(MIREDS), len(TINTS), 2)), np.empty((len(MIREDS), len(TINTS), 3, 3))
    for row, mired in enumerate(MIREDS):
        colors = matrices.matrix(1e6 / mired)
        for column, tint in enumerate(TINTS):
            for share in (1, 0.8, 0.6, 0.4, 0.2, 0):
                neutral = colors @ uv_to_xyz(temperature_to_uv(mired, tint * share))
                if neutral.min() > 0.002 * neutral.max():
                    break
            illuminant = as_illuminant(np.maximum(neutral, 0.002 * neutral.max()))
            chroma[row, column] = np.log(illuminant[[0, 2]] / illuminant[1])
            matrix[row, column] = adapt_to_srgb(colors, illuminant)
    return Plane(chroma, matrix)
