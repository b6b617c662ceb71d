"""What a person sees while a run trains: bars with rate and remaining time on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wiseale.runs.recorder import Display
from wiseale.training.loop import EpochRecord


@contextmanager
def run_display(on_rank_0: bool = True) -> Iterator[Display]:
    """The display that suits standard output; none on ranks other than 0."""
    console = Console()
    if not on_rank_0:
        yield NoDisplay()
        return
    if not sys.stdout.isatty():
        yield PlainDisplay()
        return
    columns = (
        TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[terms]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield RichDisplay(progress)


class NoDisplay:
    """Nothing."""

    def loading(self, done: int, total: int) -> None:
        """Nothing."""

    def started(self, facts: Mapping[str, Any]) -> None:
        """Nothing."""

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Nothing."""

    def epoch(self, record: EpochRecord) -> None:
        """Nothing."""


class PlainDisplay:
    """One line per epoch."""

    def __init__(self) -> None:
        self._epochs = 0
        self._loading = False

    def loading(self, done: int, total: int) -> None:
        """Say that it takes a while, once."""
        if not self._loading:
            print(f"preparing {total:,} rows", flush=True)
            self._loading = True

    def started(self, facts: Mapping[str, Any]) -> None:
        """Say what will run."""
        self._epochs = facts["max_epochs"]
        print(describe(facts), flush=True)

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Nothing: lines are for epochs."""

    def epoch(self, record: EpochRecord) -> None:
        """Say how it went."""
        print(epoch_line(record, self._epochs), flush=True)


class RichDisplay:
    """A bar over all steps, with the epoch's running terms."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, epoch=0, epochs="?", rate="", terms="")
        self._batch_size = 0
        self._epochs = 0

    def loading(self, done: int, total: int) -> None:
        """Move the bar over the rows that are being prepared."""
        self._progress.update(self._task, total=total, completed=done, terms="preparing data")

    def started(self, facts: Mapping[str, Any]) -> None:
        """Say what will run, and set the bar's length."""
        self._batch_size = facts["batch_size"]
        self._epochs = facts["max_epochs"]
        self._progress.console.print(describe(facts), highlight=False)
        total = self._epochs * facts["resolved"]["steps_per_epoch"]
        self._progress.update(self._task, total=total, epochs=self._epochs)

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Move the bar."""
        done = epoch * steps_per_epoch + step_in_epoch
        task = self._progress.tasks[0]
        rate = f"{task.speed * self._batch_size:,.0f} rows/s" if task.speed else ""
        shown = f"reconstruction {terms['reconstruction']:.2f}  prior {terms['prior']:.3f}"
        self._progress.update(self._task, completed=done, epoch=epoch + 1, rate=rate, terms=shown)

    def epoch(self, record: EpochRecord) -> None:
        """Leave a line behind."""
        self._progress.console.print(epoch_line(record, self._epochs), highlight=False)


def describe(facts: Mapping[str, Any]) -> str:
    """What a run is, in two lines, and a line for each note."""
    resolved = facts["resolved"]
    spread = f"{facts['processes']} processes of " if facts["processes"] > 1 else ""
    lines = [
        f"{facts['objective']} on {facts['data']}: {resolved['n_train']:,} rows to train on, "
        f"{resolved['n_held_out']:,} held out, effective prior weight {resolved['prior_weight']:g}",
        f"network {facts['network']} ({resolved['parameters']:,} parameters), likelihood {facts['likelihood']}, "
        f"latent dim {facts['latent_dim']}, batch {facts['batch_size']}, lr {facts['lr']:g}, "
        f"{spread}{facts['threads']} threads on {facts['device']}, seed {facts['seed']}",
    ]
    return "\n".join([*lines, *facts["notes"]])


def epoch_line(record: EpochRecord, epochs: int) -> str:
    """An epoch in one line, nats per observation."""
    parts = [f"epoch {record.epoch}/{epochs}"]
    for name, terms in (("train", record.train), ("held out", record.held_out)):
        if terms is not None:
            parts.append(
                f"{name}: loss {terms['loss']:.3f} = reconstruction {terms['reconstruction']:.3f}"
                f" + weight * prior {terms['prior']:.4f}"
                + (f"; ELBO {terms['elbo']:.3f}" if "elbo" in terms else "")  # no width, no ELBO
            )
    return "  |  ".join([*parts, f"{record.samples / record.seconds:,.0f} rows/s"])
