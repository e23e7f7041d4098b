"""The command, run as a user runs it."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import typer
from command import c5
from laws import textured
from PIL import Image
from typer.testing import CliRunner, Result

from c5 import errors
from c5.classical import METHODS
from c5.cli.app import PANELS, app
from c5.cli.console import FLAGS, Follower, Log, progress_bar, show_progress
from c5.io.raw import read_photograph
from c5.training.config import RealTraining

PACKAGE = Path(errors.__file__).parent


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    done = c5("demo", "--out", folder, "--count", 6)
    assert done.returncode == 0, done.stderr
    assert str(folder / "sheet.jpg") in done.stdout.splitlines()[-1]
    return folder


def commands() -> dict[str, Any]:
    """Every command by what is typed for it, those of groups included."""
    root = typer.main.get_command(app)
    found = {}
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        below = getattr(command, "commands", {"": command})
        found.update({f"{name} {part}".strip(): each for part, each in below.items()})
    return found


def test_help_stands_in_three_groups_balance_first() -> None:
    shown = c5("--help").stdout
    names = re.findall(r"^│ (\w+) ", shown, re.MULTILINE)
    assert names == [name for panel in PANELS.values() for name in panel]
    assert names[:2] == ["balance", "catalog"]
    places = [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places)
    assert "--install-completion" in shown


def test_no_help_names_the_type_of_a_flag() -> None:
    for name in ("", "catalog", "data", *commands()):
        done = CliRunner().invoke(app, [*name.split(), "--help"])
        assert done.exit_code == 0, name
        assert "bool" not in done.stdout, name


GOING_ON = {"archive", "evaluate", "paper gather", "paper tables", "studio", "watch"}
"""Commands that go on where they were, and have nothing to replace."""


READ = {
    "--catalog",
    "--config",
    "--configdir",
    "--estimates",
    "--groups",
    "--matrices",
    "--profile",
    "--resume",
    "--roll",
}
WRITTEN = {"--c", "--estimates", "--libcamera", "--onnx", "--out", "--plots", "--tflite"}
"""Options that name files: the estimates are written by one command and read by others."""


def test_out_and_overwrite_are_alike_everywhere() -> None:
    for name, command in commands().items():
        options = {option.opts[0]: option for option in command.params if option.param_type_name == "option"}
        hints = inspect.signature(inspect.unwrap(command.callback), eval_str=True).parameters
        paths = {flag for flag, option in options.items() if "Path" in str(hints[option.name].annotation)}
        assert paths <= READ | WRITTEN, name
        assert "--out" not in options or options["--out"].opts == ["--out", "-o"], name
        written = paths & WRITTEN - ({"--estimates"} if name != "evaluate" else set())
        written -= {"--out"} if name in GOING_ON else set()
        assert ("--overwrite" in options) == bool(written) or name == "data label", name


def test_arguments_are_named_in_capitals() -> None:
    arguments = {each for command in commands().values() for each in command.params if each.param_type_name != "option"}
    assert {str(each.metavar) for each in arguments} <= {"DATA", "DIR", "FILE", "MODEL", "RUN", "SOURCE"}


def test_completion_offers_commands_and_options() -> None:
    completion = {"_C5_COMPLETE": "complete_bash", "COMP_WORDS": "c5 cat", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['c5']; from c5.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | completion, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["catalog"]


def constant_texts(path: Path) -> list[str]:
    """The texts in the code of a module, without docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in alone)
    return [node.value for node in texts if isinstance(node.value, str)]


def test_the_library_names_no_flags_and_no_commands() -> None:
    names = "|".join(name for panel in PANELS.values() for name in panel)
    variable_of_css = r"(?<!var\()--[a-z][\w-]*(?![\w-]*:)"
    commands_and_flags = re.compile(rf"(?<!pip install ){variable_of_css}|\bc5 ({names})")
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "cli":
            for text in constant_texts(path):
                assert not commands_and_flags.search(text), (path, text)


def test_every_remedy_that_is_translated_is_one_the_library_gives() -> None:
    library = "".join(path.read_text() for path in PACKAGE.rglob("*.py") if path.parent.name != "cli")
    for remedy in FLAGS:
        assert remedy in library


def test_remedies_are_translated_and_file_names_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "choose one of them" / "overwrite=True"
    folder.mkdir(parents=True)
    Image.fromarray(np.full((8, 8, 3), 99, np.uint8)).save(folder / "a.jpg")
    done = c5("estimate", folder / "a.jpg")
    assert str(folder / "a.jpg") in done.stderr
    assert done.stderr.endswith("or linearize them as sRGB (--assume-srgb)\n")


def test_nothing_that_a_terminal_would_obey_is_printed(tmp_path: Path) -> None:
    done = c5("estimate", tmp_path / "\x1b[31mred\x1b]0;title\x07.png")
    assert done.returncode == 1
    assert "\x1b" not in done.stderr
    assert "\\x1b[31mred" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("balance x.dng --strength 2", "'--strength': must be less than or equal to 1; see c5 balance --help"),
        ("balance x.dng --roll-size 0", "'--roll-size': must be greater than or equal to 1; see c5 balance --help"),
        ("balance", "Missing argument"),
        ("balance --nonsense", "--nonsense"),
        ("nonsense", "'nonsense'; see c5 --help"),
        ("catalog nonsense", "'nonsense'; see c5 catalog --help"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: str, said: str) -> None:
    done = c5(*arguments.split())
    assert done.returncode == 2
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("c5: ")
    assert said in line


def test_version() -> None:
    assert c5("--version").stdout.startswith("c5-awb ")
    assert c5().returncode == 2


def test_demo_writes_a_roll_its_truth_and_a_sheet(demo: Path) -> None:
    files = sorted((demo / "roll").glob("*.dng"))
    assert len(files) == 6
    assert read_photograph(files[0]).image.camera == (demo / "roll" / "manifest.csv").read_text().split(",")[5]
    assert len((demo / "roll" / "manifest.csv").read_text().splitlines()) == 7
    sheet = np.asarray(Image.open(demo / "sheet.jpg"))
    assert sheet.shape[1] > 1000
    assert sheet.std() > 30  # something is on it


def test_the_folder_of_a_demo_can_be_cataloged(demo: Path, tmp_path: Path) -> None:
    done = c5("catalog", "add", demo, "--catalog", tmp_path / "catalog.db")
    assert done.returncode == 0, done.stderr
    assert "6 new" in done.stdout


def test_estimate_prints_a_table_and_json(demo: Path) -> None:
    files = sorted((demo / "roll").glob("*.dng"))
    table = c5("estimate", *files, "--roll", demo / "roll")
    assert table.returncode == 0, table.stderr
    assert all(file.name in table.stdout for file in files)
    alone = c5("estimate", *files)
    lines = [json.loads(line) for line in c5("estimate", *files, "--json").stdout.splitlines()]
    assert [Path(line["file"]) for line in lines] == files
    for line in lines:
        assert np.linalg.norm(line["illuminant"]) == pytest.approx(1, abs=1e-4)
        assert line["gains"][1] == 1
        assert 0 < line["uncertainty_deg"] < line["bound_deg"]
        assert line["kelvin_low"] < line["kelvin"] < line["kelvin_high"]
        assert line["tint_bound"] > 0
    assert f"{lines[0]['kelvin']} ({lines[0]['kelvin_low']} to {lines[0]['kelvin_high']})" in alone.stdout


@pytest.mark.parametrize("method", METHODS)
def test_every_classical_method_runs(demo: Path, method: str) -> None:
    file = min((demo / "roll").glob("*.dng"))
    done = c5("estimate", file, "--method", method, "--json")
    assert done.returncode == 0, done.stderr
    assert "uncertainty_deg" not in json.loads(done.stdout)
    assert method in c5("methods").stdout


def test_a_profile_is_the_roll_it_was_made_of(demo: Path, tmp_path: Path) -> None:
    file = min((demo / "roll").glob("*.dng"))
    made = c5("calibrate", demo / "roll", "-o", tmp_path / "camera.c5profile")
    assert made.returncode == 0, made.stderr
    assert 'profile of 6 images for the model "bundled"' in " ".join(made.stdout.split())
    with_roll = c5("estimate", file, "--roll", demo / "roll", "--json").stdout
    assert c5("estimate", file, "--profile", tmp_path / "camera.c5profile", "--json").stdout == with_roll
    assert c5("estimate", file, "--json").stdout != with_roll


def test_a_roll_of_two_cameras_is_refused(demo: Path, tmp_path: Path) -> None:
    c5("demo", "--out", tmp_path, "--seed", 2, "--count", 1, "--method", "pca")
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for index, path in enumerate((min((demo / "roll").glob("*.dng")), *(tmp_path / "roll").glob("*.dng"))):
        (mixed / f"{index}.dng").write_bytes(path.read_bytes())
    done = c5("calibrate", mixed, "-o", tmp_path / "camera.c5profile")
    assert done.returncode == 1
    assert "a roll needs one camera's alone" in done.stderr
    assert not (tmp_path / "camera.c5profile").exists()


def test_a_roll_of_another_camera_is_named(demo: Path, tmp_path: Path) -> None:
    c5("demo", "--out", tmp_path, "--seed", 2, "--count", 1, "--method", "pca")
    own, other = (min((folder / "roll").glob("*.dng")) for folder in (demo, tmp_path))
    assert c5("calibrate", demo / "roll", "-o", tmp_path / "camera.c5profile").returncode == 0
    profile, roll = ("--profile", tmp_path / "camera.c5profile"), ("--roll", demo / "roll")
    picture = tmp_path / "a.png"
    for words in (["estimate", *roll], ["explain", *roll, "--out", picture, "--overwrite"], ["balance", *profile]):
        done = c5(*words, other)
        assert done.returncode == 0, done.stderr
        assert f"{other}: from Virtual" in done.stderr
        assert "but the profile is of Virtual" in done.stderr
        assert "the profile is of" not in c5(*words, own).stderr


def test_explain_draws_a_picture(demo: Path, tmp_path: Path) -> None:
    file = min((demo / "roll").glob("*.dng"))
    done = c5("explain", file, "--roll", demo / "roll", "-o", tmp_path / "out.png")
    assert done.returncode == 0, done.stderr
    picture = np.asarray(Image.open(tmp_path / "out.png"))
    assert picture.shape[0] > 600
    assert picture.std() > 30
    assert c5("calibrate", demo / "roll", "-o", tmp_path / "camera.npz").returncode == 0
    by_profile = c5("explain", file, "--profile", tmp_path / "camera.npz", "-o", tmp_path / "profile.png")
    assert by_profile.returncode == 0, by_profile.stderr
    again = np.asarray(Image.open(tmp_path / "profile.png"))
    assert (again[80:320] == picture[80:320, : again.shape[1]]).all()  # all but the thumbnails of the roll


def test_an_interrupt_while_the_command_loads_shows_no_traceback() -> None:
    load = "import sys, signal; from importlib import abc\n"
    interrupt = "class Stop(abc.MetaPathFinder):\n    def find_spec(self, name, *_):\n"
    interrupt += "        if name == 'typer': signal.raise_signal(signal.SIGINT)\n"
    code = f"{load}{interrupt}sys.meta_path.insert(0, Stop())\nfrom c5.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert done.stderr == ""


def bad_files(folder: Path) -> dict[str, tuple[list[object], str]]:
    """What is wrong, with the arguments and a part of the answer."""

    def png(name: str, pixels: np.ndarray) -> Path:
        (folder / name).write_bytes(imagecodecs.png_encode(pixels))
        return folder / name

    Image.fromarray(np.full((8, 8, 3), 99, np.uint8)).save(folder / "a.jpg")
    np.save(folder / "nan.npy", np.full((8, 8, 3), np.nan))
    np.save(folder / "gray.npy", np.full((8, 8), 0.5))
    (folder / "cut.png").write_bytes(png("whole.png", (textured(0) * 65535).astype(np.uint16)).read_bytes()[:300])
    (folder / "empty").mkdir()
    (folder / "bad.c5profile").write_text("no profile")
    good = folder / "whole.png"
    return {
        "missing file": (["estimate", folder / "none.png"], "no such file"),
        "a folder": (["estimate", folder], "is a folder"),
        "all black": (["estimate", png("black.png", np.zeros((8, 8, 3), np.uint16))], "no usable pixels"),
        "all clipped": (["estimate", png("white.png", np.full((8, 8, 3), 65535, np.uint16))], "no usable pixels"),
        "black, classical": (["estimate", folder / "black.png", "--method", "gray-world"], "black.png"),
        "NaN": (["estimate", folder / "nan.npy"], "NaN"),
        "dead channel": (["estimate", png("red.png", np.full((8, 8, 3), [999, 0, 0], np.uint16))], "red.png"),
        "one channel": (["estimate", folder / "gray.npy"], "shape"),
        "JPEG": (["estimate", folder / "a.jpg"], "--assume-srgb"),
        "cut short": (["estimate", folder / "cut.png"], "damaged"),
        "unknown method": (["estimate", good, "--method", "magic"], "gray-world"),
        "method and roll": (["estimate", good, "--method", "gray-world", "--roll", folder], "leave out --roll"),
        "unknown model": (["estimate", good, "--model", "magic"], "give bundled, or a .c5 file"),
        "foreign model": (["estimate", good, "--model", folder / "a.jpg"], "not a C5 model"),
        "bad profile": (["estimate", good, "--profile", folder / "bad.c5profile"], "c5 calibrate"),
        "no profile": (["estimate", good, "--profile", folder / "none"], "no such file"),
        "empty roll": (["estimate", good, "--roll", folder / "empty"], "no image"),
        "missing roll": (["calibrate", folder / "none", "-o", folder / "p"], "no such folder"),
        "a file as a roll": (["calibrate", good, "-o", folder / "p"], "is a file; give a folder"),
        "levels": (["estimate", good, "--black", "9", "--white", "8"], "black level"),
        "not weights": (["convert", folder / "a.jpg", "-o", folder / "m.c5"], "nothing was run"),
        "no data": (["train", folder / "empty", "-o", folder / "run"], "arrange them in one"),
        "nothing to train": (["train"], "--resume"),
        "no run": (["train", "--resume", folder / "empty"], "no training run"),
        "resume and more": (["train", "--resume", folder / "empty", "--seed", "3"], "--resume takes everything"),
        "method and model": (
            ["estimate", good, "--method", "bundled", "--model", "bundled"],
            "both choose the estimator",
        ),
        "no module": (["estimate", good, "--method", "no_such:Thing"], "no such module; install its package"),
        "exists": (["calibrate", folder, "-o", good], "--overwrite"),
        "exists too": (["explain", good, "-o", good], "--overwrite"),
        "exists as well": (["convert", folder / "a.jpg", "-o", good], "--overwrite"),
        "unwritable": (["calibrate", folder, "-o", good / "p"], "is a file; choose another place"),
        "a shoot and a method": (["demo", "--shoot", "hike", "--method", "x", "-o", folder / "s"], "leave it out"),
        "an unknown shoot": (["demo", "--shoot", "nonsense", "-o", folder / "s"], "there are wedding, hike"),
        "a picture of nothing": (["learn", folder, "-o", folder / "look.png"], "add --show"),
        "nothing to make": (["train", folder, "-o", folder / "run", "--made", "5"], "no images are made"),
        "no matrices needed": (
            ["train", folder, "-o", folder / "run", "--recipe", "plain", "--matrices", good],
            "this recipe needs none",
        ),
        "nothing to write": (["augment", folder, "-o", folder / "m.c5data", "--augmentation", "none"], "for training"),
        "none but made": (["augment", folder, "-o", folder / "m.c5data", "--augmentation", "paper:alone"], "training"),
    }


def test_every_bad_input_gets_one_clear_line(tmp_path: Path) -> None:
    for what, (arguments, answer) in bad_files(tmp_path).items():
        before = set(tmp_path.rglob("*"))
        done = c5(*arguments)
        lines = [line for line in done.stderr.splitlines() if line.strip() and "passed over" not in line]
        assert done.returncode == 1, what
        assert len(lines) == 1, (what, done.stderr)
        assert answer in lines[0], (what, done.stderr)
        assert lines[0].startswith("c5: "), what
        assert done.stdout == "", what
        assert set(tmp_path.rglob("*")) == before, what


def test_names_with_brackets_and_spaces(demo: Path, tmp_path: Path) -> None:
    source = min((demo / "roll").glob("*.dng")).read_bytes()
    for name in ("[a].dng", "[/x].dng", "[bold] ü.dng"):
        path = tmp_path / "of [b]" / name.replace("/", "")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(source)
        done = c5("estimate", path, "--roll", path.parent)
        assert done.returncode == 0, done.stderr
        assert path.name in done.stdout


def test_explain_takes_any_shape(tmp_path: Path) -> None:
    for shape in ((160, 400), (20, 4000), (1000, 1)):
        np.save(tmp_path / "a.npy", textured(1, *shape))
        done = c5("explain", tmp_path / "a.npy", "-o", tmp_path / "out.png", "--overwrite")
        assert done.returncode == 0, done.stderr


def test_a_second_demo_replaces_the_first(tmp_path: Path) -> None:
    for seed, count, overwrite in ((1, 4, []), (2, 2, ["--overwrite"])):
        arguments = ["demo", "-o", tmp_path, "--seed", seed, "--count", count, "--method", "pca"]
        assert c5(*arguments, *overwrite).returncode == 0
    refused = c5(*arguments)
    assert refused.returncode == 1
    assert "--overwrite" in refused.stderr
    assert len(list((tmp_path / "roll").glob("*.dng"))) == 2
    # A roll of a camera that is not a virtual one is somebody's own.
    (tmp_path / "roll" / "mine.png").write_bytes(b"mine")
    (tmp_path / "roll" / "manifest.csv").write_text("path,camera,r,g,b\nmine.png,D5,1,1,1\n")
    refused = c5("demo", "-o", tmp_path, "--count", 1, "--method", "pca", "--overwrite")
    assert refused.returncode == 1
    assert "manifest.csv: was not written by c5" in refused.stderr
    assert (tmp_path / "roll" / "mine.png").read_bytes() == b"mine"


def test_a_shoot_replaces_another_only_if_asked(tmp_path: Path) -> None:
    out = tmp_path / "shoot"
    out.mkdir()  # an empty folder is free

    def render(count: int, *more: str) -> Result:
        return CliRunner().invoke(app, ["demo", "--shoot", "charts", "-o", str(out), "--count", str(count), *more])

    assert render(2).exit_code == 0
    before = {path: path.read_bytes() for path in out.iterdir()}
    assert "exists already; choose another name or give --overwrite" in str(render(1).exception)
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    assert render(1, "--overwrite").exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == ["0001.dng", "truth.csv"]
    (out / "truth.csv").unlink()
    (out / "0001.dng").write_bytes(b"mine")
    assert "is not empty; write to another folder" in str(render(1, "--overwrite").exception)


def test_one_bad_file_does_not_stop_the_others(demo: Path) -> None:
    good = min((demo / "roll").glob("*.dng"))
    done = c5("estimate", "none.png", good, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["file"] == str(good)
    assert "none.png: no such file" in done.stderr


def test_srgb_is_linearized_when_asked(tmp_path: Path) -> None:
    encoded = np.clip(textured(2, 64, 96) * 2, 0, 1) ** (1 / 2.2) * 255
    Image.fromarray(encoded.astype(np.uint8)).save(tmp_path / "a.jpg", quality=98, subsampling=0)
    done = c5("estimate", tmp_path / "a.jpg", "--assume-srgb", "--method", "gray-world", "--json")
    expected = textured(2, 64, 96).mean(axis=(0, 1))
    found = json.loads(done.stdout)["illuminant"]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=0.02)


def test_progress_in_a_file_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("c5.cli.console.time.monotonic", lambda: now[0])

    def lines(count: int, seconds: float, *, known: bool = True) -> list[str]:
        items = range(count) if known else iter(range(count))
        for _ in show_progress(items, "preparing", None if known else count):
            now[0] += seconds
        return capsys.readouterr().err.splitlines()

    tenths = lines(1000, 0.2)
    assert len(tenths) == 11
    assert tenths[5] == "preparing: 500 of 1000, 0:01:40 taken, 0:01:40 left"
    assert tenths[-1] == "preparing: 1000 of 1000, 0:03:20 taken, 0:00:00 left"
    assert lines(3, 100) == [
        "preparing: 1 of 3, 0:01:40 taken, 0:03:20 left",
        "preparing: 2 of 3, 0:03:20 taken, 0:01:40 left",
        "preparing: 3 of 3, 0:05:00 taken, 0:00:00 left",
    ]
    assert lines(3, 100, known=False) == lines(3, 100)
    assert len(lines(1000, 61)) == 1000  # however long a tenth takes
    assert lines(100, 0.01) == []
    follow = Follower(progress_bar())
    for done, total in ((100, 0), (700, 0)):  # how many there are is not known yet
        follow("listing", done, total)
        now[0] += 300
    follow("listing", 1000, 0)
    said = capsys.readouterr().err.splitlines()
    assert said == ["listing: 700, 2 a second, 0:05:00 taken", "listing: 1000, 2 a second, 0:10:00 taken"]
    log = Log("training: epoch", 1, first=1)
    now[0] += 60
    log.advance(1)  # nothing is measured yet, however long the start took
    assert capsys.readouterr().err == ""


def test_the_time_left_of_a_training_is_that_of_epochs_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from c5.training.loop import Epoch
    from c5.training.run import Progress, TrainingPlan

    now = [0.0]
    monkeypatch.setattr("c5.cli.console.time.monotonic", lambda: now[0])

    def run(*_: Any, report: Any, **__: Any) -> None:
        for number in range(4, 11):  # resumed after three
            now[0] += 100
            report(TrainingPlan(RealTraining(epochs=10), [], []), Progress(Epoch(number, 1, 2), None))

    monkeypatch.setattr("c5.training.command.run_training", run)
    said = CliRunner().invoke(app, ["train", "--resume", str(tmp_path)]).stderr.splitlines()
    assert said[0] == "training: epoch: 5 of 10, loss 1.00, error 2.00°, 0:01:40 taken, 0:08:20 left"
    assert said[-2] == "training: epoch: 10 of 10, loss 1.00, error 2.00°, 0:10:00 taken, 0:00:00 left"


def test_train_on_real_images_stop_and_resume(test_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = test_data / "data" / "ffcc_sample"
    command = [
        sys.executable,
        "-m",
        "c5.cli",
        "train",
        str(data),
        "-o",
        str(tmp_path / "run"),
        "--epochs",
        "2",
        "--recipe",
        "plain",
    ]
    command += ["--hold-out", "NikonD5200", "--tensorboard"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 200
    while not (tmp_path / "run" / "checkpoint.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=60)
    assert started.returncode == 130
    assert "--resume" in said
    assert list((tmp_path / "cache").rglob("*.c5set"))
    again = c5("train", data, "-o", tmp_path / "run")
    assert again.returncode == 1
    assert "--resume" in again.stderr
    assert "--overwrite" in again.stderr
    resumed = c5("train", "--resume", tmp_path / "run")
    assert resumed.returncode == 0, resumed.stderr
    assert "held-out cameras mean" in resumed.stderr
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))
    rows = (tmp_path / "run" / "log.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["epoch", "1", "2"]
    image = data / "data/shi_gehler/preprocessed/GehlerShi/000004.png"
    assert c5("estimate", image, "--model", tmp_path / "run" / "model.c5").returncode == 0


def test_convert_and_use_a_published_model(test_data: Path, tmp_path: Path) -> None:
    done = c5("convert", test_data / "reference" / "C5_m_7_h_64.pth", "-o", tmp_path / "p.c5")
    assert done.returncode == 0, done.stderr
    folder = test_data / "data/ffcc_sample/data/cheng/preprocessed/Cheng/NikonD5200"
    found = c5("estimate", *sorted(folder.glob("*.png"))[:2], "--roll", folder, "--model", tmp_path / "p.c5", "--json")
    assert found.returncode == 0, found.stderr
    assert "using 6 of the 10" in found.stderr
    assert len(found.stdout.splitlines()) == 2
