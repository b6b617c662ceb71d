"""Image files into a pack: decoded once, by as many processes as there are cores, and from then on only read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from wiseale.data.dataset import Array, Progress
from wiseale.data.images.decode import Form
from wiseale.data.images.decode_pool import Answer, Job, Setup, decode_blocks
from wiseale.data.images.images import Listing, one_line
from wiseale.data.packs.pack import Pack, PackWriter, find_pack, open_pack
from wiseale.errors import DataError
from wiseale.platform.folders import cache_root
from wiseale.platform.machine import cores

_NAMED = 5  # bad images named in an error; the others are counted


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
    """Pack the images of a listing, in its order, and open the pack; where it is there already it is only opened.

    Images that cannot be used are all found, then named in one error; with ``skip_bad`` they are left out and named in
    the manifest's details as ``skipped``: [[name, reason], ...].

    Args:
        path: the pack to make.
        listing: the images.
        form: what each becomes.
        factors: gives what is known of each image, by name, each (n,); asked only when there is something to pack.
        source: fingerprint of whatever decides the content, ``skip_bad`` apart.
        skip_bad: leave out what cannot be used.
        progress: told the images done and in all.
        processes: how many decode; by default one for each core.
    """
    pack = find_pack(path, source)
    if pack is None:
        with PackWriter(path, len(listing.entries), (form.channels, form.size, form.size), source) as writer:
            if writer.finished:  # another process made it while this one waited
                pack = open_pack(path)
            else:
                known = factors()
                _decode_missing(writer, listing, form, progress or (lambda done, total: None), processes or cores())
                pack = _finish(writer, listing, form, known, skip_bad)
    skipped = pack.metadata.details["skipped"]
    if skipped and not skip_bad:
        raise _unusable(listing, skipped)
    return pack


def cached_path(listing: Listing, form: Form, *uses: object) -> Path:
    """Where the pack of a folder or zip is kept: one for each form and use, replaced when the files have changed."""
    key = hashlib.sha256(repr((str(listing.origin), form, uses)).encode()).hexdigest()
    stem = "".join(letter if letter.isalnum() else "_" for letter in listing.origin.stem) or "images"
    return cache_root() / "packs" / f"{stem[:40]}-{key[:16]}"


def _decode_missing(writer: PackWriter, listing: Listing, form: Form, progress: Progress, processes: int) -> None:
    blocks, n = writer.missing(), len(listing.entries)
    done = n - sum(len(writer.rows(block)) for block in blocks)
    progress(done, n)
    setup = Setup(str(listing.origin), str(writer.images), listing.is_zip, form)
    jobs = _jobs(writer, listing, blocks)
    with closing(decode_blocks(setup, jobs, min(processes, len(blocks)))) as answers:
        for answer in answers:
            rows = writer.rows(answer.block)
            _check(answer, writer, listing)
            writer.record(answer.block, answer.crc, {rows[int(at)]: reason for at, reason in answer.bad.items()})
            done += len(rows)
            progress(done, n)


def _jobs(writer: PackWriter, listing: Listing, blocks: Sequence[int]) -> Iterator[Job]:
    for block in blocks:
        rows = writer.rows(block)
        entries = listing.entries[rows.start : rows.stop]
        yield Job(block, writer.offset(rows.start), [entry.place or entry.name for entry in entries])


def _check(answer: Answer, writer: PackWriter, listing: Listing) -> None:
    if answer.fault:
        raise RuntimeError(f"decoding failed:\n{answer.fault}")
    if answer.errno is not None:
        with writer.writing():
            raise OSError(answer.errno, answer.problem, str(writer.path))
    if answer.exit_code is not None:
        rows = writer.rows(answer.block)
        first, last = (one_line(listing.entries[row].name) for row in (rows[0], rows[-1]))
        how = f"signal {-answer.exit_code}" if answer.exit_code < 0 else f"exit code {answer.exit_code}"
        raise DataError(
            f"the process decoding {first} to {last} in {listing.origin} ended with {how}: look for a damaged image "
            "among them, or for too little memory; a second run continues from there"
        )


def _finish(writer: PackWriter, listing: Listing, form: Form, factors: Mapping[str, Array], skip_bad: bool) -> Pack:
    bad = sorted(writer.bad)
    skipped = [[listing.entries[row].name, writer.bad[row]] for row in bad]
    if bad and (not skip_bad or len(bad) == writer.n):
        raise _unusable(listing, skipped)  # what was decoded stays: with skip_bad it only has to be finished
    kept = np.delete(np.arange(writer.n), bad)
    details = {"origin": str(listing.origin), "form": form._asdict(), "skipped": skipped}
    return writer.finish({name: values[kept] for name, values in factors.items()}, details, drop=bad)


def _unusable(listing: Listing, skipped: Sequence[Sequence[str]]) -> DataError:
    named = ", ".join(f"{one_line(name)} ({one_line(reason)})" for name, reason in skipped[:_NAMED])
    more = f" and {len(skipped) - _NAMED} more" if len(skipped) > _NAMED else ""
    n = len(listing.entries)
    cure = "repair or remove them, or leave them out with skip_bad=true"
    if len(skipped) == n:
        cure = "choose another size or crop, or other images"
    return DataError(f"{len(skipped)} of {n} images in {listing.origin} cannot be used: {named}{more}: {cure}")
