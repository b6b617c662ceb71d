"""The uncertainty of a mean."""

from __future__ import annotations

import math

from torch import Tensor


def standard_error(values: Tensor) -> float:
    """Standard deviation of the mean of independent values (n,); NaN for a single value."""
    return float(values.double().std()) / math.sqrt(len(values)) if len(values) > 1 else math.nan
