"""Open the runs and models to explore, and choose the rows that are shown in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wiseale.data import Rows
from wiseale.data.dataset import Progress
from wiseale.errors import DataError, RunError
from wiseale.experiments.comparison import COMPARISON, read_comparison
from wiseale.models.inference import Codec, Codes, open_codec
from wiseale.runs.directory import RunDirectory
from wiseale.runs.run import Run, read_other, select
from wiseale.spaces import MixedSpace

MOST_RUNS = 4
MOST_ROWS = 50_000
FEWEST_UNSEEN = 300
"""With at least so many held-out rows the map shows these alone, else all rows, and a colouring tells them apart."""

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Opened:
    """A model to explore: its name on the page, and its run directory, None where a model directory was given.

    ``path`` is the model directory, where there is no run.
    """

    name: str
    codec: Codec
    run: RunDirectory | None
    path: Path | None = None

    @property
    def evaluated(self) -> RunDirectory | None:
        """The directory whose ``evaluation.json`` says what was measured: the run, or a model of the zoo."""
        return self.run or (RunDirectory(self.path) if self.path else None)


@dataclass(frozen=True)
class ShownRows:
    """The rows on the map.

    Attributes:
        rows: as they are stored.
        numbers: their numbers in the split, counted from 0, (n,).
        available: how many rows the split has.
        split: which rows these are: ``"test"``, ``"held out"`` or ``"all rows"``.
        data: the dataset's name.
        columns: names of a table's features.
        circular: period of each factor that wraps around.
        learned_from: whether the first run was trained on a row, (n,), where rows of both kinds are shown.
        trained_on: for each run, how many of these rows it was trained on; None where that is not known.
        codes: for each run, the codes of these rows, where the rows themselves are not at hand; else empty.
    """

    rows: Rows
    numbers: Indices
    available: int
    split: str
    data: str
    columns: tuple[str, ...]
    circular: Mapping[str, float]
    trained_on: tuple[int | None, ...]
    learned_from: npt.NDArray[np.bool_] | None = None
    codes: tuple[Codes, ...] = ()


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
    opened = []
    for path, name in zip(paths, _names(paths), strict=True):
        is_run = (path / "model").is_dir()
        opened.append(Opened(name, open_codec(path), RunDirectory.open(path) if is_run else None, path))
    shapes = {model.codec.model.x_shape for model in opened}
    if len(shapes) > 1:
        raise DataError(f"the models take rows of different shapes ({', '.join(map(str, shapes))}): explore them apart")
    spaces = [model.codec.space for model in opened]
    if len({space.meaning if isinstance(space, MixedSpace) else "" for space in spaces}) > 1:
        raise DataError("the models read their columns as different kinds or levels: explore them apart")
    return opened


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
        run = Run.open(first.run.path, data)
        dataset = run.load(data_root, progress)
    elif data is not None:
        dataset = read_other(first.codec, data, root=data_root, progress=progress)
    else:
        raise DataError(f"{first.name} is a model, which does not know its data: give the rows to show with --data")
    held_out = [Run(one.run.path).held_out_of(dataset) if one.run else None for one in models]
    own = held_out[0]
    alone = data is None and own is not None and len(own) >= FEWEST_UNSEEN
    selection = select(dataset, "unseen" if dataset.test is not None or alone else "all rows", own, most)
    trained_on = tuple(
        None
        if held is None
        else 0
        if selection.split == "test"
        else int(np.isin(selection.numbers, held, invert=True).sum())
        for held in held_out
    )
    names = first.codec.space.names or dataset.space.names
    both = selection.split == "all rows" and own is not None and len(own) > 0
    return ShownRows(
        rows=selection.rows,
        numbers=selection.numbers,
        available=selection.available,
        split=selection.split,
        data=dataset.name,
        columns=names,
        circular=dataset.circular,
        trained_on=trained_on,
        learned_from=None if selection.unseen is None or not both else ~selection.unseen,
    )


def _names(paths: Sequence[Path]) -> list[str]:
    whole = [path.absolute().parts for path in paths]
    if len(set(whole)) < len(whole):
        raise RunError("the same run is given twice: name each once")
    for depth in range(1, max(map(len, whole)) + 1):
        names = ["/".join(parts[-depth:]) for parts in whole]
        if len(set(names)) == len(names):
            return names
    raise AssertionError("different paths have different names")
