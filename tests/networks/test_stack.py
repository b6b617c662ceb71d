"""A stack trained by the compiled kernels has the values and gradients of torch's layers, for all sizes."""

import copy
import math
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from wiseale import kernels
from wiseale.kernels import build
from wiseale.kernels.build import Kernels
from wiseale.networks.layers import Pointwise, SameConv, SameConvTranspose, same_size
from wiseale.networks.stack import FusedLayers, Stack

compiled = pytest.mark.skipif(not kernels.available(), reason=kernels.state())


@pytest.fixture(autouse=True)
def seed_weights():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def assert_as_torch(stack, shape, to_input=True):
    """Outputs and gradients in float32 through the kernels, against torch's layers one by one in float64."""
    assert any(isinstance(part, FusedLayers) for part in stack.parts())
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    results = []
    for layers, leaf in ((stack.parts(), x.clone()), (list(copy.deepcopy(stack).double()), x.double())):
        leaf.requires_grad_(to_input)
        y = leaf
        for layer in layers:
            y = layer(y)
        upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(y.dtype)
        parameters = stack.parameters() if layers is stack.parts() else nn.Sequential(*layers).parameters()
        results.append([y.detach(), *torch.autograd.grad(y, [*([leaf] if to_input else []), *parameters], upstream)])
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == torch.float32
        scale = theirs.abs().max().item()
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=1e-5 * max(scale, 1e-3))


KERNELS = [(16, 2), (8, 2), (2, 2), (8, 4), (3, 1), (1, 1), (6, 3), (5, 2), (1, 2), (7, 3)]


@compiled
@pytest.mark.parametrize("kernel_stride", KERNELS)
@pytest.mark.parametrize("length", [1, 2, 5, 24])
def test_convolution_of_signals(kernel_stride, length):
    assert_as_torch(Stack(SameConv(16, 32, *kernel_stride, (length,))), (9, 16, length))


@compiled
@pytest.mark.parametrize("kernel_stride", [*KERNELS, (2, 3)])
@pytest.mark.parametrize("length", [1, 2, 3, 8])
@pytest.mark.parametrize("dropped", [0, 1])
def test_transposed_convolution_of_signals(kernel_stride, length, dropped):
    out = length * kernel_stride[1] - dropped
    if out:
        assert_as_torch(Stack(SameConvTranspose(32, 16, *kernel_stride, (length,), (out,))), (9, 32, length))


@compiled
@pytest.mark.parametrize("kernel_stride", [(4, 2), (5, 2), (3, 1), (1, 2), (4, 3)])
@pytest.mark.parametrize("size", [(1, 1), (7, 4), (6, 11)])
def test_convolution_of_images(kernel_stride, size):
    assert_as_torch(Stack(SameConv(16, 16, *kernel_stride, size), nn.ReLU()), (5, 16, *size))


@compiled
@pytest.mark.parametrize("kernel_stride", [(4, 2), (5, 2), (3, 1), (1, 2), (4, 3)])
@pytest.mark.parametrize("size", [(1, 1), (3, 4)])
def test_transposed_convolution_of_images(kernel_stride, size):
    out = tuple(n * kernel_stride[1] - 1 for n in size)
    if all(out):
        assert_as_torch(Stack(SameConvTranspose(16, 32, *kernel_stride, size, out), nn.ReLU()), (5, 16, *size))


@compiled
@pytest.mark.parametrize("channels", [1, 2, 3, 8, 12, 20])
@pytest.mark.parametrize("kernel_stride", [(4, 2), (5, 3), (16, 4)])
@pytest.mark.parametrize("width", [16, 19, 37])
def test_channels_that_do_not_fill_a_block(channels, kernel_stride, width):
    """At the ends of a chain any number is allowed: neighbouring positions, and taps, then share a block."""
    shape = (9, channels, width)
    assert_as_torch(Stack(SameConv(channels, 16, *kernel_stride, (width,)), nn.ReLU()), shape)
    assert_as_torch(Stack(SameConv(channels, 16, *kernel_stride, (width,)), nn.ReLU()), shape, to_input=False)
    back = SameConvTranspose(16, channels, *kernel_stride, (width,))
    assert_as_torch(Stack(back, nn.ReLU()), (9, 16, width))
    image = (
        SameConv(channels, 16, *kernel_stride, (5, width)),
        SameConvTranspose(16, channels, *kernel_stride, (2, width)),
    )
    assert_as_torch(Stack(image[0]), (3, channels, 5, width))
    assert_as_torch(Stack(image[1]), (3, 16, 2, width))


@compiled
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 64, 100])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_batch_sizes_and_threads(rows, threads):
    """Any number of rows, divided among any number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert_as_torch(
            Stack(SameConv(1, 16, 4, 2, (20,)), nn.ReLU(), SameConvTranspose(16, 1, 4, 2, (10,))), (rows, 1, 20)
        )
    finally:
        torch.set_num_threads(before)


@compiled
def test_other_layers_separate_fused_ones():
    stack = Stack(
        *(SameConv(2, 16, 8, 2, (23,)), nn.ReLU(), SameConv(16, 32, 5, 2, (12,)), nn.ReLU()),
        *(nn.Tanh(), SameConvTranspose(32, 16, 8, 4, (6,), (22,)), SameConvTranspose(16, 2, 4, 2, (22,)), nn.ReLU()),
        *(SameConv(2, 16, 4, 2, (44,)), nn.Flatten(), nn.Linear(352, 3), nn.ReLU()),
    )
    names = [type(part).__name__ for part in stack.parts()]
    assert names == ["FusedLayers", "Tanh", "FusedLayers", "FusedLayers", "Linear", "ReLU"]
    assert_as_torch(stack, (5, 2, 23))


@compiled
def test_linear_layers_behind_convolutions():
    for size in ((6,), (5, 7)):
        shape = (17, 16, *size)
        flat = 32 * math.prod(same_size(size, 2))
        stack = Stack(
            *(SameConv(16, 32, 4, 2, size), nn.ReLU(), nn.Flatten(), nn.Linear(flat, 48), nn.ReLU()),
            *(nn.Linear(48, 16), nn.Linear(16, 5)),
        )
        assert [type(part).__name__ for part in stack.parts()] == ["FusedLayers", "Linear"]
        assert_as_torch(stack, shape)
    wide = Stack(SameConv(16, 16, 4, 2, (64,)), nn.Flatten(), nn.Linear(512, 256), nn.ReLU())
    assert [type(part).__name__ for part in wide.parts()] == ["FusedLayers", "Linear", "ReLU"]
    assert_as_torch(wide, (9, 16, 64))


@compiled
def test_inputs_and_gradients_that_are_not_contiguous():
    stack = Stack(SameConv(16, 16, 4, 2, (8, 8)))
    x = torch.randn(16, 16, 8, 8, generator=torch.Generator().manual_seed(0)).to(memory_format=torch.channels_last)
    upstream = torch.randn(16, 4, 4, 16, generator=torch.Generator().manual_seed(1)).movedim(-1, 1)
    weight = next(stack.parameters())
    ours = torch.autograd.grad(stack(x), weight, upstream)[0]
    theirs = torch.autograd.grad(stack[0](x), weight, upstream)[0]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@compiled
def test_gradients_are_bit_identical_when_repeated():
    stack = Stack(SameConv(1, 16, 4, 2, (28, 28)), nn.ReLU(), SameConv(16, 32, 4, 2, (14, 14)))
    x = torch.randn(100, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    first, second = (torch.autograd.grad(stack(x).square().sum(), stack.parameters()) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@compiled
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda stack: pickle.loads(pickle.dumps(stack))])
def test_copies_train_their_own_weights(copied):
    stack = Stack(SameConv(1, 16, 4, 2, (20,)), nn.ReLU())
    x = torch.randn(16, 1, 20, generator=torch.Generator().manual_seed(0))
    before = stack(x).detach()
    twin = copied(stack)
    with torch.no_grad():
        next(twin.parameters()).zero_()
    torch.testing.assert_close(stack(x).detach(), before, rtol=0, atol=0)
    torch.testing.assert_close(twin(x), twin[1](twin[0](x)))


@compiled
def test_training_and_encoding_agree():
    """With gradients a stack runs the kernels, without them torch's layers: equal up to float32 rounding."""
    stack = Stack(SameConv(16, 16, 8, 2, (7,)), nn.ReLU(), SameConvTranspose(16, 16, 8, 4, (4,), (14,)))
    x = torch.randn(20, 16, 7, generator=torch.Generator().manual_seed(1))
    trained = stack(x)
    with torch.no_grad():
        torch.testing.assert_close(trained.detach(), stack(x))
    assert "Chain" in type(trained.grad_fn).__name__


@compiled
def test_nan_propagates():
    """A diverging run must show NaN: ReLU passes it on, forward and backward."""
    stack = Stack(SameConv(16, 16, 4, 2, (8,)), nn.ReLU(), SameConv(16, 16, 4, 2, (4,)), nn.ReLU())
    x = torch.zeros(16, 16, 8)
    x[5] = math.nan
    y = stack(x)
    assert y[5].isnan().all()
    assert not y[:5].isnan().any()
    ours = torch.autograd.grad(y, stack.parameters(), torch.ones_like(y))
    theirs = torch.autograd.grad(nn.Sequential(*stack)(x), stack.parameters(), torch.ones_like(y))
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a.isnan(), b.isnan())


@compiled
def test_inputs_of_another_shape_go_to_torch():
    """The tables are made for one input size; torch computes others, or raises its own error."""
    stack = Stack(SameConv(16, 16, 4, 2, (8,)), nn.ReLU())
    assert stack(torch.zeros(8, 16, 2)).shape == stack[1](stack[0](torch.zeros(8, 16, 2))).shape
    for wrong in ((8, 15, 8), (8, 16)):
        with pytest.raises(RuntimeError):
            stack(torch.zeros(wrong))


@compiled
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_weights_of_another_type_go_to_torch(dtype):
    stack = Stack(SameConv(16, 16, 4, 2, (8,)), nn.ReLU()).to(dtype)
    with pytest.raises(RuntimeError):
        stack(torch.zeros(8, 16, 8))
    assert stack(torch.zeros(8, 16, 8, dtype=dtype)).dtype == dtype


@compiled
def test_layers_replaced_sliced_or_without_bias():
    stack = Stack(SameConv(16, 16, 4, 2, (8,)), nn.ReLU(), nn.Flatten(), nn.Linear(64, 16))
    x = torch.randn(16, 16, 8)
    stack(x)
    stack[0] = SameConv(16, 16, 4, 2, (8,))
    torch.testing.assert_close(stack(x), nn.Sequential(*stack)(x))
    torch.testing.assert_close(stack[:1](x), stack[0](x))
    bare = Stack(SameConv(16, 16, 4, 2, (8,)), nn.Flatten(), nn.Linear(64, 16, bias=False))
    torch.testing.assert_close(bare(x), nn.Sequential(*bare)(x))


@compiled
def test_layers_that_do_not_fit_together_are_left_to_torch():
    stack = Stack(SameConv(16, 16, 4, 2, (8,)), SameConv(16, 16, 4, 2, (9,)))
    assert [type(part).__name__ for part in stack.parts()] == ["FusedLayers", "FusedLayers"]
    x = torch.randn(16, 16, 8)
    torch.testing.assert_close(stack(x), nn.Sequential(*stack)(x))


@compiled
def test_frozen_weights_and_repeated_gradients():
    stack = Stack(SameConv(16, 16, 4, 2, (8,)), nn.ReLU(), SameConv(16, 16, 4, 2, (4,)))
    stack[0].requires_grad_(False)
    x = torch.randn(16, 16, 8, requires_grad=True)
    wanted = [x, *stack[2].parameters()]
    loss = stack(x).square().sum()
    first = torch.autograd.grad(loss, wanted, retain_graph=True)
    again = torch.autograd.grad(loss, wanted)
    expected = torch.autograd.grad(nn.Sequential(*stack)(x).square().sum(), wanted)
    for a, b, c in zip(first, again, expected, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, rtol=1e-4, atol=1e-5)


@compiled
def test_output_changed_in_place():
    stack = Stack(SameConv(16, 16, 4, 2, (8,)))
    x = torch.randn(16, 16, 8)
    stack(x).add_(1).sum().backward()
    assert stack[0].convolution.weight.grad is not None


def runs_kernels(stack, *shape):
    return "Chain" in type(stack(torch.zeros(shape)).grad_fn).__name__


@compiled
def test_layers_left_to_torch(monkeypatch):
    for layer in (SameConv(16, 4, 4, 2, (8, 8)), SameConvTranspose(4, 16, 4, 2, (8,)), SameConv(1, 16, 4, 2, (15,))):
        assert not any(isinstance(part, FusedLayers) for part in Stack(layer).parts())
    stack = Stack(SameConv(16, 16, 8, 2, (16,)))
    assert runs_kernels(stack, 8, 16, 16)
    assert not runs_kernels(stack, 4, 16, 16)  # too few rows
    without_openmp = Kernels(build.kernels().library, "without OpenMP", parallel=False)
    monkeypatch.setattr(build, "kernels", lambda: without_openmp)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert not runs_kernels(stack, 32, 16, 16)


def test_without_a_compiler(monkeypatch):
    monkeypatch.setattr(build, "kernels", lambda: Kernels(None, "not used: no C compiler found"))
    assert not runs_kernels(Stack(SameConv(16, 16, 8, 2, (16,))), 32, 16, 16)


def test_names_of_parameters_are_those_of_a_sequence():
    layers = SameConv(2, 3, 4, 2, (8,)), nn.ReLU(), nn.Flatten(), nn.Linear(12, 1)
    assert list(Stack(*layers).state_dict()) == list(nn.Sequential(*layers).state_dict())


def test_pointwise_is_a_convolution():
    layer, x = Pointwise(4, 5), torch.randn(3, 4, 1, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer(x), F.conv1d(x, layer.weight, layer.bias))


@compiled
def test_pointwise_before_other_convolutions():
    stack = Stack(Pointwise(16, 32), nn.ReLU(), SameConvTranspose(32, 16, 8, 4, (1,)), nn.ReLU())
    assert len(stack.parts()) == 1
    assert_as_torch(stack, (17, 16, 1))
