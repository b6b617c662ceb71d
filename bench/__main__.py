"""Run benchmarks by name, print their tables and keep them in ``bench/results/``."""

from __future__ import annotations

import argparse
import importlib
import sys

from bench.table import keep

_NAMES = ("training", "kernel", "ranks", "evaluation", "memory", "data", "impute")
BENCHMARKS = {name: f"bench.{name}" for name in _NAMES}


def main() -> None:
    if sys.argv[1:2] == ["quality"]:  # hours long, with options of its own; not part of "all"
        importlib.import_module("bench.quality").main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m bench", epilog="python -m bench quality --help: held-out quality")
    parser.add_argument("name", choices=[*BENCHMARKS, "all"])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, for a first look")
    arguments = parser.parse_args()
    for name in BENCHMARKS if arguments.name == "all" else [arguments.name]:
        for table in importlib.import_module(BENCHMARKS[name]).measure(quick=arguments.quick):
            keep(table, quick=arguments.quick)


if __name__ == "__main__":
    main()
