"""Metrics and settings for MLflow, in a folder of the run or on the user's own server."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from wiseale.config import setting
from wiseale.errors import RunError
from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import parse_table, read_text, to_json
from wiseale.runs.directory import RunDirectory
from wiseale.runs.loggers.logger import Logger, settings_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

_QUIET = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
"""MLflow refuses stores in folders unless asked for them, and reports its use to its makers unless asked not to."""

_LONGEST = 6000  # characters of a parameter that every store of MLflow takes


@dataclass(frozen=True)
class MlflowLogger(Logger):
    """A run of MLflow, in the store ``RUN/mlruns`` unless a tracking server or database is named."""

    experiment: str = setting("wiseale", "experiment to which the run is added")
    uri: str = setting("auto", "tracking store; auto: $MLFLOW_TRACKING_URI, else the folder RUN/mlruns")

    package: ClassVar[str | None] = "mlflow"
    extra: ClassVar[str] = "mlflow"

    @contextlib.contextmanager
    def opened(self, run: RunDirectory) -> Iterator[_Metrics]:
        """The run's earlier run in MLflow where it has one, else a new one."""
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        with _in_one_line():
            from mlflow import MlflowClient

            asked = os.environ.get("MLFLOW_TRACKING_URI", "") if self.uri == "auto" else self.uri
            uri = asked or (run.path / "mlruns").as_uri()
            client = MlflowClient(tracking_uri=uri)
            run_id = self._run_id(client, run, uri)
            client.update_run(run_id, status="RUNNING")
            metrics = _Metrics(client, run_id)
        try:
            yield metrics
        finally:
            ended = "FINISHED" if sys.exc_info()[0] is None else "FAILED"
            with _in_one_line():
                client.set_terminated(run_id, ended)

    def _run_id(self, client: MlflowClient, run: RunDirectory, uri: str) -> str:
        """The id kept in ``RUN/mlflow.json``, if it is of this store; else that of a new run with these settings."""
        from mlflow.entities import Param

        kept = run.path / "mlflow.json"
        if kept.is_file():
            with contextlib.suppress(OSError, ValueError):
                known = parse_table(read_text(kept))
                if known.get("uri") == uri and isinstance(run_id := known.get("run_id"), str):
                    return run_id
        experiment = client.get_experiment_by_name(self.experiment)
        number = experiment.experiment_id if experiment else client.create_experiment(self.experiment)
        run_id = str(client.create_run(number, run_name=run.path.name).info.run_id)
        client.log_batch(run_id, params=[Param(name, text[:_LONGEST]) for name, text in settings_of(run).items()])
        write_text(kept, to_json({"uri": uri, "run_id": run_id}))
        return run_id


class _Metrics:
    """Writes the epochs that the store does not hold yet: MLflow cannot delete, and epochs trained again are equal."""

    def __init__(self, client: MlflowClient, run_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._known = {metric.step for metric in client.get_metric_history(run_id, "train/loss")}

    def write(self, step: int, at: float, numbers: Mapping[str, float]) -> None:
        if step in self._known:
            return
        with _in_one_line():
            from mlflow.entities import Metric

            metrics = [Metric(name, float(value), int(1000 * at), step) for name, value in numbers.items()]
            self._client.log_batch(self._run_id, metrics=metrics)


@contextlib.contextmanager
def _in_one_line() -> Iterator[None]:
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        problem = str(error).splitlines()[0]
        raise RunError(f"MLflow: {problem}; `wiseale resume` continues the run and logs what is missing") from None
