"""The catalog: whatever happens to files and processes, it ends up as if it had been made at one go."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import textured
from typer.testing import CliRunner

from c5.choices import SELECTIONS, Selection
from c5.cli.catalog import app
from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import Layout, write_dng
from c5.errors import C5Error, DataError, ParameterError, ReadError, WriteError
from c5.histograms import Grid, histogram
from c5.image import WORKING_PIXELS, LinearImage
from c5.io.raw import Photograph, read_photograph
from c5.io.readers import read_image
from c5.io.versions import digest_file
from c5.model import Model, load_model
from c5.model_file import ModelFile
from c5.photos.catalog import Catalog, default_path
from c5.photos.catalog.database import snapshot, transaction
from c5.photos.catalog.drawing import draw_candidates
from c5.photos.catalog.entries import stored_grid
from c5.photos.photo import Photo, Reading, read_photo

ticks = count(1)


@dataclass(frozen=True)
class ReadingBy(Reading):
    """Reading by a function of one's own."""

    function: Callable[[Path], Photograph] = read_photograph

    def read(self, path: Path, pixels: int = WORKING_PIXELS, more_pixels: int | None = None) -> Photograph:
        return self.function(path)


def read_shot(path: Path) -> Photograph:
    """A photograph whose first pixel says which of three cameras took it, and when."""
    rgb = read_image(path).rgb
    camera, day = int(rgb[0, 0, 0] * 1e4) % 3, int(rgb[0, 0, 1] * 1e4)
    return Photograph(
        LinearImage(rgb, camera=f"camera {camera}"), rgb.shape[:2], datetime(2024, 1, 1) + timedelta(days=day)
    )


def refuse(path: Path) -> Photograph:
    raise AssertionError(f"{path} was opened")


SHOTS, REFUSED = ReadingBy(function=read_shot), ReadingBy(function=refuse)


def of_camera(name: str | None) -> Reading:
    return ReadingBy(function=lambda path: Photograph(LinearImage(read_image(path).rgb, camera=name), (0, 0)))


def save(path: Path, seed: int) -> Path:
    """Write a photograph; no two writings have the same time of modification."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, textured(seed))
    os.utime(path, ns=(0, next(ticks) * 10**9))
    return path


def save_many(folder: Path, number: int) -> list[Path]:
    return [save(folder / f"{seed:03}.npy", seed) for seed in range(number)]


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    """Everything in a catalog but the numbers it counts by, of which it is checked that they are whole."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        numbers = connection.execute("SELECT camera, number FROM photograph WHERE camera IS NOT NULL").fetchall()
        counts = Counter(camera for camera, _ in numbers)
        assert set(numbers) == {(camera, i) for camera, n in counts.items() for i in range(n)}
        orphans = "SELECT COUNT(*) FROM details WHERE photograph NOT IN (SELECT id FROM photograph)"
        assert connection.execute(orphans).fetchone() == (0,)
        query = """
            SELECT path, size, modified, digest, camera, time, vividness, grid, reading, error, facts, packed
            FROM photograph LEFT JOIN details ON photograph = id ORDER BY path
        """
        return connection.execute(query).fetchall()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    save_many(folder, 8)
    return folder


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tmp_path / "data" / "catalog.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model()


# Adding


def test_adding_twice_is_adding_once(catalog: Catalog, photos: Path) -> None:
    first = catalog.add([photos], reading=SHOTS)
    assert (first.new, first.unchanged, first.failed) == (8, 0, [])
    rows = rows_of(catalog.path)
    again = catalog.add([photos, photos / "000.npy", photos.parent], reading=REFUSED)
    assert (again.new, again.changed, again.moved, again.deleted, again.unchanged) == (0, 0, 0, 0, 8)
    assert rows_of(catalog.path) == rows


steps = st.lists(
    st.tuples(st.sampled_from(["new", "change", "delete", "move", "copy", "touch", "add"]), st.integers(0, 99)),
    max_size=12,
)


@given(steps=steps)
@settings(max_examples=25)
def test_step_by_step_is_all_at_once(steps: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.mktemp("steps")
    for folder in ("a", "b", "b/c"):
        (base / "photos" / folder).mkdir(parents=True)
        (base / "photos" / folder / "notes.txt").touch()
    names = [base / "photos" / folder / f"{i}.npy" for folder in ("a", "b", "b/c") for i in range(3)]
    save(names[0], 0)
    with Catalog.open(base / "steps.db") as catalog:
        catalog.add([base / "photos"], reading=SHOTS)
        for step, choice in [*steps, ("add", 0)]:
            there = [name for name in names if name.exists()]
            free = [name for name in names if not name.exists()]
            if step == "add":
                catalog.add([base / "photos"], reading=SHOTS)
            elif step == "new" and free:
                save(free[choice % len(free)], choice)
            elif step == "change" and there:
                save(there[choice % len(there)], choice + 1)
            elif step == "touch" and there:
                os.utime(there[choice % len(there)], ns=(0, next(ticks) * 10**9))
            elif step == "delete" and there:
                there[choice % len(there)].unlink()
            elif step == "move" and there and free:
                there[choice % len(there)].rename(free[choice % len(free)])
            elif step == "copy" and there and free:
                shutil.copy2(there[choice % len(there)], free[choice % len(free)])
    with Catalog.open(base / "fresh.db") as catalog:
        catalog.add([base / "photos"], reading=SHOTS)
    assert rows_of(base / "steps.db") == rows_of(base / "fresh.db")


def test_changed_moved_copied_and_deleted_files_are_told_apart(catalog: Catalog, photos: Path) -> None:
    catalog.add([photos], reading=SHOTS)
    save(photos / "000.npy", 100)
    (photos / "001.npy").rename(photos.parent / "001.npy")
    (photos / "002.npy").rename(photos / "renamed.npy")
    (photos / "003.npy").unlink()
    shutil.copy2(photos / "004.npy", photos / "copy.npy")
    save(photos / "fresh.npy", 101)
    opened: list[str] = []

    def read(path: Path) -> Photograph:
        opened.append(path.name)
        return read_shot(path)

    added = catalog.add([photos.parent], reading=ReadingBy(function=read))
    assert (added.new, added.changed, added.moved, added.deleted, added.unchanged) == (2, 1, 2, 1, 4)
    assert sorted(opened) == ["000.npy", "fresh.npy"]  # what moved or was copied is known by its content
    assert not added.absent


def test_a_file_moved_to_another_folder_is_found_from_there(catalog: Catalog, photos: Path) -> None:
    catalog.add([photos], reading=SHOTS)
    shutil.move(photos / "001.npy", save(photos.parent / "other" / "x.npy", 50).parent)
    added = catalog.add([photos.parent / "other"], reading=SHOTS)
    assert (added.new, added.moved, added.deleted) == (1, 1, 0)
    assert len(rows_of(catalog.path)) == 9


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_disk_that_is_not_mounted_is_not_forgotten(catalog: Catalog, photos: Path, how: str) -> None:
    disk = photos / "disk"
    save(disk / "deep" / "far.npy", 50)
    save(disk / "near.npy", 51)
    catalog.add([photos], reading=SHOTS)
    rows = rows_of(catalog.path)
    shutil.move(disk, photos.parent / "elsewhere")
    if how == "empty":
        disk.mkdir()
    added = catalog.add([photos], reading=SHOTS)
    assert added.deleted == 0
    assert added.absent == {disk: 1, disk / "deep": 1}
    assert rows_of(catalog.path) == rows
    if how == "gone":
        with pytest.raises(ReadError, match="connect its disk"):
            catalog.add([disk], reading=SHOTS)
    assert catalog.forget(disk) == 2
    assert len(rows_of(catalog.path)) == len(rows) - 2
    assert catalog.add([photos], reading=SHOTS).absent == {}


def test_forget_takes_whole_names(catalog: Catalog, photos: Path) -> None:
    save(photos.parent / "photos2" / "a.npy", 60)
    catalog.add([photos.parent], reading=SHOTS)
    assert catalog.forget(photos.parent / "phot") == 0
    assert catalog.forget(photos / "000.npy") == 1
    assert catalog.forget(photos) == 7
    assert len(rows_of(catalog.path)) == 1


def test_only_linear_photographs_are_looked_at(catalog: Catalog, photos: Path) -> None:
    for name in (
        "a.jpg",
        "a.xmp",
        "a.dng.c5.png",
        "a.dng.c5.jpg",
        ".hidden.npy",
        ".folder/a.npy",
        "._000.npy",
        "noextension",
    ):
        (photos / name).parent.mkdir(exist_ok=True)
        (photos / name).write_bytes(b"no photograph")
    (photos / "loop").symlink_to(photos)
    (photos / "link.npy").symlink_to(photos / "000.npy")
    save(photos / "upper.npy", 70).rename(photos / "UPPER.NPY")
    added = catalog.add([photos], reading=SHOTS)
    assert (added.new, added.failed) == (9, [])
    # A folder that is named may itself be a link.
    (photos.parent / "link").symlink_to(photos)
    assert catalog.add([photos.parent / "link"], reading=REFUSED).unchanged == 9


def test_nothing_is_written_beside_photographs(catalog: Catalog, photos: Path, model: Model) -> None:
    (photos / "broken.npy").write_bytes(b"\x93NUMPY")

    def state() -> dict[Path, tuple[int, int, bytes]]:
        files = [path for path in photos.rglob("*") if path.is_file()]
        return {path: (path.stat().st_mtime_ns, photos.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    catalog.add([photos], reading=SHOTS)
    catalog.roll(model, "camera 0")
    assert state() == before


def test_a_failing_file_is_recorded_and_not_tried_again_until_it_changes(catalog: Catalog, photos: Path) -> None:
    broken = photos / "broken.npy"
    broken.write_bytes(b"\x93NUMPY")
    np.save(photos / "black.npy", np.zeros((8, 8, 3), np.float32))
    added = catalog.add([photos], reading=SHOTS)
    assert added.new == 8
    assert sorted(path.name for path, _ in added.failed) == ["black.npy", "broken.npy"]
    assert all(message.startswith(str(path)) and "\n" not in message for path, message in added.failed)
    assert catalog.failures() == sorted(added.failed)
    assert [(row.camera, row.images, row.failed) for row in catalog.status()][-1] == (None, 0, 2)
    again = catalog.add([photos], reading=REFUSED)
    assert (again.unchanged, sorted(again.failed)) == (10, sorted(added.failed))
    assert len(catalog.add([photos], reading=SHOTS, retry=True).failed) == 2
    save(broken, 80)
    assert catalog.add([photos], reading=SHOTS).changed == 1
    assert [path.name for path, _ in catalog.failures()] == ["black.npy"]


def test_a_disk_that_fails_is_not_held_against_its_files(catalog: Catalog, photos: Path) -> None:
    def read(path: Path) -> Photograph:
        path.rename(path.with_suffix(".away"))
        raise ReadError(f"{path}: cannot be opened")

    added = catalog.add([photos], reading=ReadingBy(function=read))
    assert len(added.failed) == 8
    assert rows_of(catalog.path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_any_name_of_a_file_will_do(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "of 'q\" [b] %_*"
    names = [b"\xff\xfe.npy", "ü ñ.npy".encode(), b"new\nline.npy"]
    source = save(folder / "a.npy", 0)
    for seed, name in enumerate(names):
        np.save(source, textured(seed + 1))
        shutil.copy(source, folder / os.fsdecode(name))
    (folder / os.fsdecode(b"\xfd.npy")).write_bytes(b"broken")
    added = catalog.add([folder], reading=of_camera("c"))
    assert (added.new, len(added.failed)) == (4, 1)
    assert catalog.add([folder], reading=REFUSED).unchanged == 5
    found = draw(catalog, "c", 9, Selection.RANDOM)
    assert len(found) == 3  # one is a copy
    assert {*found} < {*folder.iterdir()}


def test_a_camera_can_be_named_for_files_that_do_not_tell(catalog: Catalog, photos: Path) -> None:
    catalog.add([photos], reading=of_camera(None))
    assert [(row.camera, row.images) for row in catalog.status()] == [(None, 8)]
    assert catalog.add([photos], reading=of_camera(None), camera="Holga").changed == 8
    assert [(row.camera, row.images) for row in catalog.status()] == [("Holga", 8)]
    assert catalog.add([photos], reading=REFUSED, camera="Diana").unchanged == 8  # told once, it stays


def test_the_digest_sees_both_ends_the_middle_and_the_size(tmp_path: Path) -> None:
    original = np.random.default_rng(0).bytes(2_000_000)
    digests = set()
    for place in (None, 0, 400_001, 1_999_999):
        data = bytearray(original)
        if place is not None:
            data[place] ^= 1
        (tmp_path / "f").write_bytes(data)
        digests.add(digest_file(os.fsencode(tmp_path / "f"))[1])
    (tmp_path / "f").write_bytes(original + b"\0")
    digests.add(digest_file(os.fsencode(tmp_path / "f"))[1])
    assert len(digests) == 5


# Processes that are stopped, killed, or work at the same time

ADD = """
import sys, time
from pathlib import Path
from c5.photos.catalog import Catalog
from test_catalog import ReadingBy, read_shot

def read(path):
    time.sleep(float(sys.argv[3]))
    return read_shot(path)

with Catalog.open(sys.argv[1]) as catalog:
    print(catalog.add([sys.argv[2]], jobs=2, reading=ReadingBy(function=read)).new)
"""

COMMAND = """
import sys, time
import c5.io.raw
from c5.cli.catalog import app
from test_catalog import read_shot

def read(path, **levels):
    time.sleep(0.1)
    return read_shot(path)

c5.io.raw.read_photograph = read
app()
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ | {"PYTHONPATH": path})


def wait_for_rows(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists():
            with closing(sqlite3.connect(path)) as connection:
                (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
                if tables and connection.execute("SELECT COUNT(*) FROM photograph").fetchone()[0]:
                    return
        time.sleep(0.01)
    raise AssertionError(f"nothing was written: {process.communicate()}")


def test_killed_and_resumed_is_uninterrupted(tmp_path: Path) -> None:
    save_many(tmp_path / "photos", 50)
    process = start(ADD, tmp_path / "killed.db", tmp_path / "photos", 0.1)
    wait_for_rows(tmp_path / "killed.db", process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert 0 < len(rows_of(tmp_path / "killed.db")) < 50
    for name in ("killed.db", "whole.db"):
        with Catalog.open(tmp_path / name) as catalog:
            catalog.add([tmp_path / "photos"], reading=SHOTS)
    assert rows_of(tmp_path / "killed.db") == rows_of(tmp_path / "whole.db")


def test_interrupted_it_says_how_to_go_on(tmp_path: Path) -> None:
    save_many(tmp_path / "photos", 60)
    process = start(COMMAND, "add", tmp_path / "photos", "--catalog", tmp_path / "c.db", "--jobs", 1)
    wait_for_rows(tmp_path / "c.db", process)
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == ""
    assert len(complained.splitlines()) == 1
    assert complained.startswith("c5: stopped;")
    assert "same command" in complained
    kept = len(rows_of(tmp_path / "c.db"))
    assert 0 < kept < 60
    with Catalog.open(tmp_path / "c.db") as catalog:
        added = catalog.add([tmp_path / "photos"], reading=SHOTS)
    assert (added.new, added.unchanged) == (60 - kept, kept)


def test_an_interruption_at_the_start_of_a_transaction_leaves_none_open(tmp_path: Path) -> None:
    class Interrupted(sqlite3.Connection):
        def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
            cursor = super().execute(statement, *arguments)
            if statement.startswith("BEGIN"):
                raise KeyboardInterrupt
            return cursor

    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None, factory=Interrupted)) as connection:
        for begin in (transaction, snapshot):
            with pytest.raises(KeyboardInterrupt), begin(connection):
                pass
            assert not connection.in_transaction


def test_two_processes_at_the_same_time_double_nothing(tmp_path: Path) -> None:
    save_many(tmp_path / "photos", 30)
    processes = [start(ADD, tmp_path / "both.db", tmp_path / "photos", 0.01) for _ in range(2)]
    for process in processes:
        _, complained = process.communicate(timeout=60)
        assert process.returncode == 0, complained
    with Catalog.open(tmp_path / "one.db") as catalog:
        catalog.add([tmp_path / "photos"], reading=SHOTS)
    assert rows_of(tmp_path / "both.db") == rows_of(tmp_path / "one.db")


# Rolls


def same(found: Photo, expected: Photo) -> bool:
    """Whether two photographs are the same to the last bit."""

    def flat(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.dtype, value.shape, value.tobytes()
        return [flat(getattr(value, part.name)) for part in fields(value)] if is_dataclass(value) else value

    return bool(flat(found) == flat(expected))


def test_entries_hold_what_was_read(catalog: Catalog, photos: Path) -> None:
    catalog.add([photos], reading=SHOTS)
    for path in photos.iterdir():
        entry, read = catalog.find(path, stored_grid()), read_photo(path, stored_grid(), SHOTS)
        assert isinstance(read, Photo)
        assert entry is not None
        assert same(entry, replace(read, reading=Reading()))


def test_what_the_catalog_holds_is_what_reading_gives(catalog: Catalog, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    camera = VirtualCamera.random(rng)
    for index, photo in enumerate(render_roll(camera, 3, rng, (120, 180))):
        layout = Layout(time=datetime(2026, 6, 1, 12, index), orientation=6 if index else 1)
        write_dng(tmp_path / "photos" / f"{index}.dng", photo, camera, layout)
    catalog.add([tmp_path / "photos"])
    grid = load_model().grid
    for path in sorted((tmp_path / "photos").iterdir()):
        held, read = catalog.find(path, grid), read_photo(path, grid)
        assert held is not None
        assert isinstance(read, Photo)
        assert held.matrices is not None
        assert same(held, read)
        assert catalog.find_camera_and_time(path) == (read.camera, read.time)
        # Another grid or another way of reading is another photograph, and so is a file that has changed.
        assert catalog.find(path, grid.without_strips) is None
        assert catalog.find(path, grid, Reading(black=100)) is None
        assert catalog.find(path, grid, Reading(assume_srgb=True)) is None
        os.utime(path, ns=(0, next(ticks)))
        assert catalog.find(path, grid) is None
        assert catalog.find_camera_and_time(path) is None
    assert catalog.find(tmp_path / "nothing.dng", grid) is None


def test_histograms_of_another_grid_are_made_again(catalog: Catalog, photos: Path, model: Model) -> None:
    catalog.add([photos], reading=of_camera("c"))
    fresh = rows_of(catalog.path)
    roll = catalog.roll(model, "c")
    with closing(sqlite3.connect(catalog.path)) as connection, connection:
        few = "(SELECT id FROM photograph WHERE number < 3)"
        connection.execute(f"UPDATE details SET packed = X'00' WHERE photograph IN {few}")
        connection.execute(f"UPDATE photograph SET grid = 'of another version' WHERE id IN {few}")
    # Nothing of them is used, and nothing is wrong.
    assert sum(catalog.find(path, stored_grid()) is None for path in photos.iterdir()) == 3
    again = catalog.roll(model, "c")
    assert roll is not None
    assert roll.profile is not None
    assert again is not None
    assert again.profile is not None
    assert again.size == 8
    for kept, made in zip(again.profile.features, roll.profile.features, strict=True):
        np.testing.assert_array_equal(kept, made)
    added = catalog.add([photos], reading=of_camera("c"))
    assert (added.changed, added.unchanged) == (3, 5)
    assert rows_of(catalog.path) == fresh


def test_a_camera_that_was_named_stays_named(catalog: Catalog, photos: Path) -> None:
    catalog.add([photos], reading=of_camera(None), camera="Holga")
    with closing(sqlite3.connect(catalog.path)) as connection, connection:
        connection.execute("UPDATE photograph SET grid = 'of another version'")
    assert catalog.add([photos], reading=of_camera(None)).changed == 8
    assert [(row.camera, row.images) for row in catalog.status()] == [("Holga", 8)]


def draw(catalog: Catalog, camera: str, number: int, selection: Selection) -> list[Path]:
    """The photographs of which a roll is made."""
    with closing(sqlite3.connect(catalog.path)) as connection:
        return [candidate.path for candidate in draw_candidates(connection, camera, number, selection)]


@given(number=st.integers(1, 12), selection=st.sampled_from(SELECTIONS))
def test_a_roll_is_of_different_photographs_of_the_camera(
    number: int, selection: Selection, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.getbasetemp() / "roll"
    if not base.exists():
        paths = save_many(base / "a", 10)
        shutil.copy2(paths[0], base / "a" / "copy.npy")
        with Catalog.open(base / "c.db") as catalog:
            catalog.add([base / "a"], reading=of_camera("Canon EOS 5D"))
            save(base / "b" / "b.npy", 90)
            catalog.add([base / "b"], reading=of_camera("Canon EOS 5D Mark II"))
    with Catalog.open(base / "c.db") as catalog:
        roll = draw(catalog, "Canon EOS 5D", number, selection)
        assert draw(catalog, "Canon EOS 5D", number, selection) == roll
        for absent in ("Canon EOS", "canon eos 5d", "", "Canon EOS 5D%"):
            assert draw(catalog, absent, number, selection) == []
    assert len(roll) == min(number, 10)
    assert len({path.read_bytes() for path in roll}) == len(roll)  # a copy is the same photograph
    assert all(path.parent == base / "a" for path in roll)


def test_recent_is_by_capture_time_and_vivid_by_chroma(catalog: Catalog, tmp_path: Path) -> None:
    paths = save_many(tmp_path / "photos", 40)
    times = {path: datetime(2024, 1, 1) + timedelta(hours=(7 * i) % 40) for i, path in enumerate(paths)}
    timeless = paths[3]

    def read(path: Path) -> Photograph:
        return Photograph(
            LinearImage(read_image(path).rgb, camera="c"), (0, 0), None if path == timeless else times[path]
        )

    catalog.add([tmp_path], reading=ReadingBy(function=read))
    recent = draw(catalog, "c", 40, Selection.RECENT)
    assert recent == [*sorted((path for path in paths if path != timeless), key=times.__getitem__)[::-1], timeless]
    vivid = [float(histogram(read_image(path), stored_grid()).vividness) for path in paths]
    assert draw(catalog, "c", 25, Selection.VIVID) == [paths[i] for i in np.argsort(vivid)[:-26:-1]]
    status = catalog.status()[0]
    assert (status.oldest, status.newest) == (min(times.values()), max(times.values()))


def test_random_rolls_depend_on_content_alone(catalog: Catalog, tmp_path: Path) -> None:
    paths = save_many(tmp_path / "photos", 30)
    catalog.add([tmp_path], reading=of_camera("c"))
    before = [digest_file(os.fsencode(path))[1] for path in draw(catalog, "c", 9, Selection.RANDOM)]
    for index, path in enumerate(paths):
        path.rename(path.with_name(f"{(7 * index) % 30:03} again.npy"))
    catalog.add([tmp_path], reading=of_camera("c"))
    assert [digest_file(os.fsencode(path))[1] for path in draw(catalog, "c", 9, Selection.RANDOM)] == before
    with pytest.raises(ParameterError, match="at least 1"):
        draw(catalog, "c", 0, Selection.RANDOM)


@pytest.mark.parametrize("query", ["ORDER BY vividness DESC", "ORDER BY time DESC, modified DESC", "ORDER BY digest"])
def test_rolls_go_by_an_index(catalog: Catalog, query: str) -> None:
    with closing(sqlite3.connect(catalog.path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN SELECT id, path FROM photograph WHERE camera = 'c' {query}")
        steps = [row[3] for row in plan]
    assert all("USING INDEX" in step for step in steps), steps


# Profiles


class CountingModel(Model):
    """A model that counts how often it is calibrated."""

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file)
        self.calibrations = 0

    def calibrate_histograms(self, histograms: Any, camera: str | None = None) -> Any:
        self.calibrations += 1
        return super().calibrate_histograms(histograms, camera)


def test_a_profile_is_made_once_for_each_roll(catalog: Catalog, photos: Path, model: Model) -> None:
    counting = CountingModel(model.file)
    catalog.add([photos], reading=of_camera("c"))
    assert catalog.roll(counting, "nobody's") is None
    first = catalog.roll(counting, "c")
    assert first is not None
    profile, paths = first.profile, first.paths
    assert profile is not None
    assert sorted(paths) == sorted(photos.iterdir())
    assert (profile.camera, profile.n_images, counting.calibrations) == ("c", 8, 1)
    expected = model.calibrate_histograms([histogram(read_image(path), model.grid) for path in paths])
    for kept, fresh in zip(profile.features, expected.features, strict=True):
        np.testing.assert_array_equal(kept, fresh)

    again = catalog.roll(counting, "c")
    assert again is not None
    assert again.profile is not None
    assert counting.calibrations == 1
    assert again.size == 8
    for kept, fresh in zip(again.profile.features, profile.features, strict=True):
        np.testing.assert_array_equal(kept, fresh)
    model.estimate(read_image(paths[0]), again.profile)

    save(photos / "one-more.npy", 95)
    catalog.add([photos], reading=of_camera("c"))
    changed = catalog.roll(counting, "c")
    assert changed is not None
    assert (counting.calibrations, changed.size) == (2, 9)
    catalog.roll(counting, "c", 3, Selection.RECENT)
    assert counting.calibrations == 3


def test_a_damaged_profile_is_made_again(catalog: Catalog, photos: Path, model: Model) -> None:
    counting = CountingModel(model.file)
    catalog.add([photos], reading=of_camera("c"))
    catalog.roll(counting, "c")
    with closing(sqlite3.connect(catalog.path)) as connection, connection:
        connection.execute("UPDATE profile SET features = X'00'")
    assert catalog.roll(counting, "c") is not None
    assert counting.calibrations == 2


def test_a_catalog_that_can_only_be_read_gives_profiles(
    tmp_path: Path, photos: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Catalog.open(tmp_path / "data" / "catalog.db") as catalog:
        catalog.add([photos], reading=of_camera("c"))
    before = sorted((path, path.read_bytes()) for path in catalog.path.parent.iterdir())
    writable = os.access
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != catalog.path.parent and writable(path, mode))
    with Catalog.open(catalog.path) as fixed:
        for _ in range(2):
            found = fixed.roll(model, "c")
            assert found is not None
            assert found.size == 8
        with pytest.raises(WriteError, match="another file"):
            fixed.forget(photos)
    assert sorted((path, path.read_bytes()) for path in catalog.path.parent.iterdir()) == before


def test_a_model_on_another_grid_reads_the_photographs(catalog: Catalog, photos: Path, model: Model) -> None:
    file = ModelFile("other", "separate", Grid.published(), 7, {"query": b"never run"})
    other = CountingModel(file)
    catalog.add([photos], reading=of_camera("c"))
    opened: list[Path] = []

    def read(path: Path) -> Photograph:
        opened.append(path)
        return of_camera("c").read(path)

    made = catalog.roll(other, "c", reading=ReadingBy(function=read))
    assert made is not None
    assert made.profile is not None
    assert tuple(sorted(opened)) == made.paths
    assert made.size == len(made.paths) == 6  # as many as the model takes
    first = histogram(of_camera("c").read(opened[0]).image, Grid.published())
    np.testing.assert_array_equal(made.profile.features[0][0], first.seen)
    assert catalog.roll(other, "c", reading=REFUSED) is not None


def test_the_same_files_read_in_another_way_make_another_profile(catalog: Catalog, photos: Path, model: Model) -> None:
    counting = CountingModel(model.file)
    catalog.add([photos], reading=of_camera("c"))
    catalog.roll(counting, "c")
    catalog.forget(photos)
    catalog.add([photos], reading=replace(of_camera("c"), black=100))
    catalog.roll(counting, "c")
    assert counting.calibrations == 2


# What is wrong with a catalog


def test_a_bad_catalog_is_one_line_with_a_remedy(tmp_path: Path, photos: Path) -> None:
    def make(name: str) -> Path:
        with Catalog.open(tmp_path / name) as catalog:
            catalog.add([photos], reading=of_camera("c"))
        return tmp_path / name

    (tmp_path / "text.db").write_text("no database " * 100)
    newer = make("newer.db")
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("ALTER TABLE photograph ADD COLUMN lens TEXT")
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE songs (name)")
    whole = make("cut.db").read_bytes()
    (tmp_path / "cut.db").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "garbled.db").write_bytes(whole[:20000] + b"\x55" * (len(whole) - 20000))
    packed = make("packed.db")
    with closing(sqlite3.connect(packed)) as connection, connection:
        connection.execute("UPDATE details SET packed = X'00'")
    (tmp_path / "file").touch()
    cases: dict[Path, tuple[type[C5Error], str]] = {
        tmp_path / "text.db": (DataError, "add the photographs again"),
        newer: (DataError, "pip install --upgrade.*add the photographs again"),
        foreign: (DataError, "another program"),
        tmp_path / "cut.db": (DataError, "add the photographs again"),
        tmp_path / "garbled.db": (DataError, "add the photographs again"),
        packed: (DataError, "add the photographs again"),
        tmp_path / "file" / "c.db": (WriteError, "another place"),
        tmp_path: (WriteError, "another file"),
    }

    def use(path: Path) -> None:
        with Catalog.open(path) as catalog:
            catalog.roll(load_model(), "c", 8, Selection.VIVID)
            catalog.status()

    for path, (kind, remedy) in cases.items():
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(kind, match=remedy) as raised:
            use(path)
        assert "\n" not in str(raised.value)
        assert str(path) in str(raised.value)
        assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_catalog_held_by_another_program_says_so(
    catalog: Catalog, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("c5.photos.catalog.database.BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(catalog.path)) as other, Catalog.open(catalog.path) as second:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DataError, match="another program is writing"):
            second.add([photos], reading=SHOTS)
        assert second.status() == []  # reading does not wait
        other.execute("ROLLBACK")
        assert second.add([photos], reading=SHOTS).new == 8


# The command


def test_the_command_adds_shows_and_forgets(photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    runner = CliRunner()
    assert isinstance(runner.invoke(app, ["status"]).exception, ReadError)
    (photos / "eight-bit.png").write_bytes(imagecodecs.png_encode(np.full((9, 9, 3), 99, np.uint8)))
    (photos / "broken.npy").write_bytes(b"\x93NUMPY")
    added = runner.invoke(app, ["add", str(photos), "--jobs", "2", "--camera", "Holga [120]"])
    assert added.exit_code == 1  # one cannot be used
    assert "8 new, 0 changed, 0 moved, 0 deleted, 0 unchanged, 1 picture passed over" in added.output
    assert "broken.npy" in added.output
    assert default_path().is_relative_to(tmp_path)
    again = runner.invoke(app, ["add", str(photos)])
    assert again.exit_code == 1  # it still cannot be used
    assert "10 unchanged, 1 picture passed over" in again.output
    assert "broken.npy" in again.output
    assert "eight-bit.png" not in again.output
    named = runner.invoke(app, ["add", str(photos / "eight-bit.png")])
    assert named.exit_code == 1
    assert "not linear" in named.output
    shown = runner.invoke(app, ["status"])
    assert shown.exit_code == 0
    assert "Holga [120]" in shown.output
    lines = runner.invoke(app, ["status", "--json"]).output.splitlines()
    assert lines[0] == '{"camera": "Holga [120]", "images": 8, "failed": 0, "oldest": null, "newest": null}'
    listed = runner.invoke(app, ["status", "--failed"]).output
    assert "broken.npy" in listed
    assert "eight-bit.png" not in listed
    (photos / "broken.npy").unlink()
    calm = runner.invoke(app, ["add", str(photos)])
    assert calm.exit_code == 0, calm.output
    assert "1 picture passed over" in calm.output
    assert "9 forgotten" in runner.invoke(app, ["forget", str(photos)]).output
    assert runner.invoke(app, ["status", "--json"]).output == ""


def test_the_command_takes_levels_and_8_bit_files(tmp_path: Path) -> None:
    dark = tmp_path / "dark"
    dark.mkdir()
    numbers = (4096 * textured(1)).astype(np.uint16)
    np.save(dark / "a.npy", numbers + 512)
    eight = tmp_path / "eight" / "a.png"
    eight.parent.mkdir()
    eight.write_bytes(imagecodecs.png_encode((255 * textured(2)).astype(np.uint8)))
    file = ["--catalog", str(tmp_path / "levels.db"), "--camera", "c"]
    runner = CliRunner()
    assert runner.invoke(app, ["add", str(dark), *file, "--black", "512", "--white", "4608"]).exit_code == 0
    with Catalog.open(tmp_path / "levels.db") as catalog:
        entry = catalog.find(dark / "a.npy", stored_grid(), Reading(512, 4608))
    assert entry is not None
    expected = histogram(LinearImage((numbers / 4096).astype(np.float32)), stored_grid())
    assert entry.histograms is not None
    np.testing.assert_allclose(entry.histograms.stack, expected.stack, atol=1e-6)
    assert "1 picture passed over" in runner.invoke(app, ["add", str(eight.parent), *file]).output
    assert "1 changed" in runner.invoke(app, ["add", str(eight.parent), *file, "--assume-srgb"]).output
