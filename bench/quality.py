"""Quality on held-out rows of real data: PCA, ``AutoEncoder`` in named configurations, and pythae's defaults.

Each finished measurement is appended to a CSV file, and a rerun skips what the file already holds:

    python -m bench quality --sets wine,digits --dims 2,8 --seeds 3
    python -m bench quality --configurations '{"fast": {"lr": 0.003}}' --run PCA,fast
    python -m bench quality --table
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import multiprocessing
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

import wiseale
from bench.kept_rows import append_row
from bench.quality_data import SETS, SMALL, Split, load
from bench.quality_models import PYTHAE, Fit, fit_ours, fit_pca, fit_pythae
from bench.quality_rows import Key, Row, fill_in, read, table
from bench.table import RESULTS, keep
from wiseale.divergences import kl_aggregate_mc
from wiseale.errors import DataError
from wiseale.posterior import Posterior

CONFIGURATIONS: dict[str, dict[str, Any]] = {"ours": {}}
"""Keyword arguments of ``AutoEncoder`` by the name of the configuration; ``--configurations`` adds more."""

CSV = RESULTS / "quality.csv"
PAGES = [Path(__file__).parents[1] / name for name in ("README.md", "docs/defaults.md")]
NEIGHBOURS, ACTIVE_VARIANCE = 5, 0.01
KL_ROWS, KL_DRAWS = 2000, 4  # the estimate costs draws × rows²


@dataclass(frozen=True)
class Job:
    """One measurement to make; ``budget`` is the CPU seconds that pythae may train for."""

    key: Key
    settings: dict[str, Any]
    commit: str
    budget: float = 0.0


def measure(job: Job) -> Row:
    """Fit one configuration with one thread and measure it on the held-out rows."""
    key, split = job.key, load(job.key.dataset)
    with one_thread():
        if key.configuration == "PCA":
            fit = fit_pca(split, key.dim)
        elif key.configuration in PYTHAE:
            fit = fit_pythae(split, key.dim, key.seed, key.configuration.removeprefix("pythae "), job.budget)
        else:
            fit = fit_ours(split, key.dim, key.seed, job.settings)
        return Row(
            *key,
            mse=float(np.square((fit.x_hat - split.test) / split.scale).mean()),
            elbo=fit.elbo,
            active_units=int((fit.test_codes.var(0) > ACTIVE_VARIANCE).sum()),
            knn_accuracy=knn_accuracy(fit, split),
            aggregate_kl=aggregate_kl(fit),
            cpu_seconds=fit.cpu_seconds,
            steps=fit.steps,
            epochs=fit.epochs,
            settings=json.dumps(job.settings),
            version=wiseale.__version__,
            commit=job.commit,
        )


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch and the linear algebra of numpy to one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


def knn_accuracy(fit: Fit, split: Split) -> float | None:
    if split.train_labels is None:
        return None
    neighbours = KNeighborsClassifier(NEIGHBOURS).fit(fit.train_codes, split.train_labels)
    return float(neighbours.score(fit.test_codes, split.test_labels))


def aggregate_kl(fit: Fit) -> float | None:
    """Of the first 2,000 held-out rows."""
    if fit.sigma is None:
        return None
    mu, sigma = (torch.from_numpy(x[:KL_ROWS].astype(np.float64)) for x in (fit.test_codes, fit.sigma))
    return float(kl_aggregate_mc(Posterior(mu, sigma), KL_DRAWS, torch.Generator().manual_seed(0)))


def run(given: argparse.Namespace) -> None:
    """Make the measurements that the CSV file lacks, those of pythae last: they need the time that ``ours`` took."""
    known = {**CONFIGURATIONS, **given.configurations}
    names = given.run.split(",") if given.run else ["PCA", *known, *PYTHAE]
    if wrong := [name for name in names if name not in ("PCA", *known, *PYTHAE)]:
        raise SystemExit(
            f"no configuration is called {', '.join(wrong)}: there are PCA, {', '.join((*known, *PYTHAE))}"
        )
    if importlib.util.find_spec("pythae") is None and any(name in PYTHAE for name in names):
        print("pythae is not installed: pip install -c constraints.txt pythae")
        names = [name for name in names if name not in PYTHAE]
    sets = available(given.sets.split(",") if given.sets else SMALL if given.quick else tuple(SETS))
    seeds, at = range(given.seeds or (1 if given.quick else 3)), commit()
    keys = [
        Key(dataset, int(dim), seed, name)
        for dataset in sets
        for dim in given.dims.split(",")
        for name in names
        for seed in (seeds if name != "PCA" else (0,))  # PCA has no randomness
    ]
    missing = keys if given.again else lacking(keys, read(given.csv), known, at)
    jobs = [Job(key, known.get(key.configuration, {}), at) for key in missing if key.configuration not in PYTHAE]
    finish(jobs, given.csv, given.processes)
    done, jobs = read(given.csv), []
    for key in missing:
        if key.configuration in PYTHAE:
            ours = done.get(key._replace(configuration="ours"))
            if ours is None:
                print(f"{' '.join(map(str, key))}: skipped, it trains for as long as ours, which was not measured")
            else:
                jobs.append(Job(key, {}, at, budget=ours.cpu_seconds))
    finish(jobs, given.csv, given.processes)


def lacking(keys: list[Key], done: dict[Key, Row], known: dict[str, dict[str, Any]], at: str) -> list[Key]:
    """The keys without a row; a row with other settings is refused, one of another commit is kept and reported."""
    rows = [done[key] for key in keys if key in done]
    for row in rows:
        if json.loads(row.settings) != known.get(row.configuration, {}):
            raise SystemExit(
                f"{row.configuration} was measured with {row.settings}: give these settings another name, or --again"
            )
    if earlier := sorted({row.commit for row in rows if row.configuration in known and row.commit != at}):
        print(f"keeping rows measured at {', '.join(earlier)}: --again measures them at {at}")
    return [key for key in keys if key not in done]


def available(names: Iterable[str]) -> list[str]:
    """The sets whose files are here or can be downloaded; for the others it prints why not."""
    found = []
    for name in names:
        if name not in SETS:
            raise SystemExit(f"no set is called {name}: there are {', '.join(SETS)}")
        try:
            load(name)
        except DataError as error:
            print(f"{name}: skipped, {error}")
        else:
            found.append(name)
    return found


def finish(jobs: list[Job], path: Path, processes: int) -> None:
    """Make the measurements and append each to the CSV file as it is done; print those that failed."""
    for job, outcome in outcomes(jobs, processes):
        what = " ".join(map(str, job.key))
        if isinstance(outcome, Row):
            append_row(path, outcome)
            print(f"{what}: MSE {outcome.mse:.4g}, {outcome.cpu_seconds:.3g} CPU s", flush=True)
        else:
            print(f"{what}: failed, {outcome}", flush=True)


def outcomes(jobs: list[Job], processes: int) -> Iterator[tuple[Job, Row | str]]:
    if processes == 1:
        yield from map(attempt, jobs)
    elif jobs:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            yield from pool.imap_unordered(attempt, jobs)


def attempt(job: Job) -> tuple[Job, Row | str]:
    """The measurement, or why it failed: one configuration that diverges does not end the others."""
    try:
        return job, measure(job)
    except Exception as error:
        return job, f"{type(error).__name__}: {error}"


def commit() -> str:
    """The last commit that changed the library, with + after it if its files have been edited since."""
    library = Path(wiseale.__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", library, *words, "."], capture_output=True, text=True).stdout.strip()

    return git("log", "-1", "--format=%h", "--abbrev=10") + ("+" if git("status", "--porcelain") else "")


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench quality", description=__doc__.splitlines()[0])
    parser.add_argument("--sets", help=f"some of {','.join(SETS)}; all of them unless given")
    parser.add_argument("--dims", default="2,8", help="latent dimensions")
    parser.add_argument("--seeds", type=int, help="how many, 3 unless given")
    parser.add_argument(
        "--configurations", type=json.loads, default={}, help='to add, {"name": {AutoEncoder arguments}}'
    )
    parser.add_argument("--run", help="names of configurations to run; PCA, those known and pythae's unless given")
    parser.add_argument("--quick", action="store_true", help=f"1 seed and {','.join(SMALL)} unless given")
    parser.add_argument("--processes", type=int, default=1, help="measurements made side by side, each with 1 thread")
    parser.add_argument("--again", action="store_true", help="measure anew what the CSV file already holds")
    parser.add_argument("--csv", type=Path, default=CSV, help="where measurements are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing, only rebuild the table")
    given = parser.parse_args(words)
    if not given.table:
        run(given)
    rows = list(read(given.csv).values())
    keep(table(rows), quick=given.csv != CSV)
    if given.csv == CSV:
        for page in PAGES:
            page.write_text(fill_in(page.read_text(encoding="utf-8"), rows), encoding="utf-8")
