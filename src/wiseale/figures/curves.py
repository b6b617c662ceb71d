"""Training curves: reconstruction error, AEVB KL and ELBO by epoch (the paper's Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from matplotlib.figure import Figure

from wiseale.figures.style import legend_below, line_style, new_figure, point_style
from wiseale.training.loop import EpochRecord

PANELS = (
    ("reconstruction", "reconstruction error"),
    ("kl_posterior_prior", "AEVB KL"),
    ("elbo", "ELBO"),
)

Records = Sequence[EpochRecord]
"""The epochs of a run."""


def training_curves(systems: Mapping[str, Sequence[Records]], part: Literal["train", "held_out"] = "train") -> Figure:
    """One line per system, the mean over its runs, with a band over their range, up to the epoch that all reached.

    A system without a term (a deterministic encoder has no KL) has no line in that panel.
    """
    figure = new_figure(9.5, 2.9)
    axes = figure.subplots(1, len(PANELS), squeeze=False)[0]
    for (term, title), ax in zip(PANELS, axes, strict=True):
        for number, (name, runs) in enumerate(systems.items()):
            epochs_of_all = zip(*runs, strict=False)
            by_epoch = [epoch for epoch in epochs_of_all if all(term in (getattr(run, part) or {}) for run in epoch)]
            epochs = [epoch[0].epoch for epoch in by_epoch]
            values = [[getattr(run, part)[term] for run in epoch] for epoch in by_epoch]
            colour, dash = line_style(number)
            mean = [sum(of_runs) / len(of_runs) for of_runs in values]
            marker = point_style(number)[1] if len(epochs) == 1 else None  # a line through one point is invisible
            ax.plot(epochs, mean, color=colour, linestyle=dash, linewidth=1.6, marker=marker, label=name)
            if len(runs) > 1:
                low, high = [min(v) for v in values], [max(v) for v in values]
                ax.fill_between(epochs, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.set_title(f"{title} (nats)", fontsize=10)
        ax.set_xlabel("epoch")
        ax.grid(alpha=0.25)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if all(len(records) == 1 for runs in systems.values() for records in runs):
            ax.set_xticks([1])
    legend_below(figure, axes[0])
    return figure
