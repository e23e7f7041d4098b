# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""The paper's convolutions on a GPU: 3x3, the edge repeated, several groups of channels, each with its own weights.

The groups are too small for cuDNN, and there padding, bias and rectifier are passes over memory of their own. Here each
is a part of one kernel. Nothing is added in an order that varies, so results are the same in every run.

Triton compiles these functions. Tensors lie with channels last; `padded_in` and `padded_out` are numbers of channels
that fill a tile.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

SMALLEST = 16
"""Matrix units multiply no smaller tiles than this; missing channels count as zero."""
PROGRAMS = 528
"""About how many programs keep a large GPU busy: four for each of its multiprocessors."""


@triton.jit
def _convolve(
    x, weight, bias, y, pixels, height, width, slope,
    inputs: tl.constexpr, outputs: tl.constexpr, padded_in: tl.constexpr, padded_out: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    group, groups = tl.program_id(1), tl.num_programs(1)
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    column, row = pixel % width, pixel // width % height
    top = pixel // width - row  # the first row of its image
    k, n = tl.arange(0, padded_in), tl.arange(0, padded_out)
    present = (pixel < pixels)[:, None] & (k < inputs)[None, :]
    weighed = (k < inputs)[:, None] & (n < outputs)[None, :]
    weights = weight + (group * outputs + n)[None, :] * (9 * inputs) + k[:, None]
    total = tl.zeros((block, padded_out), tl.float32)
    for tap in tl.static_range(9):
        near_row = tl.minimum(tl.maximum(row + (tap // 3 - 1), 0), height - 1)
        near_column = tl.minimum(tl.maximum(column + (tap % 3 - 1), 0), width - 1)
        place = ((top + near_row) * width + near_column) * groups + group
        image = tl.load(x + place[:, None] * inputs + k[None, :], mask=present, other=0)
        total = tl.dot(image, tl.load(weights + tap * inputs, mask=weighed, other=0).to(image.dtype), total)
    total += tl.load(bias + group * outputs + n, mask=n < outputs, other=0)[None, :]
    total = tl.where(total > 0, total, slope * total)
    place = (pixel * groups + group)[:, None] * outputs + n[None, :]
    tl.store(y + place, total.to(y.dtype.element_ty), mask=(pixel < pixels)[:, None] & (n < outputs)[None, :])


@triton.jit
def _send_back(
    gradient, weight, sent, pixels, height, width,
    inputs: tl.constexpr, outputs: tl.constexpr, padded_in: tl.constexpr, padded_out: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """The gradient of the inputs. A pixel at the edge was also seen in place of those beyond it."""
    group, groups = tl.program_id(1), tl.num_programs(1)
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    column, row = pixel % width, pixel // width % height
    top = pixel // width - row
    k, n = tl.arange(0, padded_in), tl.arange(0, padded_out)
    known = n[None, :] < outputs
    weighed = (n < outputs)[:, None] & (k < inputs)[None, :]
    weights = weight + (group * outputs + n)[:, None] * (9 * inputs) + k[None, :]
    total = tl.zeros((block, padded_in), tl.float32)
    at_edge = tl.max(((row == 0) | (row == height - 1)).to(tl.int32), axis=0) > 0
    for tap in tl.static_range(9):
        from_row, from_column = row - (tap // 3 - 1), column - (tap % 3 - 1)
        inside_row = (pixel < pixels) & (from_row >= 0) & (from_row < height)
        inside_column = (from_column >= 0) & (from_column < width)
        edge_row = (pixel < pixels) & (row == (0 if tap // 3 == 0 else height - 1))
        edge_column = column == (0 if tap % 3 == 0 else width - 1)
        place = ((top + from_row) * width + from_column) * groups + group
        seen = (inside_row & inside_column)[:, None] & known
        found = tl.load(gradient + place[:, None] * outputs + n[None, :], mask=seen, other=0).to(tl.float32)
        if tap % 3 != 1:
            place = ((top + from_row) * width + column) * groups + group
            seen = (inside_row & edge_column)[:, None] & known
            found += tl.load(gradient + place[:, None] * outputs + n[None, :], mask=seen, other=0)
        if tap // 3 != 1:  # noqa: SIM102 (known when this is compiled; the next, when it runs)
            if at_edge:
                place = ((top + row) * width + from_column) * groups + group
                seen = (edge_row & inside_column)[:, None] & known
                found += tl.load(gradient + place[:, None] * outputs + n[None, :], mask=seen, other=0)
                if tap % 3 != 1:
                    place = pixel * groups + group
                    seen = (edge_row & edge_column)[:, None] & known
                    found += tl.load(gradient + place[:, None] * outputs + n[None, :], mask=seen, other=0)
        weights_of_tap = tl.load(weights + tap * inputs, mask=weighed, other=0)
        total = tl.dot(found.to(sent.dtype.element_ty), weights_of_tap.to(sent.dtype.element_ty), total)
    place = (pixel * groups + group)[:, None] * inputs + k[None, :]
    tl.store(sent + place, total.to(sent.dtype.element_ty), mask=(pixel < pixels)[:, None] & (k < inputs)[None, :])


@triton.jit
def _learn(
    x, gradient, partial, pixels, height, width,
    inputs: tl.constexpr, outputs: tl.constexpr, padded_in: tl.constexpr, padded_out: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """The gradient of three weights of a row and of the bias, from a part of the pixels."""
    part, parts, down = tl.program_id(0), tl.num_programs(0), tl.program_id(1)
    group, groups = tl.program_id(2), tl.num_programs(2)
    k, n = tl.arange(0, padded_in), tl.arange(0, padded_out)
    left, middle, right = (
        tl.zeros((padded_in, padded_out), tl.float32),
        tl.zeros((padded_in, padded_out), tl.float32),
        tl.zeros((padded_in, padded_out), tl.float32),
    )
    shift = tl.zeros((padded_out,), tl.float32)
    for start in range(part * block, pixels, parts * block):
        pixel = start + tl.arange(0, block)
        column, row = pixel % width, pixel // width % height
        near_row = pixel // width - row + tl.minimum(tl.maximum(row + down - 1, 0), height - 1)
        seen = (pixel < pixels)[:, None] & (n < outputs)[None, :]
        error = tl.load(gradient + (pixel * groups + group)[:, None] * outputs + n[None, :], mask=seen, other=0)
        shift += tl.sum(error.to(tl.float32), axis=0)
        present = (k < inputs)[:, None] & (pixel < pixels)[None, :]
        for across in tl.static_range(3):
            near_column = tl.minimum(tl.maximum(column + (across - 1), 0), width - 1)
            place = (near_row * width + near_column) * groups + group
            image = tl.load(x + place[None, :] * inputs + k[:, None], mask=present, other=0)
            if across == 0:
                left = tl.dot(image, error, left)
            elif across == 1:
                middle = tl.dot(image, error, middle)
            else:
                right = tl.dot(image, error, right)
    partial += part * groups * (9 * inputs + 1) * outputs
    place = ((group * outputs + n)[None, :] * 9 + down * 3) * inputs + k[:, None]
    weighed = (k < inputs)[:, None] & (n < outputs)[None, :]
    tl.store(partial + place, left, mask=weighed)
    tl.store(partial + place + inputs, middle, mask=weighed)
    tl.store(partial + place + 2 * inputs, right, mask=weighed)
    if down == 0:
        tl.store(partial + groups * outputs * 9 * inputs + group * outputs + n, shift, mask=n < outputs)


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, groups: int, slope: float) -> Tensor:
        x, weight = (each.contiguous(memory_format=torch.channels_last) for each in (x, weight))
        images, _, height, width = x.shape
        y = x.new_empty((images, height, width, len(weight))).permute(0, 3, 1, 2)
        grid, block = _cover(images * height * width, groups)
        sizes = _sizes(weight, groups)
        _convolve[grid](x, weight, bias, y, images * height * width, height, width, slope, **sizes, block=block)
        ctx.save_for_backward(x, weight, y if slope < 1 else None)
        ctx.groups, ctx.slope = groups, slope
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, y = ctx.saved_tensors
        if y is not None:
            gradient = torch.ops.aten.leaky_relu_backward(gradient, y, ctx.slope, True)
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        images, _, height, width = x.shape
        pixels, groups, sizes = images * height * width, ctx.groups, _sizes(weight, ctx.groups)
        sent = None
        if ctx.needs_input_grad[0]:
            sent = torch.empty_like(x)
            grid, block = _cover(pixels, groups)
            _send_back[grid](gradient, weight, sent, pixels, height, width, **sizes, block=block)
        block = 4096 // sizes["padded_in"]
        parts = min(triton.cdiv(pixels, 4 * block), triton.cdiv(2 * PROGRAMS, 3 * groups))
        partial = torch.empty((parts, weight.numel() + len(weight)), device=x.device)
        _learn[parts, 3, groups](x, gradient, partial, pixels, height, width, **sizes, block=block)
        total = partial.sum(dim=0)
        weights = total[: weight.numel()].view(len(weight), 3, 3, -1).permute(0, 3, 1, 2)
        return sent, weights, total[weight.numel() :], None, None


def _cover(pixels: int, groups: int) -> tuple[tuple[int, int], int]:
    """The programs that cover all pixels of all groups, and how many pixels each takes."""
    block = 128 if pixels * groups > 128 * PROGRAMS else 32
    return (triton.cdiv(pixels, block), groups), block


def _sizes(weight: Tensor, groups: int) -> dict[str, int]:
    outputs, inputs = weight.shape[0] // groups, weight.shape[1]
    padded = {
        name: max(SMALLEST, triton.next_power_of_2(size))
        for name, size in (("padded_in", inputs), ("padded_out", outputs))
    }
    return {"inputs": inputs, "outputs": outputs} | padded


def convolve(x: Tensor, weight: Tensor, bias: Tensor, groups: int, slope: float) -> Tensor:
    """Images (batch, groups * inputs, h, w) by weights (groups * outputs, inputs, 3, 3), then the leaky rectifier; a
    slope of 1 leaves it out."""
    result: Tensor = _Convolve.apply(x, weight, bias, groups, slope)  # type: ignore[no-untyped-call]
    return result
