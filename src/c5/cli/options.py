"""What several commands ask for in the same words: levels, classical methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from c5.errors import ParameterError

if TYPE_CHECKING:
    from c5.ccc import Estimate
    from c5.image import LinearImage
    from c5.io.raw import Photograph

AssumeSrgb = Annotated[bool, typer.Option("--assume-srgb", help="Linearise 8-bit files as sRGB.")]
Black = Annotated[float, typer.Option(help="The black level; default: the file's own.", show_default=False)]
White = Annotated[float | None, typer.Option(help="The white level; default: the file's own.")]


def make_reader(black: float, white: float | None, assume_srgb: bool) -> Callable[..., Photograph]:
    """`read_photograph` with the levels that were asked for."""
    from c5.io.raw import read_photograph

    return partial(read_photograph, black=black, white=white, assume_srgb=assume_srgb)


def find_classical(method: str) -> Callable[[LinearImage], Estimate]:
    """A classical estimator by its name, as a model would be called."""
    from c5.ccc import Estimate
    from c5.classical import METHODS
    from c5.image import shrink

    if method not in METHODS:
        raise ParameterError(f"no method is called {method!r}; there are {', '.join(METHODS)}")
    chosen = METHODS[method]
    return lambda image: Estimate(chosen(shrink(image)))
