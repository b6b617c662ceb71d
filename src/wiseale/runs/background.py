"""Writes checkpoints in a thread beside training, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background:
    """Runs one job at a time in a thread; an error of a job is raised by the next call that asks for it.

    The thread is not a daemon: an orderly exit of the process waits for the job under way. A kill ends it like any
    other work, so jobs must leave their files whole at every moment.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether a job is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, job: Callable[[], object]) -> None:
        """Begin a job, after the one under way has ended."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(job,), name="wiseale-checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the job under way, if any."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.raise_error()

    def raise_error(self) -> None:
        """Raise the error that a job has ended with, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            self._error = error
