"""Initial weights by name: their distributions, and what they do to signals that pass through a layer."""

import math

import pytest
import torch
from torch import nn

from wiseale import config
from wiseale.likelihoods import GaussianSettings
from wiseale.networks.layers import SameConv, SameConvTranspose, initialise
from wiseale.networks.model import Model, seeded
from wiseale.spaces import plain_space


@pytest.mark.parametrize(
    ("layer", "fans"),
    [
        (nn.Linear(300, 500), 300 + 500),
        (nn.Conv1d(40, 60, 8), 8 * (40 + 60)),
        (nn.ConvTranspose2d(30, 20, 5), 25 * (30 + 20)),
    ],
)
def test_glorot_is_uniform_within_the_published_bound(layer, fans):
    with seeded(0):
        initialise(layer, "glorot")
    bound = math.sqrt(6 / fans)
    assert float(layer.weight.detach().abs().max()) <= bound
    assert float(layer.weight.detach().std()) == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert not layer.bias.detach().any()


@pytest.mark.parametrize("layer", [SameConv(32, 64, 6, 2, (64,)), SameConvTranspose(64, 32, 6, 2, (64,))])
def test_he_keeps_the_second_moment_behind_a_relu(layer):
    """E[y²] = 2·E[x²] for x = ReLU(normal) with E[x²] = ½, in the inside of a strided or transposed convolution."""
    with seeded(1):
        initialise(layer, "he")
        x = torch.randn(200, layer.convolution.in_channels, 64).relu()
    with torch.no_grad():
        inside = layer(x)[..., 8:-8]
    assert float(inside.square().mean()) == pytest.approx(1.0, rel=0.2)  # fans that are wrong by the stride give 2 or ½


def test_wae_is_normal_with_std_001():
    layer = nn.Linear(400, 400)
    with seeded(0):
        initialise(layer, "wae")
    assert float(layer.weight.detach().std()) == pytest.approx(0.01, rel=0.01)
    assert float(layer.weight.detach().abs().max()) > 0.03  # which no uniform distribution of this width reaches


def test_torch_leaves_pytorchs_own_weights():
    with seeded(3):
        plain = nn.Linear(4, 5)
    with seeded(3):
        left = nn.Linear(4, 5)
        initialise(left, "torch")
    assert torch.equal(plain.weight, left.weight)
    assert torch.equal(plain.bias, left.bias)
    assert plain.bias.any()


@pytest.mark.parametrize("name", ["paper_sine", "paper_mnist"])
def test_the_papers_networks_start_as_in_tensorflow(name):
    """Glorot weights and biases of 0, but for the ReLU behind sigma, which starts at 1."""
    network = config.build("network", name)
    with seeded(0):
        model = Model(network, plain_space(network.example_shape), 4, GaussianSettings())
    biases = {name: bias for name, bias in model.named_parameters() if name.endswith("bias")}
    assert bool((biases.pop("head.sigma.bias") == 1).all())
    assert not any(bias.any() for bias in biases.values())
    weight = model.head.mu.weight.detach()
    assert float(weight.abs().max()) <= math.sqrt(6 / sum(weight.shape))
