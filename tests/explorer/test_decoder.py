"""The decoder of the page, run by node, against torch."""

import copy
import dataclasses
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.spaces.columns_for_tests import mixed_space
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import wiseale.explorer
from wiseale import config, registry
from wiseale.explorer.weights import MAX_MULTIPLY_ADDS, NoDescriptionError, describe, multiply_adds
from wiseale.models.inference import Codec
from wiseale.models.model_file import ModelConfig
from wiseale.networks.model import seeded
from wiseale.spaces import Space, plain_space
from wiseale.spaces.units import Affine

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed: decoder.js cannot be run")
DECODER = Path(wiseale.explorer.__file__).parent / "static" / "decoder.js"

LATENT_DIM = 3


def narrow(name):
    fields = {field.name for field in dataclasses.fields(registry.lookup("network", name))}
    return f"{name}:width=0.05" if "width" in fields else name


EXAMPLES = [(narrow(name), registry.lookup("network", name).example_shape) for name in registry.names("network")]
OTHER = [  # odd sizes, a kernel smaller than the stride and one larger than the signal, a single entry
    *(("conv1d", shape) for shape in [(3, 77), (2, 1)]),
    *(("conv2d", shape) for shape in [(3, 13, 6), (1, 1, 1)]),
    ("conv1d:kernel=1,channels=4,4", (2, 9)),
    ("conv2d:kernel=5,channels=4,4", (1, 9, 12)),
    ("mlp", (2, 9)),
    *((f"{name}:start=none", shape) for name, shape in [("conv1d", (3, 17)), ("conv2d", (1, 7, 5)), ("mlp", (5,))]),
]


def codec_of(network, shape, likelihood="gaussian", units=None):
    space = shape if isinstance(shape, Space) else plain_space(shape)
    model_config = ModelConfig(network, likelihood, "wise_ale", space, LATENT_DIM)
    with seeded(1):
        model = model_config.build()
    if units is not None:
        model.units = units
    draws = torch.Generator().manual_seed(0)
    for parameter in model.parameters():  # of any start: a fresh decoder may hardly depend on the code
        spread = 1.2 / parameter[0].numel() ** 0.5 if parameter.ndim > 1 else 0.5
        parameter.data.normal_(0, spread, generator=draws)
    for module in model.decoder.modules():  # statistics and weights unlike those of a fresh batch norm
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-1, 1, generator=draws)
            module.running_var.uniform_(0.5, 2, generator=draws)
            module.weight.data.uniform_(-2, 2, generator=draws)
            module.bias.data.uniform_(-1, 1, generator=draws)
    return Codec(model, model_config)


def run(folder, description, weights, codes):
    """x of every code, as node computes it."""
    shutil.copy(DECODER, folder / "decoder.mjs")
    (folder / "description.json").write_text(json.dumps(description))
    (folder / "weights.f32").write_bytes(weights)
    (folder / "codes.f32").write_bytes(np.asarray(codes, "<f4").tobytes())
    script = Path(__file__).with_name("run_decoder.mjs")
    done = subprocess.run([NODE, script, folder], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return np.frombuffer((folder / "x.f32").read_bytes(), "<f4").reshape(len(codes), *description["x_shape"])


@torch.no_grad()
def exact(codec, z):
    """x in float64, in which torch's own rounding does not count."""
    model = copy.deepcopy(codec.model).double()
    return codec.model.units.inverse(model.decode(torch.from_numpy(z).double()).mean).numpy()


def codes_for_tests():
    return np.random.default_rng(0).normal(size=(5, LATENT_DIM)).astype(np.float32) * 2


@needs_node
@pytest.mark.parametrize(("network", "shape"), EXAMPLES + OTHER)
def test_every_network_agrees_with_torch(tmp_path, network, shape):
    codec, z = codec_of(network, shape), codes_for_tests()
    found = run(tmp_path, *describe(codec), z)
    wanted = codec.decode(z)
    assert wanted.std(0).mean() > 0.01  # codes matter
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found, exact(codec, z), rtol=1e-6, atol=1e-6)


@needs_node
def test_learned_noise_does_not_change_the_mean(tmp_path):
    codec, z = codec_of("mlp", (3,), "gaussian:x_sigma=columns"), codes_for_tests()
    np.testing.assert_allclose(run(tmp_path, *describe(codec), z), codec.decode(z), rtol=1e-5, atol=1e-5)


@needs_node
@pytest.mark.parametrize("network", ["mlp", "paper_mnist", "paper_sine"])
def test_a_bernoulli_decoder_returns_probabilities(tmp_path, network):
    codec = codec_of(network, registry.lookup("network", network).example_shape, "bernoulli")
    z = 50 * codes_for_tests()  # logits beyond where exp overflows in float32
    found = run(tmp_path, *describe(codec), z)
    assert found.min() >= 0
    assert found.max() <= 1
    np.testing.assert_allclose(found, exact(codec, z), atol=1e-6)


@needs_node
def test_columns_come_back_in_their_own_units(tmp_path):
    """A column around a million that varies by thousandths keeps float32's precision of it."""
    mean = torch.tensor([1e6, -3.0, 0.1], dtype=torch.float64)
    scale = torch.tensor([1e-3, 20.0, 5e-6], dtype=torch.float64)
    codec, z = codec_of("mlp", (3,), units=Affine(mean, scale)), codes_for_tests()
    np.testing.assert_allclose(run(tmp_path, *describe(codec), z), codec.decode(z), rtol=2**-23)


@needs_node
@pytest.mark.parametrize("scale", [torch.tensor(3.0), torch.full((1, 4, 6), 3.0)])
def test_images_come_back_in_their_own_units(tmp_path, scale):
    """One mean for all entries; one scale for all, or one for each."""
    units = Affine(torch.tensor(40.0, dtype=torch.float64), scale.double())
    codec, z = codec_of("conv2d", (1, 4, 6), units=units), codes_for_tests()
    found = run(tmp_path, *describe(codec), z)
    np.testing.assert_allclose(found, codec.decode(z), rtol=1e-5)


@needs_node
def test_a_sum_of_branches_adds_what_they_return(tmp_path):
    """x_hat = ReLU(A z) + B z: the branches must not see each other's changes of z."""
    draws = torch.Generator().manual_seed(0)
    first, second = torch.randn(4, LATENT_DIM, generator=draws), torch.randn(4, LATENT_DIM, generator=draws)
    weights = torch.cat([first.flatten(), second.flatten(), torch.zeros(4)]).numpy().astype("<f4").tobytes()
    linear = {"kind": "linear", "inputs": LATENT_DIM, "outputs": 4, "bias": 8 * LATENT_DIM}
    relu = {"kind": "sequence", "nodes": [{"kind": "relu"}, linear | {"weight": 0}]}  # a ReLU of z itself, in place
    tree = {"kind": "sum", "branches": [relu, linear | {"weight": 4 * LATENT_DIM}]}
    description = {"latent_dim": LATENT_DIM, "x_shape": [4], "decoder": tree}
    z = torch.from_numpy(codes_for_tests())
    wanted = z.relu() @ first.T + z @ second.T
    np.testing.assert_allclose(run(tmp_path, description, weights, z.numpy()), wanted.numpy(), rtol=1e-5, atol=1e-6)
    assert multiply_adds(description) == 2 * 4 * LATENT_DIM


@pytest.mark.parametrize(("network", "shape"), EXAMPLES + OTHER)
def test_multiply_adds_are_those_torch_counts(network, shape):
    codec = codec_of(network, shape)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        codec.model.decode(torch.zeros(1, LATENT_DIM))
    assert multiply_adds(describe(codec)[0]) == counter.get_total_flops() / 2


def test_the_paper_s_celeba_decoder_is_too_large_for_a_page():
    """The paper's decoder of faces at full width; the smaller networks decode under the cursor."""
    smaller = [(name, shape) for name, shape in EXAMPLES if not name.startswith("paper_celeba")]
    sizes = {name: multiply_adds(describe(codec_of(name, shape))[0]) for name, shape in smaller}
    assert max(sizes.values()) < MAX_MULTIPLY_ADDS
    with torch.device("meta"):
        full = config.build("network", "paper_celeba").decoder(32, (3, 64, 64))
        with FlopCounterMode(display=False) as counter:
            full(torch.zeros(1, 32))
    assert counter.get_total_flops() / 2 > MAX_MULTIPLY_ADDS


@needs_node
@pytest.mark.parametrize("damage", ["short weights", "unknown kind", "wrong code"])
def test_a_damaged_description_is_refused_in_words(tmp_path, damage):
    description, weights = describe(codec_of("mlp", (3,)))
    z = codes_for_tests()
    if damage == "short weights":
        weights, said = weights[:-400], "shorter than the description says"
    elif damage == "unknown kind":
        description["decoder"]["nodes"].append({"kind": "swish"})
        said = "unknown kind of layer: swish"
    else:
        z, said = z.flatten()[None, :4], "the code has 1 entries"
    with pytest.raises(AssertionError, match=said):
        run(tmp_path, description, weights, z)


def test_a_layer_unknown_to_the_page_is_refused():
    codec = codec_of("mlp", (3,))
    codec.model.decoder.append(nn.GELU())
    with pytest.raises(NoDescriptionError, match="GELU"):
        describe(codec)


@needs_node
def test_a_table_returns_means_probabilities_and_rates(tmp_path):
    kinds = "number,category:3,binary,poisson,category:2,negative_binomial,number"
    mean = torch.tensor([1e6, 0, 0, 0, 0, 0, -3.0], dtype=torch.float64)
    scale = torch.tensor([1e-3, 1, 1, 1, 1, 1, 20.0], dtype=torch.float64)
    codec = codec_of("mlp", mixed_space(kinds), "table", Affine(mean, scale))
    z = 3 * codes_for_tests()
    found = run(tmp_path, *describe(codec), z)
    assert found.shape == (5, 10)
    np.testing.assert_allclose(found, codec.expected(z), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[:, 1:4].sum(1), 1, rtol=1e-6)
    assert (found[:, 1:4].argmax(1) == codec.decode(z)[:, 1]).all()
    np.testing.assert_allclose(found[:, [0, 4, 5, 8, 9]], codec.decode(z)[:, [0, 2, 3, 5, 6]], rtol=1e-5, atol=1e-5)
