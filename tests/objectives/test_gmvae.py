"""GMVAE's terms against torch.distributions and Monte Carlo, its bound against the evidence, its prior in the model."""

import math

import pytest
import torch
from tests.cli.commands import run
from tests.spaces.columns_for_tests import mixed_space
from torch import distributions as D

from wiseale.likelihoods import Gaussian, TableSettings
from wiseale.models.model_file import ModelConfig, load_model, save_model
from wiseale.networks.model import seeded
from wiseale.objectives import Batch, make_objective
from wiseale.posterior import Posterior
from wiseale.priors import OwnPrior
from wiseale.spaces import plain_space

SPEC = "gmvae:clusters=4,w_dim=2,hidden=8,prior_hidden=8"
M, D_Z, FEATURES = 6, 3, 5


def module(spec=SPEC, d_z=D_Z, features=FEATURES, seed=0):
    with seeded(seed):
        built = make_objective(spec).build(plain_space((features,)), d_z).double()
        # Fresh components all but coincide: set them apart, or every answer would be right for any clusters.
        torch.nn.init.normal_(built.to_components[-1].bias, std=1.5)
    return built


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def batch(m=M, d_z=D_Z, features=FEATURES, seed=1):
    g = generator(seed)
    x, x_hat = (torch.randn(m, features, generator=g, dtype=torch.float64) for _ in range(2))
    mu, raw, epsilon = (torch.randn(m, d_z, generator=g, dtype=torch.float64) for _ in range(3))
    q = Posterior(mu, (0.3 * raw).exp())
    return x, q, q.sample(epsilon), Gaussian(x_hat, 0.7)


def mixture(gmvae, w):
    """p(z|w) as torch has it."""
    mu, sigma = gmvae.components(w)
    components = D.Independent(D.Normal(mu, sigma), 1)
    return D.MixtureSameFamily(D.Categorical(logits=torch.zeros(mu.shape[:2], dtype=mu.dtype)), components)


def drawn_w(gmvae, x, seed):
    """The w a call with this generator uses."""
    q_w = gmvae.encode_w(x)
    return q_w.sample(torch.randn(len(x), q_w.latent_dim, generator=generator(seed)).double())


@pytest.mark.parametrize("clusters", [1, 2, 7])
def test_conditional_and_cluster_terms_add_up_to_the_mixtures_density(clusters):
    """Σ_k r_k[log q(z|x) − log p(z|w,k)] + Σ_k r_k log(K·r_k) = log q(z|x) − log Σ_k p(z|w,k)/K."""
    gmvae = module(f"gmvae:clusters={clusters},w_dim=2,hidden=8,prior_hidden=8")
    x, q, z, likelihood = batch()
    details = gmvae(Batch(x, q, z, likelihood, generator=generator(5))).details
    log_prior = mixture(gmvae, drawn_w(gmvae, x, 5)).log_prob(z)
    expected = (D.Independent(D.Normal(q.mu, q.sigma), 1).log_prob(z) - log_prior).mean()
    torch.testing.assert_close(details["conditional_prior"] + details["z_prior"], expected)
    if clusters > 1:
        assert 0.01 < details["z_prior"].item() < math.log(clusters)


def test_prior_and_elbo_are_their_parts():
    arguments = batch()
    terms = module()(Batch(*arguments, generator=generator()))
    parts = sum(terms.details[name] for name in ("conditional_prior", "w_prior", "z_prior"))
    torch.testing.assert_close(terms.prior, parts)
    torch.testing.assert_close(terms.elbo, -terms.loss)
    assert terms.weight == 1.0


def test_the_floor_holds_for_each_observation_and_stops_its_gradient():
    arguments = batch()
    free = module()(Batch(*arguments, generator=generator()))
    above_all = module(SPEC + ",minimum_z_prior=9")(Batch(*arguments, generator=generator()))
    torch.testing.assert_close(above_all.prior, free.prior - free.details["z_prior"] + 9)
    torch.testing.assert_close(above_all.elbo, free.elbo)
    gmvae = module(SPEC + ",minimum_z_prior=9")
    terms = gmvae(Batch(*arguments, generator=generator()))
    weight = gmvae.to_components[-1].weight
    whole, conditional = (
        torch.autograd.grad(value, weight, retain_graph=True)[0]
        for value in (terms.prior - terms.details["w_prior"], terms.details["conditional_prior"])
    )
    torch.testing.assert_close(whole, conditional)


def test_w_prior_against_monte_carlo():
    gmvae = module()
    x, *rest = batch()
    q_w = gmvae.encode_w(x).detach()
    reference, standard = D.Normal(q_w.mu, q_w.sigma), D.Normal(0.0, 1.0)
    w = q_w.mu + q_w.sigma * torch.randn(20_000, *q_w.mu.shape, generator=generator(), dtype=torch.float64)
    draws = (reference.log_prob(w) - standard.log_prob(w)).sum(-1).mean(1)
    found = gmvae(Batch(x, *rest, generator=generator())).details["w_prior"].item()
    assert abs(found - float(draws.mean())) < 4 * float(draws.std()) / math.sqrt(len(draws))


def test_responsibilities_are_the_clusters_posterior():
    """Ancestral draws (w, y, z): among those given a share near r of cluster k, a part r came from it."""
    gmvae = module(d_z=1)
    g = generator(3)
    n = 40_000
    with torch.no_grad():
        w = torch.randn(n, 2, generator=g, dtype=torch.float64)
        mu, sigma = gmvae.components(w)
        y = torch.randint(4, (n,), generator=g)
        rows = torch.arange(n)
        z = mu[rows, y] + sigma[rows, y] * torch.randn(n, 1, generator=g, dtype=torch.float64)
        r = gmvae.log_components(z, w).softmax(1)
    for k in range(4):
        for low in (0.0, 0.2, 0.4, 0.6, 0.8):
            inside = (r[:, k] >= low) & (r[:, k] < low + 0.2)
            if int(inside.sum()) < 200:
                continue
            hits = (y[inside] == k).double() - r[inside, k]
            assert abs(float(hits.mean())) < 4.5 * float(hits.std()) / math.sqrt(len(hits))


def test_ancestral_samples_follow_the_priors_density():
    """Histogram of sample_prior in 1-D against E_w[p(z|w)] from torch's mixture at independent draws of w."""
    gmvae = module(d_z=1)
    n = 60_000
    z = gmvae.sample_prior(n, generator(0))
    assert z.shape == (n, 1)
    assert torch.equal(z, gmvae.sample_prior(n, generator(0)))
    with torch.no_grad():
        w = torch.randn(n, 2, generator=generator(1), dtype=torch.float64)
        mu, sigma = gmvae.components(w)
        for edge in (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0):
            below = D.Normal(mu, sigma).cdf(torch.tensor(edge, dtype=torch.float64)).mean((1, 2))
            found = (z[:, 0] < edge).double()
            error = math.sqrt((float(below.var()) + float(found.var())) / n)
            assert abs(float(found.mean() - below.mean())) < 4.5 * error


def test_its_elbo_is_below_the_evidence_and_importance_weights_recover_it():
    """log p(x) by decoding ancestral samples; the exponential of a one-draw bound is an importance weight of p(x)."""
    gmvae = module(d_z=1, features=1)
    n = 200_000
    x = torch.tensor([[0.6]], dtype=torch.float64)
    with torch.no_grad():
        z_p = gmvae.sample_prior(n, generator(0))
        weights = Gaussian(1.5 * z_p, 0.8).log_prob(x.expand(n, 1)).exp()
        evidence, evidence_error = float(weights.mean()), float(weights.std()) / math.sqrt(n)
        q = Posterior(torch.full((n, 1), 0.3, dtype=torch.float64), torch.full((n, 1), 0.8, dtype=torch.float64))
        z = q.sample(torch.randn(n, 1, generator=generator(1), dtype=torch.float64))
        rows = x.expand(n, 1)
        terms = gmvae(Batch(rows, q, z, Gaussian(1.5 * z, 0.8), generator=generator(2)))
        w = drawn_w(gmvae, rows, 2)
        log_weight = (
            -terms.reconstruction
            + mixture(gmvae, w).log_prob(z)
            - q.log_prob(z)
            + D.Normal(0.0, 1.0).log_prob(w).sum(1)
            - gmvae.encode_w(rows).log_prob(w)
        )
    importance = log_weight.exp()
    error = math.hypot(evidence_error, float(importance.std()) / math.sqrt(n))
    assert abs(float(importance.mean()) - evidence) < 4.5 * error
    # The module's ELBO is the mean of the same log weights, but for the w-prior taken in closed form.
    elbo = float(terms.elbo)
    assert elbo == pytest.approx(float(log_weight.mean()), abs=4.5 * float(log_weight.std()) / math.sqrt(n))
    assert elbo < math.log(evidence)


def test_the_order_of_the_batch_does_not_matter_where_each_row_keeps_its_noise(monkeypatch):
    gmvae = module()
    x, q, z, likelihood = batch()
    noise = torch.randn(M, 2, generator=generator(8))
    order = torch.tensor([4, 0, 5, 2, 1, 3])
    losses = []
    for rows in (torch.arange(M), order):
        monkeypatch.setattr("wiseale.objectives.gmvae._normal", lambda shape, generator, rows=rows: noise[rows])
        losses.append(gmvae(Batch(x[rows], q[rows], z[rows], Gaussian(likelihood.mean[rows], 0.7))).loss)
    torch.testing.assert_close(*losses)


def test_gradients_reach_every_weight():
    gmvae = module()
    gmvae(Batch(*batch(), generator=generator())).loss.backward()
    assert all(float(parameter.grad.abs().sum()) > 0 for parameter in gmvae.parameters())


def test_far_codes_stay_finite_in_float32():
    gmvae = module().float()
    x = torch.randn(4, FEATURES, generator=generator())
    mu = torch.tensor([-1e4, -3.0, 3.0, 1e4])[:, None].expand(4, D_Z).clone().requires_grad_()
    q = Posterior(mu, torch.full_like(mu, 1e-3))
    terms = gmvae(Batch(x, q, q.sample(torch.ones(4, D_Z)), Gaussian(torch.zeros_like(x), 1.0), generator=generator()))
    terms.loss.backward()
    assert bool(terms.loss.isfinite())
    assert all(bool(p.grad.isfinite().all()) for p in (mu, *gmvae.parameters()))


MADE_OF = ModelConfig("mlp:hidden=4", "gaussian", SPEC, plain_space((FEATURES,)), D_Z)


def test_the_prior_travels_with_the_model(tmp_path):
    model = MADE_OF.build()
    assert model.prior is None
    gmvae = module().float()
    assert isinstance(gmvae, OwnPrior)
    model.prior = gmvae
    expected = model.sample_prior(9, generator(0))
    assert torch.equal(expected, gmvae.sample_prior(9, generator(0)))
    save_model(tmp_path / "model", model, MADE_OF)
    loaded, _ = load_model(tmp_path / "model")
    assert torch.equal(loaded.sample_prior(9, generator(0)), expected)
    save_model(tmp_path / "again", loaded, MADE_OF)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("model", "again")]
    assert weights[0] == weights[1]


def test_models_without_a_prior_of_their_own_sample_a_standard_normal(tmp_path):
    model_config = ModelConfig("mlp:hidden=4", "gaussian", "wise_ale", plain_space((FEATURES,)), D_Z)
    save_model(tmp_path / "model", model_config.build(), model_config)
    loaded, _ = load_model(tmp_path / "model")
    assert loaded.prior is None
    assert torch.equal(loaded.sample_prior(9, generator(0)), torch.randn(9, D_Z, generator=generator(0)))


def test_cells_of_a_table_reach_q_of_w_as_features():
    """Levels have no order, counts are taken as log(1 + x), and a missing cell is not a 0."""
    space = mixed_space("number,poisson,category:3")
    x = torch.tensor([[0.5, 400.0, 0.0], [-0.5, 600.0, 2.0], [math.nan, 500.0, 1.0], [0.0, 500.0, 1.0]])
    with seeded(0):
        gmvae = make_objective(SPEC).build(space, D_Z)
    gmvae.features.fit(x)
    q = Posterior(torch.zeros(4, D_Z), torch.ones(4, D_Z))
    likelihood = TableSettings().build(space)(torch.zeros(4, 5))
    details = gmvae(Batch(x, q, q.mu, likelihood, generator=generator())).details
    assert details["w_prior"] < 5  # with raw cells: hundreds of nats
    missing, zero = gmvae.encode_w(x).mu[2:]
    assert not torch.equal(missing, zero)


def test_a_table_is_trained_and_read_back(tmp_path, capsys):
    rows = "".join(f"{i % 7},{50 * (i % 9)},{'abc'[i % 3]}\n" for i in range(60))
    (tmp_path / "x.csv").write_text(f"size,visits,kind\n{rows},300,a\n")
    settings = ("--objective", SPEC, "--network", "mlp:hidden=8", "--max-epochs", 2, "--latent-dim", 2, "--no-figures")
    command = ("train", f"{tmp_path / 'x.csv'}", "--columns", "visits:count", *settings, "--out", tmp_path / "run")
    code, _, errors = run(capsys, *command)
    assert code == 0, errors
    model, model_config = load_model(tmp_path / "run" / "model")
    assert model.space.seen_shape == (8,)
    assert isinstance(model.prior, OwnPrior)
    assert model_config.space.missing
    assert run(capsys, "evaluate", tmp_path / "run", "--no-figures")[0] == 0
