"""An estimator, a dataset layout and an output format for C5."""

import numpy as np

from c5.color import gains
from c5.datasets import Found, ImageFile, Problem, Sample
from c5.datasets.labels import as_label, read_numbers
from c5.errors import DataError
from c5.photos.outputs import Output


def bright_mean(image, roll):
    """The mean color of the brightest tenth of the pixels."""
    rgb = image.rgb[image.counts]
    brightness = rgb.sum(axis=1)
    return rgb[brightness >= np.quantile(brightness, 0.9)].mean(axis=0)


class LightFiles:
    DESCRIPTION = "folders CAMERA with images NAME.png, and their lights in NAME.light: three numbers"

    def recognizes(self, folder):
        return any(folder.glob("*/*.light"))

    def read(self, folder):
        found = Found([], [])
        for path in sorted(folder.glob("*/*.light")):
            image, camera = ImageFile(path.with_suffix(".png")), path.parent.name
            try:
                light = as_label(read_numbers(path, 3), path)
                found.samples.append(Sample(image, light, camera, folder.name, f"{folder.name}/{camera}/{path.stem}"))
            except DataError as error:
                found.problems.append(Problem(path, str(error)))
        return found


def write_gains(balance, existing):
    return (" ".join(f"{gain:.4f}" for gain in gains(balance.illuminant)) + "\n").encode()


GAINS = Output("The gains as text: NAME.gains.txt.", lambda path: f"{path.stem}.gains.txt", write_gains)
