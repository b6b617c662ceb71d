"""Is WiSE-ALE at weight w better than β-VAE with β = w, in reconstruction and aggregate KL at once?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wiseale.config import parse_spec
from wiseale.experiments import systems as s
from wiseale.experiments.intervals import Interval, difference_interval
from wiseale.experiments.paper.evidence import values_of
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
    """

    weight: float
    rival: str
    ours: tuple[Sequence[float], Sequence[float]]
    theirs: tuple[Sequence[float], Sequence[float]]
    differences: tuple[Interval, Interval] | None

    @property
    def verdict(self) -> str:
        """Which is better in which measure, as far as the intervals decide."""
        if self.differences is None:
            have = " and ".join(str(len(values[0])) for values in (self.ours, self.theirs))
            return f"not decided: {have} of {MINIMUM_SEEDS} seeds"
        signs = [-1 if one.high < 0 else 1 if one.low > 0 else 0 for one in self.differences]
        both = {(-1, -1): "WiSE-ALE better in both", (1, 1): "β-VAE better in both"}
        if tuple(signs) in both:
            return both[signs[0], signs[1]]
        names = ("reconstruction", "aggregate KL")
        decided = [
            f"{'WiSE-ALE' if sign < 0 else 'β-VAE'} better in {name}"
            for name, sign in zip(names, signs, strict=True)
            if sign
        ]
        return ", ".join(decided) or "not decided"


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

    At equal weights WiSE-ALE's aggregate is the farther from the prior, so that neither is better in both measures. A
    weaker β-VAE is farther from the prior too: if WiSE-ALE is still better in both, no β does as well. The intervals
    hold jointly with 95 %.
    """
    values_of(rows, condition)  # one name for two settings is refused
    by_name = {runs[0].system: runs for runs in _by_system(row for row in rows if row.condition == condition)}
    ours = [by_name.get(s.sweep_of_wise_ale(weight).name) for weight in s.SWEEP]
    theirs = [by_name.get(s.sweep_of_beta_vae(weight).name) for weight in s.SWEEP]
    pairs = []
    for place, mine in enumerate(ours):
        smaller = [runs for runs in theirs[:place] if runs]
        if mine and mine[0].weight > 1 and smaller:
            pairs.append((mine, smaller[-1]))
    return _compare_jointly(pairs)


def sweep_points(rows: Sequence[RunRow], condition: Condition) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """By system and weight, aggregate KL and reconstruction error of every run, from the smallest weight up."""
    values_of(rows, condition)  # one name for two settings is refused
    here = [row for row in rows if row.condition == condition and set(MEASURES) <= row.measures.keys()]
    by_name = {runs[0].system: runs for runs in _by_system(here)}
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for title, system_at in (("WiSE-ALE", s.sweep_of_wise_ale), ("β-VAE (AEVB at weight 1)", s.sweep_of_beta_vae)):
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
    )


def _values(rows: Sequence[RunRow], measure: str) -> list[float]:
    return [row.measures[measure] for row in rows if measure in row.measures]


def _is_wise_ale(row: RunRow) -> bool:
    """The paper's bound over the batch at any weight, without warm-up."""
    name, settings = parse_spec(row.objective)
    return name == "wise_ale" and not set(settings) - {"prior_weight"} and row.prior_warmup == 0


def _is_beta_vae(row: RunRow, beta: float) -> bool:
    return parse_spec(row.objective)[0] in ("aevb", "beta_vae") and math.isclose(row.weight, beta)
