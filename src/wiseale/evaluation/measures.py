"""What every measure means: name, definition, unit, and which direction is better."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

NOTATION = (
    "q_i = q(z|x_i) = N(μ_i, diag σ_i²) is the posterior of row i; q(z|D) = (1/N) Σ_i q_i the aggregate posterior of "
    "the N evaluated rows; p = N(0, I) the prior; d_z the number of units. x is in the network's units: for data that "
    "is standardised inside the model (see log_jacobian), squared errors and likelihoods refer to the standardised x."
)
_WILDCARDS = {"NAME": ".+", "FACTOR": ".+", "Q": "[1-4]"}

# A title for each part, under it the measures with unit (nats unless stated otherwise), better direction and meaning.
_DEFINITIONS = """
== reconstruction
reconstruction (less is better)
    −E log p(x|z) from one z ~ q(z|x) per row (z = μ for a deterministic encoder), summed over the entries of x,
    mean over rows.
mse (squared units of x; less is better)
    Mean over rows of the mean over their observed entries of (x − E[x|z])², from the same z.
reconstruction_at_mu (less is better)
    As reconstruction, from z = μ.
mse_at_mu (squared units of x; less is better)
    As mse, from z = μ.
log_jacobian
    log |d x_network / d x_user|, summed over observed cells, mean over rows.
rmse:NAME (the column's units; less is better)
    Root mean squared error of a column of numbers or counts, reconstructed from z = μ.
rmse_baseline:NAME (the column's units)
    The same error where the column's mean is always predicted.
accuracy:NAME (no unit; more is better)
    Fraction of the observed cells of a column whose level is reconstructed correctly from z = μ.
accuracy_baseline:NAME (no unit)
    The same fraction where the most frequent level is always predicted.
psnr (dB; more is better)
    Images only: mean over images of −10·log10(mean squared error), pixels from 0 to 1, from z ~ q(z|x).
psnr_at_mu (dB; more is better)
    As psnr, from z = μ.
ssim (no unit; more is better)
    Images only: structural similarity (Wang et al. 2004) from z ~ q(z|x); 1 is identical.
ssim_at_mu (no unit; more is better)
    As ssim, from z = μ.
== match with the prior
kl_posterior_prior
    The AEVB term: mean over rows of KL(q_i‖p) = ½ Σ_k (μ_ik² + σ_ik² − 1) − Σ_k log σ_ik.
kl_aggregate_mc
    KL(q(z|D)‖p), estimated without bias by (1/N) Σ_i [log q(z_i|D) − log p(z_i)] with one z_i ~ q_i per row.
kl_aggregate_mc_standard_error
    Its standard error, from the spread over rows.
kl_aggregate_lower_bound
    Analytic lower bound on KL(q(z|D)‖p) from all pairs KL(q_i‖q_j) (Kolchinsky & Tracey 2017).
kl_aggregate_jensen_upper_bound
    The paper's analytic upper bound on KL(q(z|D)‖p) (eq:KL-UB), over all N rows.
kl_aggregate_bhattacharyya_upper_bound
    Analytic upper bound on KL(q(z|D)‖p) from all pairs' Bhattacharyya distances (Kolchinsky & Tracey 2017).
mutual_information
    I(x; z) = E [log q_i(z) − log q(z|D)] at the z of kl_aggregate_mc: the information in a code about which of the
    N rows it came from, at most log N.
== likelihood
elbo (more is better)
    −reconstruction − kl_posterior_prior: a lower bound on log p(x), for any training objective.
nll_importance_weighted (less is better)
    −log (1/K) Σ_k p(x|z_k)·p(z_k)/q(z_k|x) with z_k ~ q(z|x) (Burda et al. 2016), mean over rows.
nll_importance_weighted_standard_error
    Its standard error over rows.
nll_samples (no unit)
    K, the codes drawn per row.
nll_rows (no unit)
    Rows used for it.
== use of the units
active_units (no unit)
    Number of units k (latent dimensions) with Var_i μ_ik > 0.01.
sigma_floor_fraction (no unit)
    Fraction of all σ_ik within 1 % of the floor that the network adds to σ.
sigma_geometric_mean (no unit)
    exp of the mean of log σ_ik: the width of the posteriors.
== separation
separation (no unit)
    E r_i with r_i = q_i(z)/Σ_j q_j(z) at z ~ q_i, j over a random batch of 64 rows: the probability of identifying
    the row from its code.
separation_entropy
    H(i|z) = −E log r_i: 0 for posteriors that do not overlap, at most log 64.
separation_batches (no unit)
    Number of batches averaged.
== compactness
kl_reverse_mc
    KL(p‖q(z|D)) = E_p[log p(z) − log q(z|D)] over draws from the prior: large if the prior has mass where no
    posterior has.
kl_reverse_mc_standard_error
    Its standard error, itself unreliable if the tail is heavy.
jensen_shannon_mc
    ½ KL(q(z|D)‖m) + ½ KL(p‖m) with m = ½ q(z|D) + ½ p: between 0 (equal) and log 2 = 0.693 (no overlap).
jensen_shannon_mc_standard_error
    Its standard error.
prior_mass_covered (no unit)
    Fraction of draws from the prior inside at least one posterior's 95 % ellipsoid.
prior_draws (no unit)
    Draws from the prior used for these.
code_density (no unit)
    Density of Naeem et al. (2020), k = 5, of one code per row among as many draws from the prior: about 1 for codes
    distributed as the prior, more where they crowd in its middle.
code_coverage (no unit)
    Coverage of the same authors: fraction of the draws whose ball, reaching to their 5th nearest neighbour, holds
    at least one code.
== smoothness
reconstruction_rise (less is better)
    Increase of −log p(x|z) when μ moves by ±0.1·s_k in every unit k (random signs), s_k² = mean_i σ_ik² + Var_i
    μ_ik; mean over rows.
path_curvature (no unit; less is better)
    For straight paths between the μ of two random rows, decoded at T = 11 equally spaced points x_1 … x_T: mean_t
    ‖x_{t+1} − 2x_t + x_{t−1}‖²·(T−1)⁴/‖x_T − x_1‖², mean over paths.
path_curvature_median (no unit; less is better)
    The median over the same paths.
path_curvature_paths (no unit)
    Paths averaged, at most 500.
== disentanglement
mig (no unit; more is better)
    Mutual information gap (Chen et al. 2018): for each factor the best minus the second-best unit's I(unit;
    factor)/H(factor), on bins of μ; mean over factors.
mig_sampled (no unit; more is better)
    As mig, with units z ~ q(z|x), one draw per row.
sap (no unit; more is better)
    Separated attribute predictability (Kumar et al. 2018): for each factor the best minus the second-best unit's
    score, mean over factors.
dci_disentanglement (no unit; more is better)
    Eastwood & Williams (2018): 1 − normalised entropy of a unit's importance over factors in a random forest, units
    weighted by their importance.
dci_completeness (no unit; more is better)
    1 − normalised entropy of a factor's importance over units, mean over factors.
dci_informativeness (no unit; more is better)
    How well all units together predict a factor on rows not used for fitting: R² or accuracy above chance, at least
    0; mean over factors.
disentanglement_rows (no unit)
    Rows used.
dci_informativeness_FACTOR (no unit; more is better)
    The same for one factor.
== errors by factor
mse_at_mu_FACTOR_quartile_Q (squared units of x; less is better)
    Mean squared error from μ of the rows in the Q-th quartile of a continuous factor, lowest values first.
amplitude_error (the user's units; less is better)
    Sine waves only: mean |Â − A| with Â the least-squares amplitude of the reconstruction from μ at the true
    frequency and phase.
amplitude_bias (the user's units)
    Mean of Â − A over the same waves; negative if the reconstructions' amplitudes are too small.
== training
training_elbo (more is better)
    The ELBO of the last epoch on the rows that were learned from, while the weights still changed.
seconds_per_thousand_rows (seconds; less is better)
    Time to train on a thousand rows by the clock, median over epochs.
cpu_seconds_per_thousand_rows (seconds; less is better)
    Processor time to train on a thousand rows, summed over the threads of the first rank, median over epochs.
"""


class Measure(NamedTuple):
    """The meaning of one measure.

    Attributes:
        name: as in ``evaluation.json``; NAME, FACTOR and Q stand for a column, a factor and the number of a quarter.
        definition: one sentence.
        unit: empty for counts and shares.
        better: ``"less"`` or ``"more"``; empty for a measure that describes a representation.
    """

    name: str
    definition: str
    unit: str = "nats"
    better: str = ""

    def names(self, name: str) -> bool:
        """Whether this is the measure that an evaluation calls ``name``.

        >>> Measure("rmse:NAME", "").names("rmse:price"), Measure("mse", "").names("mse_at_mu")
        (True, False)
        """
        pattern = re.sub("NAME|FACTOR|Q$", lambda part: _WILDCARDS[part[0]], self.name)
        return re.fullmatch(pattern, name) is not None

    @property
    def text(self) -> str:
        """Definition, unit and direction: ``"As mse, from z = μ. Less is better."``."""
        unit = "" if self.unit in ("nats", "") else f" In {self.unit}."
        return f"{self.definition}{unit}{f' {self.better.capitalize()} is better.' if self.better else ''}"


def _measures(part: str) -> tuple[Measure, ...]:
    measures = []
    for name, note, definition in re.findall(r"^(\S+)(?: \((.+)\))?\n((?: {4}.+\n?)+)", part, re.MULTILINE):
        unit, better = note, ""
        if note.endswith(" is better"):
            unit, _, better = note.removesuffix(" is better").rpartition("; ")
        unit = {"": "nats", "no unit": ""}.get(unit, unit)
        measures.append(Measure(name, " ".join(definition.split()), unit, better))
    return tuple(measures)


MEASURES = {part.splitlines()[0]: _measures(part) for part in _DEFINITIONS.split("== ")[1:]}
"""Every measure by the question that it answers: the titles of the parts of an evaluation, and training."""


def defined(names: Iterable[str]) -> list[Measure]:
    """The measures that an evaluation or a report calls by these names, in the order of reading.

    >>> [measure.name for measure in defined(["rmse:price", "mse"])]
    ['mse', 'rmse:NAME']
    """
    names = list(names)
    return [one for part in MEASURES.values() for one in part if any(one.names(name) for name in names)]
