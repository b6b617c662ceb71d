"""Bars for work before training: packing, rendering, downloading. Silent where standard error is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


@contextmanager
def loading_bar(doing: str = "preparing data") -> Iterator[Callable[[int, int | None], None]]:
    """A bar over rows, shown only if there is something to wait for."""
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task: list[TaskID] = []

        def show(done: int, total: int | None) -> None:
            if not task:
                task.append(progress.add_task("", total=total))
            progress.update(task[0], completed=done)

        yield show


@contextmanager
def download_bar() -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar over bytes for each file."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        tasks: dict[str, TaskID] = {}

        def show(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file, total=total)
            progress.update(tasks[file], completed=done, total=total)

        yield show
