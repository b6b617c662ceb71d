"""Block convolutions are torch's own, values and gradients, whatever the sizes."""

import pytest
import torch
from torch.nn import functional as F

from wiseale.networks.block_convolution import block_conv1d, block_conv_transpose1d
from wiseale.networks.same_padding import Pointwise, SameConv, SameConvTranspose


def inputs(*shapes):
    g = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=g, dtype=torch.float64, requires_grad=True) for shape in shapes]


def assert_same_with_gradients(found, expected, leaves):
    torch.testing.assert_close(found, expected)
    upstream = torch.linspace(-1, 1, expected.numel(), dtype=expected.dtype).view(expected.shape)
    for ours, theirs in zip(
        torch.autograd.grad(found, leaves, upstream), torch.autograd.grad(expected, leaves, upstream), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("kernel", "stride"), [(16, 2), (8, 2), (2, 2), (8, 4), (3, 1), (1, 1), (6, 3)])
@pytest.mark.parametrize("blocks", [1, 2, 9])
def test_strided(kernel, stride, blocks):
    length = blocks * stride
    leaves = inputs((3, 2, length), (5, 2, kernel), (5,))
    left, right = (kernel - stride) // 2, kernel - stride - (kernel - stride) // 2
    expected = F.conv1d(F.pad(leaves[0], (left, right)), leaves[1], leaves[2], stride)
    assert_same_with_gradients(block_conv1d(*leaves, stride, left, right), expected, leaves)


@pytest.mark.parametrize(("kernel", "stride"), [(16, 4), (8, 4), (4, 2), (5, 2), (3, 3), (7, 3), (5, 1)])
@pytest.mark.parametrize("length", [1, 2, 3, 8])
def test_transposed(kernel, stride, length):
    leaves = inputs((3, 4, length), (4, 2, kernel), (2,))
    left = (kernel - stride) // 2
    expected = F.conv_transpose1d(*leaves, stride)[:, :, left : left + length * stride]
    assert_same_with_gradients(block_conv_transpose1d(*leaves, stride, left), expected, leaves)


@pytest.mark.parametrize("layer", [SameConv(3, 4, 8, 2, (7,)), SameConvTranspose(3, 4, 8, 4, (7,), (26,))])
def test_training_and_encoding_agree(layer):
    """With a gradient the layer works in blocks, without one it is torch's: the same up to float32's rounding."""
    x = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(1))
    trained = layer(x)
    with torch.no_grad():
        torch.testing.assert_close(trained.detach(), layer(x))
    assert trained.grad_fn is not None


def test_pointwise_is_a_convolution():
    x, weight, bias = inputs((3, 4, 1), (5, 4, 1), (5,))
    layer = Pointwise(4, 5).double()
    layer.load_state_dict({"weight": weight.detach(), "bias": bias.detach()})
    torch.testing.assert_close(layer(x), F.conv1d(x, weight, bias))
