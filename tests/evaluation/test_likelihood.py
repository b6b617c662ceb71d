import math

import pytest
import torch
from scipy import stats
from tests.evaluation.models import LinearGaussian, case_of, ignore

from wiseale.divergences import kl_posterior_prior
from wiseale.evaluation.encoded import BATCH
from wiseale.evaluation.prior_match import NLL_ROWS, elbo, likelihood


def exact_nll(model, x):
    """−log p(x) of every row, by scipy."""
    return -stats.multivariate_normal(model.b.double().numpy(), model.covariance()).logpdf(x.double().numpy())


def estimate(model, x, samples):
    return likelihood(case_of(model, x, nll_samples=samples), ignore).measures


@pytest.mark.parametrize("samples", [1, 2, 7])
def test_with_the_exact_posterior_any_number_of_samples_gives_the_exact_likelihood(samples):
    model = LinearGaussian(x_dim=8, latent_dim=3)
    x = model.draw(300)
    exact = exact_nll(model, x)
    found = estimate(model, x, samples)
    assert found["nll_importance_weighted"] == pytest.approx(exact.mean(), abs=1e-4)
    assert found["nll_importance_weighted_standard_error"] == pytest.approx(
        exact.std(ddof=1) / math.sqrt(300), rel=1e-3
    )
    assert (found["nll_samples"], found["nll_rows"]) == (samples, 300)


def test_with_another_posterior_it_falls_to_the_exact_likelihood_as_samples_are_added():
    model = LinearGaussian(shift=0.2, widen=1.3)
    x = model.draw(400)
    exact = exact_nll(model, x).mean()
    above = [estimate(model, x, samples)["nll_importance_weighted"] - exact for samples in (1, 8, 64, 1000)]
    assert above[0] > 0.3
    assert above[0] > above[1] > above[2]
    assert above[2] < 0.02
    assert abs(above[3]) < 0.003


def test_the_expectation_with_one_sample_is_the_negative_elbo():
    model = LinearGaussian(shift=0.2, widen=1.3)
    x = model.draw(1000)
    case = case_of(model, x, nll_samples=1)
    q = case.encoded.posterior
    # E_q ½‖x − Wz − b‖²/x_sigma² in closed form, plus the constant and the KL.
    residual = (x - model.decode(q.mu).mean).square().sum(1) + (q.sigma.square() * model.w.square().sum(0)).sum(1)
    constant = 6 * (math.log(model.x_sigma) + 0.5 * math.log(2 * math.pi))
    bound = (residual / (2 * model.x_sigma**2) + constant + kl_posterior_prior(q)).mean()
    found = likelihood(case, ignore).measures["nll_importance_weighted"]
    assert found == pytest.approx(float(bound), abs=0.15)
    assert -elbo(case, ignore).measures["elbo"] == pytest.approx(float(bound), abs=0.15)


def test_the_decoder_sees_bounded_blocks_and_at_most_a_thousand_rows():
    model = LinearGaussian()
    found = estimate(model, model.draw(NLL_ROWS + 300), 3)
    assert found["nll_rows"] == NLL_ROWS
    assert model.largest_block <= BATCH


def test_small_widths_far_from_the_origin_lose_nothing():
    # p(z|x) is as narrow as 1e-3 here: standardising z in float32 would cost whole nats.
    model = LinearGaussian(x_dim=4, latent_dim=2, x_sigma=1e-3)
    x = model.draw(200) + 30 * model.w.sum(1)
    exact = exact_nll(model, x)
    assert (x - model.b).abs().max() > 10
    # float32 resolves x only to 1e-6 of its size, so of x/x_sigma to about 0.005.
    assert estimate(model, x, 4)["nll_importance_weighted"] == pytest.approx(exact.mean(), abs=0.1)


def test_none_asked_for():
    found = likelihood(case_of(LinearGaussian(), torch.zeros(3, 6), nll_samples=0), ignore)
    assert set(found.measures.values()) == {None}
    assert set(found.reasons) == set(found.measures)
