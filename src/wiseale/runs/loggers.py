"""Loggers: the metrics of a run for other programs; ``metrics.jsonl`` stays the record of the run."""

from __future__ import annotations

import contextlib
import csv
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from wiseale.config import setting
from wiseale.errors import RunError
from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import parse_table, read_text, to_json
from wiseale.runs.directory import RunDirectory
from wiseale.training.loop import EpochRecord
from wiseale.training.plan import make_logger
from wiseale.training.settings import Logger, RunSettings

if TYPE_CHECKING:
    from mlflow import MlflowClient

Write = Callable[[int, float, Mapping[str, float]], None]
"""Writes the numbers of an epoch, by name, that ended after some steps at a time (Unix seconds).

When a run is resumed, every epoch so far is written again, with the same numbers.
"""

_QUIET = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
"""MLflow refuses stores in folders unless asked for them, and reports its use to its makers unless asked not to."""

_LONGEST = 6000  # characters of a parameter that every store of MLflow takes


@dataclass(frozen=True)
class CsvLogger(Logger):
    """``RUN/metrics.csv`` for spreadsheets: a line per epoch; a cell is empty where the epoch has no such number."""

    @contextlib.contextmanager
    def opened(self, run: RunDirectory) -> Iterator[Write]:
        """A table from the first epoch on."""
        path, columns = run.path / "metrics.csv", list[str]()
        lines: list[Mapping[str, float]] = []
        path.unlink(missing_ok=True)

        def write(step: int, at: float, numbers: Mapping[str, float]) -> None:
            """Append a line, or write all again where there is a new column: held-out numbers may come epochs later."""
            line = {"step": step, **numbers}
            lines.append(line)
            new = [name for name in line if name not in columns]
            columns.extend(new)
            with path.open("w" if new else "a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, columns)
                if new:
                    writer.writeheader()
                writer.writerows(lines if new else [line])

        yield write


@dataclass(frozen=True)
class TensorBoardLogger(Logger):
    """``tensorboard --logdir RUN`` shows the run, or the directory of a comparison all of its runs."""

    package: ClassVar[str | None] = "tensorboard"
    extra: ClassVar[str] = "logging"

    @contextlib.contextmanager
    def opened(self, run: RunDirectory) -> Iterator[Write]:
        """Events from the first epoch on."""
        from torch.utils.tensorboard import SummaryWriter

        # All events are written again: a kill may have lost some, and those of epochs that are trained again must not
        # stay. purge_step tells a running TensorBoard server to drop what it has read.
        folder = run.path / "tensorboard"
        for stale in folder.glob("events.*"):
            stale.unlink()
        with contextlib.closing(SummaryWriter(str(folder), purge_step=0)) as events:

            def write(step: int, at: float, numbers: Mapping[str, float]) -> None:
                for name, value in numbers.items():
                    events.add_scalar(name, value, step, walltime=at)
                events.flush()

            yield write


@dataclass(frozen=True)
class WandbLogger(Logger):
    """An offline run under ``RUN/wandb``; ``wandb sync RUN/wandb/offline-run-*`` uploads it."""

    project: str = setting("wiseale", "project to which `wandb sync` adds the run")

    package: ClassVar[str | None] = "wandb"
    extra: ClassVar[str] = "wandb"

    @contextlib.contextmanager
    def opened(self, run: RunDirectory) -> Iterator[Write]:
        """An offline run from the first epoch on; one that is written again keeps its id, so that it stays one run."""
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        earlier = sorted((run.path / "wandb").glob("offline-run-*"))
        run_id = earlier[-1].name.rpartition("-")[2] if earlier else None
        for stale in earlier:
            shutil.rmtree(stale)
        history = wandb.init(
            project=self.project,
            id=run_id,
            name=run.path.name,
            dir=run.path,
            config=_settings(run),
            settings=wandb.Settings(
                mode="offline", silent=True, console="off", x_disable_stats=True, disable_code=True, disable_git=True
            ),
            reinit="create_new",
        )
        code = 1
        try:
            yield lambda step, at, numbers: history.log({**numbers, "_timestamp": at}, step=step)
            code = 0
        finally:
            history.finish(exit_code=code)


@dataclass(frozen=True)
class MlflowLogger(Logger):
    """A run of MLflow, in the store ``RUN/mlruns`` unless a tracking server or database is named."""

    experiment: str = setting("wiseale", "experiment to which the run is added")
    uri: str = setting("auto", "tracking store; auto: $MLFLOW_TRACKING_URI, else the folder RUN/mlruns")

    package: ClassVar[str | None] = "mlflow"
    extra: ClassVar[str] = "mlflow"

    @contextlib.contextmanager
    def opened(self, run: RunDirectory) -> Iterator[Write]:
        """The run's earlier run in MLflow where it has one, else a new one."""
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        with _mlflow_errors_in_one_line():
            from mlflow import MlflowClient
            from mlflow.entities import Metric

            given = os.environ.get("MLFLOW_TRACKING_URI", "") if self.uri == "auto" else self.uri
            uri = given or (run.path / "mlruns").as_uri()
            client = MlflowClient(tracking_uri=uri)
            run_id = self._run_id(client, run, uri)
            client.update_run(run_id, status="RUNNING")
            # MLflow cannot delete, and epochs trained again are equal: only those it does not hold are written.
            known = {metric.step for metric in client.get_metric_history(run_id, "train/loss")}

        def write(step: int, at: float, numbers: Mapping[str, float]) -> None:
            if step not in known:
                metrics = [Metric(name, float(value), int(1000 * at), step) for name, value in numbers.items()]
                with _mlflow_errors_in_one_line():
                    client.log_batch(run_id, metrics=metrics)

        try:
            yield write
        finally:
            status = "FINISHED" if sys.exc_info()[0] is None else "FAILED"
            with _mlflow_errors_in_one_line():
                client.set_terminated(run_id, status)

    def _run_id(self, client: MlflowClient, run: RunDirectory, uri: str) -> str:
        """The id kept in ``RUN/mlflow.json``, if it is of this store; else that of a new run with these settings."""
        from mlflow.entities import Param

        file = run.path / "mlflow.json"
        if file.is_file():
            with contextlib.suppress(OSError, ValueError):
                known = parse_table(read_text(file))
                if known.get("uri") == uri and isinstance(run_id := known.get("run_id"), str):
                    return run_id
        experiment = client.get_experiment_by_name(self.experiment)
        number = experiment.experiment_id if experiment else client.create_experiment(self.experiment)
        run_id = str(client.create_run(number, run_name=run.path.name).info.run_id)
        client.log_batch(run_id, params=[Param(name, text[:_LONGEST]) for name, text in _settings(run).items()])
        write_text(file, to_json({"uri": uri, "run_id": run_id}))
        return run_id


@contextlib.contextmanager
def _mlflow_errors_in_one_line() -> Iterator[None]:
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        problem = str(error).splitlines()[0]
        raise RunError(f"MLflow: {problem}; `wiseale resume` continues the run and logs what is missing") from None


def _settings(run: RunDirectory) -> dict[str, str]:
    """The settings of a run that have a value, as text: what tracking programs call its parameters."""
    settings = run.read_record().settings.to_values()
    return {name: str(value) for name, value in settings.items() if value is not None}


@contextlib.contextmanager
def logged(run: RunDirectory, settings: RunSettings) -> Iterator[Write | None]:
    """The writer of the settings' logger, if they have one; it has written every epoch of metrics.jsonl.

    Those are dated as if the run had not been interrupted.
    """
    logger = make_logger(settings.spec("logger")) if settings.logger is not None else None  # its package may be missing
    if logger is None:
        yield None
        return
    with logger.opened(run) as write:
        timing = {cost.epoch: cost for cost in run.read_timing()}
        at = time.time() - sum(cost.seconds for cost in timing.values())
        for record in run.read_metrics():
            cost = timing.get(record.epoch)  # None where the user has deleted a damaged timing.jsonl
            at += cost.seconds if cost else 0.0
            write(record.step, at, numbers_of(record, cost.samples_per_second if cost else None))
        yield write


def numbers_of(record: EpochRecord, rate: float | None) -> dict[str, float]:
    """Every number of an epoch under its name: ``epoch``, ``lr``, …, ``train/loss``, ``held_out/loss``, …."""
    named = {"epoch": record.epoch, "lr": record.lr, "warmup": record.warmup}
    if rate is not None:
        named["samples_per_second"] = rate
    for part, terms in (("train", record.train), ("held_out", record.held_out)):
        named |= {f"{part}/{term}": value for term, value in (terms or {}).items()}
    return named
