"""Auto-encoders whose prior constrains the aggregate posterior: WiSE-ALE, its baselines, a tool for your own data."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiseale.estimator import AutoEncoder, load
    from wiseale.estimator.displays import LatentMapDisplay, ReconstructionDisplay, TraversalDisplay
    from wiseale.estimator.loading import Embedder

__version__ = "0.1.0"
__all__ = ["AutoEncoder", "Embedder", "LatentMapDisplay", "ReconstructionDisplay", "TraversalDisplay", "load"]

_HOMES = dict.fromkeys(__all__, "wiseale.estimator.displays") | dict.fromkeys(
    ("AutoEncoder", "load"), "wiseale.estimator"
)
_HOMES["Embedder"] = "wiseale.estimator.loading"


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used: torch takes seconds."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
