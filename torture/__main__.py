"""``python -m torture [--minutes M] [--groups ...]``: bounded, resumable attacks; the figures are printed at the end.

Every trial is numbered and drawn from its number, so that it can be repeated alone: ``--only "damaged runs:17"``.
Results are kept in a journal, and a later call continues after the last trial of each group, until each has reached its
goal. The table of all of them is also written to ``--table``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

_BATCH_SECONDS = 30.0  # of processor time


def main() -> int:
    """Run the trials that fit in the time, and print tried, survived and failed of each group."""
    os.environ["OMP_NUM_THREADS"] = "1"
    parser = argparse.ArgumentParser(prog="torture", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="time for all groups together [30]")
    parser.add_argument("--groups", nargs="+", help="some of the groups only")
    parser.add_argument("--quick", action="store_true", help="leave out groups whose trials take minutes")
    parser.add_argument("--most", type=int, default=10**9, help="trials of each group at the most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to work and keep the journal [one in memory, if there is]")
    parser.add_argument("--table", type=Path, help="CSV file to keep the figures in")
    parser.add_argument("--only", help="one trial, as GROUP:NUMBER; its files are kept")
    asked = parser.parse_args()

    from torture.groups import GROUPS, prepare

    folder = (asked.folder or _default_folder() / f"wiseale-torture-{asked.seed}").absolute()
    subjects = prepare(folder)
    if asked.only:
        group, _, number = asked.only.partition(":")
        print(_try(group, int(number), subjects, asked.seed, folder, keep=True) or "survived")
        return 0
    journal = folder / "journal.jsonl"
    results = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    results = [result for result in results if result["seed"] == asked.seed]
    chosen = asked.groups or [name for name, group in GROUPS.items() if not (asked.quick and group.slow)]
    goals = {name: min(asked.most, GROUPS[name].total(subjects)) for name in chosen}
    deadline = time.monotonic() + 60 * asked.minutes
    with journal.open("a", encoding="utf-8") as file:
        while time.monotonic() < deadline:
            counts = Counter(result["group"] for result in results)
            group = min(goals, key=lambda name: counts[name] / goals[name])
            number = counts[group]
            if number >= goals[group]:
                break
            count = min(GROUPS[group].batch, goals[group] - number)
            for fault in _try_many(group, range(number, number + count), subjects, asked.seed, folder):
                results.append({"seed": asked.seed, "group": group, "number": number, "fault": fault})
                file.write(json.dumps(results[-1]) + "\n")
                if fault:
                    print(f"{group}:{number}: {fault}", flush=True)
                number += 1
            file.flush()
    lines = table(results, {name: group.total(subjects) for name, group in GROUPS.items()})
    for name, *figures in lines:
        print(f"{name:22}", *(f"{figure:>9}" for figure in figures))
    if asked.table:
        asked.table.write_text("".join(",".join(map(str, line)) + "\n" for line in lines), encoding="utf-8")
    return 1 if any(result["fault"] for result in results) else 0


def _default_folder() -> Path:
    memory = Path("/dev/shm")  # syncing costs nothing there, and the disk is spared
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


def _try_many(group: str, numbers: range, subjects: object, seed: int, folder: Path) -> list[str | None]:
    """What came of the trials; one that failed among others, or ended their process, is judged by itself."""
    from torture.attempts import batch

    def one(number: int) -> str | None:
        return _try(group, number, subjects, seed, folder)

    if len(numbers) == 1:
        return [one(numbers[0])]
    found = batch([partial(one, number) for number in numbers], folder, _BATCH_SECONDS)
    faults = [one(number) if fault else None for number, fault in zip(numbers, found, strict=False)]
    return faults if len(found) == len(numbers) else [*faults, one(numbers[len(found)])]


def _try(group: str, number: int, subjects: object, seed: int, folder: Path, keep: bool = False) -> str | None:
    from torture.attempts import Draws
    from torture.groups import GROUPS

    work = folder / "trial"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        return GROUPS[group].trial(subjects, Draws(seed, group, number), work)  # type: ignore[arg-type]
    finally:
        if not keep:
            shutil.rmtree(work, ignore_errors=True)


def table(results: list[dict[str, object]], goals: dict[str, int]) -> list[tuple[object, ...]]:
    """Tried, survived and failed of each group, and how many a full run tries; a header first."""
    rows = {name: [result["fault"] for result in results if result["group"] == name] for name in goals}
    lines: list[tuple[object, ...]] = [("group", "tried", "survived", "failed", "goal")]
    rows["all"] = [fault for faults in rows.values() for fault in faults]
    for name, faults in rows.items():
        failed = sum(fault is not None for fault in faults)
        goal = goals[name] if name in goals else sum(goals.values())
        lines.append((name, len(faults), len(faults) - failed, failed, goal))
    return lines


if __name__ == "__main__":
    sys.exit(main())
