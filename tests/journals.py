"""A journal and display for tests: keeps what the loop reports, saves where asked, stops after given steps."""

from wiseale.runs.checkpoint import Snapshot, save_checkpoint
from wiseale.runs.record import History

NO_HISTORY = History("", 0, "")


class MemoryJournal:
    """Serves as the loop's ``Journal`` and as the ``Display`` of a run.

    Attributes:
        records: the record of every epoch.
        saved: the step of every checkpoint; written only with a ``directory``.
    """

    def __init__(self, stop_after=(), directory=None):
        self.records, self.saved = [], []
        self.stop_after, self.directory = stop_after, directory
        self._steps = 0

    def loading(self, done, total):
        pass

    def started(self, *facts):
        pass

    def step(self, epoch, step_in_epoch, steps_per_epoch, terms):
        pass

    def epoch(self, record):
        self.records.append(record)

    def checkpoint(self, learner):
        self.saved.append(learner.progress.step)
        if self.directory:
            save_checkpoint(self.directory, Snapshot.of(learner, NO_HISTORY))

    def interrupted(self):
        self._steps += 1
        return self._steps in self.stop_after
