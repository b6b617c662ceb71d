"""Whether a resumed run goes on in the environment it was started in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

_DECIDES_ROUNDING = ("kernels", "torch", "machine")


def rounding_changes(path: Path, now: Mapping[str, object]) -> list[str]:
    """One line if the ``environment.json`` at ``path`` names other kernels, torch or machine than ``now``; else none.

    Floating-point sums are then rounded differently, so the run cannot end with the bits of an uninterrupted one.
    """
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    changes = [
        f"{name}: started with {before[name]}, now {now[name]}"
        for name in _DECIDES_ROUNDING
        if name in before and before[name] != now[name]
    ]
    return [f"{'; '.join(changes)}: the end will not be the same to the last bit"] if changes else []
