"""``python -m torture [--minutes M] [--groups ...]``: bounded, resumable attacks; the figures are printed at the end.

Every trial is numbered and drawn from its number, so that it can be repeated alone: ``--only damaged-runs:17``.
Results are kept in a journal, and a later call continues after the last trial of each group.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path


def main() -> int:
    """Run the trials that fit in the time, and print tried, survived and failed of each group."""
    os.environ["OMP_NUM_THREADS"] = "1"
    parser = argparse.ArgumentParser(prog="torture", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="time for all groups together [30]")
    parser.add_argument("--groups", nargs="+", help="some of the groups only")
    parser.add_argument("--most", type=int, default=10**9, help="trials of each group at the most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to work and keep the journal [a folder under the cache]")
    parser.add_argument("--only", help="one trial, as GROUP:NUMBER; its files are kept")
    asked = parser.parse_args()

    from torture.groups import GROUPS, prepare

    folder = (asked.folder or Path(tempfile.gettempdir()) / f"wiseale-torture-{asked.seed}").absolute()
    subjects = prepare(folder)
    if asked.only:
        group, _, number = asked.only.partition(":")
        print(_try(group, int(number), subjects, asked.seed, folder, keep=True) or "survived")
        return 0
    journal = folder / "journal.jsonl"
    results = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    results = [result for result in results if result["seed"] == asked.seed]
    chosen = asked.groups or list(GROUPS)
    deadline = time.monotonic() + 60 * asked.minutes
    with journal.open("a", encoding="utf-8") as file:
        while time.monotonic() < deadline:
            counts = Counter(result["group"] for result in results)
            group = min(chosen, key=lambda name: counts[name] / GROUPS[name].weight)
            number = counts[group]
            if number >= asked.most:
                break
            fault = _try(group, number, subjects, asked.seed, folder)
            results.append({"seed": asked.seed, "group": group, "number": number, "fault": fault})
            file.write(json.dumps(results[-1]) + "\n")
            file.flush()
            if fault:
                print(f"{group}:{number}: {fault}", flush=True)
    print_table(results)
    return 1 if any(result["fault"] for result in results) else 0


def _try(group: str, number: int, subjects: object, seed: int, folder: Path, keep: bool = False) -> str | None:
    from torture.groups import GROUPS

    work = folder / "trial"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        return GROUPS[group].trial(subjects, random.Random(f"{seed}/{group}/{number}"), work)  # type: ignore[arg-type]
    finally:
        if not keep:
            shutil.rmtree(work, ignore_errors=True)


def print_table(results: list[dict[str, object]]) -> None:
    """Tried, survived and failed, by group."""
    print(f"{'group':22} {'tried':>7} {'survived':>9} {'failed':>7}")
    groups = dict.fromkeys(str(result["group"]) for result in results)
    rows = {name: [result["fault"] for result in results if result["group"] == name] for name in groups}
    for name, faults in [*rows.items(), ("all", [result["fault"] for result in results])]:
        failed = sum(fault is not None for fault in faults)
        print(f"{name:22} {len(faults):7,} {len(faults) - failed:9,} {failed:7,}")


if __name__ == "__main__":
    sys.exit(main())
