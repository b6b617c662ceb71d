import math

import numpy as np
import pytest
import torch
from tests.evaluation.models import case_of_posteriors, ignore

from wiseale.evaluation.separation import log_responsibility, separation
from wiseale.posterior import Posterior


def measured(mu, sigma):
    return separation(case_of_posteriors(mu, sigma), ignore).measures


def test_identical_posteriors_are_merged():
    found = measured(np.full((200, 3), 0.7), np.full((200, 3), 0.2))
    assert found["separation"] == pytest.approx(1 / 64, rel=1e-9)
    assert found["separation_entropy"] == pytest.approx(math.log(64), rel=1e-9)


def test_posteriors_far_apart_are_separate():
    found = measured(np.arange(200.0)[:, None] * 100, np.ones((200, 1)))
    assert found["separation"] == pytest.approx(1)
    assert found["separation_entropy"] == pytest.approx(0, abs=1e-9)


def test_two_heaps_of_32_leave_one_choice_in_32():
    found = measured(np.repeat([-100.0, 100.0], 32)[:, None], np.ones((64, 1)))
    assert found["separation"] == pytest.approx(1 / 32, rel=1e-9)
    assert found["separation_entropy"] == pytest.approx(math.log(32), rel=1e-9)


def test_at_least_20_batches_are_made_of_few_rows_and_all_rows_are_used():
    for n, batches in ((64, 20), (700, 20), (64 * 21, 21), (64 * 33 + 5, 33)):
        assert measured(np.zeros((n, 1)), np.ones((n, 1)))["separation_batches"] == batches


def test_fewer_rows_than_a_batch():
    found = separation(case_of_posteriors(np.zeros((63, 1)), np.ones((63, 1))), ignore)
    assert set(found.measures.values()) == {None}
    assert "64 rows, there are 63" in found.reasons["separation"]


def test_the_odds_of_two_posteriors_by_hand():
    # Equal widths: log q_0(z)/q_1(z) = (d² − 2·d·(z − mu_0))/2 for means d apart.
    q = Posterior(torch.tensor([[0.0], [1.5]]), torch.ones(2, 1))
    z = torch.tensor([0.4, -0.3])  # noise of each
    first = 1 / (1 + math.exp(-(1.5**2 - 2 * 1.5 * 0.4) / 2))
    second = 1 / (1 + math.exp(-(1.5**2 + 2 * 1.5 * -0.3) / 2))
    assert log_responsibility(q, z[:, None]).exp().tolist() == pytest.approx([first, second])
