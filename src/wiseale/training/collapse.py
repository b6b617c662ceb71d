"""Whether a finished run has collapsed: the check at the end of ``wiseale train`` and ``AutoEncoder.fit``."""

from __future__ import annotations

from wiseale.models.collapse import ENOUGH_ROWS, ROWS, CodeUse, code_use_of
from wiseale.randomness import shuffled
from wiseale.training.setup import Work


def final_code_use(work: Work) -> CodeUse | None:
    """How much the trained model's codes say about x, on at most 1,000 rows, drawn at random.

    Held-out rows where there are enough, otherwise training rows; None where all of them are the same.
    """
    enough = work.held_out is not None and len(work.held_out) >= ENOUGH_ROWS
    rows = work.held_out if enough and work.held_out is not None else work.train
    x = rows.read(shuffled(len(rows), work.plan.seed, "evaluate")[:ROWS].sort().values)
    if bool((x == x[:1]).all()):  # one row, or copies of it: there is nothing to encode
        return None
    return code_use_of(work.learner.model, x, work.plan.seed)
