"""Imputation of hidden cells in data frames of R packages, beside MissForest, mice and scikit-learn's imputers.

``python -m bench impute``: about 20 % of the observed cells of each frame are hidden completely at random (MCAR), by
another column (MAR) or by their own value (MNAR). Numbers are judged by the RMSE over the column's standard deviation
and the CRPS of draws, categories by accuracy; 19 draws bound an interval that holds 90 % of exchangeable values.
Measurements are kept line by line, so that a run can be interrupted and continued; settings may be chosen on the frames
of ``--choice`` alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from bench.frames import CHOICE, MECHANISMS, QUICK, REPORT, Mechanism, hide, is_category, read_frame, usable
from bench.imputers import IMPUTERS, Array, Filled
from bench.kept_rows import append_row, read_rows
from bench.table import RESULTS, Table, keep

DRAWS = 19
"""The range of 19 draws holds a 20th exchangeable one with probability 18/20."""

CSV = RESULTS / "impute_frames.csv"


@dataclass(frozen=True)
class Score:
    """One line of the CSV file: how well an imputer filled a frame.

    Attributes:
        rmse: over the column's standard deviation, mean over the numeric columns; None without any.
        accuracy: mean over the categories.
        crps: continuous ranked probability score of the draws over the column's standard deviation; None without draws.
        brier: the same score of drawn categories, with distance 1 between different levels.
        covered: hidden numbers inside the range of the draws.
        numbers: hidden numbers.
        unfilled: hidden cells that came back missing; they count as the mean or most frequent level.
    """

    frame: str
    imputer: str
    mechanism: str
    seed: int
    rmse: float | None
    accuracy: float | None
    crps: float | None
    brier: float | None
    covered: int | None
    numbers: int
    unfilled: int
    cpu_seconds: float


def measure(name: str, imputer: str, mechanism: Mechanism, seed: int) -> Score:
    """Hide cells of a frame, fill them, and judge every column."""
    frame = usable(read_frame(name))
    hidden = hide(frame, mechanism, seed)
    holed = frame.copy()
    for column in frame:
        holed[column] = frame[column].mask(hidden[column])
    torch.set_num_threads(1)
    started = time.process_time()
    filled = IMPUTERS[imputer](holed, seed, DRAWS)
    seconds = time.process_time() - started
    return judge(frame, holed, hidden, filled, Score(name, imputer, mechanism, seed, *[None] * 5, 0, 0, seconds))


def judge(frame: pd.DataFrame, holed: pd.DataFrame, hidden: pd.DataFrame, filled: Filled, empty: Score) -> Score:
    """``empty`` with the measures of a filled frame."""
    rmse, accuracy, crps, brier = [], [], [], []
    unfilled = covered = numbers = 0
    for name in (name for name in frame if hidden[name].any()):
        rows, column = hidden[name], frame[name]
        best = filled.best.loc[rows, name]
        unfilled += int(best.isna().sum())
        draws = [draw.loc[rows, name] for draw in filled.draws]
        if is_category(column):
            best = best.where(best.notna(), holed[name].mode().iloc[0])
            accuracy.append(float((best == column[rows]).mean()))
            if draws:
                levels = {level: k for k, level in enumerate(sorted(column.dropna().unique()))}
                drawn = np.stack([draw.map(levels).fillna(-1).to_numpy(float) for draw in draws])
                brier.append(spread_score(drawn, column[rows].map(levels).to_numpy(float), np.not_equal))
            continue
        scale, truth = float(column.std()), column[rows].to_numpy(float)
        error = best.astype(float).fillna(holed[name].mean()).to_numpy() - truth
        rmse.append(float(np.sqrt((error**2).mean())) / scale)
        numbers += len(truth)
        if draws:
            drawn = np.stack([draw.astype(float).fillna(holed[name].mean()).to_numpy() for draw in draws])
            covered += int(((truth >= drawn.min(0)) & (truth <= drawn.max(0))).sum())
            crps.append(spread_score(drawn, truth, lambda a, b: np.abs(a - b)) / scale)
    values = {"rmse": rmse, "accuracy": accuracy, "crps": crps, "brier": brier}
    means = {key: float(np.mean(value)) if value else None for key, value in values.items()}
    counts = {"covered": covered if filled.draws else None, "numbers": numbers, "unfilled": unfilled}
    return Score(**vars(empty) | means | counts)


def spread_score(drawn: Array, truth: Array, distance: Callable[[Array, Array], Array]) -> float:
    """The energy score of draws (m, n), mean over the n: E d(draw, truth) − ½ E d(draw, draw'), without bias."""
    m = len(drawn)
    between = sum(float(distance(one, drawn).sum(0).mean()) for one in drawn) / (m * (m - 1))
    return float(distance(drawn, truth).mean()) - between / 2


def summaries(scores: Sequence[Score], frames: Sequence[str], suffix: str) -> list[Table]:
    """A row for each mechanism and imputer over all frames, and a row for each frame; of what every imputer has."""
    names = [name for name in IMPUTERS if any(score.imputer == name for score in scores)]
    by_key = {(s.frame, s.mechanism, s.seed, s.imputer): s for s in scores if s.frame in frames}
    shared = sorted({key[:3] for key in by_key if all((*key[:3], name) in by_key for name in names)})
    overall: list[tuple[str | float, ...]] = []
    for mechanism in dict.fromkeys(key[1] for key in shared):
        keys = [key for key in shared if key[1] == mechanism]
        table = {name: [by_key[(*key, name)] for key in keys] for name in names}
        rmse = _by_frame(table, "rmse", lower=True)
        right = _by_frame(table, "accuracy", lower=False)
        for name in names:
            ours = table[name]
            overall.append(
                (
                    mechanism,
                    name,
                    len({key[0] for key in keys}),
                    *rmse[name],
                    *right[name],
                    _mean([s.crps for s in ours]),
                    _mean([s.brier for s in ours]),
                    *_coverage(ours),
                    _mean([s.cpu_seconds for s in ours]),
                )
            )
    rows: list[tuple[str | float, ...]] = []
    for frame in dict.fromkeys(key[0] for key in shared):
        for mark in ("rmse", "accuracy"):
            means = [_mean([getattr(by_key[(*k, n)], mark) for k in shared if k[0] == frame]) for n in names]
            if "-" not in means:
                rows.append((frame, mark, *means))
    caption = (
        "About 20 % of the observed cells hidden. Means over frames and seeds: rmse over the column's spread, "
        "accuracy, mean rank among the imputers, frames won : lost against wiseale; crps and brier of 19 draws, whose "
        "range should hold 0.90 of the hidden numbers (pooled; least and most of the frames with 50 or more); CPU "
        "seconds on one thread"
    )
    titles = ("mechanism", "imputer", "frames", "rmse", "rank", "beats us", "accuracy", "rank", "beats us")
    titles += ("crps", "brier", "covered", "least", "most", "CPU seconds")
    by_frame = Table(
        f"impute_each_frame{suffix}", "Means over mechanisms and seeds", ("frame", "measure", *names), tuple(rows)
    )
    return [Table(f"impute_frames{suffix}", caption, titles, tuple(overall)), by_frame]


def _by_frame(table: dict[str, list[Score]], mark: str, *, lower: bool) -> dict[str, tuple[str | float, ...]]:
    """Of each imputer the mean, the mean rank over frames, and "wins : losses" against the first imputer."""
    frames = list(dict.fromkeys(s.frame for s in next(iter(table.values())) if getattr(s, mark) is not None))
    means = np.array([[_mean([getattr(s, mark) for s in ss if s.frame == f]) for f in frames] for ss in table.values()])
    if not frames:
        return dict.fromkeys(table, ("-", "-", "-"))
    signed = np.round(means.astype(float) if lower else -means.astype(float), 6)
    ranks = pd.DataFrame(signed).rank(axis=0).mean(axis=1).to_numpy()
    beats = [f"{int((row < signed[0]).sum())} : {int((row > signed[0]).sum())}" for row in signed]
    columns = zip(table, means.astype(float).mean(1), ranks, beats, strict=True)
    return {name: (float(mean), float(rank), wins) for name, mean, rank, wins in columns}


def _coverage(scores: Sequence[Score]) -> tuple[str | float, ...]:
    """Pooled, and of the worst frames on either side that have at least 50 hidden numbers over the seeds."""
    drawn = [s for s in scores if s.covered is not None and s.numbers]
    if not drawn:
        return ("-", "-", "-")
    counts = pd.DataFrame([(s.frame, s.covered, s.numbers) for s in drawn], columns=["frame", "covered", "numbers"])
    sums = counts.groupby("frame").sum()
    shares = (sums["covered"] / sums["numbers"])[sums["numbers"] >= 50]
    pooled = float(sums["covered"].sum() / sums["numbers"].sum())
    return pooled, *((float(shares.min()), float(shares.max())) if len(shares) else ("-", "-"))


def _mean(values: Sequence[float | None]) -> float | str:
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else "-"


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench impute", description=__doc__.splitlines()[0])
    parser.add_argument("--choice", action="store_true", help="the frames on which settings may be chosen")
    parser.add_argument("--quick", action="store_true", help="three small frames, one seed, MCAR; nothing is kept")
    parser.add_argument("--frames", nargs="+", help="frames by name, such as MASS/Boston")
    parser.add_argument("--imputers", nargs="+", choices=list(IMPUTERS), default=list(IMPUTERS), help="some of them")
    parser.add_argument("--mechanisms", nargs="+", choices=MECHANISMS, default=list(MECHANISMS), help="some of them")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--csv", type=Path, default=CSV, help="where measurements are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing, only rebuild the tables")
    given = parser.parse_args(words)
    frames = given.frames or (QUICK if given.quick else CHOICE if given.choice else REPORT)
    seeds, mechanisms = (1, ["MCAR"]) if given.quick else (given.seeds, given.mechanisms)
    scores = [] if given.quick else read_rows(given.csv, Score)
    done = {(s.frame, s.imputer, s.mechanism, s.seed) for s in scores}
    wanted = product(range(seeds), mechanisms, frames, given.imputers)  # seed by seed: an early look shows all frames
    for seed, mechanism, frame, imputer in () if given.table else wanted:
        if (frame, imputer, mechanism, seed) in done:
            continue
        score = measure(frame, imputer, mechanism, seed)
        scores.append(score)
        if not given.quick:
            append_row(given.csv, score)
        print(score, flush=True)
    for table in summaries(scores, frames, "_choice" if given.choice else ""):
        keep(table, quick=given.quick or given.csv != CSV or given.frames is not None)
