"""Applies a trained model to files, block by block: rows to codes, codes to rows, and samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wiseale.data.array_output import ArrayOutput, Field
from wiseale.data.dataset import Array, RowStream
from wiseale.data.source import file_reader, open_rows, said_unseen, split_path
from wiseale.data.tables.table import CellStream, TableFile
from wiseale.errors import DataError
from wiseale.models import imputation
from wiseale.models.inference import Codec
from wiseale.spaces import Column, NumbersSpace, TableSpace
from wiseale.spaces.columns import Unseen

Progress = Callable[[int, int | None], None]

_CODES = np.dtype(np.float32)  # the network's own precision


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

    def decoded() -> Iterable[Array]:
        for block in rows.blocks():
            for part in codec.blocks(len(block)):
                yield codec.decode(block[part])

    return _write_x(codec, decoded(), out, rows.n, progress)


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
            parts = [imputation.impute(codec, values[part]) for part in codec.blocks(len(raw))]
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
    """The names of the code columns in a table: z1, z2, ..., one for each dimension, as in figures and the explorer."""
    return tuple(f"z{k}" for k in range(1, latent_dim + 1))


def sigma_names(latent_dim: int) -> tuple[str, ...]:
    """The names of the columns of posterior standard deviations: sigma1, sigma2, ...."""
    return tuple(f"sigma{k}" for k in range(1, latent_dim + 1))


def refuse_overwriting(out: Path, data: str) -> None:
    """An error where the output would replace the input."""
    source = split_path(data)[0]
    if out.exists() and source.exists() and out.samefile(source):
        raise DataError(f"{out} is the file to be read: choose another name for the output")
