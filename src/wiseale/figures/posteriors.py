"""Posteriors of a batch in a 2-D latent space (the paper's Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure

from wiseale.figures.decoded import Values
from wiseale.figures.style import PALETTE, SMALL, panels, scale_circle, wrapped

Codes = tuple[Values, Values | None]
"""mu (n, 2) and sigma (n, 2); sigma is None for a deterministic encoder."""


def posterior_contours(systems: Mapping[str, Codes]) -> Figure:
    """One panel per system: the aggregate density as shading, the posterior means, and their 1- and 2-σ ellipses.

    A deterministic encoder has means only. Each panel has its own limits; a dashed circle of radius 2 gives the scale.
    """
    figure, axes = panels(len(systems), 4, 2.4, 2.6)
    for ax, (name, (mu, sigma)) in zip(axes, systems.items(), strict=True):
        limit = max(3.2, 1.1 * float(np.abs(mu).max()))
        ax.plot(mu[:, 0], mu[:, 1], ".", color=PALETTE[1], markersize=4 if sigma is None else 2)
        if sigma is not None:
            grid = np.linspace(-limit, limit, 161)
            ax.contourf(grid, grid, _mixture(grid, mu, sigma), levels=14, cmap="Blues")
            for times, width in ((1, 0.9), (2, 0.4)):
                _ellipses(ax, mu, 2 * times * sigma, width)
        ax.add_patch(scale_circle())
        ax.set_title(wrapped(name), fontsize=SMALL + 1, parse_math=False)
        ax.set_aspect("equal")
        ax.set_xlim(-limit, limit)
        ax.set_ylim(-limit, limit)
        ax.tick_params(labelsize=SMALL - 1)
    return figure


def _ellipses(ax: Axes, mu: Values, diameters: Values, line_width: float) -> None:
    ellipses = EllipseCollection(
        diameters[:, 0],
        diameters[:, 1],
        np.zeros(len(mu)),
        units="xy",
        offsets=mu,
        offset_transform=ax.transData,
        facecolors="none",
        edgecolors=PALETTE[1],
        linewidths=line_width,
    )
    ax.add_collection(ellipses)


def _mixture(grid: npt.NDArray[np.float64], mu: Values, sigma: Values) -> npt.NDArray[np.float64]:
    """Square root of the aggregate density on the grid; without the root narrow peaks would hide the rest."""
    density = np.zeros((len(grid), len(grid)))
    for centre, width in zip(mu.astype(float), sigma.astype(float), strict=True):
        x, y = (np.exp(-0.5 * ((grid - c) / w) ** 2) / w for c, w in zip(centre, width, strict=True))
        density += np.outer(y, x)
    root: npt.NDArray[np.float64] = np.sqrt(density / len(mu))
    return root
