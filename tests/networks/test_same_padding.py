import math

import numpy as np
import pytest
import torch

from wiseale.networks.layers import SameConv, SameConvTranspose


def same_convolution_by_hand(x, weight, bias, stride):
    """TensorFlow's SAME rule with plain loops: out = ceil(in/stride), the extra zero on the right."""
    n, kernel = x.shape[-1], weight.shape[-1]
    out = math.ceil(n / stride)
    total = max((out - 1) * stride + kernel - n, 0)
    padded = np.pad(x, ((0, 0), (total // 2, total - total // 2)))
    y = np.empty((weight.shape[0], out))
    for o in range(out):
        window = padded[:, o * stride : o * stride + kernel]
        y[:, o] = np.einsum("ik,oik->o", window, weight) + bias
    return y


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_strided_convolution_follows_the_rule(kernel, stride, n):
    layer = SameConv(2, 3, kernel, stride, (n,)).double()
    x = torch.randn(2, 2, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight, bias = (p.detach().numpy() for p in layer.convolution.parameters())
    expected = np.stack([same_convolution_by_hand(row.numpy(), weight, bias, stride) for row in x])
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, atol=1e-12)


def test_two_dimensions_pad_each_axis_by_its_own_size():
    """A separable filter on an outer product is the outer product of two 1-D convolutions."""
    kernel, stride, h, w = 4, 2, 7, 5
    layer = SameConv(1, 1, kernel, stride, (h, w)).double()
    g = torch.Generator().manual_seed(1)
    a, b = (torch.randn(kernel, generator=g, dtype=torch.float64) for _ in range(2))
    u, v = (torch.randn(n, generator=g, dtype=torch.float64) for n in (h, w))
    with torch.no_grad():
        layer.convolution.weight.copy_(torch.outer(a, b)[None, None])
        layer.convolution.bias.zero_()
        found = layer(torch.outer(u, v)[None, None])[0, 0]
    rows = same_convolution_by_hand(u.numpy()[None], a.numpy()[None, None], np.zeros(1), stride)[0]
    columns = same_convolution_by_hand(v.numpy()[None], b.numpy()[None, None], np.zeros(1), stride)[0]
    np.testing.assert_allclose(found.numpy(), np.outer(rows, columns), atol=1e-12)


@pytest.mark.parametrize(("kernel", "stride"), [(8, 4), (16, 4), (5, 2), (4, 2), (5, 1), (2, 4), (1, 2), (3, 3)])
@pytest.mark.parametrize("n", [1, 3, 8])
def test_transposed_is_the_adjoint_of_strided(kernel, stride, n):
    """⟨conv(y), x⟩ = ⟨y, transposed(x)⟩ for the same weights: this is what a transposed convolution is."""
    down = SameConv(3, 2, kernel, stride, (n * stride,)).double()
    up = SameConvTranspose(2, 3, kernel, stride, (n,)).double()
    g = torch.Generator().manual_seed(2)
    x = torch.randn(1, 2, n, generator=g, dtype=torch.float64)
    y = torch.randn(1, 3, n * stride, generator=g, dtype=torch.float64)
    with torch.no_grad():
        up.convolution.weight.copy_(down.convolution.weight)
        up.convolution.bias.zero_()
        down.convolution.bias.zero_()
        torch.testing.assert_close((down(y) * x).sum(), (y * up(x)).sum())


def test_the_published_mnist_sizes():
    sizes = [28]
    for _ in range(3):
        layer = SameConv(1, 1, 4, 2, (sizes[-1],))
        sizes.append(layer(torch.zeros(1, 1, sizes[-1])).shape[-1])
    assert sizes == [28, 14, 7, 4]
