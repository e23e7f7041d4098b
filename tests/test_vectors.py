"""The test vectors of docs/model-file.md: the package and an implementation of the document alone agree on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reference import Reference

from c5 import LinearImage, Profile, angular_error, histogram, load_model

VECTORS = Path(__file__).parent / "vectors"


@pytest.fixture(scope="module")
def vectors() -> dict[str, np.ndarray]:
    with np.load(VECTORS / "vectors.npz") as file:
        return dict(file)


def test_the_package_passes_them(vectors: dict[str, np.ndarray]) -> None:
    model, profile = load_model(VECTORS / "small.c5"), Profile.load(VECTORS / "small.c5profile")
    image = LinearImage(vectors["image"], mask=~vectors["ignore"])
    roll = [LinearImage(*pair) for pair in zip(vectors["roll"], ~vectors["roll_ignore"], strict=True)]
    again = model.calibrate(roll)
    for level, other in zip(again.features, profile.features, strict=True):
        np.testing.assert_allclose(level, other, atol=1e-3)
    stack = histogram(image, model.grid)
    np.testing.assert_allclose(stack.seen, vectors["seen"], atol=1e-6)
    np.testing.assert_allclose(stack.searched, vectors["searched"], atol=1e-6)
    filters, bias, _ = model.emit(stack, profile)
    np.testing.assert_allclose(filters, vectors["filters"], atol=1e-3)
    np.testing.assert_allclose(bias, vectors["bias"], atol=1e-3)
    found = model.estimate(image, profile)
    assert angular_error(found.illuminant, vectors["illuminant"]) < 1e-3
    assert found.uncertainty == pytest.approx(float(vectors["uncertainty"]), abs=1e-3)
    np.testing.assert_allclose(found.gains, vectors["gains"], rtol=1e-4)
    assert found.heat_map is not None
    np.testing.assert_allclose(found.heat_map, vectors["heat_map"], atol=1e-5)


def test_an_implementation_of_the_document_passes_them(vectors: dict[str, np.ndarray]) -> None:
    reference = Reference(VECTORS / "small.c5")
    roll = [reference.histograms(*pair)[0] for pair in zip(vectors["roll"], vectors["roll_ignore"], strict=True)]
    seen, searched = reference.histograms(vectors["image"], vectors["ignore"])
    np.testing.assert_allclose(seen, vectors["seen"], atol=1e-5)
    np.testing.assert_allclose(searched, vectors["searched"], atol=1e-5)
    filters, bias = reference.maps(seen, reference.profile(roll))
    np.testing.assert_allclose(filters, vectors["filters"], atol=0.01)
    np.testing.assert_allclose(bias, vectors["bias"], atol=0.01)
    light, uncertainty = reference.light(searched, filters, bias)
    assert angular_error(light, vectors["illuminant"]) < 0.02
    assert uncertainty == pytest.approx(float(vectors["uncertainty"]), abs=0.02)
