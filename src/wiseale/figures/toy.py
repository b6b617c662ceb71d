"""Two posteriors, their average and the prior, and the prior terms against sigma (the paper's Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wiseale.figures.bounds import Panel, draw_panel
from wiseale.figures.style import PALETTE, SMALL, new_figure

Points = npt.NDArray[np.float64]

POSTERIOR_COLOUR, PRIOR_COLOUR, AGGREGATE_COLOUR = PALETTE[1], "#003A5C", PALETTE[5]


@dataclass(frozen=True)
class Mixture:
    """One-dimensional posteriors and the title of their panel; ``letter`` marks their sigma in the panel of curves."""

    letter: str
    title: str
    mu: Sequence[float]
    sigma: Sequence[float]


def two_gaussians(mixtures: Sequence[Mixture], curves: Panel) -> Figure:
    """Panels a, b, … of densities above a wide panel of curves against sigma, where letters mark the panels' sigmas."""
    figure = new_figure(7.0, 5.6)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(5, 6)).flat
    axes = above.subplots(1, len(mixtures), sharey=True, squeeze=False)[0]
    for ax, mixture in zip(axes, mixtures, strict=True):
        draw_mixture(ax, mixture)
    axes[0].set_ylabel("density", fontsize=SMALL)
    axes[0].set_ylim(0, None)  # after all panels are drawn, because they share the y axis
    above.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=SMALL, frameon=False
    )
    ax = below.subplots()
    draw_panel(ax, curves)
    for mixture in mixtures:
        ax.axvline(mixture.sigma[0], color="0.5", linewidth=0.8, linestyle=(0, (4, 3)))
        ax.text(mixture.sigma[0], 1.0, f" {mixture.letter}", transform=ax.get_xaxis_transform(), va="top", fontsize=9)
    ax.legend(fontsize=SMALL, frameon=False, loc="upper right")
    return figure


def draw_mixture(ax: Axes, mixture: Mixture) -> None:
    """Draw the posteriors (red, dashed), their average (light blue) and the prior (dark blue)."""
    z = np.linspace(-4, 4, 801)
    parts = [_normal(z, mu, sigma) for mu, sigma in zip(mixture.mu, mixture.sigma, strict=True)]
    ax.plot(z, np.mean(parts, 0), color=AGGREGATE_COLOUR, linewidth=3.2, label="aggregate posterior")
    ax.plot(z, _normal(z, 0, 1), color=PRIOR_COLOUR, linewidth=1.5, label="prior N(0, 1)")
    for number, part in enumerate(parts):
        label = None if number else "posteriors"
        ax.plot(z, part, color=POSTERIOR_COLOUR, linestyle="--", linewidth=1.2, label=label)
    ax.set_title(f"({mixture.letter}) {mixture.title}", fontsize=SMALL + 1)
    ax.set_xlabel("z", fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)


def _normal(z: Points, mu: float, sigma: float) -> Points:
    return np.asarray(np.exp(-0.5 * ((z - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi)))
