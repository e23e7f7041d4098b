"""`c5 export`: a model for use outside Python."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.console import complain, console, print_table, show_progress
from c5.cli.options import MatricesFile, Overwrite, ProfileFile, check_free
from c5.errors import ParameterError
from c5.words import plural

if TYPE_CHECKING:
    from c5.colorimetry.matrices import CameraMatrices
    from c5.export.libcamera import Sight
    from c5.model import Model, Profile
    from c5.photos.photo import Photo


def export(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="A model file, or the name of a bundled one.")
    ] = None,
    profile: ProfileFile = None,
    c: Annotated[Path | None, typer.Option("--c", help="A folder for C99 code, a test vector and a Makefile.")] = None,
    prefix: Annotated[
        str,
        typer.Option("--prefix", help="For --c: what its names begin with; each sensor in a program needs its own."),
    ] = "c5",
    onnx: Annotated[
        Path | None, typer.Option("--onnx", help="A folder for two ONNX graphs: from histograms, and from pixels.")
    ] = None,
    tflite: Annotated[
        Path | None, typer.Option("--tflite", metavar="FILE", help="A TensorFlow Lite graph: from histograms.")
    ] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="For --c and --onnx: keep weights in 8 bits, a quarter of the size.")
    ] = False,
    libcamera: Annotated[
        Path | None,
        typer.Option(
            "--libcamera", metavar="SENSOR.json", help="A file for libcamera's white balance on a Raspberry Pi."
        ),
    ] = None,
    matrices: MatricesFile = None,
    roll: Annotated[
        Path | None, typer.Option("--roll", help="For --libcamera: photographs that show which lights are usual.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Export a model for use outside Python, with the profile of a camera baked in.

    Prints what a query needs: weights (or the whole graph), C code as a Cortex-M4 has it with -Os, memory, the largest
    maps between two layers, and multiply-adds.
    """
    from c5.export.c_code import export_c
    from c5.export.layers import Export
    from c5.export.libcamera import export_libcamera
    from c5.export.onnx_graphs import export_onnx
    from c5.export.tflite import export_tflite, load_schema
    from c5.io.files import write_files
    from c5.model import Profile, load_model

    wanted = [path for path in (c, onnx, tflite, libcamera) if path is not None]
    if not wanted:
        raise ParameterError("nothing to write: give --c DIR, --onnx DIR, --tflite FILE or --libcamera SENSOR.json")
    if libcamera is None and (roll is not None or matrices is not None):
        raise ParameterError("--roll and --matrices are for --libcamera")
    if int8 and (tflite is not None or (c is None and onnx is None)):
        raise ParameterError("--int8 is for --c and --onnx: the other files have no such weights")
    if prefix != "c5" and c is None:
        raise ParameterError("--prefix is for --c: the other files have no such names")
    for path in wanted:
        check_free(path, overwrite)
    if tflite is not None:
        load_schema()
    loaded = load_model(model)
    camera = None if profile is None else Profile.load(profile)
    exports: list[Export] = []
    tuned = ""
    if libcamera is not None:
        known, lights = _look_at_roll(loaded, camera, roll, matrices)
        exports.append(Export([(libcamera, export_libcamera(known, lights))], {}))
        tuned = f"{libcamera}: {known.name}, {plural(len(lights), 'photograph')}"
    if c is not None:
        exports.append(export_c(loaded, camera, c, int8=int8, prefix=prefix))
    if onnx is not None:
        exports.append(export_onnx(loaded, camera, onnx, int8=int8))
    if tflite is not None:
        exports.append(export_tflite(loaded, camera, tflite))
    write_files([file for made in exports for file in made.files])
    rows = [[name, *budget.cells] for made in exports for name, budget in made.budgets.items()]
    if rows:
        print_table(["written", "weights", "code", "memory", "largest maps", "multiply-adds"], rows)
    if tuned:
        console.print(tuned)


def _look_at_roll(
    model: Model, profile: Profile | None, roll: Path | None, table: Path | None
) -> tuple[CameraMatrices, list[Sight]]:
    """The matrices of the camera, and the lights of its photographs."""
    from c5.colorimetry.matrices import pick_matrices, read_matrices
    from c5.export.libcamera import Sight
    from c5.photos.photo import read_photo
    from c5.photos.roll_building import read_shots

    camera = None if profile is None else profile.camera
    photos: list[Photo] = []
    if roll is not None:
        track = partial(show_progress, what="reading the roll")
        photos, failures = read_shots(roll, partial(read_photo, grid=model.grid), camera=camera, track=track)
        for failure in failures:
            complain(f"passed over: {failure.message}")
    camera = camera or next((photo.camera for photo in photos if photo.camera), None)
    matrices = next((photo.matrices for photo in photos if photo.matrices is not None), None)
    if table is not None:
        found = read_matrices(table)
        matrices = pick_matrices(found, camera)
        if matrices is None:
            raise ParameterError(f"{table}: has the matrices of {len(found)} cameras; give a file with those of one")
    if matrices is None:
        raise ParameterError(
            "--libcamera needs the matrices of the sensor: give --matrices FILE, or --roll DIR with DNG files"
        )
    if None not in (camera, matrices.name) and camera != matrices.name:
        raise ParameterError(f"{roll or 'the profile'}: of {camera}, but the matrices are of {matrices.name}")
    histograms = [photo.histograms for photo in photos if photo.histograms is not None]
    if profile is None and photos:
        profile = model.calibrate_histograms(histograms[: model.takes(len(histograms))])
    lights = [model.estimate_histogram(one, profile).illuminant for one in histograms]
    return matrices, [Sight(light, photo.exposure) for light, photo in zip(lights, photos, strict=True)]
