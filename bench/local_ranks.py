"""Start a module as several ranks on this machine and read what each prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from wiseale.platform.machine import loopback_interface
from wiseale.processes.world import STORE


def on_ranks(module: str, arguments: list[str], size: int) -> list[Any]:
    """Run ``python -m module ARGUMENTS`` as that many ranks on this machine; the JSON that each printed."""
    with tempfile.TemporaryDirectory() as folder:
        world = {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size), STORE: str(Path(folder) / "store")}
        if interface := loopback_interface():
            world["GLOO_SOCKET_IFNAME"] = interface
        ranks = [
            subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env=os.environ | world | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdin=subprocess.PIPE,  # ranks end when it closes
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]
        try:
            printed = [rank.stdout.read() for rank in ranks if rank.stdout]
            codes = [rank.wait() for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
    if any(codes):
        raise SystemExit(f"a rank of {module} failed")
    return [json.loads(text) for text in printed]
