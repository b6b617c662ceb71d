"""How a run ended, in words and as an exit code."""

from __future__ import annotations

import sys

from wiseale.platform.signals import SIGPIPE
from wiseale.runs.run import Outcome


def report_outcome(outcome: Outcome, on_rank_0: bool = True) -> int:
    """Print, on rank 0, where the result is or how to resume; returns 0, or 128 + the signal that interrupted."""
    if outcome.signal is not None:
        told, code = f"interrupted; continue with: wiseale resume {outcome.path}", 128 + outcome.signal
    else:
        told, code = f"finished: {outcome.path} (next: wiseale evaluate {outcome.path})", 0
    if on_rank_0:
        print(told, flush=True, file=sys.stderr if outcome.signal == SIGPIPE else sys.stdout)
    return code
