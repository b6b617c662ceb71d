"""``wiseale info``."""

from __future__ import annotations

import platform
import re
from importlib import metadata

import click

import wiseale


@click.command()
def command() -> None:
    """Print versions, cores, folders, accelerators, and whether the compiled kernels are used and why."""
    from wiseale import kernels
    from wiseale.platform.folders import cache_root, default_data_root
    from wiseale.platform.machine import cores
    from wiseale.training.plan import MAX_DEFAULT_THREADS, default_threads

    lines = {
        "wiseale": wiseale.__version__,
        "python": platform.python_version(),
        **_packages(),
        "platform": platform.platform(),
        "cores": str(cores()),
        "threads": (
            f"{default_threads()} unless --threads is given: one per core, at most {MAX_DEFAULT_THREADS}; "
            "1 for small networks"
        ),
        "accelerators": _accelerators(),
        "kernels": kernels.state(),
        "cache folder": str(cache_root()),
        "data root": str(default_data_root()),
    }
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:{width}}  {value}")


def _packages() -> dict[str, str]:
    """Versions of the packages that wiseale requires or can use, in the order of its own metadata."""
    try:
        requirements = metadata.requires("wiseale") or []
    except metadata.PackageNotFoundError:
        return {"packages": "unknown: wiseale runs from its sources and is not installed"}
    versions = {}
    for requirement in requirements:
        extra = re.search(r"extra == ['\"](\w+)", requirement)
        if extra and extra[1] in ("dev", "docs", "bench"):
            continue
        name = re.split(r"[^\w.-]", requirement)[0]
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = f"not installed: pip install 'wiseale[{extra[1]}]'" if extra else "not installed"
    return versions


def _accelerators() -> str:
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if accelerator is None:
        return "none: training runs on the CPU"
    return f"{torch.accelerator.device_count()} × {accelerator.type}"
