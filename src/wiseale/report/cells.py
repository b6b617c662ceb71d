"""Format numbers for tables, with as many digits as their uncertainty justifies."""

from __future__ import annotations

import math

from wiseale.experiments.comparison import Estimate


def estimate_cell(estimate: Estimate | None) -> str:
    """Mean ± half width of the interval, the half width to two digits; "-" for None.

    >>> estimate_cell(Estimate(mean=1.23456, half_width=0.0321, n=3))
    '1.235 ± 0.032'
    """
    if estimate is None:
        return "-"
    mean, half = estimate.mean, estimate.half_width
    if not half or half < 5e-7:  # one seed, or the same value for every seed
        return f"{mean:,.0f}" if float(mean).is_integer() else three_digits(mean)
    decimals = min(max(1 - math.floor(math.log10(half)), 0), 6)
    return f"{mean:.{decimals}f} ± {half:.{decimals}f}"


def three_digits(value: float) -> str:
    """At least three significant digits, at most three of them after the point.

    >>> three_digits(1234.5678), three_digits(12.345678), three_digits(1.2345678)
    ('1234.6', '12.35', '1.235')
    """
    size = abs(value)
    return f"{value:.1f}" if size >= 100 else f"{value:.2f}" if size >= 10 else f"{value:.3f}"
