"""Matplotlib figures; the extras `train` and `chart` install matplotlib. No window is ever opened."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from c5.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def need_matplotlib() -> None:
    """Complain if it is missing, before long work is done for a plot."""
    if find_spec("matplotlib") is None:
        raise ParameterError("plots need matplotlib: run pip install matplotlib")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; sizes in inches."""
    need_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=110, layout="constrained")


def new_plot(width: float, height: float) -> tuple[Figure, Any]:
    """A figure with one pair of axes, open at the top and on the right, and a faint grid."""
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def encode_figure(figure: Figure, name: str = "", **options: Any) -> bytes:
    """The content of a PNG file, or of a JPEG file where its name says so."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="jpeg" if name.lower().endswith((".jpg", ".jpeg")) else "png", **options)
    return buffer.getvalue()
