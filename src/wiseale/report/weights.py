"""The tables of WiSE-ALE at weight w beside β-VAE, with β = w and with a smaller β."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean

from wiseale.experiments.paper.run_rows import Condition, RunRow
from wiseale.experiments.paper.sweep import WeightComparison, compare_neighbours, compare_weights
from wiseale.report.document import Table

_INTERVALS = (
    "The differences, WiSE-ALE minus β-VAE, have Welch's intervals, which hold jointly with 95 % in this table "
    "(Bonferroni). Less is better in both measures."
)

_NOISE = 1e-6  # nats: the aggregate KL of a collapsed model is measured with about this error


def weights_tables(rows: Sequence[RunRow], condition: Condition) -> tuple[Table, ...]:
    """WiSE-ALE at weight w beside β-VAE with β = w; then, if there are such runs, beside the next smaller β."""
    equal, neighbours = compare_weights(rows, condition), compare_neighbours(rows, condition)
    caption = f"WiSE-ALE at weight w / β-VAE with β = w. {_INTERVALS}"
    made = [_table(f"weights_{condition.experiment}", equal, [one.verdict for one in equal], caption)]
    if neighbours:
        caption = (
            "Is it only a weaker β-VAE? WiSE-ALE at a weight w above 1 / β-VAE with the largest measured β below w. "
            f"{_INTERVALS}"
        )
        verdicts = [one.verdict_in_both for one in neighbours]
        made.append(_table(f"neighbours_{condition.experiment}", neighbours, verdicts, caption))
    return tuple(made)


def _table(name: str, compared: Sequence[WeightComparison], verdicts: Sequence[str], caption: str) -> Table:
    lines = []
    for one, verdict in zip(compared, verdicts, strict=True):
        means = [f"{_mean(a)} / {_mean(b)}" if a and b else "-" for a, b in zip(one.ours, one.theirs, strict=True)]
        differences = [str(d) for d in one.differences] if one.differences else ["-", "-"]
        lines.append((_weight(one.weight), one.rival, means[0], differences[0], means[1], differences[1], verdict))
    columns = ("w", "beside", "reconstruction", "difference", "aggregate KL", "difference", "verdict")
    return Table(name, columns, tuple(lines), caption)


def _weight(weight: float) -> str:
    """As a whole number or a fraction: 4, 1/64."""
    return str(Fraction(weight).limit_denominator(1000))


def _mean(values: Sequence[float]) -> str:
    """Four digits, and of a large number at least one after the point: 239.0, 11341.7; noise about 0 is 0."""
    mean = fmean(values)
    if abs(mean) < _NOISE:
        return "0"
    return f"{mean:#.4g}" if abs(mean) < 1000 else f"{mean:.1f}"
