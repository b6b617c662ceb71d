"""From a frame or an array to a trained model, without a file: what suits the data is chosen, then the loop runs."""

from __future__ import annotations

import importlib.util
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wiseale.config import TrainConfig
from wiseale.data.arrays import observations
from wiseale.data.dataset import Array
from wiseale.data.defaults import describe, make_dataset, suit
from wiseale.data.tables.blocks import Selection
from wiseale.data.tables.frames import raw_blocks, select_all
from wiseale.data.tables.kinds import AS_SAID, ROW_NUMBERS, parse_kinds
from wiseale.data.tables.mixed import learn_space, read_mixed
from wiseale.models.collapse import collapse_message
from wiseale.models.inference import Codec
from wiseale.runs.notebook import TERMS, Curves, curves_svg
from wiseale.spaces import Column, NumbersSpace, Scaling, TableSpace
from wiseale.spaces.columns import Unseen, list_ignored
from wiseale.spaces.frames import library_of
from wiseale.training.learner import Learner
from wiseale.training.loop import EpochRecord, fit
from wiseale.training.plan import resolve, torch_threads
from wiseale.training.setup import Work

_SAID = 5  # columns that a message says kinds of

Show = Callable[[EpochRecord], None]


def learn_frame(
    X: Any, column_kinds: Mapping[str, str] | str | None = None, missing: str = "learn", unseen: Unseen = "error"
) -> tuple[TableSpace, Array | None]:
    """The space of a data frame's rows, and their cells; None for numbers alone, which are learned as they are."""
    library = library_of(X)
    kinds = parse_kinds(column_kinds or {})
    learned = learn_space(
        select_all(X), partial(raw_blocks, X), kinds, "error" if missing == "error" else "learn", unseen
    )
    if learned.space is None:
        columns = _columns_of_numbers(learned.chosen, X)
        return NumbersSpace((len(columns),), columns=columns, ignored=learned.ignored, frame=library), None
    space, x, _ = read_mixed(learned, partial(raw_blocks, X))
    return replace(space, frame=library), x


def _columns_of_numbers(selection: Selection, X: Any) -> tuple[Column, ...]:
    """The columns of a frame of numbers, with their types."""
    (block,) = raw_blocks(X, selection)
    columns = []
    for i, raw in zip(selection.features, block.columns, strict=True):
        if raw.boolean:
            columns.append(Column(selection.names[i], "binary", (False, True), dtype=raw.dtype))
            continue
        is_whole = bool((raw.values == np.floor(raw.values)).all())
        whole = is_whole and not raw.dtype.lower().startswith(("float", "double"))
        columns.append(Column(selection.names[i], "number", whole=whole, dtype=raw.dtype))
    return tuple(columns)


def ignored_message(ignored: tuple[tuple[str, str], ...]) -> str:
    """Which columns are not learned from, why and what to do, in one line; empty where the user said so of all."""
    ignored = tuple((name, reason) for name, reason in ignored if reason not in (AS_SAID, "a label"))
    if not ignored:
        return ""
    name, reason = ignored[0]
    as_it_is = reason not in ("dates", "durations")
    kind = "number" if reason.startswith(ROW_NUMBERS) else "category"
    keep = f"say {said_in_python({name: kind})}" if as_it_is else f'turn "{name}" into numbers'
    columns, one, them = ("column", "it", "it") if len(ignored) == 1 else ("columns", "one", "them")
    ignore = said_in_python({name: "ignore" for name, _ in ignored[:_SAID]}) + " …" * (len(ignored) > _SAID)
    return (
        f"{columns} not learned from: {list_ignored(ignored)}; to learn from {one}, {keep}; "
        f"to leave {them} out without this warning, say {ignore}"
    )


def said_in_python(kinds: Mapping[str, str]) -> str:
    """Columns and their kinds as an argument: ``column_kinds={"id": "ignore"}``."""
    return f"column_kinds={json.dumps(dict(kinds), ensure_ascii=False)}"


def history_svg(history: Sequence[Mapping[str, Any]]) -> str:
    """The curves of ``history_``."""
    parts = {"train": "train", "held out": "held_out"}
    curves: Curves = {
        term: {
            shown: [(epoch["epoch"], epoch[f"{part}_{term}"]) for epoch in history if f"{part}_{term}" in epoch]
            for shown, part in parts.items()
        }
        for term in TERMS
    }
    return curves_svg(curves)


@contextmanager
def epoch_bar(epochs: int) -> Iterator[Show]:
    """A bar over epochs with the losses of the newest."""
    terms = TextColumn("{task.fields[terms]}")
    with Progress(TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(), terms) as progress:
        task = progress.add_task("", total=epochs, terms="")

        def show(record: EpochRecord) -> None:
            progress.update(task, completed=record.epoch, terms=_losses(record))

        yield show
        progress.refresh()  # rich does not draw the end of a bar in notebooks by itself


def _losses(record: EpochRecord) -> str:
    held_out = f", held out {record.held_out['loss']:.4g}" if record.held_out else ""
    return f"loss {record.train['loss']:.4g}{held_out}"


_QUIET_SECONDS = 2.0

History = list[dict[str, Any]]


@dataclass(frozen=True)
class Fitted:
    """A trained model, its history by epoch, and in one line each what the data was taken for and a collapse."""

    codec: Codec
    seed: int
    history: History
    best_epoch: int
    summary: str
    collapse: str | None


def fit_array(
    x: Array,
    asked: TrainConfig,
    *,
    standardize: Scaling | Literal["auto"] = "auto",
    columns: tuple[str, ...] = (),
    cells: TableSpace | None = None,
    verbose: int = 0,
) -> Fitted:
    """Train on finite numbers (n, features), (n, channels, length) or (n, channels, height, width), or on cells.

    What ``asked`` leaves open is chosen as for files, see :mod:`wiseale.data.defaults`.
    """
    x = x if cells is not None and cells.missing else observations(x, "X", columns=columns)
    scaling = None if standardize == "auto" else standardize
    dataset = make_dataset(x, "X", columns=columns, scaling=scaling, cells=cells)
    used = {name: getattr(asked, name) for name in ("network", "likelihood", "latent_dim") if getattr(asked, name)}
    dataset = replace(dataset, preset=replace(dataset.preset, **used))
    dataset = suit(dataset, dataset.preset.likelihood)
    settings = resolve(replace(asked, data="X"), dataset)
    summary = describe(dataset)
    with torch_threads(min(settings.threads, torch.get_num_threads())):  # a limit that the user has set holds
        work = Work.prepare(settings, dataset)
        # rich draws a bar in a notebook with ipywidgets
        has_bar = bool(verbose) and Console().is_jupyter and importlib.util.find_spec("ipywidgets") is not None
        if verbose:
            print(f"{summary}; {work.facts.parameters:,} parameters", flush=True)
        with epoch_bar(settings.max_epochs) if has_bar else nullcontext() as show:
            journal = _Memory(settings.max_epochs, verbose, show)
            fit(work.learner, work.train, work.held_out, work.settings, journal)
        work.learner.finish()
        use = work.code_use()
    message = collapse_message(use, settings.objective, settings.likelihood) if use else None
    best = work.learner.progress.kept_epoch
    codec = Codec(work.learner.model, work.model_config)
    return Fitted(codec, settings.seed, journal.history, best, summary, message)


def flatten(record: EpochRecord) -> dict[str, Any]:
    """An epoch as one flat record: epoch, step, lr, warmup, train_loss, …, held_out_loss, …; nats per observation."""
    flat = {name: getattr(record, name) for name in ("epoch", "step", "lr", "warmup")}
    for split in ("train", "held_out"):
        flat |= {f"{split}_{name}": value for name, value in (getattr(record, split) or {}).items()}
    return flat


class _Memory:
    """The loop's journal in memory; speaks now and then if it is to."""

    def __init__(self, epochs: int, verbose: int, show: Show | None = None) -> None:
        self.history: History = []
        self._show = show
        self._epochs = epochs
        self._verbose = verbose
        self._spoke = -math.inf

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        pass

    def epoch(self, record: EpochRecord) -> None:
        self.history.append(flatten(record))
        if self._show is not None:
            self._show(record)
        if not self._verbose or self._show is not None:
            return
        now = time.monotonic()
        if self._verbose > 1 or now - self._spoke >= _QUIET_SECONDS or record.epoch == self._epochs:
            self._spoke = now
            print(f"epoch {record.epoch}/{self._epochs}: {_losses(record)}", flush=True)

    def checkpoint(self, learner: Learner) -> None:
        pass

    def interrupted(self) -> bool:
        return False
