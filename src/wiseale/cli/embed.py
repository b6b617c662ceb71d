"""``wiseale embed MODEL DATA -o codes.npz``, and ``wiseale embed MODEL 'shards/*.parquet' -o DIR``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiseale.cli.data_argument import DATA
from wiseale.cli.options import cluster_option, spelled_as_options
from wiseale.cli.places import MODEL
from wiseale.errors import ConfigError, counted

if TYPE_CHECKING:
    from wiseale.models.archive import Request

OUT = click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, help="file to write: .npz, .npy, .csv or .parquet"
)
UNSEEN = click.option(
    "--unseen",
    type=click.Choice(["error", "missing", "other"]),
    help="what a category that training did not see is [default: as in training]",
)


@click.command()
@click.argument("model", type=MODEL)
@click.argument("data", type=DATA)
@click.option(
    *("-o", "--out"),
    type=click.Path(path_type=Path),
    required=True,
    help="file to write: .npz, .npy, .csv or .parquet; a folder if DATA is several files",
)
@cluster_option
@click.option(
    "--format",
    "suffix",
    type=click.Choice(["parquet", "npy", "npz", "csv"]),
    help="of each file in the folder [default: parquet for Parquet files, else npy]",
)
@click.option("--sigma", is_flag=True, help="also the posteriors' standard deviations")
@click.option("--error", is_flag=True, help="also each row's reconstruction error: large where a row is unusual")
@click.option("--split", type=click.Choice(["train", "test"]), default="train", help="which rows of a named dataset")
@UNSEEN
@click.option("--data-root", type=click.Path(path_type=Path), help="folder of the datasets [default: $WISEALE_DATA]")
def command(
    model: Path,
    data: str,
    out: Path,
    cluster: str | None,
    suffix: str | None,
    sigma: bool,
    error: bool,
    split: str,
    unseen: str | None,
    data_root: Path | None,
) -> int:
    """Write the codes of DATA under a trained MODEL, which may be a run or a model directory.

    Codes are posterior means: columns z1, z2, ... of a table, or the array "codes". Rows are read and written block by
    block. A file is read as the run's own was (decimal mark, separator, header), unless DATA says otherwise.

    The error is the mean squared error of a row in standardised units. DATA may be a pattern of files in quotes,
    such as 'shards/*.parquet': OUT is then a folder with a file for each, and a later call does what is missing.
    """
    from wiseale.data.source import read_alike
    from wiseale.models.archive import is_pattern, make_request
    from wiseale.runs.directory import data_of

    data = read_alike(data, data_of(model))
    if is_pattern(data):
        request = make_request(model, sigma=sigma, error=error, unseen=unseen)  # type: ignore[arg-type]
        return _archive(request, data, out, cluster, suffix)
    for name, value in (("--cluster", cluster), ("--format", suffix)):
        if value is not None:
            raise ConfigError(f"{name} is for several files: give DATA as a pattern in quotes, such as 'shards/*.npy'")
    from wiseale.cli.progress import loading_bar
    from wiseale.data.stream import open_rows
    from wiseale.models.files import embed, refuse_overwriting
    from wiseale.models.inference import open_codec

    codec = open_codec(model)
    with loading_bar() as packing:
        rows = open_rows(
            data,
            space=codec.space,
            split=split,
            data_root=data_root,
            progress=packing,
            unseen=unseen,  # type: ignore[arg-type]
        )
    refuse_overwriting(out, data)
    with loading_bar("embedding") as progress:
        n = embed(codec, rows, out, sigma=sigma, error=error, progress=progress)
    print(f"{counted(n, 'row')}, {counted(codec.model.latent_dim, 'code')} each: {out}")
    return 0


def _archive(request: Request, data: str, out: Path, cluster: str | None, suffix: str | None) -> int:
    """Embed the files of a pattern; the exit code is 1 if any failed."""
    from wiseale.cli.progress import loading_bar
    from wiseale.models.archive import embed_archive, keep_request, list_shards
    from wiseale.processes.engines import open_engine

    if out.is_file() or out.suffix in (".npz", ".npy", ".csv", ".parquet"):
        raise ConfigError(f"-o {out} is a file, and DATA is several: give a folder")
    shards = list_shards(data, out, f".{suffix}" if suffix else None)
    keep_request(request, out)
    with (
        spelled_as_options(),
        open_engine(cluster, 1) as engine,
        loading_bar("embedding files") as progress,
    ):
        made = embed_archive(shards, request, engine, progress)
    for shard, reason in made.failures:
        print(f"{shard.data} failed: {reason}")
    here = len(shards) - made.before - len(made.failures)
    done = f"{here} of {counted(len(shards), 'file')}, {counted(made.rows, 'row')}"
    print(f"{done}: {out} ({made.before} were there before)")
    return 1 if made.failures else 0
