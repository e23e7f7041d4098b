"""Models off Python: C code that compilers and sanitizers accept, ONNX graphs and tuning files, all of one mind."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shots import write_matrices
from typer.testing import CliRunner

from c5 import Grid, LinearImage, Model, ParameterError, Profile, angular_error, load_model
from c5.cli.app import app
from c5.colorimetry.matrices import CameraMatrices
from c5.datasets import read_samples
from c5.demo import VirtualCamera, render_roll
from c5.demo.raw_files import write_dng
from c5.errors import C5Error
from c5.export.c_code import export_c, vector_image, write_c
from c5.export.layers import QUERY, Convolution, Folded, Tensor, fold, run_layers
from c5.export.libcamera import Sight, ct_curve, tune
from c5.export.onnx_graphs import make_graph
from c5.export.tflite import make_tflite
from c5.io.files import write_files
from c5.model_file import ModelFile
from c5.zones import average_zones

VECTORS = Path(__file__).parent / "vectors"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


@pytest.fixture(scope="module")
def small() -> tuple[Model, Profile]:
    return load_model(VECTORS / "small.c5"), Profile.load(VECTORS / "small.c5profile")


@pytest.fixture(scope="module")
def vectors() -> dict[str, np.ndarray]:
    with np.load(VECTORS / "vectors.npz") as file:
        return dict(file)


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def write_frames(path: Path, images: Sequence[LinearImage]) -> Path:
    """Frames for `c5_test FILE`."""
    with open(path, "wb") as file:
        for image in images:
            file.write(np.array(image.rgb.shape[:2], "<i4").tobytes() + image.rgb.astype("<f4").tobytes())
            file.write((~image.mask | image.clipped).astype(np.uint8).tobytes())
    return path


def run_frames(program: Path, images: Sequence[LinearImage]) -> np.ndarray:
    """(frames, 5): state, illuminant, uncertainty."""
    path = write_frames(program.parent / "frames.bin", images)
    done = subprocess.run([program, path], check=True, capture_output=True, text=True)
    return np.array([[float(number) for number in line.split()] for line in done.stdout.splitlines()])


def build(folder: Path, *flags: str, compiler: str = "gcc", name: str = "c5_test") -> Path:
    sources = ["c5_awb.c", "c5_weights.c", "c5_test.c"]
    subprocess.run([compiler, *STRICT, *flags, *sources, "-lm", "-o", name], cwd=folder, check=True)
    return folder / name


@pytest.fixture(scope="module", params=[False, True], ids=["float", "int8"])
def code(
    request: pytest.FixtureRequest, small: tuple[Model, Profile], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The C code of the small model."""
    folder = tmp_path_factory.mktemp("int8" if request.param else "float")
    write_files(export_c(*small, folder, int8=request.param).files)
    return folder


def test_folding_a_profile_changes_nothing(small: tuple[Model, Profile], vectors: dict[str, np.ndarray]) -> None:
    folded = fold(*small)
    maps = run_layers(folded, vectors["seen"])
    np.testing.assert_allclose(maps, [*vectors["filters"], vectors["bias"]], atol=1e-3)
    # The encoder of the roll is gone, and a merge looks at the query's own features only.
    merges = [each for each in folded.layers if isinstance(each, Convolution) and each.weights.shape[2] == 1]
    assert merges
    assert all(each.weights.shape[0] == each.weights.shape[1] and each.bias.ndim == 3 for each in merges)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c_code_passes_the_vectors(compiler: str, code: Path, vectors: dict[str, np.ndarray]) -> None:
    need(compiler)
    program = build(code, "-O2", compiler=compiler, name=f"c5_{compiler}")
    subprocess.run([program], check=True, stdout=subprocess.DEVNULL)
    image = LinearImage(vectors["image"], mask=~vectors["ignore"])
    ((state, *light, uncertainty),) = run_frames(program, [image])
    assert state == 0
    apart = 1.0 if "int8" in code.name else 0.02  # drawn by chance, weights round worse than trained ones
    assert angular_error(light, vectors["illuminant"]) < apart
    assert uncertainty == pytest.approx(float(vectors["uncertainty"]), abs=apart)


def test_c_code_is_clean_under_the_sanitizers(code: Path) -> None:
    need("gcc")
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program = build(code, *flags, name="c5_sanitized")
    subprocess.run([program], check=True, stdout=subprocess.DEVNULL)
    rng = np.random.default_rng(0)
    sizes = [(1, 1), (1, 9), (7, 1), (2, 3), (33, 65)]
    images = [LinearImage(rng.uniform(0, 1, (*size, 3)).astype(np.float32)) for size in sizes]
    assert (run_frames(program, images)[:, 0] == 0).all()


def test_c_code_links_with_cplusplus(code: Path, tmp_path: Path) -> None:
    need("gcc", "g++")
    (tmp_path / "camera.cpp").write_text(
        '#include "c5_awb.h"\n'
        "static c5_workspace work;\n"
        "int main() {\n"
        "    const float zones[12] = {0.2f, 0.4f, 0.3f, 0.1f, 0.3f, 0.2f, 0.2f, 0.5f, 0.3f, 0.1f, 0.2f, 0.1f};\n"
        "    c5_estimate found = c5_estimate();\n"
        "    const c5_state state = c5_estimate_frame(&work, zones, nullptr, 2, 2, &found);\n"
        "    return !(state == C5_OK && found.gains[0] > 0 && found.gains[1] == 1);\n"
        "}\n"
    )
    subprocess.run(["gcc", *STRICT, "-O1", "-c", "c5_awb.c", "c5_weights.c"], cwd=code, check=True)
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{code}"]
    objects = [code / "c5_awb.o", code / "c5_weights.o"]
    subprocess.run(["g++", *flags, "camera.cpp", *objects, "-lm", "-o", "camera"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "camera"], check=True)


def test_one_program_holds_the_code_of_two_sensors(small: tuple[Model, Profile], tmp_path: Path) -> None:
    need("gcc", "nm")
    model, profile = small
    objects: list[Path] = []
    for prefix, camera in (("front", profile), ("rear", None)):
        folder = tmp_path / prefix
        write_files(export_c(model, camera, folder, int8=camera is None, prefix=prefix).files)
        names = [f"{prefix}_{part}" for part in ("awb", "weights", "test")]
        sources = [f"{name}.c" for name in names]
        subprocess.run(["gcc", *STRICT, "-O1", f"-Dmain={prefix}_main", "-c", *sources], cwd=folder, check=True)
        objects += [folder / f"{name}.o" for name in names]
        command = ["nm", "--extern-only", "--defined-only", *map(str, objects[-3:-1])]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        public = {line.split()[-1] for line in listed.splitlines() if len(line.split()) == 3}
        api = {"count", "emit", "estimate_frame", "layers", "locate", "map", "searched", "seen"}
        assert public - {f"{prefix}_constants"} == {f"{prefix}_{name}" for name in api}
        assert "c5_" not in "".join(path.read_text() for path in folder.iterdir() if path.suffix in (".c", ".h"))
    (tmp_path / "both.c").write_text(
        '#include "front/front_awb.h"\n'
        '#include "rear/rear_awb.h"\n'
        "int front_main(int count, char **arguments), rear_main(int count, char **arguments);\n"
        "int main(void) { return front_main(1, 0) + rear_main(1, 0); }\n"
    )
    subprocess.run(["gcc", *STRICT, "both.c", *objects, "-lm", "-o", "both"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "both"], check=True, capture_output=True, text=True)
    gains = [line for line in done.stdout.splitlines() if line.startswith("gains")]
    assert done.stdout.count("all right") == len(set(gains)) == 2


@pytest.mark.parametrize("prefix", ["", "2nd", "front-camera", "a b"])
def test_a_prefix_must_be_a_name(prefix: str, small: tuple[Model, Profile]) -> None:
    with pytest.raises(ParameterError, match="cannot begin names in C"):
        write_c(fold(*small), vector_image(), int8=False, prefix=prefix)


def test_c_code_runs_on_other_processors(code: Path) -> None:
    need("make", "aarch64-linux-gnu-gcc", "qemu-aarch64")
    done = subprocess.run(
        ["make", "--no-print-directory", "aarch64"], cwd=code, check=True, capture_output=True, text=True
    )
    assert done.stdout.rstrip().endswith("all right")


def test_c_code_runs_on_a_microcontroller(code: Path) -> None:
    need("make", "arm-none-eabi-gcc", "qemu-system-arm")
    done = subprocess.run(
        ["make", "--no-print-directory", "cortex-m"], cwd=code, check=True, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.rstrip().endswith("all right")


def test_c_code_runs_other_networks(tmp_path: Path) -> None:
    """Wide maps, several decoders, maps that are made of tensors in another order than they come, and a gain."""
    need("gcc")
    rng, grid = np.random.default_rng(3), Grid(16)

    def convolve(inputs: tuple[Tensor, ...], name: str, channels: int, slope: float = 0.01) -> Convolution:
        shape = channels, sum(each.channels for each in inputs), 3, 3
        weights = rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)
        return Convolution(inputs, Tensor(name, channels, 16), weights, rng.normal(0, 1, channels).astype("f4"), slope)

    seen, place = Tensor(QUERY, grid.channels, 16), Tensor("constant0", 1, 16)
    wide = convolve((seen, place), "wide", 20)
    first = convolve((wide.output,), "first", 12)
    second = convolve((wide.output, first.output), "second", 20)
    maps = convolve((second.output, seen, first.output), "maps", grid.channels + 2, 1)
    constants = {"constant0": rng.uniform(0, 1, (1, 16, 16)).astype(np.float32)}
    folded = Folded("other", "0" * 16, None, grid, (wide, first, second, maps), gain=True, constants=constants)
    for name, data in write_c(folded, vector_image(), int8=False)[0].items():
        (tmp_path / name).write_bytes(data)
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wno-unused-function"]
    subprocess.run([build(tmp_path, *flags)], check=True, stdout=subprocess.DEVNULL)


def test_the_workspace_holds_no_more_than_is_needed() -> None:
    """Of the bundled model: 508 KB, which the 512 KiB of one memory hold with a frame of zones beside it."""
    _, budget = write_c(fold(load_model()), vector_image(), int8=True)
    assert budget.memory is not None
    assert budget.memory + 32 * 32 * 13 <= 512 * 1024


def test_c_code_asks_for_no_heap_and_no_more_than_the_mathematical_library(code: Path) -> None:
    text = (code / "c5_awb.c").read_text() + (code / "c5_weights.c").read_text()
    assert "malloc" not in text
    included = {line.split()[1] for line in text.splitlines() if line.startswith("#include <")}
    assert included == {"<math.h>", "<stddef.h>"}


def test_budget_is_what_the_compiler_sees(code: Path, small: tuple[Model, Profile]) -> None:
    need("arm-none-eabi-gcc", "arm-none-eabi-size")
    _, budget = write_c(fold(*small), vector_image(), int8="int8" in code.name)
    sizes = []
    for name in ("c5_awb", "c5_weights"):
        compiler = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
        subprocess.run([*compiler, *STRICT, "-Os", "-c", f"{name}.c"], cwd=code, check=True)
        command = ["arm-none-eabi-size", f"{name}.o"]
        listed = subprocess.run(command, cwd=code, check=True, capture_output=True, text=True).stdout
        text, data, bss = map(int, listed.splitlines()[1].split()[:3])
        assert data == bss == 0  # nothing that changes is static
        sizes.append(text)
    assert budget.weights <= sizes[1] < budget.weights + 200  # alignment
    assert sizes[0] <= budget.code < 1.5 * sizes[0]  # type: ignore[operator]
    assert f"#define C5_WORKSPACE {budget.memory // 4} " in (code / "c5_awb.h").read_text()  # type: ignore[operator]


def test_c_code_says_what_is_wrong_with_a_frame(code: Path, tmp_path: Path) -> None:
    need("gcc")
    program = build(code, "-O1", name="c5_states")
    gray = np.full((8, 8, 3), 0.5, np.float32)
    frames = {
        "saturated": gray * 2,
        "black": gray * 0,
        "dead": gray * np.array([1, 1, 0], np.float32),
        "nan": gray * np.nan,
    }
    with open(tmp_path / "frames.bin", "wb") as file:
        for rgb in frames.values():
            file.write(np.array(rgb.shape[:2], "<i4").tobytes() + rgb.tobytes() + bytes(64))
        file.write(np.array([400, 300], "<i4").tobytes() + bytes(400 * 300 * 13))
    done = subprocess.run([program, tmp_path / "frames.bin"], check=True, capture_output=True, text=True)
    states = [int(line.split()[0]) for line in done.stdout.splitlines()]
    nothing, out_of_range, size, number = 1, 2, 3, 4
    assert states == [nothing, nothing, out_of_range, number, size]


@pytest.mark.parametrize("int8", [False, True])
def test_c_code_agrees_on_photographs(int8: bool, test_data: Path, tmp_path: Path) -> None:
    """The bundled model: to 0.02 degrees with float weights, to 0.15 in the mean with int8 weights."""
    need("gcc")
    samples = [each for each in read_samples(test_data / "data" / "ffcc_sample") if each.camera == "Canon600D"]
    images = [sample.read() for sample in samples[:12]]
    model = load_model()
    profile = model.calibrate(images[:4])
    write_files(export_c(model, profile, tmp_path, int8=int8).files)
    program = build(tmp_path, "-O2")
    frames = images + [average_zones(image, 32, 32) for image in images]
    found = run_frames(program, frames)
    expected = [model.estimate(frame, profile) for frame in frames]
    apart = angular_error(found[:, 1:4], [each.illuminant for each in expected])
    assert (found[:, 0] == 0).all()
    assert apart.mean() < (0.15 if int8 else 0.005)
    assert apart.max() < (1.0 if int8 else 0.02)


@pytest.mark.parametrize("int8", [False, True])
def test_onnx_graphs_agree(int8: bool, small: tuple[Model, Profile], vectors: dict[str, np.ndarray]) -> None:
    import onnxruntime

    model, profile = small
    folded = fold(*small)
    apart = 1.0 if int8 else 0.02
    given = {"seen": vectors["seen"][None], "searched": vectors["searched"][None]}
    session = onnxruntime.InferenceSession(make_graph(folded, from_pixels=False, int8=int8))
    illuminant, gains, uncertainty, heat = session.run(None, given)
    assert angular_error(illuminant, vectors["illuminant"]) < apart
    np.testing.assert_allclose(gains, illuminant[1] / illuminant, rtol=1e-5)
    assert uncertainty[0] == pytest.approx(float(vectors["uncertainty"]), abs=apart)
    assert heat.sum() == pytest.approx(1, abs=1e-4)
    session = onnxruntime.InferenceSession(make_graph(folded, from_pixels=True, int8=int8))
    rng = np.random.default_rng(0)
    frames = [photo.image for photo in render_roll(VirtualCamera.random(rng), 2, rng, (40, 60))]
    for image in [LinearImage(vectors["image"], mask=~vectors["ignore"]), *frames, average_zones(frames[0], 17, 23)]:
        light, *_ = session.run(None, {"image": image.rgb, "ignore": ~image.mask | image.clipped})
        assert angular_error(light, model.estimate(image, profile).illuminant) < apart


def test_onnx_graphs_give_the_light_of_no_frame_where_nothing_counts(small: tuple[Model, Profile]) -> None:
    import onnxruntime

    folded = fold(*small)
    empty = np.zeros((1, 3, 16, 16), np.float32)
    session = onnxruntime.InferenceSession(make_graph(folded, from_pixels=False, int8=False))
    expected, *_ = session.run(None, {"seen": empty, "searched": empty})
    session = onnxruntime.InferenceSession(make_graph(folded, from_pixels=True, int8=False))
    gray, nowhere = np.full((9, 9, 3), 0.5, np.float32), np.zeros((9, 9), np.bool_)
    useless = [
        (gray * 2, nowhere),
        (gray * 0, nowhere),
        (gray * np.array([1, 0, 0], np.float32), nowhere),
        (gray, ~nowhere),
    ]
    for image, ignore in [*useless, (gray * np.nan, ~nowhere)]:
        light, *_ = session.run(None, {"image": image, "ignore": ignore})
        np.testing.assert_allclose(light, expected, atol=1e-6)


def test_tensorflow_lite_agrees(small: tuple[Model, Profile], vectors: dict[str, np.ndarray]) -> None:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=make_tflite(fold(*small)))
    interpreter.allocate_tensors()
    for place in interpreter.get_input_details():
        interpreter.set_tensor(place["index"], vectors[place["name"]][None])
    interpreter.invoke()
    found = {each["name"]: interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()}
    assert angular_error(found["illuminant"], vectors["illuminant"]) < 0.02
    np.testing.assert_allclose(found["gains"], found["illuminant"][1] / found["illuminant"], rtol=1e-5)
    assert found["uncertainty"][0] == pytest.approx(float(vectors["uncertainty"]), abs=0.02)
    np.testing.assert_allclose(found["heat_map"], vectors["heat_map"], atol=1e-4)


def test_onnx_leaves_rows_out_as_python_does(vectors: dict[str, np.ndarray]) -> None:
    """Of frames with more pixels than the grid's, only every second, third ... row counts."""
    import onnxruntime

    model = load_model()
    rng = np.random.default_rng(5)
    (photo,) = render_roll(VirtualCamera.random(rng), 1, rng, (200, 300))
    session = onnxruntime.InferenceSession(make_graph(fold(model), from_pixels=True, int8=False))
    light, *_ = session.run(None, {"image": photo.image.rgb, "ignore": ~photo.image.mask | photo.image.clipped})
    assert angular_error(light, model.estimate(photo.image).illuminant) < 0.02


def test_what_cannot_be_exported_says_so() -> None:
    together = ModelFile("together", "separate", Grid(), 7, {"query": b"a graph"})
    with pytest.raises(ParameterError, match="no profile can be baked in"):
        fold(Model(together))
    published = ModelFile("published", "profile", Grid.published(), 7, {"query": b"a graph", "roll": b"another"})
    with pytest.raises(ParameterError, match="published geometry"):
        fold(Model(published))


def test_the_command_writes_and_replaces_only_its_own(tmp_path: Path) -> None:
    model = [str(VECTORS / "small.c5"), "--profile", str(VECTORS / "small.c5profile")]
    folder, graphs = tmp_path / "code", tmp_path / "graphs"
    runner = CliRunner()
    done = runner.invoke(app, ["export", *model, "--c", str(folder), "--onnx", str(graphs)])
    assert done.exit_code == 0, done.output
    assert "multiply-adds" in done.output
    again = ["export", *model, "--c", str(folder), "--onnx", str(graphs), "--int8"]
    assert runner.invoke(app, again).exit_code == 1  # what exists stays
    assert runner.invoke(app, [*again, "--overwrite"]).exit_code == 0
    (folder / "c5_weights.c").write_text("/* mine */\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert runner.invoke(app, ["export", *model, "--c", str(folder), "--overwrite"]).exit_code == 1
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert runner.invoke(app, ["export"]).exit_code == 1
    assert runner.invoke(app, ["export", "--c", str(tmp_path / "more"), "--roll", str(tmp_path)]).exit_code == 1
    assert not (tmp_path / "more").exists()


def test_names_in_comments_stay_in_them(small: tuple[Model, Profile]) -> None:
    model, profile = small
    hostile = Profile(profile.model, profile.features, profile.n_images, "*/ int main; /*\n\x1b[2J")
    files, _ = write_c(fold(model, hostile), vector_image(), int8=False)
    head = files["c5_awb.h"].decode().partition("#ifndef")[0]
    assert head.count("*/") == 1
    assert head.isascii()
    assert "\x1b" not in head


MATRICES = CameraMatrices(
    "a sensor",
    np.array([[0.9, -0.3, -0.1], [-0.3, 1.1, 0.2], [-0.05, 0.2, 0.5]]),
    np.array([[0.8, -0.25, -0.1], [-0.4, 1.2, 0.2], [-0.05, 0.2, 0.6]]),
)


def test_libcamera_curve_is_that_of_the_matrices() -> None:
    curve = ct_curve(MATRICES)
    warm = curve[:, 0] <= 4000
    ratios = MATRICES.illuminant(curve[warm, 0])
    np.testing.assert_allclose(curve[warm, 1], ratios[:, 0] / ratios[:, 1], rtol=1e-6)  # black bodies
    assert (np.diff(curve[:, 0]) > 0).all()
    assert (np.diff(curve[:, 1]) < 0).all()
    assert (np.diff(curve[:, 2]) > 0).all()


def test_libcamera_learns_limits_and_priors_from_lights() -> None:
    plain = tune(MATRICES)["algorithms"][0]["rpi.awb"]
    assert set(plain["priors"][0]["prior"][1::2]) == {0.0}  # nothing is known
    assert 0.01 <= plain["transverse_pos"] <= 0.1
    green = [Sight(MATRICES.illuminant(kelvin) * [0.93, 1.0, 0.93]) for kelvin in (3000, 4000, 5000, 6000)]
    wide = tune(MATRICES, green)["algorithms"][0]["rpi.awb"]
    assert max(wide["transverse_pos"], wide["transverse_neg"]) > max(plain["transverse_pos"], plain["transverse_neg"])
    lamps = [Sight(MATRICES.illuminant(2850), 4.0)] * 8
    suns = [Sight(MATRICES.illuminant(6500), 14.0)] * 8
    dark, bright = tune(MATRICES, lamps + suns)["algorithms"][0]["rpi.awb"]["priors"]
    assert 20 < dark["lux"] < 80
    assert 30_000 < bright["lux"] < 60_000
    best = [each["prior"][0::2][int(np.argmax(each["prior"][1::2]))] for each in (dark, bright)]
    assert best[0] < 3300
    assert best[1] > 5500


def test_libcamera_refuses_matrices_of_no_sensor() -> None:
    swapped = CameraMatrices("swapped", MATRICES.matrix_a[::-1], MATRICES.matrix_d65[::-1])
    with pytest.raises(ParameterError, match="check the matrices"):
        tune(swapped)


def test_the_command_tunes_libcamera_from_a_roll(tmp_path: Path) -> None:
    runner, rng = CliRunner(), np.random.default_rng(2)
    camera = VirtualCamera.random(rng)
    for number, photo in enumerate(render_roll(camera, 3, rng, (64, 96))):
        write_dng(tmp_path / "roll" / f"{number}.dng", photo, camera)
    out = tmp_path / "sensor.json"
    done = runner.invoke(app, ["export", "--libcamera", str(out), "--roll", str(tmp_path / "roll")])
    assert done.exit_code == 0, done.output
    (block,) = json.loads(out.read_text())["algorithms"]
    assert len(block["rpi.awb"]["ct_curve"]) % 3 == 0
    done = runner.invoke(app, ["export", "--libcamera", str(tmp_path / "other.json")])
    assert done.exit_code == 1
    assert not (tmp_path / "other.json").exists()


def test_libcamera_refuses_a_roll_of_another_sensor(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    camera = VirtualCamera.random(rng)
    (photo,) = render_roll(camera, 1, rng, (64, 96))
    write_dng(tmp_path / "roll" / "a.dng", photo, camera)
    (tmp_path / "empty").mkdir()
    write_matrices(tmp_path / "other.csv", [replace(MATRICES, name="Another")])
    write_matrices(tmp_path / "own.csv", [replace(MATRICES, name=camera.name), replace(MATRICES, name="Another")])
    out, code = tmp_path / "x.json", tmp_path / "code"
    for table, roll, says in (
        ("other", "roll", "but the matrices are of Another"),
        ("own", "empty", "folders in it are not searched"),
        ("own", "roll", ""),
    ):
        command = ["export", "--libcamera", str(out), "--matrices", str(tmp_path / f"{table}.csv")]
        done = CliRunner().invoke(
            app, [*command, "--roll", str(tmp_path / roll), *(["--c", str(code)] if says else [])]
        )
        assert out.exists() == (not says), done.output
        assert says in str(done.exception)
        assert not code.exists()  # nothing is written if one of the files cannot be


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--onnx", "file/graphs"], "is a file; choose another place"),
        (["--onnx", "c/c5_awb.c"], "is wanted for two files"),
        (["--tflite", "c"], "is wanted for two files"),
        (["--onnx", "graphs", "--overwrite"], "pixels.onnx: was not written by c5"),
        (["--onnx", "x" * 300], "File name too long; choose another place"),
        (["--prefix", "x" * 300], "cannot begin names in C"),
        (["--profile", "other.c5profile"], "calibrate again with this model"),
    ],
)
def test_targets_are_checked_before_anything_is_written(
    more: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ai_edge_litert")
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("graphs").mkdir()
    Path("graphs", "pixels.onnx").write_text("mine")
    load_model().calibrate([]).save("other.c5profile")
    before = sorted(tmp_path.rglob("*"))
    done = CliRunner().invoke(app, ["export", str(VECTORS / "small.c5"), "--c", "c", *more])
    assert isinstance(done.exception, C5Error), done.output
    assert says in str(done.exception)
    assert sorted(tmp_path.rglob("*")) == before


def test_int8_and_prefix_are_refused_where_they_mean_nothing(tmp_path: Path) -> None:
    command = ["export", "--libcamera", str(tmp_path / "x.json")]
    assert "--int8 is for --c and --onnx" in str(CliRunner().invoke(app, [*command, "--int8"]).exception)
    assert "--prefix is for --c" in str(CliRunner().invoke(app, [*command, "--prefix", "rear"]).exception)
