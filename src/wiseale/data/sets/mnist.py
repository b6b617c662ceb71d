"""MNIST and Fashion-MNIST: 60,000 + 10,000 images of 28 by 28 pixels with labels, read from their IDX files."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from wiseale.config import Settings, setting
from wiseale.data.dataset import Dataset, Preset, Progress, Rows, fingerprint
from wiseale.data.sets.fetch import KnownFile, KnownFiles, find_file, open_content
from wiseale.errors import DataError
from wiseale.spaces import ImagesSpace, Reading

_READINGS: dict[str, Reading] = {"false": "unit", "threshold": "threshold", "dynamic": "dynamic"}
_PIXELS = (28, 28)
_UNSIGNED_BYTE = 0x08
_MAX_BYTES = 1 << 31  # far above any IDX dataset, and small enough to allocate
_CHUNK_BYTES = 1 << 20
_MAX_GZIP_RATIO = 1032  # the most that deflate compresses: a header is checked against it before memory is allocated

_FILES = (
    ("train-images-idx3-ubyte", 47_040_016),
    ("train-labels-idx1-ubyte", 60_008),
    ("t10k-images-idx3-ubyte", 7_840_016),
    ("t10k-labels-idx1-ubyte", 10_008),
)


def _idx_files(*sums: str) -> tuple[KnownFile, ...]:
    return tuple(KnownFile(name, size, sha256) for (name, size), sha256 in zip(_FILES, sums, strict=True))


MNIST = KnownFiles(  # CC BY-SA 3.0, Yann LeCun, Corinna Cortes
    name="mnist",
    title="MNIST",
    folders=("mnist",),
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ),
    files=_idx_files(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
)

FASHION_MNIST = KnownFiles(  # MIT, Zalando SE
    name="fashion_mnist",
    title="Fashion-MNIST",
    folders=("fashion_mnist", "fashion-mnist"),
    mirrors=(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://storage.googleapis.com/cvdf-datasets/fashion-mnist/",
    ),
    files=_idx_files(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)


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
            paths = [find_file(self.files, file, data_root) for file in self.files.files]
        except DataError:
            return f"not found: wiseale data fetch {self.files.name}"
        return f"in {paths[0].parent}"

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


def read_idx(path: Path, axes: int) -> npt.NDArray[np.uint8]:
    """Read the array of unsigned bytes in an IDX file, which must have the given number of axes."""
    try:
        with open_content(path) as file:
            shape = _read_header(file, path, axes)
            content, read = np.empty(math.prod(shape), np.uint8), 0
            while count := file.readinto(content[read : read + _CHUNK_BYTES].data):  # type: ignore[attr-defined]
                read += count
            goes_on = file.read(1) != b""
    except (zlib.error, gzip.BadGzipFile, EOFError):
        raise DataError(f"{path} is damaged or cut short: fetch it again") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    if read < len(content):
        raise DataError(f"{path} is damaged or cut short: fetch it again")
    if goes_on:
        raise DataError(f"{path} goes on after its {len(content)} bytes of content: fetch it again")
    return content.reshape(shape)


def _read_header(file: IO[bytes], path: Path, axes: int) -> tuple[int, ...]:
    start = file.read(4)
    if len(start) < 4 or start[:2] != b"\0\0":
        raise DataError(f"{path} is not an IDX file: it begins with {start.hex(' ') or 'nothing'}")
    if start[2] != _UNSIGNED_BYTE:
        raise DataError(f"{path} holds IDX type 0x{start[2]:02x}: unsigned bytes (0x08) are needed")
    if start[3] != axes:
        raise DataError(f"{path} has {start[3]} axes where {axes} are needed: images and labels may be exchanged")
    sizes = file.read(4 * axes)
    if len(sizes) < 4 * axes:
        raise DataError(f"{path} is damaged or cut short: fetch it again")
    shape = struct.unpack(f">{axes}I", sizes)
    promised, on_disk = math.prod(shape), os.path.getsize(path)
    most = on_disk * _MAX_GZIP_RATIO if isinstance(file, gzip.GzipFile) else on_disk
    if promised == 0 or promised > min(most, _MAX_BYTES):
        raise DataError(
            f"{path} is damaged: its header says {' x '.join(map(str, shape))} bytes, the file has {on_disk}"
        )
    return shape
