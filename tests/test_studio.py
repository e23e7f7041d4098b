"""The studio behind its page: what it shows, keeps, refuses and writes."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dng_files import with_tags
from hypothesis import given
from hypothesis import strategies as st
from studio_shoots import COUNT, copy, render, rows, studio, wait_for

from c5.color import angular_error
from c5.colorimetry.adaptation import MiredTint, move_light
from c5.demo.raw_files import LONG
from c5.errors import C5Error, DataError, ReadError
from c5.io.raw import read_photograph
from c5.model import load_model
from c5.photos.balancing import Settings, balance
from c5.photos.embedded import read_embedded
from c5.photos.groups import Sets
from c5.photos.learning import Edit, read_edits
from c5.photos.photo import Photo, Thumbnail
from c5.photos.picture import turn
from c5.photos.plane import MIREDS, TINTS, tabulate_plane
from c5.photos.previews import Thumbnails, pack_thumbnail, read_preview, turn_thumbnail, unpack_thumbnail
from c5.photos.taste import Taste
from c5.studio.decisions import decide
from c5.studio.journal import Journal
from c5.studio.session import Session
from c5.studio.shoot import ConflictError

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from starlette.testclient import TestClient

from c5.studio.server import MOST_BYTES, make_app

TOKEN, PORT = "a-token", 8123
ORIGIN = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def shoot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return render(tmp_path_factory.mktemp("shoot") / "wedding")


@pytest.fixture(scope="module")
def opened(shoot: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A studio that tests only look at."""
    with studio(shoot, tmp_path_factory.mktemp("home")) as session:
        yield session


@pytest.fixture
def session(shoot: Path, tmp_path: Path) -> Iterator[Session]:
    """A studio of its own, to decide in."""
    with studio(copy(shoot, tmp_path / "shoot"), tmp_path / "home") as made:
        yield made


@pytest.fixture(scope="module")
def client(opened: Session) -> TestClient:
    return TestClient(make_app(opened, TOKEN), base_url=ORIGIN, headers={"Origin": ORIGIN})


def plan(session: Session, names: list[str], **options: Any) -> dict[str, Any]:
    session.plan(names, **options)
    wait_for(lambda: session.tell()["plan"]["state"] not in ("planning", "writing"))
    return dict(session.tell()["plan"])


def write(session: Session) -> dict[str, Any]:
    session.write(session.tell()["plan"]["id"])
    wait_for(lambda: session.tell()["plan"]["state"] not in ("planning", "writing"))
    return dict(session.tell()["plan"])


# What is shown


def test_it_shows_what_the_command_finds(opened: Session, shoot: Path) -> None:
    settings = Settings(load_model(), sets=Sets())
    found = {each.path.name: each for each in balance(sorted(shoot.glob("*.dng")), settings)}
    shown = rows(opened)
    assert shown.keys() == found.keys()
    for name, row in shown.items():
        expected = found[name]
        assert not isinstance(expected, tuple)
        told = opened.pictures.develop(row["id"])
        np.testing.assert_allclose(told["illuminant"], expected.illuminant, atol=1e-6)
        assert row["group"] == expected.group
        matrix = expected.photo.srgb_matrix(expected.illuminant)
        assert matrix is not None
        np.testing.assert_allclose(told["illuminant_matrix"], matrix.ravel(), atol=1e-6)


def test_pages_are_told_only_what_is_new(session: Session) -> None:
    first = session.tell()
    assert len(first["photos"]) == first["total"] == COUNT
    assert session.tell(first["number"])["photos"] == []
    id = first["photos"][3]["id"]
    session.act({"do": "agree", "ids": [id], "agreed": True}, first["number"])
    assert [row["id"] for row in session.tell(first["number"])["photos"]] == [id]


def test_previews_are_upright_and_whole(shoot: Path, tmp_path: Path) -> None:
    path = shoot / "0001.dng"
    plain = Photo.of(path, read_photograph(path))
    upright = read_preview(plain)
    turned_file = tmp_path / "turned.dng"
    turned_file.write_bytes(with_tags(path.read_bytes(), {274: (3, (6).to_bytes(2, "little"))}))
    turned = read_preview(Photo.of(turned_file, read_photograph(turned_file)))
    np.testing.assert_array_equal(turned.rgb, turn(upright.rgb, 6))
    assert turned.size == upright.size[::-1]
    height, width = upright.rgb.shape[:2]
    data = upright.encode()
    assert len(data) == 16 + 7 * height * width
    np.testing.assert_array_equal(np.frombuffer(data, "<u4", 4), [height, width, *upright.size])


def test_a_thumbnail_that_is_kept_looks_like_the_photograph(shoot: Path, tmp_path: Path) -> None:
    image = read_photograph(shoot / "0003.dng").image
    small = turn_thumbnail(Thumbnail.of(image), 1)
    kept = Thumbnails(tmp_path / "cache.db")
    kept.keep(b"content", "linear", pack_thumbnail(small))
    kept.close()
    again = Thumbnails(tmp_path / "cache.db")
    data = again.find(b"content", "linear")
    assert data is not None
    assert again.find(b"other", "linear") is None
    light = np.array([0.5, 0.7, 0.4])
    one, two = (each.develop(light, None).astype(float) for each in (small, unpack_thumbnail(data)))
    assert np.abs(one - two).mean() < 2
    again.close()


def test_thumbnails_that_are_made_in_another_way_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kept in (None, b"data"):  # the second time, as the same program
        cache = Thumbnails(tmp_path / "cache.db")
        assert cache.find(b"content", "linear") == kept
        cache.keep(b"content", "linear", b"data")
        cache.close()
    for name, other in (("QUALITY", 50), ("SIDE", 100)):
        monkeypatch.setattr(f"c5.photos.previews.{name}", other)
        cache = Thumbnails(tmp_path / "cache.db")
        assert cache.find(b"content", "linear") is None
        cache.keep(b"content", "linear", b"data")
        cache.close()


def test_a_damaged_cache_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "cache.db").write_bytes(b"no database at all" * 100)
    kept = Thumbnails(tmp_path / "cache.db")
    kept.keep(b"content", "linear", b"data")
    assert kept.find(b"content", "linear") == b"data"
    kept.close()


def test_the_table_of_a_camera_is_what_looks_do(opened: Session) -> None:
    """At its places exactly, between them within what nobody sees."""
    photo = next(each.own.photo for each in opened.shoot.entries.values() if each.own is not None)
    matrices = photo.need_matrices()
    plane = tabulate_plane(matrices)
    light = matrices.illuminant(4000.0)
    for mired, tint, most in ((MIREDS[20], TINTS[10], 0.01), (MIREDS[33], TINTS[12], 0.01), (173.0, 4.0, 0.1)):
        row, column = np.interp(mired, MIREDS, np.arange(len(MIREDS))), np.interp(tint, TINTS, np.arange(len(TINTS)))
        low, left = int(row), int(column)
        share = [(1 - row + low), row - low], [(1 - column + left), column - left]
        corners = plane.chroma[low : low + 2, left : left + 2]
        chroma = np.einsum(
            "i,j,ijk->k", *(np.array(each)[: corners.shape[at]] for at, each in enumerate(share)), corners
        )
        there = MiredTint(float(mired), float(tint))
        expected = move_light(light, matrices, lambda _, there=there: there)  # type: ignore[misc]
        assert angular_error([np.exp(chroma[0]), 1, np.exp(chroma[1])], expected) < most


def embed(data: bytes, pixels: np.ndarray, orientation: int = 1) -> bytes:
    """A DNG with a JPEG in it, as cameras do it."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=90)
    jpeg = buffer.getvalue()
    tags = {513: (LONG, b"\0" * 4), 514: (LONG, len(jpeg).to_bytes(4, "little"))}
    tags |= {274: (3, orientation.to_bytes(2, "little"))}
    place = len(with_tags(data, tags))
    return with_tags(data, tags | {513: (LONG, place.to_bytes(4, "little"))}) + jpeg


def test_embedded_previews_are_found_and_turned(shoot: Path, tmp_path: Path) -> None:
    pixels = np.zeros((400, 600, 3), np.uint8)
    pixels[:200, :300] = (250, 20, 20)
    path = tmp_path / "with.dng"
    path.write_bytes(embed((shoot / "0001.dng").read_bytes(), pixels, 6))
    found = read_embedded(path, 264)
    assert found is not None
    assert found.shape == (264, 176, 3)
    red = found[..., 0].astype(int) - found[..., 1]
    assert red[20:100, 110:150].min() > 150  # top left becomes top right
    assert red[160:, :].max() < 60
    assert read_embedded(shoot / "0001.dng", 264) is None
    (tmp_path / "cut.dng").write_bytes(path.read_bytes()[:-3000])
    read_embedded(tmp_path / "cut.dng", 264)  # what is damaged is no error


# Decisions

ids = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True)
events = st.one_of(
    st.builds(
        lambda ids, warmer: {"do": "adjust", "ids": ids, "strength": 1, "warmer": warmer, "tint": 0},
        ids,
        st.integers(-9, 9),
    ),
    st.builds(lambda ids, agreed: {"do": "agree", "ids": ids, "agreed": agreed}, ids, st.booleans()),
    st.builds(
        lambda ids, name: {"do": "group", "groups": dict.fromkeys(ids, name)}, ids, st.sampled_from(["1", "2", "dance"])
    ),
    st.builds(lambda ids: {"do": "reset", "ids": ids}, ids),
    st.just({"do": "rename", "group": "1", "name": "church"}),
)
FOUND = {"do": "found", "groups": dict.fromkeys("abcdef", "1")}


@given(st.lists(events, max_size=8), st.lists(events, min_size=1, max_size=5))
def test_undoing_everything_leads_back_and_redoing_forth(first: list[Any], more: list[Any]) -> None:
    before, after = decide([FOUND, *first]), decide([FOUND, *first, *more])
    undone = decide([FOUND, *first, *more, *[{"do": "undo"}] * len(more)])
    assert replace(undone, can_redo="") == before
    assert decide([FOUND, *first, *more, *[{"do": "undo"}] * len(more), *[{"do": "redo"}] * len(more)]) == after


@given(st.lists(events, max_size=5), events)
def test_a_new_decision_forgets_what_was_undone(first: list[Any], new: Any) -> None:
    done = decide([FOUND, *first, {"do": "undo"}, new])
    assert not done.can_redo
    assert replace(done, can_undo="") == replace(decide([FOUND, *first[:-1], new]), can_undo="")


def test_a_correction_goes_to_one_to_the_group_to_the_rest(session: Session) -> None:
    shown = rows(session)
    first = shown["0001.dng"]
    fellows = [row["id"] for row in shown.values() if row["group"] == shown["0002.dng"]["group"]]
    assert len(fellows) > 1
    before = {id: session.pictures.develop(id)["illuminant"] for id in [first["id"], *fellows]}
    wish = {"do": "adjust", "strength": 0.8, "warmer": 12, "tint": 3}
    session.act(wish | {"ids": [first["id"]]}, session.tell()["number"])
    session.act(wish | {"ids": [fellows[0]], "to": "group", "warmer": -8}, session.tell()["number"])
    after = rows(session)
    assert after["0001.dng"]["look"] == "strength 0.8, +12 mired, +3 tint"
    assert {row["warmer"] for row in after.values() if row["id"] in fellows} == {-8}
    assert {row["warmer"] for row in after.values() if row["id"] not in {first["id"], *fellows}} == {0}
    assert all(session.pictures.develop(id)["light"] == before[id] for id in fellows)
    session.act(wish | {"ids": [first["id"]], "to": "rest", "warmer": 30}, session.tell()["number"])
    assert {row["warmer"] for row in rows(session).values() if row["id"] in fellows} == {-8}  # corrected: not the rest
    assert rows(session)["0001.dng"]["warmer"] == 30
    for _ in range(3):
        session.act({"do": "undo"}, session.tell()["number"])
    assert {id: session.pictures.develop(id)["illuminant"] for id in before} == before
    with pytest.raises(C5Error, match="nothing to undo"):
        session.act({"do": "undo"}, session.tell()["number"])


def test_looks_are_where_the_sliders_start(shoot: Path, opened: Session, tmp_path: Path) -> None:
    taste = Taste(always={"keep_warmth": True, "tint": 4})
    with studio(copy(shoot, tmp_path / "shoot"), tmp_path / "home", taste=taste) as liked:
        for name, row in rows(liked).items():
            neutral, told = opened.pictures.develop(rows(opened)[name]["id"]), liked.pictures.develop(row["id"])
            balance = opened.shoot.final(opened.shoot.find(rows(opened)[name]["id"]))
            assert balance is not None
            assert told["illuminant"] == taste.apply(balance).illuminant.tolist()
            assert told["light"] == told["illuminant"] != neutral["illuminant"]
            assert row["light_kelvin"] == rows(opened)[name]["light_kelvin"]
            assert row["by"] != "hand"
        id, before = row["id"], told["illuminant"]
        liked.act({"do": "adjust", "ids": [id], "strength": 1, "warmer": 10, "tint": 0}, liked.tell()["number"])
        assert liked.pictures.develop(id)["light"] == before != liked.pictures.develop(id)["illuminant"]
        changed = rows(liked)[name]
        assert changed["look"].endswith(", then +10 mired")
        assert changed["light_kelvin"] == row["light_kelvin"]


def test_groups_are_split_joined_and_named(session: Session) -> None:
    shown = rows(session)
    one, two = shown["0001.dng"], shown["0012.dng"]
    assert one["group"] != two["group"]
    session.act({"do": "rename", "group": one["group"], "name": "morning"}, session.tell()["number"])
    session.act({"do": "group", "ids": [two["id"]], "name": "morning"}, session.tell()["number"])
    after = rows(session)
    assert after["0001.dng"]["group"] == after["0012.dng"]["group"] == "morning"
    assert after["0012.dng"]["by"] == "set"
    assert after["0012.dng"]["kelvin"] != two["kelvin"]
    for name in ("", " ", "x" * 81, "a\x00b"):
        with pytest.raises(C5Error, match="name"):
            session.act({"do": "group", "ids": [two["id"]], "name": name}, session.tell()["number"])
    with pytest.raises(C5Error, match="no such group"):
        session.act({"do": "rename", "group": "nobody's", "name": "a"}, session.tell()["number"])


def test_a_gray_patch_balances_one_or_the_group(session: Session) -> None:
    shown = rows(session)
    group = [row for row in shown.values() if row["group"] == shown["0002.dng"]["group"]]
    id = group[0]["id"]
    box = [20, 20, 60, 40]
    light = session.shoot.measure(id, box)
    session.act({"do": "gray", "ids": [id], "source": id, "box": box}, session.tell()["number"])
    np.testing.assert_allclose(session.pictures.develop(id)["illuminant"], light, atol=1e-9)
    assert session.pictures.develop(group[1]["id"])["illuminant"] != session.pictures.develop(id)["illuminant"]
    session.act({"do": "undo"}, session.tell()["number"])
    session.act({"do": "refer", "id": id, "box": box}, session.tell()["number"])
    same = [row for row in rows(session).values() if row["group"] == group[0]["group"]]
    assert {row["by"] for row in same} == {"reference"}
    for row in same:
        if row["camera"] == group[0]["camera"]:
            assert angular_error(session.pictures.develop(row["id"])["illuminant"], light) < 0.01
    for outside in ([-5, 0, 10, 10], [0, 0, 10_000, 10], [0, 0, 0, 0]):
        with pytest.raises(C5Error, match="rectangle"):
            session.shoot.measure(id, outside)


def test_two_tabs_do_not_fight(session: Session) -> None:
    id, other = (row["id"] for row in session.tell()["photos"][:2])
    seen = session.tell()["number"]
    session.act({"do": "agree", "ids": [id], "agreed": True}, seen)
    with pytest.raises(ConflictError, match="another tab"):
        session.act({"do": "adjust", "ids": [id], "strength": 1, "warmer": 5, "tint": 0}, seen)
    session.act({"do": "agree", "ids": [other], "agreed": True}, seen)  # nobody else decided about this one
    assert {row["warmer"] for row in session.tell()["photos"]} == {0}
    with pytest.raises(ConflictError, match="another tab"):
        session.act({"do": "undo"}, seen)  # it would take back what this tab has not seen
    session.act({"do": "undo"}, session.tell()["number"])


# What is kept


def test_a_killed_program_loses_nothing(shoot: Path, tmp_path: Path) -> None:
    """What was answered is on disk: the real program, killed while it works."""
    folder = copy(shoot, tmp_path / "shoot")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    command = [sys.executable, "-m", "c5.cli", "studio", str(folder), "--no-browser"]

    @contextmanager
    def running() -> Iterator[tuple[subprocess.Popen[str], str]]:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment | {"HOME": str(tmp_path / "home")}
        )
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()
            process.wait()

    import httpx

    def ask(address: str, path: str = "shoot", wish: Any = None) -> Any:
        origin = address.rsplit("/", 2)[0]
        if wish is None:
            return httpx.get(address + path, timeout=30).json()
        return httpx.post(address + path, json=wish, headers={"Origin": origin}, timeout=30).json()

    with running() as (process, address):
        wait_for(lambda: ask(address)["grouped"])
        told = ask(address)
        id = told["photos"][4]["id"]
        wish = {"do": "adjust", "ids": [id], "strength": 0.9, "warmer": 7, "tint": -2}
        after = ask(address, "act", {"event": wish, "seen": told["number"]})
        process.send_signal(signal.SIGKILL)
        process.wait()
    decided = {row["id"]: (row["group"], row["warmer"], row["agreed"]) for row in told["photos"] + after["photos"]}
    assert decided[id][1] == 7
    with running() as (_, address):
        wait_for(lambda: ask(address)["grouped"])
        again = ask(address)
        second = subprocess.run(
            command, capture_output=True, text=True, env=environment | {"HOME": str(tmp_path / "home")}, timeout=60
        )
    assert {row["id"]: (row["group"], row["warmer"], row["agreed"]) for row in again["photos"]} == decided
    assert again["undo"] == "a correction"
    assert second.returncode == 1
    assert "is open in another studio" in second.stderr


def test_a_journal_that_is_damaged_is_told_and_kept(shoot: Path, tmp_path: Path) -> None:
    place = tmp_path / "journal"
    place.write_bytes(b"\0" * 5000)
    with pytest.raises(DataError, match="move it away"):
        Journal(place, shoot)
    assert place.read_bytes() == b"\0" * 5000


def test_thumbnails_are_made_once(shoot: Path, tmp_path: Path) -> None:
    with studio(shoot, tmp_path) as session:
        first = session.pictures.thumbnail(session.tell()["photos"][0]["id"])
    before = os.stat(tmp_path / "cache.db").st_mtime_ns
    with studio(shoot, tmp_path, wait=False) as session:
        wait_for(
            lambda: all(row["thumbnail"] == "linear" for row in session.tell()["photos"]) and session.tell()["total"]
        )
        wait_for(lambda: session.tell()["grouped"])
        assert session.pictures.thumbnail(session.tell()["photos"][0]["id"]) == first
    assert before


# Writing


def test_nothing_is_written_before_it_was_shown(session: Session) -> None:
    files = {path.name for path in session.folder.iterdir()}
    told = plan(session, ["pp3", "darktable"])
    assert told["counts"]["write"] == 2 * COUNT
    assert {path.name for path in session.folder.iterdir()} == files
    planned = {step[1] for step in told["steps"]}
    done = write(session)
    assert done["state"] == "written"
    assert {path.name for path in session.folder.iterdir()} - files == planned
    assert plan(session, ["pp3", "darktable"])["counts"]["stay"] == 2 * COUNT


def test_a_plan_that_is_no_longer_true_is_not_written(session: Session) -> None:
    told = plan(session, ["pp3"])
    id = session.tell()["photos"][0]["id"]
    session.act({"do": "agree", "ids": [id], "agreed": True}, session.tell()["number"])
    with pytest.raises(ConflictError):
        session.write(told["id"])
    assert plan(session, ["pp3"], which="agreed")["counts"]["write"] == 1


def test_a_sidecar_that_another_program_changed_is_seen_and_left(session: Session) -> None:
    plan(session, ["pp3"])
    place = session.folder / "0001.dng.pp3"
    place.write_text("[White Balance]\nSetting=Custom\nTemperature=4321\nGreen=1\n")
    done = write(session)
    assert "Temperature=4321" in place.read_text()
    assert done["counts"]["fail"] == 1
    assert done["counts"]["write"] == COUNT - 1
    assert "another program has changed it" in done["steps"][0][2]
    again = plan(session, ["pp3"])
    assert again["counts"]["custom"] == 1
    assert "Temperature=4321" in place.read_text()


def test_corrections_teach_and_what_c5_found_does_not(session: Session) -> None:
    """`c5 learn` reads them from the sidecars."""
    shown = rows(session)
    session.act(
        {"do": "adjust", "ids": [shown["0004.dng"]["id"]], "strength": 1, "warmer": 20, "tint": 0},
        session.tell()["number"],
    )
    plan(session, ["darktable"])
    assert write(session)["state"] == "written"
    paths = sorted(session.folder.glob("*.dng"))
    edits = [each for each in read_edits(paths, Settings(load_model())) if isinstance(each, Edit)]
    assert len(edits) == 1
    light = rows(session)["0004.dng"]
    assert abs(1e6 / edits[0].preferred.mired - light["kelvin"]) < 30


# Bad input


def test_a_folder_without_photographs_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with studio(tmp_path / "empty", tmp_path / "home", wait=False) as session:
        wait_for(lambda: session.tell()["problems"])
        (problem,) = session.tell()["problems"]
        assert problem.endswith("no photographs in it; open a folder of raw files")


def test_one_photograph_that_cannot_be_read_costs_only_itself(shoot: Path, tmp_path: Path) -> None:
    folder = copy(shoot, tmp_path / "shoot")
    data = (folder / "0005.dng").read_bytes()
    (folder / "0005.dng").write_bytes(data[: len(data) // 2])
    with studio(folder, tmp_path / "home") as session:
        shown = rows(session)
        assert "damaged" in shown["0005.dng"]["failure"]
        assert str(folder) not in shown["0005.dng"]["failure"]
        assert sum(bool(row["failure"]) for row in shown.values()) == 1
        assert session.tell()["problems"] == ["1 photograph cannot be read; the others are here"]
        assert plan(session, ["pp3"])["counts"]["write"] == COUNT - 1
        (folder / "0005.dng").write_bytes(data)
        session.look_again()
        wait_for(lambda: not session.tell()["work"] and not session.tell()["problems"])
        assert rows(session)["0005.dng"]["kelvin"]
        (folder / "0005.dng").write_bytes(data[: len(data) // 2])


def test_a_look_that_is_asked_for_while_another_ends_is_not_lost(
    shoot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy(shoot, tmp_path / "shoot")
    ending, asked = threading.Event(), threading.Event()

    def end() -> None:
        ending.set()
        assert asked.wait(60)

    monkeypatch.setattr("c5.studio.session.close_workers", end)
    with studio(folder, tmp_path / "home", wait=False) as session:
        assert ending.wait(60)
        (folder / "late.dng").write_bytes((folder / "0001.dng").read_bytes())
        session.look_again()
        asked.set()
        wait_for(lambda: session.tell()["total"] == COUNT + 1)


def test_exports_are_passed_over(shoot: Path, tmp_path: Path) -> None:
    from PIL import Image

    folder = copy(shoot, tmp_path / "shoot")
    Image.new("RGB", (60, 40), (90, 80, 70)).save(folder / "export.png")
    with studio(folder, tmp_path / "home") as session:
        told = session.tell()
        assert told["total"] == COUNT
        assert told["problems"] == []
        assert [row for row in told["photos"] if row.get("gone")]
        assert plan(session, ["pp3"])["counts"]["write"] == COUNT


def test_a_folder_that_vanishes_is_told_and_used_again_when_it_is_back(session: Session) -> None:
    id = session.tell()["photos"][0]["id"]
    away = session.folder.with_name("away")
    session.folder.rename(away)
    (problem,) = session.tell()["problems"]
    assert "is gone; connect its disk" in problem
    with pytest.raises(C5Error):
        session.pictures.preview(id)
    session.act({"do": "agree", "ids": [id], "agreed": True}, session.tell()["number"])  # the journal is elsewhere
    away.rename(session.folder)
    assert session.tell()["problems"] == []
    wait_for(lambda: not session.tell()["work"])
    assert len(session.pictures.preview(id)) > 1000
    assert session.tell()["photos"][0]["agreed"]


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    if os.name != "posix" or os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only the administrator can mount a small disk")
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=False)


def test_a_disk_that_fills_is_told_and_what_is_written_stays(shoot: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "20k") as out, studio(shoot, tmp_path / "home", out=out) as session:
        assert plan(session, ["darktable"])["counts"]["write"] == COUNT
        done = write(session)
        assert done["state"] == "stopped"
        assert "the disk is full" in done["message"]
        written = [*out.glob("*.xmp")]
        assert 0 < len(written) < COUNT
        assert all(path.read_text().rstrip().endswith(("</x:xmpmeta>", '<?xpacket end="w"?>')) for path in written)
        assert done["counts"]["write"] + len(written) >= COUNT - 1  # the others are still to be written
        for path in written:
            path.unlink()


def test_a_folder_that_cannot_be_written_to_is_told(shoot: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as out:
        subprocess.run(["mount", "-o", "remount,ro", out], check=True)
        with studio(shoot, tmp_path / "home", out=out) as session:
            (problem,) = session.tell()["problems"]
            assert "cannot be written to" in problem
            told = plan(session, ["pp3"])
            assert told["counts"]["fail"] == COUNT
            assert "cannot be written to" in told["steps"][0][2]


def fill_journal(session: Session, id: str) -> None:
    for _ in range(200):
        session.act({"do": "agree", "ids": [id], "agreed": True}, session.tell()["number"])


def test_decisions_that_cannot_be_kept_do_not_count(shoot: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k") as disk, studio(shoot, disk) as session:
        id = session.tell()["photos"][0]["id"]
        (disk / "filler").write_bytes(b"")
        with pytest.raises((OSError, C5Error)):
            (disk / "filler").write_bytes(b"x" * 100_000)
        with pytest.raises(C5Error, match="cannot be kept"):
            fill_journal(session, id)
        (disk / "filler").unlink()
        session.act({"do": "agree", "ids": [id], "agreed": True}, session.tell()["number"])


def test_a_link_out_of_the_folder_is_not_followed(session: Session, shoot: Path, tmp_path: Path) -> None:
    """Neither one that is there from the beginning, nor a photograph that becomes one."""
    secret = tmp_path / "secret.dng"
    secret.write_bytes((shoot / "0002.dng").read_bytes())
    (session.folder / "link.dng").symlink_to(secret)
    (session.folder / "below").symlink_to(tmp_path)
    session.look_again()
    wait_for(lambda: not session.tell()["work"])
    assert session.tell()["total"] == COUNT
    row = rows(session)["0001.dng"]
    original = session.folder / "0001.dng"
    moved = session.folder / "moved"
    original.rename(moved)
    original.symlink_to(secret)
    for open_it in (session.pictures.preview, session.pictures.explain, session.pictures.plane):
        with pytest.raises(ReadError, match="has become a link"):
            open_it(row["id"])
    with pytest.raises(ReadError, match="has become a link"):
        session.shoot.measure(row["id"], [0, 0, 10, 10])
    original.unlink()
    moved.rename(original)


# Security


def refused(client: TestClient, path: str = "shoot", **headers: str) -> int:
    return int(client.get(f"/{TOKEN}/{path}", headers=headers).status_code)


def test_foreign_hosts_and_origins_are_refused(client: TestClient) -> None:
    assert refused(client) == 200
    assert refused(client, Host=f"localhost:{PORT}", Origin=f"http://localhost:{PORT}") == 200
    for host in ("evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1.evil.example:{PORT}", "127.0.0.1:1"):
        assert refused(client, Host=host) == 403
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"https://127.0.0.1:{PORT}", ORIGIN + ".x"):
        assert refused(client, Origin=origin) == 403
    assert refused(client, **{"Sec-Fetch-Site": "cross-site"}) == 403
    assert refused(client, **{"Sec-Fetch-Site": "same-site"}) == 403


def test_without_the_token_nothing_is_told(client: TestClient) -> None:
    for path in ("/", "/shoot", "/wrong/shoot", f"/{TOKEN}x/shoot", f"/x{TOKEN}/", "//shoot", f"/{TOKEN[:-1]}/"):
        answer = client.get(path)
        assert answer.status_code == 403, path
        assert answer.json() == {"error": "the address has no valid token; use the one that was printed at the start"}


@pytest.mark.parametrize("name", ["act", "measure", "plan", "write", "again"])
def test_cross_site_posts_are_refused(client: TestClient, opened: Session, name: str) -> None:
    """Also what a form of another page could send, which needs no leave of the browser."""
    number = opened.tell()["number"]
    address = f"/{TOKEN}/{name}"
    good = {"Content-Type": "application/json"}
    assert client.post(address, content="{}", headers=good | {"Origin": "http://evil.example"}).status_code == 403
    with TestClient(client.app, base_url=ORIGIN) as bare:
        assert bare.post(address, content="{}", headers=good).status_code == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json; a=b"):
        assert client.post(address, content="{}", headers={"Content-Type": kind}).status_code == 415
    assert client.get(address).status_code == 405
    assert opened.tell()["number"] == number


def test_oversized_requests_are_refused(client: TestClient) -> None:
    head = {"Content-Type": "application/json"}
    address = f"/{TOKEN}/act"
    assert client.post(address, content=b" " * (MOST_BYTES + 1), headers=head).status_code == 413

    def parts() -> Iterator[bytes]:
        yield b" " * 100

    assert client.post(address, content=parts(), headers=head).status_code == 411
    deep = b"[" * 100_000 + b"]" * 100_000
    assert client.post(address, content=deep, headers=head).status_code == 400


def test_paths_lead_nowhere(client: TestClient, opened: Session) -> None:
    for path in ("../../../etc/passwd", "..%2f..%2fserver.py", "%2e%2e/server.py", "0001.dng", "", "x" * 5000):
        for kind in ("static", "thumbnail", "pixels", "why", "plane", "develop"):
            assert client.get(f"/{TOKEN}/{kind}/{path}").status_code in (403, 404), (kind, path)
    absolute = str(opened.folder / "0001.dng")
    answer = client.post(f"/{TOKEN}/measure", json={"id": absolute, "box": [0, 0, 9, 9]})
    assert answer.status_code == 404


@pytest.mark.parametrize(
    "wish",
    [
        [], 5, "text", {}, {"event": None}, {"event": {}}, {"event": {"do": "format"}},
        {"event": {"do": "adjust"}},
        {"event": {"do": "adjust", "ids": ["x"], "strength": 1, "warmer": 0, "tint": 0}},
        {"event": {"do": "adjust", "ids": 7, "strength": 1, "warmer": 0, "tint": 0}},
        {"event": {"do": "found", "groups": {"x": "y"}}}, {"event": {"do": "group", "groups": {"x": "y"}}},
        {"event": {"do": "undo"}, "seen": "x"}, {"event": {"do": ["undo"]}},
        {"event": {"do": "rename", "group": ["a"]}},
    ],
)  # fmt: skip
def test_nonsense_is_answered_with_one_line(client: TestClient, opened: Session, wish: Any) -> None:
    before = len(opened._journal.events)
    answer = client.post(f"/{TOKEN}/act", json=wish)
    assert answer.status_code in (400, 404)
    assert "\n" not in answer.json()["error"]
    assert len(opened._journal.events) == before


def test_the_page_asks_nobody_else_and_cannot_be_framed(client: TestClient) -> None:
    page = client.get(f"/{TOKEN}/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "JavaScript modules" in page.text
    static = Path(sys.modules["c5.studio.server"].__file__ or "").parent / "static"
    for path in static.iterdir():
        text = path.read_text()
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
        assert client.get(f"/{TOKEN}/static/{path.name}").status_code == 200
    refusal = client.get("/")
    assert refusal.headers["x-content-type-options"] == "nosniff"


def test_pictures_come_as_pictures(client: TestClient) -> None:
    row = client.get(f"/{TOKEN}/shoot").json()["photos"][0]
    small = client.get(f"/{TOKEN}/thumbnail/{row['id']}?v={row['version']}")
    assert small.headers["content-type"] == "image/jpeg"
    assert "immutable" in small.headers["cache-control"]
    assert client.get(f"/{TOKEN}/thumbnail/{row['id']}?before=1").content != small.content
    assert client.get(f"/{TOKEN}/why/{row['id']}").content.startswith(b"\x89PNG")
    assert len(client.get(f"/{TOKEN}/plane/{row['id']}").content) == len(MIREDS) * len(TINTS) * 11 * 4
