import csv
import json
import math
import re
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pytest
import torch
from docs.pages.bounds.__main__ import Plan, write
from docs.pages.bounds.error import (
    Effort,
    error_row,
    kl_second_jensen_upper_bound,
    random_posterior,
    unit_variance,
)
from docs.pages.bounds.limits import bias_rows, collapse_rows, saturation_rows, tiling
from docs.pages.bounds.reference import reference
from PIL import Image
from scipy import optimize, special
from tests.oracles import aggregate_kl_by_quadrature

from wiseale.divergences import kl_aggregate_mc, kl_aggregate_upper_bound, log_overlap
from wiseale.errors import RunError
from wiseale.paper import toy
from wiseale.paper.page import toy_section
from wiseale.paper.toy import judge_c4, judge_c8
from wiseale.paper.toy_values import (
    kl_by_quadrature,
    minima,
    negative_entropy,
    objective_optimum,
    optimum,
    two_gaussians_row,
)
from wiseale.posterior import Posterior
from wiseale.report.document import Picture

HALF_ONE_MINUS_LN2 = 0.5 * (1 - math.log(2))
TINY = toy.Effort((2, 4), 1, 60, (4,), (1.0, 0.01))
TINY_ERRORS = Plan(Effort(7, 1, 4, 8, (1, 2, 8)), {1: 16, 2: 4}, 3)


def noise(seed=0):
    return torch.Generator().manual_seed(seed)


def product_grid(axes):
    """Posteriors at every combination of 1-D posteriors (mu, sigma): the mixture is a product, so its KLs add."""
    mu = torch.cartesian_prod(*(torch.tensor(mu, dtype=torch.float64) for mu, _ in axes))
    sigma = torch.cartesian_prod(*(torch.tensor(sigma, dtype=torch.float64) for _, sigma in axes))
    return Posterior(mu, sigma), sum(aggregate_kl_by_quadrature(mu, sigma) for mu, sigma in axes)


AXES = [([-1.2, 0.1, 0.9], [0.3, 0.7, 0.4]), ([-0.5, 0.8], [0.2, 0.9]), ([-2.0, 1.0], [1.1, 0.15])]


# What the estimates are measured against.


@pytest.mark.parametrize(("m", "ratio"), [(2, 0.3), (2, 7.0), (16, 3.0), (24, 12.0)])
def test_grid_agrees_with_adaptive_quadrature(m, ratio):
    q = random_posterior(m, 1, *unit_variance(ratio), noise())
    expected = aggregate_kl_by_quadrature(q.mu[:, 0].numpy(), q.sigma[:, 0].numpy())
    assert kl_by_quadrature(q) == pytest.approx(expected, abs=1e-9)


def test_grid_in_two_dimensions_adds_up_over_independent_axes():
    q, expected = product_grid(AXES[:2])
    assert kl_by_quadrature(q) == pytest.approx(expected, abs=1e-7)


def test_grid_refuses_three_dimensions():
    with pytest.raises(ValueError, match="d_z ≤ 2, got 3"):
        negative_entropy(Posterior(torch.zeros(1, 3), torch.ones(1, 3)))


def test_reference_by_draws_is_unbiased_and_its_standard_error_is_honest():
    q, expected = product_grid(AXES)
    found = [reference(q, 10, noise(seed)) for seed in range(200)]
    errors = np.array([one.kl - expected for one in found])
    assert abs(errors.mean()) < 4 * errors.std() / math.sqrt(len(errors))
    claimed = math.sqrt(np.mean([one.standard_error**2 for one in found]))
    assert claimed == pytest.approx(errors.std(), rel=0.2)  # the spread of 200 values is known to 5 %
    assert all(one.controlled_standard_error < one.mc_standard_error for one in found)


def test_mc_standard_error_is_the_spread_of_kl_aggregate_mc():
    mu, sigma = AXES[0]
    q = Posterior(torch.tensor(mu, dtype=torch.float64)[:, None], torch.tensor(sigma, dtype=torch.float64)[:, None])
    generator = noise(1)
    draws = np.array([float(kl_aggregate_mc(q, generator=generator)) for _ in range(2000)])
    claimed = reference(q, 4000, noise(2)).mc_standard_error
    assert claimed == pytest.approx(draws.std(), rel=0.08)
    exact = aggregate_kl_by_quadrature(mu, sigma)
    assert abs(draws.mean() - exact) < 4 * claimed / math.sqrt(len(draws))


def test_standard_errors_of_a_single_posterior_in_closed_form():
    # log q − log p at z = mu + σε is ½(σ² − 1)ε² + muσε + const; the control takes all of it away.
    mu, sigma = 0.7, 0.4
    q = Posterior(torch.full((1, 1), mu, dtype=torch.float64), torch.full((1, 1), sigma, dtype=torch.float64))
    found = reference(q, 200_000, noise())
    expected = math.sqrt(0.5 * (sigma**2 - 1) ** 2 + (mu * sigma) ** 2)
    assert found.mc_standard_error == pytest.approx(expected, rel=0.02)
    assert found.controlled_standard_error < 1e-12


# The paper's toy.


def test_aevb_is_smallest_at_sigma_one_and_half_a_nat():
    aevb = next(row for row in minima() if row.quantity == "aevb")
    assert aevb.minimum == pytest.approx(0.5, abs=1e-12)
    assert aevb.sigma == pytest.approx(1, abs=1e-6)


def test_the_papers_bound_is_smallest_where_its_derivative_vanishes():
    def bound(s):
        overlap = 0.5 * (1 + math.exp(-1 / s**2)) / math.sqrt(4 * math.pi * s**2)
        return math.log(overlap) + 0.5 * (1 + s**2 + math.log(2 * math.pi))

    def slope(s):
        return s - 1 / s + 2 / s**3 * special.expit(-1 / s**2)

    root = optimize.brentq(slope, 0.5, 0.95)
    jensen = next(row for row in minima() if row.quantity == "jensen")
    assert jensen.sigma == pytest.approx(root, abs=1e-6)
    assert jensen.minimum == pytest.approx(bound(root), abs=1e-12)
    assert round(jensen.minimum, 3) == 0.184
    for end in (jensen.under_aevb_from, jensen.under_aevb_to):
        assert bound(end) == pytest.approx(0.5, abs=1e-5)
    for end in (jensen.low_from, jensen.low_to):
        assert bound(end) == pytest.approx(bound(root) + 0.1, abs=1e-5)


def test_information_is_between_zero_and_log_two():
    rows = [two_gaussians_row(sigma) for sigma in (0.05, 0.3, 1.0, 5.0)]
    information = [row.information for row in rows]
    assert information == sorted(information, reverse=True)
    assert information[0] == pytest.approx(math.log(2), abs=1e-9)
    assert 0 < information[-1] < 0.03


# Claim C8.


@pytest.mark.parametrize(("m", "published"), [(2, 0.118), (4, 0.086), (16, 0.032)])
def test_smallest_bound_in_one_dimension(m, published):
    row = optimum(1, m, starts=2, iterations=200, seed=0)
    assert row.bound == pytest.approx(published, abs=6e-4)
    assert 0 < row.exact < row.bound <= row.worst_bound


def test_optimum_of_two_posteriors_against_another_optimiser():
    def bound(parameters):
        mu, s = parameters
        overlap = 0.5 * (1 + math.exp(-(mu**2) / s**2)) / math.sqrt(4 * math.pi * s**2)
        return math.log(overlap) + 0.5 * (mu**2 + s**2 + math.log(2 * math.pi))

    best = optimize.minimize(bound, (0.5, 0.5), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14})
    mu, s = best.x
    one, two = (optimum(d, 2, starts=2, iterations=200, seed=1) for d in (1, 2))
    assert one.bound == pytest.approx(best.fun, abs=1e-9)
    assert one.exact == pytest.approx(aggregate_kl_by_quadrature([-mu, mu], [s, s]), abs=1e-6)
    assert two.bound == pytest.approx(best.fun + HALF_ONE_MINUS_LN2, abs=1e-9)  # the second axis stays collapsed


def test_objective_optimum_of_codes_far_apart_is_aevbs():
    row = objective_optimum(8, 0.01, iterations=100)
    assert row.gap == pytest.approx(HALF_ONE_MINUS_LN2, abs=1e-6)
    assert row.sigma == pytest.approx(0.01 / math.sqrt(1 + 0.01**2), rel=1e-5)
    assert row.apart == pytest.approx(1, abs=1e-6)


def test_objective_optimum_without_reconstruction_is_the_bounds():
    free = objective_optimum(4, 1e3, iterations=200)
    assert free.bound == pytest.approx(0.0862, abs=2e-4)


# Limits.


def test_collapse_value_is_per_dimension():
    for row in collapse_rows((1, 5, 64)):
        assert row.jensen == pytest.approx(HALF_ONE_MINUS_LN2 * row.latent_dim, rel=1e-12)
        assert row.bhattacharyya == pytest.approx(0, abs=1e-12)


def test_saving_saturates_at_log_m():
    for row in saturation_rows((1, 3, 64), (2, 16), seed=0):
        assert [row.exact, row.bhattacharyya] == pytest.approx([math.log(row.batch_size)] * 2, abs=1e-9)
        assert row.jensen == pytest.approx(math.log(row.batch_size) - HALF_ONE_MINUS_LN2 * row.latent_dim, abs=1e-9)


def test_tiling_averages_to_the_prior():
    q = tiling(400, 1, 0.3)
    assert float(q.mu.var() + 0.09) == pytest.approx(1, abs=0.02)
    assert 0 < kl_by_quadrature(q) < 1e-3
    assert len(tiling(7, 2, 0.3)) == 49


def test_batch_bias_against_every_batch_of_a_small_dataset():
    dataset = tiling(5, 1, 0.4)
    mu, sigma = dataset.mu[:, 0].numpy(), dataset.sigma[:, 0].numpy()
    whole = aggregate_kl_by_quadrature(mu, sigma)
    for row in bias_rows(5, 1, 0.4, (1, 2, 5), batches=400, seed=0):
        batches = [list(some) for some in combinations(range(5), row.batch_size)]
        expected = np.mean([aggregate_kl_by_quadrature(mu[some], sigma[some]) for some in batches]) - whole
        assert abs(row.exact - expected) < 4 * row.exact_standard_error + 1e-9
        assert row.floor - 1e-9 <= expected <= row.ceiling + 1e-9


# Errors for random mixtures.


def test_second_jensen_step_is_one_log_over_all_pairs_and_looser():
    q = random_posterior(6, 2, 1.0, 0.3, noise())
    mean_overlap = float(log_overlap(q, q).exp().mean())
    cross_entropy = float(0.5 * (q.mu**2 + q.sigma**2 + math.log(2 * math.pi)).sum(1).mean())
    assert float(kl_second_jensen_upper_bound(q)) == pytest.approx(math.log(mean_overlap) + cross_entropy, abs=1e-12)
    assert float(kl_second_jensen_upper_bound(q)) > float(kl_aggregate_upper_bound(q))


@pytest.mark.parametrize("latent_dim", [1, 2, 6])
@pytest.mark.parametrize("ratio", [0.2, 1.0, 4.0])
def test_errors_have_the_right_sign_and_order(latent_dim, ratio):
    row = error_row("separation", latent_dim, 8, *unit_variance(ratio), Effort(1, 3, 200, 8), seed=0)
    slack = 4 * row.exact_standard_error + 1e-9
    assert row.pairwise_kl <= slack
    assert -slack <= row.tightest <= min(row.jensen, row.bhattacharyya)
    assert row.jensen <= row.second_jensen + 1e-12
    assert row.bhattacharyya <= row.mean_aevb + 1e-12
    assert row.mean_aevb <= math.log(8) + slack  # the mutual information of 8 posteriors and z


def test_errors_depend_on_separation_over_sigma_alone():
    small, large = (error_row("sigma", 1, 8, c, 0.3 * c, Effort(1, 2, 4, 8), seed=0) for c in (1.0, 7.0))
    names = ("jensen", "bhattacharyya", "tightest", "pairwise_kl", "second_jensen")
    assert [getattr(small, name) for name in names] == pytest.approx([getattr(large, name) for name in names], abs=1e-8)
    assert large.exact > small.exact + 1


# The whole.


def drawn(path):
    """Whether a figure is whole, as PNG and as SVG, and shows something."""
    assert path.with_suffix(".svg").read_text().rstrip().endswith("</svg>")
    with Image.open(path) as image:
        return np.asarray(image.convert("L")).std() > 10


def test_run_writes_tables_and_figures(tmp_path, monkeypatch):
    monkeypatch.setitem(toy.EFFORTS, "smoke", TINY)
    heard = []
    result = toy.run_toy(tmp_path, "smoke", report=heard.append)
    assert len(heard) >= 3
    assert [path.stem for path in result.figures] == ["figure4", "bound_error_optimum"]
    for path in result.figures:
        assert path.parent == tmp_path / "figures"
        assert drawn(path)
    records = json.loads((tmp_path / "tables" / "optimum.json").read_text())
    with (tmp_path / "tables" / "optimum.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["bound"]) for row in rows] == [record["bound"] for record in records]
    assert [record["bound"] for record in records] == [row.bound for row in result.tables.optimum]
    assert not list(tmp_path.rglob("*.partial"))
    blocks = toy_section(result).blocks
    assert sum(isinstance(block, Picture) for block in blocks) == len(result.figures)  # each with its caption
    figure4 = result.figures[0].with_suffix(".svg")
    before, draw = figure4.read_bytes(), toy.draw
    figure4.unlink()
    monkeypatch.setattr(toy, "draw", lambda tables: islice(draw(tables), 1))  # one will do
    assert toy.read_toy(tmp_path).tables == result.tables
    assert figure4.read_bytes() == before
    (tmp_path / "tables" / "minima.json").write_text("[{}]")
    with pytest.raises(RunError, match=r"minima\.json: make it again"):
        toy.read_toy(tmp_path)


def test_the_page_on_bounds_has_its_tables_and_figures_from_its_script(tmp_path):
    write(tmp_path, TINY_ERRORS)
    names = ("sigma", "separation", "batch_size", "latent_dim", "map", "saturation", "batch_bias")
    figures = {path.stem: path for path in (tmp_path / "figures").glob("*.png")}
    assert set(figures) == {f"bound_error_{name}" for name in names}
    assert all(drawn(path) for path in figures.values())
    tables = {path.stem for path in (tmp_path / "tables").glob("*.csv")}
    assert tables == {"collapse", "saturation", "batch_bias", "bound_error"}


@pytest.mark.parametrize(
    "table",
    [
        lambda seed: error_row("sigma", 3, 4, 1.0, 0.2, TINY_ERRORS.effort, seed),
        lambda seed: bias_rows(6, 1, 0.3, (2,), 4, seed),
        lambda seed: optimum(1, 3, 1, 5, seed),
    ],
)
def test_tables_follow_from_the_seed(table):
    torch.manual_seed(0)
    first = table(0)
    torch.manual_seed(1)  # the global generator has no part in it
    assert table(0) == first != table(1)


def test_claims_are_judged_by_their_numbers():
    lowest = minima()
    c4 = judge_c4(lowest)
    assert c4.verdict == "held"
    assert "0.184" in c4.numbers
    swapped = [row for row in lowest if row.quantity != "jensen"]
    swapped += [type(row)("jensen", *list(vars(row).values())[1:]) for row in lowest if row.quantity == "aevb"]
    assert judge_c4(swapped).verdict == "not held"
    optima = [optimum(1, 2, 1, 100, 0)]
    apart, near = (objective_optimum(16, x_sigma, 100) for x_sigma in (0.01, 1.0))
    assert judge_c8(optima, [apart, near]).verdict == "not held"
    assert "0.153" in judge_c8(optima, [apart, near]).numbers
    assert judge_c8(optima, [type(near)(**(vars(near) | {"gap": 0.001}))]).verdict == "held"


def test_the_docs_page_quotes_the_minima_and_shows_figures_that_exist():
    page = Path(__file__).parents[2] / "docs" / "bounds.md"
    text = page.read_text(encoding="utf-8")
    names = {"mean AEVB KL": "aevb", "exact": "exact", "`jensen`": "jensen", "`bhattacharyya`": "bhattacharyya"}
    table = text.split("| | smallest at σ |")[1].split("\n\n")[0]
    quoted = {
        cells[1]: cells[2:4] for line in table.splitlines() if (cells := [c.strip() for c in line.split("|")])[1:]
    }
    lowest = {row.quantity: row for row in minima()}
    for name, quantity in names.items():
        found = lowest[quantity]
        assert [float(cell) for cell in quoted[name]] == pytest.approx([found.sigma, found.minimum], abs=6e-5)
    figures = re.findall(r"\]\((figures/[a-z0-9_]+\.png)\)", text)
    assert len(figures) == 9
    assert all((page.parent / figure).is_file() for figure in figures)
