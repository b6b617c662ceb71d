"""The estimator in a notebook: the curves of its terms, and a bar while it trains."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wiseale.runs.notebook import TERMS, Curves, curves_svg
from wiseale.training.loop import EpochRecord

Show = Callable[[EpochRecord], None]


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


def has_bar(console: Console | None = None) -> bool:
    """Whether output goes to a notebook that can show a bar: rich draws it with ipywidgets."""
    return (console or Console()).is_jupyter and importlib.util.find_spec("ipywidgets") is not None


@contextmanager
def epoch_bar(epochs: int) -> Iterator[Show]:
    """A bar over epochs with the losses of the newest."""
    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[terms]}"),
    )
    with Progress(*columns) as progress:
        task = progress.add_task("", total=epochs, terms="")

        def show(record: EpochRecord) -> None:
            held_out = f", held out {record.held_out['loss']:.4g}" if record.held_out else ""
            terms = f"loss {record.train['loss']:.4g}{held_out}"
            progress.update(task, completed=record.epoch, terms=terms)

        yield show
        progress.refresh()  # rich does not draw the end of a bar in notebooks by itself
