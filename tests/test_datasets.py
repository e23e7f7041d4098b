from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
from laws import textured
from typer.testing import CliRunner, Result

from c5 import DataError
from c5.cli.app import app
from c5.datasets import examine, read_samples
from c5.errors import DataWarning
from c5.parallel import in_parallel


def write_ffcc(folder: Path, count: int = 3, camera: str = "Canon5D") -> Path:
    """A miniature in the layout of google/ffcc."""
    folder.mkdir(parents=True)
    for index in range(1, count + 1):
        stem = folder / f"{index:06d}"
        stem.with_suffix(".png").write_bytes(imagecodecs.png_encode((textured(index) * 65535).astype(np.uint16)))
        stem.with_suffix(".txt").write_text("   5.0e-01\n   8.0e-01\n   3.0e-01\n")
        Path(f"{stem}_camera.txt").write_text(camera)
        Path(f"{stem}_ccm.txt").write_text("1 0 0\n0 1 0\n0 0 1\n")
        Path(f"{stem}_scene.txt").write_text(str(index))
    return folder


def test_layout(tmp_path: Path) -> None:
    write_ffcc(tmp_path / "data/cheng/preprocessed/Cheng/Canon600D", camera="Canon600D")
    write_ffcc(tmp_path / "data/shi_gehler/preprocessed/GehlerShi")
    write_ffcc(tmp_path / "data/cheng/preprocessed/ChengThumb/Canon600D", camera="Canon600D")
    samples = read_samples(tmp_path)
    assert len(samples) == 6
    assert {(sample.dataset, sample.camera) for sample in samples} == {("NUS", "Canon600D"), ("Gehler-Shi", "Canon5D")}
    assert np.linalg.norm(samples[0].illuminant) == pytest.approx(1)
    assert samples[0].ccm is not None
    assert samples[0].ccm.shape == (3, 3)
    assert samples[0].scene is None  # the numbers of two cameras are not of the same scenes
    assert samples[0].read().camera == "Canon600D"
    # A folder of thumbnails is read where it is the one that is asked for.
    assert len(read_samples(tmp_path / "data/cheng/preprocessed/ChengThumb")) == 3


def test_real_sample(test_data: Path) -> None:
    samples = read_samples(test_data / "data" / "ffcc_sample")
    assert len(samples) == 100
    assert len({sample.camera for sample in samples}) == 10
    assert {sample.dataset for sample in samples} == {"NUS", "Gehler-Shi"}


def test_problems_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        read_samples(tmp_path / "none")
    with pytest.raises(DataError, match="no labeled images"):
        read_samples(tmp_path)
    folder = write_ffcc(tmp_path / "set")
    label = folder / "000002.txt"
    for text, message in (
        ("1 2", "2 numbers"),
        ("a b c", "not numbers"),
        ("0 0 0", "above zero"),
        ("nan 1 1", "finite"),
    ):
        label.write_text(text)
        with pytest.raises(DataError, match=message) as caught:
            read_samples(folder)
        assert "000002.txt" in str(caught.value)
    label.unlink()
    with pytest.raises(DataError, match=r"000002\.txt: missing"):
        read_samples(folder)
    label.write_text("1 1 1")
    (folder / "000003_camera.txt").write_text("")
    with pytest.raises(DataError, match=r"000003_camera\.txt"):
        read_samples(folder)


def test_every_file_that_does_not_fit_is_listed(tmp_path: Path) -> None:
    folder = write_ffcc(tmp_path / "set", count=5)
    (folder / "cvfolds.txt").write_text("1\n2\n")
    (folder / "000001.txt").write_text("0 1 1")
    (folder / "000003.png").unlink()
    found = examine(folder)
    assert [sample.name[-1] for sample in found.samples] == ["2", "4", "5"]
    messages = sorted(problem.message.removeprefix(str(folder)) for problem in found.problems)
    assert messages == [
        "/000001.txt: an illuminant needs three finite numbers above zero; correct the label or remove the image",
        "/000003.png: missing, though 000003_camera.txt is there; complete the folder",
        "/cvfolds.txt: 2 folds for 4 images; complete the folder or remove the file",
    ]
    with pytest.raises(DataError, match="and 2 more problems"):
        read_samples(folder)
    with pytest.raises(DataError, match="appears twice"):
        read_samples([write_ffcc(tmp_path / "other"), tmp_path / "other"])


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    write_ffcc(tmp_path / "elsewhere" / "set")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "data")
    assert len(read_samples(tmp_path / "data")) == 3


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def test_check_shows_what_is_there(tmp_path: Path) -> None:
    write_ffcc(tmp_path / "Cheng" / "a", 3, "Canon1DsMkIII")
    write_ffcc(tmp_path / "GehlerShi", 2, "Canon1D")
    done = run("check", tmp_path)
    assert done.exit_code == 0, done.output
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.output.splitlines() if "│" in line]
    assert cells == [
        ["Gehler-Shi", "Canon1D", "2", "30x24", "-", "-", "2"],
        ["NUS", "Canon1DsMkIII", "3", "30x24", "-", "-", "3"],
    ]
    assert "layout ffcc" in done.output
    assert "note: Canon1D is inside the name Canon1DsMkIII" in done.output
    assert "No problems." in done.output


def test_check_names_what_only_shows_in_the_pixels(tmp_path: Path) -> None:
    folder = write_ffcc(tmp_path / "set", 6)
    (folder / "000001.png").write_bytes((folder / "000001.png").read_bytes()[:200])
    (folder / "000002.png").write_bytes(imagecodecs.png_encode(np.zeros((24, 30, 3), np.uint16)))
    (folder / "000003.png").write_bytes(imagecodecs.png_encode(np.full((20, 30, 3), 900, np.uint16)))
    (folder / "000004.png").write_bytes(imagecodecs.png_encode(np.full((30, 24, 3), 900, np.uint16)))  # portrait
    (folder / "000005.txt").write_text("nan 1 1")
    done = run("check", folder)
    assert done.exit_code == 1
    lines = [line for line in done.output.splitlines() if line.startswith("c5: ") and "warning" not in line]
    assert len(lines) == 5
    for name, what in (
        ("1.png", "damaged"),
        ("2.png", "no usable pixels"),
        ("3.png", "30x20, but"),
        ("5.txt", "finite"),
    ):
        assert any(f"00000{name}: " in line and what in line for line in lines)
    assert lines[-1] == "c5: 4 problems"
    quick = run("check", folder, "--quick")
    assert quick.exit_code == 1
    assert "c5: 1 problem\n" in quick.output
    assert "No such" not in run("check", folder, "--layout", "ffcc").output
    assert "no layout is called 'other'; there are pack, set, manifest" in str(
        run("check", folder, "--layout", "other").exception
    )


def test_pack_leaves_out_and_says_so(tmp_path: Path) -> None:
    folder, out = write_ffcc(tmp_path / "set", 4), tmp_path / "x.c5data"
    (folder / "000001.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "000002.txt").unlink()
    done = run("pack", folder, "-o", out)
    assert done.exit_code == 1
    assert f"{out}: 2 images" in done.output
    assert "left out: " in done.output
    assert "000001.png: damaged" in done.output
    assert "000002.txt: missing" in done.output
    assert len(read_samples(out)) == 2
    again = run("pack", folder, "-o", out)
    assert "--overwrite" in str(again.exception)
    good = run("pack", out, write_ffcc(tmp_path / "other", 1, "Canon1D"), "-o", out, "--overwrite")
    assert good.exit_code == 0, good.output
    assert len(read_samples(out)) == 3
    assert run("check", out).exit_code == 0


def test_interrupted_it_says_how_to_go_on(tmp_path: Path) -> None:
    lines = ["path,camera,r,g,b"]
    (tmp_path / "0.png").write_bytes(imagecodecs.png_encode(np.full((512, 768, 3), 900, np.uint16)))
    for index in range(1, 1500):
        os.link(tmp_path / "0.png", tmp_path / f"{index}.png")
        lines.append(f"{index}.png,A,1,1,1")
    (tmp_path / "manifest.csv").write_text("\n".join(lines))
    command = [sys.executable, "-m", "c5.cli", "data", "pack", str(tmp_path), "-o", str(tmp_path / "x.c5data")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    part = tmp_path / "x.c5data.part"
    while process.poll() is None and not (part.exists() and part.stat().st_size > 10_000):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.splitlines(keepends=True)[-1] == f"c5: stopped; the same command continues from {part}\n"
    assert part.exists()


def test_parallel_results_keep_their_order() -> None:
    def slow_at_first(number: int) -> int:
        time.sleep(0.02 if number < 3 else 0)
        return number * number

    assert list(in_parallel(slow_at_first, iter(range(50)))) == [(number, number * number) for number in range(50)]


def write_twelve_bits(folder: Path, *columns: str, row: str = "") -> np.ndarray[Any, Any]:
    """Images with black at 256 and white at 4095, green clipped in a third of them; what they show, in [0, 1]."""
    folder.mkdir(exist_ok=True)
    shown = np.clip(np.asarray(textured(3, 60, 90)), 0, 0.99)
    shown[:20, :, 1] = 1
    stored = np.rint(256 + shown * (4095 - 256)).astype(np.uint16)
    (folder / "a.tif").write_bytes(imagecodecs.tiff_encode(stored))
    (folder / "a-mask.png").write_bytes(
        imagecodecs.png_encode(np.repeat([[0], [255]], 30, 0).repeat(90, 1).astype("u1"))
    )
    (folder / "manifest.csv").write_text(",".join(["path,camera,r,g,b", *columns]) + f"\na.tif,D5,1,1,1{row}\n")
    return shown


def test_levels_and_masks_are_columns_of_a_manifest(tmp_path: Path) -> None:
    for row in (",256,4095,a-mask.png", ",256 256 256,4095 4095 4095,a-mask.png"):
        shown = write_twelve_bits(tmp_path, "black", "white", "mask", row=row)
        (sample,) = read_samples(tmp_path)
        image = sample.read()
        np.testing.assert_allclose(image.rgb, shown, atol=2e-4)
        np.testing.assert_array_equal(image.clipped, shown[..., 1] == 1)
        np.testing.assert_array_equal(image.mask, np.arange(60)[:, None].repeat(90, 1) >= 30)
    # A level for each channel.
    write_twelve_bits(tmp_path, "black", "white", row=",0 256 256,4095 4095 8190")
    rgb = read_samples(tmp_path)[0].read().rgb
    np.testing.assert_allclose(rgb[..., 0], (256 + shown[..., 0] * 3839) / 4095, atol=2e-4)
    np.testing.assert_allclose(rgb[..., 1], shown[..., 1], atol=2e-4)
    np.testing.assert_allclose(rgb[..., 2], shown[..., 2] * 3839 / 7934, atol=2e-4)
    # Other levels, another mask: other pixels, so nothing that was kept is used.
    digests = set()
    for columns in (",256,4095,", ",255,4095,", ",256,4095,a-mask.png"):
        write_twelve_bits(tmp_path, "black", "white", "mask", row=columns)
        digests.add(read_samples(tmp_path)[0].pixels.digest())
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (",x,4095,", "black of .* is neither one number"),
        (",1 2,4095,", "black of .* is neither one number"),
        (",nan,4095,", "black of .* is neither one number"),
        (",256,256,", "black level .* is not below its white level"),
        (",1 2 3,,", "but no white level"),
        (",,,b-mask.png", "b-mask.png is missing; put the mask there"),
        (",,,/etc/passwd", "leaves the folder"),
        (",,,a-mask.png/../../x.png", "leaves the folder"),
    ],
)
def test_wrong_levels_and_masks_are_named(tmp_path: Path, row: str, message: str) -> None:
    write_twelve_bits(tmp_path, "black", "white", "mask", row=row)
    with pytest.raises(DataError, match=f"row 2: .*{message}"):
        read_samples(tmp_path)


def test_images_of_a_manifest_lie_below_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write_twelve_bits(folder)
    (tmp_path / "a.tif").write_bytes((folder / "a.tif").read_bytes())
    for path in (tmp_path / "a.tif", "../a.tif", "x/../../a.tif", folder / "a.tif"):
        (folder / "manifest.csv").write_text(f"path,camera,r,g,b\n{path},D5,1,1,1\n")
        with pytest.raises(DataError, match=r"row 2: .* leaves the folder of the manifest"):
            read_samples(folder)


def test_a_mask_of_another_size_is_named(tmp_path: Path) -> None:
    write_twelve_bits(tmp_path, "mask", row=",a-mask.png")
    (tmp_path / "a-mask.png").write_bytes(imagecodecs.png_encode(np.ones((5, 9), np.uint8)))
    with pytest.raises(DataError, match=r"a-mask\.png: 9x5 instead of the 90x60"):
        read_samples(tmp_path)[0].read()


def test_what_a_manifest_does_not_use_is_named_and_levels_that_look_wrong(tmp_path: Path) -> None:
    """In `data check` and where the data are used."""
    write_twelve_bits(tmp_path, "blck", "iso", row=",256,100")
    with pytest.warns(DataWarning, match="not used: blck, iso; known columns are path"):
        done = run("check", tmp_path)
    assert "D5: no image goes above 6.2 % (4095 of 65535), and 33 % of the pixels" in done.stderr
    assert "No problems, but read the warnings." in done.stdout
    with pytest.warns(DataWarning, match=r"no image goes above 6\.2 %"):
        run("prepare", tmp_path, "-o", tmp_path / "x.c5set")
    write_twelve_bits(tmp_path, "black", "white", row=",256,4095")
    assert "33 % of the pixels are clipped" in run("check", tmp_path).stderr
    (tmp_path / "a.tif").write_bytes(imagecodecs.tiff_encode((np.asarray(textured(3, 60, 90)) * 65535).astype("u2")))
    (tmp_path / "manifest.csv").write_text("path,camera,r,g,b\na.tif,D5,1,1,1\n")
    done = run("check", tmp_path)
    assert done.stderr == ""
    assert "No problems." in done.stdout


def test_many_rows_that_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    write_twelve_bits(tmp_path)
    with (tmp_path / "manifest.csv").open("a") as file:
        file.writelines(f"images/{index}.tif,D5,1,1,1\n" for index in range(2000))
    found = examine(tmp_path)
    assert len(found.samples) == 1
    (problem,) = found.problems
    assert "2000 of 2001 rows cannot be used; the first is row 3: " in problem.message
