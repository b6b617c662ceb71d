"""Whether the ranks of a run share the bound's rows, or each computes the bound of the whole batch."""

from __future__ import annotations

from wiseale.posterior import Posterior, SharedRows
from wiseale.processes.collectives import batch_world, gather

LEAST_PAIRS_SAVED = 1 << 16
"""Pairs that each rank must be spared for the sums' exchange to pay (``bench/results/shared_bound.md``)."""


def shared_rows(posterior: Posterior) -> SharedRows | None:
    """This rank's rows of the bound of a batch of M posteriors; None where every rank computes all of them.

    A rank of R computes M²/R pairs in place of M², and one exchange of M numbers follows, which takes as long whatever
    M is. So rows are shared where M²·(1 − 1/R) is at least ``LEAST_PAIRS_SAVED``.
    """
    world, m = batch_world(), len(posterior)
    spared = m * m - m * m // world.size
    return None if world.size == 1 or spared < LEAST_PAIRS_SAVED else SharedRows(world.part(m), gather)
