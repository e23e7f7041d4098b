"""No option, name or link makes a command write over a file that c5 did not write; what it wrote it can replace."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from test_balance import run, save
from test_evaluation import write_manifest

from c5.errors import WriteError
from c5.io import files
from c5.io.files import check_folder, printable, write_file
from c5.io.marks import cut_signature, is_own, is_signed, sign
from c5.io.raw import RAW_SUFFIXES
from c5.photos.sidecars.adobe import set_white_balance as set_adobe
from c5.photos.sidecars.rawtherapee import set_white_balance as set_pp3


@pytest.fixture(autouse=True)
def _no_catalog_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c5.photos.catalog.default_path", lambda: tmp_path / "no catalog")


def encode(form: str, value: int = 90) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((8, 9, 3), value, np.uint8)).save(buffer, form)
    return buffer.getvalue()


def archive(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name in names:
            made.writestr(name, name)
    return buffer.getvalue()


SIGNED = {
    "a.jpg": encode("JPEG"),
    "a.png": encode("PNG"),
    "a.dng": encode("TIFF"),
    "a.md": b"# Results\n",
    "a.tex": b"\\begin{tabular}\n",
}

KNOWN = {
    "a.c5": (archive("model.json", "query.onnx"), archive("model.json", "query.onnx", "profile.onnx")),
    "a.pt": (b"c5 checkpoint 1\n\0\1", b"c5 checkpoint 1\n\2"),
    "a.csv": (b'file,camera,time\na,b,c\n"a\n,",b,c\n', b"file,camera,time\n"),
    "a.jsonl": (b'{"file":"a","by":"b"}\n{"by":1,"file":2}\n', b'{"file":"c","by":"d"}\n'),
    "a.json": (b'{"format":"c5-results",\n"rows":[1]}', b'{"format":"c5-results",\n"rows":[]}'),
}

FOREIGN = {
    "a.jpg": [encode("JPEG", 3), encode("PNG"), b"", b"\xff\xd8\xff", sign(encode("TIFF"))],
    "a.png": [encode("PNG", 3), encode("JPEG"), sign(encode("TIFF")), sign(encode("JPEG"))],
    "a.dng": [encode("TIFF", 3), b"II*\0" + bytes(99), b"\0" * 50, sign(encode("PNG"))],
    "a.md": [b"# Results\n", b"# Diary\n"],
    "a.tex": [b"\\begin{tabular}\n"],
    "a.c5": [archive("letter.txt", "word.xml"), b"PK", encode("TIFF")],
    "a.pt": [archive("archive/data.pkl"), b"c5 checkpoint 2\n", b"x"],
    "a.csv": [
        b"name,street,town\n",
        b"file",
        encode("TIFF"),
        b"",
        b"file,camera,time\na,b\n",
        b"file,camera,time,mine\n",
    ],
    "a.jsonl": [b'{"name":1,"street":2}\n', b"[1]", b"{", b'{"file":1}\n', b'{"file":1,"by":2}\n{"file":3}\n'],
    "a.json": [b'{"name":1,"street":2}', b"{", b"[]", b'{"format":"mine","rows":[]}', b'{"rows":[]}', b"{}"],
}


@pytest.mark.parametrize("name", SIGNED)
def test_a_signature_holds_until_a_byte_changes(name: str) -> None:
    data, suffix = SIGNED[name], Path(name).suffix
    signed = sign(data, suffix)
    assert not is_signed(data, suffix)
    assert is_signed(signed, suffix)
    assert cut_signature(signed, suffix) == data
    assert sign(signed, suffix) == signed
    for place in range(len(signed)):
        changed = bytearray(signed)
        changed[place] ^= 1
        assert not is_signed(bytes(changed), suffix)
    if suffix in (".jpg", ".png", ".dng"):  # and it is a picture as before
        before, after = (np.asarray(Image.open(io.BytesIO(each))) for each in (data, signed))
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", [*SIGNED, *KNOWN])
def test_only_what_c5_wrote_is_replaced(name: str, tmp_path: Path) -> None:
    made = KNOWN[name][1] if name in KNOWN else SIGNED[name] + b" "
    place = tmp_path / name
    for foreign in FOREIGN[name]:
        place.write_bytes(foreign)
        with pytest.raises(WriteError, match="was not written by c5, or has been changed since; choose another"):
            write_file(place, made)
        assert place.read_bytes() == foreign
    place.unlink()
    write_file(place, KNOWN[name][0] if name in KNOWN else SIGNED[name])
    write_file(place, made)
    assert cut_signature(place.read_bytes(), place.suffix) == made
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_mode_and_time_stay(tmp_path: Path) -> None:
    place = tmp_path / "a.csv"
    for mode in (0o600, 0o444, 0o640):
        place.unlink(missing_ok=True)
        write_file(place, KNOWN["a.csv"][0])
        place.chmod(mode)
        if os.geteuid() == 0:
            os.chown(place, 1234, 1235)
        os.utime(place, (1, 1))
        write_file(place, KNOWN["a.csv"][0])  # nothing changes
        assert place.stat().st_mtime == 1
        write_file(place, KNOWN["a.csv"][1])
        assert stat.S_IMODE(place.stat().st_mode) == mode
        assert os.geteuid() or (place.stat().st_uid, place.stat().st_gid) == (1234, 1235)
        assert place.stat().st_mtime > 1


KILLED = """
import os, signal, sys
import c5.io.files as files
files.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
files.write_file(sys.argv[1], b"a" * 100)
"""


def test_what_killed_runs_left_goes_and_nothing_else(tmp_path: Path) -> None:
    kept = [tmp_path / name for name in (".0123456789abcdef0123456789abcdef.c5", ".c5-notes.tmp", "a.tmp", ".hidden")]
    kept.append(tmp_path / f"{files.OWN_TEMPORARIES}{os.getppid()}-0123456789abcdef.tmp")  # of one that is at work
    kept.append(tmp_path / ".c5-ffffffff-1-0123456789abcdef.tmp")  # of another machine
    for path in kept:
        path.write_bytes(b"x")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out")], env=environment, check=False)
    left = set(tmp_path.iterdir()) - set(kept)
    assert len(left) == 1
    write_file(tmp_path / "other", b"b")
    assert set(tmp_path.iterdir()) == {*kept, tmp_path / "other"}


def test_a_folder_that_cannot_be_written_to_is_noticed_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("c5.io.raw.read_photograph", lambda *_, **__: pytest.fail("was read"))
    photo = save(tmp_path / "a.npy")
    check_folder(tmp_path / "new" / "er")
    assert not (tmp_path / "new").exists()
    for place in (photo, photo / "below"):
        code, _, stderr = run("balance", photo, "--json", "--out", place)
        assert (code, stderr.count("\n")) == (1, 1)
        assert "is a file; choose another place" in stderr
    monkeypatch.setattr(os, "access", lambda *_: False)  # as for anybody but the administrator
    with pytest.raises(WriteError, match="cannot be written to; choose another place"):
        check_folder(tmp_path / "new")
    with pytest.raises(WriteError, match="cannot be written to; choose another place"):
        write_file(tmp_path / "new", b"", dry_run=True)


def test_a_place_that_cannot_even_be_looked_at_is_refused_in_one_line(tmp_path: Path) -> None:
    code, _, stderr = run("demo", "--out", tmp_path / ("x" * 300))
    assert (code, stderr.count("\n")) == (1, 1)
    assert "File name too long; choose another place" in stderr


@pytest.mark.skipif(sys.platform == "darwin", reason="names there are UTF-8")
def test_names_that_terminals_would_obey_are_shown_safely_and_work(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    names = [b"\x1b[31mred.npy", b"two\nlines.npy", b"caf\xe9.npy", b"tab\t.npy", "\u202egpj.npy".encode()]
    photos = [save(folder / os.fsdecode(name), i) for i, name in enumerate(names)]
    catalog, out = tmp_path / "catalog.db", tmp_path / "out"
    code, _, stderr = run("catalog", "add", folder, "--catalog", catalog, "--camera", "A")
    assert code == 0, stderr
    options = ("--preview", "--sheet", "--json", "--csv", "--out", out, "--catalog", catalog, "--camera", "A")
    code, stdout, stderr = run("balance", folder, *options)
    assert code == 0, stderr
    expected = {printable(path) for path in photos}
    assert {json.loads(line)["file"] for line in (out / "balance.jsonl").read_text().splitlines()} == expected
    with (out / "balance.csv").open(encoding="utf-8", newline="") as table:
        assert {row["file"] for row in csv.DictReader(table)} == expected
    for text in (stdout, stderr, (out / "balance.csv").read_text()):
        assert not {letter for letter in text if not letter.isprintable()} - {"\n"}
    assert {os.fsencode(path.name) for path in out.glob("*.c5.jpg")} == {name + b".c5.jpg" for name in names}
    (folder / os.fsdecode(b"bad\x1b\xff\n.dng")).write_bytes(b"II*\0")
    for command in (("balance", folder, "--json"), ("catalog", "add", folder, "--catalog", catalog)) * 2:
        code, stdout, stderr = run(*command)
        assert code == 1
        assert f"c5: {printable(folder)}/bad\\x1b\\udcff\\n.dng: " in stderr
        assert not {letter for letter in stdout + stderr if not letter.isprintable()} - {"\n"}


# Originals, in all manners of disguise --------------------------------------------------------------------------------

Random = np.random.Generator


def contents(folder: Path) -> dict[Path, str]:
    """A digest of every file, links not followed."""
    regular = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in regular}


def plant(folder: Path, rng: Random, raw: bytes) -> Path:
    """A small library: raw files and other people's files, in folders with names in common."""
    people = {
        "sheet.jpg": encode("JPEG"), "balance.csv": b"name,street,town\n", "balance.jsonl": b"{}\n",
        "a.png": encode("PNG"), "a.dng.c5.jpg": encode("JPEG"), "b.NEF.c5.png": encode("PNG"), "table.md": b"# Diary\n",
        "notes.txt": b"hello",
        "a.tif": encode("TIFF"), "a.xmp": set_adobe(None, 4000, 3), "a.dng.pp3": set_pp3(None, 4000, 1.1),
        "roll/manifest.csv": b"path,camera,r,g,b\na.dng,Mine,1,1,1\n", "catalog.db": b"not a database",
        "checkpoint.pt": archive("archive/data.pkl"), "config.json": b"{}", "pack.c5data": b"mine",
    }  # fmt: skip
    originals = {name: raw + rng.bytes(4) for name in ("a.dng", "A.DNG", "b.NEF", "b.dng", "c\u0327.dng", "\u00e7.dng")}
    for place in ("day1", "day2", "day1/more"):
        for name, data in (people | originals).items():
            if rng.uniform() < 0.6 or name in ("a.dng", "b.NEF"):
                path = folder / place / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
    return folder


def disguise(folder: Path, originals: list[Path], rng: Random) -> None:
    """Links and hard links to originals, where outputs go."""
    (folder / "linked").symlink_to(folder / "day1")
    out = folder / "out"
    (out / "day1").mkdir(parents=True)
    endings = ("", ".c5.jpg", ".c5.png", ".xmp", ".pp3")
    names = [f"{name}{ending}" for name in ("a.dng", "b.NEF", "A.DNG") for ending in endings]
    names += ["a.xmp", "b.xmp", "sheet.jpg", "sheet-2.jpg", "balance.csv", "balance.jsonl", "x.c5profile", "x.png"]
    for name in names:
        for place in (out, out / "day1"):
            target = originals[rng.integers(len(originals))]
            match rng.integers(4):
                case 0:
                    (place / name).symlink_to(target)
                case 1:
                    os.link(target, place / name)
                case 2:
                    (place / name).symlink_to(os.path.relpath(target, place))


def spell(path: Path, rng: Random) -> str:
    """A path in one of many ways."""
    text = str(path)
    match rng.integers(5):
        case 0:
            return text.replace("/day", "//./day")
        case 1:
            return str(path.parent / path.name / ".." / path.name) if path.is_dir() else text
        case 2:
            return text.replace("/day1", "/linked")
        case 3:
            return os.path.relpath(path)
    return text


def commands(folder: Path, rng: Random) -> Iterator[list[str]]:
    kinds = ["--preview", "--png", "--xmp", "--pp3", "--darktable", "--dng", "--sheet", "--json", "--csv"]
    extra = ["--overwrite", "--replace-custom", "--dry-run", "--undo", "--smooth"]
    places = ["day1", "day2", "day1/more", "out", "out/day1", "linked", "new", "day1/../out", "day2/a.dng"]

    def pick(items: list[str], share: float) -> list[str]:
        return [item for item in items if rng.uniform() < share]

    for _ in range(10):
        named = rng.choice(["day1", "day2", "day1/more", "day1/a.dng", "day2/b.NEF", "linked"], 2)
        given = [folder / str(name) for name in named]
        chosen = pick(kinds, 0.5)
        out = ["--out", spell(folder / str(rng.choice(places)), rng)] if rng.uniform() < 0.8 else []
        yield ["balance", *(spell(path, rng) for path in given), *chosen, *out, *pick(extra, 0.3), "--overwrite"]


@pytest.mark.parametrize("seed", range(3))
def test_originals_are_sacred(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    raw = save(tmp_path / "raw" / "a.dng", seed).read_bytes()
    folder = plant(tmp_path / "photos", rng, raw)
    before = contents(folder)
    disguise(folder, sorted(before), rng)
    disguises = contents(folder)
    monkeypatch.chdir(folder / "day1")
    sidecars = {path for path in before if path.suffix in (".xmp", ".pp3")}
    made: set[Path] = set()
    for command in commands(folder, rng):
        run(*command)
        after = contents(folder)
        for path, digest in before.items():
            assert path in sidecars or after.get(path) == digest, command
        made |= after.keys() - disguises.keys()
    assert {".jpg", ".xmp", ".pp3", ".dng"} <= {path.suffix for path in made}
    # What was written into sidecars of others goes again, and nothing else does.
    for place in ([], ["--out", folder / "out"], ["--out", folder / "new"], ["--out", folder / "day2"]):
        run("balance", folder / "day1", folder / "day2", "--undo", *place)
        run("balance", folder / "day1", "--undo", *place)
    after = contents(folder)
    assert {path: after.get(path) for path in before} == before


COMMANDS = {
    "calibrate": "calibrate photos -o out/x.c5profile --overwrite",
    "explain": "explain photos/a.dng -o out/x.png --overwrite",
    "catalog": "catalog add photos --catalog out/x.db",
    "data pack": "data pack set -o out/x.c5data --overwrite",
    "data prepare": "data prepare set -o out/x.c5set --overwrite --for ffcc",
    "augment": "augment set -o out/x.c5data --augmentation sampling --made 2 --plots out --overwrite",
    "demo": "demo -o out --count 1 --method gray-world --overwrite",
    "evaluate": "evaluate set -o out --protocol cross-sensor --method gray-world --plots out --estimates out/x.csv "
    "--overwrite",
    "report": "report results -o out/x.md --plots out --overwrite",
    "train": "train set -o out --recipe plain --epochs 1 --overwrite",
    "balance": "balance photos --preview --png --sheet --json --csv --dng -o out --overwrite",
}
"""Every command that writes files which it does not merge into, and what is not of a run that goes on."""

HIDDEN = {"catalog": ["x.db-wal", "x.db-journal"], "data pack": ["x.c5data.part"], "data prepare": ["x.c5set.part"]}
"""What is gone when they end."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands work on."""
    desk = tmp_path_factory.mktemp("desk")
    for seed, name in enumerate(("a", "b")):
        save(desk / "photos" / f"{name}.dng", seed)
    write_manifest(desk / "set", ("Alpha", "Beta"))
    (desk / "results").mkdir()
    return desk


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_replaces_what_is_in_its_way(name: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An original in the place of each file that a command writes stays, whatever leads there, and so does a link."""
    if name in ("train", "data prepare", "evaluate", "augment", "report"):
        pytest.importorskip("torch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(desk / "cache"))
    monkeypatch.chdir(desk)
    out, words = desk / "out", COMMANDS[name].split()
    shutil.rmtree(out, ignore_errors=True)
    assert run(*words)[0] == 0
    if name == "evaluate":
        shutil.copy(out / "results.json", desk / "results" / "cross.json")
    made = [path.relative_to(out) for path in out.rglob("*") if path.is_file()]
    made = [path for path in made if "tensorboard" not in path.parts and not path.name.endswith(("-wal", "-shm"))]
    if name == "demo":  # where the others cost a rendering each, and are those of other commands
        made = [path for path in made if path.parent.name == "roll"]
    disguises: list[Callable[[Path, Path], object]] = [shutil.copy, os.symlink, os.link]
    for index, place in enumerate([*sorted(made), *map(Path, HIDDEN.get(name, []))]):
        shutil.rmtree(out)
        (out / place).parent.mkdir(parents=True)
        original = save(desk / "originals" / "a.dng", index)
        disguises[index % 3](original, out / place)
        before = contents(desk / "photos") | contents(desk / "originals") | contents(out)
        spelled = [word.replace("out/", "photos/.././out//") for word in words] if index % 2 else words
        code, _, stderr = run(*spelled)
        after = contents(desk / "photos") | contents(desk / "originals") | contents(out)
        assert {path: after.get(path) for path in before} == before, place
        assert os.path.lexists(out / place)
        assert code == 1, place
        assert str(place.name) in stderr


def test_what_is_in_the_catalog_stays_even_if_c5_wrote_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = ("demo", "-o", tmp_path / "demo", "--count", "1", "--method", "gray-world")
    assert run(*demo)[0] == 0
    monkeypatch.setattr("c5.photos.catalog.default_path", lambda: tmp_path / "demo" / "catalog.db")
    before = contents(tmp_path / "demo" / "roll")
    code, _, stderr = run(*demo, "--overwrite", "--seed", "3")
    assert code == 1
    assert ".dng: is in the catalog; choose another name" in stderr
    assert contents(tmp_path / "demo" / "roll") == before


def test_every_kind_of_raw_file_is_foreign() -> None:
    starts = [b"II*\0", b"MM\0*", b"IIRO", b"IIRS", b"IIU\0", b"\0\0\0\x18ftypcrx ", b"FUJIFILMCCD-RAW", b"FOVb", b""]
    rng = np.random.default_rng(0)
    made = [*SIGNED.items(), *((name, pair[0]) for name, pair in KNOWN.items())]
    for start in starts:
        for name, data in made:
            for suffix in (*sorted(RAW_SUFFIXES)[:3], Path(name).suffix):
                assert not is_own(start + rng.bytes(200), data, suffix)


# The command ----------------------------------------------------------------------------------------------------------


def test_the_same_name_in_another_folder_is_another_photograph(tmp_path: Path) -> None:
    for i, name in enumerate(("day1/a.dng", "day2/a.dng")):
        save(tmp_path / name, i)
    before = contents(tmp_path)
    code, _, stderr = run("balance", tmp_path / "day2", "--dng", "--out", tmp_path / "day1", "--overwrite")
    assert code == 1
    assert f"{tmp_path / 'day1' / 'a.dng'}: was not written by c5" in stderr
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.dng.c5.jpg").symlink_to(tmp_path / "day1" / "a.dng")
    code, _, stderr = run("balance", tmp_path / "day2", "--preview", "--out", out, "--overwrite")
    assert code == 1
    assert "was not written by c5" in stderr
    assert contents(tmp_path) == before


def test_what_the_catalog_holds_is_not_replaced_even_if_c5_wrote_it(tmp_path: Path) -> None:
    photos, copies, catalog = save(tmp_path / "p" / "a.dng").parent, tmp_path / "copies", tmp_path / "catalog.db"
    balance = ("balance", photos, "--catalog", catalog, "--dng", "--out", copies)
    assert run("catalog", "add", photos, "--catalog", catalog)[0] == 0
    assert run(*balance)[0] == 0
    assert run(*balance, "--overwrite")[0] == 0
    assert run("catalog", "add", copies, "--catalog", catalog)[0] == 0
    assert run(*balance)[0] == 0
    code, _, stderr = run(*balance, "--overwrite")
    assert code == 1
    assert f"{copies / 'a.dng'} is in the catalog; write to another folder" in stderr


CUSTOM = {"a.xmp": set_adobe(None, 4000, 3), "a.dng.pp3": set_pp3(None, 4000, 1.1)}


def test_a_balance_set_by_hand_stays_unless_asked_for(tmp_path: Path) -> None:
    raw = save(tmp_path / "a.dng")
    for (name, data), mode in zip(CUSTOM.items(), (0o600, 0o444), strict=True):
        (tmp_path / name).write_bytes(data)
        (tmp_path / name).chmod(mode)
    kinds = ("--xmp", "--pp3")
    code, _, stderr = run("balance", raw, *kinds, "--overwrite")
    assert code == 0
    assert {name: (tmp_path / name).read_bytes() for name in CUSTOM} == CUSTOM
    assert stderr.count("left alone: ") == 2
    assert "2 set by hand, 0 failed; --replace-custom replaces what was set by hand\n" in stderr
    assert run("balance", raw, *kinds, "--replace-custom")[0] == 0
    for (name, data), mode in zip(CUSTOM.items(), (0o600, 0o444), strict=True):
        assert (tmp_path / name).read_bytes() != data
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
    code, _, stderr = run("balance", raw, "--undo")
    assert code == 0
    assert stderr.splitlines()[-1] == "0 removed, 2 restored, 0 kept with your changes, 0 failed"
    assert {name: (tmp_path / name).read_bytes() for name in CUSTOM} == CUSTOM


def test_undo_takes_back_all_that_was_written_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos, out = tmp_path / "photos", tmp_path / "out"
    for i, name in enumerate(("card1/a.dng", "card2/a.dng", "card2/b.dng")):
        save(photos / name, i)
    (photos / "card1" / "a.dng.xmp").write_bytes(b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>')
    (photos / "card2" / "b.dng.c5.jpg").write_bytes(encode("JPEG"))  # somebody's
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    kinds = ("--preview", "--png", "--xmp", "--pp3", "--darktable", "--sheet")
    code, stdout, _ = run("balance", photos, *kinds, "--overwrite", "--dry-run")
    assert contents(tmp_path) == before
    planned = {line.split(" ", 2)[2] for line in stdout.splitlines() if line.startswith("would ")}
    assert run("balance", photos, *kinds, "--overwrite")[0] == code == 1
    made = {path for path, digest in contents(tmp_path).items() if before.get(path) != digest}
    assert {tmp_path / path for path in planned} == made
    assert run("balance", photos, *kinds, "--dng", "--out", out)[0] == 0
    with_all = contents(tmp_path)
    assert run("balance", photos, "--undo", "--dry-run")[0] == 0
    assert contents(tmp_path) == with_all
    assert run("balance", photos, "--undo", "--xmp")[0] == 0  # these alone
    assert with_all.keys() - contents(tmp_path).keys() == set(photos.rglob("?.xmp")) | {
        photos / name for name in ("card1/a.xmp", "card2/a.xmp", "card2/b.xmp")
    }
    assert run("balance", photos, "--undo")[0] == 0
    assert {path: digest for path, digest in contents(tmp_path).items() if out not in path.parents} == before
    assert run("balance", photos, "--undo", "--out", out)[0] == 0
    assert contents(tmp_path) == before
    code, _, stderr = run("balance", photos, "--undo")
    assert (code, stderr) == (0, "0 removed, 0 restored, 0 kept with your changes, 0 failed\n")
    code, _, stderr = run("balance", tmp_path / "phtoos", "--undo")
    assert (code, stderr.splitlines()[0]) == (1, f"c5: {tmp_path / 'phtoos'}: no such file; check the path")


def test_a_dry_run_tells_what_will_be_written(tmp_path: Path) -> None:
    """Nothing of a file that will be refused, and nothing of a balance that will be left alone."""
    photos, out = tmp_path / "photos", tmp_path / "out"
    for index, name in enumerate(("a.dng", "b.dng", "cut.dng", "c.jpg")):
        save(photos / name, index)
    (photos / "cut.dng").write_bytes((photos / "cut.dng").read_bytes()[:-3000])
    (photos / "b.dng.pp3").write_bytes(CUSTOM["a.dng.pp3"])
    (out / "other").mkdir(parents=True)
    (out / "sheet.jpg").write_bytes(encode("JPEG"))
    before = contents(tmp_path)
    words = ("balance", photos, photos / "c.jpg", "--pp3", "--preview", "--csv", "--sheet", "--out", out, "--overwrite")
    code, stdout, stderr = run(*words, "--dry-run")
    assert contents(tmp_path) == before
    would = {line.removeprefix("would write ") for line in stdout.splitlines() if line.startswith("would ")}
    assert would == {str(out / name) for name in ("a.dng.pp3", "a.dng.c5.jpg", "b.dng.c5.jpg", "balance.csv")}
    done, _, said = run(*words)
    assert code == done == 1
    assert {str(path) for path in contents(tmp_path).keys() - before.keys()} == would
    told = [[line for line in each.splitlines() if line.startswith("c5: ")] for each in (stderr, said)]
    assert told[0] == told[1]
    assert stderr.splitlines()[-1].replace("to write", "written") == said.splitlines()[-1]


def test_undo_leaves_the_contact_sheet_of_another_shoot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its photographs have the same names. More photographs than the sheet shows do no harm."""
    for index, name in enumerate(("one/a.dng", "one/b.dng", "two/a.dng", "two/b.dng")):
        save(tmp_path / name, index)
    monkeypatch.chdir(tmp_path)
    sheet = tmp_path / "sheet.jpg"
    assert run("balance", tmp_path / "one", "--sheet")[0] == 0
    for asked in ("two", "one/a.dng"):
        for flag in ([], ["--sheet"]):
            code, _, stderr = run("balance", tmp_path / asked, "--undo", *flag)
            assert (code, sheet.exists()) == (0, True)
            assert stderr.splitlines()[0] == "sheet.jpg: kept, since it shows other photographs"
    assert run("balance", tmp_path / "one", tmp_path / "two", "--undo")[0] == 0
    assert not sheet.exists()


def test_undo_never_removes_a_photograph(tmp_path: Path) -> None:
    """Not even one that c5 wrote, as those of the demo are."""
    roll = tmp_path / "roll"
    roll.mkdir()
    write_file(roll / "a.dng", save(tmp_path / "raw" / "a.dng").read_bytes())
    assert is_signed((roll / "a.dng").read_bytes())
    save(tmp_path / "other" / "a.dng", 7)
    before = contents(tmp_path)
    assert run("balance", roll, "--undo")[0] == 0
    assert run("balance", roll, "--undo", "--out", roll)[0] == 0
    assert run("balance", tmp_path / "other", "--undo", "--out", roll)[0] == 0
    assert contents(tmp_path) == before


def test_pictures_beside_raw_files_are_passed_over_unless_they_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    save(folder / "a.dng")
    for name, form in (("a.tif", "TIFF"), ("b.png", "PNG"), ("a.jpg", "JPEG"), ("c.JPG", "JPEG")):
        (folder / name).write_bytes(encode(form))
    code, stdout, stderr = run("balance", folder, "--json")
    assert (code, stdout.count("\n")) == (0, 1)
    assert stderr.splitlines()[-1].endswith("4 pictures passed over, 0 failed")
    for name in ("a.tif", "b.png", "a.jpg"):
        code, _, stderr = run("balance", folder, folder / name, "--json")
        assert code == 1
        assert f"c5: {folder / name}: " in stderr


def test_a_sheet_of_ours_is_replaced_and_no_other_stops_the_run(tmp_path: Path) -> None:
    photo, out = save(tmp_path / "a.npy"), tmp_path / "out"
    assert run("balance", photo, "--sheet", "--out", out)[0] == 0
    assert run("balance", photo, "--sheet", "--out", out, "--overwrite")[0] == 0
    (out / "sheet.jpg").write_bytes(encode("JPEG"))
    code, stdout, stderr = run("balance", photo, "--sheet", "--preview", "--out", out, "--overwrite")
    assert code == 1
    assert "a.npy" in stdout
    assert stderr.count("c5: ") == 1
    assert f"c5: {out / 'sheet.jpg'}: was not written by c5" in stderr
    assert (out / "a.npy.c5.jpg").exists()


def test_without_an_output_it_says_what_to_add(tmp_path: Path) -> None:
    photo = save(tmp_path / "a.npy")
    assert "to write files, add --preview, --png, --xmp, --pp3, --darktable or --dng" in run("balance", photo)[2]
    assert "to write files" not in run("balance", photo, "--json")[2]
    assert "to write files" not in run("balance", photo, "--preview")[2]
