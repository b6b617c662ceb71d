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
    """Three significant digits; digits before the point are never rounded away.

    >>> three_digits(1234.5678), three_digits(12.345678), three_digits(0.0561), three_digits(0.00042)
    ('1235', '12.3', '0.0561', '0.000420')
    >>> three_digits(7.288e-06)
    '7.29e-06'
    """
    if not math.isfinite(value):
        return str(value)
    rounded = f"{value:.2e}"
    exponent = int(rounded.partition("e")[2])
    return rounded if exponent < -4 else f"{value:.{max(0, 2 - exponent)}f}"
