"""The parts of an evaluation in the order of reading, and what each requires of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wiseale.evaluation import compactness, coverage, elbo, likelihood, prior_match, separation, widths
from wiseale.evaluation.case import Case, Need, Tick
from wiseale.evaluation.columns import columns
from wiseale.evaluation.disentanglement import disentanglement
from wiseale.evaluation.factor_detail import factor_detail
from wiseale.evaluation.findings import Findings
from wiseale.evaluation.reconstruction import image_quality, reconstruction
from wiseale.evaluation.smoothness import smoothness


@dataclass(frozen=True)
class Part:
    """Measures that answer one question about a representation.

    Attributes:
        title: the question; several parts may share one.
        measure: computes the measures.
        needs: what the model must have for the measures to be defined.
        names: the measures that are null where the model lacks one of the needs.
    """

    title: str
    measure: Callable[[Case, Tick], Findings]
    needs: tuple[Need, ...] = ()
    names: tuple[str, ...] = ()


PARTS = (
    Part("reconstruction", reconstruction),
    Part("reconstruction", image_quality),
    Part("reconstruction", columns),
    Part("match with the prior", prior_match.prior_match, ("stochastic encoder", "normal prior"), prior_match.NAMES),
    Part("likelihood", elbo.elbo, ("stochastic encoder",), elbo.NAMES),
    Part("likelihood", likelihood.likelihood, ("stochastic encoder", "normal prior"), likelihood.NAMES),
    Part("use of the units", widths.active_units),
    Part("use of the units", widths.widths, ("stochastic encoder",), widths.NAMES),
    Part("separation", separation.separation, ("stochastic encoder",), separation.NAMES),
    Part("compactness", compactness.compactness, ("stochastic encoder", "normal prior"), compactness.NAMES),
    Part("compactness", coverage.coverage, ("normal prior",), coverage.NAMES),
    Part("smoothness", smoothness),
    Part("disentanglement", disentanglement),
    Part("errors by factor", factor_detail),
)
