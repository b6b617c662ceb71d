"""CelebA (Liu et al. 2015) from the user's own copy: centred 178 × 178, resized to 64 × 64, packed on first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wiseale.config import setting, spec_of
from wiseale.data.dataset import Array, Dataset, Preset, Progress, Rows
from wiseale.data.images.folder import ImageSettings
from wiseale.data.images.listing import Entry, Listing, list_images, printable
from wiseale.errors import DataError
from wiseale.spaces import ImagesSpace

_TRAIN, _TEST = 0, 2
_IMAGES = ("img_align_celeba", "img_align_celeba.zip")
_PARTITION = ("list_eval_partition.txt", "list_eval_partition.csv")
_ATTRIBUTES = ("list_attr_celeba.txt", "list_attr_celeba.csv")
_NOT_FOUND = (
    "no CelebA in {root}: its licence (non-commercial research only) forbids handing on copies, so get your own from "
    "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html and put img_align_celeba.zip, list_eval_partition.txt and "
    "list_attr_celeba.txt there"
)


@dataclass(frozen=True)
class Celeba(ImageSettings):
    """Faces of celebrities, from your own copy; attributes are the factors.

    Train and test are the official ones where the partition file is present (its validation part is left out), else
    the last tenth by name is the test split.
    """

    crop: int | None = setting(178, "side of the centred square cut out, in pixels (none: the largest)", minimum=1)
    folder: str = setting("celeba", "the copy: a folder under the data root, or a path")

    def status(self, data_root: Path) -> str:
        """Where the copy was found, or where to put it."""
        root = data_root / Path(self.folder).expanduser()
        images = _find(root, _IMAGES)
        return f"in {images}" if images else f"not found: put your own copy in {root}"

    def load(self, data_root: Path, progress: Progress | None = None) -> Dataset:
        """Find the copy under the data root, pack it on first use, and open the pack."""
        root = data_root / Path(self.folder).expanduser()
        images = _find(root, _IMAGES)
        if images is None and (self.folder == "celeba" or not root.exists()):
            raise DataError(_NOT_FOUND.format(root=root))
        tables = [_find(root, _PARTITION), _find(root, _ATTRIBUTES)]
        listing = list_images(images or root)
        partition = _partition(tables[0], listing.entries)
        order = np.argsort(partition, kind="stable")  # each split becomes one slice of the pack
        listing = Listing(listing.origin, tuple(listing.entries[row] for row in order), listing.is_zip)
        stamps = [table and (table.name, table.stat().st_size, table.stat().st_mtime_ns) for table in tables]
        pack = self.pack(
            listing,
            lambda: {"partition": partition[order]} | _attributes(tables[1], listing.entries),
            progress,
            use="celeba",
            stamps=stamps,
        )
        factors = dict(pack.factors)
        x, parts = pack.x, factors.pop("partition")
        first, last = (np.searchsorted(parts, [_TRAIN + 1, _TEST])) if tables[0] else (len(x) - len(x) // 10,) * 2
        train, test = (
            Rows(x[rows], "unit", {name: values[rows] for name, values in factors.items()})
            for rows in (slice(0, int(first)), slice(int(last), len(x)))
        )
        if len(train) < 2 or len(test) < 1:
            raise DataError(f"{listing.origin} leaves {len(train)} images to train on and {len(test)} to test on")
        return Dataset(
            name="celeba" if self == Celeba() else spec_of("dataset", self),
            train=train,
            test=test,
            preset=Preset(
                network="paper_celeba" if x.shape[1:] == (3, 64, 64) else "conv2d:start=none",
                likelihood="gaussian",
                latent_dim=64,
                batch_size=min(256, len(train)),
                max_epochs=50,
                lr=3e-4,
                lr_schedule="step:epochs=30,factor=0.5",
            ),
            fingerprint=pack.metadata.images_sha256,
            space=ImagesSpace(x.shape[1:], "unit"),
        )


def _find(root: Path, names: Iterable[str]) -> Path | None:
    """The first of the names found in the folder or in one of its direct sub-folders."""
    paths = (path for name in names for path in [root / name, *sorted(root.glob(f"*/{name}"))])
    return next((path for path in paths if path.exists()), None)


def _partition(table: Path | None, entries: Sequence[Entry]) -> npt.NDArray[np.int8]:
    """The official split of each image, (n,): 0 train, 1 validation, 2 test; all 0 without a partition file."""
    if table is None:
        return np.zeros(len(entries), np.int8)
    lines = _read_lines(table)
    header = len(lines[0][1]) != 2 or lines[0][1][1] not in ("0", "1", "2") if lines else False
    return _cells(table, lines[header:], entries, 1, {"0": 0, "1": 1, "2": 2}, "0, 1 or 2")[:, 0]


def _attributes(table: Path | None, entries: Sequence[Entry]) -> dict[str, Array]:
    """The attributes by name, each (n,), 0 or 1."""
    if table is None:
        return {}
    lines = _read_lines(table)
    if lines and len(lines[0][1]) == 1:
        lines = lines[1:]  # the .txt file begins with a line count
    names = lines[0][1][lines[0][1][0] == "image_id" :] if lines else []
    value_of, expected = {"-1": 0, "0": 0, "1": 1}, f"{len(names)} marks, each 1 or -1"
    marks = _cells(table, lines[1:], entries, len(names), value_of, expected)
    return {name: marks[:, column] for column, name in enumerate(names)}


def _read_lines(table: Path) -> list[tuple[int, list[str]]]:
    """Line number and words of each line that is not empty; separated by blanks, or by commas as on Kaggle."""
    try:
        text = table.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {table}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    numbered = enumerate(text.replace(",", " ").split("\n"), 1)
    return [(number, words) for number, line in numbered if (words := line.split())]


def _cells(
    table: Path,
    lines: Iterable[tuple[int, list[str]]],
    entries: Sequence[Entry],
    width: int,
    value_of: Mapping[str, int],
    expected: str,
) -> npt.NDArray[np.int8]:
    """The values in each image's line, (n, width), in the order of the entries."""
    cells_of = {}
    for number, (name, *words) in lines:
        if len(words) != width or not value_of.keys() >= set(words):
            raise DataError(f"{table}, line {number}: expected an image name and {expected}")
        cells_of[name] = bytes(value_of[word] for word in words)
    names = [entry.name.rpartition("/")[2] for entry in entries]
    if missing := [name for name in names if name not in cells_of]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(f"{table} has no line for {printable(missing[0])}{more}: get the complete file, or remove it")
    return np.frombuffer(b"".join(cells_of[name] for name in names), np.int8).reshape(len(entries), width)
