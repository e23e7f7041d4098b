"""Labelled photographs, one module a layout on disk."""

from c5.datasets.ffcc import read_ffcc
from c5.datasets.sample import Sample

__all__ = ["Sample", "read_ffcc"]
