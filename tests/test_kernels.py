"""The convolutions for GPUs, run by Triton's interpreter, and compiled for a GPU that need not be here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from c5.training.network import HAS_TRITON


class Case(NamedTuple):
    images: int
    groups: int
    inputs: int
    outputs: int
    height: int
    width: int


pytestmark = pytest.mark.skipif(not HAS_TRITON, reason="there is no Triton for this platform")

TYPES = {"x": "*bf16", "y": "*bf16", "gradient": "*bf16", "sent": "*bf16", "slope": "fp32"}
NUMBERS = {"pixels": "i32", "height": "i32", "width": "i32"}


CASES = [
    Case(2, 1, 4, 8, 8, 8),
    Case(2, 3, 4, 8, 8, 4),
    Case(1, 2, 3, 1, 4, 16),
    Case(3, 1, 64, 32, 4, 4),
    Case(2, 2, 8, 2, 2, 2),
    Case(3, 1, 8, 8, 1, 1),
]


def off(found: Tensor, wanted: Tensor) -> float:
    return float(((found.double() - wanted).norm() / wanted.norm()).detach())


def compare(case: Case, slope: float) -> list[float]:
    """How far a convolution and its gradients are from those of torch in double precision."""
    from c5.training.kernels import convolve

    rng = torch.Generator().manual_seed(case.images + case.inputs)
    x = torch.randn(case.images, case.groups * case.inputs, case.height, case.width, generator=rng).half()
    weight = torch.randn(case.groups * case.outputs, case.inputs, 3, 3, generator=rng) / (3 * case.inputs**0.5)
    weight = weight.half().float().to(memory_format=torch.channels_last)
    bias = torch.randn(case.groups * case.outputs, generator=rng)
    own = [each.requires_grad_() for each in (x, weight, bias)]
    y = convolve(x, weight, bias, case.groups, slope)
    gradient = torch.randn(y.shape, generator=rng).half()
    found = [y, *torch.autograd.grad(y, own, gradient)]

    exact = [each.detach().double().requires_grad_() for each in own]
    padded = functional.pad(exact[0], (1, 1, 1, 1), mode="replicate")
    wanted = functional.leaky_relu(functional.conv2d(padded, exact[1], exact[2], groups=case.groups), slope)
    both = zip(found, [wanted, *torch.autograd.grad(wanted, exact, gradient.double())], strict=True)
    return [off(ours, theirs) for ours, theirs in both]


def test_a_convolution_repeats_the_edge_and_so_do_its_gradients() -> None:
    """In a process of its own: Triton decides when it is imported whether it interprets."""
    done = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, env=os.environ | {"TRITON_INTERPRET": "1"}
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 2 * len(CASES)
    for case, errors in found.items():
        assert max(errors) < 1e-3, case


@pytest.mark.parametrize(("inputs", "outputs"), [(4, 8), (64, 32), (4, 1)])
@pytest.mark.parametrize("name", ["_convolve", "_send_back", "_learn"])
def test_the_kernels_compile_for_a_gpu(name: str, inputs: int, outputs: int) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from c5.training import kernels

    kernel: Any = getattr(kernels, name)
    constants = {"inputs": inputs, "outputs": outputs, "padded_in": max(16, inputs), "padded_out": max(16, outputs)}
    constants["block"] = 64
    types = {one: (TYPES | NUMBERS).get(one, "constexpr" if one in constants else "*fp32") for one in kernel.arg_names}
    source = ASTSource(kernel, types, {(kernel.arg_names.index(one),): value for one, value in constants.items()})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    assert "mma" in compiled.asm["ptx"]  # on matrix units


if __name__ == "__main__":
    print(json.dumps({f"{case} {slope}": compare(case, slope) for case in CASES for slope in (0.01, 1.0)}))
