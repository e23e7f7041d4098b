"""Options that several commands have: each means the same everywhere, and is described in the same words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.console import complain, show_progress
from c5.errors import WriteError

if TYPE_CHECKING:
    from c5.histograms import Histograms
    from c5.image import LinearImage
    from c5.io.raw import Photograph
    from c5.model import Model

# What goes in

Photographs = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Raw files, 16-bit linear PNG or TIFF, or .npy.")
]
Datasets = Annotated[
    list[Path], typer.Argument(metavar="DATA", help="Datasets: folders in a known layout, or .c5data packs.")
]
AssumeSrgb = Annotated[bool, typer.Option("--assume-srgb", help="Linearise 8-bit files as sRGB.")]
Black = Annotated[float, typer.Option("--black", help="The black level; default: the file's own.", show_default=False)]
White = Annotated[float | None, typer.Option("--white", help="The white level; default: the file's own.")]
LayoutName = Annotated[
    str | None, typer.Option("--layout", help="How the data is laid out, if that is not recognised.")
]
MatricesFile = Annotated[Path | None, typer.Option("--matrices", help="A CSV file with the matrices of cameras.")]

# What is known of the camera, and what estimates

ModelName = Annotated[str | None, typer.Option("--model", help="A .c5 file, or the name of a bundled model.")]
ProfileFile = Annotated[Path | None, typer.Option("--profile", help="A camera profile made by `c5 calibrate`.")]
RollFolder = Annotated[Path | None, typer.Option("--roll", help="A folder of photographs of the same camera.")]
CameraName = Annotated[str | None, typer.Option("--camera", help="The camera of files that do not name theirs.")]
MethodName = Annotated[
    str | None,
    typer.Option("--method", help="An estimator: a name that `c5 methods` lists, module:Class, or a model."),
]
AugmentationName = Annotated[
    str | None,
    typer.Option("--augmentation", help="How images are made: paper, sampling, clustering, virtual or catalogue."),
]
Threads = Annotated[int, typer.Option("--threads", help="Threads that one estimate may use.", min=1)]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Files read at a time; default: one a core, up to 4.", min=1)]
Seed = Annotated[int, typer.Option("--seed", help="Another number gives another result.", min=0)]
Bfloat16 = Annotated[bool, typer.Option("--bfloat16", help="Train faster on hardware that has bfloat16.")]
Epochs = Annotated[int | None, typer.Option("--epochs", help="How long to train; default: as the recipe says.", min=1)]

# What comes out

OutFile = Annotated[Path, typer.Option("--out", "-o", help="The file to write.")]
OutFolder = Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what exists.")]
Plots = Annotated[Path | None, typer.Option("--plots", help="A folder to draw plots into.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line instead of a table.")]


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse to replace what exists, before the work begins."""
    if path.exists() and not overwrite:
        raise WriteError(f"{path}: exists already; choose another name or give --overwrite")


def make_reader(black: float, white: float | None, assume_srgb: bool) -> Callable[..., Photograph]:
    """`read_photograph` with the levels that were asked for."""
    from c5.io.raw import read_photograph

    return partial(read_photograph, black=black, white=white, assume_srgb=assume_srgb)


def read_roll(
    folder: Path, read: Callable[..., Photograph], model: Model | None = None
) -> Iterator[tuple[LinearImage, Histograms]]:
    """The images of a folder, as many as the model takes; those that cannot be used are named and passed over."""
    from c5.histograms import Grid
    from c5.photos import folder as rolls

    paths = rolls.find_roll(folder)
    chosen = paths if model is None else model.choose(paths)
    if len(chosen) < len(paths):
        complain(
            f"the model takes {len(chosen)} additional images: using {len(chosen)} of the {len(paths)} in {folder}"
        )
    grid = Grid() if model is None else model.grid.without_strips
    return rolls.read_roll(show_progress(chosen, "reading the roll"), folder, grid, read, complain)
