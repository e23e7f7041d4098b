from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from c5 import Grid, ReadError, angular_error
from c5.histograms import Histograms
from c5.model import Model
from c5.model_file import read_model
from c5.training.config import paper_training
from c5.training.export import export_model
from c5.training.published import read_published


@pytest.mark.parametrize("name", ["C5_m_7_h_64", "C5_m_7_h_64_w_G"])
def test_converted_models_give_the_golden_illuminants(
    name: str, test_data: Path, golden: dict[str, np.ndarray], tmp_path: Path
) -> None:
    network = read_published(test_data / "reference" / f"{name}.pth")
    export_model(network, tmp_path / "m.c5", name=name, training={})
    model = Model(read_model(tmp_path / "m.c5"))
    detail = list(golden["detail_rows"])
    for row, (query, *roll) in enumerate(golden["inputs"]):
        histograms = [Histograms(Grid.published(), stack) for stack in golden["histograms"]]
        profile = model.calibrate_histograms([histograms[i] for i in roll])
        estimate = model.estimate_histogram(histograms[query], profile)
        assert angular_error(estimate.illuminant, golden[f"{name}.illuminant"][row]) < 0.01
        if row in detail:
            maps = dict(zip("FBG", model.emit(histograms[query], profile), strict=True))
            for symbol, found in maps.items():
                if found is not None:
                    expected = golden[f"{name}.{symbol}"][detail.index(row)]
                    np.testing.assert_allclose(found, expected, atol=1e-3 * np.ptp(expected))


def test_the_published_weights_tell_how_batches_grew(test_data: Path) -> None:
    """The published code counts its batches: of 7,280 images in 60 epochs, as many as ours."""
    state = torch.load(test_data / "reference" / "C5_m_7_h_64.pth", "cpu", weights_only=True)
    counted = {int(tensor) for name, tensor in state.items() if name.endswith("num_batches_tracked")}
    sizes = paper_training(7).batch_sizes
    assert counted == {sum(-(-7280 // sizes[epoch * len(sizes) // 60]) for epoch in range(60))}


def test_a_network_of_one_encoder_has_no_layers_that_merge(test_data: Path, tmp_path: Path) -> None:
    state = torch.load(test_data / "reference" / "C5_m_7_h_64.pth", "cpu", weights_only=True)
    first = "encoder.encoders.0."
    alone = {name: each for name, each in state.items() if name.startswith(first) or not name.startswith("encoder.")}
    torch.save(alone, tmp_path / "m1.pth")
    network = read_published(tmp_path / "m1.pth")
    assert network.config.n_images == 1
    assert sum(weights.numel() for weights in network.parameters()) == sum(
        weights.numel() for name, weights in alone.items() if name.endswith(("weight", "bias"))
    )


class Malicious:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("executed"),))


def test_nothing_in_a_file_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.pth").write_bytes(pickle.dumps({"a": Malicious()}))
    torch.save({"a": Malicious()}, tmp_path / "bad2.pth")
    for name in ("bad.pth", "bad2.pth"):
        with pytest.raises(ReadError, match="nothing was run"):
            read_published(tmp_path / name)
    assert not (tmp_path / "executed").exists()


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no such file"):
        read_published(tmp_path / "none.pth")
    (tmp_path / "text.pth").write_text("hello")
    with pytest.raises(ReadError, match="not a file of weights"):
        read_published(tmp_path / "text.pth")
    torch.save({"layer.weight": torch.zeros(3)}, tmp_path / "other.pth")
    with pytest.raises(ReadError, match="no multi-encoder"):
        read_published(tmp_path / "other.pth")
