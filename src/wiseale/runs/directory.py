"""The directory a run lives in: what is in it, who may write to it, and how lines are appended and cut."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wiseale.errors import RunError
from wiseale.platform.atomic_files import rename_directory, to_json, write_text
from wiseale.platform.locks import exclusive_lock


class RunDirectory:
    """Names of the parts of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.environment = path / "environment.json"
        self.metrics = path / "metrics.jsonl"
        self.timing = path / "timing.jsonl"
        self.checkpoints = path / "checkpoints"
        self.model = path / "model"
        self.evaluation = path / "evaluation.json"
        self.figures = path / "figures"
        self.tensorboard = path / "tensorboard"

    @classmethod
    def create(cls, path: Path, config: dict[str, Any], environment: dict[str, Any]) -> RunDirectory:
        """Make a new run directory; it appears at once with its configuration inside."""
        path = path.absolute()
        refuse_existing(path)
        temporary = path.with_name(f".{path.name}.partial-{os.getpid()}")
        try:
            temporary.mkdir(parents=True)
            write_text(temporary / "config.json", to_json(config))
            write_text(temporary / "environment.json", to_json(environment))
            rename_directory(temporary, path)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise RunError(f"cannot write the run directory {path}: {error.strerror}") from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """An existing run directory."""
        run = cls(path.absolute())
        if not run.config.is_file():
            raise RunError(f"{path} is not a run directory: it has no config.json")
        return run

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end: the model is written last."""
        return self.model.is_dir()

    def read_config(self) -> dict[str, Any]:
        """The run's complete configuration."""
        try:
            config = json.loads(self.config.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"cannot read {self.config}: {error}") from None
        if not isinstance(config, dict):
            raise RunError(f"{self.config} must hold a table of settings")
        return config

    def read_metrics(self) -> list[dict[str, Any]]:
        """The terms of each epoch."""
        return _read_lines(self.metrics)

    def read_timing(self) -> list[dict[str, Any]]:
        """The seconds and memory of each epoch."""
        return _read_lines(self.timing)

    def read_evaluation(self) -> dict[str, Any]:
        """What ``wiseale evaluate`` wrote; empty where the run has not been evaluated."""
        try:
            evaluation = json.loads(self.evaluation.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return evaluation if isinstance(evaluation, dict) else {}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Reserve the run for this process; the lock of a killed process is released."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(exclusive_lock(self.path, wait=False))
            except BlockingIOError:
                raise RunError(f"{self.path} is in use by another process: wait for it, or stop it") from None
            yield

    def cut_after(self, epoch: int) -> None:
        """Drop reports of epochs after this one, and a line a kill left unfinished."""
        for path in (self.metrics, self.timing):
            kept = []
            for line in path.read_bytes().splitlines(keepends=True) if path.exists() else []:
                if not line.endswith(b"\n") or json.loads(line)["epoch"] > epoch:
                    break
                kept.append(line)
            write_text(path, b"".join(kept).decode())


def refuse_existing(path: Path) -> None:
    """An error where a new run would overwrite something, or cannot be written."""
    if path.exists():
        what = "a run directory: continue it with `wiseale resume`" if (path / "config.json").exists() else "not empty"
        if not path.is_dir() or any(path.iterdir()):
            raise RunError(f"{path} exists and is {what}, or choose another --out")
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not parent.is_dir():
        raise RunError(f"cannot write the run directory {path}: {parent} is not a directory")
    if not os.access(parent, os.W_OK):
        raise RunError(f"cannot write the run directory {path}: no permission in {parent}")


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Add one JSON line, on disk before the next checkpoint is."""
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(record, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
