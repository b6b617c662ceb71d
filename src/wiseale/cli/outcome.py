"""How a run ended, in words and as an exit code."""

from __future__ import annotations

from wiseale.runs.run import Outcome


def report_outcome(outcome: Outcome, speaks: bool = True) -> int:
    """Say where the result is, or how to go on; 128 + the signal where one interrupted the run."""
    if outcome.signal is not None:
        told, code = f"interrupted; continue with: wiseale resume {outcome.path}", 128 + outcome.signal
    else:
        told, code = f"finished: {outcome.path} (next: wiseale evaluate {outcome.path})", 0
    if speaks:
        print(told, flush=True)
    return code
