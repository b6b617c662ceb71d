"""Format numbers for tables, with as many digits as their uncertainty justifies."""

from __future__ import annotations

import math

from wiseale.experiments.intervals import Estimate

_MOST_DECIMALS = 6


def estimate_cell(estimate: Estimate | None, seeds: int = 0) -> str:
    """Mean ± half width of the interval, the half width to two digits; "-" for None.

    A half width below 0.00005 of a mean above 0.1 is left out, and noise about 0 is "0". Where only some of the
    system's ``seeds`` have a finite value, the cell says so.

    >>> estimate_cell(Estimate(mean=1.23456, half_width=0.0321, n=3))
    '1.235 ± 0.032'
    >>> estimate_cell(Estimate(mean=4.2e-6, half_width=1.3e-6, n=2), seeds=3)
    '4.2e-06 ± 1.3e-06 (2 of 3 seeds)'
    >>> estimate_cell(Estimate(mean=4.4886386, half_width=2.6e-6, n=3)), estimate_cell(Estimate(2e-7, 2.9e-6, 3))
    ('4.4886', '0')
    """
    if estimate is None:
        return "-"
    some = f" ({estimate.n} of {seeds} seeds)" if estimate.n < seeds else ""
    return _mean_and_half(estimate.mean, estimate.half_width) + some


def _mean_and_half(mean: float, half: float | None) -> str:
    if not half or half < 1e-9 * abs(mean):  # one seed, or the same value for every seed
        return f"{mean:,.0f}" if float(mean).is_integer() else three_digits(mean)
    if half < 5e-5 and abs(mean) > 0.1:
        return f"{mean:.4f}"
    if abs(mean) < half < 1e-4:
        return "0"
    decimals = max(1 - math.floor(math.log10(half)), 0)
    if decimals <= _MOST_DECIMALS:
        return f"{mean:.{decimals}f} ± {half:.{decimals}f}"
    digits = max(0, math.floor(math.log10(abs(mean) or half)) + decimals)
    return f"{mean:.{digits}e} ± {half:.1e}"


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
