"""What every measure means: name, definition, unit, and which direction is better."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

NOTATION = (
    "q_i = q(z|x_i) = N(μ_i, diag σ_i²) is the posterior of row i; q(z|D) = (1/N) Σ_i q_i the aggregate posterior of "
    "the N evaluated rows; p = N(0, I) the prior; d_z the number of units. x is in the network's units: for data that "
    "is standardised inside the model (see log_jacobian), squared errors and likelihoods refer to the standardised x."
)
_WILDCARDS = {"NAME": ".+", "FACTOR": ".+", "Q": "[1-4]"}


@dataclass(frozen=True)
class Measure:
    """The meaning of one measure.

    Attributes:
        name: as in ``evaluation.json``; NAME, FACTOR and Q stand for a column, a factor and the number of a quarter.
        definition: one sentence.
        unit: nats per observation unless stated otherwise; empty for counts and shares.
        better: ``"less"`` or ``"more"``; empty for a measure that describes a representation.
    """

    name: str
    definition: str
    unit: str = "nats"
    better: Literal["less", "more", ""] = ""

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


MEASURES: dict[str, tuple[Measure, ...]] = {
    "reconstruction": (
        Measure(
            "reconstruction",
            "−E log p(x|z) from one z ~ q(z|x) per row (z = μ for a deterministic encoder), summed over the entries of "
            "x, mean over rows.",
            better="less",
        ),
        Measure(
            "mse",
            "Mean over rows of the mean over their observed entries of (x − E[x|z])², from the same z.",
            "squared units of x",
            "less",
        ),
        Measure("reconstruction_at_mu", "As reconstruction, from z = μ.", better="less"),
        Measure("mse_at_mu", "As mse, from z = μ.", "squared units of x", "less"),
        Measure("log_jacobian", "log |d x_network / d x_user|, summed over observed cells, mean over rows."),
        Measure(
            "rmse:NAME",
            "Root mean squared error of a column of numbers or counts, reconstructed from z = μ.",
            "the column's units",
            "less",
        ),
        Measure(
            "rmse_baseline:NAME", "The same error where the column's mean is always predicted.", "the column's units"
        ),
        Measure(
            "accuracy:NAME",
            "Fraction of the observed cells of a column whose level is reconstructed correctly from z = μ.",
            "",
            "more",
        ),
        Measure("accuracy_baseline:NAME", "The same fraction where the most frequent level is always predicted.", ""),
        Measure(
            "psnr",
            "Images only: mean over images of −10·log10(mean squared error), pixels from 0 to 1, from z ~ q(z|x).",
            "dB",
            "more",
        ),
        Measure("psnr_at_mu", "As psnr, from z = μ.", "dB", "more"),
        Measure(
            "ssim",
            "Images only: structural similarity (Wang et al. 2004) from z ~ q(z|x); 1 is identical.",
            "",
            "more",
        ),
        Measure("ssim_at_mu", "As ssim, from z = μ.", "", "more"),
    ),
    "match with the prior": (
        Measure(
            "kl_posterior_prior",
            "The AEVB term: mean over rows of KL(q_i‖p) = ½ Σ_k (μ_ik² + σ_ik² − 1) − Σ_k log σ_ik.",
        ),
        Measure(
            "kl_aggregate_mc",
            "KL(q(z|D)‖p), estimated without bias by (1/N) Σ_i [log q(z_i|D) − log p(z_i)] with one z_i ~ q_i per row.",
        ),
        Measure("kl_aggregate_mc_standard_error", "Its standard error, from the spread over rows."),
        Measure(
            "kl_aggregate_lower_bound",
            "Analytic lower bound on KL(q(z|D)‖p) from all pairs KL(q_i‖q_j) (Kolchinsky & Tracey 2017).",
        ),
        Measure(
            "kl_aggregate_jensen_upper_bound",
            "The paper's analytic upper bound on KL(q(z|D)‖p) (eq:KL-UB), over all N rows.",
        ),
        Measure(
            "kl_aggregate_bhattacharyya_upper_bound",
            "Analytic upper bound on KL(q(z|D)‖p) from all pairs' Bhattacharyya distances (Kolchinsky & Tracey 2017).",
        ),
        Measure(
            "mutual_information",
            "I(x; z) = E [log q_i(z) − log q(z|D)] at the z of kl_aggregate_mc: the information in a code about which "
            "of the N rows it came from, at most log N.",
        ),
    ),
    "likelihood": (
        Measure(
            "elbo",
            "−reconstruction − kl_posterior_prior: a lower bound on log p(x), for any training objective.",
            better="more",
        ),
        Measure(
            "nll_importance_weighted",
            "−log (1/K) Σ_k p(x|z_k)·p(z_k)/q(z_k|x) with z_k ~ q(z|x) (Burda et al. 2016), mean over rows.",
            better="less",
        ),
        Measure("nll_importance_weighted_standard_error", "Its standard error over rows."),
        Measure("nll_samples", "K, the codes drawn per row.", ""),
        Measure("nll_rows", "Rows used for it.", ""),
    ),
    "use of the units": (
        Measure("active_units", "Number of units k (latent dimensions) with Var_i μ_ik > 0.01.", ""),
        Measure("sigma_floor_fraction", "Fraction of all σ_ik within 1 % of the floor that the network adds to σ.", ""),
        Measure("sigma_geometric_mean", "exp of the mean of log σ_ik: the width of the posteriors.", ""),
    ),
    "separation": (
        Measure(
            "separation",
            "E r_i with r_i = q_i(z)/Σ_j q_j(z) at z ~ q_i, j over a random batch of 64 rows: the probability of "
            "identifying the row from its code.",
            "",
        ),
        Measure("separation_entropy", "H(i|z) = −E log r_i: 0 for posteriors that do not overlap, at most log 64."),
        Measure("separation_batches", "Number of batches averaged.", ""),
    ),
    "compactness": (
        Measure(
            "kl_reverse_mc",
            "KL(p‖q(z|D)) = E_p[log p(z) − log q(z|D)] over draws from the prior: large if the prior has mass where no "
            "posterior has.",
        ),
        Measure("kl_reverse_mc_standard_error", "Its standard error, itself unreliable if the tail is heavy."),
        Measure(
            "jensen_shannon_mc",
            "½ KL(q(z|D)‖m) + ½ KL(p‖m) with m = ½ q(z|D) + ½ p: between 0 (equal) and log 2 = 0.693 (no overlap).",
        ),
        Measure("jensen_shannon_mc_standard_error", "Its standard error."),
        Measure(
            "prior_mass_covered",
            "Fraction of draws from the prior inside at least one posterior's 95 % ellipsoid.",
            "",
        ),
        Measure("prior_draws", "Draws from the prior used for these.", ""),
        Measure(
            "code_density",
            "Density of Naeem et al. (2020), k = 5, of one code per row among as many draws from the prior: about 1 "
            "for codes distributed as the prior, more where they crowd in its middle.",
            "",
        ),
        Measure(
            "code_coverage",
            "Coverage of the same authors: fraction of the draws whose ball, reaching to their 5th nearest neighbour, "
            "holds at least one code.",
            "",
        ),
    ),
    "smoothness": (
        Measure(
            "reconstruction_rise",
            "Increase of −log p(x|z) when μ moves by ±0.1·s_k in every unit k (random signs), "
            "s_k² = mean_i σ_ik² + Var_i μ_ik; mean over rows.",
            better="less",
        ),
        Measure(
            "path_curvature",
            "For straight paths between the μ of two random rows, decoded at T = 11 equally spaced points x_1 … x_T: "
            "mean_t ‖x_{t+1} − 2x_t + x_{t−1}‖²·(T−1)⁴/‖x_T − x_1‖², mean over paths.",
            "",
            "less",
        ),
        Measure("path_curvature_median", "The median over the same paths.", "", "less"),
        Measure("path_curvature_paths", "Paths averaged, at most 500.", ""),
    ),
    "disentanglement": (
        Measure(
            "mig",
            "Mutual information gap (Chen et al. 2018): for each factor the best minus the second-best unit's "
            "I(unit; factor)/H(factor), on bins of μ; mean over factors.",
            "",
            "more",
        ),
        Measure("mig_sampled", "As mig, with units z ~ q(z|x), one draw per row.", "", "more"),
        Measure(
            "sap",
            "Separated attribute predictability (Kumar et al. 2018): for each factor the best minus the second-best "
            "unit's score, mean over factors.",
            "",
            "more",
        ),
        Measure(
            "dci_disentanglement",
            "Eastwood & Williams (2018): 1 − normalised entropy of a unit's importance over factors in a random "
            "forest, units weighted by their importance.",
            "",
            "more",
        ),
        Measure(
            "dci_completeness",
            "1 − normalised entropy of a factor's importance over units, mean over factors.",
            "",
            "more",
        ),
        Measure(
            "dci_informativeness",
            "How well all units together predict a factor on rows not used for fitting: R² or accuracy above chance, "
            "at least 0; mean over factors.",
            "",
            "more",
        ),
        Measure("disentanglement_rows", "Rows used.", ""),
        Measure("dci_informativeness_FACTOR", "The same for one factor.", "", "more"),
    ),
    "errors by factor": (
        Measure(
            "mse_at_mu_FACTOR_quartile_Q",
            "Mean squared error from μ of the rows in the Q-th quartile of a continuous factor, lowest values first.",
            "squared units of x",
            "less",
        ),
        Measure(
            "amplitude_error",
            "Sine waves only: mean |Â − A| with Â the least-squares amplitude of the reconstruction from μ at the true "
            "frequency and phase.",
            "the user's units",
            "less",
        ),
        Measure(
            "amplitude_bias",
            "Mean of Â − A over the same waves; negative if the reconstructions' amplitudes are too small.",
            "the user's units",
        ),
    ),
    "training": (
        Measure(
            "training_elbo",
            "The ELBO of the last epoch on the rows that were learned from, while the weights still changed.",
            better="more",
        ),
        Measure(
            "seconds_per_thousand_rows",
            "Time to train on a thousand rows by the clock, median over epochs.",
            "seconds",
            "less",
        ),
        Measure(
            "cpu_seconds_per_thousand_rows",
            "Processor time to train on a thousand rows, summed over the threads of the first rank, median over "
            "epochs.",
            "seconds",
            "less",
        ),
    ),
}
"""Every measure by the question that it answers: the titles of the parts of an evaluation, and training."""


def defined(names: Iterable[str]) -> list[Measure]:
    """The measures that an evaluation or a report calls by these names, in the order of reading.

    >>> [measure.name for measure in defined(["rmse:price", "mse"])]
    ['mse', 'rmse:NAME']
    """
    names = list(names)
    return [one for part in MEASURES.values() for one in part if any(one.names(name) for name in names)]
