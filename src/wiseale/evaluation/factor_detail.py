"""Where the reconstruction fails: errors by quartile of each known factor, and the amplitude of sine waves."""

from __future__ import annotations

import numpy as np
import torch

from wiseale.evaluation.case import Case, Tick
from wiseale.evaluation.factors import Numbers, equal_counts, known_factors
from wiseale.evaluation.findings import Findings

LEAST_ROWS = 40
_WAVE = ("frequency", "phase", "amplitude")
_FAINT = 0.01  # mean square below which sin(2πft + φ) is too flat to read an amplitude from


def factor_detail(case: Case, tick: Tick) -> Findings:
    """MSE from mu by quartile of each continuous factor, and amplitude errors where the rows are sine waves."""
    return mse_by_quartile(case) | amplitude_error(case)


def mse_by_quartile(case: Case) -> Findings:
    """Mean squared error of the rows in each quarter of a factor's range of ranks, lowest first."""
    encoded = case.encoded
    found = Findings({})
    for factor in known_factors(encoded.factors, encoded.circular):
        if factor.kind != "continuous":
            continue
        names = [f"mse_at_mu_{factor.name}_quartile_{number}" for number in range(1, 5)]
        if len(encoded.rows) < LEAST_ROWS:
            found |= Findings.none(names, f"needs at least {LEAST_ROWS} rows, there are {len(encoded.rows)}")
            continue
        quartile = torch.from_numpy(equal_counts(factor.values, 4))
        for i, name in enumerate(names):
            squared = case.errors_at_mu.squared[quartile == i]
            if len(squared):
                found |= Findings.of({name: float(squared.nanmean())})
            else:
                found |= Findings.none((name,), "no row falls into this quarter: equal values share one")
    return found


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
        seen, estimate = fitted_amplitude(x_hat[:, 0].double().numpy(), wave)
        errors.append((estimate - amplitude[part])[seen])
    error = np.concatenate(errors)
    names = ("amplitude_error", "amplitude_bias")
    if len(error) == 0:
        return Findings.none(names, "no wave shows its amplitude")
    return Findings.of(dict(zip(names, (float(np.abs(error).mean()), float(error.mean())), strict=True)))


def fitted_amplitude(x_hat: Numbers, wave: Numbers) -> tuple[Numbers, Numbers]:
    """Which unit waves (n, length) are strong enough to see, (n,) bool, and Â = ⟨x_hat, wave⟩/⟨wave, wave⟩, (n,)."""
    power = np.square(wave).mean(1)
    seen = power >= _FAINT
    return seen, (x_hat * wave).mean(1) / np.where(seen, power, 1.0)
