"""Run benchmarks by name, print their tables and keep them in ``bench/results/``."""

from __future__ import annotations

import argparse
import importlib
import sys

from bench.table import keep

_NAMES = (
    *("training", "kernel", "ranks"),
    *("evaluation", "memory", "data", "explorer", "tables"),
)
BENCHMARKS = {name: f"bench.{name}" for name in _NAMES}

LONG = ("quality", "weights", "collapse", "impute", "synthetic")
"""Benchmarks of many minutes or hours, resumable, with options of their own; not part of "all"."""


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] in LONG:
        importlib.import_module(f"bench.{sys.argv[1]}").main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m bench", epilog=f"with options of their own: {', '.join(LONG)}")
    parser.add_argument("name", choices=[*BENCHMARKS, "all"])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, for a first look")
    arguments = parser.parse_args()
    for name in BENCHMARKS if arguments.name == "all" else [arguments.name]:
        for table in importlib.import_module(BENCHMARKS[name]).measure(quick=arguments.quick):
            keep(table, quick=arguments.quick)


if __name__ == "__main__":
    main()
