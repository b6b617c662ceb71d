"""The user's own images: a folder or a zip, packed on first use, labelled by sub-folder or a CSV file; or a pack.

Each image is decoded once, in one worker process per core; from then on only the pack is read.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wiseale.config import SettingError, Settings, from_values, setting
from wiseale.data.dataset import Array, Dataset, Progress
from wiseale.data.defaults import make_dataset
from wiseale.data.images.decode import DECODER_VERSION, Block, BlockResult, Form, decode_blocks
from wiseale.data.images.listing import Listing, list_images, printable
from wiseale.data.images.pack import Pack, find_pack, open_pack
from wiseale.data.images.pack_writer import PackWriter
from wiseale.errors import ConfigError, DataError
from wiseale.platform.folders import cache_root
from wiseale.platform.machine import cores

_BLOCK_ROWS, _BLOCK_BYTES = 32, 1 << 22  # small blocks keep all cores busy to the end, and a kill loses little work
_MAX_NAMED = 5  # bad images named in an error; the others are counted


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

    def pack(
        self,
        listing: Listing,
        factors: Callable[[], Mapping[str, Array]],
        progress: Progress | None,
        *,
        use: str | None,
        stamps: Sequence[object],
    ) -> Pack:
        """The pack of these images in the cache, one for each form and ``use``; made anew when ``stamps`` change."""
        form = Form(self.size, self.crop, self.channels)
        key = hashlib.sha256(repr((str(listing.origin), form, (use,))).encode()).hexdigest()
        stem = "".join(letter if letter.isalnum() else "_" for letter in listing.origin.stem) or "images"
        path = cache_root() / "packs" / f"{stem[:40]}-{key[:16]}"
        source = listing.fingerprint(DECODER_VERSION, form, *stamps)
        return pack_images(path, listing, form, factors, source=source, skip_bad=self.skip_bad, progress=progress)


@dataclass(frozen=True)
class ImageFolder(ImageSettings):
    """Settings of a folder or zip of images."""

    labels: str | None = setting(None, "CSV file with a header: image name, then one column for each factor")


def load_images(
    path: Path, settings: Mapping[str, str], progress: Progress | None = None, *, training: bool = True
) -> Dataset:
    """Load a folder or zip of images as a dataset; ``training=False`` accepts a single image."""
    try:
        reader = from_values(ImageFolder, settings)
    except SettingError as error:
        raise ConfigError(f"{path}: {error}") from None
    listing = list_images(path)
    table = None if reader.labels is None else Path(reader.labels).expanduser()
    stamps = [table and _file_stamp(table)]
    pack = reader.pack(listing, lambda: _factors(listing, table), progress, use=reader.labels, stamps=stamps)
    text = ",".join(f"{key}={value}" for key, value in settings.items())
    name = f"{path.resolve()}:{text}" if text else str(path.resolve())
    return _dataset(pack, path, name, least=2 if training else 1)


def load_packed(path: Path, settings: Mapping[str, str], *, training: bool = True) -> Dataset:
    """Load a packed set by its folder; its images have their size and factors already, so there are no settings."""
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
    """Factors from the CSV file, in the listing's order: its first column is an image's path or file name."""
    if table is None:
        labels = listing.labels()
        return {} if labels is None else {"label": np.array(labels)}
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


def pack_images(
    path: Path,
    listing: Listing,
    form: Form,
    factors: Callable[[], Mapping[str, Array]],
    *,
    source: str,
    skip_bad: bool = False,
    progress: Progress | None = None,
    processes: int | None = None,
) -> Pack:
    """Pack the images of a listing, in its order, and open the pack; an intact pack of the same source is reused.

    All images are tried before the unusable ones are named in one error. With ``skip_bad`` they are left out and
    recorded in the manifest's details as ``skipped``: [[name, reason], ...].

    Args:
        path: folder of the pack.
        listing: the images.
        form: size, crop and channels of every packed image.
        factors: returns labels or generative factors by name, each (n,); called only if images have to be packed.
        source: fingerprint of everything that decides the content, except ``skip_bad``.
        skip_bad: leave out unusable images instead of raising.
        progress: called with (images done, images in total).
        processes: number of decoding processes; one per core by default.
    """
    pack = find_pack(path, source)
    if pack is None:
        with PackWriter(path, len(listing.entries), (form.channels, form.size, form.size), source) as writer:
            if writer.finished:  # another process finished the pack while this one waited for the lock
                pack = open_pack(path)
            else:
                labels = factors()
                _decode_missing(writer, listing, form, progress or (lambda done, total: None), processes or cores())
                pack = _finish(writer, listing, form, labels, skip_bad)
    skipped = pack.metadata.details["skipped"]
    if skipped and not skip_bad:
        raise _unusable(listing, skipped)
    return pack


def _decode_missing(writer: PackWriter, listing: Listing, form: Form, progress: Progress, processes: int) -> None:
    missing, n = writer.missing(), len(listing.entries)
    parts = list(_consecutive(missing, max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // (form.channels * form.size**2)))))
    done = n - len(missing)
    progress(done, n)
    if not parts:
        return
    entries = listing.entries
    blocks = [
        Block(str(writer.images), writer.offset(rows.start), [entries[row].place or entries[row].name for row in rows])
        for rows in parts
    ]
    results = decode_blocks(str(listing.origin), listing.is_zip, form, blocks, min(processes, len(blocks)))
    with closing(results):
        for rows, result in zip(parts, results, strict=True):
            _raise_failure(result, rows, writer, listing)
            writer.record(rows, result.crc, {rows[int(at)]: reason for at, reason in result.bad.items()})
            done += len(rows)
            progress(done, n)


def _consecutive(rows: Sequence[int], most: int) -> Iterator[range]:
    """Consecutive rows together, at most so many.

    >>> list(_consecutive([0, 1, 2, 6, 7], 2))
    [range(0, 2), range(2, 3), range(6, 8)]
    """
    first = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end] > rows[end - 1] + 1 or end - first == most:
            yield range(rows[first], rows[end - 1] + 1)
            first = end


def _raise_failure(result: BlockResult, rows: range, writer: PackWriter, listing: Listing) -> None:
    if result.fault:
        raise RuntimeError(f"decoding failed:\n{result.fault}")
    if result.errno is not None:
        with writer.writing():
            raise OSError(result.errno, result.problem, str(writer.path))
    if result.exit_code is not None:
        first, last = (printable(listing.entries[row].name) for row in (rows[0], rows[-1]))
        how = f"signal {-result.exit_code}" if result.exit_code < 0 else f"exit code {result.exit_code}"
        raise DataError(
            f"the process decoding {first} to {last} in {listing.origin} ended with {how}: look for a damaged image "
            "among them, or for too little memory; a second run continues from there"
        )


def _finish(writer: PackWriter, listing: Listing, form: Form, factors: Mapping[str, Array], skip_bad: bool) -> Pack:
    bad = sorted(writer.bad)
    skipped = [[listing.entries[row].name, writer.bad[row]] for row in bad]
    if bad and (not skip_bad or len(bad) == writer.n):
        raise _unusable(listing, skipped)  # decoded rows stay on disk: a second run with skip_bad reuses them
    kept = np.delete(np.arange(writer.n), bad)
    details = {"origin": str(listing.origin), "form": form._asdict(), "skipped": skipped}
    return writer.finish({name: values[kept] for name, values in factors.items()}, details, drop=bad)


def _unusable(listing: Listing, skipped: Sequence[Sequence[str]]) -> DataError:
    named = ", ".join(f"{printable(name)} ({printable(reason)})" for name, reason in skipped[:_MAX_NAMED])
    more = f" and {len(skipped) - _MAX_NAMED} more" if len(skipped) > _MAX_NAMED else ""
    n = len(listing.entries)
    remedy = "repair or remove them, or leave them out with skip_bad=true"
    if len(skipped) == n:
        remedy = "choose another size or crop, or other images"
    return DataError(f"{len(skipped)} of {n} images in {listing.origin} cannot be used: {named}{more}: {remedy}")
