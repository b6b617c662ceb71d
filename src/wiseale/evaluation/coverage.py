"""Density and coverage (Naeem et al. 2020): codes against draws from the prior, for any encoder."""

from __future__ import annotations

import torch
from torch import Tensor

from wiseale.evaluation.case import Case, Draw, Tick
from wiseale.evaluation.findings import Findings

NAMES = ("code_density", "code_coverage")
NEIGHBOURS = 5

_BLOCK_PAIRS = 1 << 21


@torch.no_grad()
def coverage(case: Case, tick: Tick) -> Findings:
    """Density and coverage of one code per row against as many draws from the prior."""
    codes = case.codes(Draw.COVERAGE)
    if len(codes) <= NEIGHBOURS:
        return Findings.none(NAMES, f"needs more than {NEIGHBOURS} rows, there are {len(codes)}")
    density, covered = density_and_coverage(case.prior_codes(len(codes), Draw.PRIOR), codes, NEIGHBOURS)
    return Findings.of({"code_density": density, "code_coverage": covered})


def density_and_coverage(real: Tensor, fake: Tensor, k: int) -> tuple[float, float]:
    """How many real points' balls hold a fake point, over k, and the fraction of balls that hold any.

    The ball of a real point (N, d) reaches to its k-th nearest other real point; fake points are (M, d).
    """
    size = max(1, _BLOCK_PAIRS // max(len(real), len(fake)))

    @torch.no_grad()
    def of_block(start: int) -> tuple[int, int]:
        centres = real[start : start + size]
        among = _distances(centres, real)
        rows = torch.arange(len(centres))
        among[rows, start + rows] = torch.inf  # not its own neighbour
        radius = among.kthvalue(k, dim=1).values
        hit = _distances(centres, fake) < radius[:, None]
        return int(hit.sum()), int(hit.any(1).sum())

    inside, filled = map(sum, zip(*(of_block(start) for start in range(0, len(real), size)), strict=True))
    return inside / (k * len(fake)), filled / len(real)


def _distances(left: Tensor, right: Tensor) -> Tensor:
    return torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
