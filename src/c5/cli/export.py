"""`c5 export`: a model for use outside Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.console import console, print_table, show_progress
from c5.cli.options import MatricesFile, Overwrite, ProfileFile, check_free
from c5.errors import ParameterError
from c5.words import plural

if TYPE_CHECKING:
    from c5.colorimetry.matrices import CameraMatrices
    from c5.export.layers import Budget
    from c5.export.libcamera import Sight
    from c5.model import Model, Profile


def export(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="A model file, or the name of a bundled one.")
    ] = None,
    profile: ProfileFile = None,
    c: Annotated[Path | None, typer.Option("--c", help="A folder for C99 code, a test vector and a Makefile.")] = None,
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

    Prints what a query needs: flash, memory, the largest maps between two layers, and multiply-adds.
    """
    from c5.export.c_code import export_c
    from c5.export.libcamera import export_libcamera
    from c5.export.onnx_graphs import export_onnx
    from c5.export.tflite import export_tflite, load_schema
    from c5.model import Profile, load_model

    wanted = [path for path in (c, onnx, tflite, libcamera) if path is not None]
    if not wanted:
        raise ParameterError("nothing to write: give --c DIR, --onnx DIR, --tflite FILE or --libcamera SENSOR.json")
    if libcamera is None and (roll is not None or matrices is not None):
        raise ParameterError("--roll and --matrices are for --libcamera")
    if tflite is not None:
        load_schema()  # before anything is written
        if int8:
            raise ParameterError("--int8 is for --c and --onnx: a TensorFlow Lite graph has float weights")
    for path in wanted:
        check_free(path, overwrite)
    loaded = load_model(model)
    camera = None if profile is None else Profile.load(profile)
    budgets: dict[str, Budget] = {}
    if c is not None:
        budgets[str(c)] = export_c(loaded, camera, c, int8=int8)
    if onnx is not None:
        budgets |= export_onnx(loaded, camera, onnx, int8=int8)
    if tflite is not None:
        budgets[str(tflite)] = export_tflite(loaded, camera, tflite)
    if budgets:
        rows = ([name, *budget.cells] for name, budget in budgets.items())
        print_table(["written", "flash", "memory", "largest maps", "multiply-adds"], rows)
    if libcamera is not None:
        known, lights = _look_at_roll(loaded, camera, roll, matrices)
        console.print(
            f"{export_libcamera(libcamera, known, lights)}: {known.name}, {plural(len(lights), 'photograph')}"
        )


def _look_at_roll(
    model: Model, profile: Profile | None, roll: Path | None, table: Path | None
) -> tuple[CameraMatrices, list[Sight]]:
    """The matrices of the camera, and the lights of its photographs."""
    from c5.colorimetry.matrices import pick_matrices, read_matrices
    from c5.export.libcamera import Sight
    from c5.io.raw import read_photograph
    from c5.photos.rolls import list_roll

    photographs = [read_photograph(path) for path in show_progress([] if roll is None else list_roll(roll), "reading")]
    matrices = next((each.matrices for each in photographs if each.matrices is not None), None)
    if table is not None:
        found = read_matrices(table)
        matrices = pick_matrices(found, None if profile is None else profile.camera)
        if matrices is None:
            raise ParameterError(f"{table}: has the matrices of {len(found)} cameras; give a file with those of one")
    if matrices is None:
        raise ParameterError(
            "--libcamera needs the matrices of the sensor: give --matrices FILE, or --roll with DNG files"
        )
    images = [photograph.image for photograph in photographs]
    for image in images:
        if profile is not None and None not in (profile.camera, image.camera) and image.camera != profile.camera:
            raise ParameterError(f"{image.where}of {image.camera}, but the profile is of {profile.camera}")
    known = model.calibrate(images) if profile is None and images else profile
    return matrices, [Sight(model.estimate(each.image, known).illuminant, each.exposure) for each in photographs]
