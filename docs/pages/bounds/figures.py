"""Figures of the errors of the bounds, drawn from their tables."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import numpy as np
from docs.pages.bounds.error import PARTIAL_OVERLAP, ErrorRow, rows_varying
from docs.pages.bounds.limits import BiasRow, SaturationRow
from docs.pages.bounds.panels import Curve, Panel, curve_panels, numbered_style
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from wiseale.experiments.figures import LINE_STYLES
from wiseale.figures.style import PALETTE, SMALL, new_figure

UPPER = ("jensen", "bhattacharyya", "mean_aevb")


def error_figures(rows: Sequence[ErrorRow]) -> Iterator[tuple[str, Figure]]:
    """Name and figure: errors against sigma, separation, batch size and latent dimension; the map of the tightest."""
    by_sigma, apart, batches = (_by_dimension(rows_varying(rows, v)) for v in ("sigma", "separation", "batch_size"))
    panels = [_values(by_sigma[1])] + [
        _errors(by_sigma[d], f"d = {d}: errors", "σ", lambda row: row.sigma) for d in (1, 2)
    ]
    yield "bound_error_sigma", curve_panels(panels)

    panels = [_errors(apart[d], f"d = {d}", "spread of the means / σ", _ratio) for d in (1, 2, 8)]
    yield "bound_error_separation", curve_panels(panels)

    panels = [
        _errors(part, f"d = {d}, spread/σ = {_ratio(part[0]):.3g}", "posteriors M", lambda row: row.batch_size, 4)
        for d, part in batches.items()
    ]
    yield "bound_error_batch_size", curve_panels(panels)

    panels = []
    for ratio in (0.1 * PARTIAL_OVERLAP, 1.0, PARTIAL_OVERLAP):
        part = [row for row in rows_varying(rows, "separation") if math.isclose(_ratio(row), ratio)]
        title = f"spread/σ = {ratio:.3g}"
        panels.append(_errors(part, title, "latent dimension d", lambda row: row.latent_dim, 4, per_dimension=True))
    yield "bound_error_latent_dim", curve_panels(panels)

    errors = {name: np.array([[getattr(row, name) for row in part] for part in apart.values()]) for name in UPPER}
    ratios = [_ratio(row) for row in next(iter(apart.values()))]
    yield "bound_error_map", tightest_map(ratios, list(apart), *(errors[name] for name in UPPER))


def saturation_figure(rows: Sequence[SaturationRow]) -> Figure:
    """Saving of the aggregate KL over the mean AEVB KL, for posteriors that do not overlap."""
    groups = {d: list(group) for d, group in groupby(rows, lambda row: row.latent_dim)}
    first = next(iter(groups.values()))
    curves = [Curve(LINE_STYLES["exact"], _batch_sizes(first), [row.exact for row in first])]
    curves += [Curve(LINE_STYLES["bhattacharyya"], _batch_sizes(first), [row.bhattacharyya for row in first])]
    for number, (d, group) in zip((0, 2, 3, 4), groups.items(), strict=False):  # 1 is the style of bhattacharyya
        style = numbered_style(number, f"jensen, d = {d}")
        curves.append(Curve(style, _batch_sizes(group), [row.jensen for row in group]))
    level = (0.0, "no saving: the mean AEVB KL itself")
    panel = Panel("", "posteriors M, all apart", "saving over the mean AEVB KL (nats)", curves, x_base=4, level=level)
    return curve_panels([panel], 5.0, 4.2, 2)


def bias_figure(rows: Sequence[BiasRow]) -> Figure:
    """Batch KL − dataset KL against the batch size, within its analytic floor and ceiling."""
    panels = []
    sigmas = sorted({row.sigma for row in rows})
    for d, group in groupby(rows, lambda row: row.latent_dim):
        of_dimension = list(group)
        curves = []
        for sigma, some in groupby(of_dimension, lambda row: row.sigma):
            part = list(some)
            low = [max(row.floor, 1e-4) for row in part]
            style = numbered_style(sigmas.index(sigma), f"σ = {sigma:g}")
            curves.append(
                Curve(style, _batch_sizes(part), [row.exact for row in part], low, [row.ceiling for row in part])
            )
        panels.append(
            Panel(
                f"d = {d}, {of_dimension[0].dataset_size} posteriors that tile the prior",
                "posteriors M in the batch",
                "batch KL − dataset KL (nats)",
                curves,
                y_scale="log",
                x_base=4,
                y_range=(5e-3, 6),
            )
        )
    return curve_panels(panels, legend_columns=5)


def _by_dimension(rows: Sequence[ErrorRow]) -> dict[int, list[ErrorRow]]:
    return {d: list(group) for d, group in groupby(rows, lambda row: row.latent_dim)}


def _ratio(row: ErrorRow) -> float:
    return row.spread / row.sigma


def _batch_sizes(rows: Sequence[SaturationRow] | Sequence[BiasRow]) -> list[float]:
    return [row.batch_size for row in rows]


def _values(rows: Sequence[ErrorRow]) -> Panel:
    """The estimates themselves against sigma."""
    sigma = [row.sigma for row in rows]
    columns = {
        "tightest": [row.tightest for row in rows],
        "exact": [0.0 for _ in rows],
        "aevb": [row.mean_aevb for row in rows],
        "jensen": [row.jensen for row in rows],
        "bhattacharyya": [row.bhattacharyya for row in rows],
        "pairwise_kl": [row.pairwise_kl for row in rows],
    }
    curves = [
        Curve(LINE_STYLES[name], sigma, [row.exact + error for row, error in zip(rows, errors, strict=True)])
        for name, errors in columns.items()
    ]
    return Panel(f"d = {rows[0].latent_dim}: values", "σ", "nats", curves, y_range=(-0.4, 4.2))


def _errors(
    rows: Sequence[ErrorRow],
    title: str,
    x_label: str,
    x_of: Callable[[ErrorRow], float],
    x_base: int = 10,
    per_dimension: bool = False,
) -> Panel:
    """Absolute errors of the bounds, and the standard error of mc."""
    x = [x_of(row) for row in rows]
    columns = {
        "tightest": [row.tightest for row in rows],
        "jensen": [row.jensen for row in rows],
        "bhattacharyya": [row.bhattacharyya for row in rows],
        "pairwise_kl": [-row.pairwise_kl for row in rows],
        "second_jensen": [row.second_jensen for row in rows],
        "mc": [row.mc_standard_error for row in rows],
    }
    curves = []
    for name, errors in columns.items():
        y = [error / row.latent_dim for error, row in zip(errors, rows, strict=True)] if per_dimension else errors
        curves.append(Curve(LINE_STYLES[name], x, y))
    y_label = "|error| / d (nats)" if per_dimension else "|error| (nats)"
    top = max(max(curve.y) for curve in curves if curve.style is not LINE_STYLES["mc"])  # mc may dwarf the others
    return Panel(title, x_label, y_label, curves, x_base=x_base, y_range=(0, 1.08 * top))


def tightest_map(
    ratios: Sequence[float],
    dimensions: Sequence[int],
    jensen: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    bhattacharyya: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    mean_aevb: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> Figure:
    """Map of the tightest upper bound: the shade is its error, the letter names it.

    Errors are arrays (dimensions, ratios), nats. A frame marks cells where the paper's bound is above the mean AEVB KL,
    an upper bound that needs no sum over pairs.
    """
    figure = new_figure(7.0, 3.3)
    ax = figure.subplots()
    per_dimension = np.minimum(jensen, bhattacharyya) / np.asarray(dimensions)[:, None]
    shown = ax.imshow(np.clip(per_dimension, 0, None), cmap="Greys", aspect="auto", origin="lower", vmin=0, vmax=0.16)
    for row, column in np.ndindex(*jensen.shape):
        letter = "J" if jensen[row, column] < bhattacharyya[row, column] else "B"
        colour = "white" if per_dimension[row, column] > 0.09 else "black"
        ax.text(column, row, letter, ha="center", va="center", fontsize=SMALL, color=colour)
        if jensen[row, column] > mean_aevb[row, column]:
            corner = (column - 0.44, row - 0.44)
            ax.add_patch(Rectangle(corner, 0.88, 0.88, fill=False, edgecolor=PALETTE[1], linewidth=1.3))
    step = max(1, (len(ratios) - 1) // 6)
    ax.set_xticks(range(0, len(ratios), step), [f"{ratio:.3g}" for ratio in ratios[::step]])
    ax.set_yticks(range(len(dimensions)), [str(d) for d in dimensions])
    ax.set_xlabel("separation: spread of the means / σ", fontsize=SMALL)
    ax.set_ylabel("latent dimension", fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    bar = figure.colorbar(shown, ax=ax, pad=0.01)
    bar.set_label("error of the tightest upper bound\n(nats per dimension)", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    ax.set_title(
        "J: jensen is tighter   B: bhattacharyya is tighter   frame: jensen is above the mean AEVB KL",
        fontsize=SMALL,
    )
    return figure
