"""``wiseale embed MODEL DATA -o codes.npz``."""

from __future__ import annotations

from pathlib import Path

import click

from wiseale.cli.data_argument import DATA

OUT = click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, help="file to write: .npz, .npy, .csv or .parquet"
)
UNSEEN = click.option(
    "--unseen",
    type=click.Choice(["error", "missing", "other"]),
    help="what a category that training did not see is [default: as in training]",
)


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=DATA)
@OUT
@click.option("--sigma", is_flag=True, help="also the posteriors' standard deviations")
@click.option("--error", is_flag=True, help="also each row's reconstruction error: large where a row is unusual")
@click.option("--split", type=click.Choice(["train", "test"]), default="train", help="which rows of a named dataset")
@UNSEEN
@click.option("--data-root", type=click.Path(path_type=Path), help="folder of the datasets [default: $WISEALE_DATA]")
def command(
    model: Path, data: str, out: Path, sigma: bool, error: bool, split: str, unseen: str | None, data_root: Path | None
) -> int:
    """Write the codes of DATA under a trained MODEL, which may be a run or a model directory.

    Codes are posterior means: columns z0, z1, ... of a table, or the array "codes". Rows are read and written block by
    block. The error is the mean squared error of a row in standardised units.
    """
    from wiseale.cli.progress import loading_bar
    from wiseale.data.stream import open_rows
    from wiseale.models.files import embed, refuse_overwriting
    from wiseale.models.inference import open_codec

    codec = open_codec(model)
    settings = codec.model_config
    table = settings.table if codec.model.table is not None else None
    with loading_bar() as packing:
        rows = open_rows(
            data,
            columns=settings.columns,
            split=split,
            data_root=data_root,
            progress=packing,
            table=table,
            unseen=unseen,  # type: ignore[arg-type]
        )
    refuse_overwriting(out, data)
    with loading_bar("embedding") as progress:
        n = embed(codec, rows, out, sigma=sigma, error=error, progress=progress)
    print(f"{n:,} rows, {codec.model.latent_dim} codes each: {out}")
    return 0
