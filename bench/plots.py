"""The last kept tables as pictures, for the page about performance: ``python -m bench.plots``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.table import Table, kept
from wiseale.figures.style import PALETTE, legend_below, line_style, new_figure, panels, point_style

FIGURES = Path(__file__).parent.parent / "docs" / "figures"


def training(table: Table) -> Figure:
    """Speed over the plain loop, a panel for each network and number of threads."""
    groups: dict[tuple[str | float, str | float], list[tuple[str, float]]] = {}
    for network, threads, loop, _, speed in table.rows:
        if loop != "plain" and isinstance(speed, float):
            groups.setdefault((network, threads), []).append((str(loop), speed))
    figure, axes = panels(len(groups), 2, 3.2, 1.5)
    for ax, ((network, threads), bars) in zip(axes, groups.items(), strict=True):
        names, speeds = zip(*reversed(bars), strict=True)
        colours = [PALETTE[0] if name.startswith("wiseale") else "0.6" for name in names]
        _bars(ax, [name.replace("aevb, without", "no") for name in names], speeds, colours)
        ax.axvline(1, color="0.2", linewidth=0.8, linestyle="--")
        ax.set_xlim(0, 1.35 * max(speed for bars in groups.values() for _, speed in bars))
        ax.set_title(f"{network}, {threads} thread{'s' if threads != 1 else ''}", fontsize=8)
    figure.supxlabel("speed over the plain loop", fontsize=8)
    return figure


def kernel(table: Table) -> Figure:
    """How many times faster than the broadcast, over M, a line for each d_z."""
    figure = new_figure(4, 2.8)
    ax = figure.subplots()
    for number, d in enumerate(sorted({row[1] for row in table.rows})):
        points = sorted((row[0], row[5]) for row in table.rows if row[1] == d)
        colour, dash = line_style(number)
        _, marker = point_style(number)
        ax.plot(*zip(*points, strict=True), color=colour, linestyle=dash, marker=marker, markersize=4, label=f"d = {d}")
    ax.axhline(1, color="0.2", linewidth=0.8, linestyle="--")
    ax.set(xscale="log", yscale="log")
    ax.set_xlabel("M", fontsize=8)
    ax.set_ylabel("times faster than the broadcast", fontsize=8)
    ax.tick_params(labelsize=8)
    legend_below(figure, ax)
    return figure


def ranks(table: Table) -> Figure:
    """Throughput of two ranks over one process."""
    figure = new_figure(4, 3.2)
    ax = figure.subplots()
    names = [f"{data}, {objective}, batch {batch}" for data, objective, batch, *_ in table.rows]
    ratios = [float(row[-1]) for row in table.rows]
    _bars(ax, names[::-1], ratios[::-1], [PALETTE[0]] * len(names))
    ax.axvline(2, color="0.2", linewidth=0.8, linestyle="--")
    ax.set_xlabel("throughput of 2 ranks over 1", fontsize=8)
    return figure


def _bars(ax: Axes, names: Sequence[str], values: Sequence[float], colours: list[str]) -> None:
    bars = ax.barh(range(len(names)), values, color=colours)
    ax.bar_label(bars, fmt="%.2f", fontsize=7, padding=3, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.margins(x=0.15)


def main() -> None:
    for draw in (training, kernel, ranks):
        table = kept(draw.__name__)
        if table is not None:
            draw(table).savefig(FIGURES / f"performance_{draw.__name__}.png", dpi=150)


if __name__ == "__main__":
    main()
