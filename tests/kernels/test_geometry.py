"""The tables, followed in NumPy, give torch's convolutions; README.md shows the real ones."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import wiseale.kernels
from wiseale.kernels.conv import Axis, Convolution
from wiseale.kernels.layout import BLOCK

EXAMPLE = Convolution.from_axes([Axis(6, 3, 3, 2, 0)], 16, 16)


def follow_products(operation, table, a, weights, size):
    """The sums that conv.c computes for one sample, as README.md describes them."""
    c = np.zeros(size)
    for block in range(operation.channels // BLOCK):
        for row in table:
            total = np.zeros(BLOCK)
            for segment in range(row["segments"]):
                x = a[row["a"] + segment * operation.a_row :][: row["length"]]
                start = row["b"] + segment * operation.b_row + block * operation.block_stride
                total += x @ weights[start : start + len(x) * BLOCK].reshape(-1, BLOCK)
            c[row["c"] + block * BLOCK :][:BLOCK] = total
    return c


@pytest.mark.parametrize("size", [(6, 3), (7, 4)])
@pytest.mark.parametrize("channels", [(16, 16), (32, 48)])
def test_tables_followed_in_numpy(size, channels):
    """Images of 5 rows, kernel 3, stride 2, padding 1: forward, transposed, and the weight's gradient."""
    (n, out), (inputs, outputs) = size, channels
    shape = Convolution(Axis(5, 3, 3, 2, 1), Axis(n, out, 3, 2, 1), inputs, outputs)
    g = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(s, generator=g).double() for s in ((1, inputs, 5, n), (outputs, inputs, 3, 3)))
    x.requires_grad_()
    weight.requires_grad_()
    y = F.conv2d(x, weight, stride=2, padding=1)
    grad = torch.randn(y.shape, generator=g).double()
    expected = torch.autograd.grad(y, (x, weight), grad)
    nhwc = [t.detach()[0].permute(1, 2, 0).numpy().ravel() for t in (x, grad)]
    flat = np.append(weight.detach().numpy().ravel(), 0.0)  # index -1 is zero

    found = follow_products(*shape.convolution(), nhwc[0], flat[shape.packing], y.numel())
    np.testing.assert_allclose(found.reshape(3, out, outputs), y.detach()[0].permute(1, 2, 0), atol=1e-12)
    found = follow_products(*shape.transposed_convolution(), nhwc[1], flat[shape.transposed_packing], x.numel())
    np.testing.assert_allclose(found.reshape(5, n, inputs), expected[0][0].permute(1, 2, 0), atol=1e-12)

    operation, table = shape.weight_gradient()
    partial = np.zeros(shape.weights)
    for block in range(outputs // BLOCK):
        for entry in table:
            total = np.zeros((operation.outer_rows, BLOCK))
            for row in range(entry["rows"]):
                for column in range(entry["columns"]):
                    a = entry["a"] + row * operation.a_row + column * operation.a_column
                    b = entry["b"] + row * operation.b_row + column * operation.b_column + block * BLOCK
                    total += np.outer(nhwc[0][a : a + operation.outer_rows], nhwc[1][b : b + BLOCK])
            partial[entry["c"] + block * operation.block_stride :][: total.size] = total.ravel()
    np.testing.assert_allclose(partial[shape.unpacking].reshape(weight.shape), expected[1], atol=1e-12)


def test_the_example_in_the_readme():
    text = Path(wiseale.kernels.__file__).with_name("README.md").read_text(encoding="utf-8")
    sections = re.split(r"\n\*\*(Convolution|Transposed convolution|Weight gradient|Few channels)", text)
    shown = {
        title: [tuple(map(int, row)) for row in re.findall(r"\| (\d+) " * 5 + r"\|$", body, re.MULTILINE)]
        for title, body in zip(sections[1::2], sections[2::2], strict=True)
    }
    assert shown["Convolution"] == [row.item() for row in EXAMPLE.convolution()[1]]
    assert shown["Transposed convolution"] == [row.item() for row in EXAMPLE.transposed_convolution()[1]]
    assert shown["Weight gradient"] == [row.item() for row in EXAMPLE.weight_gradient()[1]]
    assert EXAMPLE.packing[:48:16].tolist() == [0, 3, 6]
    assert EXAMPLE.packing[:16].tolist() == list(range(0, 721, 48))
    operation, _ = EXAMPLE.weight_gradient()
    assert (operation.a_column, operation.b_column) == (32, 16)
    narrow = Convolution.from_axes([Axis(16, 8, 3, 2, 0)], 1, 16)
    assert (narrow.group, narrow.row_padding, narrow.supported) == (16, (0, 1), True)
