"""A stack trained by windows is torch's sequence of layers: values and gradients, whatever the sizes."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from wiseale.networks import windows
from wiseale.networks.same_padding import Pointwise, SameConv, SameConvTranspose
from wiseale.networks.stack import Run, Stack


def assert_as_torch(stack, shape, tolerance=1e-12):
    """Outputs and gradients in float64, through the fast path and layer by layer."""
    stack = stack.double()
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    results = []
    for by_windows in (True, False):
        twin = copy.deepcopy(stack)
        leaf = x.clone().requires_grad_()
        parts = Stack(*twin).parts if by_windows else list(twin)
        assert any(isinstance(part, Run) for part in parts) == by_windows
        y = leaf
        for part in parts:
            y = part(y)
        upstream = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view(y.shape)
        results.append([y.detach(), *torch.autograd.grad(y, [leaf, *twin.parameters()], upstream)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kernel_stride", [(16, 2), (8, 2), (2, 2), (8, 4), (3, 1), (1, 1), (6, 3), (5, 2), (1, 2)])
@pytest.mark.parametrize("length", [1, 2, 5, 24])
def test_strided(kernel_stride, length):
    assert_as_torch(Stack(SameConv(2, 5, *kernel_stride, (length,))), (3, 2, length))


@pytest.mark.parametrize("kernel_stride", [(16, 4), (8, 4), (4, 2), (5, 2), (3, 3), (7, 3), (5, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("length", [1, 2, 3, 8])
@pytest.mark.parametrize("dropped", [0, 1])
def test_transposed(kernel_stride, length, dropped):
    out = length * kernel_stride[1] - dropped
    if out:
        assert_as_torch(Stack(SameConvTranspose(4, 2, *kernel_stride, (length,), (out,))), (3, 4, length))


def test_runs_with_other_layers_between():
    stack = Stack(
        *(SameConv(2, 3, 8, 2, (13,)), nn.ReLU(), SameConv(3, 4, 5, 2, (7,)), nn.ReLU()),
        *(nn.Tanh(), SameConvTranspose(4, 3, 8, 4, (4,), (14,)), SameConvTranspose(3, 2, 4, 2, (14,)), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(56, 3), nn.ReLU()),
    )
    assert [type(part).__name__ for part in stack.parts] == ["Run", "Tanh", "Run", "Flatten", "Linear", "ReLU"]
    assert_as_torch(stack, (5, 2, 13))


def test_training_and_encoding_agree():
    """With a gradient a stack works by windows, without one it is torch's: the same up to float32's rounding."""
    stack = Stack(SameConv(3, 4, 8, 2, (7,)), nn.ReLU(), SameConvTranspose(4, 3, 8, 4, (4,), (14,)))
    x = torch.randn(20, 3, 7, generator=torch.Generator().manual_seed(1))
    trained = stack(x)
    with torch.no_grad():
        torch.testing.assert_close(trained.detach(), stack(x))
    assert "Convolutions" in type(trained.grad_fn).__name__


@pytest.mark.parametrize("most", [0, 1 << 20], ids=["one by one", "all at once"])
def test_weight_gradient_on_several_threads(monkeypatch, most):
    monkeypatch.setattr(windows, "_HELD_ENTRIES", most)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert_as_torch(Stack(SameConv(2, 5, 4, 2, (64,)), SameConvTranspose(5, 3, 4, 2, (32,))), (3, 2, 64))


def test_small_batches_and_images_are_left_to_torch():
    images = Stack(SameConv(1, 4, 4, 2, (8, 8)), nn.ReLU())
    assert not any(isinstance(part, Run) for part in images.parts)
    signals = Stack(SameConv(2, 3, 8, 2, (16,)))
    small, large = (signals(torch.zeros(rows, 2, 16)) for rows in (4, 32))
    assert "Convolutions" not in type(small.grad_fn).__name__
    assert "Convolutions" in type(large.grad_fn).__name__


def test_names_of_parameters_are_those_of_a_sequence():
    layers = SameConv(2, 3, 4, 2, (8,)), nn.ReLU(), nn.Flatten(), nn.Linear(12, 1)
    assert list(Stack(*layers).state_dict()) == list(nn.Sequential(*layers).state_dict())


def test_pointwise_is_a_convolution():
    layer, x = Pointwise(4, 5), torch.randn(3, 4, 1, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer(x), F.conv1d(x, layer.weight, layer.bias))
