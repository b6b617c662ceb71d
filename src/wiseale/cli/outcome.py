"""How a run ended, in words and as an exit code."""

from __future__ import annotations

from wiseale.cli.options import option_name
from wiseale.models.collapse import CodeUse, collapse_message
from wiseale.runs.directory import RunDirectory
from wiseale.runs.run import Outcome


def report_outcome(outcome: Outcome, on_rank_0: bool = True) -> int:
    """Print, on rank 0, where the result is or how to resume; returns 0, or 128 + the signal that interrupted."""
    if outcome.signal is not None:
        told, code = f"interrupted; continue with: wiseale resume {outcome.path}", 128 + outcome.signal
    else:
        told, code = f"finished: {outcome.path} (next: wiseale evaluate {outcome.path})", 0
    if on_rank_0:
        for line in (collapse_line(RunDirectory(outcome.path), outcome.code_use), told):
            if line:
                print(line, flush=True)
    return code


def collapse_line(run: RunDirectory, use: CodeUse | None) -> str | None:
    """That the run's codes have collapsed and which options to try; None where they have not."""
    if use is None or not use.collapsed:
        return None
    settings = run.read_record().settings
    assert settings.likelihood is not None
    return collapse_message(use, settings.objective, settings.likelihood, option_name)
