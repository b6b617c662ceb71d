"""Events for TensorBoard under ``RUN/tensorboard``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from wiseale.runs.directory import RunDirectory
from wiseale.runs.loggers.logger import Logger

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


@dataclass(frozen=True)
class TensorBoardLogger(Logger):
    """``tensorboard --logdir RUN`` shows the run, or the directory of a comparison all of its runs."""

    package: ClassVar[str | None] = "tensorboard"
    extra: ClassVar[str] = "logging"

    @contextlib.contextmanager
    def opened(self, run: RunDirectory) -> Iterator[_Events]:
        """Events from the first epoch on."""
        from torch.utils.tensorboard import SummaryWriter

        # All events are written again: a kill may have lost some, and those of epochs that are trained again must not
        # stay. purge_step tells a running TensorBoard server to drop what it has read.
        folder = run.path / "tensorboard"
        for stale in folder.glob("events.*"):
            stale.unlink()
        with contextlib.closing(SummaryWriter(str(folder), purge_step=0)) as writer:
            yield _Events(writer)


class _Events:
    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def write(self, step: int, at: float, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step, walltime=at)
        self._writer.flush()
