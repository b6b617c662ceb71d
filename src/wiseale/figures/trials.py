"""The trials of a search: their measure in order, and against each setting that varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wiseale.figures.style import line_style, panels, point_style


def trial_figure(
    values: Sequence[float], settings: Mapping[str, Sequence[float | str]], measure: str, larger_is_better: bool
) -> Figure:
    """A panel with the trials in order and the best so far, then one per setting; all sequences have one length."""
    figure, panel = panels(1 + len(settings), 3, 2.9, 2.6)
    first, *others = panel
    best, sofar = [], None
    for value in values:
        sofar = value if sofar is None else max(sofar, value) if larger_is_better else min(sofar, value)
        best.append(sofar)
    colour, marker = point_style(0)
    first.plot(range(1, len(values) + 1), values, marker, color=colour, markersize=4, alpha=0.7, label="trial")
    first.step(range(1, len(values) + 1), best, color=line_style(1)[0], where="post", label="best so far")
    first.set_xlabel("finished trial")
    first.legend(fontsize=8)
    first.xaxis.set_major_locator(MaxNLocator(integer=True))
    for (name, chosen), ax in zip(settings.items(), others, strict=True):
        numbers = [value for value in chosen if isinstance(value, int | float)]
        if len(numbers) == len(chosen):
            ax.plot(numbers, values, marker, color=colour, markersize=4, alpha=0.7)
            if min(numbers) > 0 and max(numbers) >= 10 * min(numbers):
                ax.set_xscale("log")
        else:
            words = sorted({str(value) for value in chosen}, key=lambda word: (len(word), word))
            ax.plot([words.index(str(v)) for v in chosen], values, marker, color=colour, markersize=4, alpha=0.7)
            ax.set_xticks(range(len(words)), words)
        ax.set_xlabel(name)
    for ax in panel:
        ax.grid(alpha=0.25)
    first.set_title(f"held-out {measure} (nats)", fontsize=10)
    return figure
