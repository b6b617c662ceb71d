"""Collapse: an encoder whose codes say next to nothing about x, how it is noticed, and what to try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from wiseale.divergences import log_aggregate
from wiseale.likelihoods import LikelihoodSettings
from wiseale.networks.model import Model
from wiseale.objectives.terms import Objective
from wiseale.posterior import Posterior
from wiseale.randomness import standard_normal

ACTIVE_VARIANCE = 0.01  # a unit is active if its posterior means vary by more than this (Burda et al. 2016)
LEAST_INFORMATION = 0.1  # nats of mutual information below which a model counts as collapsed
ENOUGH_ROWS = 200  # from which collapse is judged by their mutual information: with fewer its estimate is too noisy
ROWS = 1000  # that code_use_of reads at the most: the mutual information costs their square


@dataclass(frozen=True)
class CodeUse:
    """How much a model's codes say about x: units that are active, Var_x mu_k > 0.01, and the information in nats.

    The mutual information of x and z is None where the encoder is deterministic or it was not measured.

    >>> CodeUse(2, 0.03).collapsed, CodeUse(2, 3.0).collapsed, CodeUse(0).collapsed
    (True, False, True)
    """

    active_units: int
    mutual_information: float | None = None

    @property
    def collapsed(self) -> bool:
        """Whether no unit is active, or the mutual information is below 0.1 nats."""
        little = self.mutual_information is not None and self.mutual_information < LEAST_INFORMATION
        return self.active_units == 0 or little

    def __str__(self) -> str:
        units = f"{self.active_units} active unit{'' if self.active_units == 1 else 's'}"
        if self.mutual_information is None:
            return units
        return f"{units}, mutual information {max(0.0, self.mutual_information):.2g} nats"


def active_units(mu: Tensor) -> int:
    """Units whose mean varies from row to row, Var_x mu_k > 0.01, for means (n, d_z) of at least 2 rows."""
    return int((mu.double().var(0) > ACTIVE_VARIANCE).sum())


def mutual_information(posterior: Posterior, z: Tensor, log_q: Tensor) -> float:
    """Between x and z, nats: mean_i [log q(z_i|x_i) − log q(z_i)], of one code z_i ~ q(z|x_i) for each of n rows.

    q(z) is the aggregate posterior of the rows and ``log_q`` its log density at the codes, (n,). The mean is that of
    AEVB's KL minus the aggregate KL, in which the prior cancels; as q(z_i) ≥ q(z_i|x_i)/n, it is at most log n.
    """
    q = posterior.map(Tensor.double)
    return float((q.log_prob(z.double()) - log_q).mean())


@torch.no_grad()
def code_use(posterior: Posterior, epsilon: Tensor) -> CodeUse:
    """The active units and the mutual information of n posteriors, from one draw of z for each.

    >>> q = Posterior(torch.tensor([[-9.0], [9.0]]), torch.ones(2, 1))
    >>> code_use(q, torch.zeros(2, 1))  # two rows that never overlap: log 2
    CodeUse(active_units=1, mutual_information=0.6931...)
    """
    if posterior.sigma is None:
        return CodeUse(active_units(posterior.mu))
    q = posterior.map(Tensor.double)
    z = q.sample(epsilon.double())
    return CodeUse(active_units(q.mu), mutual_information(q, z, log_aggregate(q, z)))


@torch.no_grad()
def code_use_of(model: Model, x: Tensor, seed: int) -> CodeUse:
    """The use of the codes on rows in the network's units, (n, *x_shape) with n ≥ 2."""
    posterior = model.eval().encode(x).map(Tensor.cpu)  # Apple's GPUs have no float64
    return code_use(posterior, standard_normal(tuple(posterior.mu.shape), seed, "evaluate", 0))


def collapse_message(
    use: CodeUse, objective: Objective, likelihood: LikelihoodSettings, spell: Callable[[str], str] = str
) -> str | None:
    """One line that says that a model has collapsed and what to try; None where it has not.

    ``spell`` writes the name of a setting as the reader's interface does (``--lr``).
    """
    if not use.collapsed:
        return None
    weight = objective.weight_setting
    advice = [f"a smaller {weight} in {spell('objective')}" if weight else "a system with a prior weight below 1"]
    advice.append(spell("prior_warmup"))
    if isinstance(getattr(likelihood, "x_sigma", None), float):  # the noise is fixed
        advice.append(f"{spell('likelihood')} gaussian:x_sigma=learned")
    advice += [f"another init in {spell('network')}", "more epochs"]
    return f"the codes have collapsed ({use}): they say next to nothing about the data; try {', '.join(advice)}"
