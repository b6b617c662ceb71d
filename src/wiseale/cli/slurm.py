"""The script with which SLURM does each run of a comparison as a job of an array."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from wiseale.config import TrainConfig

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


def array_script(arguments: Sequence[str], jobs: int, base: TrainConfig) -> str:
    """The script for ``wiseale ARGUMENTS --print-jobs``."""
    kept = [word for word in arguments if word != "--print-jobs"]
    cores = (base.processes or 1) * int(base.threads or 1)
    return _SCRIPT.format(jobs=jobs, command=shlex.join(["wiseale", *kept]), cores=cores, folder=os.getcwd())
