"""Add comparisons on sine waves to ``docs/frontier.csv`` and rebuild the table of ``docs/frontier.md`` from it.

python -m docs.pages.frontier            # the table alone
python -m docs.pages.frontier DIR ...    # adds the finished runs of `wiseale compare sine:n=20000 … --out DIR`
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, stdev

from wiseale.experiments.comparison import read_comparison
from wiseale.paper.rows import RunRow, merge, read_rows, row_of, write_rows

DOCS = Path(__file__).parents[1]
BEGIN, END = "<!-- frontier: sine -->", "<!-- end -->"
MEASURES = {
    "reconstruction": "reconstruction",
    "mse": "MSE",
    "kl_aggregate_mc": "aggregate KL",
    "mutual_information": "I(x; z)",
    "active_units": "active units",
    "elbo": "ELBO",
}


def table(rows: Iterable[RunRow]) -> str:
    """Mean ± standard deviation over the seeds, one line for each system and setting."""
    groups: dict[tuple[int, str, str, str], list[RunRow]] = {}
    for row in rows:
        c = row.condition
        schedule = "" if c.lr_schedule == "constant" else f" {c.lr_schedule.partition(':')[0]}"
        how = f"{c.init}, lr {c.lr:g}{schedule}" + (f", warm-up {row.prior_warmup:g}" if row.prior_warmup else "")
        groups.setdefault((c.epochs, how, row.objective.partition(":")[0], row.objective), []).append(row)
    lines = [("system", "weights, learning rate", "epochs", "seeds", *MEASURES.values())]
    lines.append(("---",) * len(lines[0]))
    for (epochs, how, _, objective), runs in sorted(groups.items(), key=lambda item: (item[0], item[1][0].weight)):
        cells = (cell([run.measures[name] for run in runs if name in run.measures]) for name in MEASURES)
        lines.append((f"`{objective}`", how, str(epochs), str(len(runs)), *cells))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(values: list[float]) -> str:
    """Mean ± standard deviation."""
    if not values:
        return "–"
    spread = f" ± {stdev(values):.2g}" if len(values) > 1 else ""
    return f"{fmean(values):.4g}{spread}"


def main(directories: list[str]) -> None:
    """Add the directories and write the table."""
    kept = DOCS / "frontier.csv"
    new = (
        row_of(result, "sine", "frontier", Path(directory).name)
        for directory in directories
        for result in read_comparison(Path(directory)).results()
    )
    rows = merge(read_rows(kept) if kept.exists() else [], new)
    write_rows(kept, rows)
    page = DOCS / "frontier.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{after}", encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
