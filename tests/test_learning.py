"""Looks learned from edits: balances are read back as they were written, and only a look that is there is found."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from dng_files import damage
from shots import KINDS, LIGHTS, take
from test_sidecars import LIGHTROOM
from typer.testing import CliRunner

from c5.cli.app import app
from c5.color import reproduction_error
from c5.colorimetry.adaptation import MiredTint
from c5.colorimetry.temperature import NOTICEABLE_DEG
from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import Layout, write_dng
from c5.errors import C5Error, ParameterError, ReadError
from c5.photos.balancing import Balance, balance
from c5.photos.learning import Edit, LearnedLook, forget_look, learn_look, load_look, save_look
from c5.photos.sidecars import adobe, darktable, rawtherapee
from c5.photos.sidecars.darktable import _IDLE_MIXER
from c5.photos.sidecars.marks import merge
from c5.photos.taste import Look

Encode = Callable[[Balance, bytes | None], bytes]
WRITERS: dict[str, tuple[Encode, Callable[[Path], Path]]] = {
    "adobe": (adobe.encode, adobe.path_beside),
    "rawtherapee": (rawtherapee.encode, rawtherapee.path_beside),
    "darktable": (darktable.encode, darktable.path_beside),
}


@pytest.fixture(autouse=True)
def _nothing_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c5.photos.catalog.default_path", lambda: tmp_path / "no catalog")
    monkeypatch.setattr("c5.photos.learning.config_folder", lambda: tmp_path / "config")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("light", ["candle", "fluorescent", "late sun", "blue sky"])
def test_a_balance_that_was_written_is_read(tmp_path: Path, kind: str, light: str) -> None:
    made = take(tmp_path, 7, LIGHTS[light](), KINDS[kind], 64).balance
    for form, allowed_deg in ((adobe, NOTICEABLE_DEG), (rawtherapee, 0.02), (darktable, 1e-4)):
        if form is rawtherapee and rawtherapee.note(made):
            continue  # which it cannot hold
        found = form.read_illuminant(form.encode(made, None), made.photo)
        assert found is not None
        assert reproduction_error(found, made.illuminant) < allowed_deg, form


@pytest.mark.parametrize("value", ["As Shot", "Auto", "Daylight"])
def test_what_a_program_chose_is_no_edit(tmp_path: Path, value: str) -> None:
    photo = take(tmp_path, 7, LIGHTS["lamp"](), size=64).balance.photo
    assert adobe.read_illuminant(LIGHTROOM.replace(b"As Shot", value.encode()), photo) is None
    assert adobe.read_illuminant(LIGHTROOM.replace(b"As Shot", b"Custom"), photo) is not None
    pp3 = rawtherapee.set_white_balance(None, 4000, 1.0)
    for old, new in ((b"Custom", b"Camera"), (b"=true", b"=false"), (b"TEN_", b"TWO_"), (b"Equal=1", b"Equal=1.2")):
        assert rawtherapee.read_illuminant(pp3.replace(old, new), photo) is None
    for wrong in (b"Temperature=x", b"Temperature=1e999", b"Temperature=9", b"Temperature=nan"):
        assert rawtherapee.read_illuminant(pp3.replace(b"Temperature=4000", wrong), photo) is None


def test_damaged_sidecars_are_errors_of_ours_or_balances_of_light(tmp_path: Path) -> None:
    made = take(tmp_path, 7, LIGHTS["lamp"](), size=64).balance
    rng = np.random.default_rng(0)
    adapting = _IDLE_MIXER[:120] + b"\7\0\0\0" + _IDLE_MIXER[124:]
    mixed = darktable.encode(made, None).replace(_IDLE_MIXER.hex().encode(), adapting.hex().encode())
    whole = [(form, form.encode(made, None)) for form in (adobe, rawtherapee, darktable)]
    whole.append((darktable, mixed.replace(b'enabled="0"', b'enabled="1"')))
    short = re.sub(rb'(params="[0-9a-f]{10})[0-9a-f]*', rb"\1", whole[2][1])
    assert darktable.read_illuminant(short, made.photo) is None
    assert darktable.read_illuminant(whole[3][1], made.photo) is not None
    for number in range(800):
        form, sidecar = whole[number % len(whole)]
        with suppress(C5Error):
            found = form.read_illuminant(damage(sidecar, rng), made.photo)
            assert found is None or np.isfinite(found).all()


def edit_like(look: Look, seed: int, count: int = 30, shoots: int = 6, noise: float = 8) -> list[Edit]:
    """Edits of a simulated person, whose hand is as unsure as the estimates are."""
    rng = np.random.default_rng(seed)
    lights = rng.choice([110, 160, 190, 240, 350, 400], shoots) + rng.normal(0, 10, shoots)
    edits = []
    for index in range(count):
        true = MiredTint(lights[index % shoots] + rng.normal(0, 8), rng.normal(8, 6))
        neutral, preferred = (
            MiredTint(place.mired + rng.normal(0, noise), place.tint + rng.normal(0, noise / 2))
            for place in (true, look.prefer(true))
        )
        edits.append(Edit(f"shoot {index % shoots}", neutral, preferred))
    return edits


def has_look(edits: list[Edit]) -> bool:
    try:
        learn_look(edits)
    except ParameterError as error:
        assert "no look is better than neutral balance" in str(error)  # noqa: PT017
        return False
    return True


@pytest.mark.parametrize("look", [Look(warmer=20), Look(strength=0.7), Look(strength=0.8, warmer=8, tint=4)], ids=str)
def test_thirty_noisy_edits_tell_a_look(look: Look) -> None:
    assert sum(has_look(edit_like(look, seed)) for seed in range(40)) >= 38
    learned = learn_look(edit_like(look, 1))
    assert learned.error < 0.8 * learned.error_without
    # Edits that come later are nearer to it than to neutral balance, and it is near to what the person likes.
    later = edit_like(look, 100, count=300, shoots=30)
    missed, without = (
        np.mean([math.dist(edit.preferred, guess(edit.neutral)) for edit in later])
        for guess in (learned.prefer, lambda place: place)
    )
    assert missed < 0.8 * without
    for mired in (120, 200, 300, 400):
        assert math.dist(learned.prefer(MiredTint(mired, 8)), look.prefer(MiredTint(mired, 8))) < 12


def test_who_sets_neutral_balance_by_hand_has_no_look() -> None:
    assert sum(has_look(edit_like(Look(), seed, noise=noise)) for seed in range(50) for noise in (8, 16)) <= 3


def test_a_few_stray_edits_do_not_move_a_look() -> None:
    edits = edit_like(Look(warmer=20), 1)
    strays = [edit._replace(preferred=MiredTint(edit.preferred.mired + 150, -60)) for edit in edits[::10]]
    kept = [strays[index // 10] if index % 10 == 0 else edit for index, edit in enumerate(edits)]
    found = [learn_look(each).prefer(MiredTint(182, 10)) for each in (edits, kept)]
    assert math.dist(*found) < 8


def test_light_beyond_the_edits_is_shifted_like_the_nearest() -> None:
    look = LearnedLook((-10, -30), (2, 1), (150, 300), 30, 3)
    end = look.prefer(MiredTint(300, 0))
    assert look.prefer(MiredTint(500, 0)).mired - 500 == pytest.approx(end.mired - 300)


def test_too_few_edits_or_shoots_are_one_line_that_counts_them() -> None:
    edits = edit_like(Look(warmer=30), 0)
    with pytest.raises(ParameterError, match=r"set by hand: 29 found, 30 are needed"):
        learn_look(edits[:29])
    with pytest.raises(ParameterError, match="2 shoots, by folder and day: 3 are"):
        learn_look([edit._replace(shoot=str(index % 2)) for index, edit in enumerate(edits)])


def test_a_look_is_kept_and_forgotten_and_nothing_else_is_removed(tmp_path: Path) -> None:
    look = learn_look(edit_like(Look(warmer=20), 0))
    path = save_look(look)
    assert path == tmp_path / "config" / "look.json"
    assert load_look() == look
    assert save_look(replace(look, edits=99)) == path  # our own is replaced
    assert forget_look()
    assert not path.exists()
    assert not forget_look()
    path.write_text("{}")
    with pytest.raises(ReadError, match="is not a learned look"):
        forget_look()
    assert path.read_text() == "{}"


@pytest.mark.parametrize(
    "change",
    [
        {"format": "c5-look-9"},
        {"mired": [1]},
        {"mired": [1, math.nan]},
        {"tint": "ab"},
        {"range": None},
        {"points": [["x"]]},
        {"points": 3},
        {"edits": "many"},
        {"more": 1},
        None,
    ],
)
def test_a_damaged_look_is_one_line(change: dict[str, object] | None) -> None:
    path = save_look(learn_look(edit_like(Look(warmer=20), 0)))
    path.write_text("[" * 100_000 if change is None else json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ReadError, match=r"look\.json: is not a learned look; remove it"):
        load_look()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Balance]]:
    """Thirty-three photographs of three shoots, and their neutral balances."""
    folder = tmp_path_factory.mktemp("library")
    rng = np.random.default_rng(4)
    camera = VirtualCamera.random(rng)
    for index, photo in enumerate(render_roll(camera, 33, rng, (64, 96))):
        path = folder / f"shoot {index % 3}" / f"{index:02d}.dng"
        write_dng(path, photo, camera, Layout(time=datetime(2026, 6, 1 + index % 3, 12)))
    results = [result for result in balance(sorted(folder.rglob("*.dng"))) if isinstance(result, Balance)]
    assert len(results) == 33
    return folder, results


def test_a_warm_lover_is_recovered_from_sidecars_of_three_programs(
    library: tuple[Path, list[Balance]], tmp_path: Path
) -> None:
    folder, results = library
    likes = Look(warmer=25, tint=5)
    rng = np.random.default_rng(0)
    programs = list(WRITERS.values())
    for index, result in enumerate(results):
        shaky = replace(likes, warmer=25 + rng.normal(0, 6), tint=5 + rng.normal(0, 3))
        edited = replace(result, illuminant=shaky.apply(result.illuminant, result.photo.need_matrices()))
        encode, path_beside = programs[index % 3]
        path_beside(result.path).write_bytes(encode(edited, None))
    # Two sidecars of one photograph that contradict each other, and one that cannot be read.
    first, second = results[0].path, results[1].path
    rawtherapee.path_beside(first).write_bytes(rawtherapee.set_white_balance(None, 2500, 1.0))
    darktable.path_beside(second).write_bytes(b"<x")
    ran = CliRunner().invoke(app, ["learn", str(folder), "--show", "--out", str(tmp_path / "look.png")])
    assert ran.exit_code == 0, ran.output
    (contradiction,) = [line for line in ran.stderr.splitlines() if "contradict" in line]
    assert first.name in contradiction
    assert "neither counts" in contradiction
    assert [line for line in ran.stderr.splitlines() if darktable.path_beside(second).name in line]
    look = load_look()
    assert look.edits == 32
    assert look.shoots == 3
    assert look.error < 0.7 * look.error_without
    place = MiredTint(190, 5)
    assert math.dist(look.prefer(place), likes.prefer(place)) < 6
    assert "daylight, 5500 K: 2" in ran.stdout
    assert (tmp_path / "look.png").stat().st_size > 1000
    # It is used where it is asked for, and not else.
    rows = [
        json.loads(balance_one(first, *options)) for options in ([], ["--learned"], ["--learned", "--warmer", "-5"])
    ]
    assert [row["look"] for row in rows] == [None, "learned", "learned, -5 mired"]
    assert 15 < 1e6 / rows[0]["kelvin"] - 1e6 / rows[1]["kelvin"] < 35
    forgotten = CliRunner().invoke(app, ["learn", "--forget"])
    assert forgotten.stdout.endswith("look.json: removed\n")
    assert CliRunner().invoke(app, ["balance", str(first), "--learned"]).exit_code == 1


def balance_one(path: Path, *options: str) -> str:
    ran = CliRunner().invoke(app, ["balance", str(path), "--json", *options])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_what_c5_wrote_is_no_edit_until_a_person_changes_it(library: tuple[Path, list[Balance]]) -> None:
    folder, results = library
    for path in [*folder.rglob("*.xmp"), *folder.rglob("*.pp3")]:
        path.unlink()
    for result in results[:3]:
        made = merge(adobe, partial(adobe.encode, result), None)
        adobe.path_beside(result.path).write_bytes(made)
    ran = CliRunner().invoke(app, ["learn", str(folder)])
    assert ran.exit_code == 1
    assert str(ran.exception).startswith("balances that were set by hand: 0 found, 30 are needed")
    sidecar = adobe.path_beside(results[0].path)
    sidecar.write_bytes(adobe.set_white_balance(sidecar.read_bytes(), 7000, 3))
    assert str(CliRunner().invoke(app, ["learn", str(folder)]).exception).startswith(
        "balances that were set by hand: 1 found"
    )


@pytest.mark.parametrize("arguments", [[], ["--forget", "--show"], ["--forget", "x"]])
def test_learn_says_what_it_needs(arguments: list[str]) -> None:
    ran = CliRunner().invoke(app, ["learn", *arguments])
    assert ran.exit_code == 1
    assert "--forget" in str(ran.exception)


def test_learn_names_a_folder_that_is_not_there(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["learn", str(tmp_path / "none")])
    assert ran.exit_code == 1
    assert str(ran.exception).startswith(f"{tmp_path / 'none'}: no such folder; ")
