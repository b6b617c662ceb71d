"""The lines of parallel runs."""

import io

from rich.console import Console

from wiseale.cli.progress import JobBoard
from wiseale.config import TrainConfig
from wiseale.data import load_dataset
from wiseale.experiments.jobs import Job
from wiseale.runs.record import RunRecord
from wiseale.training.plan import resolve
from wiseale.training.settings import RunFacts


def test_epochs_that_come_from_the_dataset_are_shown_once_they_are_known(tmp_path):
    asked = TrainConfig(data="sine:n=40,n_test=5")
    job, text = Job("one", asked, tmp_path / "run"), io.StringIO()
    board = JobBoard(Console(file=text, width=80), None)
    board.show([(job, "training")])
    assert text.getvalue() == "one: training, epoch 0\n"
    resolved = resolve(asked, load_dataset(asked.data))
    facts = RunFacts(1.0, 2, 38, 2, (1, 256), 10, "none", "0" * 64)
    job.out.mkdir()
    (job.out / "config.json").write_text(RunRecord(resolved, facts).to_json())
    (job.out / "metrics.jsonl").write_text("{}\n")
    board.show([(job, "training")])
    assert text.getvalue().endswith(f"one: training, epoch 1/{resolved.max_epochs}\n")
