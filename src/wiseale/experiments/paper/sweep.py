"""Is WiSE-ALE at weight w better than β-VAE with β = w, in reconstruction and aggregate KL at once?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wiseale.config import parse_spec
from wiseale.experiments import systems as s
from wiseale.experiments.intervals import Interval, difference_interval
from wiseale.experiments.paper.evidence import collapsed_seeds, values_of
from wiseale.experiments.paper.relations import MINIMUM_SEEDS, adjusted_confidence
from wiseale.experiments.paper.run_rows import Condition, RunRow

MEASURES = ("reconstruction", "kl_aggregate_mc")


@dataclass(frozen=True)
class WeightComparison:
    """WiSE-ALE beside β-VAE at one weight, nats per observation.

    Attributes:
        rival: the β-VAE's name; AEVB is the one with β = 1.
        ours, theirs: values of reconstruction and aggregate KL, one per seed.
        differences: WiSE-ALE minus β-VAE in the same two measures; None with fewer than three seeds on either side.
        collapsed: in how many seeds WiSE-ALE's and the β-VAE's codes say next to nothing.
    """

    weight: float
    rival: str
    ours: tuple[Sequence[float], Sequence[float]]
    theirs: tuple[Sequence[float], Sequence[float]]
    differences: tuple[Interval, Interval] | None
    collapsed: tuple[int, int] = (0, 0)

    @property
    def verdict(self) -> str:
        """Which is better in which measure, as far as the intervals decide."""
        return (self._in_both or self._in_one) + self._collapsed

    @property
    def verdict_in_both(self) -> str:
        """Which is better in both measures: at different weights a gain in one of them says nothing."""
        signs = set(self._signs)
        found = self._in_both or ("neither is better in both" if signs == {-1, 1} else self._undecided)
        return found + self._collapsed

    @property
    def _signs(self) -> tuple[int, ...]:
        """Of each decided difference; 0 where it is not decided."""
        return tuple(-1 if one.high < 0 else 1 if one.low > 0 else 0 for one in self.differences or ())

    @property
    def _in_both(self) -> str:
        if self._signs == (-1, -1):
            return "WiSE-ALE better in both"
        return "β-VAE better in both" if self._signs == (1, 1) else ""

    @property
    def _in_one(self) -> str:
        decided = [
            f"{'WiSE-ALE' if sign < 0 else 'β-VAE'} better in {name}"
            for name, sign in zip(("reconstruction", "aggregate KL"), self._signs, strict=False)
            if sign
        ]
        return ", ".join(decided) or self._undecided

    @property
    def _collapsed(self) -> str:
        """Where codes say next to nothing, the measures compare with a model that ignores its input."""
        sides = zip(("WiSE-ALE", "β-VAE"), self.collapsed, (self.ours, self.theirs), strict=True)
        parts = [f"{name} collapsed in {count} of {len(runs[0])} seeds" for name, count, runs in sides if count]
        return f" ({', '.join(parts)})" if parts else ""

    @property
    def _undecided(self) -> str:
        if self.differences is not None:
            return "not decided"
        have = " and ".join(str(len(values[0])) for values in (self.ours, self.theirs))
        return f"not decided: {have} of {MINIMUM_SEEDS} seeds"


def compare_weights(rows: Sequence[RunRow], condition: Condition) -> list[WeightComparison]:
    """Every weight at which both have runs, then WiSE-ALE at weight 1 beside AEVB with a warm-up of its KL.

    The intervals (Welch) of one table hold jointly with 95 %: Bonferroni over its two differences per row.
    """
    values_of(rows, condition)  # one name for two settings is refused
    here = [row for row in rows if row.condition == condition]
    pairs = [
        (theirs[0].prior_warmup > 0, mine[0].weight, mine, theirs)
        for mine in _by_system(row for row in here if _is_wise_ale(row))
        for theirs in _by_system(row for row in here if _is_beta_vae(row, mine[0].weight))
    ]
    pairs.sort(key=lambda pair: pair[:2])
    return _compare_jointly([(mine, theirs) for _, _, mine, theirs in pairs])


def compare_neighbours(rows: Sequence[RunRow], condition: Condition) -> list[WeightComparison]:
    """WiSE-ALE at each weight above 1 beside the β-VAE with the next smaller β of the sweep that has runs.

    At equal weights WiSE-ALE reconstructs better and its aggregate is the farther from the prior, as that of a weaker
    β-VAE would be. Only if it is better in both measures than a weaker β-VAE is it more than one. The same β with a
    warm-up is a rival of its own, for a β-VAE can do badly because of its start. The intervals hold jointly with 95 %.
    """
    values_of(rows, condition)  # one name for two settings is refused
    by_name = {runs[0].system: runs for runs in _by_system(row for row in rows if row.condition == condition)}
    ours = [by_name.get(s.sweep_of_wise_ale(weight).name) for weight in s.SWEEP]
    pairs = []
    for place, mine in enumerate(ours):
        smaller = [beta for beta in s.SWEEP[:place] if s.sweep_of_beta_vae(beta).name in by_name]
        if mine and mine[0].weight > 1 and smaller:
            rivals = (make(smaller[-1]).name for make in (s.sweep_of_beta_vae, s.beta_vae_with_warm_up))
            pairs += [(mine, by_name[name]) for name in rivals if name in by_name]
    return _compare_jointly(pairs)


_CURVES = {
    "WiSE-ALE": s.sweep_of_wise_ale,
    "β-VAE (AEVB at weight 1)": s.sweep_of_beta_vae,
    "β-VAE with a warm-up": s.beta_vae_with_warm_up,
}


def sweep_points(rows: Sequence[RunRow], condition: Condition) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """By system and weight, aggregate KL and reconstruction error of every run, from the smallest weight up."""
    values_of(rows, condition)  # one name for two settings is refused
    here = [row for row in rows if row.condition == condition and set(MEASURES) <= row.measures.keys()]
    by_name = {runs[0].system: runs for runs in _by_system(here)}
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for title, system_at in _CURVES.items():
        for weight in s.SWEEP:
            if runs := by_name.get(system_at(weight).name):
                points = [(row.measures["kl_aggregate_mc"], row.measures["reconstruction"]) for row in runs]
                found.setdefault(title, {})[weight] = points
    return found


def _by_system(rows: Iterable[RunRow]) -> list[list[RunRow]]:
    found: dict[str, list[RunRow]] = {}
    for row in rows:
        found.setdefault(row.system, []).append(row)
    return list(found.values())


def _compare_jointly(pairs: Sequence[tuple[Sequence[RunRow], Sequence[RunRow]]]) -> list[WeightComparison]:
    """Both differences of every pair, with intervals that hold jointly with 95 %."""
    confidence = adjusted_confidence(len(MEASURES) * len(pairs))
    return [_compare(ours, theirs, confidence) for ours, theirs in pairs]


def _compare(ours: Sequence[RunRow], theirs: Sequence[RunRow], confidence: float) -> WeightComparison:
    mine, other = (tuple(_values(rows, measure) for measure in MEASURES) for rows in (ours, theirs))
    enough = min(len(values) for values in (*mine, *other)) >= MINIMUM_SEEDS
    made = [difference_interval(a, b, confidence) for a, b in zip(mine, other, strict=True)] if enough else None
    return WeightComparison(
        ours[0].weight,
        theirs[0].system,
        (mine[0], mine[1]),
        (other[0], other[1]),
        (made[0], made[1]) if made else None,
        (_collapsed_runs(ours), _collapsed_runs(theirs)),
    )


def _collapsed_runs(rows: Sequence[RunRow]) -> int:
    return sum(collapsed_seeds({name: [value] for name, value in row.measures.items()}) for row in rows)


def _values(rows: Sequence[RunRow], measure: str) -> list[float]:
    return [row.measures[measure] for row in rows if measure in row.measures]


def _is_wise_ale(row: RunRow) -> bool:
    """The paper's bound over the batch at any weight, without warm-up."""
    name, settings = parse_spec(row.objective)
    return name == "wise_ale" and not set(settings) - {"prior_weight"} and row.prior_warmup == 0


def _is_beta_vae(row: RunRow, beta: float) -> bool:
    return parse_spec(row.objective)[0] in ("aevb", "beta_vae") and math.isclose(row.weight, beta)
