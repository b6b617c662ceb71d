"""Tables of measurements: printed, and kept with the machine, the date and the versions they were made on."""

from __future__ import annotations

import datetime
import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Table:
    """A name for the file, a sentence that says what was measured, column titles and rows."""

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]

    def markdown(self) -> str:
        lines = [" | ".join(self.columns), " | ".join("---" for _ in self.columns)]
        lines += [" | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row) for row in self.rows]
        return "\n".join(f"| {line} |" for line in lines)


def keep(table: Table, quick: bool) -> None:
    """Print a table; a full run replaces the last kept one, which is there to be read and to be plotted."""
    print(f"\n{table.caption}\n\n{table.markdown()}")
    if not quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{table.name}.md").write_text(
            f"# {table.name}\n\n{table.caption}\n\n{table.markdown()}\n\n{machine()}\n", encoding="utf-8"
        )
        (RESULTS / f"{table.name}.json").write_text(
            json.dumps({**asdict(table), "machine": machine()}, indent=1) + "\n"
        )


def kept(name: str) -> Table | None:
    """The last kept table of this name."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    fields = json.loads(path.read_text())
    rows = tuple(tuple(row) for row in fields["rows"])
    return Table(name, fields["caption"], tuple(fields["columns"]), rows)


def machine() -> str:
    """One line about where and when this was measured."""
    import torch

    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []:
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    today = datetime.date.today().isoformat()
    cores = len(os.sched_getaffinity(0))
    return f"{today}; {model}, {cores} cores; Python {platform.python_version()}, torch {torch.__version__}"


def ratio_of_medians(above: list[float], below: list[float]) -> float:
    """median(above) / median(below), of measurements that were interleaved."""
    return median(above) / median(below)
