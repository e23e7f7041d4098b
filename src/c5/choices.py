"""What users choose between. The command's help lists these, so this module imports nothing heavy."""

from __future__ import annotations

from enum import Enum


class Selection(Enum):
    """Which of a camera's images make its roll."""

    RANDOM = "random"
    RECENT = "recent"
    """The most recent ones. Only a catalog knows them."""
    VIVID = "vivid"
    """From the images whose chroma varies most."""
    DULL = "dull"
    """From those whose chroma varies least."""
    OTHER_CAMERA = "other-camera"
    """Images of a camera that is not the query's."""


class CatalogSelection(Enum):
    """The selections that a catalog offers. Photographs without a time come last in `RECENT`, ordered by file time."""

    RANDOM = Selection.RANDOM.value
    RECENT = Selection.RECENT.value
    VIVID = Selection.VIVID.value


SELECTIONS = tuple(Selection(each.value) for each in CatalogSelection)


class Fallback(Enum):
    """What to use instead of an uncertain estimate."""

    CAMERA = "camera"
    """The camera's own white balance, where the file has one."""
    GRAY_WORLD = "gray-world"
    NONE = "none"
    """The estimate all the same."""


class Recipe(Enum):
    """Named training configurations."""

    BUNDLED = "bundled"
    """The bundled model's: virtual cameras, drawn anew in each step."""
    PLAIN = "plain"
    """Real cameras, with shifted histograms."""
    PAPER = "paper"
    """Section 3.2 of the paper, on its architecture."""


PROTOCOLS = (
    *("leave-one-dataset-out", "leave-two-datasets-out", "cross-sensor", "leave-one-camera-out", "camera-specific"),
    *("ten-fold", "camera-invariance", "random-split"),
)
SPLITS = ("split", "known-camera", "mapped-split", "synthetic-cameras")
"""Evaluation protocols, and those that take names of what to train on and what to test."""


class Format(Enum):
    """How results are written."""

    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
