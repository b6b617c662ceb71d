"""Open the runs and models to explore, and choose the rows that are shown in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wiseale.data import Dataset, Rows, load_dataset
from wiseale.data.dataset import Progress
from wiseale.data.source import read_alike
from wiseale.errors import DataError, RunError
from wiseale.evaluation.encoded import read_as_cells
from wiseale.experiments.comparison import COMPARISON, read_comparison
from wiseale.models.inference import Codec, Codes, open_codec
from wiseale.randomness import shuffled
from wiseale.runs.directory import RunDirectory
from wiseale.spaces import MixedSpace
from wiseale.training.split import split_rows

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
    found: list[Path] = []
    for path in paths:
        if (path / COMPARISON).is_file():
            comparison = read_comparison(path)
            runs = [comparison.run_path(system, comparison.base.seed) for system in comparison.systems]
            found += [run for run in runs if (run / "model").is_dir()]
        else:
            found.append(path)
    if not found:
        raise RunError(f"{paths[0]} has no finished run: continue it first")
    if len(found) > MOST_RUNS:
        names = ", ".join(str(path) for path in found[:3])
        raise RunError(f"{len(found)} runs to explore, at most {MOST_RUNS} fit side by side: name them ({names}, …)")
    return found


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
    """Test rows, else the rows that the first run held out, else all rows of other data; a random part if too many.

    Where the run held out fewer than ``FEWEST_UNSEEN`` rows, all its rows are shown.
    """
    first = models[0]
    if data is None and first.run is None:
        raise DataError(f"{first.name} is a model, which does not know its data: give the rows to show with --data")
    settings = first.run.read_record().settings if first.run else None
    root = data_root or (Path(settings.data_root) if settings and settings.data_root else None)
    if data is not None and settings is not None:
        data = read_alike(data, settings.data)
    if data is not None and first.codec.space.missing:
        dataset = read_as_cells(first.codec, data)
    else:
        dataset = load_dataset(data or (settings.data if settings else ""), root, progress)
    if dataset.x_shape != first.codec.model.x_shape:
        raise DataError(_other_shape(dataset, first.codec))
    if data is None and first.run and dataset.fingerprint != first.run.read_record().facts.data_fingerprint:
        raise DataError(f"{dataset.name} has changed since the run was made: give the data to use with --data")
    held_out = [_held_out(model, dataset) for model in models]
    rows, split = dataset.test or dataset.train, "all rows" if dataset.test is None else "test"
    unseen, chosen = held_out[0], None
    if dataset.test is None and data is None and unseen is not None and len(unseen) >= FEWEST_UNSEEN:
        chosen, split = unseen, "held out"
    available = len(rows) if chosen is None else len(chosen)
    shown_places = (
        np.arange(available) if available <= most else np.sort(shuffled(available, 0, "sample")[:most].numpy())
    )
    numbers = shown_places if chosen is None else chosen[shown_places]
    trained_on = tuple(
        None if held is None else 0 if split == "test" else int(np.isin(numbers, held, invert=True).sum())
        for held in held_out
    )
    names = models[0].codec.space.names or dataset.space.names
    shown = rows.take(numbers)
    both = split == "all rows" and unseen is not None and len(unseen) > 0
    learned_from = np.isin(numbers, unseen, invert=True) if both and unseen is not None else None
    return ShownRows(shown, numbers, available, split, dataset.name, names, dataset.circular, trained_on, learned_from)


def _other_shape(dataset: Dataset, codec: Codec) -> str:
    """What is wrong with data of another shape; columns that the model does not know are named."""
    known = codec.space.names
    further = [name for name in dataset.space.names if name not in known]
    if known and further and set(known) <= set(dataset.space.names):
        named = ",".join(further[:3]) + (",…" if len(further) > 3 else "")
        return (
            f"{dataset.name} has columns that the model was not trained on ({named}): leave them out with "
            f"{dataset.name}:drop={named}, or colour by them with {dataset.name}:labels={named}"
        )
    return f"{dataset.name} has rows of shape {dataset.x_shape}, the model takes {codec.model.x_shape}"


def _held_out(model: Opened, dataset: Dataset) -> Indices | None:
    """The rows of the training split that the run held out; None if it saw other data, or is only a model."""
    if model.run is None:
        return None
    record = model.run.read_record()
    if record.facts.data_fingerprint != dataset.fingerprint or record.settings.held_out is None:
        return None
    return split_rows(len(dataset.train), record.settings).held_out


def _names(paths: Sequence[Path]) -> list[str]:
    whole = [path.absolute().parts for path in paths]
    if len(set(whole)) < len(whole):
        raise RunError("the same run is given twice: name each once")
    for depth in range(1, max(map(len, whole)) + 1):
        names = ["/".join(parts[-depth:]) for parts in whole]
        if len(set(names)) == len(names):
            return names
    raise AssertionError("different paths have different names")
