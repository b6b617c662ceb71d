"""How well each column of a table is reconstructed, beside always answering its mean or most frequent level."""

from __future__ import annotations

from wiseale.experiments.comparison import Summary
from wiseale.report.cells import estimate_cell
from wiseale.report.document import Table

_MEASURES = {"rmse": ("RMSE", "the column's mean"), "accuracy": ("accuracy", "the most frequent level")}


def column_quality(summary: Summary, name: str = "columns") -> tuple[Table, ...]:
    """One row per column: a measure of every system beside the baseline; nothing where there are no such measures."""
    rows = []
    for measure, (title, baseline) in _MEASURES.items():
        known = dict.fromkeys(key for found in summary.values() for key in found if key.startswith(f"{measure}:"))
        for key in known:
            column = key.removeprefix(f"{measure}:")
            systems = [estimate_cell(found.get(key)) for found in summary.values()]
            without = next((found[f"{measure}_baseline:{column}"] for found in summary.values() if key in found), None)
            rows.append((column, title, *systems, f"{estimate_cell(without)} ({baseline})"))
    if not rows:
        return ()
    caption = (
        "How well each column is reconstructed from the mean code, on rows the models have not seen: RMSE in the "
        "column's own units (less is better), accuracy of the likeliest level (more is better)."
    )
    return (Table(name, ("column", "measure", *summary, "without a model"), tuple(rows), caption),)
