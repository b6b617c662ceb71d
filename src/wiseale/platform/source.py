"""The version of the source code that runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def source_commit(package: Path = _PACKAGE) -> str | None:
    """The Git commit of a source checkout, with "-dirty" after uncommitted changes.

    None where the package is installed elsewhere: a Git repository around a virtual environment is not its source.
    """
    root = package.parent.parent
    if package.parent.name != "src" or not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
