"""Scatter plots of codes in the latent space, coloured by a factor of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from wiseale.figures.mosaic import Values
from wiseale.figures.style import MARKERS, SMALL, disable_math, panels, scale_circle, wrapped

MAX_CLASSES = 20

# Petroff (2021): ten colours that stay distinct with colour-vision deficiency, ranked by a survey of aesthetics.
_CLASS_COLOURS = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)


@dataclass(frozen=True)
class PlaneCodes:
    """Codes in the plane of two latent units, (n, 2), and the indices of those units."""

    codes: Values
    units: tuple[int, int]


def latent_map(
    systems: Mapping[str, PlaneCodes], factor: npt.NDArray[np.generic], name: str, circular: bool = False
) -> Figure:
    """One scatter plot per system, with a dashed circle of radius 2 for scale.

    A factor (n,) with at most 20 distinct values is drawn as classes, each with its colour and marker; any other on a
    colour scale, which is cyclic if the factor is ``circular``.
    """
    kinds = np.unique(factor)
    figure, axes = panels(len(systems), 3, 2.6, 2.7)
    shaded: PathCollection | None = None
    for ax, (system, mapped) in zip(axes, systems.items(), strict=True):
        if len(kinds) <= MAX_CLASSES:
            _plot_classes(ax, mapped.codes, factor, kinds)
        else:
            colours = "twilight" if circular else "viridis"
            edge = {"linewidths": 0.3, "edgecolors": "0.4"} if circular else {"linewidths": 0}  # twilight has white
            x, y = mapped.codes.T
            shaded = ax.scatter(x, y, c=factor.astype(float), s=5, cmap=colours, rasterized=True, **edge)
        ax.add_patch(scale_circle())
        ax.set_title(wrapped(system), fontsize=SMALL + 1, parse_math=False)
        ax.set_xlabel(f"z{mapped.units[0] + 1}", fontsize=SMALL)
        ax.set_ylabel(f"z{mapped.units[1] + 1}", fontsize=SMALL)
        ax.set_aspect("equal", adjustable="datalim")
        ax.tick_params(labelsize=SMALL - 1)
    if shaded is not None:
        bar = figure.colorbar(shaded, ax=axes, shrink=0.8, pad=0.01)
        bar.set_label(name, fontsize=SMALL, parse_math=False)
        bar.ax.tick_params(labelsize=SMALL - 1)
    else:
        keys = axes[0].get_legend_handles_labels()
        legend = figure.legend(
            *keys,
            title=name,
            loc="outside lower center",
            ncols=10 if len(systems) > 2 else 5,
            fontsize=SMALL,
            title_fontsize=SMALL,
            markerscale=2.5,
            frameon=False,
        )
        disable_math(legend)
    return figure


def _plot_classes(ax: Axes, codes: Values, factor: npt.NDArray[np.generic], kinds: npt.NDArray[np.generic]) -> None:
    """Plot the classes in eight rounds, a part of each per round, so that no class covers all others."""
    turns = 8
    for turn in range(turns):
        for number, kind in enumerate(kinds):
            x, y = codes[factor == kind][turn::turns].T
            ax.plot(
                x,
                y,
                MARKERS[number % 8],
                color=_CLASS_COLOURS[number % 10],
                markersize=2.5,
                markeredgewidth=0,
                alpha=0.8,
                label=None if turn else str(kind),
                rasterized=True,
            )
