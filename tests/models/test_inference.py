"""A model in the user's units, checked against plain numpy on the stored weights and against closed forms."""

import math

import numpy as np
import pytest
import torch

from wiseale import AutoEncoder
from wiseale.errors import DataError, ModelFileError, RunError
from wiseale.models.inference import Codec, open_codec
from wiseale.models.model_file import ModelConfig, load_model, save_model
from wiseale.networks.model import seeded
from wiseale.spaces import plain_space
from wiseale.spaces.units import Affine, as_x

RNG = np.random.default_rng(0)
SCALED = plain_space((3,), scaling="columns")
X = RNG.normal(size=(7, 3)) * [0.5, 4, 20] + [1, -2, 300]


def made(**changes):
    settings = {
        "network": "mlp:hidden=6",
        "likelihood": "gaussian",
        "objective": "wise_ale",
        "space": plain_space((3,)),
    }
    model_config = ModelConfig(**settings | {"space": plain_space((3,)), "latent_dim": 2} | changes)
    with seeded(3):
        model = model_config.build()
    return model, model_config


def test_a_large_offset_is_subtracted_before_rounding():
    """Seconds since 1970 that span a minute: float32 holds them to 128 s."""
    seconds = 1.7e9 + RNG.uniform(0, 60, size=(50, 1))
    model, model_config = made(space=plain_space((1,), scaling="columns"))
    model.units = Affine(torch.tensor([1.7e9 + 30], dtype=torch.float64), torch.tensor([17.0]).double())
    shifted, _ = made(space=plain_space((1,), scaling="columns"))
    shifted.units = Affine(torch.tensor([30.0]).double(), torch.tensor([17.0]).double())
    codec, small = Codec(model, model_config), Codec(shifted, model_config)
    np.testing.assert_allclose(codec.encode(seconds).mu, small.encode(seconds - 1.7e9).mu, atol=1e-6)
    z = RNG.normal(size=(5, 2))
    np.testing.assert_allclose(codec.decode(z) - 1.7e9, small.decode(z), atol=1e-6)


def test_elbo_is_what_many_independent_draws_say():
    model, model_config = made(likelihood="gaussian:x_sigma=0.7", space=SCALED)
    scale = torch.tensor([0.5, 4.0, 20.0]).double()
    model.units = Affine(torch.tensor([1.0, -2.0, 300.0]).double(), scale)
    codec = Codec(model, model_config)
    found = codec.elbo(X)
    q = codec.encode(X)
    z = q.mu[:, None] + q.sigma[:, None] * RNG.normal(size=(len(X), 20_000, 2))
    x_hat = codec.decode(z.reshape(-1, 2)).reshape(len(X), -1, 3)
    deviation = 0.7 * scale.numpy()
    logs = (-0.5 * (((X[:, None] - x_hat) / deviation) ** 2 + np.log(2 * np.pi)) - np.log(deviation)).sum(-1)
    kl = (0.5 * (q.sigma**2 + q.mu**2 - 1) - np.log(q.sigma)).sum(1)
    # The spread of one draw of 16 around the mean bounds how far the fixed draws may be off.
    tolerance = 4 * logs.std(1) / math.sqrt(16)
    assert np.all(np.abs(found - (logs.mean(1) - kl)) < tolerance)
    assert tolerance.max() < 5


def test_elbo_in_other_units_differs_by_the_jacobian_alone():
    model, model_config = made(space=SCALED)
    model.units = Affine(torch.zeros(3).double(), torch.ones(3).double())
    wide, _ = made(space=SCALED)
    wide.units = Affine(torch.zeros(3).double(), torch.tensor([10.0, 1.0, 0.1], dtype=torch.float64))
    x = RNG.normal(size=(4, 3))
    expected = Codec(model, model_config).elbo(x) - math.log(10) - math.log(0.1)
    np.testing.assert_allclose(Codec(wide, model_config).elbo(x * [10, 1, 0.1]), expected, rtol=1e-9)


def test_elbo_of_bernoulli_refuses_what_is_no_probability():
    codec = Codec(*made(likelihood="bernoulli"))
    assert np.all(codec.elbo(np.array([[0, 1, 0.5]])) < 0)
    with pytest.raises(DataError, match="between 0 and 1"):
        codec.elbo(np.array([[0, 1, 2.0]]))


@pytest.mark.parametrize(("network", "shape"), [("mlp:hidden=6", (3,)), ("conv1d:channels=4,hidden=8", (2, 9))])
def test_neither_order_nor_batch_matters(network, shape):
    codec = Codec(*made(network=network, space=plain_space(shape)))
    x = RNG.normal(size=(9, *shape)).astype(np.float32)
    tolerance = 1e-12 if len(shape) == 1 else 1e-5
    for function in (codec.elbo, lambda x: codec.encode(x).mu, lambda x: codec.encode(x, error=True).error):
        whole, order = function(x), RNG.permutation(9)
        np.testing.assert_allclose(function(x[order]), whole[order], rtol=tolerance, atol=tolerance)
        one_by_one = np.concatenate([function(x[i : i + 1]) for i in range(9)])
        np.testing.assert_allclose(one_by_one, whole, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("noise", [False, True])
def test_the_first_samples_do_not_depend_on_how_many_follow(noise):
    codec = Codec(*made())
    few, many = (np.concatenate(list(codec.sample(n, seed=4, noise=noise))) for n in (5, 3000))
    np.testing.assert_allclose(few, many[:5], rtol=1e-12)
    assert few.shape == (5, 3)
    assert many.shape == (3000, 3)
    assert not np.array_equal(many[:5], many[1024:1029])


def test_noise_adds_the_likelihood_s_spread():
    codec = Codec(*made(likelihood="gaussian:x_sigma=0.7"))
    mean, drawn = (np.concatenate(list(codec.sample(4000, seed=1, noise=noise))) for noise in (False, True))
    assert (drawn - mean).std() == pytest.approx(0.7, rel=0.03)


@pytest.mark.parametrize("reading", ["unit", "threshold", "dynamic"])
def test_images_of_8_bits_and_the_same_divided_by_255_are_read_alike(reading):
    levels = RNG.integers(0, 256, (6, 1, 4, 4)).astype(np.uint8)
    expected = levels / 255 if reading == "unit" else levels >= 128
    for stored in (levels, levels / 255, (levels / 255).astype(np.float32)):
        np.testing.assert_allclose(as_x(stored, reading).numpy(), expected, atol=1e-6)
    with pytest.raises(DataError, match="8-bit images"):
        as_x(levels.astype(np.float32), reading)


def test_an_unfinished_run_and_no_model(tmp_path):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    with pytest.raises(RunError, match="has not finished"):
        open_codec(tmp_path / "run")
    with pytest.raises(ModelFileError, match="no model at"):
        open_codec(tmp_path / "nothing")


def test_what_a_model_remembers_of_its_data_is_kept(tmp_path):
    model, model_config = made(space=plain_space((1, 4, 4), "threshold"), data_fingerprint="ab" * 32)
    save_model(tmp_path / "m", model, model_config)
    assert load_model(tmp_path / "m")[1] == model_config


def test_the_unit_of_a_missing_cell_does_not_enter_the_elbo():
    """A column in a unit 1,000 times smaller changes the ELBO of rows that observe it by −log 1,000, of others not."""
    x = np.random.default_rng(0).normal(size=(60, 3))
    x[::3, 2] = np.nan
    settings = {"latent_dim": 2, "network": "mlp:hidden=8", "max_epochs": 2, "random_state": 0}
    before, after = (AutoEncoder(**settings).fit(x * unit).score_samples(x * unit) for unit in ([1] * 3, [1, 1, 1000]))
    observed = ~np.isnan(x[:, 2])
    assert after - before == pytest.approx(-np.log(1000) * observed, abs=1e-3)


def test_scores_are_means_over_opposite_codes(monkeypatch):
    """Whatever is linear in z is then exact; and every row has the same noise, whatever stands beside it."""
    codec = Codec(*made(space=SCALED))
    codes = []
    decode = codec.network.decode
    monkeypatch.setattr(codec.network, "decode", lambda z: codes.append(z) or decode(z))
    codec.elbo(X)
    q, z = codec.encode(X), torch.stack(codes).numpy()
    np.testing.assert_allclose(z.mean(0), q.mu, atol=1e-12)
    noise = (z - q.mu) / q.sigma
    np.testing.assert_allclose(noise, noise[:, :1].repeat(len(X), 1), atol=1e-9)
    assert len(np.unique(noise[:, 0].round(9), axis=0)) == 16  # standard error: a quarter of the spread of one draw
