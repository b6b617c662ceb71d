"""The whole evaluation: of trained runs, of deterministic encoders, and against its own documentation."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from tests.evaluation.models import Decoder, LinearGaussian, case_of
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal, kl_divergence

from wiseale.cli.display import RunDisplay
from wiseale.config import TrainConfig
from wiseale.data import Rows
from wiseale.evaluation import prior_match, separation
from wiseale.evaluation.encoded import BATCH, binarized, encode_run
from wiseale.evaluation.evaluate import evaluate, measure
from wiseale.evaluation.measures import MEASURES, defined
from wiseale.likelihoods import GaussianSettings
from wiseale.networks.mlp import Mlp
from wiseale.networks.model import Model
from wiseale.posterior import Posterior
from wiseale.runs.run import Run
from wiseale.runs.train import start
from wiseale.spaces import plain_space

WAVES = "sine:n=64,n_test=450,length=32"
NEED_SIGMA_BUT_NO_PRIOR = {*separation.WIDTHS, *separation.SEPARATION}
NEED_SIGMA_AND_NORMAL_PRIOR = {*prior_match.PRIOR_MATCH, *prior_match.NLL, *separation.COMPACTNESS}
NEED_SIGMA = NEED_SIGMA_BUT_NO_PRIOR | NEED_SIGMA_AND_NORMAL_PRIOR | {"elbo"}


def trained(data, out, **settings):
    config = TrainConfig(data=str(data), max_epochs=1, batch_size=16, threads=1, **settings)
    start(config, out, RunDisplay())
    return out


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    out = tmp_path_factory.mktemp("waves") / "run"
    return trained(WAVES, out, latent_dim=2, network="mlp:hidden=16")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    levels = np.random.default_rng(0).integers(0, 256, (120, 1, 12, 12), dtype=np.uint8)
    np.save(folder / "pictures.npy", levels)
    return trained(folder / "pictures.npy", folder / "run", latent_dim=2, network="mlp:hidden=16", held_out=0.2)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    rows = [f"{number % 7 / 3},{'red' if number % 3 else 'blue'}" for number in range(200)]
    (folder / "table.csv").write_text("price,colour\n" + "\n".join(rows))
    return trained(folder / "table.csv", folder / "run", latent_dim=2)


def complete(measures, reasons):
    """Every name has a finite number or a reason, never both."""
    absent = {name for name, value in measures.items() if value is None}
    assert set(reasons) == absent
    assert all(math.isfinite(value) for value in measures.values() if value is not None)


def test_a_run_of_sine_waves(waves):
    told = []
    result = evaluate(waves, progress=lambda title, fraction: told.append((title, fraction)))
    complete(result.measures, result.reasons)
    assert set(result.reasons.values()) == {"the observations are not images"}
    assert (result.n_eval, result.split) == (450, "test")
    assert [name for names in result.groups.values() for name in names] == list(result.measures)
    fractions = [fraction for _, fraction in told]
    assert fractions == sorted(fractions)
    assert (fractions[0], told[-1]) == (0, ("done", 1))
    assert {title for title, _ in told[:-1]} == set(result.groups)
    stored = json.loads((waves / "evaluation.json").read_text())
    assert len(stored.pop("sha256")) == 64
    assert stored == json.loads(json.dumps(dataclasses.asdict(result)))
    assert result.measures["mse_at_mu_frequency_quartile_1"] > 0
    assert -result.measures["elbo"] == pytest.approx(
        result.measures["reconstruction"] + result.measures["kl_posterior_prior"]
    )
    assert result.measures["nll_importance_weighted"] < -result.measures["elbo"] + 5


def test_the_seed_decides(waves):
    first, again, other = (evaluate(waves, seed=seed).measures for seed in (3, 3, 4))
    assert first == again
    changed = {name for name in first if first[name] != other[name]}
    assert {"reconstruction", "kl_aggregate_mc", "nll_importance_weighted", "separation", "kl_reverse_mc"} <= changed
    assert not changed & {"mse_at_mu", "kl_posterior_prior", "kl_aggregate_jensen_upper_bound", "mig"}


def test_a_run_of_pictures(pictures):
    result = evaluate(pictures, nll_samples=0)
    complete(result.measures, result.reasons)
    assert result.measures["psnr"] > 0
    assert -1 < result.measures["ssim"] < 1
    assert result.reasons["separation"] == "needs batches of 64 rows, there are 24"
    assert result.reasons["nll_importance_weighted"] == "no importance samples were asked for"
    # Standardised inside the model: 144 entries, each divided by the same scale.
    assert result.measures["log_jacobian"] == pytest.approx(-144 * math.log(256 / math.sqrt(12) / 255), rel=0.02)


def test_every_measure_is_defined_once_in_the_group_that_reports_it(waves, pictures, mixed):
    measures = [one for group in MEASURES.values() for one in group]
    assert len({one.name for one in measures}) == len(measures)
    seen = set()
    for run in (waves, pictures, mixed):
        for group, names in evaluate(run).groups.items():
            for name in names:
                (definition,) = defined([name])
                assert definition in MEASURES[group], name
                seen.add(definition)
    assert seen == {one for group, entries in MEASURES.items() for one in entries if group != "training"}


def deterministic_case(n=200, factors=None):
    torch.manual_seed(0)
    model = Model(Mlp(hidden=(8,)), plain_space((6,)), 2, GaussianSettings(), stochastic=False).eval()
    return case_of(model, np.random.default_rng(0).normal(size=(n, 6)), factors=factors)


def test_a_deterministic_encoder_has_no_measure_that_needs_sigma():
    found, groups = measure(deterministic_case())
    complete(found.measures, found.reasons)
    why = "the encoder is deterministic: its posteriors have no sigma"
    nulls = {name for name, reason in found.reasons.items() if reason == why}
    assert nulls == NEED_SIGMA
    kept = {"mse", "active_units", "code_density", "code_coverage", "reconstruction_rise", "path_curvature"}
    assert all(found.measures[name] is not None for name in kept)
    assert found.measures["reconstruction"] == found.measures["reconstruction_at_mu"]
    assert set(groups) >= {"separation", "compactness", "likelihood"}


def test_a_run_with_a_deterministic_encoder(tmp_path):
    run = trained(WAVES, tmp_path / "run", objective="wae_mmd", latent_dim=2, network="mlp:hidden=16")
    result = evaluate(run)
    complete(result.measures, result.reasons)
    assert {name for name in NEED_SIGMA if result.measures[name] is None} == NEED_SIGMA
    assert result.measures["code_coverage"] > 0


def test_a_run_with_a_prior_of_its_own(tmp_path):
    gmvae = "gmvae:clusters=3,w_dim=2,hidden=8,prior_hidden=8"
    run = trained(WAVES, tmp_path / "run", objective=gmvae, latent_dim=2, network="mlp:hidden=16")
    result = evaluate(run)
    complete(result.measures, result.reasons)
    against_normal = {name for name, reason in result.reasons.items() if reason == "the model's prior is not N(0, I)"}
    assert against_normal == NEED_SIGMA_AND_NORMAL_PRIOR | {"code_density", "code_coverage"}
    # Its bound by other means: log p(z|w) as one mixture density, terms written out (section 4 of the specification).
    encoded = encode_run(Run.open(run))
    prior, q = encoded.model.prior, encoded.posterior
    generator = torch.Generator().manual_seed(0)
    x = encoded.read(torch.arange(450))
    bounds = []
    with torch.no_grad():
        q_w = prior.encode_w(x)
        for _ in range(20):
            z = q.mu + q.sigma * torch.randn(q.mu.shape, generator=generator)
            w = q_w.mu + q_w.sigma * torch.randn(q_w.mu.shape, generator=generator)
            mu, sigma = prior.components(w)
            components = Independent(Normal(mu, sigma), 1)
            log_prior = MixtureSameFamily(Categorical(torch.ones(450, 3)), components).log_prob(z)
            log_q = Independent(Normal(q.mu, q.sigma), 1).log_prob(z)
            kl_w = kl_divergence(Normal(q_w.mu, q_w.sigma), Normal(0.0, 1.0)).sum(1)
            bounds.append(float((encoded.model.decode(z).log_prob(x) + log_prior - log_q - kl_w).mean()))
    assert result.measures["elbo"] == pytest.approx(np.mean(bounds), abs=6 * np.std(bounds))


def test_names_are_the_same_for_stochastic_and_deterministic_encoders():
    model = LinearGaussian(x_dim=6, latent_dim=2)
    stochastic, _ = measure(case_of(model, model.draw(200), nll_samples=2))
    assert list(stochastic.measures) == list(measure(deterministic_case())[0].measures)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_rows_give_numbers_or_reasons(n):
    model = LinearGaussian()
    found, _ = measure(case_of(model, model.draw(n), nll_samples=2))
    complete(found.measures, found.reasons)
    assert found.measures["mse"] is not None


def test_labels_in_words_are_taken_as_classes(tmp_path):
    generator = np.random.default_rng(0)
    lines = ["a,b,c,city,price"]
    for _ in range(900):
        a, b, c, price = generator.normal(size=4)
        lines.append(f"{a},{b},{c},{('Bonn', 'Köln')[int(a > 0)]},{price}")
    (tmp_path / "table.csv").write_text("\n".join(lines), encoding="utf-8")
    data = f"{tmp_path / 'table.csv'}:labels=city,price"
    run = trained(data, tmp_path / "run", latent_dim=2, network="mlp:hidden=8", held_out=0.5)
    result = evaluate(run)
    complete(result.measures, result.reasons)
    assert result.measures["dci_informativeness_city"] >= 0
    assert "mse_at_mu_price_quartile_4" in result.measures
    assert not any(name.startswith("mse_at_mu_city") for name in result.measures)


def test_dynamic_binarisation_is_drawn_once_for_all_measures():
    """q(z|x) and log p(x|z) must be of the same x, in whatever order rows are read."""
    levels = np.random.default_rng(0).integers(256, size=(BATCH + 40, 1, 4, 4), dtype=np.uint8)
    rows = binarized(Rows(levels, "dynamic"), seed=3)
    assert set(np.unique(rows.x)) == {0, 1}
    assert rows.x[levels == 255].all()
    assert rows.x.mean() == pytest.approx(levels.mean() / 255, abs=0.02)
    model = Decoder(lambda z: z, (1, 4, 4), 2)
    codes = Posterior(torch.zeros(len(levels), 2), torch.ones(len(levels), 2))
    encoded = dataclasses.replace(case_of(model, levels, codes).encoded, rows=rows)
    whole = torch.cat([x for x, _ in encoded.blocks()])
    order = torch.randperm(len(levels), generator=torch.Generator().manual_seed(0))
    assert torch.equal(encoded.read(order), whole[order])
    plain = Rows(levels, "unit")
    assert binarized(plain, seed=3) is plain


def test_dynamic_binarisation_draws_anew_for_every_block():
    grey = binarized(Rows(np.full((2 * BATCH, 1, 4, 4), 128, np.uint8), "dynamic"), seed=3).x
    assert 0.4 < (grey[:BATCH] == grey[BATCH:]).mean() < 0.6


def test_of_many_rows_the_evaluated_ones_are_spread_over_the_file(tmp_path):
    np.save(tmp_path / "sorted.npy", np.arange(4000, dtype=np.float32).reshape(1000, 4))
    run = trained(tmp_path / "sorted.npy", tmp_path / "run", latent_dim=2, network="mlp:hidden=4", held_out=0.5)
    few, whole = (encode_run(Run.open(run), most=most).rows.x[:, 0] for most in (20, 1000))
    assert len(few) == 20
    assert (few[0], few[-1]) == (whole[0], whole[-1])
    assert np.diff(few).max() < 4000 / 20 * 2


def test_missing_cells_have_no_density(tmp_path):
    """With a column in other units the mean log Jacobian changes by the log of the unit, for each observed cell."""
    x = np.random.default_rng(0).normal(size=(40, 3)).round(3)
    values = []
    for unit in (1, 1000):
        table = x * [1, 1, unit]
        text = [
            ",".join("" if (i % 4 == 0 and j == 2) else str(v) for j, v in enumerate(r)) for i, r in enumerate(table)
        ]
        path = tmp_path / f"table{unit}.csv"
        path.write_text("a,b,c\n" + "\n".join(text) + "\n")
        run = trained(path, tmp_path / f"run{unit}", latent_dim=2, network="mlp:hidden=4", held_out=0.5)
        seen = float(np.mean(~np.isnan(encode_run(Run.open(run)).rows.x[:, 2])))
        assert 0 < seen < 1
        values.append(evaluate(run).measures["log_jacobian"])
    assert values[0] - values[1] == pytest.approx(seen * math.log(1000), rel=1e-4)
