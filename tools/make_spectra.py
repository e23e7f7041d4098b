"""Write src/c5/colorimetry/spectra.csv, the spectra that lights, cameras and scenes are made from.

A developer runs this once: `pip install colour-science && python tools/make_spectra.py`. The package itself reads only
the table. Measured spectra come from colour-science; the surfaces it lacks are smooth curves written down below, with
the absorption bands that make leaves, skin, soil and paint look as they do.
"""

from __future__ import annotations

from pathlib import Path

import colour
import numpy as np
from colour.quality.datasets.tcs import SDS_TCS
from numpy.typing import NDArray

Curve = NDArray[np.float64]

TABLE = Path(__file__).parents[1] / "src" / "c5" / "colorimetry" / "spectra.csv"
NM: Curve = np.arange(380.0, 731.0, 10.0)
HEADER = """\
# Spectra at 380..730 nm in steps of 10 nm, one a row. Written by tools/make_spectra.py.
# Rows from colour-science 0.4 (BSD-3-Clause, colour-science.org), which cites:
#   observer     CIE 1931 2 degree standard observer (CIE 018:2019)
#   daylight     CIE daylight basis functions S0, S1, S2 (CIE 015:2018)
#   fluorescent  CIE fluorescent lamps FL1 to FL12 (CIE 015:2018), mean power about each step
#   led          CIE LED illuminants (CIE 015:2018), mean power about each step
#   sensitivity  cameras measured at NPL: Darrodi et al., "Reference data set for camera spectral sensitivity
#                estimation", JOSA A 32 (2015)
#   chart        24 patches of the ColorChecker, BabelColor average
#   tcs          CIE 1995 test colour samples 1 to 14
# Rows of kind "surface" are not measurements: they are smooth parametric curves defined in tools/make_spectra.py.
"""


def gauss(center: float, width: float) -> Curve:
    return np.asarray(np.exp(-0.5 * ((NM - center) / width) ** 2))


def rise(center: float, width: float) -> Curve:
    """A smooth step from 0 below `center` nm to 1 above it."""
    return np.asarray(1 / (1 + np.exp(-(NM - center) / width)))


def leaf(chlorophyll: float, carotenoid: float, scatter: float) -> Curve:
    """Chlorophyll bands at 430 and 670 nm leave the green bump at 550 nm; beyond the red edge a leaf is bright."""
    bands = chlorophyll * (gauss(430, 38) + 0.85 * gauss(672, 22) + 0.5 * gauss(630, 28) + 0.6)
    bands += carotenoid * (gauss(450, 28) + gauss(485, 22))
    return np.asarray(0.012 + scatter * np.exp(-bands * (1 - rise(703, 8))))


def skin(melanin: float, blood: float) -> Curve:
    """Melanin absorbs ever more towards blue; haemoglobin adds the Soret band and the pair at 542 and 577 nm."""
    absorbed = melanin * (NM / 550) ** -2.2
    absorbed += blood * (1.6 * gauss(418, 24) + 0.75 * gauss(542, 15) + 0.8 * gauss(577, 11) + 0.35 * gauss(505, 60))
    return np.asarray(0.02 + 0.76 * np.exp(-absorbed))


def earth(level: float, iron: float, slope: float = 1.0) -> Curve:
    """Soil, sand, stone, brick: rising towards red, with the iron oxide edge between 530 and 600 nm."""
    ramp = 1 + slope * (NM - 560) / 560
    return np.asarray(level * ramp * (1 - iron * (1 - rise(575, 24))))


def pigment(low: float, high: float, edge: float, width: float = 12.0) -> Curve:
    """Yellow, orange and red paints, petals and peels: dark below an edge, bright above it."""
    return np.asarray(low + (high - low) * rise(edge, width))


def bump(low: float, high: float, center: float, width: float, tail: float = 0.0) -> Curve:
    """Blue, green and violet dyes; `tail` is their rise beyond 690 nm."""
    return np.asarray(low + (high - low) * gauss(center, width) + tail * rise(692, 12))


SURFACES: dict[str, Curve] = {
    "leaf": leaf(1.75, 0.5, 0.52),
    "young leaf": leaf(1.15, 0.75, 0.55),
    "dark leaf": leaf(2.3, 0.45, 0.40),
    "olive leaf": leaf(1.45, 0.35, 0.46),
    "conifer": leaf(2.25, 0.3, 0.30),
    "grass": leaf(1.45, 0.65, 0.46),
    "dry grass": earth(0.30, 0.38, 1.1),
    "autumn leaf": pigment(0.05, 0.42, 575, 20),
    "yellow leaf": pigment(0.06, 0.55, 525, 16) * (1 - 0.18 * gauss(672, 20)),
    "bark": earth(0.10, 0.22, 0.8),
    "soil": earth(0.13, 0.42, 1.0),
    "sand": earth(0.37, 0.10, 0.9) * (0.72 + 0.28 * rise(480, 45)),
    "wet sand": earth(0.19, 0.12, 0.9) * (0.72 + 0.28 * rise(480, 45)),
    "rock": earth(0.24, 0.10, 0.3),
    "dark rock": earth(0.12, 0.08, 0.2),
    "concrete": earth(0.38, 0.08, 0.25),
    "asphalt": earth(0.10, 0.05, 0.15),
    "brick": earth(0.22, 0.62, 0.9),
    "pale brick": earth(0.36, 0.42, 0.9),
    "terracotta": earth(0.28, 0.66, 0.8),
    "slate": 0.13 + 0.02 * gauss(470, 50),
    "ochre plaster": earth(0.48, 0.46, 0.5),
    "cream plaster": earth(0.64, 0.20, 0.3),
    "pink plaster": earth(0.50, 0.30, 0.6) + 0.05 * gauss(440, 40),
    "white plaster": 0.80 * rise(385, 9) * (1 + 0.05 * (NM - 560) / 560),
    "oak": earth(0.34, 0.40, 1.3),
    "pine": earth(0.50, 0.42, 1.1),
    "walnut": earth(0.13, 0.36, 1.4),
    "snow": 0.93 - 0.05 * rise(690, 30),
    "cloud": np.full_like(NM, 0.95),
    "deep water": 0.015 + 0.035 * gauss(485, 48),
    "shallow water": 0.04 + 0.17 * gauss(505, 48),
    "paper": 0.82 * rise(402, 7) + 0.05 * gauss(440, 16),
    "black cloth": 0.030 + 0.012 * rise(690, 12),
    "gray cloth": 0.17 + 0.01 * gauss(450, 50),
    "white cloth": 0.78 * rise(400, 8) + 0.03 * gauss(440, 18),
    "denim": bump(0.045, 0.15, 455, 42, 0.25),
    "navy cloth": bump(0.025, 0.07, 450, 40, 0.15),
    "teal cloth": bump(0.05, 0.25, 500, 38, 0.15),
    "green cloth": bump(0.04, 0.20, 525, 36, 0.20),
    "red cloth": pigment(0.035, 0.45, 602),
    "wine cloth": pigment(0.030, 0.16, 610, 20),
    "mustard cloth": pigment(0.05, 0.50, 535, 18),
    "violet cloth": bump(0.06, 0.24, 440, 34, 0.30) + 0.10 * rise(635, 18),
    "pale skin": skin(0.50, 0.32),
    "medium skin": skin(0.78, 0.32),
    "brown skin": skin(1.20, 0.30),
    "dark skin": skin(1.95, 0.25),
    "lips": skin(0.42, 0.85),
    "black hair": 0.018 + 0.012 * rise(640, 40),
    "brown hair": earth(0.060, 0.45, 1.6),
    "blond hair": earth(0.27, 0.50, 1.3),
    "gray hair": earth(0.34, 0.05, 0.2),
    "apple": pigment(0.035, 0.42, 606, 14) + 0.03 * gauss(550, 30),
    "green apple": leaf(0.78, 0.9, 0.62),
    "orange": pigment(0.035, 0.62, 556, 13),
    "lemon": pigment(0.06, 0.72, 512, 12),
    "plum": bump(0.05, 0.11, 440, 40) + 0.20 * rise(635, 18),
    "tomato": pigment(0.025, 0.48, 594, 10),
    "bottle glass": leaf(2.2, 0.1, 0.22),
    "steel": np.full_like(NM, 0.42) * (1 + 0.1 * (NM - 560) / 560),
    "brass": pigment(0.24, 0.62, 515, 28),
    "poppy": pigment(0.02, 0.52, 600, 9),
    "daisy": 0.76 * rise(412, 8),
    "buttercup": pigment(0.04, 0.74, 520, 10),
    "cornflower": bump(0.06, 0.36, 445, 38, 0.40),
    "pink petal": bump(0.14, 0.48, 440, 36) + 0.50 * rise(595, 14),
}


def sample(spectrum: colour.SpectralDistribution) -> Curve:
    """Values at the table's wavelengths; outside the measured range, its last value."""
    return np.asarray(np.interp(NM, spectrum.wavelengths, spectrum.values))


def average(spectrum: colour.SpectralDistribution) -> Curve:
    """Mean power in a triangle of 10 nm about each wavelength, so that a narrow line between two steps is not lost."""
    fine = np.arange(NM[0] - 10, NM[-1] + 11, 1.0)
    values = np.interp(fine, spectrum.wavelengths, spectrum.values)
    kernel = np.maximum(0, 1 - np.abs(np.arange(-10, 11)) / 10)
    return np.asarray(np.convolve(values, kernel / kernel.sum(), mode="same")[10:-10:10])


def rows() -> list[tuple[str, str, Curve]]:
    table: list[tuple[str, str, Curve]] = []
    observer = colour.MSDS_CMFS["CIE 1931 2 Degree Standard Observer"]
    table += [("observer", axis, sample(observer.signals[f"{axis}_bar"])) for axis in "xyz"]
    basis = colour.colorimetry.SDS_BASIS_FUNCTIONS_CIE_ILLUMINANT_D_SERIES
    table += [("daylight", name, sample(basis[name])) for name in ("S0", "S1", "S2")]
    lamps = colour.SDS_ILLUMINANTS
    table += [("fluorescent", name, average(lamps[name])) for name in (f"FL{i}" for i in range(1, 13))]
    leds = ["LED-B1", "LED-B2", "LED-B3", "LED-B4", "LED-B5", "LED-BH1", "LED-RGB1", "LED-V1", "LED-V2"]
    table += [("led", name, average(lamps[name])) for name in leds]
    for camera, key in (("Nikon D5100", "Nikon 5100 (NPL)"), ("Sigma SD Merrill", "Sigma SDMerill (NPL)")):
        curves = colour.MSDS_CAMERA_SENSITIVITIES[key]
        for channel, name in zip("rgb", curves.labels, strict=True):
            known = (curves.wavelengths[0] <= NM) & (curves.wavelengths[-1] >= NM)
            table.append(("sensitivity", f"{camera} {channel}", sample(curves.signals[name]) * known))
    chart = colour.SDS_COLOURCHECKERS["BabelColor Average"]
    table += [("chart", name, sample(curve)) for name, curve in chart.items()]
    table += [("tcs", name, sample(curve)) for name, curve in SDS_TCS["CIE 1995"].items()]
    table += [("surface", name, curve) for name, curve in SURFACES.items()]
    return table


def main() -> None:
    lines = ["kind,name," + ",".join(f"{nm:g}" for nm in NM)]
    for kind, name, curve in rows():
        scaled = curve / curve.max() if kind in {"fluorescent", "led"} else curve
        digits = 5 if kind == "observer" else 4
        lines.append(
            f"{kind},{name.split(' (')[0]}," + ",".join(f"{value:.{digits}g}" for value in np.round(scaled, 5))
        )
    TABLE.write_text(HEADER + "\n".join(lines) + "\n", encoding="ascii")
    print(f"{TABLE}: {len(lines) - 1} spectra, {TABLE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
