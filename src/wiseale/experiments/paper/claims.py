"""The paper's claims (and one of ours) judged by measurements: held, not held, or not decided, with the numbers.

A claim is *held* only with at least three seeds and disjoint 95 % intervals in its direction, *not held* with disjoint
intervals against it, and otherwise *not decided*. At smoke scale nothing trained is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from wiseale import registry
from wiseale.experiments import systems as s
from wiseale.experiments.comparison import Estimate, Summary, System

Outcome = Literal["held", "not held", "not decided"]

MINIMUM_SEEDS = 3


@dataclass(frozen=True)
class Verdict:
    """A claim, how it came out, and why."""

    claim: str
    statement: str
    outcome: Outcome
    numbers: str


@dataclass(frozen=True)
class Evidence:
    """Summaries by experiment (``"sine"``, …); ``smoke`` where they are only a rehearsal."""

    summaries: Mapping[str, Summary]
    smoke: bool = False


@dataclass(frozen=True)
class Comparand:
    """One inequality: ``better``'s measure is below ``worse``'s in an experiment."""

    experiment: str
    measure: str
    better: System
    worse: System


def judge_inequalities(claim: str, statement: str, evidence: Evidence, wanted: Sequence[Comparand]) -> Verdict:
    """Held if every inequality is; not held if one is reversed; the numbers of each are given."""
    outcomes: list[Outcome] = []
    numbers = []
    for one in wanted:
        summary = evidence.summaries.get(one.experiment)
        below, above = (_find(summary, system, one.measure) for system in (one.better, one.worse))
        if below is None or above is None:
            continue
        outcomes.append(_outcome(below, above))
        numbers.append(
            f"{one.experiment}, {one.measure}: {one.better.name} {_show(below)} against {one.worse.name} {_show(above)}"
            f" ({outcomes[-1]})"
        )
    if not outcomes:
        return Verdict(claim, statement, "not decided", "the runs it needs were not made")
    if evidence.smoke:
        return Verdict(claim, statement, "not decided", "smoke: a rehearsal, nothing is trained to the end")
    outcome: Outcome = "not decided"
    if "not held" in outcomes:
        outcome = "not held"
    elif all(found == "held" for found in outcomes):
        outcome = "held"
    return Verdict(claim, statement, outcome, "; ".join(numbers))


def _find(summary: Summary | None, system: System, measure: str) -> Estimate | None:
    """A system's estimate; ``-measure`` is its negative, for measures of which more is better."""
    found = None if summary is None else summary.get(system.name, {}).get(measure.removeprefix("-"))
    return replace(found, mean=-found.mean) if found is not None and measure.startswith("-") else found


def _outcome(below: Estimate, above: Estimate) -> Outcome:
    if min(below.n, above.n) < MINIMUM_SEEDS:
        return "not decided"
    if below.high < above.low:
        return "held"
    return "not held" if above.high < below.low else "not decided"


def _show(estimate: Estimate) -> str:
    spread = "" if estimate.half_width is None else f" ± {estimate.half_width:.3g}"
    return f"{estimate.mean:.4g}{spread}"


_VARIANTS = {"weight 1": s.WISE_ALE, "as written, 1/M": s.WISE_ALE_AS_WRITTEN}


def _c1(evidence: Evidence) -> list[Verdict]:
    rivals = (s.AEVB, s.BETA_VAE, s.WAE_MMD)
    return [
        judge_inequalities(
            "C1",
            f"WiSE-ALE ({name}) reconstructs better than AEVB, β-VAE and WAE on every set",
            evidence,
            [Comparand(e, "mse", system, rival) for e in registry.EXPERIMENTS for rival in rivals],
        )
        for name, system in _VARIANTS.items()
    ]


def _c2(evidence: Evidence) -> list[Verdict]:
    rivals = (s.AEVB, s.AEVB_WARM_UP, s.BETA_VAE)
    return [
        judge_inequalities(
            "C2",
            f"on sine waves WiSE-ALE ({name}) has the highest training ELBO, AEVB with warm-up included",
            evidence,
            [Comparand("sine", "-training_elbo", system, rival) for rival in rivals],
        )
        for name, system in _VARIANTS.items()
    ]


def _c3(evidence: Evidence) -> list[Verdict]:
    chain = (s.WAE_MMD_GAUSSIAN, s.WISE_ALE, s.AEVB, s.BETA_VAE)
    pairs = list(pairwise(chain))
    wanted = [Comparand("mnist", "sigma_geometric_mean", narrow, wide) for narrow, wide in pairs]
    wanted += [Comparand("mnist", "separation", wide, narrow) for narrow, wide in pairs]
    statement = "MNIST, 2-D: from WAE (Gaussian encoder) over WiSE-ALE and AEVB to β-VAE posteriors widen and merge"
    return [judge_inequalities("C3", statement, evidence, wanted)]


def _c5(evidence: Evidence) -> list[Verdict]:
    statement = "faces: WiSE-ALE is sharper than AEVB (higher SSIM) and not worse than WAE"
    wanted = [
        Comparand("celeba", "-ssim", s.WISE_ALE, s.AEVB),
        Comparand("celeba", "mse", s.WISE_ALE, s.WAE_MMD),
    ]
    return [judge_inequalities("C5", statement, evidence, wanted)]


def _c6(evidence: Evidence) -> list[Verdict]:
    statement = "learning with the exact reconstruction does not converge to anything useful"
    wanted = [
        Comparand("sine", "mse", s.AEVB, s.WISE_ALE_EXACT),
        Comparand("sine", "mutual_information", s.WISE_ALE_EXACT, s.AEVB),
    ]
    return [judge_inequalities("C6", statement, evidence, wanted)]


def _c7(evidence: Evidence) -> list[Verdict]:
    statement = "AEVB and β-VAE do worse than WiSE-ALE at low frequencies and on amplitude"
    wanted = [
        Comparand("sine", measure, s.WISE_ALE, rival)
        for measure in ("mse_at_mu_frequency_quartile_1", "amplitude_error")
        for rival in (s.AEVB, s.BETA_VAE)
    ]
    return [judge_inequalities("C7", statement, evidence, wanted)]


def _c9(evidence: Evidence) -> list[Verdict]:
    statement = "WAE's codes are more fragile to noise than WiSE-ALE's (rise of reconstruction when codes move)"
    wanted = [Comparand(e, "reconstruction_rise", s.WISE_ALE, s.WAE_MMD) for e in ("sine", "mnist")]
    return [judge_inequalities("C9", statement, evidence, wanted)]


def _c10(evidence: Evidence) -> list[Verdict]:
    statement = "analytic training takes fewer seconds a step than adversarial training"
    wanted = [
        Comparand(e, "seconds_per_thousand_rows", s.WISE_ALE, rival)
        for e in ("sine", "mnist")
        for rival in (s.WAE_GAN, s.AAE)
    ]
    return [judge_inequalities("C10", statement, evidence, wanted)]


def _c11(evidence: Evidence) -> list[Verdict]:
    statement = "(ours) at equal weight w ≥ 1 WiSE-ALE reconstructs better than β-VAE with β = w"
    wanted = [
        Comparand(e, "reconstruction", s.sweep_of_wise_ale(w), s.sweep_of_beta_vae(w))
        for e in ("sine", "mnist")
        for w in ("1", "4", "16")
    ]
    return [judge_inequalities("C11", statement, evidence, wanted)]


JUDGES: tuple[Callable[[Evidence], list[Verdict]], ...] = (_c1, _c2, _c3, _c5, _c6, _c7, _c9, _c10, _c11)


def judge(evidence: Evidence, toy: Sequence[Verdict] = ()) -> list[Verdict]:
    """Every claim in order; C4 and C8 come from the bound analysis."""
    verdicts = [verdict for judge_one in JUDGES for verdict in judge_one(evidence)] + list(toy)
    for claim, statement in (
        ("C4", "two-Gaussian toy: AEVB's KL favours merged posteriors, WiSE-ALE's stays low over a wide range"),
        ("C8", "at the optimum the bound approaches the true KL"),
    ):
        if not any(verdict.claim == claim for verdict in verdicts):
            verdicts.append(Verdict(claim, statement, "not decided", "run `wiseale reproduce toy`"))
    return sorted(verdicts, key=lambda verdict: int(verdict.claim[1:]))
