"""``wiseale cache list|clean``."""

from __future__ import annotations

import click


@click.group()
def command() -> None:
    """Packed datasets and compiled kernels: what the cache folder holds, and removing it."""


@command.command("list")
def list_cache() -> None:
    """List what the cache holds and how much disk space it takes."""
    from wiseale.cli.faults import one_line
    from wiseale.data.cache import cache_entries
    from wiseale.platform.folders import cache_root

    root = cache_root()
    entries = cache_entries(root)
    for entry in entries:
        print(f"{_size(entry.bytes)}  {entry.kind:16}  {one_line(entry.name)}")
    print(f"{_size(sum(entry.bytes for entry in entries))}  in {root}")
    useless = sum(entry.bytes for entry in entries if not entry.is_needed)
    if useless:
        print(f"{_size(useless)}  of it left behind by interrupted work: `wiseale cache clean` removes it")


@command.command()
@click.argument("names", nargs=-1)
@click.option(
    "--all", "everything", is_flag=True, help="also packed datasets and kernels, which are made again if needed"
)
def clean(names: tuple[str, ...], everything: bool) -> int:
    """Remove what interrupted work left in the cache, or with --all everything, or the entries NAMES of `cache list`.

    Datasets under the data root are never removed. What another process is packing at this moment is left alone.
    """
    from wiseale.cli.faults import one_line
    from wiseale.data.cache import cache_entries, remove_entry
    from wiseale.errors import ConfigError
    from wiseale.platform.folders import cache_root

    entries = cache_entries(cache_root())
    if names:
        known = {entry.name: entry for entry in entries}
        if unknown := [name for name in names if name not in known]:
            raise ConfigError(f"the cache holds no {unknown[0]!r}: see `wiseale cache list`")
        selection = [known[name] for name in names]
    else:
        selection = [entry for entry in entries if everything or not entry.is_needed]
    freed = 0
    for entry in selection:
        if remove_entry(entry):
            freed += entry.bytes
            print(f"removed {one_line(entry.name)}")
        else:
            print(f"left {one_line(entry.name)}: another process is packing it")
    print(f"{_size(freed).strip()} freed")
    return 0


def _size(n: int) -> str:
    return f"{n / 1e6:10,.1f} MB"
