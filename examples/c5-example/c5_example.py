"""An estimator, a dataset layout and an output format for C5."""

import numpy as np

from c5.color import gains
from c5.datasets import Found, ImageFile, Problem, Sample
from c5.datasets.labels import as_label, read_numbers
from c5.errors import DataError
from c5.photos.outputs import Output


class BrightMean:
    """The mean color of the brightest tenth of the pixels."""

    def __call__(self, image, roll):
        rgb = image.rgb[image.counts]
        brightness = rgb.sum(axis=1)
        return rgb[brightness >= np.quantile(brightness, 0.9)].mean(axis=0)


class LightFiles:
    DESCRIPTION = "folders CAMERA with images NAME.png, and their lights in NAME.light: three numbers"

    def recognises(self, folder):
        return any(folder.glob("*/*.light"))

    def read(self, folder):
        found = Found([], [])
        for path in sorted(folder.glob("*/*.light")):
            try:
                light = as_label(read_numbers(path, 3), path)
            except DataError as error:
                found.problems.append(Problem(path, str(error)))
                continue
            camera, name = path.parent.name, f"{folder.name}/{path.parent.name}/{path.stem}"
            found.samples.append(Sample(ImageFile(path.with_suffix(".png")), light, camera, folder.name, name))
        return found


def write_gains(balance, existing):
    return (" ".join(f"{gain:.4f}" for gain in gains(balance.illuminant)) + "\n").encode()


GAINS = Output("The gains as text: NAME.gains.txt.", lambda path: f"{path.stem}.gains.txt", write_gains)
