"""A run as others read it: settings, history, the trained model, and the rows that it learned from or did not."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from wiseale.data import Dataset, load_dataset
from wiseale.data.dataset import Progress
from wiseale.errors import DataError, RunError
from wiseale.models.inference import Codec
from wiseale.models.model_file import load_model
from wiseale.runs.directory import RunDirectory
from wiseale.runs.notebook import TERMS, curves_svg, table_html
from wiseale.runs.record import Environment, RunRecord
from wiseale.runs.rows import Indices, Selection, Split, read_other, require_shape, select
from wiseale.training.records import EpochRecord, RunFacts
from wiseale.training.settings import RunSettings
from wiseale.training.split import split_rows


class Run:
    """A run directory, opened; what is in it is read when it is asked for.

    ::

        run = Run.open(Path("runs/first"))
        run.settings.lr, run.facts.prior_weight, run.history[-1].train["loss"]
        codes = run.codec().encode(run.rows("held out").rows.x)

    Attributes:
        directory: its files.
        data: other data to apply the model to, in place of the run's own; None: its own.
    """

    def __init__(self, directory: RunDirectory, data: str | None = None, dataset: Dataset | None = None) -> None:
        self.directory = directory
        self.data = data
        self._dataset = dataset

    @classmethod
    def open(cls, path: Path, data: str | None = None, dataset: Dataset | None = None) -> Run:
        """The run at this path; ``dataset`` is its own data, where that is in memory already."""
        return cls(RunDirectory.open(path), data, dataset)

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.directory.path

    @property
    def finished(self) -> bool:
        """Whether training has ended."""
        return self.directory.finished

    @cached_property
    def record(self) -> RunRecord:
        """The settings and the facts."""
        return self.directory.read_record()

    @property
    def settings(self) -> RunSettings:
        """What it is made from."""
        return self.record.settings

    @property
    def facts(self) -> RunFacts:
        """What follows from the settings and the data."""
        return self.record.facts

    @property
    def environment(self) -> Environment:
        """Versions and machine."""
        return self.directory.read_environment()

    @property
    def history(self) -> list[EpochRecord]:
        """The terms of each epoch so far."""
        return self.directory.read_metrics()

    def codec(self, *, exact: bool = True) -> Codec:
        """The trained model, for rows; ``exact=False`` computes tables in float32, enough for means over many rows."""
        if not self.finished:
            raise RunError(f"{self.path} has not finished: continue it with `wiseale resume {self.path}` first")
        return Codec(*load_model(self.directory.model), exact=exact)

    @cached_property
    def fast_codec(self) -> Codec:
        """The trained model in float32, for measures and pictures."""
        return self.codec(exact=False)

    @property
    def dataset(self) -> Dataset:
        """The run's own data, which must not have changed, or the other data."""
        return self._dataset if self._dataset is not None else self.load()

    def load(self, root: Path | None = None, progress: Progress | None = None) -> Dataset:
        """The data, read from another folder of datasets than the run's or with a display of the progress."""
        own, root = self.settings.data, root or Path(self.settings.data_root)
        if self.data is not None:
            self._dataset = read_other(self.fast_codec, self.data, own, root, progress)
            return self._dataset
        codec = self.fast_codec
        dataset = load_dataset(own, root, progress)
        require_shape(codec, dataset, own)
        if self.held_out_of(dataset) is None:
            raise DataError(f"{own} has changed since the run was made: give the data to use with --data")
        self._dataset = dataset
        return dataset

    def rows(self, split: Split = "unseen", most: int | None = None) -> Selection:
        """Rows of the data; of more than ``most``, evenly spaced ones."""
        dataset = self.dataset
        return select(dataset, split, None if self.data is not None else self.held_out_of(dataset), most)

    def held_out_of(self, dataset: Dataset) -> Indices | None:
        """The numbers of the training rows that the run held out; None where the dataset is not that of the run."""
        if dataset.fingerprint != self.facts.data_fingerprint:
            return None
        settings = self.settings
        return split_rows(len(dataset.train), settings.held_out, settings.held_out_most, settings.seed).held_out

    def _repr_html_(self) -> str:
        """The run in a notebook: its settings, and the curves of its terms so far."""
        values, metrics = self.settings.to_values(), self.history
        names = ("data", "objective", "network", "likelihood", "latent_dim", "batch_size", "lr", "seed")
        facts = {name: str(values[name]) for name in names}
        state = "finished" if self.finished else "not finished"
        facts["epochs"] = f"{len(metrics)} of at most {self.settings.max_epochs}, {state}"
        curves = {
            term: {
                "train": [(epoch.epoch, epoch.train[term]) for epoch in metrics if term in epoch.train],
                "held out": [(e.epoch, e.held_out[term]) for e in metrics if e.held_out and term in e.held_out],
            }
            for term in TERMS
        }
        return table_html(f"Run {self.path}", facts) + curves_svg(curves)
