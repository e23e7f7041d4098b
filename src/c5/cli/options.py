"""Options shared by several commands, described in the same words."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.console import complain, console, show_progress
from c5.errors import ParameterError, WriteError
from c5.plotting import need_matplotlib

if TYPE_CHECKING:
    from c5.model import Model, Profile
    from c5.photos.photo import Reading
    from c5.photos.roll_building import Roll

# What goes in

Photographs = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Raw files, 16-bit linear PNG or TIFF, or .npy.")
]
Datasets = Annotated[
    list[Path], typer.Argument(metavar="DATA", help="Datasets: folders in a known layout, or .c5data packs.")
]
TestedData = Annotated[
    list[Path], typer.Argument(metavar="DATA", help="Datasets: folders in a known layout, .c5data packs, .c5set files.")
]
Zones = Annotated[
    str | None,
    typer.Option(
        "--zones", metavar="ROWSxCOLUMNS", help="Average images to zones first, for a model that is given zones."
    ),
]
AssumeSrgb = Annotated[bool, typer.Option("--assume-srgb", help="Linearize 8-bit files as sRGB.")]
Black = Annotated[float, typer.Option("--black", help="The black level; default: the file's own.", show_default=False)]
White = Annotated[float | None, typer.Option("--white", help="The white level; default: the file's own.")]
LayoutName = Annotated[
    str | None, typer.Option("--layout", help="How the data is laid out, if that is not recognized.")
]
MatricesFile = Annotated[Path | None, typer.Option("--matrices", help="A CSV file with the matrices of cameras.")]

# What is known of the camera, and what makes the estimate

ModelName = Annotated[str | None, typer.Option("--model", help="A .c5 file, or the name of a bundled model.")]
ProfileFile = Annotated[Path | None, typer.Option("--profile", help="A camera profile made by `c5 calibrate`.")]
RollFolder = Annotated[Path | None, typer.Option("--roll", help="A folder of photographs of the same camera.")]
CatalogFile = Annotated[
    Path | None, typer.Option("--catalog", help="The catalog's file; default: one in your data folder.")
]
CameraName = Annotated[str | None, typer.Option("--camera", help="The camera of files that do not name theirs.")]
MethodName = Annotated[
    str | None,
    typer.Option("--method", help="An estimator: a name that `c5 methods` lists, module:Class, or a model."),
]
AugmentationName = Annotated[
    str | None,
    typer.Option(
        "--augmentation",
        help="How images are made: paper, sampling, clustering, virtual, catalog or none; then, after a colon, "
        "without-xyz (only the light changes) or alone (train on made images only).",
    ),
]
Threads = Annotated[int, typer.Option("--threads", help="Threads that one estimate may use.", min=1)]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Files read at once; default: one per core, up to 4.", min=1)]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray", help="Work on the Ray cluster at this address: HOST:PORT, ray://HOST:PORT or auto.", metavar="ADDRESS"
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed.", min=0)]
Bfloat16 = Annotated[bool, typer.Option("--bfloat16", help="Train faster on hardware that has bfloat16.")]
Made = Annotated[int | None, typer.Option(help="How many images to make; default: as in the paper.", min=1)]
Epochs = Annotated[int | None, typer.Option("--epochs", help="How many epochs to train; default: the recipe's.", min=1)]

# The look; the names are those of the fields of `c5.photos.taste.Look`

LOOKS: dict[str, tuple[object, object]] = {
    "strength": (
        Annotated[
            float | None,
            typer.Option(
                "--strength", min=0, max=1, help="Less than 1 keeps a part of the light's color; 0 keeps all of it."
            ),
        ],
        None,
    ),
    "keep_warmth": (
        Annotated[bool, typer.Option("--keep-warmth", help="Keep a part of the color of warm light, below 5000 K.")],
        False,
    ),
    "warmer": (
        Annotated[float, typer.Option("--warmer", metavar="MIRED", help="Make pictures warmer; below zero, colder.")],
        0.0,
    ),
    "tint": (
        Annotated[float, typer.Option("--tint", help="Make pictures more magenta; below zero, greener.")],
        0.0,
    ),
    "learned": (Annotated[bool, typer.Option("--learned", help="Use the look that `c5 learn` has found.")], False),
}

# What comes out

OutFile = Annotated[Path, typer.Option("--out", "-o", help="The file to write.")]
OutFolder = Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")]
PrintedFile = Annotated[Path | None, typer.Option("--out", "-o", help="The file to write; default: print it.")]
ResumedFolder = Annotated[
    Path, typer.Option("--out", "-o", help="The folder to write to; run again, it continues there.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files that c5 wrote.")]
Plots = Annotated[Path | None, typer.Option("--plots", help="A folder to draw plots into.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line, instead of a table.")]


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse to replace what exists, what is in the catalog, and a folder that cannot be, before the work begins."""
    from c5.io.files import check_folder

    try:
        files = [file for file in (path.iterdir() if path.is_dir() else [path]) if file.exists()]
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror}; choose another place") from error
    if files and not overwrite:
        raise WriteError(f"{path}: exists already; choose another name or give --overwrite")
    check_folder(path.parent)
    if files:
        _refuse_cataloged(files)


def check_plots(folder: Path | None, overwrite: bool) -> None:
    """Refuse a folder that holds plots, and complain if they cannot be drawn, before the work begins."""
    if folder is not None:
        from c5.io.files import check_folder

        need_matplotlib()
        check_folder(folder)
        for plot in sorted(folder.glob("*.png")):
            check_free(plot, overwrite)


def write_or_print(text: str, out: Path | None) -> None:
    """Write a text to a file and print its name, or print the text if there is no file to write."""
    from c5.io.files import write_file

    if out is None:
        print(text, end="")
    else:
        console.print(write_file(out, text.encode()))


def _refuse_cataloged(files: list[Path]) -> None:
    from c5.photos import catalog

    place = catalog.default_path()
    if place.is_file():
        with catalog.Catalog.open(place) as opened:
            for file in files:
                if opened.holds(file):
                    raise WriteError(f"{file}: is in the catalog; choose another name")


def warn_of_profile(path: Path, camera: str | None, profile: Profile | None) -> None:
    """Say that a photograph is from another camera than its profile, if the names of both are known."""
    known = None if profile is None else profile.camera
    if None not in (camera, known) and camera != known:
        complain(f"{path}: from {camera}, but the profile is of {known}; do not trust it")


def find_roll(
    folder: Path | None, profile: Path | None, model: Model, reading: Reading, *, thumbnails: bool = False
) -> Roll:
    """What is known of the camera: from a folder of its photographs, from a profile, or nothing."""
    from c5.model import Profile
    from c5.photos.roll_building import Origin, Roll

    if folder is not None and profile is not None:
        raise ParameterError("--roll and --profile both describe the camera: give one of them")
    if folder is not None:
        return read_roll(folder, model, reading, thumbnails=thumbnails)
    if profile is None:
        return Roll()
    known = Profile.load(profile)
    model.check_profile(known)
    return Roll(known.camera, Origin.PROFILE, known)


def read_roll(
    folder: Path, model: Model, reading: Reading, *, thumbnails: bool = False, zones: tuple[int, int] | None = None
) -> Roll:
    """The roll of a folder; photographs that cannot be used are named and skipped."""
    from c5.photos import roll_building

    listed = roll_building.list_roll(folder)
    taken = model.takes(len(listed))
    if taken < len(listed):
        complain(f"the model takes {taken} additional images: using {taken} of the {len(listed)} in {folder}")
    track = partial(show_progress, what="reading the roll")
    roll = roll_building.read_roll(folder, model, reading, thumbnails=thumbnails, zones=zones, track=track)
    for failure in roll.failures:
        complain(f"passed over: {failure.message}")
    return roll
