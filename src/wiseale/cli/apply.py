"""A trained model applied to files: ``wiseale embed``, ``decode``, ``sample`` and ``impute``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from wiseale.cli.options import (
    DATA,
    MODEL,
    ArrayTask,
    F,
    cluster_option,
    data_root_option,
    job_option,
    spelled_as_options,
)
from wiseale.cli.progress import loading_bar
from wiseale.errors import ConfigError, counted

if TYPE_CHECKING:
    from wiseale.models.files import Request

_MODEL = click.argument("model", type=MODEL)
_UNSEEN = click.option(
    "--unseen",
    type=click.Choice(["error", "missing", "other"]),
    help="what a category that training did not see is [default: as in training]",
)


def _out(forms: str) -> Callable[[F], F]:
    return click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help=f"file to write: {forms}")


_FILE = _out(".npz, .npy, .csv or .parquet")


@click.command()
@_MODEL
@click.argument("data", type=DATA)
@_out(".npz, .npy, .csv or .parquet; a folder if DATA is several files")
@cluster_option
@job_option
@click.option(
    "--format",
    "suffix",
    type=click.Choice(["parquet", "npy", "npz", "csv"]),
    help="of each file in the folder [default: parquet for Parquet files, else npy]",
)
@click.option("--sigma", is_flag=True, help="also the posteriors' standard deviations")
@click.option("--error", is_flag=True, help="also each row's reconstruction error: large where a row is unusual")
@click.option("--split", type=click.Choice(["train", "test"]), default="train", help="which rows of a named dataset")
@_UNSEEN
@data_root_option
def embed(
    model: Path,
    data: str,
    out: Path,
    cluster: str | None,
    job: ArrayTask | None,
    suffix: str | None,
    sigma: bool,
    error: bool,
    split: str,
    unseen: Literal["error", "missing", "other"] | None,
    data_root: Path | None,
) -> int:
    """Write the codes of DATA under a trained MODEL, which may be a run or a model directory.

    Codes are posterior means: columns z1, z2, ... of a table, or the array "codes". Rows are read and written block by
    block. A file is read as the run's own was (decimal mark, separator, header), unless DATA says otherwise.

    The error is the mean squared error of a row in standardised units. DATA may be a pattern of files in quotes,
    such as 'shards/*.parquet': OUT is then a folder with a file for each, and a later call does what is missing.
    """
    from wiseale.data.source import open_rows
    from wiseale.models.files import embed, is_pattern, make_request, refuse_overwriting
    from wiseale.models.inference import open_codec

    data = _read_alike(data, model)
    if is_pattern(data):
        request = make_request(model, sigma=sigma, error=error, unseen=unseen)
        return _archive(request, data, out, cluster, job, suffix)
    for name, value in (("--cluster", cluster), ("--job", job), ("--format", suffix)):
        if value is not None:
            raise ConfigError(f"{name} is for several files: give DATA as a pattern in quotes, such as 'shards/*.npy'")
    codec = open_codec(model)
    with loading_bar() as packing:
        rows = open_rows(
            data,
            space=codec.space,
            split=split,
            data_root=data_root,
            progress=packing,
            unseen=unseen,
        )
    refuse_overwriting(out, data)
    with loading_bar("embedding") as progress:
        n = embed(codec, rows, out, sigma=sigma, error=error, progress=progress)
    print(f"{counted(n, 'row')}, {counted(codec.model.latent_dim, 'code')} each: {out}")
    return 0


def _archive(
    request: Request, data: str, out: Path, cluster: str | None, job: ArrayTask | None, suffix: str | None
) -> int:
    """Embed the files of a pattern; the exit code is 1 if any failed."""
    from wiseale.models.files import embed_archive, keep_request, list_shards
    from wiseale.platform.locks import reserved
    from wiseale.processes.engines import open_engine

    if cluster and job:
        raise ConfigError("--cluster does all files on its own workers: leave out --job")
    if out.is_file() or out.suffix in (".npz", ".npy", ".csv", ".parquet"):
        raise ConfigError(f"-o {out} is a file, and DATA is several: give a folder")
    shards = list_shards(data, out, f".{suffix}" if suffix else None)
    if job is not None:
        shards = list(job.part(shards, "files"))
    keep_request(request, out)
    with (
        reserved(out) if job is None else nullcontext(),
        spelled_as_options(),
        open_engine(cluster, 1) as engine,
        loading_bar("embedding files") as progress,
    ):
        before = sum(shard.done for shard in shards)
        rows, failures = embed_archive(shards, request, engine, progress)
    for shard, reason in failures:
        print(f"{shard.data} failed: {reason}")
    done = f"{len(shards) - before - len(failures)} of {counted(len(shards), 'file')}, {counted(rows, 'row')}"
    print(f"{done}: {out} ({before} were there before)")
    return 1 if failures else 0


@click.command()
@_MODEL
@click.argument("codes")
@_FILE
def decode(model: Path, codes: str, out: Path) -> None:
    """Decode CODES with a trained MODEL and write the result, in the units of its training data.

    CODES is a file that `wiseale embed` wrote (columns z1, z2, ...), or any table of as many columns under other names.
    """
    from wiseale.models import files, inference

    codec = inference.open_codec(model)
    rows = files.open_codes(codec, codes)
    files.refuse_overwriting(out, codes)
    with loading_bar("decoding") as progress:
        n = files.decode(codec, rows, out, progress=progress)
    print(f"{counted(n, 'row')} of shape {codec.model.x_shape}: {out}")


@click.command()
@_MODEL
@click.option("-n", "n", type=click.IntRange(1), default=100, show_default=True, help="how many")
@_FILE
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="the same seed, the same samples")
@click.option("--noise", is_flag=True, help="draw from p(x|z) instead of taking its mean")
def sample(model: Path, n: int, out: Path, seed: int, noise: bool) -> None:
    """Write new observations: codes drawn from the MODEL's prior and decoded, in the units it was trained on."""
    from wiseale.models import files, inference

    codec = inference.open_codec(model)
    with loading_bar("sampling") as progress:
        files.sample(codec, n, out, seed=seed, noise=noise, progress=progress)
    print(f"{counted(n, 'row')} of shape {codec.model.x_shape}: {out}")


@click.command()
@_MODEL
@click.argument("data")
@_out(".csv or .parquet")
@_UNSEEN
def impute(model: Path, data: str, out: Path, unseen: Literal["error", "missing", "other"] | None) -> None:
    """Write the table DATA with its missing cells filled by a trained MODEL, which may be a run or a model directory.

    Numbers are filled by their posterior mean, categories by the likeliest level. Everything else stays as it is;
    columns that the model does not know are copied. Rows are read and written block by block. The table is read as the
    run's own was (decimal mark, separator, header), unless DATA says otherwise, and written as it is.
    """
    from wiseale.models import files, inference

    data = _read_alike(data, model)
    codec = inference.open_codec(model)
    cells = files.open_cells(codec, data, unseen)
    files.refuse_overwriting(out, data)
    with loading_bar("imputing") as progress:
        count = files.impute(codec, cells, out, progress=progress)
    print(f"{counted(count, 'missing cell')} filled: {out}")


def _read_alike(data: str, model: Path) -> str:
    """DATA with how the run's own was read, where it does not say otherwise; a model directory does not know that."""
    from wiseale.data.source import read_alike
    from wiseale.runs.run import Run

    return read_alike(data, Run.open(model).settings.data) if (model / "model").is_dir() else data
