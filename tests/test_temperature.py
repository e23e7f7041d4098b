"""Laws of temperatures and tints: known lights, and everything there and back again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from laws import seeds

from c5.color import Float64s, angular_error, as_illuminant, reproduction_error
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.spectra import black_body, daylight, xyz
from c5.colorimetry.temperature import (
    _RT_BLACK_BODY,
    _RT_DAYLIGHT,
    ADOBE_KELVINS,
    ADOBE_TINTS,
    NOTICEABLE_DEG,
    RT_GREENS,
    RT_KELVINS,
    adobe_neutral,
    adobe_temperature,
    dng_temperature,
    rawtherapee_neutral,
    rawtherapee_temperature,
    temperature_to_uv,
    xy_to_temperature,
)
from c5.demo import VirtualCamera
from c5.errors import C5Error, ParameterError

kelvins = st.floats(2000, 25000)
tints = st.floats(-150, 150)


def calibrated(camera: VirtualCamera) -> CameraMatrices:
    return CameraMatrices(camera.name, camera.color_matrix(2856), camera.color_matrix(6504))


def random_calibration(seed: int) -> CameraMatrices:
    return calibrated(VirtualCamera.random(np.random.default_rng(seed % 50)))


@pytest.mark.parametrize(
    ("x", "y", "kelvin", "tint"),
    # CIE standard illuminants. The tints are those that Camera Raw shows for its presets, 5500 K +10 and 2850 K 0.
    [
        (0.44758, 0.40745, 2856, 0),
        (0.31272, 0.32903, 6504, 10),
        (0.34567, 0.35850, 5001, 10),
        (0.33242, 0.34743, 5503, 10),
        (0.29902, 0.31485, 7504, 10),
    ],
)
def test_standard_illuminants_have_their_temperatures(x: float, y: float, kelvin: float, tint: float) -> None:
    found = xy_to_temperature((x, y))
    assert found.kelvin == pytest.approx(kelvin, abs=3)
    assert found.tint == pytest.approx(tint, abs=1)


@given(kelvin=st.floats(2000, 20000))
def test_black_bodies_have_no_tint(kelvin: float) -> None:
    white = xyz(black_body(kelvin))
    found = xy_to_temperature(white[:2] / white.sum())
    assert found.kelvin == pytest.approx(kelvin, rel=0.01)
    assert abs(found.tint) < 2.5


@given(kelvin=st.floats(4000, 20000))
def test_daylight_is_a_little_greener_than_black_bodies(kelvin: float) -> None:
    white = xyz(daylight(kelvin))
    found = xy_to_temperature(white[:2] / white.sum())
    assert found.kelvin == pytest.approx(kelvin, rel=0.01)
    assert 2 < found.tint < 15


def temperature_to_xy(kelvin: float, tint: float) -> Float64s:
    """The CIE 1931 chromaticity of a temperature and a tint."""
    u, v = temperature_to_uv(1e6 / kelvin, tint)
    return np.asarray(np.array([1.5 * u, v]) / (u - 4 * v + 2))


@given(kelvin=kelvins, tint=tints)
def test_temperature_and_tint_are_found_again_to_the_digit_that_is_shown(kelvin: float, tint: float) -> None:
    found = xy_to_temperature(temperature_to_xy(kelvin, tint))
    assert found.kelvin == pytest.approx(kelvin, abs=0.5)
    assert found.tint == pytest.approx(tint, abs=0.005)


def test_whole_numbers_survive_any_number_of_programs() -> None:
    rng = np.random.default_rng(0)
    for kelvin, tint in zip(rng.integers(2000, 25001, 300), rng.integers(-150, 151, 300), strict=True):
        found = xy_to_temperature(temperature_to_xy(float(kelvin), float(tint)))
        assert (round(found.kelvin), round(found.tint)) == (kelvin, tint)


@given(kelvin=kelvins, tint=st.floats(-140, 140))
def test_a_larger_tint_is_a_greener_light(kelvin: float, tint: float) -> None:
    (x, y), (x_more, y_more) = temperature_to_xy(kelvin, tint), temperature_to_xy(kelvin, tint + 10)
    assert y_more / (1 - y_more) > y / (1 - y)
    assert (x, y) != (x_more, y_more)


def test_the_ends_of_the_lines_are_named() -> None:
    assert xy_to_temperature((0.57, 0.40)).kelvin == pytest.approx(1e6 / 600, rel=0.01)
    assert xy_to_temperature((0.24, 0.235)).kelvin <= 1e5
    for xy in ((1.2, 0.8), (0, 0.3), (0.3, np.nan), (0.3,), (0.3, 0.3, 0.3)):
        with pytest.raises(ParameterError, match="chromaticity"):
            xy_to_temperature(xy)


@given(seed=seeds, kelvin=st.floats(2500, 20000), tint=st.floats(-40, 60))
def test_neutrals_are_found_again_through_the_matrices(seed: int, kelvin: float, tint: float) -> None:
    matrices = random_calibration(seed)
    neutral = adobe_neutral(kelvin, tint, matrices)
    found = dng_temperature(3.7 * neutral, matrices)
    assert found.kelvin == pytest.approx(kelvin, rel=1e-3)
    assert found.tint == pytest.approx(tint, abs=0.1)
    assert angular_error(adobe_neutral(*found, matrices), neutral) < 2e-3


@given(seed=seeds)
def test_at_the_lights_of_calibration_the_temperature_is_theirs(seed: int) -> None:
    camera = VirtualCamera.random(np.random.default_rng(seed % 50))
    matrices = calibrated(camera)
    warm = dng_temperature(camera.illuminant(black_body(2856)), matrices)
    cold = dng_temperature(camera.illuminant(daylight(6504)), matrices)
    np.testing.assert_allclose(warm.kelvin, 2856, atol=3)
    np.testing.assert_allclose(warm.tint, 0, atol=0.5)
    np.testing.assert_allclose(cold.kelvin, 6504, atol=3)
    np.testing.assert_allclose(cold.tint, 10, atol=0.5)


def test_between_the_lights_of_calibration_it_is_near() -> None:
    camera = VirtualCamera.nikon_d5100()
    for kelvin in (4200, 5000, 5500):
        found = dng_temperature(camera.illuminant(daylight(kelvin)), calibrated(camera))
        assert found.kelvin == pytest.approx(kelvin, rel=0.02)
        assert found.tint == pytest.approx(9, abs=8)


@given(seed=seeds, kelvin=st.integers(2200, 40000), green=st.floats(0.7, 1.5))
def test_rawtherapee_has_numbers_for_every_light(seed: int, kelvin: int, green: float) -> None:
    matrix = random_calibration(seed).matrix_d65
    neutral = rawtherapee_neutral(kelvin, green, matrix)
    found = rawtherapee_temperature(neutral, matrix)
    assert rawtherapee_neutral(*found, matrix) / neutral == pytest.approx(np.ones(3), rel=1e-3)
    if kelvin < 3700 or kelvin > 4300:  # black bodies and daylight overlap between
        assert found.kelvin == pytest.approx(kelvin, abs=1)
        assert found.green == pytest.approx(green, rel=1e-3)


def test_more_green_in_rawtherapee_takes_more_green_out() -> None:
    matrix = random_calibration(1).matrix_d65
    # Green divides the green of the light, so that less of it is left to be taken out of the picture.
    plain, more = rawtherapee_neutral(5000, 1.0, matrix), rawtherapee_neutral(5000, 1.2, matrix)
    assert more[1] / more[0] < plain[1] / plain[0]


def test_the_sums_of_rawtherapee_are_those_of_an_observer_without_560_nm() -> None:
    colour = pytest.importorskip("colour")
    shape = colour.SpectralShape(360, 830, 5)
    observer = colour.MSDS_CMFS["CIE 1964 10 Degree Standard Observer"].copy().align(shape)
    kept = observer.values[observer.domain != 560]  # what follows the gap stands 5 nm too early
    table = np.zeros((97, 3))
    table[2 : 2 + len(kept)] = kept
    basis = colour.colorimetry.SDS_BASIS_FUNCTIONS_CIE_ILLUMINANT_D_SERIES
    wide = colour.SpectralShape(350, 830, 5)
    sums = np.stack([basis[name].copy().align(wide).values for name in ("S0", "S1", "S2")]) @ table
    np.testing.assert_allclose(_RT_DAYLIGHT, sums / sums[0, 1], atol=1e-6)
    metres = np.arange(350, 831, 5) * 1e-9
    for kelvin in (1500, 2000, 2856, 4000):
        x, y, z = (metres**-5.0 / np.expm1(1.438786e-2 / (metres * kelvin))) @ table
        logs = [np.polyval(row, 1000 / kelvin) for row in _RT_BLACK_BODY]
        np.testing.assert_allclose(logs, np.log([x / y, z / y]), atol=5e-5)


@given(rgb=st.tuples(*[st.floats(1e-4, 1)] * 3), seed=seeds)
def test_any_illuminant_has_numbers_or_an_error_that_says_why(rgb: tuple[float, float, float], seed: int) -> None:
    matrices = random_calibration(seed)
    try:
        assert np.isfinite(dng_temperature(rgb, matrices)).all()
    except C5Error as error:
        assert "\n" not in str(error)  # noqa: PT017


@given(rgb=st.tuples(*[st.floats(1e-4, 1)] * 3), seed=seeds)
def test_any_illuminant_has_numbers_that_the_programs_can_hold(rgb: tuple[float, float, float], seed: int) -> None:
    matrices = random_calibration(seed)
    kelvin, tint = adobe_temperature(rgb, matrices)
    assert ADOBE_KELVINS[0] <= kelvin <= ADOBE_KELVINS[1]
    assert ADOBE_TINTS[0] <= tint <= ADOBE_TINTS[1]
    assert kelvin == int(kelvin)
    assert tint == int(tint)
    warmth, green = rawtherapee_temperature(rgb, matrices.matrix_d65)
    assert RT_KELVINS[0] <= warmth <= RT_KELVINS[1]
    assert RT_GREENS[0] <= green <= RT_GREENS[1]


@given(seed=seeds, kelvin=st.floats(2010, 24000), tint=st.floats(-100, 100))
def test_what_the_sliders_hold_is_rounded(seed: int, kelvin: float, tint: float) -> None:
    matrices = random_calibration(seed)
    neutral = adobe_neutral(kelvin, tint, matrices)
    assume((neutral > 0.002).all())
    found = adobe_temperature(neutral, matrices)
    assert reproduction_error(adobe_neutral(*found, matrices), neutral) < NOTICEABLE_DEG


def beyond() -> list[tuple[CameraMatrices, Float64s]]:
    """Lights that no slider reaches: candles and embers, the bluest sky, stage lights."""
    cases = []
    for seed in range(4):
        camera = VirtualCamera.random(np.random.default_rng(seed))
        cases += [(calibrated(camera), camera.illuminant(black_body(kelvin))) for kelvin in (1200, 1700, 1900)]
        cases += [(calibrated(camera), as_illuminant(rgb)) for rgb in ((0.1, 0.3, 1), (0.3, 1, 0.1), (1, 0.2, 0.9))]
    return cases


@pytest.mark.parametrize(("matrices", "illuminant"), beyond())
def test_beyond_the_sliders_no_balance_is_nearer(matrices: CameraMatrices, illuminant: Float64s) -> None:
    rng = np.random.default_rng(0)
    off = reproduction_error(adobe_neutral(*adobe_temperature(illuminant, matrices), matrices), illuminant)
    mireds, tints = rng.uniform(20, 500, 20000), rng.uniform(-150, 150, 20000)
    mireds[:4000], tints[4000:8000] = rng.choice([20, 500], 4000), rng.choice([-150, 150], 4000)
    others = reproduction_error(adobe_neutral(1e6 / mireds, tints, matrices), illuminant)
    assert off < others.min() + 0.1
    try:  # the nearest numbers are not the nearest balance
        kelvin, tint = dng_temperature(illuminant, matrices)
    except ParameterError:
        return
    clamped = adobe_neutral(np.clip(kelvin, *ADOBE_KELVINS), np.clip(tint, *ADOBE_TINTS), matrices)
    assert off < reproduction_error(clamped, illuminant) + 0.1


@pytest.mark.parametrize(("matrices", "illuminant"), beyond())
def test_beyond_its_range_rawtherapee_gets_the_nearest(matrices: CameraMatrices, illuminant: Float64s) -> None:
    rng = np.random.default_rng(0)
    matrix = matrices.matrix_d65
    found = rawtherapee_temperature(illuminant, matrix)
    off = reproduction_error(rawtherapee_neutral(*found, matrix), illuminant)
    others = []
    for kelvin, green in zip(1e6 / rng.uniform(17, 666, 2000), np.exp(rng.uniform(-3.9, 2.3, 2000)), strict=True):
        try:
            others.append(reproduction_error(rawtherapee_neutral(round(kelvin), green, matrix), illuminant))
        except ParameterError:  # RawTherapee would divide by a negative number
            continue
    assert off < min(others) + 0.01


def test_a_candle_is_held_twice_as_well_as_by_the_nearest_numbers() -> None:
    ratios = []
    for matrices, illuminant in beyond()[1::6]:  # 1700 K
        kelvin, tint = dng_temperature(illuminant, matrices)
        clamped = reproduction_error(adobe_neutral(2000, tint, matrices), illuminant)
        nearest = reproduction_error(adobe_neutral(*adobe_temperature(illuminant, matrices), matrices), illuminant)
        assert kelvin < 1800
        ratios.append(nearest / clamped)
    assert max(ratios) < 0.7


def test_impossible_lights_are_refused() -> None:
    matrices = random_calibration(0)
    with pytest.raises(ParameterError, match="no light gives this illuminant"):
        dng_temperature((0.01, 0.01, 1), matrices)
    with pytest.raises(ParameterError, match="1500 to 60000 K"):
        rawtherapee_neutral(1000, 1, matrices.matrix_d65)
    with pytest.raises(ParameterError, match="one of a camera"):
        rawtherapee_temperature((1, 1, 1), np.full((3, 3), np.nan))
    with pytest.raises(ParameterError, match="illuminant"):
        dng_temperature((0, 1, 1), matrices)
