"""Imputation of cells hidden at random in real mixed tables, beside scikit-learn's imputers and simple baselines.

``python -m bench impute [--quick]``: 20 % of the observed cells of each table are hidden, five seeds. Numbers are
judged by RMSE over the column's standard deviation, categories by accuracy. All imputers fill the same columns: those
that ``AutoEncoder`` learns from by its own decision.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from statistics import mean, stdev

import numpy as np
import pandas as pd
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from bench.mixed_tables import TABLES
from bench.table import Table
from wiseale import AutoEncoder
from wiseale.estimator.tables import learn_cells

HIDDEN = 0.2
Imputer = Callable[[pd.DataFrame, int], pd.DataFrame]


def hide(frame: pd.DataFrame, columns: list[str], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """X with cells hidden, and which."""
    rng = np.random.default_rng(seed)
    hidden = (
        pd.DataFrame(rng.random((len(frame), len(columns))) < HIDDEN, frame.index, columns) & frame[columns].notna()
    )
    holed = frame.copy()
    for name in columns:
        holed[name] = frame[name].mask(hidden[name])
    return holed, hidden


def scores(frame: pd.DataFrame, filled: pd.DataFrame, hidden: pd.DataFrame) -> dict[str, float]:
    """By column: RMSE / standard deviation of a number, accuracy of a category."""
    found = {}
    for name in hidden:
        rows = hidden[name]
        if is_number(frame[name]):
            error = frame.loc[rows, name].astype(float) - filled.loc[rows, name].astype(float)
            found[name] = float(np.sqrt((error**2).mean()) / frame[name].std())
        else:
            found[name] = float((frame.loc[rows, name] == filled.loc[rows, name]).mean())
    return found


def is_number(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


def baseline(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Column means and most frequent levels."""
    return frame.fillna({n: frame[n].mean() if is_number(frame[n]) else frame[n].mode().iloc[0] for n in frame.columns})


def by_features(make: Callable[[int], object], *, one_hot: bool) -> Imputer:
    """An imputer of numbers on standardised columns, and on levels as one column each or as their position.

    A regression from the other columns cannot use one-hot levels: those of the same category, all missing together and
    filled by their means, determine the one that is asked for, so that it stays at its mean.
    """

    def impute(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
        parts, levels = [], {}
        for name in frame.columns:
            if is_number(frame[name]):
                parts.append(((frame[name] - frame[name].mean()) / frame[name].std()).to_numpy(float)[:, None])
            else:
                levels[name] = sorted(frame[name].dropna().unique())
                entries = (frame[name].to_numpy()[:, None] == np.array(levels[name])).astype(float)
                entries = entries if one_hot else entries.argmax(1)[:, None].astype(float)
                entries[frame[name].isna().to_numpy()] = np.nan
                parts.append(entries)
        filled = make(seed).fit_transform(np.concatenate(parts, 1))
        result, start = frame.copy(), 0
        for name, part in zip(frame.columns, parts, strict=True):
            block, start = filled[:, start : start + part.shape[1]], start + part.shape[1]
            if name in levels:
                most = len(levels[name]) - 1
                position = block.argmax(1) if one_hot else block[:, 0].round().clip(0, most).astype(int)
                values = np.array(levels[name], object)[position]
            else:
                values = block[:, 0] * frame[name].std() + frame[name].mean()
            result[name] = frame[name].where(frame[name].notna(), values)
        return result

    return impute


def ours(**settings: object) -> Imputer:
    """The auto-encoder."""
    return lambda frame, seed: AutoEncoder(random_state=seed, device="cpu", **settings).fit(frame).impute(frame)


IMPUTERS: dict[str, Imputer] = {
    "wiseale": ours(),
    "IterativeImputer": by_features(lambda seed: IterativeImputer(random_state=seed, max_iter=30), one_hot=False),
    "KNNImputer": by_features(lambda seed: KNNImputer(), one_hot=True),
    "mean, most frequent": baseline,
}


def measure(*, quick: bool = False) -> list[Table]:
    """One row per table and imputer; and one per column."""
    seeds = range(1 if quick else 5)
    summary: list[tuple[str | float, ...]] = []
    by_column: list[tuple[str | float, ...]] = []
    for name, load in TABLES.items():
        frame = load()
        used = list(learn_cells(frame).schema.names)
        columns: dict[str, list[float]] = defaultdict(list)
        for imputer, impute in IMPUTERS.items():
            found, seconds = [], []
            for seed in seeds:
                holed, hidden = hide(frame, used, seed)
                started = time.process_time()
                filled = impute(holed if imputer.startswith("wiseale") else holed[used], seed)
                seconds.append(time.process_time() - started)
                found.append(scores(frame, filled, hidden))
                print(name, imputer, seed, {k: round(v, 3) for k, v in found[-1].items()}, flush=True)
            for column in used:
                columns[column].append(mean(score[column] for score in found))
            errors = [mean(score[n] for n in used if is_number(frame[n])) for score in found]
            hits = [mean(score[n] for n in used if not is_number(frame[n])) for score in found]
            summary.append((name, imputer, *_spread(errors), *_spread(hits), mean(seconds)))
        for column, values in columns.items():
            measure = "rmse" if is_number(frame[column]) else "accuracy"
            by_column.append((name, column, measure, *values))
    caption = f"{HIDDEN:.0%} of the observed cells hidden at random, means over {len(seeds)} seeds"
    overall = f"{caption} and the columns, with the standard deviation between seeds; rmse over the column's own spread"
    titles = ("table", "imputer", "rmse", "±", "accuracy", "±", "CPU seconds")
    return [
        Table("impute", overall, titles, tuple(summary)),
        Table("impute_columns", caption, ("table", "column", "measure", *IMPUTERS), tuple(by_column)),
    ]


def _spread(values: Iterable[float]) -> tuple[float, float]:
    """Mean and standard deviation."""
    values = list(values)
    return mean(values), stdev(values) if len(values) > 1 else 0.0
