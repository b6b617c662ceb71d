"""Numbers as a reader wants them: as many digits as their uncertainty allows."""

from __future__ import annotations

import math

from wiseale.experiments.comparison import Estimate


def estimate_cell(estimate: Estimate | None) -> str:
    """Mean ± half width, the half width to two digits and the mean to the same place; a dash where there is none."""
    if estimate is None:
        return "-"
    mean, half = estimate.mean, estimate.half_width
    if not half or half < 5e-7:  # one seed, or the same number from each
        return f"{mean:,.0f}" if float(mean).is_integer() else three_digits(mean)
    decimals = min(max(1 - math.floor(math.log10(half)), 0), 6)
    return f"{mean:.{decimals}f} ± {half:.{decimals}f}"


def three_digits(value: float) -> str:
    """At least three digits, and no more than three after the point."""
    size = abs(value)
    return f"{value:.1f}" if size >= 100 else f"{value:.2f}" if size >= 10 else f"{value:.3f}"
