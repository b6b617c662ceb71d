"""Synthetic rows of data frames of R packages, beside a Gaussian copula, TVAE, CTGAN and independent columns.

``python -m bench synthetic``: models are fitted on 70 % of the complete rows with their default settings (TVAE and
CTGAN until their own loss stops falling). As many rows are drawn as are held out, and a random forest of 200 trees
tells them from those by cross-validation, rows shuffled before the folds: accuracy 0.5 is perfect, and the fitted rows
themselves show what copying reaches. Beside it the mean difference of pairwise correlations (levels as columns of 0 and
1), and copying: the part of the drawn rows that lie nearer to a fitted row than a held-out row does on the median.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import stats
from scipy.special import ndtri
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.neighbors import NearestNeighbors

from bench.frames import CHOICE, QUICK, REPORT, is_category, read_frame, usable
from bench.imputers import Array, Codes
from bench.kept_rows import append_row, read_rows
from bench.table import RESULTS, Table, keep

CSV = RESULTS / "synthetic_frames.csv"
LEAST_ROWS = 100
MOST_EPOCHS = 2000  # of TVAE and CTGAN

Model = Callable[[pd.DataFrame, int, int], pd.DataFrame]
"""Rows to fit, number of rows to draw, seed → synthetic rows."""


def wiseale(rows: pd.DataFrame, n: int, seed: int, **settings: Any) -> pd.DataFrame:
    from wiseale import AutoEncoder

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return AutoEncoder(random_state=seed, device="cpu", **settings).fit(rows).sample(n, noise=True)


def copula(rows: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """Gaussian copula: correlations of normal scores, columns back by their empirical quantiles; ties at random."""
    rng = np.random.default_rng(seed)
    codes = Codes.of(rows)
    jittered = np.stack([stats.rankdata(rng.permutation(len(rows)) * 1e-9 + rank) for rank in _ranks(codes.x).T], 1)
    correlation = np.corrcoef(ndtri(jittered / (len(rows) + 1)), rowvar=False)
    drawn = stats.norm.cdf(rng.multivariate_normal(np.zeros(len(correlation)), correlation, n, method="eigh"))
    x = np.stack(
        [np.quantile(column, u, method="inverted_cdf") for column, u in zip(codes.x.T, drawn.T, strict=True)], 1
    )
    return _frame(rows, codes, x)


def independent(rows: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """Each column drawn from the fitted rows by itself."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.choice(rows[name].to_numpy(), n) for name in rows})


def copies(rows: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """The fitted rows themselves."""
    return rows.sample(n, replace=n > len(rows), random_state=seed).reset_index(drop=True)


def _ranks(x: Array) -> Array:
    return np.stack([stats.rankdata(column) for column in x.T], 1)


def _frame(like: pd.DataFrame, codes: Codes, x: Array) -> pd.DataFrame:
    empty = pd.DataFrame({name: pd.Series(np.nan, range(len(x)), object) for name in like})
    filled = codes.frame(empty.assign(**{name: np.nan for k, name in enumerate(like) if k not in codes.levels}), x)
    return filled.astype({name: like[name].dtype for name in like if is_category(like[name])})


def ctgan_model(kind: str) -> Model:
    """TVAE or CTGAN: epochs doubled until the loss of the last quarter is no better than that of the one before."""

    def draw(rows: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
        import ctgan

        discrete = [str(name) for name in rows if is_category(rows[name])]
        rows, epochs = rows.rename(columns=str), 300
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while True:
                model = getattr(ctgan, kind)(epochs=epochs, enable_gpu=False)
                model.set_random_state(seed)
                model.fit(rows, discrete)
                losses = model.loss_values
                column = "Loss" if "Loss" in losses else "Generator Loss"
                per_epoch = losses.groupby("Epoch")[column].mean().to_numpy(float)
                quarter = len(per_epoch) // 4
                if epochs >= MOST_EPOCHS or per_epoch[-quarter:].mean() >= per_epoch[-2 * quarter : -quarter].mean():
                    return pd.DataFrame(model.sample(n))
                epochs *= 2

    return draw


MODELS: dict[str, Model] = {
    "wiseale": wiseale,
    "Gaussian copula": copula,
    "independent columns": independent,
    "the rows fitted": copies,
} | ({"TVAE": ctgan_model("TVAE"), "CTGAN": ctgan_model("CTGAN")} if find_spec("ctgan") else {})


@dataclass(frozen=True)
class Likeness:
    """One line of the CSV file: how well a model's rows pass for rows held out.

    Attributes:
        two_sample: accuracy of a forest that tells them apart.
        correlations: mean absolute difference over the pairs of columns.
        nearest: median distance of a drawn row to the nearest fitted row over that of a held-out row.
        copied: part of the drawn rows at distance 0 from a fitted row, less that of the held-out rows.
    """

    frame: str
    model: str
    seed: int
    two_sample: float
    correlations: float
    nearest: float
    copied: float
    cpu_seconds: float


def measure(name: str, model: str, seed: int) -> Likeness:
    """Fit on one split of a frame, draw, and compare."""
    frame = usable(read_frame(name)).dropna().reset_index(drop=True)
    frame = usable(frame)  # a level may have gone with its rows
    train, test = (part.reset_index(drop=True) for part in train_test_split(frame, test_size=0.3, random_state=seed))
    train = train[[name for name in train if train[name].nunique() > 1]]
    torch.set_num_threads(1)
    started = time.process_time()
    drawn = MODELS[model](train, len(test), seed)
    seconds = time.process_time() - started
    drawn.columns = train.columns
    fitted, real, synthetic = features(train, test[train.columns], drawn)
    return Likeness(
        name, model, seed, two_sample(real, synthetic, seed), *compare(fitted, real, synthetic, train), seconds
    )


def features(train: pd.DataFrame, *others: pd.DataFrame) -> list[Array]:
    """Frames as arrays: standardised numbers, one column of 0 and 1 for each level; scales of the first frame."""
    parts: list[list[Array]] = [[] for _ in range(1 + len(others))]
    for name in train:
        levels = sorted(train[name].unique()) if is_category(train[name]) else []
        mean, scale = (0.0, 1.0) if levels else (float(train[name].mean()), float(train[name].std()))
        for part, frame in zip(parts, (train, *others), strict=True):
            column = frame[name].to_numpy()
            if levels:
                part.append((column[:, None] == np.array(levels)).astype(float))
            else:
                part.append(((column.astype(float) - mean) / scale)[:, None])
    return [np.concatenate(part, 1) for part in parts]


def two_sample(real: Array, synthetic: Array, seed: int, trees: int = 200) -> float:
    """Accuracy of a random forest, five folds of shuffled rows."""
    x, y = np.concatenate([real, synthetic]), np.repeat([0, 1], [len(real), len(synthetic)])
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    forest = RandomForestClassifier(trees, random_state=seed)
    return float(cross_val_score(forest, x, y, cv=folds).mean())


def compare(fitted: Array, real: Array, synthetic: Array, train: pd.DataFrame) -> tuple[float, float, float]:
    """Correlations, distance to the nearest fitted row, and rows that are copies."""
    owner = [name for name in train for _ in range(train[name].nunique() if is_category(train[name]) else 1)]
    with np.errstate(all="ignore"):
        left, right = np.corrcoef(real, rowvar=False), np.corrcoef(synthetic, rowvar=False)
    pairs = [(i, k) for i, k in itertools.combinations(range(len(owner)), 2) if owner[i] != owner[k]]
    difference = np.nan_to_num(np.array([left[pair] - right[pair] for pair in pairs]))  # a level that is never drawn
    tree = NearestNeighbors(n_neighbors=1).fit(fitted)
    near, far = tree.kneighbors(synthetic)[0], tree.kneighbors(real)[0]
    ratio = float((np.median(near) + 1e-3) / (np.median(far) + 1e-3))
    return float(np.abs(difference).mean()), ratio, float((near < 1e-9).mean() - (far < 1e-9).mean())


def summary(rows: Sequence[Likeness], frames: Sequence[str], suffix: str) -> list[Table]:
    """A row for each model over all frames, and a row for each frame; of what every model has."""
    names = [name for name in MODELS if any(row.model == name for row in rows)]
    by_key = {(row.frame, row.seed, row.model): row for row in rows if row.frame in frames}
    keys = sorted({key[:2] for key in by_key if all((*key[:2], name) in by_key for name in names)})
    shown = list(dict.fromkeys(key[0] for key in keys))

    def average(name: str, mark: str, frame: str | None = None) -> float:
        return float(np.mean([getattr(by_key[(*key, name)], mark) for key in keys if frame in (None, key[0])]))

    def wins(name: str) -> str:
        pairs = [(average(name, "two_sample", frame), average(names[0], "two_sample", frame)) for frame in shown]
        return f"{sum(theirs < ours for theirs, ours in pairs)} : {sum(theirs > ours for theirs, ours in pairs)}"

    marks = ("two_sample", "correlations", "nearest", "copied", "cpu_seconds")
    overall = (
        [(name, len(shown), *(average(name, mark) for mark in marks), wins(name)) for name in names] if keys else []
    )
    caption = (
        "Synthetic rows against rows held out, means over frames and seeds: accuracy of a forest that tells them apart "
        "(0.5 is perfect), difference of correlations, distance to the nearest fitted row over that of held-out rows, "
        "rows copied beyond the held-out rows' own share, CPU seconds on one thread, frames won : lost against wiseale"
    )
    titles = ("model", "frames", "two-sample", "correlations", "nearest", "copied", "CPU seconds", "beats us")
    each = [(frame, *(average(name, "two_sample", frame) for name in names)) for frame in shown]
    return [
        Table(f"synthetic_frames{suffix}", caption, titles, tuple(overall)),
        Table(f"synthetic_each_frame{suffix}", "Two-sample accuracy, mean over seeds", ("frame", *names), tuple(each)),
    ]


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench synthetic", description=__doc__.splitlines()[0])
    parser.add_argument("--choice", action="store_true", help="the frames on which settings may be chosen")
    parser.add_argument("--quick", action="store_true", help="three small frames, one seed; nothing is kept")
    parser.add_argument("--frames", nargs="+", help="frames by name, such as MASS/Boston")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), help="some of them")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--csv", type=Path, default=CSV, help="where measurements are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing, only rebuild the tables")
    given = parser.parse_args(words)
    frames = given.frames or (QUICK if given.quick else CHOICE if given.choice else REPORT)
    rows = [] if given.quick else read_rows(given.csv, Likeness)
    done = {(row.frame, row.model, row.seed) for row in rows}
    for seed, frame, model in (
        () if given.table else product(range(1 if given.quick else given.seeds), frames, given.models)
    ):
        if (frame, model, seed) in done or len(usable(read_frame(frame)).dropna()) < LEAST_ROWS:
            continue
        row = measure(frame, model, seed)
        rows.append(row)
        if not given.quick:
            append_row(given.csv, row)
        print(row, flush=True)
    for table in summary(rows, frames, "_choice" if given.choice else ""):
        keep(table, quick=given.quick or given.csv != CSV or given.frames is not None)
