"""`c5 augment`: photographs mapped to other cameras and lights, written to a pack."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from c5.cli.console import complain, console, show_progress
from c5.cli.data import write_images
from c5.cli.options import Datasets, MatricesFile, OutFile, Overwrite, Plots, Seed, check_free, check_plots
from c5.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from c5.datasets import Sample

SHOWN_LIGHTS = 2000
"""The plots show at most this many of the images made."""


def augment(
    data: Datasets,
    out: OutFile,
    overwrite: Overwrite = False,
    augmentation: Annotated[
        str,
        typer.Option(
            help="How images are made: paper, sampling, clustering, virtual or catalog; paper:without-xyz and so on "
            "change only the light."
        ),
    ] = "paper",
    made: Annotated[int, typer.Option(help="How many images to make.", min=1)] = 5000,
    purpose: Annotated[
        list[str] | None,
        typer.Option("--for", help="For a .c5set: what to prepare for, as in `c5 data prepare`; default: paper."),
    ] = None,
    seed: Seed = 0,
    matrices: MatricesFile = None,
    source: Annotated[list[str] | None, typer.Option(help="Make images from this camera's; default: from all.")] = None,
    target: Annotated[list[str] | None, typer.Option(help="Map them to this camera; default: all.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Use neither images nor matrices of this camera.")] = None,
    plots: Plots = None,
) -> None:
    """Map photographs to other cameras and lights, for training.

    The new images go into a .c5data pack, or, prepared, into a .c5set if the file has that ending. If it is stopped or
    killed, the same command continues from there.
    """
    import numpy as np

    from c5.augmentation import augment as make
    from c5.augmentation.plot import plot_lights, show_images
    from c5.colorimetry.matrices import read_matrices
    from c5.datasets import read_samples, write_pack
    from c5.datasets.facts import full_name, match_name
    from c5.datasets.prepared import write_prepared
    from c5.training.data import features_for
    from c5.training.making import find_making

    making = find_making(augmentation, made)
    if making.alone or not making.count:
        raise ParameterError(f"--augmentation {augmentation} is for training: here, name how images are made")
    check_free(out, overwrite)
    check_plots(plots, overwrite)
    known = None if matrices is None else read_matrices(matrices)
    samples = read_samples(data)
    cameras = {sample.camera for sample in samples}
    for name in (*(source or ()), *(target or ())):
        if name not in cameras:
            raise ParameterError(f"no camera is called {name!r}; the data have {', '.join(sorted(cameras))}")
    for name in exclude or ():  # a typo here would let in a camera that must stay out
        if full_name(name) not in map(full_name, cameras) and match_name(name, known or ()) is None:
            raise ParameterError(f"--exclude {name}: neither in the data nor among the matrices; give its whole name")
    targets = [sample for sample in samples if not target or sample.camera in target]
    images = make(
        [sample for sample in samples if not source or sample.camera in source],
        making.method,
        made,
        np.random.default_rng(seed),
        targets=targets,
        matrices=known,
        exclude=frozenset(exclude or ()),
        via_xyz=making.via_xyz,
        dataset=out.stem,
    )
    images = chain([next(images)], images)  # anything missing shows before a file is begun
    shown: list[Sample] = []

    def track(images: Iterable[Sample]) -> Iterable[Sample]:
        for image in show_progress(images, "making images", made):
            if len(shown) < SHOWN_LIGHTS:
                shown.append(image)
            yield image

    if out.suffix == ".c5set":
        features = features_for(purpose or ["paper"])
        report = write_images(out, lambda: write_prepared(images, out, features, track, overwrite))
    else:
        report = write_images(out, lambda: write_pack(images, out, track, overwrite))
    if plots is not None:
        barred = {full_name(name) for name in exclude or ()}
        real = [sample for sample in targets if full_name(sample.camera) not in barred]
        console.print(plot_lights(plots / "illuminants.png", shown, real))
        title = f"Made by the augmentation {augmentation}"
        console.print(show_images(plots / "pictures.png", shown, samples, title))
    for problem in report.skipped:
        complain(f"left out: {problem.message}")
    if report.skipped:
        raise typer.Exit(1)
