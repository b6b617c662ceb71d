"""This machine: ``wiseale info``, and ``wiseale cache list|clean``."""

from __future__ import annotations

import platform
import re
from importlib import metadata

import click

import wiseale
from wiseale.cli.faults import one_line
from wiseale.errors import ConfigError
from wiseale.platform.folders import cache_root, default_data_root


@click.command()
def info() -> None:
    """Print versions, cores, folders, accelerators, and whether the compiled kernels are used and why."""
    import torch

    from wiseale import kernels
    from wiseale.platform.machine import cores
    from wiseale.training.plan import MAX_DEFAULT_THREADS, default_threads

    accelerators = "none: training runs on the CPU"
    if torch.accelerator.is_available() and (accelerator := torch.accelerator.current_accelerator()):
        accelerators = f"{torch.accelerator.device_count()} × {accelerator.type}"
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
        "accelerators": accelerators,
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


@click.group()
def cache() -> None:
    """Packed datasets and compiled kernels: what the cache folder holds, and removing it."""


@cache.command("list")
def list_cache() -> None:
    """List what the cache holds and how much disk space it takes."""
    from wiseale.data.cache import cache_entries

    root = cache_root()
    entries = cache_entries(root)
    for entry in entries:
        print(f"{_size(entry.bytes)}  {entry.kind:16}  {one_line(entry.name)}")
    print(f"{_size(sum(entry.bytes for entry in entries))}  in {root}")
    useless = sum(entry.bytes for entry in entries if not entry.is_needed)
    if useless:
        print(f"{_size(useless)}  of it left behind by interrupted work: `wiseale cache clean` removes it")


@cache.command()
@click.argument("names", nargs=-1)
@click.option(
    "--all", "everything", is_flag=True, help="also packed datasets and kernels, which are made again if needed"
)
def clean(names: tuple[str, ...], everything: bool) -> None:
    """Remove what interrupted work left in the cache, or with --all everything, or the entries NAMES of `cache list`.

    Datasets under the data root are never removed. What another process is packing at this moment is left alone.
    """
    from wiseale.data.cache import cache_entries, remove_entry

    entries = {entry.name: entry for entry in cache_entries(cache_root())}
    if unknown := [name for name in names if name not in entries]:
        raise ConfigError(f"the cache holds no {unknown[0]!r}: see `wiseale cache list`")
    freed = 0
    for name in names or [name for name, entry in entries.items() if everything or not entry.is_needed]:
        entry = entries[name]
        if remove_entry(entry):
            freed += entry.bytes
            print(f"removed {one_line(entry.name)}")
        else:
            print(f"left {one_line(entry.name)}: another process is packing it")
    print(f"{_size(freed).strip()} freed")


def _size(n: int) -> str:
    return f"{n / 1e6:10,.1f} MB"
