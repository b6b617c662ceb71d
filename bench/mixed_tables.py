"""Real tables with numbers, categories and missing cells, as they are distributed: nothing is cleaned or left out."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from functools import partial

import pandas as pd

from bench.quality_data import packaged
from wiseale.errors import DataError
from wiseale.platform.folders import cache_root

VEGA = "vega-datasets-2.11.0"
"""The npm package; the package of PyPI has the same tables but holds addresses in place of movies and penguins."""


def vega(name: str) -> pd.DataFrame:
    """A table of vega-datasets, which ``npm pack`` downloads first if the cache folder does not hold it."""
    archive = cache_root() / "bench" / f"{VEGA}.tgz"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        if (npm := shutil.which("npm")) is None:
            raise DataError(f"npm is needed to download {VEGA}, which ships this table: install it")
        package, _, version = VEGA.rpartition("-")
        command = [npm, "pack", "--silent", "--pack-destination", str(archive.parent), f"{package}@{version}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if not archive.exists():
            reason = (done.stderr.strip().splitlines() or ["no such archive"])[-1]
            raise DataError(f"cannot download {VEGA}, which ships this table: {reason}")
    with tarfile.open(archive) as files:
        held = files.extractfile(f"package/data/{name}.json")
        assert held is not None
        return pd.DataFrame(json.load(held))


def _csv(package: str, path: str) -> pd.DataFrame:
    return pd.read_csv(packaged(package, path))


TABLES = {name: partial(vega, name) for name in ("penguins", "cars", "movies")}
"""The tables that results are reported on."""

OTHERS = {
    "breast cancer": partial(_csv, "lifelines", "lifelines/datasets/gbsg2.csv"),
    "mpg": partial(_csv, "plotnine", "plotnine/data/mpg.csv"),
    "msleep": partial(_csv, "plotnine", "plotnine/data/msleep.csv"),
    "diamonds": lambda: (
        _csv("plotnine", "plotnine/data/diamonds.csv").sample(2000, random_state=0).reset_index(drop=True)
    ),
}
"""Tables on which settings may be chosen: none of their results is reported."""
