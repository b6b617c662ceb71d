"""Measurements of the quality benchmark: a CSV file with one row each, and the table of their means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from bench.kept_rows import read_rows
from bench.quality_data import SETS
from bench.table import Table

CAPTION = (
    "Held-out quality of AutoEncoder beside PCA and pythae's defaults, 1 thread, mean ± standard deviation over the "
    "seeds. MSE of the reconstruction from the posterior mean and ELBO (nats per row) are in standardised units; "
    "PCA's ELBO is the log-likelihood of probabilistic PCA. Active units: posterior means vary by more than 0.01. "
    "k-NN: accuracy of 5 nearest neighbours among the training codes. Aggregate KL: of the aggregate posterior from "
    "the prior, nats. pythae trains for as many CPU seconds as `ours`, or for its 100 epochs if they take less, on "
    "rows scaled to [0, 1]."
)
COLUMNS = {
    "MSE": "mse",
    "ELBO": "elbo",
    "active units": "active_units",
    "k-NN": "knn_accuracy",
    "aggregate KL": "aggregate_kl",
    "CPU s": "cpu_seconds",
    "steps": "steps",
}
"""Titles of the table's columns and the measures they are the means of."""

EXACT = 1e-9
"""PCA's error below which it reconstructs exactly, and a ratio to it means nothing."""


class Key(NamedTuple):
    """What identifies a measurement."""

    dataset: str
    dim: int
    seed: int
    configuration: str


@dataclass(frozen=True)
class Row:
    """One line of the CSV file; every measure but the cost is of the held-out rows, and empty where it has no meaning.

    Attributes:
        mse: mean squared error of the reconstruction from the posterior mean, in standardised units.
        elbo: nats per row in standardised units; for PCA the log-likelihood of probabilistic PCA, whose bound is tight.
        active_units: codes whose posterior means vary by more than 0.01.
        knn_accuracy: of 5 nearest neighbours among the training codes.
        aggregate_kl: D_KL[q(z) ‖ N(0, I)] of the aggregate posterior, nats, by Monte Carlo.
    """

    dataset: str
    dim: int
    seed: int
    configuration: str
    mse: float
    elbo: float | None
    active_units: int
    knn_accuracy: float | None
    aggregate_kl: float | None
    cpu_seconds: float
    steps: int | None
    epochs: int | None
    settings: str
    version: str
    commit: str

    @property
    def key(self) -> Key:
        return Key(self.dataset, self.dim, self.seed, self.configuration)


def read(path: Path) -> dict[Key, Row]:
    """The measurements in a CSV file; of two with the same key the later one."""
    return {row.key: row for row in read_rows(path, Row)}


def table(rows: Iterable[Row]) -> Table:
    """Mean and standard deviation over the seeds, and the error as a multiple of PCA's."""
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.dim, row.configuration), []).append(row)
    lines = []
    for name in SETS:
        for dataset, dim, configuration in sorted(groups, key=lambda group: (group[1], group[2] != "PCA")):
            if dataset == name:
                group = groups[dataset, dim, configuration]
                pca = groups.get((dataset, dim, "PCA"), [])
                ratios = [row.mse / pca[0].mse for row in group if pca and pca[0].mse > EXACT]
                means = (cell([getattr(row, measure) for row in group]) for measure in COLUMNS.values())
                lines.append((dataset, dim, configuration, len(group), cell(ratios), *means))
    titles = ("set", "dim", "configuration", "seeds", "MSE / PCA", *COLUMNS)
    return Table("quality", CAPTION, titles, tuple(lines))


def cell(values: list[float | None]) -> str:
    numbers = [value for value in values if value is not None]
    if not numbers:
        return "-"
    return short(fmean(numbers)) + (f" ± {short(stdev(numbers))}" if len(numbers) > 1 else "")


def short(value: float) -> str:
    """Three digits, and never an exponent for a large number."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def ratios(rows: Iterable[Row], only: Sequence[str] = ()) -> str:
    """A short table in Markdown: each configuration's error over PCA's, ours with its cost, means over the seeds.

    Of the sets in ``only`` it is shorter still: without single seeds and active units.
    """
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.dim, row.configuration), []).append(row)
    others = [name for name in ("pythae VAE", "pythae AE") if any(key[2] == name for key in groups)]
    titles = ("set", "dims", "ours / PCA", "single seeds", *(f"{name} / PCA" for name in others), "active", "CPU s")
    lines = [titles, ("---",) * len(titles)]
    for name in only or SETS:
        for dim in sorted({key[1] for key in groups if key[0] == name}):
            ours, pca = groups.get((name, dim, "ours"), []), groups.get((name, dim, "PCA"), [])
            if not ours or not pca:
                continue

            def ratio(found: list[Row], reference: float = pca[0].mse) -> str:
                if reference <= EXACT:
                    return f"MSE {fmean(row.mse for row in found):.1g}" if found else "-"
                return f"{fmean(row.mse for row in found) / reference:.2f}" if found else "-"

            seeds = ", ".join(ratio([row]) for row in ours) if pca[0].mse > EXACT else "PCA is exact"
            rest = (ratio(groups.get((name, dim, other), [])) for other in others)
            active, cost = (fmean(getattr(row, what) for row in ours) for what in ("active_units", "cpu_seconds"))
            lines.append((name, str(dim), ratio(ours), seeds, *rest, short(active), short(cost)))
    shown = [i for i, title in enumerate(titles) if not (only and title in ("single seeds", "active"))]
    return "\n".join(f"| {' | '.join(line[i] for i in shown)} |" for line in lines)


def fill_in(page: str, rows: Iterable[Row]) -> str:
    """A page with the short table between ``<!-- quality -->``, or ``<!-- quality: SETS -->``, and ``<!-- end -->``."""
    found = re.search(r"<!-- quality(?:: ([\w ]+))? -->", page)
    assert found is not None, "the page has no place for the table"
    after = page[found.end() :].partition("<!-- end -->")[2]
    return f"{page[: found.end()]}\n\n{ratios(rows, (found[1] or '').split())}\n\n<!-- end -->{after}"
