"""What users choose between. The command's help lists these, so this module imports nothing heavy."""

from __future__ import annotations

from enum import Enum


class Selection(Enum):
    """Which of a camera's images make its roll."""

    RANDOM = "random"
    RECENT = "recent"
    """The most recent ones. Only a catalogue knows them."""
    VIVID = "vivid"
    """From the images whose chroma varies most."""
    DULL = "dull"
    """From those whose chroma varies least."""
    OTHER_CAMERA = "other-camera"
    """Images of a camera that is not the query's."""


SELECTIONS = (Selection.RANDOM, Selection.RECENT, Selection.VIVID)
"""The selections that a catalogue offers. Photographs without a time come last in `RECENT`, ordered by file time."""


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


class Format(Enum):
    """How results are written."""

    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
