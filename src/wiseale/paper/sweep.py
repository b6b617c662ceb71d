"""Is WiSE-ALE at weight w better than β-VAE with β = w, in reconstruction and aggregate KL at once?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean

from wiseale.experiments import systems as s
from wiseale.experiments.intervals import MINIMUM_SEEDS, Interval, adjusted_confidence, difference_interval
from wiseale.paper.rows import Condition, RunRow, by_system, collapsed_seeds
from wiseale.report.document import Table

MEASURES = {"reconstruction": "reconstruction", "kl_aggregate_mc": "aggregate KL"}

_INTERVALS = (
    "The differences, WiSE-ALE minus β-VAE, have Welch's intervals, which hold jointly with 95 % in this table "
    "(Bonferroni). Less is better in both measures."
)
_NOISE = 1e-6  # nats: the aggregate KL of a collapsed model is measured with about this error


@dataclass(frozen=True)
class WeightComparison:
    """WiSE-ALE beside a β-VAE (AEVB has β = 1) at one weight: reconstruction and aggregate KL, nats per observation.

    ``ours`` and ``theirs`` have one value per seed, ``differences`` the intervals of WiSE-ALE minus β-VAE, if both have
    three seeds; ``collapsed`` is in how many seeds the codes of each say next to nothing.
    """

    weight: float
    rival: str
    ours: Sequence[Sequence[float]]
    theirs: Sequence[Sequence[float]]
    differences: Sequence[Interval]
    collapsed: tuple[int, int] = (0, 0)

    @property
    def verdict(self) -> str:
        """Which is better in which measure, as far as the intervals decide."""
        names = {-1: "WiSE-ALE", 1: "β-VAE"}
        signs = zip(MEASURES.values(), self._signs, strict=False)
        return self._in_both(", ".join(f"{names[sign]} better in {measure}" for measure, sign in signs if sign))

    @property
    def verdict_in_both(self) -> str:
        """Which is better in both measures: at different weights a gain in one of them says nothing."""
        return self._in_both("neither is better in both" if set(self._signs) == {-1, 1} else "")

    @property
    def _signs(self) -> tuple[int, ...]:
        """Of each decided difference; 0 where it is not decided."""
        return tuple(-1 if one.high < 0 else 1 if one.low > 0 else 0 for one in self.differences)

    def _in_both(self, otherwise: str) -> str:
        """Which is better in both, else ``otherwise``, else that it is open; then which compare as collapsed models."""
        names: dict[tuple[int, ...], str] = {(-1, -1): "WiSE-ALE better in both", (1, 1): "β-VAE better in both"}
        both = names.get(self._signs, otherwise)
        seeds = [len(self.ours[0]), len(self.theirs[0])]
        few = "" if self.differences else f": {seeds[0]} and {seeds[1]} of {MINIMUM_SEEDS} seeds"
        sides = zip(("WiSE-ALE", "β-VAE"), self.collapsed, seeds, strict=True)
        collapsed = ", ".join(f"{name} collapsed in {count} of {runs} seeds" for name, count, runs in sides if count)
        return (both or f"not decided{few}") + (f" ({collapsed})" if collapsed else "")


def compare_weights(rows: Sequence[RunRow], condition: Condition) -> list[WeightComparison]:
    """Every weight at which both have runs, then WiSE-ALE beside AEVB and β-VAEs with a warm-up of their KL.

    The intervals (Welch) of one table hold jointly with 95 %: Bonferroni over its two differences per row.
    """
    systems = list(by_system(rows, condition).values())
    pairs = [
        (ours, theirs)
        for warm in (False, True)
        for weight in s.SWEEP
        for ours in systems
        for theirs in systems
        if (ours[0].objective, ours[0].prior_warmup) == (s.sweep_of_wise_ale(weight).objective, 0)
        and (theirs[0].objective, theirs[0].prior_warmup > 0) == (s.sweep_of_beta_vae(weight).objective, warm)
    ]
    return _compare_jointly(pairs)


def compare_neighbours(rows: Sequence[RunRow], condition: Condition) -> list[WeightComparison]:
    """WiSE-ALE at each weight above 1 beside the β-VAE with the next smaller β of the sweep that has runs.

    At equal weights WiSE-ALE reconstructs better and its aggregate is the farther from the prior, as that of a weaker
    β-VAE would be. Only if it is better in both measures than a weaker β-VAE is it more than one. The same β with a
    warm-up is a rival of its own, for a β-VAE can do badly because of its start. The intervals hold jointly with 95 %.
    """
    systems = by_system(rows, condition)
    pairs = []
    for place, weight in enumerate(s.SWEEP):
        ours = systems.get(s.sweep_of_wise_ale(weight).name)
        smaller = [beta for beta in s.SWEEP[:place] if s.sweep_of_beta_vae(beta).name in systems]
        if ours and smaller and Fraction(weight) > 1:
            names = (rival(smaller[-1]).name for rival in (s.sweep_of_beta_vae, s.beta_vae_with_warm_up))
            pairs += [(ours, systems[name]) for name in names if name in systems]
    return _compare_jointly(pairs)


def weights_tables(rows: Sequence[RunRow], condition: Condition) -> tuple[Table, ...]:
    """WiSE-ALE at weight w beside β-VAE with β = w; then, if there are such runs, beside the next smaller β."""
    equal, neighbours = compare_weights(rows, condition), compare_neighbours(rows, condition)
    caption = f"WiSE-ALE at weight w / β-VAE with β = w. {_INTERVALS}"
    tables = [_table(f"weights_{condition.experiment}", equal, [one.verdict for one in equal], caption)]
    if neighbours:
        caption = (
            "Is it only a weaker β-VAE? WiSE-ALE at a weight w above 1 / β-VAE with the largest measured β below w. "
            f"{_INTERVALS}"
        )
        verdicts = [one.verdict_in_both for one in neighbours]
        tables.append(_table(f"neighbours_{condition.experiment}", neighbours, verdicts, caption))
    return tuple(tables)


def _compare_jointly(pairs: Sequence[tuple[Sequence[RunRow], Sequence[RunRow]]]) -> list[WeightComparison]:
    """Both differences of every pair, with intervals that hold jointly with 95 %."""
    confidence = adjusted_confidence(len(MEASURES) * len(pairs))
    comparisons = []
    for ours, theirs in pairs:
        mine, other = ([_values(rows, measure) for measure in MEASURES] for rows in (ours, theirs))
        enough = min(len(values) for values in (*mine, *other)) >= MINIMUM_SEEDS
        differences = [difference_interval(a, b, confidence) for a, b in zip(mine, other, strict=True) if enough]
        collapsed = _collapsed_runs(ours), _collapsed_runs(theirs)
        comparisons.append(WeightComparison(ours[0].weight, theirs[0].system, mine, other, differences, collapsed))
    return comparisons


def _values(rows: Sequence[RunRow], measure: str) -> list[float]:
    return [row.measures[measure] for row in rows if measure in row.measures]


def _collapsed_runs(rows: Sequence[RunRow]) -> int:
    return sum(collapsed_seeds({name: [value] for name, value in row.measures.items()}) for row in rows)


def _table(name: str, comparisons: Sequence[WeightComparison], verdicts: Sequence[str], caption: str) -> Table:
    lines = []
    for one, verdict in zip(comparisons, verdicts, strict=True):
        means = [f"{_mean(a)} / {_mean(b)}" if a and b else "-" for a, b in zip(one.ours, one.theirs, strict=True)]
        differences = [str(difference) for difference in one.differences] or ["-", "-"]
        weight = str(Fraction(one.weight).limit_denominator(1000))  # 4, 1/64
        lines.append((weight, one.rival, means[0], differences[0], means[1], differences[1], verdict))
    columns = ("w", "beside", "reconstruction", "difference", "aggregate KL", "difference", "verdict")
    return Table(name, columns, tuple(lines), caption)


def _mean(values: Sequence[float]) -> str:
    """Four digits, and of a large number at least one after the point: 239.0, 11341.7; noise about 0 is 0."""
    mean = fmean(values)
    if abs(mean) < _NOISE:
        return "0"
    return f"{mean:#.4g}" if abs(mean) < 1000 else f"{mean:.1f}"
