"""One labelled photograph, whatever layout it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from c5.color import Float64s
from c5.image import LinearImage
from c5.readers import read_image


@dataclass(frozen=True, eq=False)
class Sample:
    """A photograph and the truth about its light. The pixels are read when they are asked for."""

    path: Path
    illuminant: Float64s
    """(3,) unit RGB."""
    camera: str
    dataset: str
    scene: str | None = None
    """The same for photographs of one scene, within a dataset."""
    ccm: Float64s | None = None
    """(3, 3) white-balanced camera RGB to linear sRGB, for this photograph."""

    def read(self) -> LinearImage:
        return read_image(self.path, camera=self.camera)
