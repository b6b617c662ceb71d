import numpy as np
import pytest

from wiseale.config import TrainConfig
from wiseale.data import load_dataset
from wiseale.errors import ConfigError
from wiseale.likelihoods import GaussianSettings
from wiseale.training.plan import resolve


def test_waves_follow_from_their_factors():
    rows = load_dataset("sine:n=300,n_test=40,noise=0").train
    t = np.arange(256) / 256
    f, phase, amplitude = (np.asarray(rows.factors[name])[:, None] for name in ("frequency", "phase", "amplitude"))
    np.testing.assert_allclose(rows.x[:, 0], amplitude * np.sin(2 * np.pi * f * t + phase), atol=2e-6)


def test_factors_have_the_papers_ranges():
    factors = load_dataset("sine:n=20000,n_test=10").train.factors
    for name, high in {"frequency": 20, "phase": 2 * np.pi, "amplitude": 2}.items():
        values = np.asarray(factors[name])
        assert 0 <= values.min() < 0.01 * high
        assert 0.99 * high < values.max() < high
        assert values.mean() == pytest.approx(high / 2, rel=0.03)


def test_noise_has_the_asked_deviation():
    quiet, noisy = (load_dataset(f"sine:n=500,n_test=10,noise={s}").train.x for s in (0, 0.05))
    assert float(np.std(noisy - quiet)) == pytest.approx(0.05, rel=0.01)


def test_test_waves_are_others_and_seeds_matter():
    first, again, other = (load_dataset(f"sine:n=50,n_test=50,seed={seed}") for seed in (0, 0, 1))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert not np.allclose(first.train.x, first.test.x)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sine:n=1", "n must be at least 2"),
        ("sine:noise=-1", "noise must be at least 0"),
        ("sin", "did you mean 'sine'"),
    ],
)
def test_wrong_settings_are_refused(spec, message):
    with pytest.raises(ConfigError, match=message):
        load_dataset(spec)


def test_the_preset_is_the_papers_and_ours_is_asked_for():
    """As docs/exact_bound.md and docs/deviations.md state them."""
    dataset = load_dataset("sine:n=100")
    paper = resolve(TrainConfig(data="sine:n=100", threads=1), dataset)
    assert paper.spec("network").startswith("paper_sine:")
    assert (paper.latent_dim, paper.batch_size, paper.lr, paper.prior_warmup) == (4, 64, 5e-4, 0)
    assert (paper.likelihood, paper.patience, paper.held_out) == (GaussianSettings(x_sigma=1.0), None, 0.05)
    ours = resolve(TrainConfig(data="sine:n=100", recipe="ours", threads=1), dataset)
    assert {name for name, value in vars(paper).items() if value != getattr(ours, name)} == {
        *("recipe", "lr", "prior_warmup")
    }
    assert (ours.lr, ours.prior_warmup) == (1e-3, 2)
