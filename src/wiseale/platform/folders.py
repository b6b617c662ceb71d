"""Folders for caches and datasets."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_root() -> Path:
    """``$WISEALE_CACHE``, else ``wiseale`` in the platform's cache folder: compiled kernels, packed datasets.

    That folder is ``$XDG_CACHE_HOME``, else ``%LOCALAPPDATA%`` on Windows, ``~/Library/Caches`` on macOS and
    ``~/.cache`` on Linux.
    """
    if root := os.environ.get("WISEALE_CACHE"):
        return Path(root).expanduser().resolve()
    if base := os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA"):
        return Path(base) / "wiseale"
    return Path.home().joinpath(*(("Library", "Caches") if sys.platform == "darwin" else (".cache",)), "wiseale")


def default_data_root() -> Path:
    """``$WISEALE_DATA``, else ``data`` in the cache folder."""
    if root := os.environ.get("WISEALE_DATA"):
        return Path(root).expanduser().resolve()
    return cache_root() / "data"
