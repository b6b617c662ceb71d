import numpy as np
import pytest
import torch
from tests.evaluation.models import Decoder, case_of, ignore

from wiseale.data.sets.sine import Sine
from wiseale.evaluation.factors import factor_detail, fitted_amplitude
from wiseale.posterior import Posterior

LENGTH = 64


@pytest.fixture(scope="module")
def waves():
    return Sine(n=2, n_test=800, noise=0, length=LENGTH).load(None).test


def detail(waves, loudness):
    """What is found where the decoder returns each wave with its amplitude times ``loudness(frequency)``."""

    def decoded(z):
        frequency, phase, amplitude = z.double()[:, :, None].unbind(1)
        t = torch.arange(LENGTH) / LENGTH
        wave = torch.sin(2 * torch.pi * frequency * t + phase)
        return (loudness(frequency) * amplitude * wave).float()[:, None]

    codes = np.stack([waves.factors[name] for name in ("frequency", "phase", "amplitude")], 1)
    posterior = Posterior(torch.from_numpy(codes).float())
    model = Decoder(decoded, (1, LENGTH), 3)
    return factor_detail(case_of(model, waves.x, posterior, waves.factors, {"phase": 2 * np.pi}), ignore).measures


def test_true_waves_have_no_error(waves):
    found = detail(waves, torch.ones_like)
    assert found["amplitude_error"] == pytest.approx(0, abs=1e-4)
    assert found["mse_at_mu_frequency_quartile_1"] < 1e-8


def test_waves_that_are_too_quiet(waves):
    found = detail(waves, lambda f: 0.7 * torch.ones_like(f))
    loud = np.asarray(waves.factors["amplitude"])
    assert found["amplitude_error"] == pytest.approx(0.3 * loud.mean(), rel=0.02)
    assert found["amplitude_bias"] == pytest.approx(-found["amplitude_error"], rel=1e-6)


def test_the_quartile_that_fails_is_named(waves):
    frequency = np.asarray(waves.factors["frequency"])
    lowest = float(np.quantile(frequency, 0.25))
    found = detail(waves, lambda f: (f > lowest).double())
    quartiles = [found[f"mse_at_mu_frequency_quartile_{i}"] for i in range(1, 5)]
    missing = np.square(waves.x[frequency <= lowest]).mean()
    assert quartiles[0] == pytest.approx(missing, rel=1e-3)
    assert max(quartiles[1:]) < 1e-8
    by_amplitude = [found[f"mse_at_mu_amplitude_quartile_{i}"] for i in range(1, 5)]
    assert np.mean(by_amplitude) == pytest.approx(np.mean(quartiles), rel=1e-5)
    assert not any("phase" in name for name in found)


def test_amplitude_by_least_squares():
    generator = np.random.default_rng(0)
    wave, x_hat = generator.normal(size=(5, 30)), generator.normal(size=(5, 30))
    wave[3] = 0.05
    seen, estimate = fitted_amplitude(x_hat, wave)
    assert seen.tolist() == [True, True, True, False, True]
    for i in (0, 1, 2, 4):
        assert estimate[i] == pytest.approx(np.linalg.lstsq(wave[i][:, None], x_hat[i], rcond=None)[0][0])


def test_rows_that_are_not_waves_and_few_rows():
    codes = np.zeros((30, 2))
    model = Decoder(lambda z: z, (2,), 2)
    posterior = Posterior(torch.from_numpy(codes).float())
    factors = {"price": np.linspace(0, 1, 30), "amplitude": np.arange(30.0), "city": np.array(["x", "y"] * 15)}
    found = factor_detail(case_of(model, codes, posterior, factors), ignore)
    assert set(found.measures) == {
        f"mse_at_mu_{name}_quartile_{i}" for name in ("price", "amplitude") for i in range(1, 5)
    }
    assert set(found.measures.values()) == {None}
    assert factor_detail(case_of(model, codes, posterior), ignore).measures == {}


def test_a_quarter_without_rows_says_why_and_rows_without_cells_do_not_count():
    n = 100
    size = np.where(np.arange(n) < 40, 0.0, np.arange(n))  # the lowest value is that of 40 % of the rows
    x = np.stack((size, size), 1)
    x[90] = np.nan
    model = Decoder(lambda z: torch.cat((z, z + 1), 1).float(), (2,), 1)
    posterior = Posterior(torch.from_numpy(size[:, None]).float())
    found = factor_detail(case_of(model, x, posterior, {"size": size}, {}), ignore)
    assert found.measures["mse_at_mu_size_quartile_1"] is None
    assert "equal values share one" in found.reasons["mse_at_mu_size_quartile_1"]
    assert [found.measures[f"mse_at_mu_size_quartile_{i}"] for i in (2, 3, 4)] == pytest.approx([0.5] * 3)
