"""Applies a trained model to files, block by block: rows to codes, codes to rows, and samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from wiseale.data.array_output import ArrayOutput, Field
from wiseale.data.dataset import Array
from wiseale.data.source import split_path
from wiseale.data.stream import RowStream, open_rows
from wiseale.errors import DataError
from wiseale.models.inference import Codec

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
    fields += [Field("sigma", (d_z,), _CODES, tuple(f"sigma{k}" for k in range(d_z)))] if sigma else []
    fields += [Field("error", (), _CODES, ("error",))] if error else []
    rows.require(codec.model.x_shape)
    with ArrayOutput(out, fields) as output:
        for block in rows.blocks():
            for part in codec.blocks(len(block)):
                codes = codec.encode(block[part], error=error)
                wanted = (codes.mu, codes.sigma if sigma else None, codes.error)
                output.write(*(values for values in wanted if values is not None))
            progress(output.rows, rows.n)
    return output.rows


def open_codes(codec: Codec, spec: str) -> RowStream:
    """Codes in a file: those :func:`embed` wrote, or numbers alone."""
    d_z = codec.model.latent_dim
    try:
        rows = open_rows(spec, columns=code_names(d_z), array="codes")
    except DataError as named:
        try:  # a table of numbers under other names, or none
            rows = open_rows(spec)
        except DataError:
            raise named from None
        if rows.x_shape != (d_z,):
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
    shape = codec.model.x_shape
    columns = codec.model_config.columns or tuple(f"x{k}" for k in range(shape[0]))
    with ArrayOutput(out, [Field("x", shape, codec.dtype, columns)]) as output:
        for block in blocks:
            output.write(block)
            progress(output.rows, n)
    return output.rows


def code_names(latent_dim: int) -> tuple[str, ...]:
    """The names of the code columns in a table: z0, z1, ..., one for each dimension."""
    return tuple(f"z{k}" for k in range(latent_dim))


def refuse_overwriting(out: Path, data: str) -> None:
    """An error where the output would replace the input."""
    source = split_path(data)[0]
    if out.exists() and source.exists() and out.samefile(source):
        raise DataError(f"{out} is the file to be read: choose another name for the output")
