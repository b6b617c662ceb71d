"""``wiseale data list|info|fetch|pack``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wiseale.cli.options import DATA, data_root_option
from wiseale.errors import counted

if TYPE_CHECKING:
    import numpy.typing as npt

    from wiseale.spaces import Column

_SHEET_ROWS = 64
_HISTOGRAM_ROWS = 10_000
_LEVELS_LISTED = 6


@click.group()
def command() -> None:
    """Datasets: what they are, where they are, and how to get them."""


@command.command("list")
@data_root_option
def list_datasets(data_root: Path | None) -> None:
    """List the known datasets and whether they can be used here."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from wiseale import config, registry
    from wiseale.data.source import READERS
    from wiseale.platform.folders import default_data_root

    root = data_root or default_data_root()
    table = Table("dataset", "what it is", "here", box=box.SIMPLE_HEAD)
    for name in registry.names("dataset"):
        source = config.build("dataset", name)
        table.add_row(name, str(type(source).__doc__).splitlines()[0], source.status(root))
    console = Console()
    console.print(table)
    console.print(f"Paths work too: {' '.join(READERS)}, a folder or a .zip of images, a packed set.", highlight=False)


@command.command()
@click.argument("data", type=DATA)
@data_root_option
@click.option("-o", "--out", type=click.Path(path_type=Path), help="PNG to draw: a contact sheet, traces or histograms")
def info(data: str, data_root: Path | None, out: Path | None) -> None:
    """Show shape, range and counts of DATA; with -o also draw some of it."""
    from wiseale.cli.progress import loading_bar
    from wiseale.data import load_dataset

    with loading_bar() as progress:
        dataset = load_dataset(data, data_root, progress)

    import numpy as np
    import torch
    from rich.console import Console

    from wiseale.cli.faults import one_line
    from wiseale.data.defaults import describe
    from wiseale.figures.decoded import contact_sheet
    from wiseale.platform.atomic_files import replacing
    from wiseale.spaces.units import interpret

    most = _HISTOGRAM_ROWS if len(dataset.x_shape) == 1 else _SHEET_ROWS
    sample = dataset.train.take(np.linspace(0, len(dataset.train) - 1, min(most, len(dataset.train))).astype(int))
    x = interpret(sample.x, sample.reading, torch.Generator().manual_seed(0)).numpy()
    space = dataset.space
    kinds = space.columns if space.missing else ()
    if out:
        figure = contact_sheet(x, space.names, space.levels)
        with replacing(out) as temporary:
            figure.savefig(temporary, dpi=150, format=out.suffix[1:] or "png")
    console = Console(highlight=False, soft_wrap=True)
    console.print(one_line(f"{dataset.name}: {describe(dataset)}"), markup=False)
    console.print(f"rows: {len(dataset.train):,} train, {len(dataset.test) if dataset.test else 0:,} test")
    if kinds:
        for column, cells in zip(kinds, x.T, strict=True):
            console.print(one_line(f"column {column.name}: {_cells(column, cells)}"), markup=False)
    else:
        console.print(f"range of {counted(len(x), 'row')}: {x.min():g} to {x.max():g}, mean {x.mean():.4g}")
    for name, values in dataset.train.factors.items():
        console.print(one_line(f"factor {name}: {_summary(np.asarray(values))}"), markup=False)
    console.print(f"fingerprint: {dataset.fingerprint}")
    if out:
        console.print(f"picture: {out}")


@command.command()
@click.argument("name")
@click.option("--from", "source", type=click.Path(path_type=Path), help="a folder that has the files already")
@data_root_option
def fetch(name: str, source: Path | None, data_root: Path | None) -> None:
    """Download the files of dataset NAME into the data root, checked by SHA-256, or copy them from a folder."""
    from wiseale.cli.progress import download_bar
    from wiseale.data.sets.fetch import fetch as fetch_files
    from wiseale.platform.folders import default_data_root

    with download_bar() as progress:
        paths = fetch_files(name, data_root or default_data_root(), source, progress)
    for path in paths:
        print(path)


@command.command()
@click.argument("data", type=DATA)
@data_root_option
def pack(data: str, data_root: Path | None) -> None:
    """Decode or generate DATA once into the cache, so that training opens it at once."""
    from wiseale.cli.progress import loading_bar
    from wiseale.data import load_dataset

    with loading_bar() as progress:
        dataset = load_dataset(data, data_root, progress)
    print(f"{dataset.name}: {counted(len(dataset.train), 'row')} to train on, {len(dataset.test or ()):,} to test on")


def _cells(column: Column, cells: npt.NDArray[Any]) -> str:
    """The range of a number, the levels of a category with their counts; how many cells are missing."""
    import numpy as np

    observed = cells[~np.isnan(cells)]
    missing = len(cells) - len(observed)
    if len(observed) == 0:
        return f"{column.kind}, {missing:,} missing"
    if column.has_levels:
        counts = np.bincount(observed.astype(int), minlength=len(column.levels))
        order = np.argsort(-counts, kind="stable")[:_LEVELS_LISTED]
        text = ", ".join(f"{column.levels[i]}: {counts[i]:,}" for i in order)
        text += ", …" if len(counts) > _LEVELS_LISTED else ""
    else:
        text = f"{observed.min():g} to {observed.max():g}, mean {observed.mean():.4g}"
    return f"{column.kind.replace('_', ' ')}, {text}" + (f"; {missing:,} missing" if missing else "")


def _summary(values: object) -> str:
    import numpy as np

    factor = np.asarray(values)
    kinds, counts = np.unique(factor, return_counts=True)
    if len(kinds) <= 20:
        return ", ".join(f"{kind}: {count:,}" for kind, count in zip(kinds, counts, strict=True))
    if factor.dtype.kind in "if":
        return f"{factor.min():.4g} to {factor.max():.4g}"
    return f"{len(kinds):,} values"
