"""Synthetic rows of real mixed tables, beside TVAE (the package ``ctgan``): how near they come to rows held out.

``python -m bench synthetic``: models with default settings are fitted on 70 % of the complete rows (TVAE
takes no missing cells), and ten times as many rows are drawn as are held out. Columns of numbers are compared with the
held-out rows by the Kolmogorov–Smirnov distance, categories by total variation (half the sum of differences of the
levels' shares), pairs of columns by the mean difference of correlations, levels as columns of 0 and 1. The rows fitted
show what a perfect copy would reach.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pandas as pd
import torch
from scipy import stats
from sklearn.model_selection import train_test_split

from bench.impute import is_number
from bench.kept_rows import append_row, read_rows
from bench.mixed_tables import TABLES
from bench.table import RESULTS, Table, keep
from wiseale import AutoEncoder
from wiseale.estimator.fit import learn_frame

NAMES = ("penguins", "cars")
TIMES = 10
CSV = RESULTS / "synthetic.csv"

Model = Callable[[pd.DataFrame, int, int], pd.DataFrame]
"""Rows to fit, number of rows to draw, seed → synthetic rows."""


def ours(rows: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    return AutoEncoder(random_state=seed, device="cpu").fit(rows).sample(n, noise=True)


def tvae(rows: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    from ctgan import TVAE

    model = TVAE(enable_gpu=False)
    model.set_random_state(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, [name for name in rows if not is_number(rows[name])])
    return model.sample(n)


def copy(rows: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    return rows


MODELS: dict[str, Model] = {"wiseale": ours, "TVAE": tvae, "the rows fitted": copy}


def distances(real: pd.DataFrame, made: pd.DataFrame) -> tuple[float, float, float]:
    """Mean Kolmogorov–Smirnov distance of numbers, total variation of categories, difference of correlations."""
    numbers = [name for name in real if is_number(real[name])]
    levels = [name for name in real if name not in numbers]
    ks = mean(stats.ks_2samp(real[name], made[name].astype(float)).statistic for name in numbers)
    variation = mean(
        0.5
        * real[name].value_counts(normalize=True).sub(made[name].value_counts(normalize=True), fill_value=0).abs().sum()
        for name in levels
    )
    both = pd.get_dummies(pd.concat([real, made.astype(real.dtypes)]), columns=levels, dtype=float).astype(float)
    left, right = both.iloc[: len(real)].corr().to_numpy(), both.iloc[len(real) :].corr().to_numpy()
    column = [str(name).rpartition("_")[0] if name not in numbers else str(name) for name in both.columns]
    pairs = [(i, k) for i, k in itertools.combinations(range(len(column)), 2) if column[i] != column[k]]
    found = np.nan_to_num(np.array([left[pair] - right[pair] for pair in pairs]))  # a level that is never drawn: 0
    return float(ks), float(variation), float(np.abs(found).mean())


@dataclass(frozen=True)
class Distances:
    """One line of the CSV file: how far a model's rows are from those held out."""

    table: str
    model: str
    seed: int
    numbers: float
    categories: float
    correlations: float
    cpu_seconds: float


def measure(table: str, model: str, seed: int) -> Distances:
    """Fit on one split of a table, draw, and compare."""
    frame = TABLES[table]()
    complete = frame[list(learn_frame(frame)[0].names)].dropna().reset_index(drop=True)
    train, test = train_test_split(complete, test_size=0.3, random_state=seed)
    torch.set_num_threads(1)
    started = time.process_time()
    made = MODELS[model](train.reset_index(drop=True), TIMES * len(test), seed)
    seconds = time.process_time() - started
    return Distances(table, model, seed, *distances(test, made), seconds)


def summary(kept: Sequence[Distances]) -> Table:
    """One row per table and model; of the seeds that every model has."""
    rows: list[tuple[str | float, ...]] = []
    for table in dict.fromkeys(one.table for one in kept):
        seeds = set.intersection(*({o.seed for o in kept if (o.table, o.model) == (table, m)} for m in MODELS))
        for model in MODELS if seeds else ():
            mine = [one for one in kept if (one.table, one.model) == (table, model) and one.seed in seeds]
            measures = [[getattr(one, name) for one in mine] for name in ("numbers", "categories", "correlations")]
            spread = [value for values in measures for value in (mean(values), _spread(values))]
            rows.append((table, model, len(seeds), *spread, mean(one.cpu_seconds for one in mine)))
    caption = (
        "Synthetic rows against rows held out, means over the seeds with the standard deviation between them; less is "
        "better. CPU seconds are those of fitting and drawing on one thread."
    )
    titles = (
        "table",
        "model",
        "seeds",
        "numbers (KS)",
        "±",
        "categories (TV)",
        "±",
        "correlations",
        "±",
        "CPU seconds",
    )
    return Table("synthetic", caption, titles, tuple(rows))


def _spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench synthetic", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--csv", type=Path, default=CSV, help="where measurements are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing, only rebuild the table")
    given = parser.parse_args(words)
    done = {(one.table, one.model, one.seed) for one in read_rows(given.csv, Distances)}
    wanted = [(table, model, seed) for seed in range(given.seeds) for table in NAMES for model in MODELS]
    for key in [] if given.table else [key for key in wanted if key not in done]:
        found = measure(*key)
        append_row(given.csv, found)
        print(found, flush=True)
    keep(summary(read_rows(given.csv, Distances)), quick=given.csv != CSV)
