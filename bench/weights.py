"""WiSE-ALE beside β-VAE at equal weights on people's own data: ``AutoEncoder``'s defaults, with learned noise.

Each finished measurement is appended to ``bench/results/weights.csv``, a rerun skips what the file already holds, and
the table of ``docs/choosing.md`` is written again:

    python -m bench weights --seeds 5
    python -m bench weights --table
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.quality import Job, available, commit, finish, lacking
from bench.quality_rows import Key, Row, read, short
from bench.table import RESULTS, Table, keep
from wiseale.experiments.intervals import MINIMUM_SEEDS, Interval, adjusted_confidence, difference_interval

CSV = RESULTS / "weights.csv"
PAGE = Path(__file__).parents[1] / "docs" / "choosing.md"
SETS = ("breast_cancer", "digits", "italy_power")
WEIGHTS = (Fraction(1, 4), Fraction(1), Fraction(4), Fraction(8), Fraction(16))
WARM_UP = 50.0  # epochs over which the prior's weight rises; runs take a hundred epochs and more
WARMED_UP = ", KL warm-up"
MEASURES = {"mse": "MSE", "aggregate_kl": "aggregate KL", "elbo": "ELBO"}
CAPTION = (
    "WiSE-ALE at weight w / a β-VAE (AEVB is that with β = 1), without and with a warm-up of its weight over "
    f"{WARM_UP:g} epochs; means over the seeds of AutoEncoder's defaults on held-out rows in standardised units: MSE "
    "from posterior means, aggregate KL and ELBO in nats."
)
PLACE = ("set", "dims", "w", "beside", "seeds")
_MARKED = re.compile(r"(<!-- own data -->\n).*?(<!-- end -->)", re.S)

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    f"{name}:{parameter}={weight}": {"objective": f"{name}:{parameter}={weight}"}
    for weight in WEIGHTS
    for name, parameter in (("wise_ale", "prior_weight"), ("beta_vae", "beta"))
}
# A β-VAE can collapse because of its start alone.
CONFIGURATIONS |= {
    f"beta_vae:beta={weight}{WARMED_UP}": {"objective": f"beta_vae:beta={weight}", "prior_warmup": WARM_UP}
    for weight in WEIGHTS
    if weight > 1
}


@dataclass(frozen=True)
class Compared:
    """Measurements of WiSE-ALE and a β-VAE at one weight, on one set with one number of latent dimensions."""

    dataset: str
    dim: int
    weight: str
    rival: str
    ours: Sequence[Row]
    theirs: Sequence[Row]

    @property
    def place(self) -> tuple[str, int, str, str, str]:
        """The first cells of a line."""
        return self.dataset, self.dim, self.weight, self.rival, f"{len(self.ours)}, {len(self.theirs)}"

    def means(self, measure: str) -> str:
        """Ours / theirs."""
        return " / ".join(short(fmean(getattr(row, measure) for row in side)) for side in (self.ours, self.theirs))

    def difference(self, measure: str, confidence: float) -> Interval | None:
        """Ours minus theirs; None with fewer than three seeds on either side."""
        if min(len(self.ours), len(self.theirs)) < MINIMUM_SEEDS:
            return None
        mine, other = ([getattr(row, measure) for row in side] for side in (self.ours, self.theirs))
        return difference_interval(mine, other, confidence)


def compared(rows: Iterable[Row]) -> list[Compared]:
    """Every set, number of latent dimensions and weight that both systems have been run at."""
    return _pairs(rows, {weight: weight for weight in WEIGHTS})


def beside_smaller(rows: Iterable[Row]) -> list[Compared]:
    """WiSE-ALE at each weight above 1 beside the β-VAE with the next smaller β: is it only a weaker β-VAE?"""
    return _pairs(rows, {weight: beta for beta, weight in pairwise(WEIGHTS) if weight > 1})


def _pairs(rows: Iterable[Row], beta_of: Mapping[Fraction, Fraction]) -> list[Compared]:
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.dim, row.configuration), []).append(row)
    pairs = []
    for dataset, dim in dict.fromkeys(key[:2] for key in groups):
        for weight, beta in beta_of.items():
            ours = groups.get((dataset, dim, f"wise_ale:prior_weight={weight}"), [])
            for start in ("", WARMED_UP):
                theirs = groups.get((dataset, dim, f"beta_vae:beta={beta}{start}"), [])
                if ours and theirs:
                    rival = f"β = {beta}{start}" if beta != 1 else f"AEVB{start}"
                    pairs.append(Compared(dataset, dim, str(weight), rival, ours, theirs))
    return pairs


def table(name: str, pairs: Sequence[Compared]) -> Table:
    """Means and differences with their intervals."""
    confidence = adjusted_confidence(len(MEASURES) * len(pairs))
    lines = []
    for pair in pairs:
        cells = []
        for measure in MEASURES:
            found = pair.difference(measure, confidence)
            shown = f"{found.value:.3g} [{found.low:.3g}, {found.high:.3g}]" if found else "-"
            cells += [pair.means(measure), shown]
        lines.append((*pair.place, *cells, pair.means("active_units")))
    titles = [title for name in MEASURES.values() for title in (name, "difference")]
    caption = (
        f"{CAPTION} The differences, WiSE-ALE minus β-VAE, have Welch's intervals, which hold jointly with 95 % in "
        "this table (Bonferroni)."
    )
    return Table(name, caption, (*PLACE, *titles, "active units"), tuple(lines))


def short_table(name: str, pairs: Sequence[Compared]) -> Table:
    """Means alone; a star where the difference's interval in the long table does not contain 0.

    Of a β-VAE that was run with and without a warm-up, only the runs with it.
    """
    confidence = adjusted_confidence(len(MEASURES) * len(pairs))
    warmed = {(pair.dataset, pair.dim, pair.weight, pair.rival) for pair in pairs if WARMED_UP in pair.rival}
    lines = []
    for pair in pairs:
        if (pair.dataset, pair.dim, pair.weight, pair.rival + WARMED_UP) in warmed:
            continue
        found = {measure: pair.difference(measure, confidence) for measure in MEASURES}
        stars = {name: " *" if one and one.low * one.high > 0 else "" for name, one in found.items()}
        cells = [pair.means(measure) + stars[measure] for measure in MEASURES]
        lines.append((*pair.place, *cells, pair.means("active_units")))
    caption = (
        f"{CAPTION} A star: the two differ (Welch's intervals, jointly 95 %; they and the runs without a warm-up are "
        f"in `bench/results/{name}.md`)."
    )
    return Table(name, caption, (*PLACE, *MEASURES.values(), "active units"), tuple(lines))


def fill_in(page: str, tables: Sequence[Table]) -> str:
    """The page with the tables between ``<!-- own data -->`` and ``<!-- end -->``."""
    if not _MARKED.search(page):
        raise SystemExit("docs/choosing.md has no place for the table: write <!-- own data --> and <!-- end --> there")
    made = "\n\n".join(f"{one.caption}\n\n{one.markdown()}" for one in tables)
    return _MARKED.sub(lambda found: f"{found[1]}\n{made}\n\n{found[2]}", page)


def run(sets: Sequence[str], dims: Sequence[int], seeds: int, processes: int) -> None:
    """Make the measurements that the CSV file lacks, seed by seed, so that an interrupted run has whole seeds."""
    at = commit()
    keys = [
        Key(dataset, dim, seed, name)
        for seed in range(seeds)
        for dataset in available(sets)
        for dim in dims
        for name in CONFIGURATIONS
    ]
    missing = lacking(keys, read(CSV), CONFIGURATIONS, at)
    jobs = [Job(key, CONFIGURATIONS[key.configuration], at) for key in missing]
    finish(jobs, CSV, processes)


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench weights", description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS), help="sets of the quality benchmark")
    parser.add_argument("--dims", default="2,8", help="latent dimensions")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--processes", type=int, default=1, help="measurements made side by side, each with 1 thread")
    parser.add_argument("--table", action="store_true", help="measure nothing, only rebuild the tables")
    given = parser.parse_args(words)
    if not given.table:
        run(given.sets.split(","), [int(dim) for dim in given.dims.split(",")], given.seeds, given.processes)
    rows = read(CSV).values()
    pairs = {"weights": compared(rows), "weights_beside_smaller": beside_smaller(rows)}
    for name, compared_pairs in pairs.items():
        keep(table(name, compared_pairs), quick=False)
    made = [short_table(name, compared_pairs) for name, compared_pairs in pairs.items()]
    PAGE.write_text(fill_in(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
