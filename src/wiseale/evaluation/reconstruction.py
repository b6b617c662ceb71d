"""How well observations come back from their codes."""

from __future__ import annotations

from wiseale.evaluation.case import Case, Tick
from wiseale.evaluation.findings import Findings
from wiseale.evaluation.image_quality import WINDOW
from wiseale.evaluation.row_errors import RowErrors

_SLACK = 1e-4  # of the pixel range: standardised images come back to their own range with rounding


def reconstruction(case: Case, tick: Tick) -> Findings:
    """−log p(x|z) and mean error of an entry (network's units), from z ~ q(z|x) and from z = mu.

    A row in which no cell was observed has no error and does not count in the mean.
    """
    drawn = case.errors
    tick(0.5)
    at_mu = case.errors_at_mu
    return Findings.of(
        {
            "reconstruction": float(drawn.nats.mean()),
            "mse": float(drawn.squared.nanmean()),
            "reconstruction_at_mu": float(at_mu.nats.mean()),
            "mse_at_mu": float(at_mu.squared.nanmean()),
            "log_jacobian": float(case.log_jacobian.mean()),
        }
    )


def image_quality(case: Case, tick: Tick) -> Findings:
    """PSNR (dB) and SSIM of images, in the user's range from 0 to 1."""
    return _quality(case.errors, "") | _quality(case.errors_at_mu, "_at_mu")


def _quality(errors: RowErrors, suffix: str) -> Findings:
    peaks, similar = f"psnr{suffix}", f"ssim{suffix}"
    low, high = errors.x_range
    if errors.psnr is None:
        return Findings.none((peaks, similar), "the observations are not images")
    if low < -_SLACK or high > 1 + _SLACK:
        return Findings.none((peaks, similar), f"pixels go from {low:.4g} to {high:.4g}, not from 0 to 1")
    found = Findings.of({peaks: float(errors.psnr.mean())})
    if errors.ssim is None:
        return found | Findings.none((similar,), f"the images are smaller than the window of {WINDOW} by {WINDOW}")
    return found | Findings.of({similar: float(errors.ssim.mean())})
