"""The computed order of large sets: a permutation, keyed, close to uniform, in constant memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wiseale import randomness
from wiseale.randomness import MOST_LISTED, KeyedOrder, permutation, shuffled


def numbers(n, key=0):
    return KeyedOrder(n, key)[:].numpy()


@pytest.mark.parametrize("n", [*range(1, 66), 997, 1024, 4096, 4097, 65_536, 65_537, 104_729])
def test_every_number_comes_once(n):
    assert np.array_equal(np.sort(numbers(n)), np.arange(n))


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 50_000), key=st.integers(0, 2**63 - 1), cuts=st.lists(st.integers(0, 50_000), max_size=6))
def test_pieces_in_any_sequence_are_those_of_the_whole(n, key, cuts):
    whole, order = numbers(n, key), KeyedOrder(n, key)
    assert np.array_equal(np.sort(whole), np.arange(n))
    for cut in cuts:
        assert np.array_equal(order[cut : cut + 64].numpy(), whole[cut : cut + 64])


def test_other_keys_give_other_orders():
    """Two random orders of n numbers agree in one place on average, and in more than 10 with probability 1e-8."""
    orders = [shuffled(MOST_LISTED + 1, seed, "order", epoch)[:20_000].numpy() for seed in (0, 1) for epoch in (0, 1)]
    orders.append(np.arange(20_000))
    for i, one in enumerate(orders):
        for other in orders[:i]:
            assert (one == other).sum() <= 10


def chi_square(counts):
    return stats.chisquare(counts.ravel()).pvalue


@pytest.mark.parametrize("n", [MOST_LISTED + 1, 10**9])
def test_the_order_looks_uniform(n):
    """Chi-square tests at 1e-4 each: numbers in bins, pairs of neighbours, steps between neighbours, low digits."""
    size = 1 << 19
    drawn = KeyedOrder(n, 7)[:size].numpy()
    cells = drawn * 64 // n
    assert chi_square(np.bincount(drawn * 1024 // n, minlength=1024)) > 1e-4
    pairs = np.zeros((64, 64), int)
    np.add.at(pairs, (cells[::2], cells[1::2]), 1)
    assert chi_square(pairs) > 1e-4
    places = np.zeros((64, 64), int)
    np.add.at(places, (np.arange(size) * 64 // size, cells), 1)
    assert chi_square(places) > 1e-4
    assert chi_square(np.bincount((np.diff(drawn)[::2] % n) * 256 // n, minlength=256)) > 1e-4
    assert chi_square(np.bincount(drawn % 256, minlength=256)) > 1e-4


def test_single_numbers_are_uniform_over_keys():
    """Where one place goes, and where two go together, over many keys; n is small, so that flaws would be plain."""
    n, keys = 7, 2_000
    first = np.array([KeyedOrder(n, key)[:2].numpy() for key in range(keys)])
    assert chi_square(np.bincount(first[:, 0], minlength=n)) > 1e-4
    together = np.bincount(first[:, 0] * n + first[:, 1], minlength=n * n).reshape(n, n)
    assert (together.diagonal() == 0).all()
    assert chi_square(together[~np.eye(n, dtype=bool)]) > 1e-4


def test_a_large_order_takes_constant_memory():
    peaks = []
    for n in (MOST_LISTED + 1, 10**9, 10**15):
        tracemalloc.start()
        order = shuffled(n, 0, "order", 0)
        for place in (0, n // 2, n - 64):
            assert len(order[place : place + 64]) == 64
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 8e6
    assert max(peaks) < 1.1 * min(peaks)


def test_smaller_sets_keep_the_permutation_of_earlier_runs():
    n = 1000
    assert np.array_equal(shuffled(n, 3, "order", 5)[:].numpy(), permutation(n, 3, "order", 5).numpy())
    assert isinstance(shuffled(MOST_LISTED + 1, 3, "order", 5), KeyedOrder)


def test_runs_of_earlier_versions_keep_it_at_any_size(monkeypatch):
    monkeypatch.setattr(randomness, "MOST_LISTED", 100)
    listed = shuffled(1000, 3, "order", 5, listed=True)
    assert np.array_equal(listed[:].numpy(), permutation(1000, 3, "order", 5).numpy())
    assert not np.array_equal(shuffled(1000, 3, "order", 5)[:].numpy(), listed[:].numpy())


@pytest.mark.parametrize("n", [0, 1 << 60])
def test_sizes_it_cannot_order_are_refused(n):
    with pytest.raises(ValueError, match="needs 1 to"):
        KeyedOrder(n, 0)
