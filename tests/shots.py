"""Raw files of a gray surface in colored light, of the kinds on which programs disagree, and the truth about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from dng_files import rationals, with_tags

from c5.color import Float64s, as_illuminant
from c5.colorimetry.matrices import COLUMNS, CameraMatrices
from c5.colorimetry.spectra import WAVELENGTHS, black_body, daylight, read_spectra, unit_luminance
from c5.demo import VirtualCamera
from c5.demo.raw_files import LONG, RATIONAL, SHORT, SRATIONAL, XTRANS, Layout, encode_dng
from c5.io.raw import read_photograph
from c5.photos.balancing import Balance
from c5.photos.photo import Photo
from c5.photos.roll_building import Roll

SIZE = 320

LIGHTS: dict[str, Callable[[], Float64s]] = {
    "candle": lambda: black_body(2050),
    "lamp": lambda: black_body(2856),
    "fluorescent": lambda: next(iter(read_spectra("fluorescent").values())),
    "late sun": lambda: daylight(4100),
    "shade": lambda: daylight(9000),
    "blue sky": lambda: daylight(20000),
}

BEYOND: dict[str, Callable[[], Float64s]] = {
    "1900 K": lambda: black_body(1900),
    "1500 K": lambda: black_body(1500),
    "1200 K": lambda: black_body(1200),
    "infinitely hot": lambda: unit_luminance(WAVELENGTHS**-4),
    "green LED": lambda: unit_luminance(0.1 + _peak(535)),
    "magenta LEDs": lambda: unit_luminance(0.05 + _peak(450) + _peak(630)),
}
"""Lights whose temperature or tint Adobe's sliders do not have."""


def _peak(nanometers: float) -> Float64s:
    return np.asarray(np.exp(-0.5 * ((WAVELENGTHS - nanometers) / 25) ** 2))


Tags = dict[int, tuple[int, bytes] | None]


@dataclass(frozen=True)
class Kind:
    """How a file differs from what most cameras write."""

    tags: Tags = field(default_factory=dict)
    layout: Layout = field(default_factory=Layout)
    black: int | None = None
    gain: tuple[float, float, float] = (1, 1, 1)
    """What the sensor does to its channels, as the tags say."""


_UNIT = SRATIONAL, rationals(0.93, 0, 0, 0, 1, 0, 0, 0, 1.08)
_XY = RATIONAL, rationals(0.40, 0.39)

KINDS = {
    "plain": Kind(),
    "AnalogBalance": Kind({50727: (RATIONAL, rationals(1.8, 1, 1.4))}, gain=(1.8, 1, 1.4)),
    "CameraCalibration": Kind({50723: _UNIT, 50724: _UNIT}, gain=(0.93, 1, 1.08)),
    "AsShotWhiteXY": Kind({50728: None, 50729: _XY}),
    "AsShotWhiteXY and AsShotNeutral": Kind({50729: _XY}),
    "all of them": Kind(
        {50723: _UNIT, 50724: _UNIT, 50727: (RATIONAL, rationals(1.8, 1, 1.4)), 50729: _XY},
        gain=(1.8 * 0.93, 1, 1.4 * 1.08),
    ),
    "one matrix": Kind(layout=Layout(matrices=1)),
    # darktable's reader leaves the black of linear files in, and no balance mends that.
    "linear": Kind(layout=Layout(""), black=0),
    # RawTherapee reads the black of X-Trans files where Adobe's converter writes it, one number a filter.
    "X-Trans": Kind({50713: (SHORT, b"\6\0\6\0"), 50714: (LONG, b"\0\2\0\0" * 36)}, Layout(XTRANS), black=512),
}


@dataclass(frozen=True)
class Shot:
    """A raw file of colored patches at the left and gray at the right, and the truth about it."""

    path: Path
    matrices: CameraMatrices
    illuminant: Float64s

    @property
    def balance(self) -> Balance:
        """The right one, for what the file says now."""
        photo = Photo.of(self.path, read_photograph(self.path))
        return Balance(photo, self.illuminant, 1.0, "model", Roll(photo.camera))


def take(
    folder: Path, seed: int, light: Float64s, kind: Kind = KINDS["plain"], size: int = SIZE, colors: int = 0
) -> Shot:
    """A file of the camera that `seed` makes; `colors` chooses those of the patches."""
    camera = VirtualCamera.random(np.random.default_rng(seed))
    if kind.black is not None:
        camera = replace(camera, black_level=kind.black)
    rng = np.random.default_rng(colors)
    white = camera.respond(light) * kind.gain
    scene = np.full((size, size, 3), 0.25 * white / white.max())
    scene[:, : size // 2] *= np.kron(rng.uniform(0.2, 1, (4, 2, 3)), np.ones((size // 4, size // 4, 1)))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{camera.name}.dng"
    data = encode_dng(camera.expose(scene, rng), camera, kind.layout)
    path.write_bytes(with_tags(data, kind.tags) if kind.tags else data)
    matrices = CameraMatrices(camera.name, camera.color_matrix(2856), camera.color_matrix(6504))
    return Shot(path, matrices, as_illuminant(white))


def write_matrices(path: Path, cameras: list[CameraMatrices]) -> None:
    """A table of matrices, as `read_matrices` reads it."""
    rows = [[each.name, *each.matrix_a.ravel(), *each.matrix_d65.ravel()] for each in cameras]
    path.write_text("\n".join(",".join(map(str, row)) for row in [("camera", *COLUMNS), *rows]) + "\n")
