"""The parts of an evaluation in the order people read them, and what each needs of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wiseale.evaluation import compactness, coverage, elbo, likelihood, prior_match, separation, widths
from wiseale.evaluation.case import Case, Need, Tick
from wiseale.evaluation.disentanglement import disentanglement
from wiseale.evaluation.factor_detail import factor_detail
from wiseale.evaluation.findings import Findings
from wiseale.evaluation.reconstruction import image_quality, reconstruction
from wiseale.evaluation.smoothness import smoothness


@dataclass(frozen=True)
class Part:
    """One question to a representation.

    Attributes:
        title: the question; several parts may share one.
        measure: what answers it.
        needs: what the model must have.
        names: what is null where it has not.
    """

    title: str
    measure: Callable[[Case, Tick], Findings]
    needs: tuple[Need, ...] = ()
    names: tuple[str, ...] = ()


PARTS = (
    Part("reconstruction", reconstruction),
    Part("reconstruction", image_quality),
    Part("match with the prior", prior_match.prior_match, ("width", "normal prior"), prior_match.NAMES),
    Part("likelihood", elbo.elbo, ("width",), elbo.NAMES),
    Part("likelihood", likelihood.likelihood, ("width", "normal prior"), likelihood.NAMES),
    Part("use of the units", widths.active_units),
    Part("use of the units", widths.widths, ("width",), widths.NAMES),
    Part("separation", separation.separation, ("width",), separation.NAMES),
    Part("compactness", compactness.compactness, ("width", "normal prior"), compactness.NAMES),
    Part("compactness", coverage.coverage, ("normal prior",), coverage.NAMES),
    Part("smoothness", smoothness),
    Part("disentanglement", disentanglement),
    Part("errors by factor", factor_detail),
)
