"""Named numbers, and why some of them are missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Measures = dict[str, float | int | None]


@dataclass(frozen=True)
class Findings:
    """The measures of one part of an evaluation: every name has a number, or None and a reason."""

    measures: Measures
    reasons: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: Mapping[str, float | int]) -> Findings:
        """The given numbers; a number that is not finite becomes None, because JSON has no such numbers."""
        kept: Measures = {}
        reasons = {}
        for name, number in numbers.items():
            finite = math.isfinite(number)
            kept[name] = number if finite else None
            if not finite:
                reasons[name] = f"came out as {number}"
        return cls(kept, reasons)

    @classmethod
    def none(cls, names: Iterable[str], reason: str) -> Findings:
        """Names that cannot be measured here, and why."""
        names = tuple(names)
        return cls(dict.fromkeys(names), dict.fromkeys(names, reason))

    def __or__(self, other: Findings) -> Findings:
        return Findings(self.measures | other.measures, self.reasons | other.reasons)
