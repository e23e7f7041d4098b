"""What users choose between. The command's help lists these, so this module imports nothing heavy."""

from __future__ import annotations

from enum import Enum


class Selection(Enum):
    """Which of a camera's images make its roll."""

    RANDOM = "random"
    RECENT = "recent"
    """Those taken last. Only a catalogue knows them."""
    VIVID = "vivid"
    """Of the images with the largest variation of chroma."""
    DULL = "dull"
    """Of those with the smallest."""
    OTHER_CAMERA = "other-camera"
    """Images of a camera that is not the query's."""


SELECTIONS = (Selection.RANDOM, Selection.RECENT, Selection.VIVID)
"""Those that a catalogue offers. Photographs without a time count as the least recent, by the time of the file."""


class Fallback(Enum):
    """What is used instead of an uncertain estimate."""

    CAMERA = "camera"
    """The camera's own white balance, where the file has one."""
    GRAY_WORLD = "gray-world"
    NONE = "none"
    """The estimate all the same."""


class Recipe(Enum):
    """Training configurations with a name."""

    BUNDLED = "bundled"
    """The bundled model's: virtual cameras, drawn anew in each step."""
    PLAIN = "plain"
    """Real cameras, with histograms that move."""
    PAPER = "paper"
    """Section 3.2 of the paper, on its architecture."""


class Format(Enum):
    """How results are written."""

    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
