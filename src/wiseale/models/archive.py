"""Codes of many files: one output for each, written once, here or on a cluster, and continued after a kill."""

from __future__ import annotations

import functools
import glob
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from wiseale.data.source import open_rows, split_path
from wiseale.errors import DataError, WiseAleError
from wiseale.models.files import embed
from wiseale.models.inference import Codec, open_codec
from wiseale.models.model_file import model_digest, model_directory
from wiseale.platform.atomic_files import clear_leftovers, write_text
from wiseale.platform.json_files import parse_table, read_text, record, to_json
from wiseale.processes.engines import Ending, Engine, Stop, run_all
from wiseale.spaces.columns import Unseen

_REQUEST = "archive.json"
_STOP_SECONDS = 0.5


@dataclass(frozen=True)
class Shard:
    """One file of an archive, with the settings to read it, and the file for its codes."""

    data: str
    out: Path

    @property
    def done(self) -> bool:
        """Whether its codes are written, after the last change to its rows."""
        return self.out.exists() and self.out.stat().st_mtime >= split_path(self.data)[0].stat().st_mtime


@dataclass(frozen=True)
class Request:
    """What an archive's codes are: of which model, and with what beside the codes."""

    model: str
    model_sha256: str
    sigma: bool = False
    error: bool = False
    unseen: Unseen | None = None


@dataclass(frozen=True)
class Archive:
    """What has come of an archive: rows written by this call, files finished before it, and files that failed."""

    rows: int
    before: int
    failures: Sequence[tuple[Shard, str]]


def is_pattern(spec: str) -> bool:
    """Whether a spec names several files: it has wildcards, and is not the name of a file that has them."""
    path = split_path(spec)[0]
    return glob.has_magic(str(path)) and not path.exists()


def list_shards(spec: str, out: Path, suffix: str | None = None) -> list[Shard]:
    """The files of a pattern such as ``shards/*.parquet``, sorted, and where in the folder ``out`` their codes go.

    Files keep their place below the pattern's first folder without wildcards. The codes of Parquet files are Parquet
    files, those of others ``.npy``, unless a suffix is given.
    """
    pattern, settings = split_path(spec)
    found = sorted(Path(name) for name in glob.glob(str(pattern), recursive=True) if os.path.isfile(name))
    if not found:
        raise DataError(f"no file matches {spec}: check the pattern, in quotes")
    fixed = pattern.parts[:-1]
    magic = next((i for i, part in enumerate(fixed) if glob.has_magic(part)), len(fixed))
    root = Path(*fixed[:magic])
    shards = []
    for path in found:
        ending = suffix or (".parquet" if path.suffix.lower() == ".parquet" else ".npy")
        place = out.absolute() / path.relative_to(root).with_suffix(ending)
        shards.append(Shard(f"{path}:{settings}" if settings else str(path), place))
    names: dict[Path, Shard] = {}
    for shard in shards:
        if (other := names.setdefault(shard.out, shard)) is not shard:
            raise DataError(f"{other.data} and {shard.data} would both be written to {shard.out}: name one kind")
        if shard.out == split_path(shard.data)[0]:
            raise DataError(f"{shard.out} is a file to be read: choose another folder for the output")
    return shards


def make_request(model: Path, *, sigma: bool, error: bool, unseen: Unseen | None) -> Request:
    """The request for codes of a model or run directory."""
    return Request(str(model.absolute()), model_digest(model_directory(model)), sigma, error, unseen)


def keep_request(request: Request, out: Path) -> None:
    """Write what the folder holds; one that holds codes of another model, or other columns, is refused."""
    path = out / _REQUEST
    if path.exists():
        try:
            before = record(Request, parse_table(read_text(path)))
        except (OSError, ValueError) as error:
            raise DataError(f"cannot read {path}: {error}; choose another folder") from None
        if before.model_sha256 != request.model_sha256:
            raise DataError(f"{out} holds codes of another model, {before.model}: choose another folder")
        if (before.sigma, before.error, before.unseen) != (request.sigma, request.error, request.unseen):
            raise DataError(f"{out} holds codes with other --sigma, --error or --unseen: choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_text(path, to_json(asdict(request)))


def embed_archive(
    shards: Sequence[Shard], request: Request, engine: Engine, progress: Callable[[int, int], None]
) -> Archive:
    """Write the codes of every shard that has none; one process at a time may do so for a shard.

    A shard that cannot be read does not stop the others. Interrupted, those under way are given up, and done by a later
    call. ``progress`` is told the number of shards done, and of all.
    """
    before = sum(shard.done for shard in shards)
    for folder in {shard.out.parent for shard in shards}:
        folder.mkdir(parents=True, exist_ok=True)
    ended = run_all(
        shards,
        functools.partial(embed_shard, request=request),
        engine,
        lambda ended, running: progress(len(ended), len(shards)),
    )
    failures = [(shard, ending.reason) for shard, ending in ended.items() if ending.state != "done"]
    return Archive(sum(ending.rows for ending in ended.values()), before, failures)


def embed_shard(shard: Shard, stop: Stop, request: Request) -> Ending:
    """Write the codes of one shard."""
    try:
        if not shard.out.parent.is_dir():
            raise DataError(f"no folder {shard.out.parent} here: -o must be on a file system that all workers share")
        if stop.is_set():
            return Ending("stopped", "stopped")
        clear_leftovers(shard.out.parent, f".{shard.out.name}.")  # of a writer that was killed
        return Ending("done", rows=_embed(shard, request, stop))
    except _StoppedError:
        return Ending("stopped", "stopped")
    except (WiseAleError, OSError) as error:
        return Ending("failed", str(error))


def _embed(shard: Shard, request: Request, stop: Stop) -> int:
    codec = _load(request.model, request.model_sha256)
    rows = open_rows(shard.data, space=codec.space, unseen=request.unseen)
    asked = [time.monotonic()]

    def end_if_stopped(done: int, total: int | None) -> None:
        if time.monotonic() - asked[0] > _STOP_SECONDS:
            asked[0] = time.monotonic()
            if stop.is_set():
                raise _StoppedError

    return embed(codec, rows, shard.out, sigma=request.sigma, error=request.error, progress=end_if_stopped)


@functools.lru_cache(maxsize=2)
def _load(model: str, sha256: str) -> Codec:
    """The model, loaded once by each process."""
    return open_codec(Path(model), sha256)


class _StoppedError(Exception):
    """Raised between two blocks of a shard that is to be given up."""
