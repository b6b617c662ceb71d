"""Run benchmarks by name, print their tables and keep them in ``bench/results/``."""

from __future__ import annotations

import argparse
import importlib

from bench.table import keep

BENCHMARKS = {name: f"bench.{name}" for name in ("training", "kernel", "ranks", "evaluation", "memory", "data")}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("name", choices=[*BENCHMARKS, "all"])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, for a first look")
    arguments = parser.parse_args()
    for name in BENCHMARKS if arguments.name == "all" else [arguments.name]:
        for table in importlib.import_module(BENCHMARKS[name]).measure(quick=arguments.quick):
            keep(table, quick=arguments.quick)


main()
