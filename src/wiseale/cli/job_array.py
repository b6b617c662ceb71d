"""Job arrays: each task of an array does its own part of a list of runs or files; a script that does so on SLURM."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import click

from wiseale.config import TrainConfig
from wiseale.errors import ConfigError

T = TypeVar("T")

_SCRIPT = """\
#!/bin/bash
# {jobs} runs, each a job of an array; --array=1-{jobs}%8 does at most 8 at a time. A job that is stopped saves a
# checkpoint, and is resumed when it is submitted again. Add what your cluster asks for: --time, --partition, --account.
# When all have ended, write the tables and the report, which also does what is missing:
#   {command}
#SBATCH --job-name=wiseale
#SBATCH --array=1-{jobs}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={cores}
#SBATCH --chdir={folder}
#SBATCH --output=wiseale-%A_%a.out
#SBATCH --requeue
srun {command} --job "$SLURM_ARRAY_TASK_ID"
"""


@dataclass(frozen=True)
class ArrayTask:
    """Task ``number`` of ``count``, from 1; without a count there are as many tasks as there are things to do."""

    number: int
    count: int | None = None

    def part(self, work: Sequence[T], what: str) -> Sequence[T]:
        """Every ``count``-th element, beginning with this task's; ``what`` the elements are, for an error.

        >>> ArrayTask(2, 3).part(range(8), "files")
        range(1, 8, 3)
        """
        if self.count is None and self.number > len(work):
            raise ConfigError(f"--job {self.number}: there are {len(work)} {what}, numbered from 1")
        return work[self.number - 1 :: self.count or len(work)]


def _parse(ctx: click.Context, param: click.Parameter, value: str | None) -> ArrayTask | None:
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,9})(?:/(\d{1,9}))?", value)
    number, count = (int(match[1]), int(match[2]) if match[2] else None) if match else (0, None)
    if number < 1 or (count is not None and number > count):
        raise click.BadParameter(f"must be K or K/N with K from 1 to N, got {value}", ctx, param)
    return ArrayTask(number, count)


job_option = click.option(
    "--job",
    callback=_parse,
    metavar="K[/N]",
    help="a task of a job array: do only the K-th, or every N-th from the K-th on; a call without it comes last",
)


def array_script(arguments: Sequence[str], jobs: int, base: TrainConfig) -> str:
    """The script for ``wiseale ARGUMENTS --print-jobs``."""
    kept = [word for word in arguments if word != "--print-jobs"]
    cores = (base.processes or 1) * int(base.threads or 1)
    return _SCRIPT.format(jobs=jobs, command=shlex.join(["wiseale", *kept]), cores=cores, folder=os.getcwd())
