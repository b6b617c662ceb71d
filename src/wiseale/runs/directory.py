"""The directory of a run: its files, its lock, and reading, appending and cutting its records."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TypeVar

from wiseale.errors import ModelFileError, RunError, WiseAleError
from wiseale.models.model_file import WEIGHTS
from wiseale.models.places import ZOO
from wiseale.platform.atomic_files import (
    clear_leftovers,
    make_folder,
    rename_directory,
    sha256,
    sync,
    temporary_sibling,
    write_text,
)
from wiseale.platform.json_files import parse_table, read_text, record, to_json
from wiseale.platform.locks import reserved
from wiseale.runs.checkpoint import newest_state
from wiseale.runs.record import Environment, EpochTiming, RunRecord
from wiseale.training.loop import EpochRecord

_MAX_RECORDS = 1 << 30  # bytes of metrics.jsonl and timing.jsonl

T = TypeVar("T")
E = TypeVar("E", EpochRecord, EpochTiming)


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

    @classmethod
    def create(cls, path: Path, run: RunRecord, environment: Environment) -> RunDirectory:
        """Make a new run directory; it appears by a rename, with its configuration inside."""
        path = path.absolute()
        refuse_existing(path)
        temporary = temporary_sibling(path)
        try:
            make_folder(temporary)
            write_text(temporary / "config.json", run.to_json())
            environment = replace(environment, config_sha256=sha256(temporary / "config.json"))
            write_text(temporary / "environment.json", to_json(asdict(environment)))
            rename_directory(temporary, path)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise RunError(f"cannot write the run directory {path}: {error.strerror}") from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """An existing run directory."""
        run = cls(path.absolute())
        if str(path).startswith((ZOO, "hf:")) or (path / WEIGHTS).is_file():
            raise RunError(
                f"{path} is a model without its run, whose settings and rows are needed here: give the folder that "
                "`wiseale train DATA --out RUN` wrote, or apply the model with `wiseale embed` or `wiseale explore`"
            )
        if not run.config.is_file():
            raise RunError(f"{path} is not a run directory: it has no config.json")
        return run

    @property
    def finished(self) -> bool:
        """Whether training has ended: the model is written last."""
        return self.model.is_dir()

    def read_record(self) -> RunRecord:
        """The run's settings, and the facts that follow from them; those of the newest checkpoint, where it has one."""
        run = read(RunRecord.from_json, self.config)
        if (newest := newest_state(self.checkpoints)) is not None:
            newest.history.check_experiment(run, self.config)
        return run

    def read_environment(self) -> Environment:
        """The versions, the machine and the data the run was started with."""
        return read(lambda text: record(Environment, parse_table(text)), self.environment)

    def read_metrics(self) -> list[EpochRecord]:
        """The terms of each epoch; all that were there at the newest checkpoint."""
        if (newest := newest_state(self.checkpoints)) is not None:
            try:
                newest.history.check_metrics(self.metrics)
            except ModelFileError as error:
                raise RunError(f"{error}; restore it from a copy") from None
        return _read_lines(EpochRecord, self.metrics)

    def read_timing(self) -> list[EpochTiming]:
        """The seconds and memory of each epoch; the first may be missing."""
        return _read_lines(EpochTiming, self.timing)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Reserve the run for this process; the lock of a killed process is released."""
        with reserved(self.path):
            for folder in (self.path, self.checkpoints):  # whoever left something there has been killed
                clear_leftovers(folder)
            yield

    def sync_records(self) -> None:
        """Wait until all lines of metrics.jsonl and timing.jsonl, and the names in the directory, are on disk."""
        self.checkpoints.mkdir(exist_ok=True)
        for path in (self.metrics, self.timing):
            if path.exists():
                sync(path)
        sync(self.path)

    def cut_after(self, epoch: int) -> None:
        """Drop the records of later epochs, and what a kill left of a line; all epochs up to it must be there."""
        terms = _read_lines(EpochRecord, self.metrics, epoch)
        if len(terms) != epoch:
            raise RunError(f"{self.metrics} has {len(terms)} of {epoch} epochs: restore it from a copy, then resume")
        times = _read_lines(EpochTiming, self.timing, epoch)
        for path, lines in ((self.metrics, terms), (self.timing, times)):
            write_text(path, "".join(map(line_of, lines)))


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


def read(parse: Callable[[str], T], path: Path) -> T:
    """The record that ``parse`` reads in a file's text; an error names the file and what is wrong."""
    try:
        return parse(read_text(path))
    except WiseAleError as error:
        raise RunError(f"{path}: {error}") from None
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"cannot read {path}: {error}") from None


def _read_lines(kind: type[E], path: Path, last: int | None = None) -> list[E]:
    """The records of a file, one line for each epoch, of which the first may be missing in timing.jsonl alone.

    With ``last`` only those up to this epoch, and an incomplete last line is left out.
    """
    records: list[E] = []
    try:
        lines = read_text(path, _MAX_RECORDS).split("\n") if path.exists() else [""]
        if lines.pop() and last is None:
            raise ValueError("it ends in the middle of a line")
        for line in lines[:last]:
            records += [record(kind, parse_table(line))]  # one at a time: an error names the line
    except (OSError, ValueError) as error:
        remedy = "delete it: it holds nothing but times" if kind is EpochTiming else "restore it from a copy"
        raise RunError(f"{path}, line {len(records) + 1}, cannot be read: {error}; {remedy}") from None
    records = [one for one in records if last is None or one.epoch <= last]
    first = records[0].epoch if records and kind is EpochTiming else 1
    for number, one in enumerate(records):
        if one.epoch != first + number:
            raise RunError(f"{path}, line {number + 1}, is of epoch {one.epoch}: the lines are not those of a run")
    return records


def line_of(record: EpochRecord | EpochTiming) -> str:
    """One line of JSON."""
    kind = EpochTiming if isinstance(record, EpochTiming) else EpochRecord  # without what a record adds to it
    return json.dumps({item.name: getattr(record, item.name) for item in fields(kind)}, allow_nan=False) + "\n"


def append_line(path: Path, record: EpochRecord | EpochTiming) -> None:
    """Add one line of JSON; one that cannot be written whole, on a full disk say, is taken back.

    It reaches the disk with the next checkpoint, see :meth:`RunDirectory.sync_records`.
    """
    line = line_of(record).encode()
    with path.open("ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        try:
            while line:  # what could be written in part is asked for again, and the system says what is wrong
                line = line[file.write(line) or 0 :]
        except OSError as error:
            with contextlib.suppress(OSError):
                file.truncate(before)
            error.filename = str(path)  # writing to an open file does not name it
            raise
