"""The demo's sentences follow its own numbers."""

from wiseale.experiments import systems as s
from wiseale.experiments.comparison import Estimate
from wiseale.experiments.systems import demo_comparison, reading, variance_of_waves


def measured(**values):
    return {name: Estimate(value, None, 1) for name, value in values.items()}


def summary(beta_nats):
    return {
        s.WISE_ALE.name: measured(mse=0.068, mutual_information=7.0, active_units=4.0, kl_aggregate_mc=2.5),
        s.BETA_VAE.name: measured(mse=0.679, mutual_information=beta_nats, active_units=2.0),
        s.WISE_ALE_AS_WRITTEN.name: measured(kl_aggregate_mc=48.0),
    }


def test_sentences_say_what_was_measured():
    first, second, third = reading(summary(0.02), variance=0.68)
    assert "0.068" in first
    assert "90%" in first
    assert "4 numbers" in first
    assert "has collapsed" in second
    assert "48.0 nats" in third
    assert "has not collapsed" in reading(summary(3.0), variance=0.68)[1]


def test_nothing_is_said_of_runs_that_failed():
    assert reading({}, 0.68) == []
    assert len(reading({s.WISE_ALE.name: summary(0)[s.WISE_ALE.name]}, 0.68)) == 1


def test_the_variance_is_that_of_the_generator(tmp_path):
    """E[A²]/2 + noise² = 2/3 + 0.05², up to the draws of 10,000 waves."""
    assert abs(variance_of_waves(demo_comparison(tmp_path, 200, 1, 0)) - (2 / 3 + 0.0025)) < 0.03
