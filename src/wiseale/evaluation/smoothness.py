"""Whether the decoder changes gently with the code; a decoder that ignores the code wins, so read it beside the MSE."""

from __future__ import annotations

import torch
from torch import Tensor

from wiseale.evaluation.case import Case, Draw, Tick
from wiseale.evaluation.findings import Findings
from wiseale.evaluation.row_errors import row_nats
from wiseale.networks.model import Model

NAMES = ("reconstruction_rise", "path_curvature", "path_curvature_median", "path_curvature_paths")
STEP = 0.1
POINTS = 11
PATHS = 500

_STILL = 1e-3  # ends of a path that differ by less than this part of their size leave only rounding to look at
_PATHS_AT_ONCE = 32


def smoothness(case: Case, tick: Tick) -> Findings:
    """Rise of the reconstruction (nats) when codes move a little, and curvature of decoded straight paths."""
    mu = case.encoded.posterior.mu
    if len(mu) < 2:
        return Findings.none(NAMES, "needs at least 2 rows")
    signs = 2.0 * torch.randint(2, mu.shape, generator=case.generator(Draw.MOVE)) - 1
    moved = row_nats(case.encoded, mu + STEP * signs * code_spread(case))
    found = Findings.of({"reconstruction_rise": float((moved - case.errors_at_mu.nats).mean())})
    tick(0.5)
    columns = case.encoded.codec.space.columns
    if any(column.kind == "category" or column.is_count for column in columns):
        # The likeliest level is a step function of the code, and its number means nothing; counts outweigh the rest.
        return found | Findings.none(NAMES[1:], "a table with categories or counts has no curvature")
    ends = torch.randint(len(mu), (2, PATHS), generator=case.generator(Draw.PATHS))
    ends = ends[:, ends[0] != ends[1]]
    curvature = path_curvature(case.encoded.model, mu[ends[0]], mu[ends[1]])
    if len(curvature) == 0:
        return found | Findings.none(NAMES[1:], "the decoder gives the same at both ends of every path")
    numbers = (float(curvature.mean()), float(curvature.median()), len(curvature))
    return found | Findings.of(dict(zip(NAMES[1:], numbers, strict=True)))


def code_spread(case: Case) -> Tensor:
    """s_k = √(mean_i sigma_ik² + Var_i mu_ik), the spread of the codes in each unit, (d_z,)."""
    q = case.encoded.posterior
    variance = q.mu.var(0)
    if case.encoded.model.stochastic:
        variance = variance + q.scale.square().mean(0)
    return variance.sqrt()


@torch.no_grad()
def path_curvature(model: Model, start: Tensor, stop: Tensor) -> Tensor:
    """mean_t ‖x_{t+1} − 2x_t + x_{t−1}‖²·(T−1)⁴/‖x_T − x_1‖² along straight paths between codes (P, d_z).

    x is the decoded mean at T = 11 equally spaced points. Paths whose two ends decode to the same are left out, so
    the result is (at most P,), float64.
    """
    found = []
    steps = torch.linspace(0, 1, POINTS)[:, None, None]
    for a, b in zip(torch.split(start, _PATHS_AT_ONCE), torch.split(stop, _PATHS_AT_ONCE), strict=True):
        codes = torch.lerp(a, b, steps)
        x = model.decode(codes.flatten(0, 1)).mean.double().view(POINTS, len(a), -1)
        bend = (x[2:] - 2 * x[1:-1] + x[:-2]).square().sum(-1).mean(0) * (POINTS - 1) ** 4
        change = (x[-1] - x[0]).square().sum(-1)
        size = 0.5 * (x[-1].square().sum(-1) + x[0].square().sum(-1))
        moving = change > _STILL**2 * size
        found.append(bend[moving] / change[moving])
    return torch.cat(found)
