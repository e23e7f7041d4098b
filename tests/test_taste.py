"""The look that a person likes: laws of what stays of a light's color, and where looks come from."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import textured
from shots import LIGHTS, Shot, take
from typer.testing import CliRunner

from c5.cli.app import app
from c5.color import XYZ_TO_SRGB, Float64s, as_illuminant, gains
from c5.colorimetry.adaptation import CAT16, DAYLIGHT, MiredTint, adapt_to_srgb, locate_light, locate_xy
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.spectra import black_body, daylight, xyz
from c5.colorimetry.temperature import temperature_to_uv
from c5.demo import VirtualCamera
from c5.errors import ParameterError
from c5.photos.learning import LearnedLook
from c5.photos.taste import Look, Rule, Taste

places = st.builds(MiredTint, st.floats(15, 590), st.floats(-60, 60))
strengths = st.floats(0, 1)

D65 = np.array([0.95047, 1, 1.08883])


@pytest.fixture(autouse=True)
def _nothing_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c5.photos.catalog.default_path", lambda: tmp_path / "no catalog")
    monkeypatch.setattr("c5.photos.learning.config_folder", lambda: tmp_path / "config")


def camera_and_light(seed: int, spectrum: Float64s) -> tuple[CameraMatrices, Float64s]:
    camera = VirtualCamera.random(np.random.default_rng(seed))
    matrices = CameraMatrices(camera.name, camera.color_matrix(2856), camera.color_matrix(6504))
    return matrices, as_illuminant(camera.respond(spectrum))


@given(light=places, kept=strengths, more=strengths)
def test_strength_is_the_part_of_the_way_from_daylight(light: MiredTint, kept: float, more: float) -> None:
    assert Look(strength=1).prefer(light) == light
    np.testing.assert_allclose(Look(strength=0).prefer(light), DAYLIGHT, atol=1e-9)
    twice = Look(strength=more).prefer(Look(strength=kept).prefer(light))
    np.testing.assert_allclose(twice, Look(strength=kept * more).prefer(light), atol=1e-9)


@pytest.mark.parametrize("light", [name for name in LIGHTS if name != "fluorescent"])
def test_a_look_that_changes_nothing_leaves_a_light_itself_and_none_is_daylight(light: str) -> None:
    matrices, illuminant = camera_and_light(3, LIGHTS[light]())
    np.testing.assert_allclose(Look(strength=1).apply(illuminant, matrices), illuminant, atol=1e-9)
    gone = locate_light(Look(strength=0).apply(illuminant, matrices), matrices)
    np.testing.assert_allclose(gone, DAYLIGHT, atol=0.05)
    assert 1e6 / DAYLIGHT.mired == pytest.approx(5500, abs=5)


def card(light: Float64s, white: Float64s) -> tuple[float, float]:
    """Chroma and hue (CIELAB, degrees) of a gray card in a light from which `white` is taken out, on a D65 screen."""
    seen = np.linalg.solve(CAT16, (CAT16 @ light) / (CAT16 @ white) * (CAT16 @ D65))
    x, y, z = np.cbrt(seen / seen[1] / D65)
    return math.hypot(500 * (x - y), 200 * (y - z)), math.degrees(math.atan2(200 * (y - z), 500 * (x - y)))


def at(place: MiredTint) -> Float64s:
    u, v = temperature_to_uv(*place)
    return np.asarray(np.array([3 * u, 2 * v, 4 - u - 10 * v]) / (2 * v))


def to_xyz(u: float, v: float) -> Float64s:
    """Of u' and v', at luminance 1."""
    return np.array([9 * u / (4 * v), 1, (12 - 3 * u - 20 * v) / (4 * v)])


@pytest.mark.parametrize("kelvin", [2000, 2856, 4000, 7500, 12000])
@pytest.mark.parametrize("strength", [0.25, 0.5, 0.75])
def test_a_gray_card_keeps_that_part_of_the_lights_color_in_its_hue(kelvin: int, strength: float) -> None:
    light = xyz(black_body(kelvin))
    light = light / light[1]
    place = locate_xy(light[:2] / light.sum())
    chroma, hue = card(light, at(Look(strength=strength).prefer(place)))
    whole, own_hue = card(light, at(DAYLIGHT))
    assert chroma / whole == pytest.approx(1 - strength, abs=0.06)
    assert abs(hue - own_hue) < 7


def test_other_ways_make_what_is_left_of_a_candle_redder_or_greener() -> None:
    light = xyz(black_body(2000))
    light = light / light[1]
    day, own_hue = at(DAYLIGHT), card(light, at(DAYLIGHT))[1]
    degree = 0.75 * (CAT16 @ day) / (CAT16 @ light) + 0.25  # CAM16's D, with daylight for its white
    by_gains = card(light, np.linalg.solve(CAT16, (CAT16 @ day) / degree))
    ends = [(4 * x / (x + 15 * y + 3 * z), 9 * y / (x + 15 * y + 3 * z)) for x, y, z in (day, light)]
    by_line = card(light, to_xyz(*(0.25 * np.array(ends[0]) + 0.75 * np.array(ends[1]))))
    assert by_gains[1] < own_hue - 10
    assert by_line[1] > own_hue + 20


@pytest.mark.parametrize("light", ["candle", "lamp", "late sun", "shade"])
def test_a_picture_shows_of_the_light_what_an_eye_would_see(light: str) -> None:
    """The card in the light's own colors, by a camera whose matrices are fitted, and by its XYZ."""
    matrices, illuminant = camera_and_light(7, LIGHTS[light]())
    white = Look(strength=0.5).apply(illuminant, matrices)
    place = locate_light(white, matrices)
    matrix = adapt_to_srgb(matrices.matrix(1e6 / place.mired), white)
    np.testing.assert_allclose(matrix @ np.ones(3), 1, atol=1e-9)
    shown = matrix @ (illuminant * gains(white))
    true = np.linalg.solve(CAT16, (CAT16 @ xyz(LIGHTS[light]())) / (CAT16 @ at(place)) * (CAT16 @ D65))
    expected = XYZ_TO_SRGB @ true
    np.testing.assert_allclose(shown / shown[1], expected / expected[1], atol=0.03)


@given(light=places, other=places, strength=strengths)
def test_kept_warmth_leaves_daylight_and_the_order_of_lights(
    light: MiredTint, other: MiredTint, strength: float
) -> None:
    look = Look(strength=strength, keep_warmth=True)
    for place in (light, other):
        there = look.prefer(place)
        assert there.tint == place.tint
        assert there.mired == place.mired if place.mired <= 200 else 200 <= there.mired <= place.mired
    if light.mired < other.mired:
        assert look.prefer(light).mired <= look.prefer(other).mired


def test_kept_warmth_begins_softly_and_is_plain_in_candle_light() -> None:
    look = Look(keep_warmth=True)
    mireds = [1e6 / kelvin for kelvin in (6500, 4900, 4000, 2000)]
    shifts = [mired - look.prefer(MiredTint(mired, 0)).mired for mired in mireds]
    assert shifts[0] == 0
    assert shifts[1] < 1
    assert 10 < shifts[2] < 30
    assert shifts[3] > 80


@given(shift=st.floats(-60, 60), tint=st.floats(-30, 30), seed=st.integers(0, 20))
def test_shifts_are_those_of_the_sliders(shift: float, tint: float, seed: int) -> None:
    matrices, illuminant = camera_and_light(seed, daylight(5000))
    before = locate_light(illuminant, matrices)
    after = locate_light(Look(warmer=shift, tint=tint).apply(illuminant, matrices), matrices)
    assert before.mired - after.mired == pytest.approx(shift, abs=0.1)  # warmer pictures: a colder light is taken out
    assert after.tint - before.tint == pytest.approx(tint, abs=0.1)


def test_a_look_is_the_same_for_all_cameras() -> None:
    look = Look(strength=0.6, warmer=7, tint=-3)
    places = []
    for seed in range(6):
        matrices, _ = camera_and_light(seed, black_body(3000))
        illuminant = as_illuminant(matrices.illuminant(3000))
        places.append(locate_light(look.apply(illuminant, matrices), matrices))
    assert np.ptp(places, axis=0).max() < 0.1


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ({"strength": 1.01}, "strength must be from 0 .* to 1 .*, not 1.01"),
        ({"strength": -0.1}, "strength must be"),
        ({"strength": math.nan}, "strength must be .* not nan"),
        ({"warmer": math.inf}, "warmer must be from -300 to 300, not inf"),
        ({"warmer": math.nan}, "warmer must be"),
        ({"tint": 151}, "tint must be from -150 to 150, not 151"),
    ],
)
def test_what_is_no_look_is_refused(values: dict[str, Any], answer: str) -> None:
    with pytest.raises(ParameterError, match=answer):
        Look(**values)
    with pytest.raises(ParameterError, match=answer):
        Rule(values)
    with pytest.raises(ParameterError, match=answer):
        Taste((), values)


def test_each_value_comes_from_the_most_specific_rule(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    taste = Taste(
        (
            Rule({"strength": 0.1, "tint": 9}, "Nikon D5", inner),
            Rule({"strength": 0.2}, folder=inner),
            Rule({"strength": 0.3, "warmer": 4}, "nikon d5", tmp_path / "a"),
            Rule({"strength": 0.4}, "Nikon D5"),
            Rule({"strength": 0.5, "warmer": 5, "tint": 5}),
        )
    )
    assert taste.find(inner / "x.nef", "Nikon D5") == Look(strength=0.1, warmer=4, tint=9)
    assert taste.find(inner / "x.nef", "Leica") == Look(strength=0.2, warmer=5, tint=5)
    assert taste.find(tmp_path / "a" / "x.nef", "Nikon D5") == Look(strength=0.3, warmer=4, tint=5)
    assert taste.find(tmp_path / "ab" / "x.nef", "Nikon D5") == Look(strength=0.4, warmer=5, tint=5)
    assert taste.find(tmp_path / "x.nef", None) == Look(strength=0.5, warmer=5, tint=5)
    assert Taste(taste.rules, {"strength": 1}).find(inner / "x.nef", "Nikon D5").strength == 1
    (tmp_path / "link").symlink_to(inner, target_is_directory=True)
    assert taste.find(tmp_path / "link" / "x.nef", "Leica").strength == 0.2


def test_of_a_strength_and_a_learned_look_the_more_specific_counts(tmp_path: Path) -> None:
    learned = LearnedLook((-10, 0), (0, 0), (150, 300), 30, 3)
    part, whole = Rule({"strength": 0.5, "tint": 2}), Rule({"learned": learned}, folder=tmp_path)
    taste = Taste((part, whole))
    assert taste.find(tmp_path / "x.nef", None) == Look(learned=learned, tint=2)
    assert taste.find(tmp_path.parent / "x.nef", None) == Look(strength=0.5, tint=2)
    assert Taste(taste.rules, {"keep_warmth": True}).find(tmp_path / "x.nef", None) == Look(keep_warmth=True, tint=2)
    assert Taste(taste.rules, {"warmer": 3}).find(tmp_path / "x.nef", None) == Look(learned=learned, tint=2, warmer=3)
    with pytest.raises(ParameterError, match="a learned look decides how much of the light stays"):
        Rule({"learned": learned, "strength": 0.5})


def balance(shot: Shot, *options: str) -> list[dict[str, str]]:
    ran = CliRunner().invoke(app, ["balance", str(shot.path), "--csv", *options])
    assert ran.exit_code == 0, ran.output
    return list(csv.DictReader(io.StringIO(ran.stdout)))


def test_the_command_takes_out_what_the_look_prefers_and_says_what_the_light_is(tmp_path: Path) -> None:
    shot = take(tmp_path, 3, black_body(2600), size=64)
    (plain,) = balance(shot)
    (half,) = balance(shot, "--strength", "0.5")
    (same,) = balance(shot, "--strength", "1")
    assert same == plain
    light = [f"light_{name}" for name in ("r", "g", "b", "kelvin", "tint")]
    assert [half[name] for name in light] == [plain[name] for name in light]
    assert plain["light_kelvin"] == plain["kelvin"]
    mired = {name: 1e6 / float(row["kelvin"]) for name, row in (("plain", plain), ("half", half))}
    assert mired["half"] == pytest.approx((mired["plain"] + DAYLIGHT.mired) / 2, abs=0.2)
    assert (plain["look"], half["look"]) == ("", "strength 0.5")


def test_what_is_written_with_a_look_is_replaced_and_taken_back_like_any_other(tmp_path: Path) -> None:
    shot = take(tmp_path, 3, black_body(2600), size=64)
    sidecars = [shot.path.with_suffix(".xmp"), Path(f"{shot.path}.pp3"), Path(f"{shot.path}.xmp")]
    written = []
    for options in (["--strength", "0.5"], ["--overwrite"], ["--overwrite", "--strength", "0.5"]):
        CliRunner().invoke(app, ["balance", str(shot.path), "--xmp", "--pp3", "--darktable", *options])
        written.append([path.read_bytes() for path in sidecars])
    assert written[0] == written[2]
    assert all(one != other for one, other in zip(written[0], written[1], strict=True))
    ran = CliRunner().invoke(app, ["balance", str(shot.path), "--undo"])
    assert "3 removed" in ran.output
    assert not any(path.exists() for path in sidecars)


def test_without_matrices_there_is_no_look_but_a_line_and_the_rest_is_done(tmp_path: Path) -> None:
    shot = take(tmp_path, 3, black_body(2600), size=64)
    np.save(tmp_path / "a.npy", textured(1))
    ran = CliRunner().invoke(app, ["balance", str(tmp_path), "--csv", "--strength", "0.5"])
    assert ran.exit_code == 0, ran.output
    rows = {Path(row["file"]).name: row for row in csv.DictReader(io.StringIO(ran.stdout))}
    assert rows[shot.path.name]["look"] == "strength 0.5"
    assert "look none: this needs the camera's matrices" in rows["a.npy"]["note"]
    assert rows["a.npy"]["illuminant_r"] == rows["a.npy"]["light_r"]
    assert "note: " in ran.stderr


CONFIG = """\
[balance]
strength = 0.9
tint = 2

[[look]]
camera = "{camera}"
keep-warmth = true
strength = 0.7

[[look]]
folder = "{folder}"
warmer = 12
"""


def test_looks_of_the_config_file_hold_for_cameras_and_folders_and_flags_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shot = take(tmp_path / "golden", 3, black_body(2600), size=64)
    other = take(tmp_path / "plain", 4, black_body(2600), size=64)
    config = tmp_path / "c5.toml"
    config.write_text(CONFIG.format(camera=shot.matrices.name.upper(), folder=tmp_path / "golden"))
    monkeypatch.setenv("C5_CONFIG", str(config))
    assert balance_with_defaults(shot) == "warmth kept, strength 0.7, +12 mired, +2 tint"
    assert balance_with_defaults(other) == "strength 0.9, +2 tint"
    assert balance_with_defaults(shot, "--strength", "0.5") == "warmth kept, strength 0.5, +12 mired, +2 tint"
    assert balance_with_defaults(other, "--strength", "1", "--tint", "0") == ""
    noon = take(tmp_path / "noon", 5, daylight(6500), size=64)
    assert balance_with_defaults(noon, "--keep-warmth", "--tint", "0") == "nothing to keep"


def balance_with_defaults(shot: Shot, *options: str) -> str:
    """The look of a photograph, with the defaults of the config file as the command reads them."""
    import typer

    from c5.cli.config import read_defaults

    defaults = read_defaults(typer.main.get_command(app))
    ran = CliRunner().invoke(app, ["balance", str(shot.path), "--csv", *options], default_map=defaults)
    assert ran.exit_code == 0, ran.output
    (row,) = csv.DictReader(io.StringIO(ran.stdout))
    return row["look"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[[look]]\nstrenght = 0.8\n", "look 1: strenght is not a key of a look; there are camera, folder, strength,"),
        ("[[look]]\nstrength = 0.8\n[[look]]\nstrength = 1.8\n", "look 2: strength must be from 0"),
        ("[[look]]\nstrength = nan\n", "look 1: strength must be from 0"),
        ("[[look]]\nstrength = true\n", "look 1: strength must be a number, not True"),
        ("[[look]]\nkeep-warmth = 1\n", "look 1: keep-warmth must be true or false, not 1"),
        ("[[look]]\ncamera = 5\n", "look 1: camera must be text, not 5"),
        ("[[look]]\nfolder = 'golden'\n", "look 1: folder must begin with / or ~, not be 'golden'"),
        ("[[look]]\nfolder = '~nobody-at-all/x'\n", "look 1: folder must begin with / or ~"),
        ('[[look]]\nfolder = "/a\\u0000b"\n', "look 1: folder must begin with / or ~"),
        ("[[look]]\nlearned = true\n", "no look is learned yet; learn one from your edits"),
        ("[look]\nstrength = 0.8\n", "look must be tables: [[look]]"),
        ("look = 3\n", "look must be tables: [[look]]"),
    ],
)
def test_what_is_wrong_with_a_look_in_the_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, answer: str
) -> None:
    np.save(tmp_path / "a.npy", textured(1))
    config = tmp_path / "c5.toml"
    config.write_text(text)
    monkeypatch.setenv("C5_CONFIG", str(config))
    ran = CliRunner().invoke(app, ["balance", str(tmp_path / "a.npy")])
    assert ran.exit_code == 1
    message = str(ran.exception)
    assert answer in message
    assert "\n" not in message
