"""The user's own images: a folder or a zip, packed on first use, labelled by sub-folder or a CSV file; or a pack."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wiseale.config import SettingError, Settings, from_values, setting
from wiseale.data.dataset import Array, Dataset, Progress
from wiseale.data.defaults import make_dataset
from wiseale.data.images.decode import DECODER_VERSION, Form
from wiseale.data.images.images import Listing, list_images, printable
from wiseale.data.packs.image_pack import cached_path, pack_images
from wiseale.data.packs.pack import Pack, open_pack
from wiseale.errors import ConfigError, DataError


@dataclass(frozen=True)
class ImageSettings(Settings):
    """How images are cropped and resized, and whether unusable ones are skipped."""

    crop: int | None = setting(None, "side of the centred square cut out, in pixels (default: the largest)", minimum=1)
    size: int = setting(64, "side the square is resized to, in pixels", minimum=1)
    channels: int = setting(3, "1 (grey) or 3 (colour)", minimum=1, below=4)
    skip_bad: bool = setting(False, "leave out images that cannot be used, instead of stopping")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.channels == 2:
            raise SettingError("channels", "must be 1 or 3, got 2")

    @property
    def form(self) -> Form:
        """Size, crop and channels of the packed images."""
        return Form(self.size, self.crop, self.channels)


@dataclass(frozen=True)
class ImageFolder(ImageSettings):
    """Settings of a folder or zip of images."""

    labels: str | None = setting(None, "CSV file with a header: image name, then one column for each factor")


def load_images(
    path: Path, settings: Mapping[str, str], progress: Progress | None = None, *, training: bool = True
) -> Dataset:
    """Load a folder or zip of images as a dataset; it is packed on first use and only opened from then on.

    ``training=False`` accepts a single image.
    """
    try:
        reader = from_values(ImageFolder, settings)
    except SettingError as error:
        raise ConfigError(f"{path}: {error}") from None
    listing = list_images(path)
    table = None if reader.labels is None else Path(reader.labels).expanduser()
    pack = pack_images(
        cached_path(listing, reader.form, reader.labels),
        listing,
        reader.form,
        lambda: _factors(listing, table),
        source=listing.fingerprint(DECODER_VERSION, reader.form, table and _file_stamp(table)),
        skip_bad=reader.skip_bad,
        progress=progress,
    )
    text = ",".join(f"{key}={value}" for key, value in settings.items())
    name = f"{path.resolve()}:{text}" if text else str(path.resolve())
    return _dataset(pack, path, name, least=2 if training else 1)


def load_packed(path: Path, settings: Mapping[str, str], *, training: bool = True) -> Dataset:
    """Load a packed set by its folder, made on another machine or found in the cache; nothing is decoded.

    Its images have their size and factors already, so there are no settings.
    """
    if settings:
        raise ConfigError(f"{path} is a packed set, which takes no settings: leave out {', '.join(settings)}")
    return _dataset(open_pack(path), path, str(path.resolve()), least=2 if training else 1)


def _dataset(pack: Pack, path: Path, name: str, least: int) -> Dataset:
    if len(pack.x) < least:
        raise DataError(f"{path} holds 1 usable image: at least 2 are needed to train")
    dataset = make_dataset(pack.x, name, factors=pack.factors, sha256=pack.metadata.images_sha256)
    return replace(dataset, preset=replace(dataset.preset, latent_dim=32))


def _file_stamp(table: Path) -> tuple[str, int, int]:
    try:
        status = table.stat()
    except OSError as error:
        raise DataError(f"cannot read the labels {table}: {error.strerror}") from None
    return str(table.resolve()), status.st_size, status.st_mtime_ns


def _factors(listing: Listing, table: Path | None) -> dict[str, Array]:
    if table is not None:
        return _read_labels(table, listing)
    labels = listing.labels()
    return {} if labels is None else {"label": np.array(labels)}


def _read_labels(table: Path, listing: Listing) -> dict[str, Array]:
    """Read factors from a CSV file, in the listing's order; the first column is an image's path or file name."""
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            header, *lines = [line for line in csv.reader(file) if line]
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "not a CSV file in UTF-8 with a header"
        raise DataError(f"cannot read the labels {table}: {reason}") from None
    for number, line in enumerate(lines, 2):
        if len(line) != len(header):
            raise DataError(f"{table}: row {number} has {len(line)} columns, the header has {len(header)}")
    by_name = {line[0]: line[1:] for line in lines}
    cells = [by_name.get(entry.name, by_name.get(entry.name.rpartition("/")[2])) for entry in listing.entries]
    if missing := [entry.name for entry, line in zip(listing.entries, cells, strict=True) if line is None]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(f"{table} has no row for {printable(missing[0])}{more}: add it, named in the first column")
    columns = zip(*(line for line in cells if line is not None), strict=True)
    return {name: _column(list(values)) for name, values in zip(header[1:], columns, strict=True)}


def _column(values: list[str]) -> Array:
    """Convert a column to int64 if possible, else float64, else leave it as text."""
    for kind in (np.int64, np.float64):
        try:
            return np.array(values).astype(kind)
        except ValueError:
            continue
    return np.array(values)
