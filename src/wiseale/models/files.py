"""Applies a trained model to files, block by block: rows to codes, codes to rows, samples, missing cells.

The codes of many files are one output for each, written once, here or on a cluster, and continued after a kill.
"""

from __future__ import annotations

import functools
import glob
import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wiseale.data.array_output import ArrayOutput, Field
from wiseale.data.dataset import Array, RowStream
from wiseale.data.source import file_reader, open_rows, said_unseen, split_path
from wiseale.data.tables.table import CellStream, TableFile
from wiseale.errors import DataError, WiseAleError
from wiseale.models.inference import Codec, open_codec
from wiseale.models.model_file import model_digest, model_directory
from wiseale.platform.atomic_files import clear_leftovers, write_text
from wiseale.platform.json_files import parse_table, read_text, record, to_json
from wiseale.processes.engines import Ending, Engine, Stop, run_all
from wiseale.spaces import Column, NumbersSpace, TableSpace
from wiseale.spaces.columns import Unseen

Progress = Callable[[int, int | None], None]

_CODES = np.dtype(np.float32)  # the network's own precision
_STOP_SECONDS = 0.5


def embed(
    codec: Codec, rows: RowStream, out: Path, *, sigma: bool = False, error: bool = False, progress: Progress
) -> int:
    """Write posterior means, and standard deviations and reconstruction errors if wanted; the number of rows."""
    d_z = codec.model.latent_dim
    if sigma and not codec.model_config.stochastic:
        raise DataError(f"{codec.model_config.objective} has a deterministic encoder without sigma: leave out --sigma")
    fields = [Field("codes", (d_z,), _CODES, code_names(d_z))]
    fields += [Field("sigma", (d_z,), _CODES, sigma_names(d_z))] if sigma else []
    fields += [Field("error", (), _CODES, ("error",))] if error else []
    rows.require(codec.model.x_shape)
    with ArrayOutput(out, fields) as output:
        for block in rows.blocks():
            for part in codec.blocks(len(block)):
                codes = codec.encode(block[part], error=error)
                arrays = (codes.mu, codes.sigma if sigma else None, codes.error)
                output.write(*(values for values in arrays if values is not None))
            progress(output.rows, rows.n)
    return output.rows


def open_cells(codec: Codec, spec: str, unseen: Unseen | None = None) -> CellStream:
    """A table in a CSV or Parquet file, for :func:`impute`."""
    path, settings = split_path(spec)
    if not path.is_file():
        raise DataError(f"no file {path}: check the path")
    reader = file_reader(path, settings)
    if not isinstance(reader, TableFile):
        raise DataError(f"{path.name} is not a .csv or .parquet table: only those have missing cells to fill")
    if not isinstance(codec.space, TableSpace):
        raise DataError(f"the model takes rows of shape {codec.space.x_shape}, not tables")
    return reader.cells(path, codec.space, unseen or said_unseen(settings))


def open_codes(codec: Codec, spec: str) -> RowStream:
    """Codes in a file: those :func:`embed` wrote, or numbers alone."""
    d_z = codec.model.latent_dim
    try:
        rows = open_rows(spec, space=NumbersSpace((d_z,), columns=tuple(map(Column, code_names(d_z)))), array="codes")
    except DataError as named:
        try:  # a table of numbers under other names, or none
            rows = open_rows(spec)
        except DataError:
            raise named from None
        if rows.x_shape != (d_z,) or any(re.fullmatch(r"z\d+", name) for name in rows.columns):
            raise named from None
    if rows.x_shape != (d_z,):
        raise DataError(f"{rows.name} has rows of shape {rows.x_shape}, but codes have {d_z} columns")
    return rows


def decode(codec: Codec, rows: RowStream, out: Path, *, progress: Progress) -> int:
    """Write E[x|z] of codes in the user's units; the number of rows."""
    blocks = (codec.decode(block[part]) for block in rows.blocks() for part in codec.blocks(len(block)))
    return _write_x(codec, blocks, out, rows.n, progress)


def sample(codec: Codec, n: int, out: Path, *, seed: int = 0, noise: bool = False, progress: Progress) -> int:
    """Write n new observations in the user's units."""
    return _write_x(codec, codec.sample(n, seed, noise=noise), out, n, progress)


def _write_x(codec: Codec, blocks: Iterable[Array], out: Path, n: int | None, progress: Progress) -> int:
    space = codec.space
    cells = space.columns if space.missing or (isinstance(space, TableSpace) and space.frame) else ()
    names = space.names or tuple(f"x{k}" for k in range(space.x_shape[0]))
    fields = [Field(column.name, (), np.dtype(object), (column.name,)) for column in cells]
    with ArrayOutput(out, fields or [Field("x", space.x_shape, codec.dtype, names)]) as output:
        for block in blocks:
            output.write(*(_cells(cells, block) if cells else [block]))
            progress(output.rows, n)
    return output.rows


def impute(codec: Codec, cells: CellStream, out: Path, *, progress: Progress) -> int:
    """Write a table with its missing cells filled, everything else as it was; the number of cells filled.

    A text table is written as it is: separator, decimal mark and header.
    """
    selection, filled = cells.chosen, 0
    names = [selection.names[i] or str(i + 1) for i in range(len(selection.names))]
    places = {i: k for k, i in enumerate(selection.features)} | {i: k for k, i in enumerate(selection.labels)}
    fields = [Field(name, (), np.dtype(object), (selection.names[i],)) for i, name in enumerate(names)]
    with ArrayOutput(out, fields, cells.read.form) as output:
        for values, raw in cells.blocks():
            parts = [codec.impute(values[part]) for part in codec.blocks(len(raw))]
            answers = _cells(cells.space.written, np.concatenate(parts))
            columns = []
            for i in range(len(names)):
                if i in selection.labels:
                    columns.append(_objects(raw.labels[places[i]]))
                    continue
                written, gone = raw.columns[places[i]], np.isnan(values[:, places[i]])
                column = _objects(written.shown_values(cells.space.written[places[i]].has_levels))
                column[gone] = answers[places[i]][gone]
                filled += int(gone.sum())
                columns.append(column)
            output.write(*columns)
            progress(output.rows, None)
    return filled


def _cells(columns: Sequence[Column], x: Array) -> list[Array]:
    """Numbers (n, C) as the columns' own values; whole numbers as integers."""
    cells: list[Array] = []
    for i, column in enumerate(columns):
        values = column.decode(np.asarray(x[:, i], np.float64))
        whole = not values.dtype.hasobject and bool(np.all(values == np.round(values.astype(np.float64))))
        rounded = whole and (column.whole or column.has_levels or column.kind != "number")
        cells.append(_objects([int(value) for value in values] if rounded else values.tolist()))
    return cells


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    result = np.empty(len(values), object)
    result[:] = values
    return result


def code_names(latent_dim: int) -> tuple[str, ...]:
    """The names of the code columns in a table: z1, z2, ..., as in figures and the explorer."""
    return tuple(f"z{k}" for k in range(1, latent_dim + 1))


def sigma_names(latent_dim: int) -> tuple[str, ...]:
    """The names of the columns of posterior standard deviations: sigma1, sigma2, ...."""
    return tuple(f"sigma{k}" for k in range(1, latent_dim + 1))


def refuse_overwriting(out: Path, data: str) -> None:
    """An error where the output would replace the input."""
    source = split_path(data)[0]
    if out.exists() and source.exists() and out.samefile(source):
        raise DataError(f"{out} is the file to be read: choose another name for the output")


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
    paths = sorted(Path(name) for name in glob.glob(str(pattern), recursive=True) if os.path.isfile(name))
    if not paths:
        raise DataError(f"no file matches {spec}: check the pattern, in quotes")
    root = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), pattern.parts[:-1]))
    shards: dict[Path, Shard] = {}
    for path in paths:
        ending = suffix or (".parquet" if path.suffix.lower() == ".parquet" else ".npy")
        place = out.absolute() / path.relative_to(root).with_suffix(ending)
        shard = Shard(f"{path}:{settings}" if settings else str(path), place)
        if (other := shards.setdefault(place, shard)) is not shard:
            raise DataError(f"{other.data} and {shard.data} would both be written to {place}: name one kind")
        if place == path:
            raise DataError(f"{place} is a file to be read: choose another folder for the output")
    return list(shards.values())


def make_request(model: Path, *, sigma: bool, error: bool, unseen: Unseen | None) -> Request:
    """The request for codes of a model or run directory."""
    return Request(str(model.absolute()), model_digest(model_directory(model)), sigma, error, unseen)


def keep_request(request: Request, out: Path) -> None:
    """Write what the folder holds; one that holds codes of another model, or other columns, is refused."""
    path = out / "archive.json"
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
) -> tuple[int, list[tuple[Shard, str]]]:
    """Write the codes of every shard that has none: the number of rows, and the shards that failed with their reasons.

    One process at a time may do so for a shard. A shard that cannot be read does not stop the others. Interrupted,
    those under way are given up, and done by a later call. ``progress`` gets the number of shards done, and of all.
    """
    for folder in {shard.out.parent for shard in shards}:
        folder.mkdir(parents=True, exist_ok=True)
    work = functools.partial(_embed_shard, request=request)
    ended = run_all(shards, work, engine, lambda ended, running: progress(len(ended), len(shards)))
    failures = [(shard, ending.reason) for shard, ending in ended.items() if ending.state != "done"]
    return sum(ending.rows for ending in ended.values()), failures


def _embed_shard(shard: Shard, stop: Stop, request: Request) -> Ending:
    """Write the codes of one shard."""
    checked = time.monotonic()

    def end_if_stopped(done: int, total: int | None) -> None:
        nonlocal checked
        if time.monotonic() - checked > _STOP_SECONDS:
            checked = time.monotonic()
            if stop.is_set():
                raise _StoppedError

    try:
        if not shard.out.parent.is_dir():
            raise DataError(f"no folder {shard.out.parent} here: -o must be on a file system that all workers share")
        if stop.is_set():
            return Ending("stopped", "stopped")
        clear_leftovers(shard.out.parent, f".{shard.out.name}.")  # of a writer that was killed
        codec = _load(request.model, request.model_sha256)
        rows = open_rows(shard.data, space=codec.space, unseen=request.unseen)
        n = embed(codec, rows, shard.out, sigma=request.sigma, error=request.error, progress=end_if_stopped)
        return Ending("done", rows=n)
    except _StoppedError:
        return Ending("stopped", "stopped")
    except (WiseAleError, OSError) as error:
        return Ending("failed", str(error))


@functools.lru_cache(maxsize=2)
def _load(model: str, sha256: str) -> Codec:
    """The model, loaded once by each process."""
    return open_codec(Path(model), sha256)


class _StoppedError(Exception):
    """Raised between two blocks of a shard that is to be given up."""
