"""Imputation of cells hidden at random in real mixed tables, beside scikit-learn's imputers and simple baselines.

``python -m bench impute [--quick]``: 20 % of the observed cells of each table are hidden, five seeds. Numbers are
judged by RMSE over the column's standard deviation, categories by accuracy; both are means over columns and seeds.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from statistics import mean

import numpy as np
import pandas as pd
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from bench.quality_data import packaged
from bench.table import Table
from wiseale import AutoEncoder

HIDDEN = 0.2
Imputer = Callable[[pd.DataFrame, int], pd.DataFrame]


def tables() -> dict[str, pd.DataFrame]:
    """Mixed tables with names of things left in; three packages ship them."""
    # Their dates are left as text in the file; read as dates, no imputer is asked to fill them.
    cars = pd.read_json(io.TextIOWrapper(packaged("vega_datasets", "vega_datasets/_data/cars.json")))
    return {
        "penguins": pd.read_csv(packaged("palmerpenguins", "palmerpenguins/data/penguins.csv")),
        "cars": cars.assign(Year=pd.to_datetime(cars["Year"])),
        "breast cancer": pd.read_csv(packaged("lifelines", "lifelines/datasets/gbsg2.csv")),
    }


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


def scores(frame: pd.DataFrame, filled: pd.DataFrame, hidden: pd.DataFrame) -> tuple[float, float]:
    """Mean over columns of RMSE / standard deviation of the numbers, and of the accuracy of the categories."""
    errors, hits = [], []
    for name in hidden:
        rows = hidden[name]
        if pd.api.types.is_numeric_dtype(frame[name]):
            error = frame.loc[rows, name].astype(float) - filled.loc[rows, name].astype(float)
            errors.append(float(np.sqrt((error**2).mean()) / frame[name].std()))
        else:
            hits.append(float((frame.loc[rows, name] == filled.loc[rows, name]).mean()))
    return mean(errors), mean(hits)


def baseline(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Column means and most frequent levels."""
    return frame.fillna(
        {
            n: frame[n].mean() if pd.api.types.is_numeric_dtype(frame[n]) else frame[n].mode().iloc[0]
            for n in frame.columns
        }
    )


def by_features(make: Callable[[int], object], *, one_hot: bool) -> Imputer:
    """An imputer of numbers on standardised columns, and on levels as one column each or as their position.

    A regression from the other columns cannot use one-hot levels: those of the same category, all missing together and
    filled by their means, determine the one that is asked for, so that it stays at its mean.
    """

    def impute(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
        parts, levels = [], {}
        for name in frame.columns:
            if pd.api.types.is_numeric_dtype(frame[name]):
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
    "wiseale, aevb": ours(objective="aevb"),
    "IterativeImputer": by_features(lambda seed: IterativeImputer(random_state=seed, max_iter=30), one_hot=False),
    "KNNImputer": by_features(lambda seed: KNNImputer(), one_hot=True),
    "mean, most frequent": baseline,
}


def measure(*, quick: bool = False) -> list[Table]:
    """One row per table and imputer."""
    rows: list[tuple[str | float, ...]] = []
    for name, frame in tables().items():
        used = [
            n for n in frame.columns if frame[n].nunique() <= 300 and not pd.api.types.is_datetime64_any_dtype(frame[n])
        ]
        for imputer, impute in IMPUTERS.items():
            found, seconds = [], []
            for seed in range(1 if quick else 5):
                holed, hidden = hide(frame, used, seed)
                started = time.perf_counter()
                filled = impute(holed if imputer.startswith("wiseale") else holed[used], seed)
                seconds.append(time.perf_counter() - started)
                found.append(scores(frame, filled, hidden))
            errors, hits = zip(*found, strict=True)
            numbers = (errors, hits, seconds)
            rows.append((name, imputer, *(round(mean(values), 3) for values in numbers)))
            print(*rows[-1], flush=True)
    caption = (
        f"{HIDDEN:.0%} of the observed cells hidden at random, means over {1 if quick else 5} seeds; rmse is over the "
    )
    caption += "standard deviation of the column, both measures are means over columns"
    return [Table("impute", caption, ("table", "imputer", "rmse", "accuracy", "seconds"), tuple(rows))]
