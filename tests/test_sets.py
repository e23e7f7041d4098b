"""Sets: photographs of a shoot grouped by light, with one balance a group, and what a person says about them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from dng_files import camera as make_camera
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import seeds
from typer.testing import CliRunner

from c5 import C5Error, ParameterError, angular_error
from c5.choices import Fallback
from c5.cli.app import app
from c5.color import Float64s, rgb_to_uv, uv_to_rgb
from c5.colorimetry.matrices import CameraMatrices
from c5.colorimetry.spectra import black_body, daylight
from c5.demo import VirtualCamera
from c5.demo.raw_files import Layout, encode_dng
from c5.demo.shoots import SHOOTS, TRUTH, render_shoot, write_shoot
from c5.errors import ReadError
from c5.io.raw import read_photograph
from c5.model import load_model
from c5.photos.balancing import UNCERTAIN_DEG, Balance, Settings, balance
from c5.photos.catalog import Catalog
from c5.photos.files import Failure
from c5.photos.groups import Reference, Sets, balance_sets, encode_groups, measure_reference, read_groups
from c5.photos.photo import Photo, read_photo
from c5.photos.roll_building import Origin, Roll
from c5.photos.shared_lights import Views, find_offsets, from_common, to_common

NOON = datetime(2026, 6, 20, 12)
CAMERAS = [VirtualCamera.random(np.random.default_rng(seed)) for seed in (1, 2)]
MATRICES = {each.name: CameraMatrices(each.name, each.color_matrix(2856), each.color_matrix(6504)) for each in CAMERAS}
SUN, LAMP, SHADE = daylight(5500), black_body(2800), daylight(9000)


def see(
    name: str,
    light: Float64s,
    minutes: float | None,
    rng: np.random.Generator | None = None,
    camera: VirtualCamera = CAMERAS[0],
    uncertainty: float = 1.5,
) -> Balance:
    """The estimate of a photograph in a light, off by chance where there is any."""
    uv = rgb_to_uv(camera.illuminant(light))
    if rng is not None:
        uv = uv + rng.normal(0, 0.02, 2)
    time = None if minutes is None else NOON + timedelta(minutes=minutes)
    lights = camera.illuminant(SUN), uv_to_rgb(uv)
    photo = Photo(Path("shoot") / name, camera.name, time, *lights, MATRICES[camera.name], 1)
    return Balance(photo, uv_to_rgb(uv), uncertainty, "model", Roll(), spread=0.03**2 * np.eye(2))


def party(rng: np.random.Generator, count: int = 12) -> list[Balance]:
    """Two cameras, two lights, half an hour each."""
    lights = [(SUN, 0), (LAMP, 60)]
    return [
        see(f"{light}-{i:02d}.dng", spectrum, start + 2 * i, rng, CAMERAS[i % 2])
        for light, (spectrum, start) in enumerate(lights)
        for i in range(count)
    ]


def group(balances: Sequence[Balance], sets: Sets | None = None, fallback: Fallback = Fallback.NONE) -> list[Balance]:
    done, failures = balance_sets(balances, sets or Sets(), fallback, str)
    assert not failures
    return done


def parts(balances: Sequence[Balance]) -> set[frozenset[Path]]:
    """The groups as sets of files, whatever they are called."""
    names = {each.group for each in balances}
    return {frozenset(each.path for each in balances if each.group == name) for name in names}


@settings(max_examples=8)
@given(seed=seeds)
def test_groups_are_the_lights_and_the_order_of_files_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shots = party(rng)
    done = group(shots)
    assert parts(done) == {frozenset(each.path for each in shots if each.path.name[0] == light) for light in "01"}
    shuffled = [shots[index] for index in rng.permutation(len(shots))]
    again = {each.path: each for each in group(shuffled)}
    for each in done:
        assert again[each.path].group == each.group
        assert angular_error(again[each.path].illuminant, each.illuminant) < 1e-9


@settings(max_examples=8)
@given(seed=seeds)
def test_photographs_of_a_group_and_a_camera_share_one_illuminant(seed: int) -> None:
    """And those of two cameras nearly one light: what their matrices make of it differs by what these may be off."""
    done = group(party(np.random.default_rng(seed)))
    for name in {each.group for each in done}:
        members = [each for each in done if each.group == name]
        assert {each.source for each in members} == {"set"}
        for camera in CAMERAS:
            own = np.array([each.illuminant for each in members if each.photo.camera == camera.name])
            assert (own == own[0]).all()
        lights = [to_common(each.illuminant, each.photo.need_matrices()) for each in members]
        np.testing.assert_allclose(lights, lights[:1] * len(lights), atol=0.1)


def test_a_camera_whose_matrices_are_off_keeps_its_own_light() -> None:
    """Over many lights two cameras tell how far they are apart; over one, that may be the things they show."""
    off = np.array([0.06, -0.04])
    rng = np.random.default_rng(3)
    for count, least, most in ((1, 0.2, 0.8), (40, 0.85, 1.05)):
        labels = np.repeat(np.arange(count), 2)
        cameras = np.tile([0, 1], count)
        uv = rng.normal(0, 0.5, (count, 2))[labels] + rng.normal(0, 1e-3, (2 * count, 2)) + cameras[:, None] * off
        views = Views(
            uv, np.tile(0.05**2 * np.eye(2), (2 * count, 1, 1)), np.arange(2.0 * count), uv[:, 0] * np.nan, 0 * labels
        )
        found = find_offsets(views, labels, cameras)
        share = (found[1] - found[0]) / off
        assert ((share > least) & (share < most)).all(), share
        alone = find_offsets(views, np.arange(2 * count), cameras)  # no light is shared
        np.testing.assert_array_equal(alone, 0)


def test_names_of_cameras_change_nothing() -> None:
    shots = party(np.random.default_rng(5))
    swap = dict(zip(MATRICES, reversed(list(MATRICES)), strict=True))
    renamed = [replace(each, photo=replace(each.photo, camera=swap[str(each.photo.camera)])) for each in shots]
    for one, other in zip(group(shots), group(renamed), strict=True):
        assert one.group == other.group
        np.testing.assert_array_equal(one.illuminant, other.illuminant)


@given(count=st.integers(2, 6), kelvin=st.floats(2400, 12000))
def test_identical_photographs_have_the_light_of_one(count: int, kelvin: float) -> None:
    light = daylight(kelvin) if kelvin > 4000 else black_body(kelvin)
    shots = [see(f"{i}.dng", light, i) for i in range(count)]
    done = group(shots)
    assert len(parts(done)) == 1
    for each in done:
        assert angular_error(each.illuminant, shots[0].illuminant) < 1e-5


@given(kelvin=st.floats(2000, 20000))
def test_lights_go_to_the_common_space_and_back(kelvin: float) -> None:
    for camera in CAMERAS:
        light = camera.illuminant(daylight(kelvin) if kelvin > 4000 else black_body(kelvin))
        there = to_common(light, MATRICES[camera.name])
        assert angular_error(from_common(there, MATRICES[camera.name]), light) < 1e-4


def test_what_is_sure_counts_more() -> None:
    sure, unsure = see("0.dng", SUN, 0), replace(see("1.dng", SUN, 1), spread=0.12**2 * np.eye(2))
    unsure = replace(unsure, illuminant=uv_to_rgb(rgb_to_uv(unsure.illuminant) + 0.05))
    done = group([sure, unsure])
    assert len(parts(done)) == 1
    assert angular_error(done[0].illuminant, sure.illuminant) < angular_error(done[0].illuminant, unsure.illuminant) / 4


def test_one_photograph_in_another_light_is_kept_apart() -> None:
    rng = np.random.default_rng(1)
    shots = [see(f"{i}.dng", SUN, i, rng) for i in range(10)]
    shots[4] = see("4.dng", LAMP, 4)
    done = group(shots)
    assert sorted(len(part) for part in parts(done)) == [1, 9]
    assert done[4].source == "model"
    np.testing.assert_array_equal(done[4].illuminant, shots[4].illuminant)


def test_many_photographs_do_not_come_to_disagree_over_nothing() -> None:
    """Their errors have much in common: eighty of one corner of a room, and eighty of another."""
    rng = np.random.default_rng(2)
    shots = [see(f"{i:03d}.dng", daylight(5500 + 250 * (i >= 80)), i / 10, rng) for i in range(160)]
    assert len(parts(group(shots))) == 1


def test_a_long_pause_makes_another_light_likelier() -> None:
    def together(minutes: float) -> bool:
        shots = [see(f"{i}.dng", daylight(5500), i) for i in range(3)]
        shots += [see(f"{i}.dng", daylight(6100), minutes + i) for i in range(3, 6)]
        return len(parts(group(shots))) == 1

    assert together(1)
    assert not together(300)


def test_exposures_tell_lights_apart() -> None:
    def together(stops: float) -> bool:
        shots = [see(f"{i}.dng", daylight(5500 + 500 * (i > 2)), 4 * i) for i in range(6)]
        exposed = [replace(each.photo, exposure=12 - stops * (i > 2)) for i, each in enumerate(shots)]
        return len(parts(group(_with(shots, exposed)))) == 1

    assert together(0)
    assert not together(9)


def _with(balances: Sequence[Balance], photos: Sequence[Photo]) -> list[Balance]:
    return [replace(each, photo=photo) for each, photo in zip(balances, photos, strict=True)]


def test_the_fallback_is_one_more_estimate() -> None:
    """An uncertain photograph pulls its group towards the camera's balance, and is not balanced by that alone."""
    shots = [see(f"{i}.dng", daylight(6000), i, uncertainty=2 * UNCERTAIN_DEG) for i in range(4)]
    alone, with_camera = group(shots)[0].illuminant, group(shots, fallback=Fallback.CAMERA)[0].illuminant
    camera = shots[0].photo.as_shot
    assert camera is not None
    assert 0 < angular_error(with_camera, camera) < angular_error(alone, camera)


def test_a_set_is_not_smoothed() -> None:
    with pytest.raises(ParameterError, match="ask for one of them"):
        Settings(smooth=True, sets=Sets())


# Bad input


def told(balances: Sequence[Balance]) -> tuple[list[Balance], list[str]]:
    lines: list[str] = []
    done, _ = balance_sets(balances, Sets(), Fallback.NONE, lines.append)
    return done, lines


def test_a_shoot_of_one_photograph() -> None:
    done, lines = told([see("0.dng", SUN, 0)])
    assert (done[0].group, done[0].source) == ("1", "model")
    assert len(lines) == 1
    assert "nothing to group" in lines[0]
    assert told([])[0] == []


def test_photographs_without_times_are_grouped_by_light_alone() -> None:
    rng = np.random.default_rng(3)
    shots = [see(f"{i:02d}.dng", SUN if i < 8 else LAMP, None, rng) for i in range(16)]
    done, lines = told(shots)
    for part in parts(done):
        assert len({path.name < "08" for path in part}) == 1
    assert lines == ["16 of 16 photographs have no time: grouped by their light alone"]


@pytest.mark.parametrize("hours", [1, -1, 7])
def test_a_clock_that_is_hours_off_is_found_and_said(hours: int) -> None:
    rng = np.random.default_rng(4)
    lights = [SUN, LAMP, SHADE, LAMP, SUN]
    shots = []
    for i in range(60):
        off = 60 * hours * (i % 2)
        shots.append(see(f"{i:02d}.dng", lights[i // 12], 4 * i - off, rng, CAMERAS[i % 2]))
    done, lines = told(shots)
    assert len(lines) == 1
    second_is_behind = (hours > 0) == lines[0].startswith(f"the clock of {CAMERAS[1].name}")
    assert f"{abs(hours)} h {'behind' if second_is_behind else 'ahead of'}" in lines[0]
    assert parts(done) == parts(group([replace_time(each, i) for i, each in enumerate(shots)]))
    assert told([replace_time(each, i) for i, each in enumerate(shots)])[1] == []


def replace_time(balance: Balance, index: int) -> Balance:
    return replace(balance, photo=replace(balance.photo, time=NOON + timedelta(minutes=4 * index)))


def test_a_camera_without_matrices_has_groups_of_its_own() -> None:
    shots = [see(f"{i}.dng", SUN, i, camera=CAMERAS[i % 2]) for i in range(8)]
    blind = [replace(each, photo=replace(each.photo, matrices=None)) if i % 2 else each for i, each in enumerate(shots)]
    done = group(blind)
    assert len(parts(done)) == 2
    assert {each.source for each in done} == {"set"}
    # A person may say that they are one; each camera then keeps a light of its own.
    joined = group(blind, Sets({Path.cwd() / each.path: "all" for each in blind}))
    assert {each.group for each in joined} == {"all"}
    for one, other in zip(done, joined, strict=True):
        assert angular_error(one.illuminant, other.illuminant) < 1e-6


# The file of groups


def test_a_file_of_groups_comes_back_as_it_was_written(tmp_path: Path) -> None:
    rows = [(tmp_path / "a b.dng", "1", "5200 K"), (tmp_path / "deep" / 'ü,".dng', 'bride, "late"', "")]
    (tmp_path / "groups.csv").write_bytes(encode_groups(rows, tmp_path))
    assert read_groups(tmp_path / "groups.csv") == {path: name for path, name, _ in rows}


def test_given_groups_are_kept_and_unknown_files_are_named() -> None:
    shots = party(np.random.default_rng(7))
    chosen = {Path.cwd() / each.path: "odd" if i % 2 else "1" for i, each in enumerate(shots[:6])}
    done, failures = balance_sets(shots, Sets({**chosen, Path("/gone/x.dng"): "1"}), Fallback.NONE, str)
    assert [failure.message.count("x.dng: is in a group") for failure in failures] == [1]
    assert [each.group for each in done[:6]] == ["1", "odd"] * 3
    assert not {each.group for each in done[6:]} & {"1", "odd"}
    assert len({tuple(each.illuminant) for each in done if each.group == "odd"}) == 1


# Gray cards


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture turned by a quarter: gray at the upright left, clipped at the upright right, dark at the bottom."""
    camera = CAMERAS[0]
    white = camera.respond(LAMP)
    upright = np.zeros((120, 80, 3))
    upright[:90] = 0.4 * white / white.max()
    upright[:90, 50:] *= 9
    sensor = np.rot90(upright, 1)  # orientation 6 turns it back
    data = encode_dng(camera.expose(sensor, np.random.default_rng(0)), camera, Layout(orientation=6))
    path = tmp_path_factory.mktemp("card") / "card.dng"
    path.write_bytes(data)
    return path


def test_a_gray_card_balances_its_group(card: Path) -> None:
    photo = Photo.of(card, read_photograph(card))
    truth = CAMERAS[0].illuminant(LAMP)
    assert angular_error(measure_reference(photo, (5, 5, 40, 80)), truth) < 0.3
    off = [see(f"{i}.dng", black_body(2950), i, camera=CAMERAS[i % 2]) for i in range(6)]
    off[2] = replace(off[2], photo=replace(photo, time=off[2].photo.time))
    far = see("far.dng", SHADE, 300)
    done = group([*off, far], Sets(references=(Reference(card, (5, 5, 40, 80)),)))
    for each in done[:6]:
        camera = next(camera for camera in CAMERAS if camera.name == each.photo.camera)
        assert each.source == "reference"
        assert angular_error(each.illuminant, camera.illuminant(LAMP)) < 0.5
    assert done[6].source == "model"


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ((60, 10, 30, 10), "not inside its 80 x 120 pixels"),
        ((-1, 10, 10, 10), "not inside"),
        ((10, 10, 0, 10), "not inside"),
        ((55, 10, 20, 40), "clipped"),
        ((10, 100, 20, 15), "too dark"),
    ],
)
def test_a_bad_rectangle_is_one_line_and_the_rest_is_done(card: Path, box: tuple[int, ...], message: str) -> None:
    shots = [see(f"{i}.dng", SUN, i) for i in range(3)]
    shots[1] = replace(shots[1], photo=replace(Photo.of(card, read_photograph(card)), time=shots[1].photo.time))
    left, top, width, height = box
    done, failures = balance_sets(
        shots, Sets(references=(Reference(card, (left, top, width, height)),)), Fallback.NONE, str
    )
    assert [message in failure.message and "card.dng" in failure.message for failure in failures] == [True]
    assert len(parts(done)) == 1
    _, failures = balance_sets(shots, Sets(references=(Reference(Path("other.dng")),)), Fallback.NONE, str)
    assert [failure.message for failure in failures] == [
        "other.dng: is not a readable photograph of this set; a reference must be one"
    ]


# Rendered shoots, files, and the command


@pytest.fixture(scope="module")
def wedding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wedding")
    write_shoot(folder / "w", "wedding", 24, np.random.default_rng(11), (128, 192))
    return folder / "w"


def test_a_shoot_tells_cameras_times_and_exposures(wedding: Path) -> None:
    rows = list(csv.DictReader((wedding / TRUTH).open()))
    assert len(rows) == 24
    assert len({row["light"] for row in rows}) == 4
    for row in rows:
        photo = read_photo(wedding / row["path"], load_model().grid)
        assert isinstance(photo, Photo)
        assert (photo.camera, str(photo.time)) == (row["camera"], row["time"])
        assert photo.exposure is not None
        assert 2 < photo.exposure < 18


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(done.exception, C5Error):
        return 1, done.stdout, str(done.exception)
    return done.exit_code, done.stdout, done.stderr


def test_the_command_writes_groups_and_takes_an_edited_file_back(
    wedding: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = tmp_path / "catalog.db"
    with Catalog.open(catalog) as opened:
        opened.add([wedding])
    code, stdout, _ = run("balance", wedding, "--sets", "--groups", "groups.csv", "--catalog", catalog, "--csv")
    assert code == 0
    printed = {row["file"]: row for row in csv.DictReader(stdout.splitlines())}
    groups = read_groups("groups.csv")
    assert {str(path): name for path, name in groups.items()} == {file: row["group"] for file, row in printed.items()}
    # Joined by hand, with a file that is not there.
    text = "file,group\n" + "".join(f"{path},all\n" for path in groups) + "gone.dng,all\n"
    Path("groups.csv").write_text(text)
    code, stdout, stderr = run("balance", wedding, "--sets", "--groups", "groups.csv", "--catalog", catalog, "--csv")
    assert code == 1
    assert stderr.count("gone.dng: is in a group, but not among the photographs") == 1
    rows = list(csv.DictReader(stdout.splitlines()))
    assert {row["group"] for row in rows} == {"all"}
    assert len({(row["camera"], row["kelvin"], row["tint"]) for row in rows}) == len(CAMERAS)
    assert Path("groups.csv").read_text() == text
    Path("foreign.csv").write_text("x\n")
    code, _, stderr = run("balance", wedding, "--sets", "--groups", "foreign.csv", "--catalog", catalog)
    assert code != 0
    assert "not a file of groups" in stderr
    assert Path("foreign.csv").read_text() == "x\n"
    code, _, stderr = run("balance", wedding, "--groups", "new.csv")
    assert code != 0
    assert "are for --sets" in stderr


def test_cataloged_photographs_are_not_read_for_a_set(
    wedding: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        catalog.add([wedding])
        paths = sorted(wedding.glob("*.dng"))
        monkeypatch.setattr("c5.io.raw.average_apart", None)  # nothing is decoded from here on
        done = list(balance(paths, Settings(catalog=catalog, sets=Sets())))
        assert [each.path for each in done] == paths
        assert all(isinstance(each, Balance) and each.group is not None for each in done)
        some = list(balance(paths, Settings(catalog=catalog, sets=Sets()), wanted=paths[3:5]))
    assert [each.path for each in some] == paths[3:5]
    for one, other in zip(done[3:5], some, strict=True):
        assert isinstance(one, Balance)
        assert isinstance(other, Balance)
        assert one.group == other.group


def test_a_set_with_a_broken_file_and_a_camera_without_a_roll(wedding: Path, tmp_path: Path) -> None:
    """The only photograph of a camera has no roll; it is grouped by what is known of it."""
    camera = make_camera(99)
    lone = tmp_path / "lone.dng"
    scene = np.random.default_rng(0).uniform(0.1, 0.6, (64, 96, 3)) * camera.illuminant(SUN)
    lone.write_bytes(encode_dng(camera.expose(scene, np.random.default_rng(0)), camera, Layout()))
    broken = tmp_path / "broken.dng"
    broken.write_bytes(b"II*\0")
    paths = [*sorted(wedding.glob("*.dng"))[:6], lone, broken]
    done = list(balance(paths, Settings(sets=Sets(), thumbnails=True)))
    assert [each.path for each in done] == paths
    assert isinstance(done[-1], Failure)
    last = done[-2]
    assert isinstance(last, Balance)
    assert last.roll.origin is Origin.NOWHERE
    assert last.group is not None
    assert last.photo.thumbnail is not None


def test_shoots_have_their_lights(tmp_path: Path) -> None:
    for name in SHOOTS:
        frames = list(render_shoot(name, 12, np.random.default_rng(1), (32, 48)))
        assert len(frames) == 12
        assert [frame.time for frame in frames] == sorted(frame.time for frame in frames)
        for frame in frames:
            assert angular_error(frame.photo.illuminant, frame.camera.illuminant(frame.light.spectrum)) < 1e-6
            assert frame.photo.raw.shape == (32, 48, 3)
    with pytest.raises(ParameterError, match="there are wedding, hike, concert"):
        write_shoot(tmp_path / "shoot", "funeral", 1, np.random.default_rng(1))


def test_without_its_gray_card_nothing_is_written(wedding: Path, tmp_path: Path) -> None:
    """Else its group would get the balance that the card was to replace."""
    paths = sorted(wedding.glob("*.dng"))
    for card in (paths[0], tmp_path / "other.dng"):
        with pytest.raises(ReadError, match=r"not inside|not a readable photograph of this set"):
            next(balance(paths, Settings(sets=Sets(references=(Reference(card, (9000, 0, 5, 5)),)))))


def test_a_photograph_in_two_groups_is_refused(tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("file,group\na.dng,1\nb.dng,1\nx/../a.dng,2\n")
    with pytest.raises(ReadError, match=r"a\.dng is in two groups, 1 and 2; remove one"):
        read_groups(tmp_path / "groups.csv")
