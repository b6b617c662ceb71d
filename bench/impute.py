"""Imputation of cells hidden at random in real mixed tables, beside scikit-learn's imputers and simple baselines.

``python -m bench impute``: 20 % of the observed cells of each table are hidden, five seeds. Numbers are
judged by RMSE over the column's standard deviation, categories by accuracy. All imputers fill the same columns: those
that ``AutoEncoder`` learns from by its own decision.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pandas as pd
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from bench.kept_rows import append_row, read_rows
from bench.mixed_tables import TABLES
from bench.table import RESULTS, Table, keep
from wiseale import AutoEncoder
from wiseale.estimator.fit import learn_frame

HIDDEN = 0.2
CSV = RESULTS / "impute.csv"
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


def ours(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The auto-encoder with its default settings."""
    return AutoEncoder(random_state=seed, device="cpu").fit(frame).impute(frame)


IMPUTERS: dict[str, Imputer] = {
    "wiseale": ours,
    "IterativeImputer": by_features(lambda seed: IterativeImputer(random_state=seed, max_iter=30), one_hot=False),
    "KNNImputer": by_features(lambda seed: KNNImputer(), one_hot=True),
    "mean, most frequent": baseline,
}


@dataclass(frozen=True)
class Score:
    """One line of the CSV file: how well an imputer filled the hidden cells of one column."""

    table: str
    imputer: str
    seed: int
    column: str
    measure: str
    score: float
    cpu_seconds: float


def measure(table: str, imputer: str, seed: int) -> list[Score]:
    """Hide cells of a table, fill them, and judge every column."""
    frame = TABLES[table]()
    used = list(learn_frame(frame)[0].names)
    holed, hidden = hide(frame, used, seed)
    started = time.process_time()
    filled = IMPUTERS[imputer](holed if imputer == "wiseale" else holed[used], seed)
    seconds = time.process_time() - started
    found = scores(frame, filled, hidden)
    return [
        Score(table, imputer, seed, name, "rmse" if is_number(frame[name]) else "accuracy", found[name], seconds)
        for name in used
    ]


def summaries(kept: Sequence[Score]) -> list[Table]:
    """One row per table and imputer, and one per column; of the seeds that every imputer has."""
    overall: list[tuple[str | float, ...]] = []
    by_column: list[tuple[str | float, ...]] = []
    for table in dict.fromkeys(score.table for score in kept):
        per_imputer = [{s.seed for s in kept if (s.table, s.imputer) == (table, imputer)} for imputer in IMPUTERS]
        seeds = sorted(set.intersection(*per_imputer))
        ours = [score for score in kept if score.table == table and score.seed in seeds]
        for imputer in IMPUTERS if seeds else ():
            mine = [score for score in ours if score.imputer == imputer]
            means = {
                kind: [mean(s.score for s in mine if (s.seed, s.measure) == (seed, kind)) for seed in seeds]
                for kind in ("rmse", "accuracy")
            }
            seconds = mean(score.cpu_seconds for score in mine)
            overall.append((table, imputer, len(seeds), *_spread(means["rmse"]), *_spread(means["accuracy"]), seconds))
        for column, kind in dict.fromkeys((score.column, score.measure) for score in ours):
            values = [mean(s.score for s in ours if (s.imputer, s.column) == (imputer, column)) for imputer in IMPUTERS]
            by_column.append((table, column, kind, *values))
    caption = f"{HIDDEN:.0%} of the observed cells hidden at random, means over the seeds"
    spread = f"{caption} and the columns, with the standard deviation between seeds; rmse over the column's own spread"
    titles = ("table", "imputer", "seeds", "rmse", "±", "accuracy", "±", "CPU seconds")
    return [
        Table("impute", spread, titles, tuple(overall)),
        Table("impute_columns", caption, ("table", "column", "measure", *IMPUTERS), tuple(by_column)),
    ]


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation."""
    return mean(values), stdev(values) if len(values) > 1 else 0.0


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench impute", description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), help="some of penguins, cars and movies")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--csv", type=Path, default=CSV, help="where measurements are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing, only rebuild the tables")
    given = parser.parse_args(words)
    done = {(score.table, score.imputer, score.seed) for score in read_rows(given.csv, Score)}
    wanted = [
        (table, imputer, seed) for seed in range(given.seeds) for table in given.tables for imputer in IMPUTERS
    ]  # seed by seed, so that an early look shows all tables
    for key in [] if given.table else [key for key in wanted if key not in done]:
        for score in (found := measure(*key)):
            append_row(given.csv, score)
        shown = {score.column: round(score.score, 3) for score in found}
        print(*key, shown, f"{found[0].cpu_seconds:.1f} s", flush=True)
    for table in summaries(read_rows(given.csv, Score)):
        keep(table, quick=given.csv != CSV)
