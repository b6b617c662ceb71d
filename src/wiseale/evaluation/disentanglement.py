"""Whether single units stand for single factors: MIG, DCI and SAP, on mu and the known factors.

Chen et al. (2018) define the MIG for z ~ q(z|x), most code since measures it on mu: ``mig_sampled`` and ``mig``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import mutual_info_score
from sklearn.tree import DecisionTreeClassifier

from wiseale.evaluation.case import Case, Draw, Tick
from wiseale.evaluation.factors import BINS, Factor, Numbers, equal_counts, known_factors
from wiseale.evaluation.findings import Findings

NAMES = (
    "mig",
    "mig_sampled",
    "sap",
    "dci_disentanglement",
    "dci_completeness",
    "dci_informativeness",
    "disentanglement_rows",
)
MOST_ROWS = 5000
LEAST_ROWS = BINS * BINS
TRAIN = 0.8
TREES = 50


def disentanglement(case: Case, tick: Tick) -> Findings:
    """MIG, SAP and DCI on at most 5,000 rows; units are the posterior means, for ``mig_sampled`` draws z ~ q(z|x)."""
    mu = case.encoded.posterior.mu
    rows = case.shuffled(Draw.FACTORS)[:MOST_ROWS].numpy()
    known = (factor.take(rows) for factor in known_factors(case.encoded.factors, case.encoded.circular))
    factors = [factor for factor in known if len(np.unique(factor.bins)) > 1]  # a rare class may not be among the rows
    reason = _why_not(len(factors), *mu.shape)
    if reason is not None:
        return Findings.none(NAMES, reason)
    codes = mu[rows].double().numpy()
    importance, informativeness = forest_importance(codes, factors, case.seed, tick)
    of_units, of_factors = disentanglement_and_completeness(importance)
    numbers = {
        "mig": mean_gap(mutual_information(codes, factors)),
        "sap": mean_gap(single_unit_scores(codes, factors)),
        "dci_disentanglement": of_units,
        "dci_completeness": of_factors,
        "dci_informativeness": float(informativeness.mean()),
        "disentanglement_rows": len(rows),
    }
    each = zip(factors, informativeness, strict=True)
    numbers |= {f"dci_informativeness_{factor.name}": float(score) for factor, score in each}
    if "stochastic encoder" in (missing := case.missing()):
        return Findings.of(numbers) | Findings.none(("mig_sampled",), missing["stochastic encoder"])
    drawn = case.codes(Draw.FACTOR_CODES)[rows].double().numpy()
    return Findings.of(numbers | {"mig_sampled": mean_gap(mutual_information(drawn, factors))})


def mean_gap(scores: Numbers) -> float:
    """Difference of each factor's best and second-best unit, mean over factors; scores are (factors, units)."""
    best = np.sort(scores, axis=1)
    return float((best[:, -1] - best[:, -2]).mean())


def mutual_information(codes: Numbers, factors: Sequence[Factor]) -> Numbers:
    """I(unit; factor) of the binned values over the factor's entropy, (factors, units), between 0 and 1."""
    units = [equal_counts(unit) for unit in codes.T]
    return np.array(
        [
            [mutual_info_score(factor.bins, unit) / mutual_info_score(factor.bins, factor.bins) for unit in units]
            for factor in factors
        ]
    )


def single_unit_scores(codes: Numbers, factors: Sequence[Factor]) -> Numbers:
    """How well one unit alone predicts a factor, (factors, units): R² of a straight line for continuous factors.

    For classes and bins: accuracy above chance, on unseen rows, of thresholds on the unit (as many leaves as classes).
    """
    scores = np.zeros((len(factors), codes.shape[1]))
    split = int(TRAIN * len(codes))
    for j, factor in enumerate(factors):
        for k, unit in enumerate(codes.T):
            if factor.kind == "continuous":
                scores[j, k] = _squared_correlation(unit, factor.values)
                continue
            thresholds = DecisionTreeClassifier(max_leaf_nodes=int(factor.bins.max()) + 1, random_state=0)
            thresholds.fit(unit[:split, None], factor.bins[:split])
            scores[j, k] = _above_chance(factor.bins[split:], thresholds.predict(unit[split:, None]))
    return scores


def forest_importance(codes: Numbers, factors: Sequence[Factor], seed: int, tick: Tick) -> tuple[Numbers, Numbers]:
    """Importance of each unit in a random forest that predicts each factor, (factors, units), rows adding up to 1.

    Beside it the forests' score on unseen rows, (factors,): R² for continuous factors, accuracy above chance else;
    at least 0.
    """
    importance = np.zeros((len(factors), codes.shape[1]))
    scores = np.zeros(len(factors))
    split = int(TRAIN * len(codes))
    # All units at every split: a choice among few would force importance upon units that have none.
    settings = {"n_estimators": TREES, "max_features": 1.0, "min_samples_leaf": 5, "random_state": seed}
    for j, factor in enumerate(factors):
        tick(j / len(factors))
        if factor.kind == "continuous":
            forest = RandomForestRegressor(**settings).fit(codes[:split], factor.values[:split])
            scores[j] = max(0.0, forest.score(codes[split:], factor.values[split:]))
        else:
            forest = RandomForestClassifier(**settings).fit(codes[:split], factor.bins[:split])
            scores[j] = _above_chance(factor.bins[split:], forest.predict(codes[split:]))
        importance[j] = forest.feature_importances_
    return importance, scores


def disentanglement_and_completeness(importance: Numbers) -> tuple[float, float]:
    """DCI (Eastwood & Williams 2018): how far each unit serves one factor, and each factor sits in one unit.

    Units are weighted by their importance, factors are not; with no importance anywhere both are 0.
    """
    total = importance.sum()
    weights = importance.sum(0) / total if total > 0 else np.zeros(importance.shape[1])
    return float((weights * _concentration(importance)).sum()), float(_concentration(importance.T).mean())


def _concentration(importance: Numbers) -> Numbers:
    """1 − entropy of each column's shares over its largest possible value; 0 for a column without importance."""
    total = importance.sum(0)
    share = np.divide(importance, total, out=np.full_like(importance, 1 / len(importance)), where=total > 0)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    return np.asarray(1 + (share * logs).sum(0) / np.log(len(importance)))


def _squared_correlation(a: Numbers, b: Numbers) -> float:
    a, b = a - a.mean(), b - b.mean()
    both = float((a * a).sum() * (b * b).sum())
    return float((a * b).sum()) ** 2 / both if both > 0 else 0.0


def _above_chance(truth: npt.NDArray[np.int64], guess: npt.NDArray[np.int64]) -> float:
    """Accuracy, 0 for always naming the commonest class, 1 for no error."""
    chance = np.unique(truth, return_counts=True)[1].max() / len(truth)
    return max(0.0, float((truth == guess).mean() - chance) / (1 - chance)) if chance < 1 else 0.0


def _why_not(factors: int, rows: int, units: int) -> str | None:
    if factors < 2:
        return f"needs at least 2 known factors that vary, the data has {factors}"
    if units < 2:
        return "needs at least 2 units, the model has 1"
    if rows < LEAST_ROWS:
        return f"needs at least {LEAST_ROWS} rows, there are {rows}"
    return None
