"""The known factors of the rows: whether single units stand for them, and where the reconstruction fails.

MIG, DCI and SAP are computed on mu. Chen et al. (2018) define the MIG for z ~ q(z|x), most code since measures it on
mu: ``mig_sampled`` and ``mig``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import mutual_info_score
from sklearn.tree import DecisionTreeClassifier

from wiseale.data.dataset import Array
from wiseale.evaluation.case import Case, Draw, Tick
from wiseale.evaluation.record import Findings

Classes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

BINS = 20
MOST_CLASSES = 100

DISENTANGLEMENT = (
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

LEAST_ROWS_OF_QUARTILES = 40
_WAVE = ("frequency", "phase", "amplitude")
_FAINT = 0.01  # mean square below which sin(2πft + φ) is too flat to read an amplitude from


@dataclass(frozen=True)
class KnownFactor:
    """One factor of all rows.

    Attributes:
        kind: classes have no order; circular factors are only ever used through their bins.
        values: the numbers of a continuous or circular factor, the class of each row otherwise, (n,).
        bins: which of 20 bins each row falls into (of equal counts; circular: of equal width), or its class, (n,).
    """

    name: str
    kind: Literal["continuous", "circular", "classes"]
    values: Numbers
    bins: Classes


def known_factors(factors: Mapping[str, Array], circular: Mapping[str, float]) -> list[KnownFactor]:
    """The factors that can be used: not constant, no missing numbers, and no more than 100 classes."""
    every = (_factor(name, values, circular.get(name)) for name, values in factors.items())
    return [factor for factor in every if factor is not None]


def _factor(name: str, values: Array, period: float | None) -> KnownFactor | None:
    numeric = values.dtype.kind in "biuf"
    if not numeric and period is None:
        values = values.astype(str)
    elif not np.isfinite(numbers := values.astype(np.float64)).all():
        return None
    distinct, classes = np.unique(values, return_inverse=True)
    if len(distinct) < 2:
        return None
    if period is not None:
        turns = np.floor(numbers % period / period * BINS).astype(np.int64)
        return KnownFactor(name, "circular", numbers, turns.clip(0, BINS - 1))
    if numeric and len(distinct) > BINS:
        return KnownFactor(name, "continuous", numbers, equal_counts(numbers))
    if len(distinct) > MOST_CLASSES:
        return None
    return KnownFactor(name, "classes", classes.astype(np.float64), classes.astype(np.int64))


def equal_counts(values: Numbers, bins: int = BINS) -> Classes:
    """Which of ``bins`` bins of about equal counts each value falls into, (n,); equal values share a bin."""
    edges = np.quantile(values, np.arange(1, bins) / bins)
    return np.searchsorted(edges, values, side="right")


def disentanglement(case: Case, tick: Tick) -> Findings:
    """MIG, SAP and DCI on at most 5,000 rows; units are the posterior means, for ``mig_sampled`` draws z ~ q(z|x)."""
    mu = case.encoded.posterior.mu
    rows = case.shuffled(Draw.FACTORS)[:MOST_ROWS].numpy()
    known = known_factors(case.encoded.factors, case.encoded.circular)
    factors = [KnownFactor(one.name, one.kind, one.values[rows], one.bins[rows]) for one in known]
    factors = [one for one in factors if len(np.unique(one.bins)) > 1]  # a rare class may not be among the rows
    n, units = mu.shape
    if len(factors) < 2:
        reason = f"needs at least 2 known factors that vary, the data has {len(factors)}"
        return Findings.none(DISENTANGLEMENT, reason)
    if units < 2:
        return Findings.none(DISENTANGLEMENT, "needs at least 2 units, the model has 1")
    if n < LEAST_ROWS:
        return Findings.none(DISENTANGLEMENT, f"needs at least {LEAST_ROWS} rows, there are {n}")
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
    samples = case.codes(Draw.FACTOR_CODES)[rows].double().numpy()
    return Findings.of(numbers | {"mig_sampled": mean_gap(mutual_information(samples, factors))})


def mean_gap(scores: Numbers) -> float:
    """Difference of each factor's best and second-best unit, mean over factors; scores are (factors, units)."""
    best = np.sort(scores, axis=1)
    return float((best[:, -1] - best[:, -2]).mean())


def mutual_information(codes: Numbers, factors: Sequence[KnownFactor]) -> Numbers:
    """I(unit; factor) of the binned values over the factor's entropy, (factors, units), between 0 and 1."""
    units = [equal_counts(unit) for unit in codes.T]
    return np.array(
        [
            [mutual_info_score(factor.bins, unit) / mutual_info_score(factor.bins, factor.bins) for unit in units]
            for factor in factors
        ]
    )


def single_unit_scores(codes: Numbers, factors: Sequence[KnownFactor]) -> Numbers:
    """How well one unit alone predicts a factor, (factors, units): R² of a straight line for continuous factors.

    For classes and bins: accuracy above chance, on unseen rows, of thresholds on the unit (as many leaves as classes).
    """
    split = int(TRAIN * len(codes))

    def score(factor: KnownFactor, unit: Numbers) -> float:
        if factor.kind == "continuous":
            return _squared_correlation(unit, factor.values)
        thresholds = DecisionTreeClassifier(max_leaf_nodes=int(factor.bins.max()) + 1, random_state=0)
        thresholds.fit(unit[:split, None], factor.bins[:split])
        return _above_chance(factor.bins[split:], thresholds.predict(unit[split:, None]))

    return np.array([[score(factor, unit) for unit in codes.T] for factor in factors])


def forest_importance(codes: Numbers, factors: Sequence[KnownFactor], seed: int, tick: Tick) -> tuple[Numbers, Numbers]:
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


def _above_chance(truth: Classes, guess: Classes) -> float:
    """Accuracy, 0 for always naming the commonest class, 1 for no error."""
    chance = np.unique(truth, return_counts=True)[1].max() / len(truth)
    return max(0.0, float((truth == guess).mean() - chance) / (1 - chance)) if chance < 1 else 0.0


def factor_detail(case: Case, tick: Tick) -> Findings:
    """MSE from mu by quartile of each continuous factor, and amplitude errors where the rows are sine waves."""
    return mse_by_quartile(case) | amplitude_error(case)


def mse_by_quartile(case: Case) -> Findings:
    """Mean squared error of the rows in each quarter of a factor's range of ranks, lowest first."""
    n, findings = len(case.encoded.rows), Findings({})
    for factor in known_factors(case.encoded.factors, case.encoded.circular):
        if factor.kind != "continuous":
            continue
        names = [f"mse_at_mu_{factor.name}_quartile_{number}" for number in range(1, 5)]
        if n < LEAST_ROWS_OF_QUARTILES:
            findings |= Findings.none(names, f"needs at least {LEAST_ROWS_OF_QUARTILES} rows, there are {n}")
            continue
        quartile = torch.from_numpy(equal_counts(factor.values, 4))
        for i, name in enumerate(names):
            squared = case.errors_at_mu.squared[quartile == i]
            if len(squared):
                findings |= Findings.of({name: float(squared.nanmean())})
            else:
                findings |= Findings.none((name,), "no row falls into this quarter: equal values share one")
    return findings


@torch.no_grad()
def amplitude_error(case: Case) -> Findings:
    """mean |Â − A| and mean (Â − A), Â the least-squares amplitude of the decoded mu at the true frequency and phase.

    Nothing where the rows are not single-channel waves over one second with these three factors. Waves that stay
    near zero throughout (mean square of sin(2πft + φ) below 0.01) show no amplitude and are left out.
    """
    encoded = case.encoded
    shape = encoded.model.x_shape
    if not (len(shape) == 2 and shape[0] == 1 and set(_WAVE) <= set(encoded.factors)):
        return Findings({})
    frequency, phase, amplitude = (np.asarray(encoded.factors[name], np.float64) for name in _WAVE)
    t = np.arange(shape[1]) / shape[1]
    errors = []
    for _, part in encoded.blocks():
        x_hat = encoded.codec.in_user_units(encoded.model.decode(encoded.posterior.mu[part]).mean)
        wave = np.sin(2 * np.pi * frequency[part, None] * t + phase[part, None])
        clear, estimate = fitted_amplitude(x_hat[:, 0].double().numpy(), wave)
        errors.append((estimate - amplitude[part])[clear])
    error = np.concatenate(errors)
    names = ("amplitude_error", "amplitude_bias")
    if len(error) == 0:
        return Findings.none(names, "no wave shows its amplitude")
    return Findings.of(dict(zip(names, (float(np.abs(error).mean()), float(error.mean())), strict=True)))


def fitted_amplitude(x_hat: Numbers, wave: Numbers) -> tuple[Numbers, Numbers]:
    """Which unit waves (n, length) are strong enough to see, (n,) bool, and Â = ⟨x_hat, wave⟩/⟨wave, wave⟩, (n,)."""
    power = np.square(wave).mean(1)
    clear = power >= _FAINT
    return clear, (x_hat * wave).mean(1) / np.where(clear, power, 1.0)
