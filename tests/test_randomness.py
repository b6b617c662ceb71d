"""Counter-based draws: each depends on (seed, purpose, counters) alone."""

from typing import get_args

import numpy as np
import pytest
import torch

from wiseale.evaluation.case import Draw
from wiseale.randomness import Purpose, derive_seed, shuffled, standard_normal


@pytest.mark.parametrize("n", [0, 1, 2, 997, 65_537])
def test_every_number_comes_once(n):
    assert np.array_equal(np.sort(shuffled(n, 0, "order", 3).numpy()), np.arange(n))


def test_other_seeds_purposes_and_counters_give_other_orders():
    """Two random orders of n numbers agree in one place on average, and in more than 10 with probability 1e-8."""
    keys = [(seed, purpose, epoch) for seed in (0, 1) for purpose in ("order", "held out") for epoch in (0, 1)]
    orders = [shuffled(20_000, *key).numpy() for key in keys] + [np.arange(20_000)]
    for i, one in enumerate(orders):
        for other in orders[:i]:
            assert (one == other).sum() <= 10


def test_draws_depend_on_nothing_drawn_before():
    first, order = standard_normal((5,), 3, "noise", 7), shuffled(50, 3, "order", 7)
    torch.manual_seed(1)
    standard_normal((100,), 3, "noise", 6)
    before = torch.get_rng_state()
    assert torch.equal(standard_normal((5,), 3, "noise", 7), first)
    assert torch.equal(shuffled(50, 3, "order", 7), order)
    assert torch.equal(torch.get_rng_state(), before)  # nor do they advance torch's own generator


def test_seeds_fit_every_generator():
    assert all(0 <= derive_seed(seed, "weights") < 2**63 for seed in range(1000))


def test_every_purpose_and_every_counter_has_draws_of_its_own():
    keys = [(purpose, *counters) for purpose in get_args(Purpose) for counters in ((), (0,), (1,), (1, 0), (1, 1))]
    assert len({derive_seed(0, *key) for key in keys}) == len(keys)


def test_no_two_measures_share_their_draws():
    assert len({int(draw) for draw in Draw.__members__.values()}) == len(Draw.__members__)
