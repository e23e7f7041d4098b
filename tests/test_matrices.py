"""Laws of calibrated cameras: temperatures, curves of lights, matrices; and the catalog file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import seeds

from c5.color import XYZ_TO_SRGB, Float64s, angular_error, camera_to_srgb
from c5.colorimetry.matrices import COLUMNS, CameraMatrices, pick_matrices, read_matrices
from c5.colorimetry.spectra import black_body, daylight, xyz
from c5.datasets import read_samples
from c5.datasets.facts import SHORT_NAMES, all_names, full_name, match_name
from c5.demo import VirtualCamera
from c5.errors import DataError, ParameterError

kelvins = st.floats(2500, 7500)


def calibrated(seed: int) -> CameraMatrices:
    camera = VirtualCamera.random(np.random.default_rng(seed))
    return CameraMatrices(camera.name, camera.color_matrix(2856), camera.color_matrix(6504))


@pytest.mark.parametrize(
    ("kelvin", "x", "y"),
    # CIE standard illuminant A, and points of the Planckian locus as tabulated.
    [(2856, 0.4476, 0.4074), (2500, 0.4770, 0.4137), (5000, 0.3451, 0.3516), (6500, 0.3135, 0.3237)],
)
def test_black_bodies_have_the_chromaticity_of_the_tables(kelvin: float, x: float, y: float) -> None:
    white = xyz(black_body(kelvin))
    np.testing.assert_allclose(white[:2] / white.sum(), [x, y], atol=3e-4)


def distance(matrices: CameraMatrices, lights: Float64s) -> Float64s:
    """Degrees from lights to the black bodies of their temperatures."""
    return angular_error(lights, matrices.illuminant(matrices.temperature(lights)))


def test_the_matrix_is_interpolated_in_inverse_temperature_and_clamped() -> None:
    matrices = calibrated(1)
    a, d65 = matrices.matrix_a, matrices.matrix_d65
    middle = 2 / (1 / 2856 + 1 / 6504)
    np.testing.assert_allclose(matrices.matrix(middle), (a + d65) / 2)
    np.testing.assert_allclose(matrices.matrix([1500, 2856, 6504, 9000]), [a, a, d65, d65], atol=1e-12)
    alpha = (1 / 4000 - 1 / 6504) / (1 / 2856 - 1 / 6504)  # Eq. 16
    np.testing.assert_allclose(matrices.matrix(4000), alpha * a + (1 - alpha) * d65)


@given(seed=seeds, kelvin=kelvins)
def test_a_temperature_is_found_again_from_its_illuminant(seed: int, kelvin: float) -> None:
    matrices = calibrated(seed % 50)
    found = matrices.temperature(7.5 * matrices.illuminant(kelvin))
    assert found == pytest.approx(kelvin, abs=3)


@given(seed=seeds, kelvin=st.floats(2700, 7300), degrees=st.floats(0.1, 3))
def test_a_light_off_the_curve_gets_the_nearest_on_it(seed: int, kelvin: float, degrees: float) -> None:
    matrices = calibrated(seed % 50)
    here, ahead = matrices.illuminant(kelvin), matrices.illuminant(kelvin + 1)
    across = np.cross(here, ahead - here)
    across /= np.linalg.norm(across)
    moved = np.cos(np.radians(degrees)) * here + np.sin(np.radians(degrees)) * across
    # The curve bends, so that on its inner side another point of it may come a little nearer.
    assert degrees * 0.9 - 0.01 <= distance(matrices, moved) <= degrees + 0.01


def test_many_illuminants_at_once_give_what_each_gives_alone() -> None:
    matrices = calibrated(3)
    lights = np.random.default_rng(0).uniform(0.2, 1, (4, 5, 3))
    together = matrices.temperature(lights)
    assert together.shape == (4, 5)
    assert together[2, 3] == pytest.approx(float(matrices.temperature(lights[2, 3])))
    # No step of a fine search finds a nearer one.
    steps = matrices.illuminant(np.arange(2500, 7501, 20.0))
    nearest = angular_error(lights[..., None, :], steps).min(axis=-1)
    assert (distance(matrices, lights) <= nearest + 1e-3).all()


def test_lights_beyond_the_range_are_given_its_ends() -> None:
    matrices = calibrated(4)
    assert matrices.temperature(matrices.illuminant(1900)) == 2500
    assert matrices.temperature(matrices.illuminant(12000)) == 7500


def test_daylight_lies_near_the_curve_at_its_temperature() -> None:
    camera = VirtualCamera.nikon_d5100()
    matrices = CameraMatrices(camera.name, camera.color_matrix(2856), camera.color_matrix(6504))
    light = camera.illuminant(daylight(5500))
    assert matrices.temperature(light) == pytest.approx(5500, abs=250)
    assert 0 < distance(matrices, light) < 3


@given(seed=seeds, kelvin=kelvins)
def test_ccms_keep_white(seed: int, kelvin: float) -> None:
    matrices = calibrated(seed % 50)
    ccm = matrices.ccm(kelvin)
    np.testing.assert_allclose(ccm @ np.ones(3), 1, atol=1e-9)
    np.testing.assert_allclose(ccm, camera_to_srgb(matrices.matrix(kelvin), matrices.illuminant(kelvin)))


@given(kelvin=kelvins)
def test_a_camera_that_sees_srgb_needs_no_ccm(kelvin: float) -> None:
    np.testing.assert_allclose(CameraMatrices("sRGB", XYZ_TO_SRGB, XYZ_TO_SRGB).ccm(kelvin), np.eye(3), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"matrix_a": np.eye(2)}, "3 by 3"),
        ({"matrix_d65": np.full((3, 3), np.nan)}, "finite"),
        ({"matrix_a": np.ones((3, 3))}, "inverted"),
        ({"matrix_d65": -np.eye(3)}, "negative"),
        ({"kelvin_a": 7000}, "warmer first"),
    ],
)
def test_wrong_matrices_are_refused(change: dict[str, object], message: str) -> None:
    right: dict[str, object] = {"name": "Camera X", "matrix_a": np.eye(3), "matrix_d65": np.eye(3)}
    with pytest.raises(ParameterError, match=f"Camera X: .*{message}"):
        CameraMatrices(**(right | change))  # type: ignore[arg-type]


def test_matrices_cannot_be_changed_from_outside() -> None:
    matrix = np.eye(3)
    matrices = CameraMatrices("X", matrix, matrix)
    matrix[0, 0] = 5
    assert matrices.matrix_a[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        matrices.matrix_a[0, 0] = 5


def test_names_match_whole() -> None:
    matrices = {"Canon-EOS-1D", "Canon-EOS-1D-Mark-II", "Canon-EOS-1Ds-Mark-III", "Nikon-D5200"}
    assert match_name("Canon1D", matrices) == "Canon-EOS-1D"
    assert match_name("Canon1DsMkIII", matrices) == "Canon-EOS-1Ds-Mark-III"
    assert match_name("Nikon-D5200", matrices) == match_name("NikonD5200", matrices) == "Nikon-D5200"
    for stranger in ("Canon5D", "Canon-EOS-1", "Canon", "nikon-d5200", ""):
        assert match_name(stranger, matrices) is None
    assert match_name("Canon5D", {"Canon5D", "Canon-EOS-5D"}) == "Canon5D"
    assert full_name("Canon5D") == full_name("Canon-EOS-5D") == "Canon-EOS-5D"
    assert all_names("Canon5D") == all_names("Canon-EOS-5D") == {"Canon5D", "Canon-EOS-5D"}
    assert all_names("Leica X") == {"Leica X"}


def write_catalog(path: Path, rows: list[str], header: str = ",".join(("camera", *COLUMNS))) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


EYES = "1,0,0,0,1,0,0,0,1," * 2


def test_a_catalog_holds_what_was_written(tmp_path: Path) -> None:
    matrices = calibrated(5)
    numbers = np.concatenate([matrices.matrix_a.ravel(), matrices.matrix_d65.ravel()])
    row = ",".join(["X 100", *(f"{number:.17g}" for number in numbers)])
    found = read_matrices(write_catalog(tmp_path / "c.csv", [row, f"Y,{EYES[:-1]}"]))
    assert list(found) == ["X 100", "Y"]
    np.testing.assert_array_equal(found["X 100"].matrix_a, matrices.matrix_a)
    np.testing.assert_array_equal(found["X 100"].matrix_d65, matrices.matrix_d65)


def test_a_catalog_may_come_from_a_spreadsheet(tmp_path: Path) -> None:
    path = write_catalog(tmp_path / "c.csv", [f"X,{EYES[:-1]}"])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))  # as Excel saves UTF-8
    assert list(read_matrices(path)) == ["X"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["X," + EYES[:-1], "Y,1,2"], "line 3: Y: 18 numbers"),
        (["X," + EYES.replace("0", "zero")], "line 2: X: 18 numbers"),
        (["X," + "1," * 18], "line 2: X: .*inverted"),
        (["X," + EYES[:-1], "X," + EYES[:-1]], "line 3: X appears twice"),
        (["," + EYES[:-1]], "line 2: no camera"),
        ([], "no camera in it"),
    ],
)
def test_problems_of_a_catalog_are_named_by_line(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_matrices(write_catalog(tmp_path / "c.csv", rows))


def test_a_file_that_is_no_catalog_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1: no column a11"):
        read_matrices(write_catalog(tmp_path / "c.csv", ["X,1"], header="camera,value"))
    with pytest.raises(DataError, match=r"missing\.csv: cannot be read: No such file or directory; check the path"):
        read_matrices(tmp_path / "missing.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\0\0")
    with pytest.raises(DataError, match=r"binary\.csv"):
        read_matrices(tmp_path / "binary.csv")


def test_the_lights_of_real_cameras_lie_near_their_curves(test_data: Path) -> None:
    matrices = read_matrices(test_data / "data" / "camera_matrices.csv")
    assert len(matrices) > 1000
    samples = read_samples(test_data / "data" / "ffcc_sample")
    cameras = {sample.camera for sample in samples}
    assert cameras < set(SHORT_NAMES)
    for camera in cameras:
        name = match_name(camera, matrices)
        assert name is not None
        lights = np.stack([sample.illuminant for sample in samples if sample.camera == camera])
        assert np.median(distance(matrices[name], lights)) < 2.5


def test_matrices_are_picked_by_camera_or_because_there_are_no_others() -> None:
    one = CameraMatrices("One", np.eye(3), np.eye(3))
    other = CameraMatrices("Other", np.eye(3), np.eye(3))
    assert pick_matrices({"One": one}, "whatever") is one
    assert pick_matrices({"One": one, "Other": other}, "Other") is other
    assert pick_matrices({"One": one, "Other": other}, None) is None
    assert pick_matrices({}, "One") is None
