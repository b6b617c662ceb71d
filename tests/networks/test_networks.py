"""What every registered network promises; enumerates the registry."""

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from wiseale import config, registry
from wiseale.errors import ConfigError
from wiseale.likelihoods import GaussianSettings
from wiseale.networks.mlp import Mlp
from wiseale.networks.model import Head, Model, seeded
from wiseale.spaces import plain_space
from wiseale.spaces.units import Affine

# Sizes that a network of any shape must handle besides its example: odd, smaller than the filters, a single entry.
OTHER_SHAPES = [
    *(("conv1d", shape) for shape in [(3, 77), (2, 1), (1, 5)]),
    *(("conv2d", shape) for shape in [(3, 13, 6), (1, 1, 1), (3, 64, 64)]),
    *(("mlp", shape) for shape in [(1,), (2, 9), (3, 4, 5)]),
    ("paper_celeba", (1, 64, 64)),
]


def narrow(name):
    """The network with few filters, where their number is a setting, so that the test is quick."""
    fields = {field.name for field in dataclasses.fields(registry.lookup("network", name))}
    return f"{name}:width=0.03" if "width" in fields else name


EXAMPLES = [(name, registry.lookup("network", name).example_shape) for name in registry.names("network")]
CASES = [(narrow(name), shape) for name, shape in EXAMPLES + OTHER_SHAPES]


def model_of(name, shape, latent_dim=3, seed=0):
    with seeded(seed):
        return Model(config.build("network", name), plain_space(shape), latent_dim, GaussianSettings())


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_the_decoder_returns_exactly_the_input_shape(name, shape):
    model = model_of(name, shape)
    posterior, z, likelihood = model(torch.randn(4, *shape), torch.randn(4, 3))
    assert likelihood.mean.shape == (4, *shape)
    assert posterior.mu.shape == posterior.sigma.shape == z.shape == (4, 3)
    assert float(posterior.sigma.detach().min()) > 0


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_gradients_reach_every_parameter(name, shape):
    model = model_of(name, shape)
    g = torch.Generator().manual_seed(0)
    posterior, _, likelihood = model(torch.randn(8, *shape, generator=g), torch.randn(8, 3, generator=g))
    (likelihood.mean.square().mean() + posterior.sigma.mean()).backward()
    silent = [n for n, p in model.named_parameters() if p.grad is None or not bool(p.grad.abs().sum() > 0)]
    assert silent == []


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_rows_do_not_see_each_other(name, shape):
    model = model_of(name, shape).eval()
    x = torch.randn(5, *shape, generator=torch.Generator().manual_seed(0))
    whole = model.encode(x)
    torch.testing.assert_close(model.encode(x[2:3]).mu, whole.mu[2:3], atol=1e-5, rtol=1e-4)
    z = whole.mu.detach()
    torch.testing.assert_close(model.decode(z[2:3]).mean, model.decode(z).mean[2:3], atol=1e-5, rtol=1e-4)


def test_initial_weights_follow_from_the_seed_alone():
    torch.manual_seed(123)
    before = torch.random.get_rng_state()
    first, again, other = (model_of("mlp", (7,), seed=seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_initial_weights_leave_the_generators_of_gpus_alone(monkeypatch):
    """A script that builds or loads a model must not continue from seed 0 on its GPU."""
    reseeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", reseeded.append)
    model_of("mlp", (7,), seed=1)
    assert reseeded == []


def test_initial_weights_of_models_built_in_threads():
    """Torch has one global generator: threads that build models take turns."""
    alone = model_of("conv2d", (1, 16, 16), seed=7).state_dict()
    with ThreadPoolExecutor(4) as pool:
        for built in pool.map(lambda _: model_of("conv2d", (1, 16, 16), seed=7).state_dict(), range(12)):
            assert all(torch.equal(alone[name], built[name]) for name in alone)


def test_paper_sine_has_the_published_layers():
    """Parameter count from appendix D.1: Σ (inputs · kernel + 1) · outputs."""
    encoder = [(1, 16, 16), (16, 16, 16), (16, 16, 32), (32, 16, 32), (32, 8, 64)]
    decoder = [(16, 1, 128), (128, 8, 64), (64, 16, 32), (32, 16, 16), (16, 16, 1)]
    dense = [(512, 64), (64, 4), (64, 4), (4, 16)]
    expected = sum((i * k + 1) * o for i, k, o in encoder + decoder) + sum((i + 1) * o for i, o in dense)
    assert sum(p.numel() for p in model_of("paper_sine", (1, 256), 4).parameters()) == expected


def test_paper_mnist_has_the_published_layers():
    convolutions = [(1, 16, 16), (16, 16, 32), (32, 16, 64)]
    dense = [(1024, 32), (32, 2), (32, 2), (2, 16), (16, 128), (128, 784)]
    expected = sum((i * k + 1) * o for i, k, o in convolutions) + sum((i + 1) * o for i, o in dense)
    assert sum(p.numel() for p in model_of("paper_mnist", (1, 28, 28), 2).parameters()) == expected


def test_paper_celeba_has_the_published_layers():
    """Appendix D.3 at a quarter of the width; batch norm in the decoder alone."""
    c1, c2, c3, c4 = 32, 64, 128, 256
    encoder = [(3, 25, c1), (c1, 25, c2), (c2, 25, c3), (c3, 25, c4)]
    decoder = [(c4, 25, c3), (c3, 25, c2), (c2, 25, c1), (c1, 25, 3)]
    dense = [(c4 * 16, 64), (c4 * 16, 64), (64, 64 * c4)]
    expected = sum((i * k + 1) * o for i, k, o in encoder + decoder) + sum((i + 1) * o for i, o in dense)
    expected += 2 * (c1 + c2 + c3)
    model = model_of("paper_celeba:width=0.25", (3, 64, 64), 64)
    assert sum(p.numel() for p in model.parameters()) == expected


def test_sigma_heads():
    features = torch.full((2, 3), -1e3)
    relu, softplus = Head(3, 2, "relu", 1e-3), Head(3, 2, "softplus", 1e-4)
    for head in (relu, softplus):
        torch.nn.init.ones_(head.sigma.weight)
    assert torch.all(relu(features).sigma == 1e-3)
    torch.testing.assert_close(softplus(features).sigma, torch.full((2, 2), 1e-4))
    relu.initialise("glorot")
    assert torch.all(relu.sigma.bias == 1)


@pytest.mark.parametrize(
    ("name", "shape"), [("paper_sine", (1, 100)), ("conv1d", (3,)), ("conv2d", (1, 256)), ("paper_mnist", (1, 32, 32))]
)
def test_a_shape_that_does_not_fit_is_refused(name, shape):
    with pytest.raises(ConfigError, match=r"needs .* got"):
        model_of(name, shape)


def test_units_are_inverted_and_its_jacobian_known():
    units = Affine(torch.tensor([1.0, -2.0, 5.0]), torch.tensor([2.0, 0.5, 10.0]))
    x = torch.randn(6, 3)
    torch.testing.assert_close(units.inverse(units(x)), x)
    jacobian = torch.autograd.functional.jacobian(lambda row: units(row), x[0])
    expected = float(torch.linalg.slogdet(jacobian).logabsdet)
    assert units.log_jacobian(x).tolist() == pytest.approx([expected] * 6, abs=1e-6)
    holes = torch.tensor([[1.0, float("nan"), 3.0], [float("nan")] * 3])
    assert units.log_jacobian(holes).tolist() == pytest.approx([-math.log(20), 0], abs=1e-6)
    shared = Affine(torch.tensor(1.0), torch.tensor(4.0))
    assert shared.log_jacobian(torch.zeros(1, 2, 5)).tolist() == pytest.approx([-10 * 1.3862943611])


def test_the_identity_changes_nothing_and_adds_nothing_to_the_weights():
    model = model_of("mlp", (3,))
    x = torch.tensor([[-0.0, 1e30, -2.5]])
    assert model.units(x) is x
    assert model.units.inverse(x) is x
    assert model.units.log_jacobian(x).tolist() == [0]
    assert not [name for name in model.state_dict() if name.startswith("units")]


def test_codes_keep_float32_where_layers_run_in_bfloat16():
    """In bfloat16 a code of size 1 is known to 1/256, which is more than a narrow posterior's sigma."""
    model = Model(Mlp(hidden=(8,), start="pca"), plain_space((4,)), 2, GaussianSettings())
    model.body, model.head = nn.Flatten(), Head(4, 2, "softplus", 1e-4)
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    plain = model.encode(x)
    with torch.autocast("cpu", torch.bfloat16):
        found = model.encode(x)
    assert torch.equal(found.mu, plain.mu)
    assert torch.equal(found.sigma, plain.sigma)
