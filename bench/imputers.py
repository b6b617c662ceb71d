"""What fills cells in the benchmark of imputation: ``AutoEncoder`` by its public interface, and its rivals.

Every imputer takes a frame with holes and returns it filled, once at its best guess and, where it can, several times
drawn. Columns of two values are categories to all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from bench.frames import is_category

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Filled:
    """A frame with its holes filled at the best guess, and draws of it, none where the imputer has none."""

    best: pd.DataFrame
    draws: list[pd.DataFrame] = field(default_factory=list)


Imputer = Callable[[pd.DataFrame, int, int], Filled]
"""Frame with holes, seed, number of draws."""


def wiseale(frame: pd.DataFrame, seed: int, n_draws: int, **settings: Any) -> Filled:
    """``AutoEncoder`` with its default settings."""
    from wiseale import AutoEncoder

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoEncoder(random_state=seed, device="cpu", **settings).fit(frame)
        return Filled(model.impute(frame), list(model.impute(frame, n_draws=n_draws)) if n_draws else [])


def means(frame: pd.DataFrame, seed: int, n_draws: int) -> Filled:
    """Column means and most frequent levels; draws are those of the column's observed values."""
    best = frame.copy()
    for name in frame:
        column = frame[name]
        value = column.mode().iloc[0] if is_category(column) else column.mean()
        best[name] = (column if is_category(column) else column.astype(float)).fillna(value)
    rng = np.random.default_rng(seed)
    draws = [frame.copy() for _ in range(n_draws)]
    for draw in draws:
        for name in frame:
            missing = frame[name].isna()
            if missing.any():
                draw.loc[missing, name] = rng.choice(frame.loc[~missing, name].to_numpy(), int(missing.sum()))
    return Filled(best, draws)


@dataclass(frozen=True)
class Codes:
    """A frame as an array of numbers: levels by their positions."""

    x: Array
    levels: dict[int, Array]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Codes:
        x, levels = np.full(frame.shape, np.nan), {}
        for place, name in enumerate(frame):
            column = frame[name]
            if is_category(column):
                levels[place] = np.array(sorted(column.dropna().unique()), object)
                x[:, place] = column.map({level: k for k, level in enumerate(levels[place])}).astype(float)
            else:
                x[:, place] = column.astype(float)
        return cls(x, levels)

    def frame(self, like: pd.DataFrame, x: Array) -> pd.DataFrame:
        """``like`` with its holes taken from x."""
        filled = like.copy()
        for place, name in enumerate(like):
            values: Any = x[:, place]
            if place in self.levels:
                levels = self.levels[place]
                values = levels[np.clip(np.nan_to_num(values).round(), 0, len(levels) - 1).astype(int)]
                values = pd.Series(values, like.index).astype(like[name].dropna().to_numpy().dtype)
            column = like[name] if place in self.levels else like[name].astype(float)
            filled[name] = column.where(like[name].notna(), values)
        return filled


def miss_forest(frame: pd.DataFrame, seed: int, n_draws: int) -> Filled:
    """Stekhoven & Bühlmann 2012 with 50 trees: columns in turn by a forest of the others until changes grow again."""
    codes = Codes.of(frame)
    missing = np.isnan(codes.x)
    numbers = [k for k in range(codes.x.shape[1]) if k not in codes.levels]
    x = Codes.of(means(frame, seed, 0).best).x if not codes.levels else _initial(codes)
    order = [k for k in np.argsort(missing.sum(0), kind="stable") if missing[:, k].any()]
    last, previous = (np.inf, np.inf), x
    for _ in range(10):
        new = x.copy()
        for k in order:
            kind = RandomForestClassifier if k in codes.levels else RandomForestRegressor
            forest = kind(50, max_features="sqrt", random_state=seed)
            others, rows = np.delete(new, k, 1), missing[:, k]
            new[rows, k] = forest.fit(others[~rows], codes.x[~rows, k]).predict(others[rows])
        change = _change(new, x, missing, numbers)
        previous, x = x, new
        if change[0] >= last[0] and change[1] >= last[1]:  # both kinds of columns change more than before
            x = previous
            break
        last = change
    return Filled(codes.frame(frame, x))


def _initial(codes: Codes) -> Array:
    """Means and most frequent levels."""
    x = codes.x.copy()
    for k in range(x.shape[1]):
        seen = x[~np.isnan(x[:, k]), k]
        value = np.bincount(seen.astype(int)).argmax() if k in codes.levels else seen.mean()
        x[np.isnan(x[:, k]), k] = value
    return x


def _change(new: Array, old: Array, missing: npt.NDArray[np.bool_], numbers: list[int]) -> tuple[float, float]:
    """Squared change of the filled numbers over their squares, share of changed levels; infinite where none are."""
    levels = [k for k in range(new.shape[1]) if k not in numbers]
    hidden = missing[:, numbers]
    squares = float((new[:, numbers][hidden] ** 2).sum())
    moved = float(((new - old)[:, numbers][hidden] ** 2).sum()) / squares if squares else np.inf
    total = missing[:, levels].sum()
    changed = float((new != old)[:, levels][missing[:, levels]].sum()) / total if total else np.inf
    return moved, changed


def iterative(frame: pd.DataFrame, seed: int, n_draws: int) -> Filled:
    """scikit-learn's IterativeImputer (Bayesian ridge) on standardised numbers and positions of levels."""
    codes = Codes.of(frame)
    mean, scale = np.nanmean(codes.x, 0), np.nanstd(codes.x, 0)

    def fill(**settings: Any) -> pd.DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = IterativeImputer(**settings).fit_transform((codes.x - mean) / scale)
        return codes.frame(frame, x * scale + mean)

    best = fill(random_state=seed, max_iter=30)
    return Filled(
        best, [fill(random_state=1000 * seed + k, max_iter=10, sample_posterior=True) for k in range(n_draws)]
    )


def neighbours(frame: pd.DataFrame, seed: int, n_draws: int) -> Filled:
    """scikit-learn's KNNImputer on standardised numbers and one column for each level."""
    codes = Codes.of(frame)
    parts = []
    for k in range(codes.x.shape[1]):
        column = codes.x[:, k, None]
        if k in codes.levels:
            column = np.where(np.isnan(column), np.nan, column == np.arange(len(codes.levels[k])))
        else:
            column = (column - np.nanmean(column)) / np.nanstd(column)
        parts.append(column)
    filled = KNNImputer().fit_transform(np.concatenate(parts, 1))
    x, start = codes.x.copy(), 0
    for k, part in enumerate(parts):
        block = filled[:, start : start + part.shape[1]]
        start += part.shape[1]
        seen = codes.x[:, k]
        x[:, k] = block.argmax(1) if k in codes.levels else block[:, 0] * np.nanstd(seen) + np.nanmean(seen)
    return Filled(codes.frame(frame, x))


def mice(frame: pd.DataFrame, seed: int, n_draws: int) -> Filled:
    """``miceforest``: chained equations, predictive mean matching on boosted trees; best guesses are means of draws."""
    import miceforest

    codes = Codes.of(frame)
    data = pd.DataFrame(codes.x, columns=[f"c{k}" for k in range(codes.x.shape[1])])
    for k in codes.levels:
        data[f"c{k}"] = data[f"c{k}"].astype("Int64").astype("category")
    kernel = miceforest.ImputationKernel(data, num_datasets=max(n_draws, 5), random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel.mice(5, num_threads=1, verbosity=-1)
    stack = np.stack([kernel.complete_data(k).astype(float).to_numpy() for k in range(max(n_draws, 5))])
    best = stack.mean(0)
    for k, levels in codes.levels.items():
        best[:, k] = np.stack([(stack[:, :, k] == level).sum(0) for level in range(len(levels))]).argmax(0)
    draws = [codes.frame(frame, x) for x in stack]
    return Filled(codes.frame(frame, best), draws if n_draws else [])


IMPUTERS: dict[str, Imputer] = {
    "wiseale": wiseale,
    "MissForest": miss_forest,
    "IterativeImputer": iterative,
    "KNNImputer": neighbours,
    "mean, most frequent": means,
} | ({"miceforest": mice} if find_spec("miceforest") else {})
