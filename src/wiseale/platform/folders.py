"""Folders of the platform: where caches and datasets lie."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """``$WISEALE_CACHE``, else the platform's cache folder: compiled kernels, packed and generated datasets."""
    if root := os.environ.get("WISEALE_CACHE"):
        return Path(root).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "wiseale"


def default_data_root() -> Path:
    """``$WISEALE_DATA``, else the platform's cache folder."""
    if root := os.environ.get("WISEALE_DATA"):
        return Path(root).expanduser().resolve()
    return cache_root() / "data"
