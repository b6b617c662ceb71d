"""MNIST and Fashion-MNIST: 60,000 + 10,000 images of 28 by 28 pixels with labels, read from their IDX files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from wiseale.config import Settings, setting
from wiseale.data.dataset import Dataset, Preset, Progress, Rows
from wiseale.data.fingerprint import fingerprint
from wiseale.data.sets.idx import read_idx
from wiseale.data.sets.idx_sets import FASHION_MNIST, MNIST
from wiseale.data.sets.known_files import KnownFiles, find_file
from wiseale.errors import DataError
from wiseale.spaces import ImagesSpace, Reading

_READINGS: dict[str, Reading] = {"false": "unit", "threshold": "threshold", "dynamic": "dynamic"}
_PIXELS = (28, 28)


@dataclass(frozen=True)
class Mnist(Settings):
    """Handwritten digits, binarised at one half by default."""

    binarize: Literal["false", "threshold", "dynamic"] = setting(
        "threshold", "false, at 1/2 (threshold), or drawn anew each time"
    )
    n: int | None = setting(None, "only the first n training images", minimum=2)

    files: ClassVar[KnownFiles] = MNIST

    def status(self, data_root: Path) -> str:
        """Where the four files were found, or the command that fetches them."""
        try:
            found = [find_file(self.files, file, data_root) for file in self.files.files]
        except DataError:
            return f"not found: wiseale data fetch {self.files.name}"
        return f"in {found[0].parent}"

    def load(self, data_root: Path, progress: Progress | None = None) -> Dataset:
        """Read the four files, raw or gzipped, from the set's folder under the data root."""
        paths = [find_file(self.files, file, data_root) for file in self.files.files]
        reading = _READINGS[self.binarize]
        train = _rows(paths[0], paths[1], reading, self.n)
        test = _rows(paths[2], paths[3], reading, None)
        return Dataset(
            name=self.files.name,
            train=train,
            test=test,
            preset=Preset(
                network="paper_mnist",
                likelihood="gaussian" if self.binarize == "false" else "bernoulli",
                latent_dim=2,
                batch_size=min(64, len(train)),
                max_epochs=30,
                lr=1e-3,
            ),
            fingerprint=fingerprint(train.x, train.factors["label"], test.x, test.factors["label"]),
            space=ImagesSpace(train.x.shape[1:], train.reading),
        )


@dataclass(frozen=True)
class FashionMnist(Mnist):
    """Articles of clothing, grey by default.

    Many classes differ only in their shades of grey.
    """

    binarize: Literal["false", "threshold", "dynamic"] = setting(
        "false", "false, at 1/2 (threshold), or drawn anew each time"
    )

    files: ClassVar[KnownFiles] = FASHION_MNIST


def _rows(images: Path, labels: Path, reading: Reading, n: int | None) -> Rows:
    x, label = read_idx(images, 3), read_idx(labels, 1)
    if x.shape[1:] != _PIXELS:
        raise DataError(f"{images} holds images of {x.shape[1]} by {x.shape[2]} pixels: 28 by 28 are needed")
    if len(x) != len(label):
        raise DataError(f"{images} holds {len(x)} images but {labels} {len(label)} labels: fetch both again")
    if n is not None and n > len(x):
        raise DataError(f"n={n} is more than the {len(x)} training images there are")
    return Rows(x[:n, None], reading, {"label": label[:n].astype(np.int64)})
