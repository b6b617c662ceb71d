"""What a person sees of a run: its progress, as bars on a terminal and plain lines elsewhere, and how it ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wiseale.cli.faults import one_line
from wiseale.cli.options import option_name
from wiseale.errors import WiseAleError, counted
from wiseale.models.collapse import CodeUse, collapse_message
from wiseale.platform.machine import SIGPIPE
from wiseale.runs.record import RunRecord
from wiseale.runs.recorder import Display
from wiseale.runs.run import Run
from wiseale.runs.train import Outcome
from wiseale.training.loop import TimedEpochRecord
from wiseale.training.settings import RunSettings

if TYPE_CHECKING:
    from wiseale.data import Dataset

_QUIET_SECONDS = 10.0
_EPOCH = "epoch {task.fields[epoch]}/{task.fields[epochs]}"


@contextmanager
def run_display(on_rank_0: bool = True) -> Iterator[Display]:
    """The display that suits standard output; none on ranks other than 0."""
    if not on_rank_0:
        yield NoDisplay()
        return
    epoch, rate, terms = map(TextColumn, (_EPOCH, "{task.fields[rate]}", "{task.fields[terms]}"))
    columns = epoch, BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn(), terms
    on_terminal = sys.stdout.isatty()
    with (
        Progress(*columns, transient=True) if on_terminal else nullcontext() as progress,
        closing(RunDisplay(progress)) as display,
    ):
        yield display


class NoDisplay:
    """Nothing."""

    def loading(self, done: int, total: int) -> None:
        """Nothing."""

    def started(self, record: RunRecord, notes: Sequence[str]) -> None:
        """Nothing."""

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Nothing."""

    def epoch(self, record: TimedEpochRecord) -> None:
        """Nothing."""


class Pace:
    """Decides which epochs get a line: 1 to 10, then every 10th, every 100th, …; and one if ten seconds had none."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self.skipped: TimedEpochRecord | None = None  # the last epoch, if it got no line

    def shows(self, record: TimedEpochRecord) -> bool:
        """Whether this epoch gets a line."""
        step = 10 ** (len(str(record.epoch - 1)) - 1)
        due = record.epoch % step == 0 or self._clock() - self._last >= _QUIET_SECONDS
        self.skipped = None if due else record
        if due:
            self._last = self._clock()
        return due


class RunDisplay(NoDisplay):
    """A line for some epochs, the last one among them; on a terminal above a bar over all steps with running terms."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._pace, self._progress = Pace(), progress
        self._epochs = self._batch_size = 0
        self._loading = False
        if progress:
            self._task = progress.add_task("", total=None, epoch=0, epochs="?", rate="", terms="")

    def _print(self, text: str) -> None:
        if self._progress:
            self._progress.console.print(text, highlight=False)
        else:
            print(text, flush=True)

    def loading(self, done: int, total: int) -> None:
        """Move the bar over the rows that are being prepared; without a bar print once that they are."""
        if self._progress:
            self._progress.update(self._task, total=total, completed=done, terms="preparing data")
        elif not self._loading:
            self._print(f"preparing {counted(total, 'row')}")
        self._loading = True

    def started(self, record: RunRecord, notes: Sequence[str]) -> None:
        """Print the settings of the run."""
        self._epochs, self._batch_size = record.settings.max_epochs, record.settings.batch_size
        self._print(describe(record, notes))
        if self._progress:
            total = self._epochs * record.facts.steps_per_epoch
            self._progress.update(self._task, total=total, epochs=self._epochs)

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Move the bar."""
        if self._progress:
            speed = self._progress.tasks[0].speed
            rate = f"{speed * self._batch_size:,.0f} rows/s" if speed else ""
            running = f"reconstruction {terms['reconstruction']:.2f}  prior {terms['prior']:.3f}"
            done = epoch * steps_per_epoch + step_in_epoch
            self._progress.update(self._task, completed=done, epoch=epoch + 1, rate=rate, terms=running)

    def epoch(self, record: TimedEpochRecord) -> None:
        """Print the epoch's terms, now and then."""
        if self._pace.shows(record):
            self._print(epoch_line(record, self._epochs))

    def close(self) -> None:
        """Print the last epoch's terms."""
        if record := self._pace.skipped:
            self._print(epoch_line(record, self._epochs))


def describe(record: RunRecord, notes: Sequence[str] = ()) -> str:
    """A run in two lines, and a line for each note."""
    settings, facts = record.settings, record.facts
    objective, network, likelihood = (settings.spec(name) for name in ("objective", "network", "likelihood"))
    spread = f"{settings.processes} processes of " if settings.processes > 1 else ""
    lines = [
        f"{objective} on {settings.data}: {counted(facts.n_train, 'row')} to train on, "
        f"{facts.n_held_out:,} held out, effective prior weight {facts.prior_weight:g}",
        f"network {network} ({facts.parameters:,} parameters), likelihood {likelihood}, "
        f"latent dim {settings.latent_dim}, batch {settings.batch_size}, lr {settings.lr:g}, "
        f"{spread}{counted(settings.threads, 'thread')} on {settings.device}, seed {settings.seed}",
    ]
    return "\n".join(map(one_line, [*lines, *notes]))  # column names and paths are the user's


def epoch_line(record: TimedEpochRecord, epochs: int) -> str:
    """An epoch in one line, nats per observation."""
    parts = [f"epoch {record.epoch}/{epochs}"]
    for name, terms in (("train", record.train), ("held out", record.held_out)):
        if terms is not None:
            parts.append(
                f"{name}: loss {terms['loss']:.3f} = reconstruction {terms['reconstruction']:.3f}"
                f" + weight * prior {terms['prior']:.4f}"
                + (f"; ELBO {terms['elbo']:.3f}" if "elbo" in terms else "")  # none for deterministic encoders
            )
    return "  |  ".join([*parts, f"{record.samples / record.seconds:,.0f} rows/s"])


def report_outcome(outcome: Outcome, on_rank_0: bool = True) -> int:
    """Print, on rank 0, where the result is or how to resume; returns 0, or 128 + the signal that interrupted.

    A finished run gets its pictures first, unless its settings say otherwise.
    """
    if outcome.signal is not None:
        end, code = f"interrupted; continue with: wiseale resume {outcome.path}", 128 + outcome.signal
    else:
        end, code = f"finished: {outcome.path} (next: wiseale evaluate {outcome.path})", 0
    if not on_rank_0:
        return code
    try:
        if outcome.kept:
            print(outcome.kept, flush=True)
        settings = Run.open(outcome.path).settings
        if outcome.signal is None and settings.figures:
            print(named_pictures(outcome.path, outcome.dataset), flush=True)
        if collapsed := collapse_line(settings, outcome.code_use):
            print(collapsed, flush=True)
    finally:
        print(end, flush=True, file=sys.stderr if outcome.signal == SIGPIPE else sys.stdout)
    return code


def named_pictures(path: Path, dataset: Dataset | None = None) -> str:
    """Draw the standard pictures of a finished run where they are missing, and name them in one line."""
    from wiseale.figures.model_pictures import run_pictures

    try:
        pictures = run_pictures(path, dataset)
    except WiseAleError as error:
        return f"no pictures: {error}"
    return f"pictures: {pictures[0].parent} ({', '.join(picture.name for picture in pictures)})"


def collapse_line(settings: RunSettings, use: CodeUse | None) -> str | None:
    """That a run's codes have collapsed and which options to try; None where they have not."""
    return collapse_message(use, settings.objective, settings.likelihood, option_name) if use else None
