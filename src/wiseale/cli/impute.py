"""``wiseale impute MODEL TABLE -o filled.csv``."""

from __future__ import annotations

from pathlib import Path

import click

from wiseale.cli.embed import UNSEEN
from wiseale.cli.places import MODEL
from wiseale.errors import counted


@click.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="file to write: .csv or .parquet")
@UNSEEN
def command(model: Path, data: str, out: Path, unseen: str | None) -> int:
    """Write the table DATA with its missing cells filled by a trained MODEL, which may be a run or a model directory.

    Numbers are filled by their posterior mean, categories by the likeliest level. Everything else stays as it is;
    columns that the model does not know are copied. Rows are read and written block by block. The table is read as the
    run's own was (decimal mark, separator, header), unless DATA says otherwise, and written as it is.
    """
    from wiseale.cli.progress import loading_bar
    from wiseale.data.source import read_alike
    from wiseale.models.files import impute, open_cells, refuse_overwriting
    from wiseale.models.inference import open_codec
    from wiseale.runs.directory import data_of

    data = read_alike(data, data_of(model))
    codec = open_codec(model)
    cells = open_cells(codec, data, unseen)  # type: ignore[arg-type]
    refuse_overwriting(out, data)
    with loading_bar("imputing") as progress:
        filled = impute(codec, cells, out, progress=progress)
    print(f"{counted(filled, 'missing cell')} filled: {out}")
    return 0
