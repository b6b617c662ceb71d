"""``wiseale decode MODEL CODES -o x.npy``."""

from __future__ import annotations

from pathlib import Path

import click

from wiseale.cli.embed import OUT
from wiseale.cli.places import MODEL
from wiseale.errors import counted


@click.command()
@click.argument("model", type=MODEL)
@click.argument("codes")
@OUT
def command(model: Path, codes: str, out: Path) -> int:
    """Decode CODES with a trained MODEL and write the result, in the units of its training data.

    CODES is a file that `wiseale embed` wrote (columns z1, z2, ...), or any table of as many columns under other names.
    """
    from wiseale.cli.progress import loading_bar
    from wiseale.models.files import decode, open_codes, refuse_overwriting
    from wiseale.models.inference import open_codec

    codec = open_codec(model)
    rows = open_codes(codec, codes)
    refuse_overwriting(out, codes)
    with loading_bar("decoding") as progress:
        n = decode(codec, rows, out, progress=progress)
    print(f"{counted(n, 'row')} of shape {codec.model.x_shape}: {out}")
    return 0
