"""Metrics and settings for Weights & Biases, kept in the run until the user uploads them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from wiseale.config import setting
from wiseale.runs.directory import RunDirectory
from wiseale.runs.loggers.logger import Logger, settings_of

if TYPE_CHECKING:
    from wandb import Run


@dataclass(frozen=True)
class WandbLogger(Logger):
    """An offline run under ``RUN/wandb``; ``wandb sync RUN/wandb/offline-run-*`` uploads it."""

    project: str = setting("wiseale", "project to which `wandb sync` adds the run")

    package: ClassVar[str | None] = "wandb"
    extra: ClassVar[str] = "wandb"

    @contextlib.contextmanager
    def opened(self, run: RunDirectory) -> Iterator[_History]:
        """An offline run from the first epoch on; one that is written again keeps its id, so that it stays one run."""
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        earlier = sorted((run.path / "wandb").glob("offline-run-*"))
        known = earlier[-1].name.rpartition("-")[2] if earlier else None
        for stale in earlier:
            shutil.rmtree(stale)
        settings = wandb.Settings(
            mode="offline", silent=True, console="off", x_disable_stats=True, disable_code=True, disable_git=True
        )
        started = wandb.init(
            project=self.project,
            id=known,
            name=run.path.name,
            dir=run.path,
            config=settings_of(run),
            settings=settings,
            reinit="create_new",
        )
        code = 1
        try:
            yield _History(started)
            code = 0
        finally:
            started.finish(exit_code=code)


class _History:
    def __init__(self, run: Run) -> None:
        self._run = run

    def write(self, step: int, at: float, numbers: Mapping[str, float]) -> None:
        self._run.log({**numbers, "_timestamp": at}, step=step)
