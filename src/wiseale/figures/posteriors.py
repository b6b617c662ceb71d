"""Posteriors of a batch in a 2-D latent space (the paper's Figure 1), and a map of many codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure

from wiseale.figures.style import PALETTE, new_figure

Values = npt.NDArray[np.float32]
Codes = tuple[Values, Values | None]
"""mu (n, 2) and sigma (n, 2), or no sigma for a deterministic encoder."""


def posterior_contours(systems: Mapping[str, Codes], limit: float = 3.2) -> Figure:
    """One panel per system: the aggregate density as shade, each posterior's 1- and 2-σ ellipse; points without σ."""
    figure = new_figure(2.9 * len(systems), 3.1)
    axes = figure.subplots(1, len(systems), sharex=True, sharey=True, squeeze=False)[0]
    grid = np.linspace(-limit, limit, 161)
    for ax, (name, (mu, sigma)) in zip(axes, systems.items(), strict=True):
        if sigma is None:
            ax.plot(mu[:, 0], mu[:, 1], ".", color=PALETTE[0], markersize=4)
        else:
            ax.contourf(grid, grid, _mixture(grid, mu, sigma), levels=14, cmap="Blues")
            for times, width in ((1, 0.9), (2, 0.4)):
                diameters = 2 * times * sigma
                ellipses = EllipseCollection(
                    diameters[:, 0],
                    diameters[:, 1],
                    np.zeros(len(mu)),
                    units="xy",
                    offsets=mu,
                    offset_transform=ax.transData,
                    facecolors="none",
                    edgecolors=PALETTE[1],
                    linewidths=width,
                )
                ax.add_collection(ellipses)
        ax.set_title(name, fontsize=9)
        ax.set_aspect("equal")
        ax.set_xlim(-limit, limit)
        ax.set_ylim(-limit, limit)
        ax.tick_params(labelsize=7)
    return figure


def _mixture(grid: npt.NDArray[np.float64], mu: Values, sigma: Values) -> npt.NDArray[np.float64]:
    """Square root of the aggregate density on the grid: the root keeps narrow peaks from hiding the rest."""
    density = np.zeros((len(grid), len(grid)))
    for centre, width in zip(mu.astype(float), sigma.astype(float), strict=True):
        x, y = (np.exp(-0.5 * ((grid - c) / w) ** 2) / w for c, w in zip(centre, width, strict=True))
        density += np.outer(y, x)
    root: npt.NDArray[np.float64] = np.sqrt(density / len(mu))
    return root


def latent_map(mu: Values, factor: npt.NDArray[np.generic], name: str, dimensions: Sequence[int] = (0, 1)) -> Figure:
    """Codes in two dimensions, coloured by a label or a factor."""
    figure = new_figure(4.8, 4.2)
    ax = figure.subplots()
    kinds = np.unique(factor)
    x, y = mu[:, dimensions[0]], mu[:, dimensions[1]]
    if len(kinds) <= 20:
        colours = [f"C{i}" for i in range(10)]
        for number, kind in enumerate(kinds):
            chosen = factor == kind
            ax.plot(x[chosen], y[chosen], ".", markersize=2.5, color=colours[number % 10], label=str(kind))
        ax.legend(title=name, markerscale=4, fontsize=7, title_fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    else:
        points = ax.scatter(x, y, c=factor.astype(float), s=4, cmap="viridis", linewidths=0)
        figure.colorbar(points, ax=ax, label=name)
    ax.set_xlabel(f"z{dimensions[0] + 1}")
    ax.set_ylabel(f"z{dimensions[1] + 1}")
    ax.set_aspect("equal", adjustable="datalim")
    return figure
