"""Collapse: the use of the codes against closed forms, and what users are told about it."""

import math
import warnings

import numpy as np
import pytest
import torch
from tests.cli.commands import run as command

from wiseale import AutoEncoder
from wiseale.cli.options import option_name
from wiseale.errors import CollapseWarning
from wiseale.evaluation.record import Evaluation
from wiseale.likelihoods import BernoulliSettings, GaussianSettings
from wiseale.models.collapse import CodeUse, code_use, collapse_message
from wiseale.objectives import make_objective
from wiseale.posterior import Posterior
from wiseale.report.document import to_markdown
from wiseale.report.run import run_document

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(300, 2)) @ RNG.normal(size=(2, 6)) + 0.1 * RNG.normal(size=(300, 6))
HUGE = "beta_vae:beta=1000"
NETWORKS = {HUGE: "mlp:hidden=16,start=none", "aevb": "mlp:hidden=16"}  # from the PCA start, collapse takes longer
TRAINING = {"latent_dim": 2, "max_epochs": 30, "batch_size": 32, "lr": 3e-3, "likelihood": "gaussian:x_sigma=1"}


def noise(n, d):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0))


def test_the_mutual_information_of_separated_posteriors_is_the_log_of_their_number():
    q = Posterior(torch.arange(50.0)[:, None] * 100, torch.ones(50, 1))
    use = code_use(q, noise(50, 1))
    assert use.mutual_information == pytest.approx(math.log(50))
    assert use.active_units == 1


def test_the_mutual_information_of_a_gaussian_channel_has_a_closed_form():
    """mu ~ N(0, s²) and z = mu + sigma·ε: ½ log(1 + s²/sigma²) in each dimension."""
    n, spread, sigma = 4000, torch.tensor([0.5, 2.0]), torch.tensor([1.0, 1.0])
    mu = torch.randn(n, 2, generator=torch.Generator().manual_seed(1)) * spread
    exact = float((0.5 * torch.log1p(spread**2 / sigma**2)).sum())
    use = code_use(Posterior(mu, sigma.expand(n, 2)), noise(n, 2))
    assert use.mutual_information == pytest.approx(exact, abs=0.06)  # 4 standard errors of 4,000 draws
    assert use.active_units == 2


def test_identical_posteriors_carry_nothing_wherever_they_are():
    use = code_use(Posterior(torch.full((20, 3), 7.0), torch.full((20, 3), 0.1)), noise(20, 3))
    assert use.active_units == 0
    assert use.mutual_information == pytest.approx(0, abs=1e-9)
    assert use.collapsed


def test_a_deterministic_encoder_is_judged_by_its_units_alone():
    mu = torch.randn(100, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 0.05, 1.0])
    assert code_use(Posterior(mu), noise(100, 3)) == CodeUse(2, None)
    assert code_use(Posterior(0.05 * mu), noise(100, 3)).collapsed


def test_sorted_rows_are_not_taken_for_collapse():
    """The first rows of a file may be alike; the codes of all of them differ."""
    x = np.concatenate([0.001 * RNG.normal(size=(1200, 6)), np.repeat(TABLE, 2, axis=0)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        AutoEncoder(latent_dim=2, network="mlp:hidden=16", max_epochs=2, random_state=0).fit(x)
    assert not [one.message for one in caught if issubclass(one.category, CollapseWarning)]


def test_the_message_names_the_settings_of_the_interface_and_of_the_system():
    use = CodeUse(0, 0.001)
    objective, aevb, bernoulli = make_objective("beta_vae:beta=4"), make_objective("aevb"), BernoulliSettings()
    told = collapse_message(use, objective, GaussianSettings(x_sigma=1.0), option_name)
    assert "beta in --objective" in told
    assert "--prior-warmup" in told
    assert "--likelihood gaussian:x_sigma=learned" in told
    assert "\n" not in told
    assert "x_sigma" not in collapse_message(use, aevb, bernoulli)
    for learned in ("learned", "columns"):
        assert "x_sigma" not in collapse_message(use, aevb, GaussianSettings(x_sigma=learned))
    assert collapse_message(CodeUse(1, 0.5), aevb, bernoulli) is None


def estimator(objective):
    return AutoEncoder(objective, network=NETWORKS[objective], random_state=0, **TRAINING)


def test_fitting_warns_of_a_collapsed_model_and_the_estimator_is_fitted():
    est = estimator(HUGE)
    with pytest.warns(CollapseWarning, match=r"collapsed.*smaller beta in objective.*prior_warmup"):
        est.fit(TABLE)
    assert est.transform(TABLE).var(0).max() < 0.01


def test_fitting_does_not_warn_of_rows_that_are_all_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        AutoEncoder(network="mlp:hidden=4", max_epochs=1, random_state=0).fit(np.ones((10, 3)))


def test_fitting_does_not_warn_of_a_healthy_model():
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        assert estimator("aevb").fit(TABLE).transform(TABLE).var(0).min() > 0.1


@pytest.mark.long
@pytest.mark.parametrize(("objective", "collapsed"), [(HUGE, True), ("aevb", False)])
def test_train_evaluate_and_report_say_so(tmp_path, capsys, objective, collapsed):
    table, run = tmp_path / "table.npy", tmp_path / "run"
    np.save(table, TABLE)
    settings = {**TRAINING, "objective": objective, "network": NETWORKS[objective], "threads": 1}
    options = [word for name, value in settings.items() for word in (option_name(name), str(value))]
    code, shown, _ = command(capsys, "train", table, *options, "--out", run)
    *_, before_last, last = shown.splitlines()
    assert code == 0
    assert last.startswith("finished: ")
    assert ("collapsed" in before_last) == ("smaller beta in --objective" in before_last) == collapsed
    code, shown, _ = command(capsys, "evaluate", run, "--nll-samples", 0)
    assert code == 0
    assert ("collapsed (0 active units" in shown) == collapsed
    assert ("the codes have collapsed" in to_markdown(run_document(run), tmp_path)) == collapsed


@pytest.mark.parametrize(("units", "information", "collapsed"), [(1, 0.0999, True), (1, 0.1001, False), (0, 9.0, True)])
def test_a_tenth_of_a_nat_is_the_least_that_counts(units, information, collapsed):
    assert CodeUse(units, information).collapsed == collapsed


def test_a_unit_is_active_from_a_variance_of_a_hundredth_on():
    """As Burda et al. (2016) count them: means that vary by more than 0.01."""
    mu = torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(50)[:, None]
    mu = mu / mu.var(0).sqrt() * torch.tensor([0.0099, 0.0101]).double().sqrt()
    assert code_use(Posterior(mu), noise(100, 2)).active_units == 1


@pytest.mark.parametrize(("rows", "collapsed"), [(199, False), (200, True)])
def test_the_information_in_few_rows_is_too_noisy_to_judge_by(rows, collapsed):
    evaluation = Evaluation("x.npy", "test", rows, 0, {"active_units": 2, "mutual_information": 0.01})
    assert evaluation.code_use.collapsed == collapsed
