import numpy as np
import pytest
import torch
from tests.evaluation.models import case_of_posteriors, ignore

from wiseale.evaluation import separation as module
from wiseale.evaluation.separation import coverage, density_and_coverage


def by_definition(real, fake, k):
    """Naeem et al. (2020), equations (4) and (6), one pair at a time."""
    radius = []
    for i in range(len(real)):
        others = sorted(np.linalg.norm(real[i] - real[j]) for j in range(len(real)) if j != i)
        radius.append(others[k - 1])
    density, covered = 0, 0
    for i in range(len(real)):
        held = sum(np.linalg.norm(real[i] - point) < radius[i] for point in fake)
        density += held
        covered += held > 0
    return density / (k * len(fake)), covered / len(real)


@pytest.mark.parametrize(("n", "m", "d", "k"), [(40, 40, 2, 5), (31, 57, 3, 1), (50, 20, 1, 4)])
@pytest.mark.parametrize("block", [1 << 21, 100])
def test_against_the_definition(monkeypatch, n, m, d, k, block):
    monkeypatch.setattr(module, "_BLOCK_PAIRS", block)
    generator = np.random.default_rng(n)
    real, fake = generator.normal(size=(n, d)), 0.8 * generator.normal(size=(m, d)) + 0.3
    found = density_and_coverage(torch.from_numpy(real), torch.from_numpy(fake), k)
    assert found == pytest.approx(by_definition(real, fake, k), rel=1e-12)


def test_codes_like_the_prior_and_codes_elsewhere():
    n = 2000
    like = coverage(case_of_posteriors(np.zeros((n, 2)), np.ones((n, 2))), ignore).measures
    assert like["code_density"] == pytest.approx(1, abs=0.1)  # its expectation for equal distributions
    assert like["code_coverage"] == pytest.approx(1 - 0.5**5, abs=0.02)  # the k nearest of 2n are not all real
    away = coverage(case_of_posteriors(np.full((n, 2), 9.0), np.full((n, 2), 0.1)), ignore).measures
    assert away == {"code_density": 0, "code_coverage": 0}
    heap = coverage(case_of_posteriors(np.zeros((n, 2)), np.full((n, 2), 0.01)), ignore).measures
    assert heap["code_density"] > 1
    assert heap["code_coverage"] < 0.05


def test_too_few_rows():
    found = coverage(case_of_posteriors(np.zeros((5, 2)), np.ones((5, 2))), ignore)
    assert found.measures == {"code_density": None, "code_coverage": None}
    assert "more than 5 rows" in found.reasons["code_coverage"]
