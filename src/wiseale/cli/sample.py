"""``wiseale sample MODEL -n N -o x.npy``."""

from __future__ import annotations

from pathlib import Path

import click

from wiseale.cli.embed import OUT
from wiseale.cli.places import MODEL
from wiseale.errors import counted


@click.command()
@click.argument("model", type=MODEL)
@click.option("-n", "n", type=click.IntRange(1), default=100, show_default=True, help="how many")
@OUT
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="the same seed, the same samples")
@click.option("--noise", is_flag=True, help="draw from p(x|z) instead of taking its mean")
def command(model: Path, n: int, out: Path, seed: int, noise: bool) -> int:
    """Write new observations: codes drawn from the MODEL's prior and decoded, in the units it was trained on."""
    from wiseale.cli.progress import loading_bar
    from wiseale.models.files import sample
    from wiseale.models.inference import open_codec

    codec = open_codec(model)
    with loading_bar("sampling") as progress:
        sample(codec, n, out, seed=seed, noise=noise, progress=progress)
    print(f"{counted(n, 'row')} of shape {codec.model.x_shape}: {out}")
    return 0
