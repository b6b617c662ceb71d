"""Open the runs and models to explore, and choose the rows that are shown in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wiseale.data import Rows
from wiseale.data.dataset import Progress
from wiseale.errors import DataError, RunError
from wiseale.experiments.comparison import COMPARISON, read_comparison
from wiseale.models.inference import Codec, Codes, open_codec
from wiseale.models.places import ZooEntry, read_codes, read_entry
from wiseale.runs.run import Run, SelectedRows, read_other, select
from wiseale.spaces import MixedSpace

MOST_RUNS = 4
MOST_ROWS = 50_000
FEWEST_UNSEEN = 300
"""With at least so many held-out rows the map shows these alone, else all rows, and a colouring tells them apart."""


@dataclass(frozen=True)
class Opened:
    """A model to explore: its name on the page, its run, None where a model directory was given, and its path."""

    name: str
    codec: Codec
    run: Run | None
    path: Path | None = None


@dataclass(frozen=True, kw_only=True)
class ShownRows(SelectedRows):
    """The rows on the map, which are rows of a dataset.

    Attributes:
        data: the dataset's name.
        columns: names of a table's features.
        circular: period of each factor that wraps around.
        trained_on: for each run, how many of these rows it was trained on; None where that is not known.
        codes: for each run, the codes of these rows, where the rows themselves are not at hand; else empty.
    """

    data: str
    columns: tuple[str, ...] = ()
    circular: Mapping[str, float] = field(default_factory=dict)
    trained_on: tuple[int | None, ...] = (None,)
    codes: tuple[Codes, ...] = ()

    @property
    def learned_from(self) -> npt.NDArray[np.bool_] | None:
        """Whether the first run was trained on a row, (n,), where rows of both kinds are shown."""
        return None if self.unseen is None or not self.unseen.any() else ~self.unseen


def expand(paths: Sequence[Path]) -> list[Path]:
    """Runs and models as given; a comparison stands for the first seed of each of its systems."""
    places: list[Path] = []
    for path in paths:
        if (path / COMPARISON).is_file():
            comparison = read_comparison(path)
            runs = [comparison.run_path(system, comparison.base.seed) for system in comparison.systems]
            places += [run for run in runs if (run / "model").is_dir()]
        else:
            places.append(path)
    if not places:
        raise RunError(f"{paths[0]} has no finished run: continue it first")
    if len(places) > MOST_RUNS:
        names = ", ".join(str(path) for path in places[:3])
        raise RunError(f"{len(places)} runs to explore, at most {MOST_RUNS} fit side by side: name them ({names}, …)")
    return places


def open_models(paths: Sequence[Path]) -> list[Opened]:
    """Load every model; each is named by as much of the end of its path as tells it apart."""
    models = []
    for path, name in zip(paths, _names(paths), strict=True):
        models.append(Opened(name, open_codec(path), Run.open(path) if (path / "model").is_dir() else None, path))
    shapes = {model.codec.model.x_shape for model in models}
    if len(shapes) > 1:
        raise DataError(f"the models take rows of different shapes ({', '.join(map(str, shapes))}): explore them apart")
    spaces = [model.codec.space for model in models]
    if len({space.meaning if isinstance(space, MixedSpace) else "" for space in spaces}) > 1:
        raise DataError("the models read their columns as different kinds or levels: explore them apart")
    return models


def choose_rows(
    models: Sequence[Opened],
    data: str | None,
    data_root: Path | None = None,
    most: int = MOST_ROWS,
    progress: Progress | None = None,
) -> ShownRows:
    """Test rows, else the rows that the first run held out, else all rows of other data; evenly spaced if too many.

    Where the run held out fewer than ``FEWEST_UNSEEN`` rows, all its rows are shown.
    """
    first = models[0]
    if first.run is not None:
        dataset = Run(first.run.path, data).load(data_root, progress)
    elif data is not None:
        dataset = read_other(first.codec, data, root=data_root, progress=progress)
    else:
        raise DataError(f"{first.name} is a model, which does not know its data: give the rows to show with --data")
    held_out = [model.run.held_out_of(dataset) if model.run else None for model in models]
    own = held_out[0]
    alone = data is None and own is not None and len(own) >= FEWEST_UNSEEN
    selection = select(dataset, "unseen" if dataset.test is not None or alone else "all rows", own, most)
    learned = 0 if selection.split == "test" else len(selection.numbers)
    return ShownRows(
        **vars(selection),
        data=dataset.name,
        columns=first.codec.space.names or dataset.space.names,
        circular=dataset.circular,
        trained_on=tuple(
            None if held is None else learned and learned - int(np.isin(selection.numbers, held).sum())
            for held in held_out
        ),
    )


def shown_dataset(models: Sequence[Opened]) -> str | None:
    """The generated dataset that suits models of the zoo; None where there is none, or a model is not of the zoo."""
    entries = _zoo_entries(models)
    return entries[0].shown or None if entries else None


def stored_rows(models: Sequence[Opened]) -> ShownRows | None:
    """Test rows as codes stored with models of the zoo, whose datasets are not installed; None for other models."""
    entries = _zoo_entries(models)
    if not entries:
        return None
    stored, entry = [read_codes(model.path) for model in models if model.path], entries[0]
    first = stored[0]
    if any(not np.array_equal(codes.numbers, first.numbers) for codes in stored):
        raise DataError(f"the models keep codes of different rows: give the rows to show with --data {entry.dataset}")
    placeholders = np.broadcast_to(np.float32(0), (len(first.numbers), *models[0].codec.model.x_shape))
    return ShownRows(
        Rows(placeholders, factors=first.labels),
        "test",
        first.numbers,
        entry.available,
        data=entry.dataset,
        trained_on=(0,) * len(models),
        codes=tuple(codes.codes for codes in stored),
    )


def _zoo_entries(models: Sequence[Opened]) -> list[ZooEntry]:
    """What the zoo says of each model; empty unless all are of the zoo and of one dataset."""
    entries = [entry for model in models if model.path and (entry := read_entry(model.path))]
    return entries if len(entries) == len(models) and len({entry.dataset for entry in entries}) == 1 else []


def _names(paths: Sequence[Path]) -> list[str]:
    whole = [path.absolute().parts for path in paths]
    if len(set(whole)) < len(whole):
        raise RunError("the same run is given twice: name each once")
    by_depth = (["/".join(parts[-depth:]) for parts in whole] for depth in range(1, max(map(len, whole)) + 1))
    return next(names for names in by_depth if len(set(names)) == len(names))
