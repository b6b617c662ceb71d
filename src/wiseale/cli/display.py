"""What a person sees while a run trains: bars with rate and remaining time on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wiseale.cli.faults import one_line
from wiseale.errors import counted
from wiseale.runs.record import RunRecord
from wiseale.runs.recorder import Display
from wiseale.training.records import TimedEpochRecord

_QUIET_SECONDS = 10.0


@contextmanager
def run_display(on_rank_0: bool = True) -> Iterator[Display]:
    """The display that suits standard output; none on ranks other than 0."""
    console = Console()
    if not on_rank_0:
        yield NoDisplay()
        return
    if not sys.stdout.isatty():
        with closing(PlainDisplay()) as plain:
            yield plain
        return
    columns = (
        TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[terms]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress, closing(RichDisplay(progress)) as display:
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
        self._skipped: TimedEpochRecord | None = None

    def shows(self, record: TimedEpochRecord) -> bool:
        """Whether this epoch gets a line."""
        step = 10 ** (len(str(record.epoch - 1)) - 1)
        shown = record.epoch % step == 0 or self._clock() - self._last >= _QUIET_SECONDS
        self._skipped = None if shown else record
        if shown:
            self._last = self._clock()
        return shown

    def skipped(self) -> TimedEpochRecord | None:
        """The last epoch, if it got no line."""
        return self._skipped


class PlainDisplay:
    """A line for some epochs, the last one among them."""

    def __init__(self) -> None:
        self._epochs = 0
        self._pace = Pace()
        self._loading = False

    def loading(self, done: int, total: int) -> None:
        """Print once that data is being prepared."""
        if not self._loading:
            print(f"preparing {counted(total, 'row')}", flush=True)
            self._loading = True

    def started(self, record: RunRecord, notes: Sequence[str]) -> None:
        """Print the settings of the run."""
        self._epochs = record.settings.max_epochs or 0
        print(describe(record, notes), flush=True)

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Nothing: lines are for epochs."""

    def epoch(self, record: TimedEpochRecord) -> None:
        """Print the epoch's terms, now and then."""
        if self._pace.shows(record):
            print(epoch_line(record, self._epochs), flush=True)

    def close(self) -> None:
        """Print the last epoch's terms."""
        if record := self._pace.skipped():
            print(epoch_line(record, self._epochs), flush=True)


class RichDisplay:
    """A bar over all steps, with the epoch's running terms."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, epoch=0, epochs="?", rate="", terms="")
        self._batch_size = 0
        self._epochs = 0
        self._pace = Pace()

    def loading(self, done: int, total: int) -> None:
        """Move the bar over the rows that are being prepared."""
        self._progress.update(self._task, total=total, completed=done, terms="preparing data")

    def started(self, record: RunRecord, notes: Sequence[str]) -> None:
        """Print the settings of the run and set the bar's length."""
        self._batch_size = record.settings.batch_size or 0
        self._epochs = record.settings.max_epochs or 0
        self._progress.console.print(describe(record, notes), highlight=False)
        total = self._epochs * record.facts.steps_per_epoch
        self._progress.update(self._task, total=total, epochs=self._epochs)

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Move the bar."""
        done = epoch * steps_per_epoch + step_in_epoch
        task = self._progress.tasks[0]
        rate = f"{task.speed * self._batch_size:,.0f} rows/s" if task.speed else ""
        shown = f"reconstruction {terms['reconstruction']:.2f}  prior {terms['prior']:.3f}"
        self._progress.update(self._task, completed=done, epoch=epoch + 1, rate=rate, terms=shown)

    def epoch(self, record: TimedEpochRecord) -> None:
        """Print the epoch's terms above the bar, now and then."""
        if self._pace.shows(record):
            self._progress.console.print(epoch_line(record, self._epochs), highlight=False)

    def close(self) -> None:
        """Print the last epoch's terms above the bar."""
        if record := self._pace.skipped():
            self._progress.console.print(epoch_line(record, self._epochs), highlight=False)


def describe(record: RunRecord, notes: Sequence[str] = ()) -> str:
    """A run in two lines, and a line for each note."""
    settings, facts = record.settings, record.facts
    processes = settings.processes or 1
    spread = f"{processes} processes of " if processes > 1 else ""
    lines = [
        f"{settings.objective} on {settings.data}: {counted(facts.n_train, 'row')} to train on, "
        f"{facts.n_held_out:,} held out, effective prior weight {facts.prior_weight:g}",
        f"network {settings.network} ({facts.parameters:,} parameters), likelihood {settings.likelihood}, "
        f"latent dim {settings.latent_dim}, batch {settings.batch_size}, lr {settings.lr:g}, "
        f"{spread}{counted(int(settings.threads or 1), 'thread')} on {settings.device}, seed {settings.seed}",
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
