"""Trained models as files: ``wiseale export MODEL --format onnx|model -o PATH``, and ``wiseale zoo``."""

from __future__ import annotations

from pathlib import Path

import click

from wiseale.cli.options import MODEL
from wiseale.errors import ModelFileError


@click.command()
@click.argument("model", type=MODEL)
@click.option("--format", "form", type=click.Choice(["onnx", "model"]), required=True, help="what to write")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="directory to write")
def export(model: Path, form: str, out: Path) -> int:
    """Write a trained MODEL (a run or a model directory) to be used elsewhere, with a model card as README.md.

    onnx: encoder.onnx (x to mu and sigma) and decoder.onnx (z to x_hat), in the units of the training data, compared
    with the model in onnxruntime. model: the weights and settings that wiseale.load and `wiseale embed` read.
    """
    from wiseale.evaluation.record import provenance
    from wiseale.models.card import Provenance, model_card
    from wiseale.models.inference import open_codec
    from wiseale.models.model_file import CARD, refuse_to_replace, save_model
    from wiseale.platform.atomic_files import write_text
    from wiseale.runs.run import Run

    codec = open_codec(model)
    known = provenance(Run.open(model)) if (model / "model").is_dir() else Provenance()
    name = out.absolute().name
    try:
        if form == "onnx":
            from wiseale.models.onnx import export_onnx

            exported = export_onnx(codec, out)
            write_text(out / CARD, model_card(name, codec.model_config, known, exported))
        else:
            refuse_to_replace(out)
            save_model(out, codec.model, codec.model_config, {CARD: model_card(name, codec.model_config, known)})
    except OSError as error:
        raise ModelFileError(f"cannot write {out}: {error.strerror or error}") from None
    if form == "onnx":
        print(
            f"opset {exported.opset}; largest error in onnxruntime: encoder {exported.encoder_error:.1e}, "
            f"decoder {exported.decoder_error:.1e}"
        )
    print(f"exported: {out}")
    return 0


@click.command()
def zoo() -> int:
    """List the trained models that come with wiseale; use them as zoo:NAME wherever a MODEL is asked for."""
    from rich.console import Console
    from rich.table import Table

    from wiseale.evaluation.record import Evaluation
    from wiseale.models.model_file import CONFIG, read_config
    from wiseale.models.zoo import zoo_names, zoo_path
    from wiseale.runs.directory import RunDirectory, read

    table = Table("model", "codes", "ELBO", "MSE", "aggregate KL", "bytes", box=None, pad_edge=False)
    for name in zoo_names():
        path = zoo_path(name)
        measures = read(Evaluation.from_json, RunDirectory(path).evaluation).measures
        values = [measures.get(measure) for measure in ("elbo", "mse", "kl_aggregate_mc")]
        size = sum(file.stat().st_size for file in path.iterdir())
        cells = ["–" if value is None else f"{value:.4g}" for value in values]
        table.add_row(f"zoo:{name}", str(read_config(path / CONFIG).latent_dim), *cells, f"{size:,}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print("nats per observation of test rows; try: wiseale explore zoo:mnist-wise_ale zoo:mnist-aevb")
    return 0
