"""How a run ended, in words and as an exit code."""

from __future__ import annotations

from wiseale.training.run import Outcome


def report_outcome(outcome: Outcome) -> int:
    """Say where the result is, or how to go on; 128 + the signal where one interrupted the run."""
    if outcome.signal is not None:
        print(f"interrupted; continue with: wiseale resume {outcome.path}", flush=True)
        return 128 + outcome.signal
    print(f"finished: {outcome.path} (next: wiseale evaluate {outcome.path})")
    return 0
