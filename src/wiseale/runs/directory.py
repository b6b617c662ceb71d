"""The directory of a run: its files, its lock, and reading, appending and cutting its records."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from wiseale.errors import RunError, WiseAleError
from wiseale.platform.atomic_files import rename_directory, write_text
from wiseale.platform.locks import exclusive_lock
from wiseale.runs.record import Environment, EpochTiming, RunRecord
from wiseale.training.records import EpochRecord


class Record(Protocol):
    """A record that JSON text is read into and written from."""

    def to_json(self) -> str:
        """The record as JSON."""
        ...

    @classmethod
    def from_json(cls, text: str) -> Record:
        """The record in JSON text; ValueError or TypeError where it is not one."""
        ...


R = TypeVar("R", bound=Record)


class RunDirectory:
    """The paths of a run's files, and the records in them."""

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
    def create(cls, path: Path, record: RunRecord, environment: Environment) -> RunDirectory:
        """Make a new run directory; it appears by a rename, with its configuration inside."""
        path = path.absolute()
        refuse_existing(path)
        temporary = path.with_name(f".{path.name}.partial-{os.getpid()}")
        try:
            temporary.mkdir(parents=True)
            write_text(temporary / "config.json", record.to_json())
            write_text(temporary / "environment.json", environment.to_json())
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
        """Whether training has ended: the model is written last."""
        return self.model.is_dir()

    def read_record(self) -> RunRecord:
        """The run's settings, and the facts that follow from them."""
        return read(RunRecord, self.config)

    def read_environment(self) -> Environment:
        """The versions, the machine and the data the run was started with."""
        return read(Environment, self.environment)

    def read_metrics(self) -> list[EpochRecord]:
        """The terms of each epoch."""
        return _read_lines(EpochRecord, self.metrics)

    def read_timing(self) -> list[EpochTiming]:
        """The seconds and memory of each epoch."""
        return _read_lines(EpochTiming, self.timing)

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
        """Drop the records of later epochs, and an incomplete last line left by a kill."""
        kinds: dict[Path, type[EpochRecord] | type[EpochTiming]] = {self.metrics: EpochRecord, self.timing: EpochTiming}
        for path, kind in kinds.items():
            kept = []
            for line in path.read_bytes().splitlines(keepends=True) if path.exists() else []:
                if not line.endswith(b"\n") or kind.from_json(line.decode()).epoch > epoch:
                    break
                kept.append(line)
            write_text(path, b"".join(kept).decode())


def refuse_existing(path: Path) -> None:
    """An error where a new run would overwrite something or cannot be written."""
    if path.exists():
        what = "a run directory: continue it with `wiseale resume`" if (path / "config.json").exists() else "not empty"
        if not path.is_dir() or any(path.iterdir()):
            raise RunError(f"{path} exists and is {what}, or choose another --out")
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not parent.is_dir():
        raise RunError(f"cannot write the run directory {path}: {parent} is not a directory")
    if not os.access(parent, os.W_OK):
        raise RunError(f"cannot write the run directory {path}: no permission in {parent}")


def read(kind: type[R], path: Path) -> R:
    """The record in a file; an error names the file and what is wrong."""
    try:
        return kind.from_json(path.read_text(encoding="utf-8"))  # type: ignore[return-value]
    except WiseAleError as error:
        raise RunError(f"{path}: {error}") from None
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"cannot read {path}: {error}") from None


def _read_lines(kind: type[R], path: Path) -> list[R]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [kind.from_json(line) for line in lines]  # type: ignore[misc]


def append_line(path: Path, record: Record) -> None:
    """Add one line of JSON and flush it to disk, so that it is there before the next checkpoint."""
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(record.to_json() + "\n")
        file.flush()
        os.fsync(file.fileno())
