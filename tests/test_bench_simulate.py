"""The simulator's model of a network and of a step, against rings played out message by message and counted work."""

import pytest
from bench.costs import Costs
from bench.simulate import Network, Plan, breaking_points, step

COSTS = Costs(
    pair=2e-8, kept_pair=1e-8, whole_pair=6e-8, tiled_pair=2e-7, per_row=1e-2, fixed=0.1, parameters=1_000_000
)
NETWORK = Network(latency=1e-3, bandwidth=1e9)


def played_out(ranks, size):
    """A ring all-gather: in each round every rank passes on the block it received last, all links at once."""
    blocks = {rank: {rank} for rank in range(ranks)}
    newest, seconds = {rank: rank for rank in range(ranks)}, 0.0
    while any(len(held) < ranks for held in blocks.values()):
        newest = {(rank + 1) % ranks: newest[rank] for rank in range(ranks)}
        for rank, block in newest.items():
            blocks[rank].add(block)
        seconds += NETWORK.latency + size / ranks / NETWORK.bandwidth
    return seconds


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_an_exchange_takes_as_long_as_its_rounds(ranks):
    assert NETWORK.all_gather(ranks, 6e6) == pytest.approx(played_out(ranks, 6e6))
    assert NETWORK.all_reduce(ranks, 6e6) == pytest.approx(2 * played_out(ranks, 6e6))


def test_one_rank_exchanges_nothing_and_computes_the_whole_bound():
    found = step(Plan(per_rank=4096), COSTS, NETWORK, 1)
    assert found.exchange == found.sent == 0
    assert found.bound == found.whole_bound == pytest.approx(4096**2 * COSTS.whole_pair)
    assert found.seconds == pytest.approx(0.1 + 40.96 + found.bound)


def test_shared_rows_grow_with_the_ranks_and_the_whole_bound_with_their_square():
    some, more = (step(Plan(), COSTS, NETWORK, ranks) for ranks in (16, 32))
    assert more.bound == pytest.approx(2 * some.bound)
    assert more.whole_bound == pytest.approx(4 * some.whole_bound)
    assert more.network == some.network


def test_ranks_that_share_cores_compute_slower_and_exchange_as_fast():
    free, shared = (step(Plan(), COSTS, NETWORK, 4, slowdown) for slowdown in (1.0, 2.0))
    assert (shared.network, shared.bound) == (2 * free.network, 2 * free.bound)
    assert shared.exchange == free.exchange


def test_the_first_number_of_ranks_at_which_a_part_outweighs_the_network():
    """A step's network takes 2.66 s; the whole bound reaches that at M² = 2.66 s/6e-8, M = 6,658: 32 ranks of 256."""
    assert "the whole bound from 32 ranks on" in breaking_points(Plan(), COSTS, NETWORK)
