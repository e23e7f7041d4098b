"""Every layout is tried on a miniature of it, written as its description says."""

from __future__ import annotations

import json
import os
import re
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import imagecodecs
import numpy as np
import pytest
import tifffile
from laws import textured
from numpy.typing import NDArray
from test_datasets import write_ffcc

from c5 import DataError, LinearImage
from c5.datasets import LAYOUTS, Sample, examine, find_layout, read_samples, write_pack
from c5.datasets.features import VividnessFeature
from c5.datasets.prepared import write_prepared
from c5.datasets.thumbnails import IMAGES, LABELS
from c5.image import shrink

scipy_io = pytest.importorskip("scipy.io")

DOCUMENT = Path(__file__).parents[1] / "docs" / "datasets.md"
HEIGHT, WIDTH = 512, 768  # twice the working size each way
RGB = np.array([0.5, 0.8, 0.3])
SATURATED = (slice(40, 60), slice(100, 140))
CHART = (slice(300, 360), slice(500, 600))


class Shot(NamedTuple):
    """What was written for an image."""

    raw: NDArray[np.uint16]
    black: float
    white: float
    chart: tuple[slice, slice] | None


def make_raw(seed: int, black: int = 0, white: int = 65535, chart: bool = False) -> NDArray[np.uint16]:
    """An exposure in the numbers of a sensor, some of it saturated, a chart of one color in it."""
    linear = np.tile(textured(seed, HEIGHT // 4, WIDTH // 4), (4, 4, 1))
    if chart:
        linear[CHART] = (0.9, 0.1, 0.2)
    linear[SATURATED] = 1
    return np.asarray(np.rint(black + linear * (white - black)), dtype=np.uint16)


def write_png(path: Path, raw: NDArray[np.uint16]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(imagecodecs.png_encode(raw, level=1))


def write_folder(root: Path) -> dict[str, Shot]:
    shots: dict[str, Shot] = {}
    for index, (camera, key) in enumerate((("Canon1D", "illuminant_color_raw"), ("Canon1DsMkIII", "gt_ill"))):
        stem = f"scene_{index}_sensorname_{camera}"
        raw = make_raw(index)
        write_png(root / f"{stem}.png", raw)
        label: Any = [RGB.tolist()] if index else RGB.tolist()
        (root / f"{stem}_metadata.json").write_text(json.dumps({key: label}))
        shots[f"{root.name}/{camera}/{stem}"] = Shot(raw, 0, 65535, None)
    return shots


def write_manifest(root: Path) -> dict[str, Shot]:
    lines, shots = ["path,camera,r,g,b,scene,fold"], {}
    for index in range(2):
        raw = make_raw(index)
        write_png(root / f"images/{index}.png", raw)
        lines.append(f"images/{index}.png,X100,{RGB[0]},{RGB[1]},{RGB[2]},hall,{index}")
        shots[f"{root.name}/X100/images/{index}.png"] = Shot(raw, 0, 65535, None)
    (root / "manifest.csv").write_text("\n".join(lines))
    return shots


def write_gehler_shi(root: Path) -> dict[str, Shot]:
    data = root / "cs/chroma/data"
    shots: dict[str, Shot] = {}
    for folder, stem, camera, black, white in (
        ("canon5d", "IMG_0281", "Canon5D", 129, 3692),
        ("canon1d", "8D5U5524", "Canon1D", 0, 3616),
    ):
        raw = make_raw(len(shots), black, white, chart=True)
        write_png(data / folder / "png" / f"{stem}.png", raw)
        top, bottom, left, right = 300, 359, 500, 599
        # The corners row by row, in a picture half as large.
        corners = [(left, top), (right, top), (left, bottom), (right, bottom)]
        lines = [f"{WIDTH / 2} {HEIGHT / 2}", *(f"{x / 2} {y / 2}" for x, y in corners), "1 1", "2 2"]
        place = data / folder / "coordinates" / f"{stem}_macbeth.txt"
        place.parent.mkdir()
        place.write_text("\n".join(lines))
        shots[f"Gehler-Shi/{camera}/{stem}"] = Shot(raw, black, white, CHART)
    scipy_io.savemat(root / "real_illum_568..mat", {"real_rgb": np.stack([RGB * 900, RGB[::-1] * 900])})
    names = np.array([("8D5U5524.tif",), ("IMG_0281.tif",)], dtype=[("name", "O")]).reshape(2, 1)
    tests = np.empty((1, 2), dtype=object)
    tests[0, 0], tests[0, 1] = np.array([[2]]), np.array([[1]])
    scipy_io.savemat(root / "threefoldCVsplit.mat", {"Xfiles": names, "te_split": tests})
    return shots


def write_nus(root: Path) -> dict[str, Shot]:
    shots: dict[str, Shot] = {}
    for camera, black, white in (("Canon1DsMkIII", 1024, 15279), ("SonyA57", 128, 4093)):
        names = [f"{camera}_{index:04d}" for index in (1, 2)]
        for seed, name in enumerate(names):
            raw = make_raw(seed, black, white, chart=True)
            write_png(root / camera / "PNG" / f"{name}.PNG", raw)
            shots[f"NUS/{camera}/{name}"] = Shot(raw, black, white, CHART)
        variables = {
            "all_image_names": np.array([[name] for name in names], dtype=object),
            "groundtruth_illuminants": np.stack([RGB, RGB]),
            "darkness_level": float(black),
            "saturation_level": float(white),
            "CC_coords": np.array([[301, 360, 501, 600]] * 2, dtype=np.uint16),
        }
        scipy_io.savemat(root / camera / f"{camera}_gt.mat", variables)
    return shots


def write_cube(root: Path, labels: str = "cube+_gt.txt", dataset: str = "Cube+") -> dict[str, Shot]:
    shots: dict[str, Shot] = {}
    chart = (slice(312, HEIGHT), slice(607, WIDTH))  # row 1050 and column 2050 of 1732x2601
    for number in range(1, 11):
        raw = make_raw(number, 2048, 15300)
        raw[50:51, 120:121] = (15298, 4000, 4000)
        write_png(root / f"{number}.PNG", raw)
        shots[f"{dataset}/Canon550D/{number}"] = Shot(raw, 2048, 2**14 - 1, chart)
    rows = np.tile(RGB, (10, 1)) + np.arange(10)[:, None] * (0, 0, 0.01)
    (root / labels).write_text("\n".join(" ".join(map(str, row)) for row in rows))
    return shots


def write_intel_tau(root: Path) -> dict[str, Shot]:
    shots: dict[str, Shot] = {}
    for camera in ("Canon_5DSR", "Mobile_SonyIMX135"):
        for kind, stem in (("field_3_cameras", "shot_017"), ("lab_printouts", "shot_002")):
            raw = make_raw(len(shots))
            path = root / camera / kind / f"{stem}.tiff"
            path.parent.mkdir(parents=True)
            tifffile.imwrite(path, raw, photometric="rgb")
            path.with_suffix(".wp").write_text(" ".join(map(str, RGB)))
            shots[f"INTEL-TAU/{camera}/{kind}/{stem}"] = Shot(raw, 0, 65535, None)
    return shots


def write_thumbnails(root: Path) -> Path:
    """Two images of each camera, as 64x64 arrays."""
    rng = np.random.default_rng(0)
    for camera, stem in (("Cube+", "{}"), ("TAU_C_5DSR", "C_5DSR_field3cam_00{}"), ("TAU_N_D810", "N_D810_field_{}")):
        for number in (1, 2):
            for kind, values in ((IMAGES, rng.random((64, 64, 3))), (LABELS, rng.uniform(0.3, 1, 3))):
                path = root / camera / kind / f"{stem.format(number)}.npy"
                path.parent.mkdir(parents=True, exist_ok=True)
                np.save(path, (values / values.max()).astype(np.float32))
    return root


WRITERS: dict[str, Callable[[Path], dict[str, Shot]]] = {
    "folder": write_folder,
    "manifest": write_manifest,
    "gehler-shi": write_gehler_shi,
    "nus": write_nus,
    "cube": write_cube,
    "intel-tau": write_intel_tau,
}


@pytest.fixture(scope="module")
def miniatures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Shot]]]:
    """Every layout, read only."""
    root = tmp_path_factory.mktemp("miniatures")
    made = {}
    for name, write in WRITERS.items():
        (root / name).mkdir()
        made[name] = root / name, write(root / name)
    made["ffcc"] = write_ffcc(root / "ffcc" / "set").parent, {}
    write_pack(read_samples(root / "manifest"), root / "x.c5data")
    made["pack"] = root / "x.c5data", {}
    write_prepared(read_samples(root / "manifest"), root / "x.c5set", [VividnessFeature()])
    made["set"] = root / "x.c5set", {}
    made["thumbnails"] = write_thumbnails(root / "thumbnails"), {}
    return made


Miniatures = dict[str, tuple[Path, dict[str, Shot]]]


def test_each_layout_knows_its_own_and_no_other(miniatures: Miniatures) -> None:
    assert set(miniatures) == {layout.NAME for layout in LAYOUTS}
    for name, (path, _) in miniatures.items():
        assert [layout.NAME for layout in LAYOUTS if layout.recognizes(path)] == [name]
        assert name == find_layout(path).NAME


@pytest.mark.parametrize("layout", WRITERS)
def test_levels_mask_and_saturation_are_those_of_the_sensor(miniatures: Miniatures, layout: str) -> None:
    folder, shots = miniatures[layout]
    samples = read_samples(folder)
    assert {sample.name for sample in samples} == set(shots)
    for sample in samples:
        shot = shots[sample.name]
        image = sample.read()
        expected = (shot.raw.astype(np.float64) - shot.black) / (shot.white - shot.black)
        np.testing.assert_allclose(image.rgb, expected.clip(0, 1), atol=2e-6)
        assert (image.rgb[0] < 0.5).all()  # the black level is off
        masked = np.zeros((HEIGHT, WIDTH), np.bool_)
        if shot.chart:
            masked[shot.chart] = True
            # The edges are uncertain by a pixel where they were scaled.
            inner = np.zeros_like(masked)
            inner[tuple(slice(one.start + 2, one.stop - 2) for one in shot.chart)] = True
            assert not (image.mask & inner).any()
            assert abs(int((~image.mask).sum()) - int(masked.sum())) < 0.05 * masked.sum()
        else:
            assert image.mask.all()
        assert image.clipped[SATURATED].all()
        assert image.clipped.sum() == 20 * 40
        assert not image.counts[SATURATED].any()
        assert sample.camera in sample.name
        assert image.camera == sample.camera


@pytest.mark.parametrize("layout", WRITERS)
def test_working_images_are_means_over_areas(miniatures: Miniatures, layout: str) -> None:
    folder, shots = miniatures[layout]
    for sample in read_samples(folder)[:2]:
        shot = shots[sample.name]
        image = sample.read()
        small = shrink(image)
        assert small.rgb.shape == (256, 384, 3)
        linear = (shot.raw.astype(np.float64) - shot.black) / (shot.white - shot.black)
        good = (image.mask & ~image.clipped)[..., None]
        sums, counted = ((part * good).reshape(256, 2, 384, 2, -1).sum(axis=(1, 3)) for part in (linear, 1))
        expected = sums / np.maximum(counted, 1)
        np.testing.assert_allclose(small.rgb[small.counts], expected[small.counts], atol=1e-5)
        assert small.clipped[20:30, 50:70].all()
        assert small.counts.mean() > 0.8


def test_labels_of_the_originals(miniatures: Miniatures) -> None:
    def by_name(layout: str) -> dict[str, Sample]:
        return {sample.name: sample for sample in read_samples(miniatures[layout][0])}

    unit = RGB / np.linalg.norm(RGB)
    gehler = by_name("gehler-shi")
    assert list(gehler) == ["Gehler-Shi/Canon1D/8D5U5524", "Gehler-Shi/Canon5D/IMG_0281"]
    # The Canon 1D comes first in the labels.
    np.testing.assert_allclose(gehler["Gehler-Shi/Canon1D/8D5U5524"].illuminant, unit)
    np.testing.assert_allclose(gehler["Gehler-Shi/Canon5D/IMG_0281"].illuminant, unit[::-1])
    assert [sample.fold for sample in gehler.values()] == [1, 0]

    cube = by_name("cube")
    assert list(cube) == [f"Cube+/Canon550D/{number}" for number in range(1, 11)]
    tenth = np.add(RGB, (0, 0, 0.09))
    np.testing.assert_allclose(cube["Cube+/Canon550D/10"].illuminant, tenth / np.linalg.norm(tenth))

    tau = by_name("intel-tau")
    assert {sample.camera for sample in tau.values()} == {"Canon_5DSR", "Mobile_SonyIMX135"}
    # Two cameras before one scene.
    assert {sample.scene for sample in tau.values()} == {"field_3_cameras/17", "lab_printouts/2"}

    for layout in ("folder", "manifest", "nus", "intel-tau"):
        for sample in by_name(layout).values():
            np.testing.assert_allclose(sample.illuminant, unit)
    assert {sample.camera for sample in by_name("nus").values()} == {"Canon1DsMkIII", "SonyA57"}
    assert {sample.camera for sample in by_name("folder").values()} == {"Canon1D", "Canon1DsMkIII"}
    listed = by_name("manifest").values()
    assert [(sample.scene, sample.fold) for sample in listed] == [("hall", 0), ("hall", 1)]


def test_gehler_shi_cameras_are_known_by_the_names_of_their_files(tmp_path: Path) -> None:
    write_gehler_shi(tmp_path)
    for path in list(tmp_path.rglob("*.png")):
        path.rename(tmp_path / path.name)
    assert [sample.camera for sample in read_samples(tmp_path)] == ["Canon1D", "Canon5D"]


def test_a_white_point_may_be_two_ratios(tmp_path: Path) -> None:
    write_intel_tau(tmp_path)
    for path in tmp_path.rglob("*.wp"):
        path.write_text(f"{RGB[0] / RGB[1]}\n{RGB[2] / RGB[1]}\n")
    for sample in read_samples(tmp_path):
        np.testing.assert_allclose(sample.illuminant, RGB / np.linalg.norm(RGB))


def test_the_challenge_of_cube_is_a_dataset_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_layouts.make_raw", lambda *_: np.full((8, 12, 3), 3000, np.uint16))
    (tmp_path / "all").mkdir()
    (tmp_path / "challenge").mkdir()
    write_cube(tmp_path / "all")
    write_cube(tmp_path / "challenge", "challenge_gt.txt", "Cube+ challenge")
    found = examine(tmp_path)
    assert {sample.dataset for sample in found.samples} == {"Cube+", "Cube+ challenge"}
    assert len(found.samples) == 20


def _replace_mat(path: Path, **changed: object) -> None:
    variables = {key: value for key, value in scipy_io.loadmat(path).items() if not key.startswith("__")}
    scipy_io.savemat(path, variables | changed)


def _write(name: str, text: str) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        (root / name).write_text(text)

    return spoil


def _remove(name: str) -> Callable[[Path], None]:
    return lambda root: (root / name).unlink()


def _garbage(name: str) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        (root / name).write_bytes(b"MATLAB 5.0 MAT-file" + bytes(range(256)) * 4)

    return spoil


NUS_MAT = "SonyA57/SonyA57_gt.mat"
FOLDER_JSON = "scene_0_sensorname_Canon1D_metadata.json"
TAU_LABEL = "Canon_5DSR/field_3_cameras/shot_017.wp"
HEADER = "path,camera,r,g,b,fold\n"

BAD: list[tuple[str, Callable[[Path], None], str]] = [
    ("folder", _remove(FOLDER_JSON), "scene_0_sensorname_Canon1D_metadata.json: missing; complete"),
    ("folder", _write(FOLDER_JSON, "{"), "Canon1D_metadata.json: not JSON"),
    ("folder", _write(FOLDER_JSON, "{}"), "neither illuminant_color_raw nor gt_ill; add"),
    ("folder", _write(FOLDER_JSON, '{"gt_ill": [1, NaN, 1]}'), "finite numbers above zero; correct"),
    ("folder", _write(FOLDER_JSON, '{"gt_ill": [1, 1]}'), "three numbers"),
    ("folder", _write(FOLDER_JSON, '{"gt_ill": {"r": 1}}'), "gt_ill is not three numbers; correct"),
    ("folder", _remove("scene_1_sensorname_Canon1DsMkIII.png"), "MkIII_metadata.json: has no image beside it"),
    ("manifest", _write("manifest.csv", ""), "the first line has no path, camera, r, g, b"),
    ("manifest", _write("manifest.csv", "path,camera,r\n"), "no g, b; it must name the columns"),
    ("manifest", _write("manifest.csv", HEADER + "images/0.png,X,0,0,0"), "row 2: .*above zero; correct"),
    ("manifest", _write("manifest.csv", HEADER + "images/0.png,X,nan,1,1"), "row 2: .*finite"),
    ("manifest", _write("manifest.csv", HEADER + "images/0.png,X,a,1,1"), "row 2: .*not numbers"),
    ("manifest", _write("manifest.csv", HEADER + "images/0.png,X"), "row 2: r, g, b not given; complete"),
    ("manifest", _write("manifest.csv", HEADER + "images/0.png,X,1,1,1,one"), "row 2: the fold 'one'"),
    ("manifest", _write("manifest.csv", HEADER + "\nimages/9.png,X,1,1,1"), "row 3: .*9.png is missing; put"),
    ("manifest", _write("manifest.csv", HEADER + "a" * 5000 + ",X,1,1,1"), "row 2: .*aaa is missing; put"),
    ("manifest", _write("manifest.csv", HEADER + "images/0.png,X,1,1,1\n./images/0.png,Y,1,1,1"), "row 3: .*in row 2"),
    ("gehler-shi", _remove("real_illum_568..mat"), "real_illum_568.mat: missing; download"),
    ("gehler-shi", _garbage("real_illum_568..mat"), "not a MATLAB file that can be read"),
    ("gehler-shi", _remove("cs/chroma/data/canon1d/png/8D5U5524.png"), "2 labels for 1 images; download"),
    (
        "gehler-shi",
        _remove("cs/chroma/data/canon1d/coordinates/8D5U5524_macbeth.txt"),
        "8D5U5524_macbeth.txt is missing",
    ),
    (
        "gehler-shi",
        _write("cs/chroma/data/canon1d/coordinates/8D5U5524_macbeth.txt", "1 2 3"),
        "four corners; download",
    ),
    (
        "gehler-shi",
        lambda root: _replace_mat(root / "real_illum_568..mat", real_rgb=np.zeros((2, 3))),
        "8D5U5524.*zero",
    ),
    (
        "gehler-shi",
        lambda root: _replace_mat(root / "real_illum_568..mat", real_rgb=np.ones((2, 2))),
        "has no real_rgb",
    ),
    (
        "gehler-shi",
        lambda root: _replace_mat(root / "threefoldCVsplit.mat", te_split=np.array([[9]])),
        "te_split that fit",
    ),
    ("nus", _remove("SonyA57/PNG/SonyA57_0002.PNG"), "SonyA57_0002.PNG is missing; download"),
    ("nus", _remove(NUS_MAT), "SonyA57_0001.PNG: in no _gt.mat file; add"),
    ("nus", _garbage(NUS_MAT), "SonyA57_gt.mat: not a MATLAB file"),
    ("nus", lambda root: _replace_mat(root / NUS_MAT, CC_coords=np.ones((3, 4))), "2 names, 2 labels and 3 charts"),
    ("nus", lambda root: _replace_mat(root / NUS_MAT, groundtruth_illuminants=np.eye(2, 3)), "SonyA57_0001.PNG.*zero"),
    ("nus", lambda root: write_png(root / "SonyA57_0001.png", np.ones((8, 12, 3), np.uint16)), "keep one of them"),
    ("cube", _remove("2.PNG"), "10 labels for 9 images; complete the folder"),
    ("cube", _write("cube+_gt.txt", "1 1 1\n1 1 1"), r"10\.PNG: cube\+_gt.txt has no line 10"),
    ("cube", _write("cube+_gt.txt", "1 1 1\n1 1"), "5 numbers are not three per line"),
    ("cube", _write("cube+_gt.txt", "nan 1 1\n" * 10), "1.PNG: .*finite"),
    ("intel-tau", _remove(TAU_LABEL), "shot_017.wp: missing"),
    ("intel-tau", _write(TAU_LABEL, "0 0 0"), "shot_017.wp: .*zero; correct"),
    ("intel-tau", _write(TAU_LABEL, "1 1 1 1"), "shot_017.wp: .*three numbers"),
    ("intel-tau", _remove("Canon_5DSR/field_3_cameras/shot_017.tiff"), "shot_017.wp: has no TIFF image"),
]


@pytest.mark.parametrize(("layout", "spoil", "message"), BAD, ids=[f"{bad[0]}-{bad[2]}" for bad in BAD])
def test_what_does_not_fit_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    layout: str,
    spoil: Callable[[Path], None],
    message: str,
) -> None:
    monkeypatch.setattr("test_layouts.make_raw", lambda *_, **__: np.full((8, 12, 3), 3000, np.uint16))
    WRITERS[layout](tmp_path)
    spoil(tmp_path)
    problems = examine(tmp_path).problems
    assert problems
    assert any(re.search(message, problem.message) for problem in problems)
    with pytest.raises(DataError) as caught:
        read_samples(tmp_path)
    for problem in problems:
        assert "\n" not in problem.message
        assert problem.path.name in problem.message or problem.path.stem in problem.message
        assert "; " in problem.message  # the remedy
    # Of many bad files one is shown, and how to see the others.
    assert ("; check the dataset)" in str(caught.value)) == (len(problems) > 1)


def test_without_scipy_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_layouts.make_raw", lambda *_, **__: np.full((8, 12, 3), 3000, np.uint16))
    write_nus(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "scipy.io", None)
    with pytest.raises(DataError, match=r"pip install 'c5-awb\[train\]'"):
        read_samples(tmp_path)


def test_recognizing_is_quick_and_never_fails(tmp_path: Path) -> None:
    crowd = tmp_path / "crowd"
    crowd.mkdir()
    for index in range(8_000):
        os.close(os.open(crowd / f"frame{index}.dat", os.O_CREAT))
    start = time.process_time()
    assert not any(layout.recognizes(crowd) for layout in LAYOUTS)
    assert time.process_time() - start < 2

    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / "loop").symlink_to(odd)
    (odd / "nowhere").symlink_to(tmp_path / "missing")
    (odd / "manifest.csv").mkdir()
    (tmp_path / "file").write_bytes(b"\x89C5")
    for path in (odd, tmp_path / "file", tmp_path / "missing", odd / "nowhere", Path("a" * 5000)):
        assert not any(layout.recognizes(path) for layout in LAYOUTS)


def test_the_layout_in_the_documentation_works(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    mine = types.ModuleType("mine")
    exec(compile(example, str(DOCUMENT), "exec"), mine.__dict__)
    assert not mine.recognizes(tmp_path)
    (tmp_path / "Z9").mkdir()
    for number in (1, 2):
        tifffile.imwrite(tmp_path / f"Z9/{number}.tif", np.full((8, 12, 3), 512 * number, np.uint16), photometric="rgb")
    (tmp_path / "Z9/lights.txt").write_text("1 2 3\n2 2 1\n")
    assert mine.recognizes(tmp_path)
    assert not any(layout.recognizes(tmp_path) for layout in LAYOUTS)
    samples, problems = mine.read(tmp_path)
    assert not problems
    assert [sample.name for sample in samples] == ["Mine/Z9/1", "Mine/Z9/2"]
    np.testing.assert_allclose(samples[1].illuminant, [2 / 3, 2 / 3, 1 / 3])
    np.testing.assert_allclose(samples[1].read().rgb, 512 / (16383 - 512))
    (tmp_path / "Z9/lights.txt").write_text("1 2 3\n")
    assert [problem.path.name for problem in mine.read(tmp_path).problems] == ["2.tif"]


def test_the_documentation_lists_every_layout() -> None:
    listed = re.findall(r"^\| `([a-z][\w-]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert set(listed) == {layout.NAME for layout in LAYOUTS}


def test_a_clipped_pixel_of_cube_is_near_the_largest(tmp_path: Path) -> None:
    raw = np.full((8, 12, 3), 5000, np.uint16)
    raw[0, :3, 1] = 9000, 8998, 8997
    write_png(tmp_path / "1.PNG", raw)
    (tmp_path / "cube+_gt.txt").write_text("1 2 1")
    (sample,) = read_samples(tmp_path)
    image = sample.read()
    assert image.clipped.sum() == 2
    assert image.clipped[0, :2].all()
    assert isinstance(image, LinearImage)


def test_thumbnails_are_what_the_repository_of_dmcc_holds(tmp_path: Path) -> None:
    write_thumbnails(tmp_path)
    samples = read_samples(tmp_path)
    assert [(sample.dataset, sample.camera) for sample in samples[::2]] == [
        ("Cube+", "Canon550D"),
        ("INTEL-TAU", "Canon_5DSR"),
        ("INTEL-TAU", "Nikon_D810"),
    ]
    assert [sample.scene for sample in samples] == [None, None, "field3cam/1", "field3cam/2", None, None]
    image = samples[0].read()
    assert image.rgb.max() == 1
    np.testing.assert_array_equal(image.clipped, image.rgb.max(axis=2) >= 0.98)  # the highest may be the white level
    assert all(np.isclose(np.linalg.norm(sample.illuminant), 1) for sample in samples)
    (tmp_path / "Cube+" / LABELS / "1.npy").unlink()
    (tmp_path / "Cube+" / IMAGES / "2.npy").unlink()
    (tmp_path / "TAU_C_5DSR" / LABELS / "C_5DSR_field3cam_001.npy").write_bytes(b"no array")
    messages = [problem.message for problem in examine(tmp_path).problems]
    assert len(messages) == 3
    assert "missing" in messages[0]
    assert "not an array" in messages[1]
    assert "has no image" in messages[2]
