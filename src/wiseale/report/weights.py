"""The table of WiSE-ALE at weight w beside β-VAE with β = w."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from wiseale.experiments.paper.run_rows import Condition, RunRow
from wiseale.experiments.paper.sweep import compare_weights
from wiseale.report.document import Table


def weights_table(rows: Sequence[RunRow], condition: Condition) -> Table:
    """WiSE-ALE at weight w beside β-VAE with β = w."""
    lines = []
    for one in compare_weights(rows, condition):
        means = [f"{_mean(a)} / {_mean(b)}" if a and b else "-" for a, b in zip(one.ours, one.theirs, strict=True)]
        differences = [str(d) for d in one.differences] if one.differences else ["-", "-"]
        lines.append((f"{one.weight:g}", one.rival, means[0], differences[0], means[1], differences[1], one.verdict))
    columns = ("w", "beside", "reconstruction", "difference", "aggregate KL", "difference", "verdict")
    caption = (
        "WiSE-ALE at weight w / β-VAE with β = w, and WiSE-ALE minus β-VAE with Welch's interval; the intervals of "
        "this table hold jointly with 95 % (Bonferroni). Less is better in both."
    )
    return Table(f"weights_{condition.experiment}", columns, tuple(lines), caption)


def _mean(values: Sequence[float]) -> str:
    """Four digits, and of a large number at least one after the point: 239, 11341.7."""
    mean = fmean(values)
    return f"{mean:.4g}" if abs(mean) < 1000 else f"{mean:.1f}"
