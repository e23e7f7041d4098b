"""Make the test vectors for inference: a small model, a roll, and everything between an image and its light.

    python tools/make_vectors.py tests/vectors

`docs/model-file.md` describes the files. The model is not trained: its weights are random, and serve to tell one
computation from another.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from c5.demo import VirtualCamera, render_roll
from c5.histograms import Grid, histogram
from c5.model import Model
from c5.training.config import NetworkConfig
from c5.training.export import export_model
from c5.training.network import build_network

GRID = Grid(16, powers=(1, 2), strips=3)


def make_model(path: Path) -> Model:
    """A team of two small networks, one with coordinates, which look at different powers."""
    torch.manual_seed(1)
    configs = [
        NetworkConfig(GRID, power=power, widths=(4, 6), one_decoder=True, coordinates=power == 1) for power in (1, 2)
    ]
    network = build_network(*configs)
    with torch.no_grad():
        for name, weights in network.named_parameters():
            if ".last." in name:
                weights.mul_(6)  # a heat map with a peak
    return Model(export_model(network, path, name="vectors", training={}))


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    model = make_model(folder / "small.c5")
    rng = np.random.default_rng(3)
    whole, *roll = (photo.image for photo in render_roll(VirtualCamera.random(rng), 3, rng, (24, 32)))
    mask = np.ones(whole.rgb.shape[:2], np.bool_)
    mask[3:7, 4:9] = False
    query = replace(whole, mask=mask)
    profile = model.calibrate(roll)
    profile.save(folder / "small.c5profile")
    stack = histogram(query, model.grid)
    filters, bias, _ = model.emit(stack, profile)
    found = model.estimate(query, profile)
    np.savez_compressed(
        folder / "vectors.npz",
        allow_pickle=False,
        image=query.rgb,
        ignore=~query.mask | query.clipped,
        roll=np.stack([other.rgb for other in roll]),
        roll_ignore=np.stack([~other.mask | other.clipped for other in roll]),
        seen=stack.seen,
        searched=stack.searched,
        filters=filters,
        bias=bias,
        illuminant=found.illuminant,
        gains=found.gains,
        uncertainty=np.float64(found.uncertainty or 0),
        heat_map=np.asarray(found.heat_map),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
