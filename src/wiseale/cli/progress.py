"""Progress of everything but a training: bars on a terminal; elsewhere lines of runs and measures, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from wiseale.errors import RunError

if TYPE_CHECKING:
    from wiseale.experiments.jobs import Job, State


def _bars(*columns: ProgressColumn, transient: bool = True) -> Progress:
    """Bars on standard error, if that is a terminal."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=transient, disable=not console.is_terminal)


@contextmanager
def loading_bar(doing: str = "preparing data") -> Iterator[Callable[[int, int | None], None]]:
    """A bar over rows, shown only if there is something to wait for."""
    with _bars(TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task("", total=None, visible=False)
        yield lambda done, total: progress.update(task, completed=done, total=total, visible=True)


@contextmanager
def download_bar() -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar over bytes for each file."""
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with _bars(*columns, transient=False) as progress:
        tasks: dict[str, TaskID] = {}

        def show(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file, total=total)
            progress.update(tasks[file], completed=done, total=total)

        yield show


@contextmanager
def measuring_bar() -> Iterator[Callable[[str, float], None]]:
    """A bar over the questions of an evaluation; a line for each where standard error is no terminal."""
    if not sys.stderr.isatty():
        titles = set[str]()

        def show(title: str, fraction: float) -> None:
            if title not in titles:
                titles.add(title)
                print(f"{fraction:4.0%} {title}", file=sys.stderr, flush=True)

        yield show
        return
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with _bars(*columns) as progress:
        task = progress.add_task("", total=1.0, visible=False)
        yield lambda title, fraction: progress.update(task, description=title, completed=fraction, visible=True)


class JobBoard:
    """Shows how far each of several runs is: a bar each, or a line per finished epoch where ``progress`` is None."""

    def __init__(self, console: Console, progress: Progress | None) -> None:
        self._console, self._progress = console, progress
        self._tasks: dict[str, TaskID] = {}
        self._totals: dict[str, int] = {}
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
        from wiseale.runs.directory import RunDirectory, read
        from wiseale.runs.record import RunRecord

        if job.config.max_epochs is not None:
            return job.config.max_epochs
        if job.name not in self._totals:
            try:
                self._totals[job.name] = read(RunRecord.from_json, RunDirectory(job.out).config).settings.max_epochs
            except RunError:  # it has not begun
                return None
        return self._totals[job.name]


@contextmanager
def job_board(console: Console) -> Iterator[JobBoard]:
    """A board for as long as the runs go on."""
    if not console.is_terminal:
        yield JobBoard(console, None)
        return
    state, epochs = TextColumn("{task.fields[state]}"), TextColumn("epochs")
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), epochs, state, TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        yield JobBoard(console, progress)
