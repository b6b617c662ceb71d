"""The likelihood ``table`` against SciPy's densities, and cells that were not observed."""

import math

import numpy as np
import pytest
import torch
from scipy import special, stats
from tests.spaces.columns_for_tests import mixed_space

from wiseale.likelihoods import TableSettings
from wiseale.networks.mlp import Mlp
from wiseale.networks.model import Model

KINDS = "number,category:3,binary,poisson,negative_binomial,number,category:2"
X_SIGMA, R = [0.3, 1.7], 2.5


def family():
    made = TableSettings(x_sigma_min=1e-6).build(mixed_space(KINDS)).double()
    made.log_x_sigma.data = torch.tensor(X_SIGMA, dtype=torch.double).sub(1e-6).log()
    made.log_dispersion.data = torch.tensor([math.log(R)], dtype=torch.double)
    return made


def rows(n=6, seed=0):
    draws = torch.Generator().manual_seed(seed)
    output = torch.randn(n, 10, dtype=torch.double, generator=draws)
    return output, family()(output).sample(draws).detach()


def expected_log_prob(output, x):
    """Every cell's own density, (n, 7); the output has one entry per column in order, of categories one per level."""
    o, p1, p6 = output.numpy(), special.softmax(output[:, 1:4], 1), special.softmax(output[:, 8:10], 1)
    x, n = x.numpy(), np.arange(len(x))
    mean = np.exp(o[:, 6])
    return np.stack(
        [
            stats.norm.logpdf(x[:, 0], o[:, 0], X_SIGMA[0]),
            np.log(np.asarray(p1)[n, x[:, 1].astype(int)]),
            stats.bernoulli.logpmf(x[:, 2], special.expit(o[:, 4])),
            stats.poisson.logpmf(x[:, 3], np.exp(o[:, 5])),
            stats.nbinom.logpmf(x[:, 4], R, R / (R + mean)),
            stats.norm.logpdf(x[:, 5], o[:, 7], X_SIGMA[1]),
            np.log(np.asarray(p6)[n, x[:, 6].astype(int)]),
        ],
        1,
    )


def test_log_prob_is_the_sum_of_scipys_densities():
    output, x = rows(200)
    table = family()(output)
    np.testing.assert_allclose(table.cell_log_prob(x).detach(), expected_log_prob(output, x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(table.log_prob(x).detach(), expected_log_prob(output, x).sum(1), rtol=1e-9)


def test_samples_have_the_means_and_level_frequencies_of_the_distribution():
    output = rows(1)[0].expand(20_000, -1)
    table = family()(output)
    x, expected = table.sample(torch.Generator().manual_seed(1)).detach(), table.expected[0].detach()
    for column, entry in ((0, 0), (2, 4), (3, 5), (4, 6), (5, 7)):
        error = x[:, column].std() / len(x) ** 0.5
        assert (x[:, column].mean() - expected[entry]).abs() < 4.5 * error
    found = np.bincount(x[:, 1].long(), minlength=3)
    assert stats.chisquare(found, expected[1:4].numpy() * len(x)).pvalue > 1e-4


def test_a_missing_cell_changes_neither_the_loss_nor_the_gradient():
    output, x = rows(6)
    for column in range(7):
        holed = x.clone()
        holed[2, column] = math.nan
        gradients = []
        for cells, weight in ((holed, 1.0), (x, 0.0)):  # the cell left out, and its term taken out by hand
            entries, made = output.clone().requires_grad_(), family()
            terms = made(entries).cell_log_prob(cells)
            keep = torch.ones_like(terms)
            keep[2, column] = weight
            loss = (terms * keep).sum()
            loss.backward()
            gradients.append((loss.item(), entries.grad, made.log_x_sigma.grad, made.log_dispersion.grad))
        for left, right in zip(*gradients, strict=True):
            np.testing.assert_array_equal(left, right)


def test_gradients_are_right():
    output, x = rows(3)
    x[0, 1] = x[1, 4] = math.nan
    made = family()
    assert torch.autograd.gradcheck(lambda o: made(o).log_prob(x), output.requires_grad_())


def test_what_a_hidden_cell_holds_cannot_matter_to_the_encoder():
    torch.manual_seed(0)
    model = Model(Mlp(), mixed_space(KINDS), 2, TableSettings())
    x = rows(6)[1].float()
    x[:, 3] = math.nan
    q = model.encode(x)
    assert bool(q.mu.isfinite().all())
    assert not torch.equal(q.mu, model.encode(x.nan_to_num(0.0)).mu)  # a zero was observed there, nothing was here


def test_errors_of_cells_and_constant_memory_of_missing_ones():
    output, x = rows(4)
    x[1, 6] = math.nan
    errors = family()(output).errors(x).detach().numpy()
    assert np.isnan(errors[1, 6])
    assert np.isfinite(np.delete(errors, 13)).all()
    np.testing.assert_allclose(errors[:, 0], (x[:, 0] - output[:, 0]).square())
    np.testing.assert_allclose(errors[:, 2], 1 - np.exp(expected_log_prob(output, x.nan_to_num(0))[:, 2]))


@pytest.mark.parametrize("rate", [10, 1e4, 1e7])
@pytest.mark.parametrize("kind", ["poisson", "negative_binomial"])
def test_large_counts_in_float32_are_those_of_scipy(kind, rate):
    family = TableSettings().build(mixed_space(kind))
    counts = np.floor(rate + np.sqrt(rate) * np.array([-3.0, 0.0, 1.0, 3.0]))
    log_rate = torch.full((4, 1), math.log(rate), dtype=torch.float32)
    mean = log_rate.double().exp().numpy()[:, 0]
    r = float(family.dispersion.detach().mean()) if kind == "negative_binomial" else 0.0
    exact = stats.nbinom.logpmf(counts, r, r / (r + mean)) if r else stats.poisson.logpmf(counts, mean)
    found = family(log_rate).log_prob(torch.tensor(counts, dtype=torch.float32)[:, None])
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.detach().numpy(), exact, rtol=1e-5)


def test_a_negative_binomial_reaches_the_poisson():
    family = TableSettings().build(mixed_space("negative_binomial"))
    family.log_dispersion.data.fill_(50.0)
    log_rate = torch.full((3, 1), math.log(1000.0), dtype=torch.float64)
    counts = np.array([900.0, 1000.0, 1100.0])
    found = family(log_rate).log_prob(torch.from_numpy(counts)[:, None])
    np.testing.assert_allclose(found.detach().numpy(), stats.poisson.logpmf(counts, 1000), atol=1e-3)


@pytest.mark.parametrize("kind", ["poisson", "negative_binomial"])
def test_absurd_rates_stay_finite(kind):
    """exp 1000 is no number; the largest rate is beyond any table, and the smallest is a rate still."""
    made = TableSettings().build(mixed_space(kind))
    for output in (1000.0, -1000.0):
        entries = torch.full((3, 1), output, requires_grad=True)
        likelihood = made(entries)
        log_p = likelihood.log_prob(torch.tensor([[0.0], [1.0], [1e6]]))
        log_p.sum().backward()
        assert all(bool(value.isfinite().all()) for value in (log_p, likelihood.mean, entries.grad))
        assert bool(likelihood.sample(torch.Generator().manual_seed(0)).isfinite().all())
    assert float(made(torch.tensor([[math.log(1e9)]])).mean.detach()) == pytest.approx(1e9, rel=1e-4)


@pytest.mark.parametrize("log_dispersion", [-1e3, 1e3])
def test_absurd_dispersions_stay_finite(log_dispersion):
    made = TableSettings().build(mixed_space("negative_binomial"))
    made.log_dispersion.data.fill_(log_dispersion)
    likelihood = made(torch.full((4, 1), 2.0))
    log_p = likelihood.log_prob(torch.tensor([[0.0], [1.0], [7.0], [1e4]]))
    assert bool(log_p.isfinite().all())
    assert bool(likelihood.sample(torch.Generator().manual_seed(0)).isfinite().all())


def test_the_width_of_a_number_has_a_floor():
    made = TableSettings(x_sigma_min=0.02).build(mixed_space("number"))
    made.log_x_sigma.data.fill_(-1e3)
    assert made.x_sigma.tolist() == pytest.approx([0.02])
    at_mean = made(torch.zeros(1, 1)).log_prob(torch.zeros(1, 1))
    assert at_mean.item() == pytest.approx(stats.norm.logpdf(0, 0, 0.02), rel=1e-5)


def test_nothing_is_impossible_at_the_start():
    """Of 100 rows: a column that is always 0, a level that nobody has, a count that is always 0, and empty cells."""
    n = 100
    space = mixed_space("binary,category:3,poisson,poisson")
    made = TableSettings().build(space)
    draws = torch.Generator().manual_seed(0)
    z = torch.randn(n, 2, dtype=torch.double, generator=draws)
    x = torch.stack([torch.zeros(n), (z[:, 0] > 0).float(), torch.zeros(n), torch.full((n,), math.nan)], 1).double()
    share = float(x[:, 1].mean())
    mean = torch.tensor([0.0, 1 - share, share, 0.0, 0.0, 0.0], dtype=torch.double)
    weights, bias = made.start_decoder(mean, torch.zeros(6, 2, dtype=torch.double), x, z)
    assert bool(weights.isfinite().all())
    p = made(bias[None].float()).expected[0]
    assert 1 / (4 * n) < p[3] < 4 / n  # as if half a row had it
    assert 1 / (2 * n) < p[0] < 2 / n
    assert 0 < p[4] < 0.01
    assert p[5] == pytest.approx(1.0)  # of a count that nobody saw nothing is known


@pytest.mark.parametrize("kind", ["binary", "category:2"])
def test_links_start_at_the_scale_that_suits_the_rows(kind):
    """Loadings too long by far: the start must not be worse than columns that ignore the code."""
    made = TableSettings().build(mixed_space(kind))
    draws = torch.Generator().manual_seed(0)
    z = torch.randn(400, 1, dtype=torch.double, generator=draws)
    x = torch.bernoulli(torch.sigmoid(0.7 * z), generator=draws)
    mean = x.mean(0) if kind == "binary" else torch.cat([1 - x.mean(0), x.mean(0)])
    loadings = torch.ones(1, 1).double() if kind == "binary" else torch.tensor([[-1.0], [1.0]]).double()
    weights, bias = made.start_decoder(mean, loadings, x, z)
    exact = made.double()
    fits = [float(exact(z @ part.T + bias).log_prob(x).mean()) for part in (weights, 0 * weights)]
    assert fits[0] > fits[1] + 0.03  # the best scale of all gains 0.05 nats
