"""Small IDX files, written from the format's definition."""

import gzip
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wiseale.data.sets.fetch import KnownFile, KnownFiles

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx_bytes(x: npt.NDArray[np.uint8], kind: int = 8) -> bytes:
    return bytes([0, 0, kind, x.ndim]) + b"".join(struct.pack(">I", size) for size in x.shape) + x.tobytes()


def contents(n: int = 30, n_test: int = 10, seed: int = 0) -> dict[str, bytes]:
    """The four files of a small set, by name."""
    rng = np.random.default_rng(seed)
    made = {}
    for part, rows in (("train", n), ("t10k", n_test)):
        made[f"{part}-images-idx3-ubyte"] = idx_bytes(rng.integers(0, 256, (rows, 28, 28), np.uint8))
        made[f"{part}-labels-idx1-ubyte"] = idx_bytes(rng.integers(0, 10, rows, np.uint8))
    return made


def write_set(folder: Path, files: dict[str, bytes], *, zipped: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / (f"{name}.gz" if zipped else name)
        path.write_bytes(gzip.compress(content) if zipped else content)


def known_set(files: dict[str, bytes], sums: dict[str, str], mirrors: tuple[str, ...] = ()) -> KnownFiles:
    entries = tuple(KnownFile(name, len(files[name]), sums[name]) for name in NAMES)
    return KnownFiles("mnist", "MNIST", ("mnist",), mirrors, entries)
