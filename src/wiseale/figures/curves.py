"""Training curves: reconstruction error, AEVB KL and ELBO by epoch (the paper's Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from wiseale.figures.style import DASHES, PALETTE, new_figure

PANELS = (
    ("reconstruction", "reconstruction error"),
    ("kl_posterior_prior", "AEVB KL"),
    ("elbo", "ELBO"),
)


def training_curves(runs: Mapping[str, Sequence[Mapping[str, Any]]], part: str = "train") -> Figure:
    """One line per run in each panel; ``runs`` maps a name to the records of its metrics.jsonl."""
    figure = new_figure(9.5, 3.2)
    axes = figure.subplots(1, len(PANELS), squeeze=False)[0]
    for (term, title), ax in zip(PANELS, axes, strict=True):
        for number, (name, records) in enumerate(runs.items()):
            epochs = [record["epoch"] for record in records]
            values = [record[part][term] for record in records]
            style = DASHES[number % len(DASHES)]
            ax.plot(epochs, values, color=PALETTE[number % len(PALETTE)], linestyle=style, linewidth=1.6, label=name)
        ax.set_title(f"{title} (nats)", fontsize=10)
        ax.set_xlabel("epoch")
        ax.grid(alpha=0.25)
        ax.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure
