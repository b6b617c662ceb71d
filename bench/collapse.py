"""How often each system collapses, over seeds, on sine waves and handwritten digits, and what prevents it.

A run has collapsed if no unit is active or if the mutual information is below 0.1 nats, on rows it has not seen. Each
finished run is appended to a CSV file, and a rerun skips what the file already holds:

    python -m bench collapse --seeds 20 --systems wise_ale,aevb
    python -m bench collapse --table
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bench.kept_rows import append_row, read_rows
from bench.quality import commit, one_thread
from bench.quality_data import Array
from bench.table import RESULTS, Table, keep
from wiseale import AutoEncoder
from wiseale.data.sets.sine import Sine
from wiseale.errors import CollapseWarning, DivergenceError
from wiseale.models.collapse import CodeUse, code_use
from wiseale.objectives import make_objective, objective_names
from wiseale.posterior import Posterior

CSV = RESULTS / "collapse.csv"
ROWS = 1000  # held-out rows: the mutual information costs their square
WAVES, SINE_EPOCHS, SINE_WARMUP = 4000, 12, 4.0
DIGITS_EPOCHS = 60

FIRST = ("wise_ale", "aevb", "beta_vae:beta=4")
SYSTEMS = (*FIRST, *(name for name in objective_names() if name not in FIRST and make_objective(name).stochastic))

_SINE = {
    "latent_dim": 4,
    "likelihood": "gaussian:x_sigma=1",
    "standardize": "none",
    "lr": 1e-3,
    "max_epochs": SINE_EPOCHS,
    "batch_size": 64,
}
_DIGITS = {"latent_dim": 8, "max_epochs": DIGITS_EPOCHS}
CONFIGURATIONS: dict[str, dict[str, dict[str, Any]]] = {
    "sine": {
        "init=torch": {**_SINE, "network": "paper_sine:init=torch"},
        "init=glorot": {**_SINE, "network": "paper_sine:init=glorot"},
        "init=torch, warm-up": {**_SINE, "network": "paper_sine:init=torch", "prior_warmup": SINE_WARMUP},
        "init=glorot, warm-up": {**_SINE, "network": "paper_sine:init=glorot", "prior_warmup": SINE_WARMUP},
    },
    "digits": {
        "defaults": _DIGITS,
        "x_sigma=1": {**_DIGITS, "likelihood": "gaussian:x_sigma=1"},
        "start=none": {**_DIGITS, "network": "mlp:start=none"},
        "start=none, x_sigma=1": {**_DIGITS, "network": "mlp:start=none", "likelihood": "gaussian:x_sigma=1"},
    },
}
"""Arguments of ``AutoEncoder`` by set and by name."""

CAPTION = (
    f"Collapsed runs among the seeds, 1 thread. sine: {WAVES:,} waves, the paper's network, 4-D, x_sigma=1, lr 1e-3, "
    f"{SINE_EPOCHS} epochs; warm-up: of the prior's weight, over {SINE_WARMUP:g} epochs. digits: scikit-learn's 8×8 "
    f"images, 8-D, {DIGITS_EPOCHS} epochs, AutoEncoder's other defaults (start=pca, x_sigma=learned) unless named. "
    "Collapsed: 0 active units or mutual information below 0.1 nats on held-out rows. The other columns are medians "
    "over the seeds; MSE is in standardised units, so that 1 is the error of the mean."
)


class Key(NamedTuple):
    """What identifies a run."""

    dataset: str
    configuration: str
    objective: str
    seed: int


@dataclass(frozen=True)
class Row:
    """One line of the CSV file; ``mse`` is in units of the data's variance, None where training diverged."""

    dataset: str
    configuration: str
    objective: str
    seed: int
    active_units: int | None
    mutual_information: float | None
    mse: float | None
    cpu_seconds: float
    commit: str

    @property
    def key(self) -> Key:
        return Key(self.dataset, self.configuration, self.objective, self.seed)

    @property
    def collapsed(self) -> bool:
        return self.active_units is not None and CodeUse(self.active_units, self.mutual_information).collapsed


@cache
def split(dataset: str) -> tuple[Array, Array]:
    """Training and held-out rows: the same for every seed, which moves the weights, the order and the noise."""
    if dataset == "sine":
        found = Sine(n=WAVES, n_test=ROWS).load(Path())
        assert found.test is not None
        return found.train.x, found.test.x
    train, test = train_test_split(load_digits().images[:, None], test_size=0.3, random_state=0)
    return train, test


def measure(key: Key, at: str) -> Row:
    """Train one system with one thread and measure its codes on the held-out rows."""
    train, test = split(key.dataset)
    estimator = AutoEncoder(key.objective, random_state=key.seed, **CONFIGURATIONS[key.dataset][key.configuration])
    started = time.process_time()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        try:
            estimator.fit(train)
        except DivergenceError:
            return Row(*key, None, None, None, time.process_time() - started, at)
        seconds = time.process_time() - started
        mu, sigma = (torch.from_numpy(np.asarray(part, np.float64)) for part in estimator.posterior(test[:ROWS]))
        use = code_use(Posterior(mu, sigma), torch.randn(mu.shape, generator=torch.Generator().manual_seed(0)))
        error = np.square(estimator.inverse_transform(mu.numpy()) - test[:ROWS]).mean() / train.var()
    return Row(*key, use.active_units, use.mutual_information, float(error), seconds, at)


def read(path: Path) -> dict[Key, Row]:
    """The runs in a CSV file; of two with the same key the later one."""
    return {row.key: row for row in read_rows(path, Row)}


def table(rows: Iterable[Row]) -> Table:
    """Collapsed runs and medians over the seeds, a line for each set, system and configuration."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.objective, row.configuration), []).append(row)
    lines = []
    for dataset, configurations in CONFIGURATIONS.items():
        for objective in sorted({o for d, o, _ in groups if d == dataset}, key=_place):
            for name in configurations:
                if group := groups.get((dataset, objective, name)):
                    finished = [row for row in group if row.active_units is not None]
                    medians = (_median(finished, m) for m in ("active_units", "mutual_information", "mse"))
                    counts = (f"{sum(row.collapsed for row in group)} / {len(group)}", len(group) - len(finished))
                    lines.append((dataset, objective, name, *counts, *medians, _median(group, "cpu_seconds")))
    titles = ("set", "system", "configuration", "collapsed", "diverged", "active units", "mutual information", "MSE")
    return Table("collapse", CAPTION, (*titles, "CPU s"), tuple(lines))


def _place(objective: str) -> int:
    return SYSTEMS.index(objective) if objective in SYSTEMS else len(SYSTEMS)


def _median(rows: list[Row], measure: str) -> str:
    values = [value for row in rows if (value := getattr(row, measure)) is not None]
    return f"{median(values):.3g}" if values else "-"


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench collapse", description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(CONFIGURATIONS), help="sine, digits or both")
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), help="all registered stochastic ones")
    parser.add_argument("--configurations", nargs="+", help="some of those of the sets; all unless given")
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--csv", type=Path, default=CSV, help="where runs are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing, only rebuild the table")
    given = parser.parse_args(words)
    done, at = read(given.csv), commit()
    keys = [
        Key(dataset, name, objective, seed)
        for seed in range(given.seeds)  # seed by seed, so that an early look shows all systems
        for dataset in given.sets.split(",")
        for objective in given.systems
        for name in CONFIGURATIONS[dataset]
        if given.configurations is None or name in given.configurations
    ]
    for key in [] if given.table else [key for key in keys if key not in done]:
        row = measure(key, at)
        append_row(given.csv, row)
        print(f"{' '.join(map(str, key))}: {'collapsed' if row.collapsed else 'not collapsed'}", flush=True)
    keep(table(read(given.csv).values()), quick=given.csv != CSV)
