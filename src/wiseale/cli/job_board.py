"""A live view of parallel runs: a bar each on a terminal, a line per finished epoch elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from wiseale.errors import RunError
from wiseale.experiments.job import Job
from wiseale.experiments.jobs import State
from wiseale.runs.directory import RunDirectory, read
from wiseale.runs.record import RunRecord


class JobBoard:
    """Shows how far each job is."""

    def __init__(self, console: Console, progress: Progress | None) -> None:
        self._console = console
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._totals: dict[str, int | None] = {}
        self._printed: dict[str, tuple[int, State]] = {}

    def show(self, jobs: Sequence[tuple[Job, State]]) -> None:
        """Update the view."""
        for job, state in jobs:
            done, total = job.epochs_done(), self._epochs(job)
            if self._progress is None:
                if (done, state) != self._printed.get(job.name, (0, "waiting")):
                    of = "" if total is None else f"/{total}"
                    self._console.print(f"{job.name}: {state}, epoch {done}{of}", highlight=False, markup=False)
                    self._printed[job.name] = (done, state)
                continue
            if job.name not in self._tasks:
                self._tasks[job.name] = self._progress.add_task(job.name, total=total, state=state)
            self._progress.update(self._tasks[job.name], completed=done, total=total, state=state)

    def _epochs(self, job: Job) -> int | None:
        """Epochs the job will train at the most; None while its dataset's default is not known yet."""
        if job.config.max_epochs is not None:
            return job.config.max_epochs
        if job.name not in self._totals:
            try:
                record = read(RunRecord.from_json, RunDirectory(job.out).config)
            except RunError:  # it has not begun
                return None
            self._totals[job.name] = record.settings.max_epochs
        return self._totals[job.name]


@contextmanager
def job_board(console: Console) -> Iterator[JobBoard]:
    """A board for as long as the jobs run."""
    if not console.is_terminal:
        yield JobBoard(console, None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs"),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        yield JobBoard(console, progress)
