"""How a run ended, in words and as an exit code; the pictures of a finished one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wiseale.cli.options import option_name
from wiseale.errors import WiseAleError
from wiseale.models.collapse import CodeUse, collapse_message
from wiseale.platform.signals import SIGPIPE
from wiseale.runs.directory import RunDirectory
from wiseale.runs.run import Outcome

if TYPE_CHECKING:
    from wiseale.data import Dataset


def report_outcome(outcome: Outcome, on_rank_0: bool = True) -> int:
    """Print, on rank 0, where the result is or how to resume; returns 0, or 128 + the signal that interrupted.

    A finished run gets its pictures first, unless its settings say otherwise.
    """
    if outcome.signal is not None:
        told, code = f"interrupted; continue with: wiseale resume {outcome.path}", 128 + outcome.signal
    else:
        told, code = f"finished: {outcome.path} (next: wiseale evaluate {outcome.path})", 0
    if not on_rank_0:
        return code
    try:
        if outcome.kept:
            print(outcome.kept, flush=True)
        if outcome.signal is None and RunDirectory.open(outcome.path).read_record().settings.figures:
            print(named_pictures(outcome.path, outcome.dataset), flush=True)
        if collapsed := collapse_line(RunDirectory(outcome.path), outcome.code_use):
            print(collapsed, flush=True)
    finally:
        print(told, flush=True, file=sys.stderr if outcome.signal == SIGPIPE else sys.stdout)
    return code


def named_pictures(path: Path, dataset: Dataset | None = None) -> str:
    """Draw the standard pictures of a finished run where they are missing, and name them in one line."""
    from wiseale.figures.model_pictures import run_pictures

    try:
        made = run_pictures(path, dataset)
    except WiseAleError as error:
        return f"no pictures: {error}"
    return f"pictures: {made[0].parent} ({', '.join(picture.name for picture in made)})"


def collapse_line(run: RunDirectory, use: CodeUse | None) -> str | None:
    """That the run's codes have collapsed and which options to try; None where they have not."""
    if use is None or not use.collapsed:
        return None
    settings = run.read_record().settings
    assert settings.likelihood is not None
    return collapse_message(use, settings.objective, settings.likelihood, option_name)
