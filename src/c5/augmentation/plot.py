"""Two pictures of an augmentation: its lights among the real ones, and some of its images beside their sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from c5.augmentation.draw import split_by_camera
from c5.augmentation.illuminants import chromaticity, fit_cubic
from c5.augmentation.mapping import MappedImage
from c5.color import Float64s
from c5.datasets import Sample
from c5.errors import ParameterError
from c5.image import shrink
from c5.io.files import write_file
from c5.photos.picture import Frame, develop, make_sheet, write_picture
from c5.plotting import encode_figure, new_figure

MOST_PANELS = 12
REAL, MADE, CURVE = "#1f3b57", "#f08a24", "#8b1e3f"


def plot_lights(path: str | Path, made: Sequence[Sample], targets: Sequence[Sample]) -> Path:
    """The lights of made samples over those of the target cameras, in rg chromaticity, each camera with its cubic.

    One panel per camera if the made samples are of these cameras; otherwise one panel for all.
    """
    groups = sorted(split_by_camera(targets), key=lambda group: group[0].camera)
    by_camera = {group[0].camera for group in groups} >= {sample.camera for sample in made}
    groups = [g for g in groups if not by_camera or any(sample.camera == g[0].camera for sample in made)]
    panels = groups[:MOST_PANELS] if by_camera else [[sample for group in groups for sample in group]]
    columns = min((4, 5, 3), key=lambda across: -len(panels) % across) if len(panels) > 4 else len(panels)
    rows = -(-len(panels) // columns)
    wide = 3.1 if len(panels) > 1 else 6.4
    figure = new_figure(columns * wide, rows * wide * 0.87 + 0.5)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axis, group in zip(axes, panels, strict=False):
        shown = [sample for sample in made if sample.camera == group[0].camera] if by_camera else made
        title = f"{group[0].camera}: {len(group)} real, {len(shown)} made"
        title = title if by_camera else f"{len(group)} real, {len(shown)} made"
        axis.set_title(title, fontsize=9 if by_camera else 11)
        axis.scatter(*_rg(shown).T, s=10, c=MADE, alpha=0.6, linewidths=0, label="made")
        axis.scatter(*_rg(group).T, s=5, c=REAL, alpha=0.7, linewidths=0, label="real", zorder=3)
        for number, of_camera in enumerate(split_by_camera(group)):
            r = _rg(of_camera)[:, 0]
            r = np.linspace(r.min(), r.max(), 60)
            cubic = np.polyval(fit_cubic(np.stack([sample.illuminant for sample in of_camera])), r)
            axis.plot(r, cubic, c=CURVE, lw=1.2, zorder=4, label=None if number else "cubic through the real")
        axis.grid(alpha=0.25)
        axis.tick_params(labelsize=8)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    figure.supxlabel("r / (r + g + b)", fontsize=9)
    figure.supylabel("g / (r + g + b)", fontsize=9)
    return write_file(path, encode_figure(figure))


def show_images(
    path: str | Path, made: Sequence[Sample], sources: Sequence[Sample], title: str, count: int = 8
) -> Path:
    """Some made images beside the parts of the photographs they were made from, raw and white-balanced."""
    by_pixels = {id(sample.pixels): sample for sample in sources}
    frames = []
    for index in np.linspace(0, len(made) - 1, min(count, len(made))).astype(int):
        sample, pixels = made[index], made[index].pixels
        if not isinstance(pixels, MappedImage):
            raise ParameterError(f"{sample.name}: only images just made can be shown beside their sources")
        photograph = pixels.source.read()
        part, image = shrink(pixels.crop.cut(photograph)), pixels.apply(photograph)
        # The source's own matrix to sRGB: that of the made image, after the mapping.
        before = None if sample.ccm is None else sample.ccm @ pixels.matrix
        pictures = (
            develop(part),
            develop(part, pixels.before, before),
            develop(image),
            develop(image, pixels.after, sample.ccm),
        )
        source = by_pixels.get(id(pixels.source))
        frames.append(Frame(pictures, f"{source.camera if source else 'a photograph'} to {sample.camera}"))
    headings = ["photograph, as its sensor sees it", "balanced", "made, as the target would see it", "balanced"]
    return write_picture(path, make_sheet(title, headings, frames, columns=1 if count <= 4 else 2, width=232))


def _rg(samples: Sequence[Sample]) -> Float64s:
    return chromaticity(np.stack([sample.illuminant for sample in samples]))
