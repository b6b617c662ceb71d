"""Pack image files: decode each once, in one worker process per core, and only read the pack from then on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from wiseale.data.dataset import Array, Progress
from wiseale.data.images.decode import Form
from wiseale.data.images.decode_pool import BlockResult, Job, WorkerSetup, decode_blocks
from wiseale.data.images.images import Listing, printable
from wiseale.data.packs.pack import Pack, find_pack, open_pack
from wiseale.data.packs.writer import PackWriter
from wiseale.errors import DataError
from wiseale.platform.folders import cache_root
from wiseale.platform.machine import cores

_BLOCK_ROWS, _BLOCK_BYTES = 32, 1 << 22  # small blocks keep all cores busy to the end, and a kill loses little work
_MAX_NAMED = 5  # bad images named in an error; the others are counted


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


def cached_path(listing: Listing, form: Form, *uses: object) -> Path:
    """Cache path of the pack of a folder or zip: one per form and ``uses`` (further settings)."""
    key = hashlib.sha256(repr((str(listing.origin), form, uses)).encode()).hexdigest()
    stem = "".join(letter if letter.isalnum() else "_" for letter in listing.origin.stem) or "images"
    return cache_root() / "packs" / f"{stem[:40]}-{key[:16]}"


def _decode_missing(writer: PackWriter, listing: Listing, form: Form, progress: Progress, processes: int) -> None:
    missing, n = writer.missing(), len(listing.entries)
    blocks = list(_blocks(missing, max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // (form.channels * form.size**2)))))
    done = n - len(missing)
    progress(done, n)
    setup = WorkerSetup(str(listing.origin), listing.is_zip, form)
    jobs = (
        Job(number, str(writer.images), writer.offset(rows.start), [listing.entries[row].location for row in rows])
        for number, rows in enumerate(blocks)
    )
    with closing(decode_blocks(setup, jobs, min(processes, len(blocks)))) as results:
        for result in results:
            rows = blocks[result.block]
            _raise_failure(result, rows, writer, listing)
            writer.record(rows, result.crc, {rows[int(at)]: reason for at, reason in result.bad.items()})
            done += len(rows)
            progress(done, n)


def _blocks(rows: Sequence[int], most: int) -> Iterator[range]:
    """Consecutive rows together, at most so many.

    >>> list(_blocks([0, 1, 2, 6, 7], 2))
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
