"""Folders for caches and datasets."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_root() -> Path:
    """``$WISEALE_CACHE``, else ``wiseale`` in the platform's cache folder: compiled kernels, packed datasets.

    That folder is ``$XDG_CACHE_HOME`` or ``~/.cache`` on Linux, ``%LOCALAPPDATA%`` on Windows, and on macOS
    ``~/Library/Caches``, unless there is a ``~/.cache/wiseale`` from an earlier version.
    """
    if root := os.environ.get("WISEALE_CACHE"):
        return Path(root).expanduser().resolve()
    if base := os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA"):
        return Path(base) / "wiseale"
    unix = Path.home() / ".cache" / "wiseale"
    return Path.home() / "Library" / "Caches" / "wiseale" if sys.platform == "darwin" and not unix.exists() else unix


def default_data_root() -> Path:
    """``$WISEALE_DATA``, else ``data`` in the cache folder."""
    if root := os.environ.get("WISEALE_DATA"):
        return Path(root).expanduser().resolve()
    return cache_root() / "data"
